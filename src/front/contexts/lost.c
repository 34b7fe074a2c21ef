/* Reports sandboxes that ended although their row is active. The store then clears the row, so that
 * it no longer counts towards the limits. While the store cannot be reached, the reports are kept
 * and repeated at the reaper's next turn. */
#include <string.h>

#include "front/contexts/impl.h"
#include "lib/log/log.h"

#define KEPT_MAX 4096 /* further rows count towards the limits until they expire */

struct lost {
    struct list link;
    struct front *front;
    char tenant[ID_LEN + 1], id[ID_LEN + 1], sandbox_id[ID_LEN + 1];
};

static void on_told(void *arg, const struct ctx_reply *reply)
{
    struct lost *l = arg;
    struct contexts *t = l->front->contexts;

    if (reply->r != -EAGAIN || t->n_lost >= KEPT_MAX) {
        free(l);
        return;
    }
    if (t->n_lost == 0)
        log_line(LEVEL_WARN,
                 "the end of a context's sandbox could not be stored, and will be later: %s",
                 reply->e.message);
    list_append(&t->lost, &l->link);
    t->n_lost++;
}

static void tell(struct lost *l)
{
    ctx_call(l->front->contexts->store, lost, l->tenant, l->id, l->sandbox_id, on_told, l);
}

void lost_tell(const struct context *c, const struct sandbox *b)
{
    struct lost *l = NEW(struct lost, .front = c->front);

    memcpy(l->tenant, c->tenant, sizeof(l->tenant));
    memcpy(l->id, c->row.id, sizeof(l->id));
    memcpy(l->sandbox_id, b->id, sizeof(l->sandbox_id));
    tell(l);
}

void lost_tell_again(struct front *f)
{
    struct list again = {0};

    list_move(&f->contexts->lost, &again);
    f->contexts->n_lost = 0;
    for (struct lost *l; (l = LIST_POP(struct lost, &again, link));)
        tell(l);
}
