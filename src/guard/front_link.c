#include "guard/front_link.h"

#include <jansson.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/text/json.h"
#include "lib/uv/handle.h"
#include "guard/inspect.h"
#include "guard/policy.h"
#include "lib/log/log.h"
#include "lib/vault/vault.h"

#define MESSAGE_MAX (sizeof(struct ask) + GUARD_PAYLOAD_MAX)
#define TURN_MAX    16
#define UNSENT_MAX  64 /* with more answers waiting, nothing more is read */
#define NAMES_MAX   256

_Static_assert(GUARD_PUBLIC_LEN == VAULT_PUBLIC_LEN, "wire.h names the vault's length");

/* An answer that waits for room in the socket. */
struct unsent {
    struct unsent *next;
    int fd;
    size_t len;
    struct ask ask; /* the payload follows */
};

struct front_link {
    struct guard *guard;
    int fd;
    uv_poll_t *watch;    /* NULL: there is no front */
    uint64_t connection; /* number of this connection; grows with each front */
    struct unsent *first, **last;
    size_t n;
    uint64_t buf[MESSAGE_MAX / sizeof(uint64_t) + 1]; /* a message, with room for a NUL */
};

/* ---- answers --------------------------------------------------------------------------------- */

static void on_event(uv_poll_t *w, int status, int events);

static void drop_first(struct front_link *l)
{
    struct unsent *u = l->first;

    l->first = u->next;
    if (!l->first)
        l->last = &l->first;
    l->n--;
    close_p(&u->fd);
    free(u);
}

static void send_waiting(struct front_link *l)
{
    /* Any failure but a full socket means that the front is gone; reading will notice that. */
    while (l->first && ipc_send(l->fd, &l->first->ask, l->first->len, &l->first->fd,
                                l->first->fd >= 0 ? 1 : 0) != -EAGAIN)
        drop_first(l);
    watch_for(l->watch, (l->n < UNSENT_MAX ? UV_READABLE : 0) | (l->first ? UV_WRITABLE : 0),
              on_event);
}

void asker_answer(const struct front_asker *to, int code, const void *payload, size_t len, int fd)
{
    struct front_link *l = to->guard->front;
    struct unsent *u;

    if (!l || !l->watch || l->connection != to->connection) {
        close_p(&fd);
        return;
    }
    u = xcalloc(1, sizeof(*u) + len);
    u->fd = fd;
    u->len = sizeof(u->ask) + len;
    u->ask = (struct ask){
        .magic = GUARD_MAGIC, .what = to->what, .seq = to->seq, .code = code, .len = (uint32_t)len};
    if (len > 0)
        memcpy(&u->ask + 1, payload, len);
    *l->last = u;
    l->last = &u->next;
    l->n++;
    send_waiting(l);
}

/* Sends no news while answers wait: a front that waits for answers must not wait for news too. */
bool front_link_tell(struct guard *g, enum ask_what what, const void *payload, size_t len)
{
    struct front_link *l = g->front;
    struct front_asker to = {g, l ? l->connection : 0, 0, what};

    if (!l || !l->watch || l->n > 0)
        return false;
    asker_answer(&to, 0, payload, len, -1);
    return true;
}

void asker_refuse(const struct front_asker *to, int code, const char *message)
{
    asker_answer(to, code, message, strlen(message), -1);
}

/* ---- the certificate of a sandbox ------------------------------------------------------------ */

/* A name, perhaps with "*." before it. */
static bool take_name(const json_t *v, char ret[POLICY_NAME_MAX + 3])
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v), star = 0;

    if (text && len > 2 && text[0] == '*' && text[1] == '.')
        star = 2;
    if (!text || name_normalise(text + star, len - star, ret + star) < 0)
        return false;
    memcpy(ret, "*.", star);
    return true;
}

struct names {
    char text[NAMES_MAX][POLICY_NAME_MAX + 3];
    const char *at[NAMES_MAX];
    size_t n;
};

static int read_names(const char *text, size_t len, struct names *ret, struct sg_error *e)
{
    json_t *body = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *names = json_object_get(body, "names"), *v;
    size_t i;
    int r = 0;

    if (!json_is_array(names) || json_array_size(names) == 0 || json_array_size(names) > NAMES_MAX)
        r = err_set(e, SG_ERR_INVALID, -EINVAL, "a certificate needs 1 to %d names", NAMES_MAX);
    for (i = 0; r == 0 && (v = json_array_get(names, i)); i++) {
        if (!take_name(v, ret->text[i]))
            r = err_set(e, SG_ERR_INVALID, -EINVAL,
                        "name %zu of the certificate is not a host name", i);
        ret->at[i] = ret->text[i];
    }
    ret->n = i;
    json_decref(body);
    return r;
}

