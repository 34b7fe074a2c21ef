#include "front/builds/fetch.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "front/builds/steps.h"
#include "front/builds/upload.h"
#include "front/core/defaults.h"
#include "front/core/lifecycle.h"
#include "front/core/warden.h"
#include "front/store/worlds.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/uv/handle.h"
#include "lib/web/hosts.h"
#include "wire/world_builder.h"

#define MIB       (1024.0 * 1024.0)
#define SHOW_NS   2000000000ull /* between two lines about one layer */
#define IMAGE_MAX 1024
#define LOOK_MS   2000
#define AGAIN_NS  1000000000ull

struct fetch {
    struct list link; /* in `running` */
    struct list users;
    struct front *front;
    char tenant[ID_LEN + 1], id[ID_LEN + 1]; /* of the world */
    char image[IMAGE_MAX + 1];
    char key[STORE_KEY_HEX + 1];
    struct store_image known; /* .layer "": none */
    int ask;                  /* a memfd: what the puller is asked; -1: it was sent */
    int archive;              /* that was uploaded; -1: the image is a registry's, or it was sent */
    int sock;                 /* to the world builder; -1: there is none yet */
    uv_poll_t *watch;
    uv_timer_t *again; /* it waits to ask for a world builder again; NULL: it does not */
    uint32_t shown_layer, shown_what;
    uint64_t shown_ns;
    bool over; /* nobody waits: its world builder is ending */
};

static struct list running;

/* ---- users ----------------------------------------------------------------------------------- */

PRINTF(3, 4)
static void log_all(struct fetch *x, enum build_log_level level, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    LIST_EACH(struct fetch_user, u, &x->users, link) {
        build_log_line(u->log, level, "[base] %s", text);
    }
}

static void fetch_free(struct fetch *x)
{
    list_remove(&x->link);
    watch_drop(&x->watch);
    alarm_drop(&x->again);
    close_p(&x->sock);
    close_p(&x->ask);
    close_p(&x->archive);
    free(x->known.config);
    free(x);
}

static void tell_user(struct fetch_user *u, int r, const struct fetched *f,
                      const struct sg_error *e)
{
    list_remove(&u->link);
    u->fetch = NULL;
    u->done(u->arg, r, f, e);
}

/* The fetch is gone afterwards. */
static void end(struct fetch *x, int r, const struct fetched *f, const struct sg_error *e)
{
    x->over = true; /* nobody joins any more */
    while (!list_empty(&x->users))
        tell_user(CONTAINER_OF(x->users.next, struct fetch_user, link), r, f, e);
    fetch_free(x);
}

static void end_well(struct fetch *x, const char *layer, const char *config)
{
    struct fetched f = {.defaults = defaults_of_image(config), .steps = steps_of_image(config)};

    memcpy(f.layer, layer, sizeof(f.layer));
    end(x, 0, &f, NULL);
    json_decref(f.defaults);
    json_decref(f.steps);
}

static void fail(struct fetch *x, int code, const char *why);

/* The cache may have dropped it meanwhile, as one that was not used for long. Its files are there then
 * (fetches_need). */
static void end_with_known(struct fetch *x)
{
    AUTO(free_p) char *config = steal_ptr(&x->known.config);
    struct store *s = x->front->store;

    if (store_build_layer_get(s, x->tenant, x->key, x->known.layer, NULL) == 0 ||
        store_build_layer_bytes(s, x->known.layer) > 0) {
        end_well(x, x->known.layer, config);
        return;
    }
    x->known.layer[0] = '\0';
    fail(x, -ESTALE, "it was removed while its registry was asked: build again");
}

/* Without an answer of the registry, or a world builder that would ask it, what was fetched before is better than nothing. */
static void fail(struct fetch *x, int code, const char *why)
{
    bool silent = code == -ENETUNREACH || code == -ETIMEDOUT || code == -EBUSY || code == -EAGAIN;
    time_t t = (time_t)(x->known.fetched_ms / 1000);
    struct sg_error e;
    char when[32];
    struct tm tm;

    if (silent && x->known.layer[0]) {
        strftime(when, sizeof(when), "%F %R UTC", gmtime_r(&t, &tm));
        log_all(x, BUILD_WARN, "%.255s: going on with what was fetched on %s", why, when);
        end_with_known(x);
        return;
    }
    err_set(&e, SG_ERR_INVALID, code < 0 ? code : -EIO, "the image '%.200s' cannot be used: %.255s",
            x->image, why);
    end(x, e.code, NULL, &e);
}

