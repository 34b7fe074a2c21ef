/* Snapshots of a sandbox's files. The store has a layer on its list of loose ones from before it is
 * made until something names it or it is gone, so that one whose front was killed meanwhile is
 * found. */
#include <stdio.h>
#include <string.h>

#include "front/core/checkpoint.h"
#include "front/core/deed.h"
#include "front/core/lifecycle.h"
#include "front/core/warden.h"
#include "front/store/store.h"

struct saving {
    struct box *box;
    char layer[ID_LEN + 1];
    bool durable;
    struct deed deed;
    box_saved done;
    void *arg;
};

static void on_saved(void *arg, const struct order_answer *a, int fd)
{
    struct saving *s = arg;
    struct sg_error e = {0};
    int r = warden_error(a, &e);

    close_p(&fd);
    if (r < 0)
        store_layer_gone(s->box->front->store, s->layer);
    deed_end(&s->deed, s->box->front, s->box, r, &e, NULL);
    s->done(s->arg, r, &e, a->stats.disk_bytes);
    box_settled(s->box);
    box_unref(s->box);
    free(s);
}

static void save_again(void *arg, struct box *b, int r, const struct sg_error *e)
{
    AUTO(free_p) struct saving *s = arg;

    (void)r, (void)e;
    struct trace_ref before = deed_enter(&s->deed.trace);
    box_snapshot(b, s->layer, s->durable, s->done, s->arg);
    deed_leave(&before);
    box_unref(b);
}

/* A checkpoint is over in a moment, unless it waits for a cell, as its client wanted. */
void box_snapshot(struct box *b, const char *layer, bool durable, box_saved done, void *arg)
{
    struct sg_error e = {0};
    struct saving *s;
    struct order o;
    int r = 0;

    if (b->busy == BUSY_CHECKPOINT) {
        s = xcalloc(1, sizeof *s);
        *s = (struct saving){.box = box_ref(b), .durable = durable, .done = done, .arg = arg};
        snprintf(s->layer, sizeof s->layer, "%s", layer);
        s->deed.trace = deed_current();
        box_when_settled(b, save_again, s);
        return;
    }
    if (b->busy != BUSY_NO || b->state == BOX_ENDED)
        r = err_set(&e, SG_ERR_GONE, -EBUSY,
                    "Sandbox %s is being paused, resumed or snapshotted: try again", b->id);
    if (r == 0)
        r = store_layer_loose(b->front->store, layer, &e);
    if (r < 0) {
        done(arg, r, &e, 0);
        return;
    }
    s = xcalloc(1, sizeof *s);
    *s = (struct saving){.box = box_ref(b), .done = done, .arg = arg};
    b->busy = BUSY_SNAPSHOT;
    deed_begin(&s->deed, DEED_SNAPSHOT);
    deed_box(&s->deed, b);
    box_order(b, ORDER_SNAPSHOT, &o);
    o.flags = durable ? ORDER_DURABLE : 0;
    snprintf(o.layer, sizeof o.layer, "%s", layer);
    memcpy(s->layer, o.layer, sizeof s->layer);
    warden_order(b->front, &o, -1, on_saved, s);
}

struct forgetting {
    struct front *front;
    char layer[ID_LEN + 1];
};

static void on_forgotten(void *arg, const struct order_answer *a, int fd)
{
    struct forgetting *g = arg;

    close_p(&fd);
    if (a->code == 0 || a->code == -ENOENT)
        store_layer_gone(g->front->store, g->layer);
    free(g);
}

void box_forget_layer(struct front *f, const char *layer)
{
    struct forgetting *g = xcalloc(1, sizeof *g);
    struct order o = {.op = ORDER_FORGET};

    checkpoint_layer_forgotten(f, layer);
    g->front = f;
    snprintf(o.layer, sizeof o.layer, "%s", layer);
    memcpy(g->layer, o.layer, sizeof g->layer);
    warden_order(f, &o, -1, on_forgotten, g);
}

static void forget_one(const char *id, void *arg)
{
    box_forget_layer(arg, id);
}

int boxes_forget_loose_layers(struct front *f, struct sg_error *e)
{
    return store_layers_each(f->store, forget_one, f, e);
}