static int print_certificate(struct guard *g, const char *id, const struct names *names,
                             struct strbuf *out, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf pem = {0};
    char hash[16] = "";
    struct json j;
    int r = g->ca ? 0 : ca_new(g, g->dir, &g->ca, e);

    strbuf_init(&pem, GUARD_PAYLOAD_MAX / 2);
    if (r == 0)
        r = ca_certificate(g->ca, id, names->at, names->n, &pem, hash, e);
    if (r < 0)
        return r;
    jw_init(&j, out);
    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "pem"), pem.buf, pem.len);
    jw_string(jw_key(&j, "hash"), hash);
    jw_object_end(&j);
    if (pem.truncated || out->truncated)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "the certificate has too many names");
    return 0;
}

static void ask_ca(const struct front_asker *from, const char *id, const char *text, size_t len)
{
    AUTO(free_p) struct names *names = xcalloc(1, sizeof(*names));
    AUTO(strbuf_done) struct strbuf out = {0};
    struct sg_error e = {0};
    int r;

    strbuf_init(&out, GUARD_PAYLOAD_MAX);
    if (!id_valid(id))
        r = err_set(&e, SG_ERR_INVALID, -EINVAL, "the request for a certificate names no sandbox");
    else
        r = read_names(text, len, names, &e);
    if (r == 0)
        r = print_certificate(from->guard, id, names, &out, &e);
    if (r < 0)
        asker_refuse(from, r, e.message);
    else
        asker_answer(from, 0, out.buf, out.len, -1);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void ask_public(const struct front_asker *from)
{
    uint8_t key[VAULT_PUBLIC_LEN];

    vault_key_public(from->guard->key, key);
    asker_answer(from, 0, key, sizeof(key), -1);
}

static void dispatch(struct front_link *l, const struct ask *q, const char *text)
{
    struct front_asker from = {l->guard, l->connection, q->seq, q->what};

    switch ((enum ask_what)q->what) {
    case ASK_PUBLIC:
        ask_public(&from);
        break;
    case ASK_CA:
        ask_ca(&from, q->id, text, q->len);
        break;
    case ASK_AUDIT:
        front_ask_audit(&from, q->tenant, text, q->len);
        break;
    case ASK_RECORD:
        front_ask_record(l->guard, q->tenant, q->id, text, q->len);
        break;
    case ASK_FIGURES:
        front_ask_figures(&from);
        break;
    case ASK_NEWS:
    case ASK_MAX_:
        break;
    }
}

static void drop_front(struct front_link *l)
{
    if (!l->watch)
        return;
    watch_drop(&l->watch);
    close(l->fd);
    while (l->first)
        drop_first(l);
}

/* Reads and answers one message. False: there is none, or the front is gone. */
static bool take_message(struct front_link *l)
{
    struct ask *q = (struct ask *)l->buf;
    ssize_t got = ipc_take(l->fd, GUARD_MAGIC, q, sizeof(*q), MESSAGE_MAX, NULL);

    if (got == -EAGAIN)
        return false;
    if (got < 0 || q->len != (size_t)got - sizeof(*q)) {
        if (got != -EPIPE)
            log_line(LEVEL_WARN, "guard: the front sent a malformed message");
        drop_front(l);
        return false;
    }
    q->id[ID_LEN] = q->tenant[ID_LEN] = '\0';
    ((char *)(q + 1))[q->len] = '\0';
    dispatch(l, q, (const char *)(q + 1));
    return true;
}

static void on_event(uv_poll_t *w, int status, int events)
{
    struct front_link *l = w->data;

    (void)status;
    if (events & UV_WRITABLE)
        send_waiting(l);
    /* Bounded, so that flows get their turn as well. */
    for (int i = 0; i < TURN_MAX && l->watch == w && l->n < UNSENT_MAX && take_message(l); i++)
        ;
}

void front_link_set(struct guard *g, int fd)
{
    struct front_link *l = g->front;

    if (!l) {
        l = xcalloc(1, sizeof(*l));
        l->guard = g;
        l->last = &l->first;
        g->front = l;
    }
    drop_front(l);
    if (fd < 0)
        return;
    fd_set_nonblock(fd, true);
    l->connection++;
    l->fd = fd;
    l->watch = watch_new(g->loop, fd, l);
    watch_for(l->watch, UV_READABLE, on_event);
}