/* ---- what the world builder says --------------------------------------------------------------------- */

static bool is_worth_a_line(struct fetch *x, const struct builder_told *t)
{
    uint64_t now = clock_ns();

    if (t->what == x->shown_what && t->layer == x->shown_layer && t->bytes < t->total &&
        now - x->shown_ns < SHOW_NS)
        return false;
    x->shown_what = t->what;
    x->shown_layer = t->layer;
    x->shown_ns = now;
    return true;
}

static void show(struct fetch *x, const struct builder_told *t)
{
    if (!is_worth_a_line(x, t))
        return;
    if (t->what == BUILDER_FETCHING)
        log_all(x, BUILD_INFO, "fetching layer %u of %u: %.1f of %.1f MiB", t->layer, t->of,
                (double)t->bytes / MIB, (double)t->total / MIB);
    else if (t->what == BUILDER_UNPACKING)
        log_all(x, BUILD_INFO, "unpacking layer %u of %u", t->layer, t->of);
    else
        log_all(x, BUILD_WARN, "waiting: %.255s", t->message);
}

static bool is_digest(const char *text)
{
    return strnlen(text, BUILDER_DIGEST) == BUILDER_DIGEST - 1 &&
           strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, "0123456789abcdef") == BUILDER_DIGEST - 8;
}

static char *text_of(const char *p, size_t len)
{
    char *text = xcalloc(1, len + 1);

    memcpy(text, p, len);
    return text;
}

static void take_made(struct fetch *x, const struct builder_told *t)
{
    uint32_t len = t->config_len <= BUILDER_CONFIG_MAX ? t->config_len : 0;
    AUTO(free_p) char *config = text_of(t->config, len);
    struct store_image image = {.config = config, .fetched_ms = clock_wall_ms()};
    struct sg_error e = {.message = "the world builder sent no digest"};
    int r = is_digest(t->digest) ? 0 : -EPROTO;

    memcpy(image.layer, x->id, sizeof(image.layer));
    memcpy(image.digest, t->digest, sizeof(image.digest));
    snprintf(image.name, sizeof(image.name), "%s", x->image);
    if (r == 0)
        r = store_image_add(x->front->store, x->tenant, x->key, &image, t->bytes, &e);
    if (r < 0) {
        sandbox_forget_snapshot(x->front, x->id);
        fail(x, r, e.message);
        return;
    }
    log_all(x, BUILD_INFO, "fetched %s: %u layers, %.1f MiB on disk", t->digest, t->of,
            (double)t->bytes / MIB);
    end_well(x, x->id, config);
}

static void take(struct fetch *x, struct builder_told *t)
{
    t->message[sizeof(t->message) - 1] = '\0';
    if (t->what == BUILDER_DONE) {
        take_made(x, t);
    } else if (t->what == BUILDER_SAME && x->known.layer[0]) {
        store_snapshot_gone(x->front->store, x->id);
        end_with_known(x);
    } else if (t->what == BUILDER_FAILED) {
        store_snapshot_gone(x->front->store, x->id);
        fail(x, t->code, t->message);
    } else {
        show(x, t);
    }
}

/* Whatever the world builder had made, it has gone, or finished, before we are told. */
static void on_mason_gone(struct fetch *x)
{
    sandbox_forget_snapshot(x->front, x->id);
    if (x->over)
        fetch_free(x);
    else
        fail(x, -EIO, "the process that fetches it was killed: build again");
}

static void on_readable(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct fetch *x = w->data;
    struct builder_told *t = xcalloc(1, sizeof(*t));
    ssize_t n = ipc_take(x->sock, BUILDER_MAGIC, t, sizeof(*t), sizeof(*t), NULL);

    if (n == (ssize_t)sizeof(*t) && !x->over)
        take(x, t);
    else if (n < 0 && n != -EAGAIN && n != -EINTR)
        on_mason_gone(x);
    free(t);
}

/* ---- begin ----------------------------------------------------------------------------------- */

static uint64_t bytes_max(const struct front *f)
{
    uint64_t image = f->settings.build_image_max, all = f->settings.tenant_build_size;

    return image < all ? image : all;
}

