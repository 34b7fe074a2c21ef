/* A ClientHello, which the input is the body of: in one record and in small ones it says the same.
 * The first byte is the size of the small ones. */
#include <assert.h>
#include <string.h>

#include "guard/peek.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_MAX 2000

static size_t make_records(const uint8_t *message, size_t len, size_t each, uint8_t *ret)
{
    size_t at = 0;

    for (size_t done = 0; done < len; done += each) {
        size_t n = len - done < each ? len - done : each;
        uint8_t header[] = {0x16, 3, 1, (uint8_t)(n >> 8), (uint8_t)n};
        memcpy(ret + at, header, sizeof(header));
        memcpy(ret + at + sizeof(header), message + done, n);
        at += sizeof(header) + n;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t message[4 + BODY_MAX], wire[6 * sizeof(message)];
    struct peek one, many;
    size_t len, n;

    if (size < 1 || size > BODY_MAX)
        return 0;
    len = size - 1;
    memcpy(message, (uint8_t[]){1, 0, (uint8_t)(len >> 8), (uint8_t)len}, 4);
    memcpy(message + 4, data + 1, len);
    n = make_records(message, 4 + len, 16384, wire);
    peek_tls(wire, n, &one);
    assert(one.what == PEEK_TLS || one.what == PEEK_BAD);
    assert(one.what == PEEK_TLS || (!one.name[0] && !one.address && !one.ech));
    n = make_records(message, 4 + len, data[0] ? data[0] : 256, wire);
    peek_tls(wire, n, &many);
    assert(many.what == one.what && strcmp(many.name, one.name) == 0 && many.ech == one.ech &&
           many.address == one.address);
    peek_tls(wire, n - 1, &many);
    assert(many.what == PEEK_MORE);
    return 0;
}
