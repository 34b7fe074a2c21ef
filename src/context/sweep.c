/* The sandboxes of many rows that are final, ended a few at a time: the kernel's work of taking
 * fifty apart at once is felt by everybody who runs code meanwhile. */
#include <string.h>

#include "context/impl.h"

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

static void on_gone(void *arg, struct box *b, int r, const struct sg_error *e)
{
    struct sweep *s = arg;

    (void)b, (void)r, (void)e;
    s->pending--;
    if (!s->pumping) /* it may come while it is being ordered */
        pump(s);
}

static void pump(struct sweep *s)
{
    s->pumping = true;
    while (s->next < s->n && s->pending < AT_ONCE) {
        s->pending++;
        context_end_box(s->front, &s->rows[s->next++], on_gone, s);
    }
    s->pumping = false;
    if (s->next < s->n || s->pending > 0)
        return;
    s->done(s->arg);
    free(s);
}

void context_end_boxes(struct front *f, const struct ctx_row *rows, size_t n,
                       void (*done)(void *arg), void *arg)
{
    struct sweep *s = xcalloc(1, sizeof(*s) + n * sizeof(s->rows[0]));

    *s = (struct sweep){.front = f, .done = done, .arg = arg, .n = n};
    if (n > 0)
        memcpy(s->rows, rows, n * sizeof(s->rows[0]));
    pump(s);
}
