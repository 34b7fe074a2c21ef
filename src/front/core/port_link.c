#include "front/core/port_link.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <string.h>

#include "lib/base/clock.h"

#define END_LEN 7 /* of base 36: enough for longer than anybody lives */
#define MAC_LEN ((PORT_LINK_LEN - END_LEN) / 2)

static void put_end(int64_t s, char ret[END_LEN + 1])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

    ret[END_LEN] = '\0';
    for (int i = END_LEN - 1; i >= 0; i--, s /= 36)
        ret[i] = digits[s % 36];
}

void port_link_make(const struct sandbox *b, unsigned port, int64_t end_s,
                    char ret[PORT_LINK_LEN + 1])
{
    const char *token = b->spec.traffic_token;
    unsigned char mac[EVP_MAX_MD_SIZE];
    char text[96];

    put_end(end_s, ret);
    int n = snprintf(text, sizeof(text), "link %s %u %s", b->id, port, ret);
    if (!token[0] ||
        !HMAC(EVP_sha256(), token, (int)strlen(token), (unsigned char *)text, (size_t)n, mac, NULL))
        abort(); /* a bug of ours, or no memory */
    for (size_t i = 0; i < MAC_LEN; i++)
        snprintf(ret + END_LEN + 2 * i, 3, "%02x", mac[i]);
}

bool port_link_opens(const struct sandbox *b, unsigned port, const struct http_req *req)
{
    size_t label = strcspn(req->host, ".:"), lead = strcspn(req->host, "-") + 1 + ID_LEN + 1;
    char end[END_LEN + 1], right[PORT_LINK_LEN + 1];

    if (!b->spec.traffic_token[0] || label != lead + PORT_LINK_LEN)
        return false;
    const char *link = req->host + lead;
    memcpy(end, link, END_LEN);
    end[END_LEN] = '\0';
    if (strspn(end, "0123456789abcdefghijklmnopqrstuvwxyz") != END_LEN)
        return false;
    int64_t end_s = strtoll(end, NULL, 36);
    port_link_make(b, port, end_s, right);
    return CRYPTO_memcmp(link, right, PORT_LINK_LEN) == 0 && clock_wall_ms() / 1000 < end_s;
}