static void ask_for_builder(struct fetch *x);

static void on_again(uv_timer_t *t)
{
    struct fetch *x = t->data;

    alarm_drop(&x->again);
    ask_for_builder(x);
}

/* Others have all world builders. What was fetched before would do. */
static void wait_for_builder(struct fetch *x)
{
    if (x->shown_ns == 0)
        log_all(x, BUILD_INFO, "waiting until fewer images are fetched");
    x->shown_ns = clock_ns();
    x->again = alarm_new(x->front->loop, x);
    alarm_set(x->again, AGAIN_NS, on_again);
}

static void on_builder(void *arg, const struct warden_answer *a)
{
    struct fetch *x = arg;
    struct builder_request q = {.magic = BUILDER_MAGIC, .bytes_max = bytes_max(x->front)};
    struct sg_error e = a->e;
    int r = a->r;

    if (r == 0 && *a->fd < 0)
        r = err_set(&e, SG_ERR_INTERNAL, -EPROTO, "no process for it came");
    if (r == -EAGAIN && !x->over && !x->known.layer[0]) {
        wait_for_builder(x);
        return;
    }
    if (r < 0 || x->over) { /* nobody has made anything */
        store_snapshot_gone(x->front->store, x->id);
        if (x->over)
            fetch_free(x);
        else
            fail(x, r, e.message);
        return;
    }
    x->sock = steal_fd(a->fd);
    fd_set_nonblock(x->sock, true);
    memcpy(q.id, x->id, sizeof(q.id));
    memcpy(q.known, x->known.digest, sizeof(q.known));
    const int fds[] = {x->ask, x->archive};
    r = ipc_send(x->sock, &q, sizeof(q), fds, x->archive < 0 ? 1 : 2);
    close_p(&x->ask);
    close_p(&x->archive);
    x->watch = watch_new(x->front->loop, x->sock, x);
    watch_for(x->watch, UV_READABLE, on_readable);
    if (r < 0)
        shutdown(x->sock, SHUT_WR);
}

static void ask_for_builder(struct fetch *x)
{
    struct order o = {.op = ORDER_WORLD_BUILDER};

    warden_order(x->front, &o, -1, on_builder, x);
}

/* The registries of the setting: "*" is any on the internet; one with a scheme may be inside. */
static void add_registries(const char *setting, json_t *request)
{
    json_t *inside = json_object(), *only = json_array();
    bool any = false;

    for (struct listed_host h; hosts_next(&setting, &h);) {
        any |= host_is_any(&h);
        if (h.scheme_len > 0)
            json_object_setn_new(inside, h.host, h.host_len, json_stringn(h.scheme, h.scheme_len));
        json_array_append_new(only, json_stringn(h.host, h.host_len));
    }
    json_object_set_new(request, "registries", inside);
    if (!any)
        json_object_set(request, "only", only);
    json_decref(only);
}

static int write_ask(struct fetch *x, const json_t *credentials, struct sg_error *e)
{
    const struct settings *s = &x->front->settings;
    json_t *ask = json_pack(
        "{s:s, s:b, s:{s:I, s:I, s:I}}", "from", x->archive < 0 ? "registry" : "archive", "sync", 0,
        "limits", "seconds", (json_int_t)(s->build_timeout_ms / 1000), "totalBytes",
        (json_int_t)s->build_image_max, "layerBytes", (json_int_t)s->build_image_max);
    AUTO(close_p) int fd = memfd_create("image", MFD_CLOEXEC);
    char *text;
    int r;

    if (x->archive < 0)
        json_object_set_new(ask, "image", json_string(x->image));
    if (credentials)
        json_object_set_new(ask, "credentials", json_deep_copy(credentials));
    if (x->known.digest[0])
        json_object_set_new(ask, "known", json_string(x->known.digest));
    add_registries(s->build_registries, ask);
    text = json_dumps(ask, JSON_COMPACT);
    json_decref(ask);
    if (!text)
        return err_invalid(e, "its name or the credentials are no text");
    r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
    explicit_bzero(text, strlen(text));
    free(text);
    if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_code(e, r < 0 ? r : -errno, "ask for the image");
    x->ask = steal_fd(&fd);
    return 0;
}

