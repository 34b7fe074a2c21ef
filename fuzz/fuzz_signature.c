/* A signed request as it comes: fields separated by NUL bytes are path, user, expiry, signature and
 * Range header. A signature must match its own request only. */
#include <assert.h>

#include "front/envd/files_text.h"
#include "front/envd/signature.h"

#define TOKEN "0123456789abcdef0123456789abcdef01234567"

static void check_range(const char *header)
{
    struct range r = range_parse(header);
    uint64_t first, len;

    for (uint64_t size = 1; size < 1000; size = size * 7 + 1)
        if (r.kind != RANGE_NONE && range_resolve(&r, size, &first, &len))
            assert(len > 0 && first < size && len <= size - first);
}

static void check_name(const char *path)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 2048);
    disposition_write(&s, path);
    assert(!s.truncated);
    for (size_t i = 0; i < s.len; i++)
        assert(s.buf[i] >= 0x20 && s.buf[i] < 0x7f);
}

static void check_signature(const struct signed_request *r, const char *signature)
{
    AUTO(signature_check_free_p) struct signature_check *c = signature_check_new(r);
    char right[SIGNATURE_LEN + 1];

    assert(!c == (r->expiry && !signature_expiry_valid(r->expiry)));
    if (!c)
        return;
    signature_make(c, TOKEN, right);
    assert(signature_shaped(right) && signature_matches(c, TOKEN, right));
    assert(signature_matches(c, TOKEN, signature) == (strcmp(signature, right) == 0));
    right[SIGNATURE_LEN / 2] ^= 1;
    assert(!signature_matches(c, TOKEN, right));
    if (r->expiry)
        signature_expired(r->expiry, 1700000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO(free_p) char *text = calloc(1, len + 5); /* each field ends, even if it is not there */
    const char *fields[5], *p = text;

    if (!text)
        return 0;
    if (len > 0)
        memcpy(text, data, len);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        fields[i] = p;
        p += strlen(p) + (p + strlen(p) < text + len + 4);
    }
    struct signed_request r = {.path = fields[0],
                               .operation = "read",
                               .user = fields[1],
                               .expiry = fields[2][0] ? fields[2] : NULL};
    check_signature(&r, fields[3]);
    check_range(fields[4]);
    check_name(fields[0]);
    identity_refused(fields[4]);
    return 0;
}
