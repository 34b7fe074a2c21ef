#include "front/builds/log.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"

#define LINE_MAX_ 2048u              /* bytes of a line of output; what is longer becomes several */
#define LINES_MAX 10000              /* of output */
#define BYTES_MAX (2u * 1024 * 1024) /* ... in all of them */
#define MESSAGE   (LINE_MAX_ + 256)

void build_log_init(struct build_log *l, struct store *s, const char *build)
{
    *l = (struct build_log){.store = s};
    snprintf(l->build, sizeof(l->build), "%s", build);
    strbuf_init(&l->cut[0], LINE_MAX_);
    strbuf_init(&l->cut[1], LINE_MAX_);
}

void build_log_done(struct build_log *l)
{
    strbuf_done(&l->cut[0]);
    strbuf_done(&l->cut[1]);
}

/* A log that cannot be written does not stop the build: whether the build went well is said
 * elsewhere. */
void build_log_line(struct build_log *l, enum build_log_level level, const char *fmt, ...)
{
    char text[MESSAGE];
    struct store_log line = {.ms = clock_wall_ms(), .level = level, .message = text};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(line.step, sizeof(line.step), "%s", l->step);
    store_build_log_add(l->store, l->build, &line, NULL);
}

static void tell(struct build_log *l, bool err)
{
    struct strbuf *cut = &l->cut[err];

    if (l->lines == LINES_MAX || l->bytes + cut->len > BYTES_MAX) {
        build_log_line(l, BUILD_WARN,
                       "%s more than %d lines or %u MiB of output: the rest is not kept", l->prefix,
                       LINES_MAX, BYTES_MAX >> 20);
        l->full = true;
    } else {
        build_log_line(l, BUILD_INFO, "%s [%s]: %s", l->prefix, err ? "stderr" : "stdout",
                       cut->buf);
    }
    l->lines++;
    l->bytes += cut->len;
    strbuf_reset(cut);
}

/* A zero byte would end the text. */
static void add_clean(struct strbuf *cut, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        strbuf_addch(cut, p[i] ? p[i] : ' ');
}

static void add_output(struct build_log *l, bool err, const char *p, size_t len)
{
    struct strbuf *cut = &l->cut[err];

    while (len > 0 && !l->full) {
        const char *end = memchr(p, '\n', len);
        size_t n = end ? (size_t)(end - p) : len, room = LINE_MAX_ - cut->len;
        bool whole = end && n <= room;

        n = n < room ? n : room;
        add_clean(cut, p, n - (whole && n > 0 && p[n - 1] == '\r'));
        if (whole || cut->len == LINE_MAX_)
            tell(l, err);
        p += n + whole;
        len -= n + whole;
    }
}

/* Lines that come together are written together: there may be thousands, and all others wait
 * meanwhile. */
void build_log_output(struct build_log *l, bool err, const char *p, size_t len)
{
    if (l->full || len == 0)
        return;
    bool tells = memchr(p, '\n', len) || l->cut[err].len + len >= LINE_MAX_;
    if (tells && store_build_log_begin(l->store, NULL) < 0)
        return; /* another process has the database: better no lines than to wait for it with each */
    add_output(l, err, p, len);
    if (tells)
        store_build_log_end(l->store, NULL);
}

void build_log_flush(struct build_log *l)
{
    for (int err = 0; err < 2; err++)
        if (l->cut[err].len > 0 && !l->full)
            tell(l, err);
}