static void start(struct fetch *x, const json_t *credentials)
{
    struct sg_error e = {0};
    int r = write_ask(x, credentials, &e);

    id_random(x->id);
    if (r == 0)
        r = store_snapshot_loose(x->front->store, x->id, &e);
    if (r < 0) {
        fail(x, r, e.message);
        return;
    }
    ask_for_builder(x);
}

static struct fetch *find(const char *tenant, const char *key)
{
    return LIST_FIND(struct fetch, x, &running, link,
                     !x->over && strcmp(x->tenant, tenant) == 0 && strcmp(x->key, key) == 0);
}

static void add_user(struct fetch *x, struct fetch_user *u)
{
    u->fetch = x;
    list_append(&x->users, &u->link);
}

bool fetch_is_upload(const char *image)
{
    size_t len = strlen(FETCH_UPLOAD);

    return strncmp(image, FETCH_UPLOAD, len) == 0 && upload_hash_valid(image + len);
}

/* An archive is named by what it is, so that the same one is unpacked once. */
static int find_upload(struct front *f, const char *tenant, const char *image, int *ret_fd,
                       char ret_name[IMAGE_MAX + 1], struct sg_error *e)
{
    struct store_upload up;
    int r = store_upload_get(f->store, tenant, image + strlen(FETCH_UPLOAD), &up, NULL);
    int fd = r < 0 ? r : upload_open(f->store, &up);

    if (fd < 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "the image '%.80s' is not there, or no more: upload it again", image);
    snprintf(ret_name, IMAGE_MAX + 1, FETCH_UPLOAD "%s", up.digest);
    *ret_fd = fd;
    return 0;
}

void fetch_join(struct front *f, const char *tenant, const char *image, const json_t *credentials,
                struct fetch_user *u)
{
    char key[STORE_KEY_HEX + 1], name[IMAGE_MAX + 1];
    AUTO(close_p) int archive = -1;
    struct sg_error e;
    struct fetch *x;

    snprintf(name, sizeof(name), "%s", image);
    if (fetch_is_upload(image) && find_upload(f, tenant, image, &archive, name, &e) < 0) {
        u->done(u->arg, -ENOENT, NULL, &e);
        return;
    }
    step_image_key(name, credentials, key);
    x = find(tenant, key);
    if (x) {
        build_log_line(u->log, BUILD_INFO, "[base] waiting for a build that fetches it already");
        add_user(x, u);
        return;
    }
    x = NEW(struct fetch, .front = f, .ask = -1, .archive = steal_fd(&archive), .sock = -1);
    snprintf(x->tenant, sizeof(x->tenant), "%s", tenant);
    memcpy(x->image, name, sizeof(x->image));
    memcpy(x->key, key, sizeof(x->key));
    list_append(&running, &x->link);
    add_user(x, u);
    bool known = store_image_get(f->store, tenant, key, &x->known, NULL) == 0;
    if (known && (x->archive >= 0 || strchr(image, '@')))
        end_with_known(x);
    else
        start(x, credentials);
}

void fetch_leave(struct fetch_user *u)
{
    struct fetch *x = steal_ptr(&u->fetch);

    if (!x)
        return;
    list_remove(&u->link);
    if (!list_empty(&x->users))
        return;
    x->over = true;
    if (x->sock >= 0) {
        shutdown(x->sock, SHUT_WR); /* the world builder removes what it has begun, and ends */
    } else if (x->again) {
        store_snapshot_gone(x->front->store, x->id);
        fetch_free(x);
    }
}

bool fetches_need(const char *layer)
{
    return LIST_FIND(const struct fetch, x, &running, link,
                     !x->over && strcmp(x->known.layer, layer) == 0);
}

static void on_tidy(void *arg UNUSED, const struct warden_answer *a)
{
    struct builder_request q = {.magic = BUILDER_MAGIC};

    if (a->r == 0)
        ipc_send(*a->fd, &q, sizeof(q), NULL, 0);
}

static void forget_dropped(const char *id, void *arg)
{
    sandbox_forget_snapshot(arg, id);
}

static void on_look(uv_timer_t *t)
{
    struct front *f = t->data;

    store_dropped_each(f->store, forget_dropped, f, NULL);
}

void fetches_tidy(struct front *f)
{
    static uv_timer_t look;
    struct order o = {.op = ORDER_WORLD_BUILDER};

    timer_every(f->loop, &look, LOOK_MS, on_look, f);
    warden_order(f, &o, -1, on_tidy, NULL);
}
