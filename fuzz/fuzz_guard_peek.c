/* First bytes of a connection, of any protocol: what is said of some bytes is said of more, and
 * what is said holds. */
#include <assert.h>
#include <string.h>

#include "guard/peek.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct peek *k)
{
    char again[POLICY_NAME_MAX + 1];

    if (k->what == PEEK_TLS || k->what == PEEK_HTTP) {
        if (k->name[0]) {
            assert(name_normalise(k->name, strlen(k->name), again) == 0);
            assert(strcmp(k->name, again) == 0 && !k->address && !k->h2c);
        }
        assert(k->what == PEEK_TLS || k->name[0] || k->address || k->h2c);
        assert(k->what == PEEK_HTTP || (!k->connect && !k->h2c));
    } else {
        assert(!k->name[0] && !k->ech && !k->address && !k->connect && !k->h2c);
    }
}

static bool same(const struct peek *a, const struct peek *b)
{
    return a->what == b->what && strcmp(a->name, b->name) == 0 && a->ech == b->ech &&
           a->address == b->address && a->connect == b->connect && a->h2c == b->h2c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peek whole, part = {.what = PEEK_MORE};
    size_t step = size > 4096 ? size / 1024 : 1;

    peek_bytes(data, size, &whole);
    check(&whole);
    assert(whole.what != PEEK_MORE || size < PEEK_MAX);
    for (size_t n = 0; n < size && part.what == PEEK_MORE; n += step)
        peek_bytes(data, n, &part);
    check(&part);
    assert(part.what == PEEK_MORE || same(&part, &whole));
    return 0;
}
