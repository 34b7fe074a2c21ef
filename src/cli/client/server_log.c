#include "cli/client/server_log.h"

#include <stdio.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/command/state_dir.h"
#include "lib/command/ui.h"
#include "lib/command/when.h"
#include "cli/client/jr.h"
#include "cli/client/log_tail.h"

#define POLL_NS (200 * 1000000l)

struct view {
    const struct server_log_query *query;
    bool colours;
    /* The last lines so far, printed at the end; NULL: each line is printed as it comes. */
    char **ring;
    size_t first, n;
    bool any; /* line was of interest so far */
};

static bool wanted(const struct server_log_query *q, const json_t *line)
{
    int64_t ms;

    if (q->since_ms > 0 && (when_parse_ms(jr_text(line, "time"), &ms) < 0 || ms < q->since_ms))
        return false;
    return journal_level(line) >= q->level &&
           (!q->layer || strcmp(q->layer, jr_text(line, "layer")) == 0) &&
           (!q->request || strcmp(q->request, jr_text(line, "request")) == 0) &&
           (!q->sandbox || strcmp(q->sandbox, jr_text(line, "sandbox")) == 0);
}

static void keep(struct view *v, const char *text)
{
    size_t cap = (size_t)v->query->lines;

    if (v->n == cap) {
        free(v->ring[v->first]);
        v->ring[v->first] = NULL;
        v->first = (v->first + 1) % cap;
        v->n--;
    }
    v->ring[(v->first + v->n++) % cap] = xstrdup(text);
}

/* Shows a line. Skips one that is no JSON object, which a full disk may leave. */
static void on_line(void *arg, const char *line, size_t len)
{
    AUTO(jr_free_p) json_t *parsed = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(JOURNAL_LINE_MAX);
    struct view *v = arg;

    if (!json_is_object(parsed) || !wanted(v->query, parsed))
        return;
    v->any = true;
    if (v->query->json)
        strbuf_add(&out, line, len);
    else
        journal_format_server(parsed, &out, v->colours);
    if (v->ring)
        keep(v, out.buf);
    else
        puts(out.buf);
}

static void print_kept(struct view *v)
{
    size_t cap = (size_t)v->query->lines;

    for (size_t i = 0; v->ring && i < v->n; i++) {
        char *text = v->ring[(v->first + i) % cap];
        puts(text);
        free(text);
    }
    free(v->ring);
    v->ring = NULL;
}

static int show(struct log_tail *t, struct view *v, struct sg_error *e)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    int r;

    for (;;) {
        r = log_tail_read(t, on_line, v);
        if (r < 0)
            return err_code(e, r, "read the server's log");
        print_kept(v);
        r = jr_flush(e);
        if (r < 0 || !v->query->follow)
            return r;
        nanosleep(&pause, NULL);
    }
}

static int cannot_open(const char *dir, int r, struct sg_error *e)
{
    if (r == -ENOENT)
        return err_set(e, SG_ERR_NOT_FOUND, r,
                       "there is no log in '%s': name the server's directory with --state; a "
                       "server with log_size = 0 keeps no log",
                       dir);
    if (r == -EACCES)
        return err_set(e, SG_ERR_DENIED, r, "the log in '%s' is root's to read: use sudo", dir);
    return err_code(e, r, "open the log in '%s'", dir);
}

int server_log_show(const struct server_log_query *q, struct sg_error *e)
{
    struct view v = {.query = q, .colours = ui_has_colour(STDOUT_FILENO)};
    char state[STATE_DIR_MAX], dir[STATE_DIR_MAX + 8];
    AUTO(log_tail_close) struct log_tail t = {.dir = -1, .fd = -1};
    int r = state_dir_find(q->state, state, e);

    if (r < 0)
        return r;
    snprintf(dir, sizeof(dir), "%s/log", state);
    r = log_tail_open(&t, dir);
    if (r < 0)
        return cannot_open(dir, r, e);
    if (q->lines > 0)
        v.ring = xcalloc(q->lines, sizeof(*v.ring));
    r = show(&t, &v, e);
    print_kept(&v);
    if (r == 0 && !v.any && q->request)
        ui_note("the log has no lines of request '%.64s', or has them no more", q->request);
    return r;
}
