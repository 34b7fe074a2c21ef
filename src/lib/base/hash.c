#include "lib/base/hash.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/base.h"

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = (v[1] << 13 | v[1] >> 51) ^ v[0];
    v[0] = v[0] << 32 | v[0] >> 32;
    v[2] += v[3];
    v[3] = (v[3] << 16 | v[3] >> 48) ^ v[2];
    v[0] += v[3];
    v[3] = (v[3] << 21 | v[3] >> 43) ^ v[0];
    v[2] += v[1];
    v[1] = (v[1] << 17 | v[1] >> 47) ^ v[2];
    v[2] = v[2] << 32 | v[2] >> 32;
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

/* Aborts without random bytes: a table that can be flooded is worse than none. Tables belong to one
 * thread, and so does the key. */
static const uint64_t *secret(void)
{
    static uint64_t key[2];
    static bool drawn;

    if (!drawn && getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        abort();
    drawn = true;
    return key;
}

uint64_t hash_bytes(uint64_t before, const void *data, size_t len)
{
    const uint64_t *key = secret();
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    const unsigned char *p = data;
    uint64_t word, last = (uint64_t)len << 56;
    size_t whole = len / 8 * 8;

    sip_word(v, before);
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, p + i, 8);
        sip_word(v, le64toh(word));
    }
    for (size_t i = whole; i < len; i++)
        last |= (uint64_t)p[i] << i % 8 * 8;
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_text(uint64_t before, const char *text)
{
    return hash_bytes(before, text, strlen(text));
}

/* FNV-1a. */
uint64_t hash_stable(uint64_t before, const void *data, size_t len)
{
    uint64_t h = before ? before : 14695981039346656037u;

    for (const unsigned char *p = data; len > 0; p++, len--)
        h = (h ^ *p) * 1099511628211u;
    return h;
}
