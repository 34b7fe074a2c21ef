#include "guard/dns_names.h"

#include <assert.h>

#include "lib/text/parse.h"

#define LABEL_MAX 63

void dns_put16(struct strbuf *out, uint16_t v)
{
    strbuf_addch(out, (char)(v >> 8));
    strbuf_addch(out, (char)(v & 0xff));
}

void dns_put32(struct strbuf *out, uint32_t v)
{
    dns_put16(out, (uint16_t)(v >> 16));
    dns_put16(out, (uint16_t)(v & 0xffff));
}

static char lower(uint8_t c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool has_text(uint8_t c)
{
    return c > ' ' && c < 0x7f && c != '.' && c != '\\';
}

/* Appends a label to the text at *used. */
static int add_label(const uint8_t *label, size_t len, char *text, size_t *used)
{
    bool plain = true;

    if (*used + len + (*used > 0) > POLICY_NAME_MAX)
        return -EBADMSG;
    if (*used > 0)
        text[(*used)++] = '.';
    for (size_t i = 0; i < len; i++) {
        plain = plain && has_text(label[i]);
        text[(*used)++] = lower(label[i]);
    }
    return plain ? 0 : -EINVAL;
}

int dns_name_read(const uint8_t *p, size_t len, size_t *at, bool pointers,
                  char ret[POLICY_NAME_MAX + 1])
{
    size_t pos = *at, begin = *at, end = 0, used = 0;
    int result = 0;

    for (;;) {
        uint8_t c = pos < len ? p[pos] : 0xff;

        if (c == 0)
            break;
        if (c <= LABEL_MAX && c < len - pos) {
            int r = add_label(p + pos + 1, c, ret, &used);

            if (r == -EBADMSG)
                return r;
            if (r < 0)
                result = r;
            pos += 1u + c;
            continue;
        }
        if (c < 0xc0 || !pointers || len - pos < 2)
            return -EBADMSG;
        size_t target = dns_get16(p + pos) & 0x3fff;
        if (target >= begin || target < DNS_HEAD_LEN)
            return -EBADMSG;
        if (end == 0)
            end = pos + 2;
        pos = begin = target;
    }
    *at = end ? end : pos + 1;
    ret[used] = '\0';
    return result;
}

void dns_name_write(const char *name, struct strbuf *out)
{
    while (*name) {
        size_t n = strcspn(name, ".");

        assert(n > 0 && n <= LABEL_MAX);
        strbuf_addch(out, (char)n);
        strbuf_add(out, name, n);
        name += n;
        name += *name == '.';
    }
    strbuf_addch(out, '\0');
}

size_t dns_name_size(const char *name)
{
    return *name ? strlen(name) + 2 : 1;
}

/* "34.216.184.93" to 93.184.216.34. */
static int reverse_v4(const char *labels, size_t len, struct net_addr *ret)
{
    char text[16] = "";
    size_t used = 0;

    if (len >= sizeof(text))
        return -EINVAL;
    for (size_t end = len; end > 0;) {
        size_t begin = end;

        while (begin > 0 && labels[begin - 1] != '.')
            begin--;
        memcpy(text + used, labels + begin, end - begin);
        used += end - begin;
        if (begin > 0)
            text[used++] = '.';
        end = begin > 0 ? begin - 1 : 0;
    }
    return net_addr_parse(text, ret);
}

static int reverse_v6(const char *labels, size_t len, struct net_addr *ret)
{
    uint8_t ip[16] = {0};

    if (len != 63)
        return -EINVAL;
    for (size_t i = 0; i < 32; i++) {
        int v = parse_hex(labels[2 * i]);

        if (v < 0 || (i < 31 && labels[2 * i + 1] != '.'))
            return -EINVAL;
        ip[15 - i / 2] |= (uint8_t)(i % 2 ? v << 4 : v);
    }
    net_addr_v6(ip, 0, ret);
    return 0;
}

int dns_name_reverse(const char *name, struct net_addr *ret)
{
    static const char v4[] = ".in-addr.arpa", v6[] = ".ip6.arpa";
    size_t len = strlen(name);

    if (len > sizeof(v4) && strcmp(name + len - (sizeof(v4) - 1), v4) == 0)
        return reverse_v4(name, len - (sizeof(v4) - 1), ret);
    if (len > sizeof(v6) && strcmp(name + len - (sizeof(v6) - 1), v6) == 0)
        return reverse_v6(name, len - (sizeof(v6) - 1), ret);
    return -EINVAL;
}
