#include "front/volumes/watch.h"

#include <string.h>

#include "front/volumes/stream.h"
#include "lib/json/values.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define LOOK_MS   30000
#define FRESH_S   20  /* what was measured since is not measured again */
#define LOOKS_MAX 128 /* at a time; others wait for the next turn */

struct look {
    struct list link;
    struct store_volume volume;
    uint64_t limit;
};

static struct list looks;
static size_t n_looks;
static size_t n_before; /* mounts that the last turns came to, as long as one turn is not enough */

static void on_end(void *owner, int r, const struct volume_end *end, const struct sg_error *e)
{
    struct look *l = owner;

    if (r < 0)
        log_line(LEVEL_DEBUG, "volume %s could not be measured: %s", l->volume.id, e->message);
    else if (end->measured && end->used >= l->limit)
        log_line(LEVEL_INFO, "volume %s is full: no further sandbox may write to it", l->volume.id);
    list_remove(&l->link);
    n_looks--;
    free(l);
}

static void on_entry(void *owner UNUSED, const struct volume_entry *e UNUSED,
                     const char *path UNUSED, const char *target UNUSED)
{
    /* no measure has one */
}

static void on_data(void *owner UNUSED, const void *p UNUSED, size_t len UNUSED)
{
    /* the same */
}

static const struct volume_stream_handlers handlers = {
    .on_entry = on_entry, .on_data = on_data, .on_end = on_end};

/* False: it must wait. */
static bool look_at(struct front *f, const char *id)
{
    const struct volume_request ask = {.op = VOLUME_USAGE, .depth = FRESH_S};
    struct store_volume v;
    struct sg_error e;

    if (n_looks == LOOKS_MAX)
        return false;
    if (LIST_FIND(const struct look, l, &looks, link, strcmp(l->volume.id, id) == 0) ||
        store_volume_get(f->store, id, &v, &e) < 0)
        return true;
    struct look *l = NEW(struct look, .volume = v, .limit = f->settings.volume_size);
    list_push(&looks, &l->link);
    n_looks++;
    volume_stream_new(f, &v, &ask, "/", &handlers, l);
    return true;
}

void volume_look(struct front *f, const char *id)
{
    look_at(f, id);
}

static void on_timer(uv_timer_t *t)
{
    struct front *f = t->data;
    size_t n = 0, i;
    json_t *mount;

    SANDBOXES_EACH(b, f) {
        if (b->state != SANDBOX_RUNNING)
            continue;
        json_array_foreach(b->spec.volumes, i, mount)
        {
            if (n++ < n_before || json_is_true(json_object_get(mount, "readOnly")))
                continue;
            if (!look_at(f, jr_text(mount, "id"))) {
                n_before = n - 1;
                return;
            }
        }
    }
    n_before = 0;
}

void volumes_watch(struct front *f)
{
    static uv_timer_t timer;

    timer_every(f->loop, &timer, LOOK_MS, on_timer, f);
}
