#include "front/e2b/page.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "lib/text/parse.h"

#define MAC_LEN 16

/* The bytes of a token that are signed and sent: of fixed size, in this order. */
struct token {
    unsigned char list, ascending;
    unsigned char at[8]; /* big-endian */
    char id[ID_LEN];     /* padded with NUL */
    unsigned char mac[MAC_LEN];
};
_Static_assert(sizeof(struct token) == 2 + 8 + ID_LEN + MAC_LEN, "no padding");

#define SIGNED_LEN offsetof(struct token, mac)

static void make_mac(const unsigned char key[PAGE_KEY_LEN], const char *tenant,
                     const struct token *t, unsigned char ret[MAC_LEN])
{
    unsigned char text[ID_LEN + SIGNED_LEN] = {0}, mac[EVP_MAX_MD_SIZE];
    unsigned len;

    memcpy(text, tenant, strnlen(tenant, ID_LEN));
    memcpy(text + ID_LEN, t, SIGNED_LEN);
    if (!HMAC(EVP_sha256(), key, PAGE_KEY_LEN, text, sizeof(text), mac, &len))
        abort(); /* out of memory */
    memcpy(ret, mac, MAC_LEN);
}

void page_token_make(const unsigned char key[PAGE_KEY_LEN], const char *tenant,
                     const struct page_cursor *c, char ret[PAGE_TOKEN_LEN + 1])
{
    struct token t = {.list = (unsigned char)c->list, .ascending = c->ascending};
    const unsigned char *bytes = (const unsigned char *)&t;
    size_t n = 0;

    for (int i = 0; i < 8; i++)
        t.at[i] = (unsigned char)((uint64_t)c->at >> (56 - 8 * i));
    memcpy(t.id, c->id, strnlen(c->id, ID_LEN));
    make_mac(key, tenant, &t, t.mac);
    /* Hexadecimal needs no escaping in a query. */
    for (size_t i = 0; i < sizeof(t); i++)
        n += (size_t)snprintf(ret + n, PAGE_TOKEN_LEN + 1 - n, "%02x", bytes[i]);
}
_Static_assert(2 * sizeof(struct token) <= PAGE_TOKEN_LEN, "a token fits");

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

int page_token_read(const unsigned char key[PAGE_KEY_LEN], const char *tenant, enum page_list list,
                    bool ascending, const char *token, struct page_cursor *ret)
{
    struct page_cursor c = {.list = list, .ascending = ascending};
    unsigned char mac[MAC_LEN], *bytes;
    struct token t;
    uint64_t at = 0;

    bytes = (unsigned char *)&t;
    if (strnlen(token, PAGE_TOKEN_LEN + 1) != 2 * sizeof(t))
        return -EINVAL;
    for (size_t i = 0; i < sizeof(t); i++) {
        int high = hex_value(token[2 * i]), low = hex_value(token[2 * i + 1]);

        if (high < 0 || low < 0)
            return -EINVAL;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    make_mac(key, tenant, &t, mac);
    if (CRYPTO_memcmp(mac, t.mac, MAC_LEN) != 0 || t.list != list || t.ascending != ascending)
        return -EINVAL;
    for (int i = 0; i < 8; i++)
        at = at << 8 | t.at[i];
    c.at = (int64_t)at;
    memcpy(c.id, t.id, ID_LEN);
    *ret = c;
    return 0;
}

bool page_of_request(struct e2b_req *q, enum page_list list, bool ascending, struct page *ret)
{
    const char *limit = http_query_get(q->http, "limit");
    const char *token = http_query_get(q->http, "nextToken");
    unsigned char key[PAGE_KEY_LEN];
    struct page p = {.last = {.list = list, .ascending = ascending},
                     .has_cursor = token && token[0]};
    uint64_t n = PAGE_MAX;

    if (limit && parse_u64("limit", limit, 1, PAGE_MAX, &n, NULL) < 0)
        fields_invalid(&q->in, "Invalid limit: it must be from 1 to %d", PAGE_MAX);
    p.limit = (unsigned)n;
    if (p.has_cursor)
        fields_check(&q->in, store_secret(q->front->store, "page", key, sizeof(key), &q->wrong));
    if (p.has_cursor && fields_ok(&q->in) &&
        page_token_read(key, q->tenant.id, list, ascending, token, &p.cursor) < 0)
        fields_invalid(&q->in, "Invalid next token");
    if (!token && http_query_has(q->http, "nextToken"))
        fields_invalid(&q->in, "Invalid next token");
    *ret = p;
    return e2b_read(q);
}

int64_t page_from(const struct page *p)
{
    return p->has_cursor ? p->cursor.at : STORE_NEWEST;
}

bool page_take(struct page *p, int64_t at)
{
    p->more = p->n == p->limit;
    if (p->more)
        return false;
    p->n++;
    p->last.at = at;
    return true;
}

void page_reply(struct e2b_req *q, const struct page *p, struct json *j)
{
    jw_array_end(j);
    if (p->more)
        page_next(q, &p->last);
    reply_json(q->http, 200, j->out);
}

void page_next(struct e2b_req *q, const struct page_cursor *last)
{
    unsigned char key[PAGE_KEY_LEN];
    char token[PAGE_TOKEN_LEN + 1];

    /* Without a key there can be no next page, but the list itself is right. */
    if (store_secret(q->front->store, "page", key, sizeof(key), NULL) < 0)
        return;
    page_token_make(key, q->tenant.id, last, token);
    http_add_header(q->http, "X-Next-Token", token);
}
