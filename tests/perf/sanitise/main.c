/* How fast text goes through the sanitiser.
 *
 *   sanitise ROUNDS FILE...    for each file, as a whole and in the pieces that output comes in,
 * the bytes and the microseconds of each round */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/fd.h"
#include "lib/sanitise/sanitise.h"

#define TEXT_MAX (256u * 1024 * 1024)
#define PIECE    (16 * 1024)

/* Of this process, which only computes: others on the machine do not count. */
static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "sanitise: %s: %s\n", what, why);
    exit(1);
}

static void whole(struct sanitiser *s, const char *text, size_t len, struct strbuf *out)
{
    sanitise_text(s, SANITISE_ENFORCE, text, len, out, NULL);
}

static void pieces(struct sanitiser *s, const char *text, size_t len, struct strbuf *out)
{
    struct sanitise_stream *st = sanitise_stream_new(s, SANITISE_ENFORCE);

    for (size_t at = 0; at < len; at += PIECE)
        sanitise_feed(st, text + at, len - at < PIECE ? len - at : PIECE, out);
    sanitise_flush(st, out);
    sanitise_stream_free(st);
}

static void measure(struct sanitiser *s, const char *path, long rounds)
{
    AUTO(free_p) char *text = NULL;
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    AUTO(strbuf_done) struct strbuf out = {0};
    size_t len;

    if (fd < 0 || fd_read_all(fd, TEXT_MAX, &text, &len) < 0)
        fail(path, "cannot be read");
    strbuf_init(&out, TEXT_MAX);
    for (long i = -1; i < rounds; i++) { /* the first is for memory to be there */
        double t = now_us();
        whole(s, text, len, &out);
        double between = now_us();
        strbuf_reset(&out);
        double again = now_us();
        pieces(s, text, len, &out);
        double end = now_us();
        strbuf_reset(&out);
        if (i >= 0)
            printf("{\"case\":\"%s\",\"bytes\":%zu,\"whole_us\":%.1f,\"us\":%.1f}\n", path, len,
                   between - t, end - again);
    }
}

int main(int argc, char **argv)
{
    struct sanitiser *s;
    struct sg_error e = {0};

    if (argc < 3)
        return 2;
    double t = now_us();
    if (sanitiser_new(NULL, &s, &e) < 0)
        fail("compile the patterns", e.message);
    printf("{\"case\":\"compile\",\"us\":%.1f}\n", now_us() - t);
    for (int i = 2; i < argc; i++)
        measure(s, argv[i], strtol(argv[1], NULL, 10));
    sanitiser_free(s);
    return 0;
}
