#include "lib/base/map.h"
#include "tap.h"

#define MANY 5000

struct item {
    unsigned number;
    struct map_node node;
};

static uint64_t hash_of(unsigned number)
{
    return hash_bytes(0, &number, sizeof(number));
}

static struct item *find(const struct map *m, unsigned number)
{
    return MAP_FIND(struct item, x, m, hash_of(number), node, x->number == number);
}

TEST(zero_bytes_are_an_empty_map)
{
    struct map m = {0};
    struct item x = {0};

    EXPECT(!find(&m, 1) && !MAP_FIRST(struct item, &m, node));
    map_remove(&m, &x.node);
    EXPECT(m.n == 0);
}

TEST(entries_are_found_until_they_are_removed)
{
    AUTO(free_p) struct item *x = xcalloc(MANY, sizeof(*x));
    struct map m = {0};
    unsigned at = 0;

    for (unsigned i = 0; i < MANY; i++) {
        x[i].number = i;
        map_add(&m, &x[i].node, hash_of(i));
    }
    EXPECT(m.n == MANY && m.n_buckets >= MANY);
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(find(&m, i) == &x[i]);
    EXPECT(!find(&m, MANY));
    MAP_EACH(struct item, y, &m, node) {
        EXPECT(y == &x[at++]); /* in the order in which they came */
        if (y->number % 2)
            map_remove(&m, &y->node);
    }
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(find(&m, i) == (i % 2 ? NULL : &x[i]));
    MAP_EACH(struct item, y, &m, node)
        map_remove(&m, &y->node);
    EXPECT(m.n == 0 && !m.buckets);
}

TEST(a_renewed_entry_is_the_last)
{
    struct item x[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
    struct map m = {0};
    unsigned digits = 0;

    for (unsigned i = 0; i < 3; i++)
        map_add(&m, &x[i].node, hash_of(i + 1));
    map_renew(&m, &x[0].node);
    MAP_EACH(struct item, y, &m, node)
        digits = digits * 10 + y->number;
    EXPECT(digits == 231 && MAP_FIRST(struct item, &m, node) == &x[1] && find(&m, 1) == &x[0]);
    MAP_EACH(struct item, y, &m, node)
        map_remove(&m, &y->node);
}

TEST(entries_may_have_the_same_hash)
{
    struct item x[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
    struct map m = {0};
    unsigned sum = 0;

    for (int i = 0; i < 3; i++)
        map_add(&m, &x[i].node, i == 2 ? 5 + 16 : 5); /* the third is in the same bucket */
    MAP_AT(struct item, y, &m, 5, node)
        sum += y->number;
    EXPECT(sum == 3);
    map_remove(&m, &x[0].node);
    map_remove(&m, &x[0].node);
    EXPECT(m.n == 2);
    map_remove(&m, &x[1].node);
    MAP_AT(struct item, y, &m, 5, node)
        EXPECT(!"nothing has this hash");
    map_remove(&m, &x[2].node);
}

TEST(hashes_of_texts_keep_their_border)
{
    EXPECT(hash_text(0, "ab") == hash_bytes(0, "ab", 2));
    EXPECT(hash_text(hash_text(0, "ab"), "c") == hash_text(hash_text(0, "ab"), "c"));
    EXPECT(hash_text(hash_text(0, "ab"), "c") != hash_text(hash_text(0, "a"), "bc"));
    EXPECT(hash_text(0, "") != hash_text(hash_text(0, ""), ""));
}

/* Names on disk are made of these. */
TEST(stable_hashes_never_change)
{
    EXPECT(hash_stable(0, "", 0) == 0xcbf29ce484222325u);
    EXPECT(hash_stable(0, "a", 1) == 0xaf63dc4c8601ec8cu);
    EXPECT(hash_stable(0, "foobar", 6) == 0x85944171f73967e8u);
    EXPECT(hash_stable(hash_stable(0, "foo", 3), "bar", 3) == hash_stable(0, "foobar", 6));
}

TAP_MAIN
