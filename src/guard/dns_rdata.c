#include "guard/dns_rdata.h"

#include "guard/dns_message.h"

/* Keys of HTTPS and SVCB (RFC 9460). */
enum { KEY_MANDATORY, KEY_ALPN, KEY_NO_DEFAULT_ALPN, KEY_PORT, KEY_IPV4, KEY_ECH, KEY_IPV6 };

/* Copies `fixed` bytes, a name (two for SOA), and `rest` bytes behind. */
static int copy_named(const uint8_t *p, size_t len, size_t at, size_t n, size_t fixed,
                      unsigned names, size_t rest, struct strbuf *out)
{
    char name[POLICY_NAME_MAX + 1];
    size_t end = at + n;

    if (n < fixed + rest)
        return -EBADMSG;
    strbuf_add(out, p + at, fixed);
    at += fixed;
    while (names-- > 0) {
        if (at >= end || dns_name_read(p, len, &at, true, name) < 0)
            return -EBADMSG;
        dns_name_write(name, out);
    }
    if (at > end || end - at != rest)
        return -EBADMSG;
    strbuf_add(out, p + at, rest);
    return 0;
}

static int copy_text(const uint8_t *data, size_t n, struct strbuf *out)
{
    for (size_t i = 0; i < n; i += 1u + data[i])
        if (data[i] >= n - i)
            return -EBADMSG;
    strbuf_add(out, data, n);
    return n > 0 ? 0 : -EBADMSG;
}

/* Whether a parameter may reach a sandbox. Keys that hide the name of a connection (ech), say where
 * it goes (hints) or are unknown may not. */
static bool passes(unsigned key)
{
    return key == KEY_ALPN || key == KEY_NO_DEFAULT_ALPN || key == KEY_PORT;
}

/* Copies the list of keys without which a client may not use the record. Keys that are taken out of
 * the record must not be in it, and an unknown one makes the record useless. */
static int copy_mandatory(const uint8_t *keys, size_t n, struct strbuf *out)
{
    uint16_t kept[KEY_IPV6 + 1], n_kept = 0;

    if (n == 0 || n % 2)
        return -EBADMSG;
    for (size_t i = 0; i < n; i += 2) {
        unsigned key = dns_get16(keys + i);

        if (key == KEY_MANDATORY || key > KEY_IPV6 || n_kept == ARRAY_SIZE(kept))
            return -EBADMSG;
        if (passes(key))
            kept[n_kept++] = (uint16_t)key;
    }
    if (n_kept == 0)
        return 0;
    dns_put16(out, KEY_MANDATORY);
    dns_put16(out, (uint16_t)(2 * n_kept));
    for (unsigned i = 0; i < n_kept; i++)
        dns_put16(out, kept[i]);
    return 0;
}

static int copy_service(const uint8_t *p, size_t at, size_t n, struct strbuf *out)
{
    size_t end = at + n;
    char target[POLICY_NAME_MAX + 1];
    int last = -1;

    if (n < 3)
        return -EBADMSG;
    strbuf_add(out, p + at, 2);
    at += 2;
    if (dns_name_read(p, end, &at, false, target) < 0)
        return -EBADMSG;
    dns_name_write(target, out);
    while (at < end) {
        if (end - at < 4)
            return -EBADMSG;
        unsigned key = dns_get16(p + at), size = dns_get16(p + at + 2);
        if (size > end - at - 4 || (int)key <= last)
            return -EBADMSG;
        if (key == KEY_MANDATORY && copy_mandatory(p + at + 4, size, out) < 0)
            return -EBADMSG;
        if (passes(key))
            strbuf_add(out, p + at, 4u + size);
        last = (int)key;
        at += 4u + size;
    }
    return 0;
}

int dns_rdata_copy(const uint8_t *p, size_t len, size_t at, size_t n, uint16_t type,
                   struct strbuf *out)
{
    /* Data of fixed length, with names in it. */
    static const struct {
        uint8_t type, fixed, names, rest;
    } forms[] = {{DNS_A, 4, 0, 0},   {DNS_AAAA, 16, 0, 0}, {DNS_NS, 0, 1, 0},  {DNS_CNAME, 0, 1, 0},
                 {DNS_PTR, 0, 1, 0}, {DNS_MX, 2, 1, 0},    {DNS_SRV, 6, 1, 0}, {DNS_SOA, 0, 2, 20}};
    int r = -EBADMSG;

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        if (forms[i].type == type)
            r = copy_named(p, len, at, n, forms[i].fixed, forms[i].names, forms[i].rest, out);
    if (type == DNS_TXT)
        r = copy_text(p + at, n, out);
    else if (type == DNS_HTTPS || type == DNS_SVCB)
        r = copy_service(p, at, n, out);
    return r < 0 || out->truncated ? -EBADMSG : 0;
}
