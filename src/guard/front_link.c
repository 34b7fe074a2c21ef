#include "guard/front_link.h"

#include <jansson.h>

#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "lib/uv/ipc_uv.h"
#include "guard/identity.h"
#include "guard/inspect.h"
#include "guard/policy.h"
#include "lib/log/log.h"
#include "lib/vault/vault.h"

#define TURN_MAX   16
#define UNSENT_MAX 64 /* with more answers waiting, nothing more is read */
#define NAMES_MAX  256

_Static_assert(GUARD_PUBLIC_LEN == VAULT_PUBLIC_LEN, "wire.h names the vault's length");

struct front_link {
    struct ipc_uv ipc;
    struct guard *guard;
};

/* ---- answers --------------------------------------------------------------------------------- */

void asker_answer(const struct front_asker *to, int code, const void *payload, size_t len, int fd)
{
    struct front_link *l = to->guard->front;
    struct ask ask = {.what = to->what, .seq = to->seq, .code = code, .len = (uint32_t)len};
    struct ipc_out out = {.head = &ask,
                          .len = sizeof(ask),
                          .more = payload,
                          .more_len = len,
                          .fds = &fd,
                          .n_fds = fd >= 0 ? 1 : 0};

    if (l && l->ipc.link.opened == to->connection)
        ipc_link_send(&l->ipc.link, &out);
    close_p(&fd);
}

/* Sends no news while answers wait: a front that waits for answers must not wait for news too. */
bool front_link_tell(struct guard *g, enum ask_what what, const void *payload, size_t len)
{
    const struct ipc_link *l = g->front ? &g->front->ipc.link : NULL;

    if (!l || l->sock < 0 || l->n_unsent > 0)
        return false;
    asker_answer(&(struct front_asker){g, l->opened, 0, what}, 0, payload, len, -1);
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
        r = err_invalid(e, "a certificate needs 1 to %d names", NAMES_MAX);
    for (i = 0; r == 0 && (v = json_array_get(names, i)); i++) {
        if (!take_name(v, ret->text[i]))
            r = err_invalid(e, "name %zu of the certificate is not a host name", i);
        ret->at[i] = ret->text[i];
    }
    ret->n = i;
    json_decref(body);
    return r;
}

static int print_certificate(struct guard *g, const char *id, const struct names *names,
                             struct strbuf *out, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf pem = strbuf_upto(GUARD_PAYLOAD_MAX / 2);
    char hash[16] = "";
    struct json j = {.out = out};
    int r = g->ca ? 0 : ca_new(g, g->dir, &g->ca, e);

    if (r == 0)
        r = ca_certificate(g->ca, id, names->at, names->n, &pem, hash, e);
    if (r < 0)
        return r;
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
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(GUARD_PAYLOAD_MAX);
    struct sg_error e = {0};
    int r;

    if (!id_valid(id))
        r = err_invalid(&e, "the request for a certificate names no sandbox");
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

static void ask_keys(const struct front_asker *from)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(GUARD_PAYLOAD_MAX);
    struct sg_error e = {0};
    int r = identity_keys(from->guard->key, clock_wall_ms() / 1000, &out, &e);

    if (r < 0)
        asker_refuse(from, r, e.message);
    else
        asker_answer(from, 0, out.buf, out.len, -1);
}

static void dispatch(struct front_link *l, const struct ask *q, const char *text)
{
    struct front_asker from = {l->guard, l->ipc.link.opened, q->seq, q->what};

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
    case ASK_KEYS:
        ask_keys(&from);
        break;
    case ASK_NEWS:
    case ASK_MAX_:
        break;
    }
}

static int on_message(struct ipc_in *in)
{
    struct ask *q = in->m;

    if (q->len != in->len - sizeof(*q))
        return -EPROTO;
    q->id[ID_LEN] = q->tenant[ID_LEN] = '\0';
    dispatch(CONTAINER_OF(in->link, struct front_link, ipc.link), q, (const char *)(q + 1));
    return 0;
}

static void on_gone(struct ipc_link *l UNUSED, int r)
{
    if (r != -EPIPE)
        log_line(LEVEL_WARN, "guard: the front sent a malformed message");
}

static const struct ipc_kind link_kind = {
    .magic = GUARD_MAGIC,
    .min = sizeof(struct ask),
    .max = sizeof(struct ask) + GUARD_PAYLOAD_MAX,
    .read_below = UNSENT_MAX,
    .turn = TURN_MAX,
    .take = on_message,
    .gone = on_gone,
};

void front_link_set(struct guard *g, int fd)
{
    if (!g->front) {
        g->front = NEW(struct front_link, .guard = g);
        ipc_uv_init(&g->front->ipc, g->loop, &link_kind);
    }
    if (fd >= 0)
        ipc_link_open(&g->front->ipc.link, fd);
    else
        ipc_link_close(&g->front->ipc.link);
}
