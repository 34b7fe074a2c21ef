#include "serve/orders.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "order/log.h"
#include "sandbox/sandbox.h"
#include "serve/guest.h"
#include "serve/layer.h"
#include "serve/server.h"

/* ---- what each order must carry -------------------------------------------------------------- */

/* What a field that is zero stands for, and the bounds of those that are not. */
static int complete_limits(const struct server *s, struct sg_limits *l, struct sg_error *e)
{
    if (l->memory_bytes == 0)
        l->memory_bytes = s->settings.sandbox_memory;
    if (l->disk_bytes == 0)
        l->disk_bytes = s->settings.sandbox_disk;
    if (l->cpus_milli == 0)
        l->cpus_milli = s->settings.sandbox_cpus_milli;
    if (l->pids == 0)
        l->pids = s->settings.sandbox_pids;
    return limits_complete(l, l, e);
}

/* The note is kept and never read: only its size matters. Only files in memory have seals; of any
 * other, even asking for the size might wait for somebody. */
static int check_note(int fd, struct sg_error *e)
{
    struct stat st;

    if (fd < 0 || fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0)
        return err_set(e, SG_ERR_INVALID, -EBADF, "the order came without a note");
    if (st.st_size > ORDER_NOTE_MAX)
        return err_set(e, SG_ERR_INVALID, -EFBIG, "the sandbox's description is over %u bytes",
                       ORDER_NOTE_MAX);
    return 0;
}

static int check_layer(struct server *s, const char *name, struct layer **ret, struct sg_error *e)
{
    struct layer *l = NULL;

    if (name[0] && !id_valid(name))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "a snapshot's name is 20 letters and digits");
    if (name[0]) {
        l = layer_find(s, name);
        if (!l)
            return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no snapshot '%s'", name);
    }
    *ret = l;
    return 0;
}

static int order_create(struct server *s, const struct ticket *t, struct order *o, int *fd,
                        struct sg_error *e)
{
    struct layer *layer = NULL;
    int r = check_note(*fd, e);

    if (r == 0 && !id_valid(o->tenant))
        r = err_set(e, SG_ERR_INVALID, -EINVAL, "a tenant's name is 20 letters and digits");
    if (r == 0)
        r = complete_limits(s, &o->limits, e);
    if (r == 0)
        r = check_layer(s, o->layer, &layer, e);
    if (r == 0 && guest_find(s, o->id))
        r = err_set(e, SG_ERR_INVALID, -EEXIST, "there is a sandbox '%s' already", o->id);
    if (r == 0)
        guest_create(s, t, o, layer, steal_fd(fd));
    return r;
}

static int order_guest(struct server *s, const struct ticket *t, struct order *o, int *fd,
                       struct sg_error *e)
{
    struct guest *g = guest_find(s, o->id);
    int r = 0;

    if (!g)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no sandbox '%s'", o->id);
    if (o->op == ORDER_NOTE)
        r = check_note(*fd, e);
    if (o->op == ORDER_SNAPSHOT && !id_valid(o->layer))
        r = err_set(e, SG_ERR_INVALID, -EINVAL, "a snapshot's name is 20 letters and digits");
    if (r < 0)
        return r;
    if (o->op == ORDER_NOTE)
        guest_note(g, t, steal_fd(fd));
    else if (o->op == ORDER_DEADLINE)
        guest_deadline(g, t, o->deadline_ns, (enum order_expiry)o->on_expiry);
    else if (o->op == ORDER_KILL)
        guest_kill(g, t);
    else if (o->op == ORDER_STATS)
        guest_stats(g, t);
    else
        guest_order(g, t, o);
    return 0;
}

static int order_forget(struct server *s, const struct ticket *t, struct order *o,
                        struct sg_error *e)
{
    struct layer *l = NULL;
    int r = o->layer[0] ? check_layer(s, o->layer, &l, e)
                        : err_set(e, SG_ERR_INVALID, -EINVAL, "no snapshot was named");

    if (r < 0)
        return r;
    layer_forget(s, l);
    front_answer(s, t, NULL, -1);
    return 0;
}

int orders_take(struct server *s, struct order *o, int fd)
{
    AUTO(close_p) int owned = -1;
    struct ticket t = {.seq = o->seq, .turn = s->front.turn};
    struct sg_error e = {0};
    int r;

    o->id[ID_LEN] = o->tenant[ORDER_TENANT_LEN] = o->layer[ID_LEN] = '\0';
    if (o->magic != ORDER_MAGIC || o->op == 0 || o->op >= ORDER_MAX_ ||
        o->on_expiry >= EXPIRY_MAX_ ||
        o->flags & ~(ORDER_FILES_ONLY | ORDER_DURABLE | ORDER_KERNEL))
        return -EPROTO;
    owned = fd;
    if (o->op == ORDER_FORGET)
        r = order_forget(s, &t, o, &e);
    else if (!id_valid(o->id))
        r = err_set(&e, SG_ERR_INVALID, -EINVAL, "a sandbox's id is 20 letters and digits");
    else if (o->op == ORDER_CREATE)
        r = order_create(s, &t, o, &owned, &e);
    else
        r = order_guest(s, &t, o, &owned, &e);
    if (r < 0)
        front_answer_error(s, &t, r, &e);
    return 0;
}

/* ---- what a new front is told ---------------------------------------------------------------- */

/* A fresh one each time: the place to read from is shared by all who hold it. */
static int text_memfd(const char *text, size_t len, struct sg_error *e)
{
    AUTO(close_p) int fd = memfd_create("sandglass", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r;

    if (fd < 0)
        return err_errno(e, "make a memfd");
    r = fd_write_all(fd, text, len);
    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "write a memfd: %s", strerror(-r));
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_errno(e, "seal a memfd");
    return steal_fd(&fd);
}

static void tell_tls(struct server *s)
{
    struct order_answer a = {.tell = TELL_TLS};
    AUTO(close_p) int cert = -1, key = -1;
    struct sg_error e;

    if (!s->tls.cert)
        return;
    cert = text_memfd(s->tls.cert, s->tls.cert_len, &e);
    key = text_memfd(s->tls.key, s->tls.key_len, &e);
    if (cert >= 0 && key >= 0)
        front_tell(s, &a, (int[]){cert, key}, 2);
    else
        log_line(LEVEL_ERROR, "%s", e.message);
}

void orders_tell_settings(struct server *s)
{
    struct order_answer a = {.tell = TELL_SETTINGS};
    AUTO(strbuf_done) struct strbuf text = {0};
    AUTO(close_p) int fd = -1;
    struct sg_error e;

    strbuf_init(&text, SETTINGS_TEXT_MAX);
    settings_print(&s->settings, &text);
    fd = text_memfd(text.buf, text.len, &e);
    if (fd >= 0)
        front_tell(s, &a, &fd, 1);
    else
        log_line(LEVEL_ERROR, "%s", e.message);
    tell_tls(s);
}

void orders_greet(struct server *s)
{
    struct order_answer ready = {.tell = TELL_READY};

    for (size_t i = 0; i < s->n_listeners; i++) {
        struct order_answer a = {.tell = TELL_LISTENER, .flags = s->tls.cert ? TELL_TLS_HERE : 0};
        front_tell(s, &a, &s->listeners[i], 1);
    }
    orders_tell_settings(s);
    guests_introduce(s);
    front_tell(s, &ready, NULL, 0);
}
