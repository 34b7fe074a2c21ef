#include "lib/base/base.h"
#include "lib/base/ids.h"
#include "tap.h"

#define MANY 20000

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, ID_LEN);
}

TEST(random_ids_are_valid_and_differ)
{
    AUTO(free_p) char(*ids)[ID_LEN + 1] = xcalloc(MANY, sizeof(*ids));

    for (size_t i = 0; i < MANY; i++) {
        id_random(ids[i]);
        EXPECT(id_valid(ids[i]));
    }
    qsort(ids, MANY, sizeof(*ids), compare);
    for (size_t i = 1; i < MANY; i++)
        EXPECT(memcmp(ids[i - 1], ids[i], ID_LEN) != 0);
}

/* 400,000 characters over 36 symbols: 11,111 each, standard deviation 104. Ten of those either way
 * never happens by chance; a modulo without rejection would be 1,500 off. */
TEST(every_symbol_is_as_likely_at_every_place)
{
    unsigned seen[256] = {0};
    char id[ID_LEN + 1];

    for (size_t i = 0; i < MANY; i++) {
        id_random(id);
        for (size_t k = 0; k < ID_LEN; k++)
            seen[(unsigned char)id[k]]++;
    }
    for (const char *c = "abcdefghijklmnopqrstuvwxyz0123456789"; *c; c++)
        EXPECT(seen[(unsigned char)*c] > 10071 && seen[(unsigned char)*c] < 12151);
}

TEST(writes_no_further_than_its_end)
{
    char buf[ID_LEN + 2];

    memset(buf, '#', sizeof(buf));
    id_random(buf);
    EXPECT(buf[ID_LEN] == '\0');
    EXPECT(buf[ID_LEN + 1] == '#');
}

TEST(valid_takes_twenty_of_the_alphabet_only)
{
    static const char *const good[] = {"abcdefghijklmnopqrst", "uvwxyz0123456789aaaa"};
    static const char *const bad[] = {
        "",
        "abcdefghijklmnopqrs",
        "abcdefghijklmnopqrstu",
        "Abcdefghijklmnopqrst",
        "abcdefghij-lmnopqrst",
        "abcdefghij/lmnopqrst",
        "../../../../../../..",
        "abcdefghijklmnopqrs\n",
        "abcdefghij lmnopqrst",
        "abcdefghijklmnopqr\xc3\xbc",
    };

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        EXPECT(id_valid(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(!id_valid(bad[i]));
}

TAP_MAIN
