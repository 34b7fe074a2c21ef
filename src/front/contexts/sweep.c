/* Ends the sandboxes of many final rows, a few at a time: if the kernel had to tear down fifty at
 * once, everybody who runs code would feel it. */
#include <string.h>

#include "front/contexts/impl.h"

#define AT_ONCE 2

struct sweep {
    struct front *front;
    void (*done)(void *arg);
    void *arg;
    size_t n, next, pending;
    bool pumping;
    struct ctx_row rows[];
};

static void pump(struct sweep *s);

static void on_gone(void *arg, struct sandbox *b UNUSED, int r UNUSED,
                    const struct sg_error *e UNUSED)
{
    struct sweep *s = arg;

    s->pending--;
    if (!s->pumping) /* the answer may come during the order */
        pump(s);
}

static void end_one(struct sweep *s, const struct ctx_row *row)
{
    struct operation d;

    operation_begin(&d, OPERATION_CONTEXT_TERMINATE);
    operation_context(&d, row->tenant, row->conversation, row->path, row->id);
    struct trace_ref before = operation_enter(&d.trace);
    context_tell(s->front, HAPPENED_CONTEXT_ENDED, row, "expired");
    context_end_sandbox(s->front, row, on_gone, s);
    operation_leave(&before);
    operation_end(&d, s->front, NULL, 0, NULL, "expired");
}

static void pump(struct sweep *s)
{
    s->pumping = true;
    while (s->next < s->n && s->pending < AT_ONCE) {
        s->pending++;
        end_one(s, &s->rows[s->next++]);
    }
    s->pumping = false;
    if (s->next < s->n || s->pending > 0)
        return;
    s->done(s->arg);
    free(s);
}

void context_end_sandboxes(struct front *f, const struct ctx_row *rows, size_t n,
                           void (*done)(void *arg), void *arg)
{
    struct sweep *s = xcalloc(1, sizeof(*s) + n * sizeof(s->rows[0]));

    *s = (struct sweep){.front = f, .done = done, .arg = arg, .n = n};
    if (n > 0)
        memcpy(s->rows, rows, n * sizeof(s->rows[0]));
    figure_add(FIG_REAPED, "context", (double)n);
    pump(s);
}
