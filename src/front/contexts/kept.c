#include "front/contexts/kept.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "front/core/egress.h"
#include "wire/warden.h"
#include "front/store/contexts.h"
#include "lib/vault/vault.h"

/* The text is sealed in pieces, because an opened piece is in locked memory, which may be scarce.
 * Each piece is sealed as number i of n, so that none can be left out or moved. */
#define PIECE   (16u * 1024)
#define PURPOSE 128

static bool says_envs(const struct sandbox_spec *s)
{
    return json_object_size(s->envs) > 0;
}

static void purpose_of(char ret[PURPOSE], const char *tenant, const char *context, size_t i,
                       size_t n)
{
    snprintf(ret, PURPOSE, "context %s/%s %zu/%zu", tenant, context, i + 1, n);
}

static char *text_of(const struct sandbox_spec *s)
{
    json_t *all = json_pack("{s:O?, s:O?, s:O?, s:O?, s:i, s:b}", "metadata", s->metadata, "envs",
                            s->envs, "network", s->network, "tokens", s->tokens, "allowInternet",
                            s->allow_internet, "private", s->traffic_token[0] != '\0');
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;

    json_decref(all);
    return text;
}

static int seal_pieces(const struct vault_key *k, const char *tenant, const char *context,
                       const char *text, struct strbuf *out, struct sg_error *e)
{
    size_t len = strlen(text), n = (len + PIECE - 1) / PIECE;
    uint8_t public_key[VAULT_PUBLIC_LEN];
    char purpose[PURPOSE];
    int r = 0;

    vault_key_public(k, public_key);
    for (size_t i = 0; r == 0 && i < n; i++) {
        size_t at = i * PIECE;

        if (i > 0)
            strbuf_addch(out, '.');
        purpose_of(purpose, tenant, context, i, n);
        r = vault_seal(public_key, purpose, text + at, len - at < PIECE ? len - at : PIECE, out, e);
    }
    return out->truncated ? err_set(e, SG_ERR_INVALID, -E2BIG,
                                    "metadata, envs and network are larger than %u bytes together",
                                    ORDER_NOTE_MAX)
                          : r;
}

int kept_seal(const struct vault_key *k, const char *tenant, const char *context,
              const struct sandbox_spec *s, char **ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(CTX_KEPT_MAX);

    *ret = NULL;
    if (!s->metadata && !says_envs(s) && !s->network_said)
        return 0;
    char *text = text_of(s);
    int r = text ? seal_pieces(k, tenant, context, text, &out, e)
                 : err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory");
    if (text)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
    if (r == 0)
        *ret = strbuf_detach(&out, NULL);
    return r;
}

int kept_seal_running(const struct vault_key *k, const char *context, const struct sandbox_spec *s,
                      char **ret, struct sg_error *e)
{
    struct sandbox_spec asked = *s;

    json_incref(asked.envs);
    json_incref(asked.secrets);
    egress_forget_placeholders(&asked); /* the next sandbox gets its own placeholders */
    asked.network_said = true;
    int r = kept_seal(k, s->tenant, context, &asked, ret, e);
    json_decref(asked.envs);
    return r;
}

static int open_pieces(const struct vault_key *k, const char *tenant, const char *context,
                       char *kept, struct strbuf *out, struct sg_error *e)
{
    char purpose[PURPOSE], *rest = NULL;
    size_t n = 1, i = 0;
    int r = 0;

    for (const char *p = kept; *p; p++)
        n += *p == '.';
    for (char *p = strtok_r(kept, ".", &rest); r == 0 && p; p = strtok_r(NULL, ".", &rest), i++) {
        struct secret piece = {0};

        purpose_of(purpose, tenant, context, i, n);
        r = vault_open(k, purpose, p, &piece, e);
        if (r == 0)
            strbuf_add(out, piece.bytes, piece.len);
        secret_done(&piece);
    }
    return r == 0 && i != n ? -EBADMSG : r;
}

static void take(const json_t *all, const char *key, json_t **to)
{
    json_t *v = json_object_get(all, key);

    json_decref(*to);
    *to = json_is_object(v) ? json_deep_copy(v) : NULL;
}

int kept_apply(const struct vault_key *k, const char *tenant, const char *context, const char *kept,
               struct sandbox_spec *s, bool *ret_said, struct sg_error *e)
{
    AUTO(free_p) char *copy = xstrdup(kept);
    AUTO(strbuf_wipe) struct strbuf text = strbuf_upto(ORDER_NOTE_MAX);

    *ret_said = s->metadata || says_envs(s) || s->network_said;
    if (s->metadata && says_envs(s) && s->network_said)
        return 0;
    strbuf_reserve(&text);
    int r = open_pieces(k, tenant, context, copy, &text, e);
    json_t *all = r == 0 && !text.truncated ? json_loadb(text.buf, text.len, 0, NULL) : NULL;
    if (!all)
        return err_set(e, SG_ERR_INVALID, -EBADMSG, "another server sealed them");
    if (!s->metadata)
        take(all, "metadata", &s->metadata);
    if (!says_envs(s))
        take(all, "envs", &s->envs);
    if (!s->envs)
        s->envs = json_object();
    if (!s->network_said) {
        take(all, "network", &s->network);
        if (!s->tokens)
            take(all, "tokens", &s->tokens);
        s->allow_internet = (int)jr_int(all, "allowInternet");
        if (jr_flag(all, "private")) /* a new token, as for every sandbox */
            token_random(s->traffic_token);
    }
    json_decref(all);
    return 0;
}
