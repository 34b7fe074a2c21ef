/* Sealed texts from a database or a document that somebody else wrote: the first byte says how the
 * input is used. Nothing but what was sealed opens. */
#include <assert.h>

#include "lib/vault/vault.h"

static struct vault_key *key;

static void open_text(const char *text)
{
    struct secret s = {0};
    struct sg_error e = {0};
    int r = vault_open(key, "tenant/name", text, &s, &e);

    /* Without the key's public half nobody can make one that opens. */
    assert(r == -EBADMSG && !s.bytes && e.message[0]);
}

/* Sealed here, then changed at one place. */
static void open_changed(const uint8_t *data, size_t len)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    uint8_t public_key[VAULT_PUBLIC_LEN];
    struct secret s = {0};
    size_t value = len > 2 ? len - 2 : 0;

    strbuf_init(&text, VAULT_SEALED_MAX);
    vault_key_public(key, public_key);
    assert(vault_seal(public_key, "tenant/name", data + len - value, value, &text, NULL) == 0);
    assert(vault_open(key, "tenant/name", text.buf, &s, NULL) == 0);
    assert(s.len == value && (value == 0 || memcmp(s.bytes, data + 2, value) == 0));
    secret_done(&s);
    if (len < 2)
        return;
    /* The last two digits have bits that do not count. */
    char *c = &text.buf[data[0] % (text.len - 3)];
    if (*c == (char)data[1] || (*c == '+' && data[1] == '-') || (*c == '/' && data[1] == '_'))
        return;
    *c = (char)data[1];
    open_text(text.buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!key)
        key = vault_key_new();
    if (len == 0 || len > VAULT_SECRET_MAX)
        return 0;
    if (data[0] % 2 == 0) {
        open_changed(data + 1, len - 1);
        return 0;
    }
    AUTO(free_p) char *text = xcalloc(1, len);
    memcpy(text, data + 1, len - 1);
    open_text(text);
    return 0;
}
