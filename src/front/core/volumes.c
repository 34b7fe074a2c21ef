#include "front/core/volumes.h"

#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "front/core/warden.h"
#include "lib/json/values.h"

#define SECRET_NAME "volume"
#define SECRET_LEN  32
#define SIZES_MAX   65536 /* volumes whose size is remembered */
#define NAMED_MAX   5     /* sandboxes that an error names */

/* ---- sizes ----------------------------------------------------------------------------------- */

struct size {
    struct map_node by_id;
    char id[ID_LEN + 1];
    uint64_t bytes;
};

static struct map sizes;

static struct size *find_size(const char *id)
{
    return MAP_FIND(struct size, s, &sizes, hash_text(0, id), by_id, strcmp(s->id, id) == 0);
}

static void drop_size(struct size *s)
{
    if (!s)
        return;
    map_remove(&sizes, &s->by_id);
    free(s);
}

bool volume_known_size(const char *id, uint64_t *ret)
{
    const struct size *s = find_size(id);

    if (s)
        *ret = s->bytes;
    return s != NULL;
}

void volume_note_size(const char *id, uint64_t bytes)
{
    struct size *s = find_size(id);

    if (!s) {
        if (sizes.n == SIZES_MAX)
            drop_size(MAP_FIRST(struct size, &sizes, by_id));
        s = xcalloc(1, sizeof(*s));
        snprintf(s->id, sizeof(s->id), "%s", id);
        map_add(&sizes, &s->by_id, hash_text(0, id));
    }
    s->bytes = bytes;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

int volume_token(struct front *f, const char *id, char ret[VOLUME_TOKEN_LEN + 1],
                 struct sg_error *e)
{
    unsigned char secret[SECRET_LEN], digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    int r = store_secret(f->store, SECRET_NAME, secret, sizeof(secret), e);

    if (r < 0)
        return r;
    if (!HMAC(EVP_sha256(), secret, sizeof(secret), (const unsigned char *)id, strlen(id), digest,
              &len))
        abort(); /* out of memory */
    OPENSSL_cleanse(secret, sizeof(secret));
    for (size_t i = 0; i < VOLUME_TOKEN_LEN / 2; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    return 0;
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static int check_room(struct front *f, const struct store_volume *v, struct sg_error *e)
{
    uint64_t used;

    if (!volume_known_size(v->id, &used) || used < f->settings.volume_size)
        return 0;
    return err_set(e, SG_ERR_LIMIT, -ENOSPC,
                   "Volume \"%s\" is full: remove files from it, or mount it with \"readOnly\": "
                   "true",
                   v->name);
}

int volumes_resolve(struct front *f, const char *tenant, json_t *mounts, struct sg_error *e)
{
    json_t *mount;
    size_t i;

    json_array_foreach(mounts, i, mount)
    {
        const char *name = json_string_value(json_object_get(mount, "name"));
        struct store_volume v;
        int r = store_volume_named(f->store, tenant, name, &v, e);

        if (r == -ENOENT)
            return err_set(e, SG_ERR_NOT_FOUND, r, "Volume \"%s\" not found", name);
        if (r == 0 && !json_is_true(json_object_get(mount, "readOnly")))
            r = check_room(f, &v, e);
        if (r < 0)
            return r;
        json_object_set_new(mount, "id", json_string(v.id));
    }
    return 0;
}

void volumes_fill_order(const json_t *mounts, struct order *o)
{
    json_t *mount;
    size_t i;

    json_array_foreach(mounts, i, mount)
    {
        struct order_volume *v = &o->volumes[i];

        if (i == ORDER_VOLUMES_MAX)
            break;
        snprintf(v->id, sizeof(v->id), "%s", jr_text(mount, "id"));
        snprintf(v->target, sizeof(v->target), "%s", jr_text(mount, "path"));
        v->readonly = json_is_true(json_object_get(mount, "readOnly"));
        o->n_volumes++;
    }
}

bool volume_is_mounted(const struct sandbox *b, const char *id, bool writable)
{
    json_t *mount;
    size_t i;

    json_array_foreach(b->spec.volumes, i, mount)
    {
        if (strcmp(jr_text(mount, "id"), id) == 0 &&
            !(writable && json_is_true(json_object_get(mount, "readOnly"))))
            return true;
    }
    return false;
}

/* ---- making and removing --------------------------------------------------------------------- */

struct change {
    struct front *front;
    struct store_volume volume;
    volume_done done; /* NULL: nobody waits */
    void *arg;
};

static void send_order(struct change *c, enum order_op op, warden_done done)
{
    struct order o = {.op = op, .n_volumes = 1};

    memcpy(o.tenant, c->volume.tenant, sizeof(o.tenant));
    memcpy(o.volumes[0].id, c->volume.id, sizeof(c->volume.id));
    warden_order(c->front, &o, -1, done, c);
}

static void change_end(struct change *c, int r, const struct sg_error *e)
{
    if (c->done)
        c->done(c->arg, &c->volume, r, e);
    free(c);
}

static void on_removed(void *arg, const struct warden_answer *w)
{
    struct change *c = arg;
    struct sg_error e = w->e;
    int r = w->r == -ENOENT ? 0 : w->r;

    if (r == 0) {
        store_volume_gone(c->front->store, c->volume.id);
        drop_size(find_size(c->volume.id));
    } else if (c->done) { /* a sandbox has it: it stays, under its name */
        store_volume_made(c->front->store, &c->volume, NULL);
    }
    change_end(c, r, &e);
}

static void on_made(void *arg, const struct warden_answer *w)
{
    struct change *c = arg;
    struct sg_error e = w->e;
    int r = w->r;

    if (r == 0)
        r = store_volume_made(c->front->store, &c->volume, &e);
    else
        store_volume_gone(c->front->store, c->volume.id);
    change_end(c, r, &e);
}

void volume_create(struct front *f, const char *tenant, const char *name, volume_done done,
                   void *arg)
{
    struct change *c = NEW(struct change, .front = f, .done = done, .arg = arg);
    struct sg_error e = {0};
    int r = store_volume_add(f->store, tenant, name, f->settings.tenant_volumes, &c->volume, &e);

    if (r < 0)
        change_end(c, r, &e);
    else
        send_order(c, ORDER_VOLUME_MAKE, on_made);
}

static int check_unused(struct front *f, const struct store_volume *v, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf ids = strbuf_upto(NAMED_MAX * (ID_LEN + 2));
    size_t n = 0;

    SANDBOXES_EACH(b, f) {
        if (volume_is_mounted(b, v->id, false) && n++ < NAMED_MAX)
            strbuf_addf(&ids, "%s%s", ids.len > 0 ? ", " : "", b->id);
    }
    if (n == 0)
        return 0;
    return err_set(e, SG_ERR_GONE, -EBUSY,
                   "Volume \"%s\" is mounted by %zu sandbox%s (%s%s): kill %s first", v->name, n,
                   n > 1 ? "es" : "", ids.buf, n > NAMED_MAX ? ", ..." : "", n > 1 ? "them" : "it");
}

void volume_delete(struct front *f, const struct store_volume *v, volume_done done, void *arg)
{
    struct change *c = NEW(struct change, .front = f, .volume = *v, .done = done, .arg = arg);
    struct sg_error e = {0};
    int r = check_unused(f, v, &e);

    if (r == 0)
        r = store_volume_loose(f->store, v, &e);
    if (r < 0)
        change_end(c, r, &e);
    else
        send_order(c, ORDER_VOLUME_REMOVE, on_removed);
}

static void forget_one(const struct store_volume *v, void *arg)
{
    struct change *c = NEW(struct change, .front = arg, .volume = *v);

    send_order(c, ORDER_VOLUME_REMOVE, on_removed);
}

int volumes_forget_loose(struct front *f, struct sg_error *e)
{
    return store_loose_volumes_each(f->store, forget_one, f, e);
}
