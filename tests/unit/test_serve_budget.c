/* Shares of the machine's memory. */
#include "tap.h"

#include "warden/memory/budget.h"

TAP_MAIN

#define MIB (1ull << 20)
#define A   "tenantaaaaaaaaaaaaaa"
#define B   "tenantbbbbbbbbbbbbbb"

static struct sg_error e;

static void use_some(struct budget *b, const char *tenant, const char *template, int n,
                     uint64_t peak)
{
    for (int i = 0; i < n; i++) {
        struct budget_share s = {0};
        EXPECT(budget_take(b, tenant, template, &s, &e) == 0);
        budget_give_back(b, &s, peak);
    }
}

TEST(a_machine_less_a_tenth_and_a_gibibyte)
{
    EXPECT(budget_of_machine(10240 * MIB) == (9216 - 1024) * MIB);
    EXPECT(budget_of_machine(1024 * MIB) == 256 * MIB); /* there must be something */
    EXPECT(budget_of_machine(1536 * MIB) == 384 * MIB);
}

TEST(a_new_one_has_16_mib_and_it_is_given_back)
{
    struct budget b = {.limit = 48 * MIB};
    struct budget_share s[3] = {{0}}, more = {0};

    for (int i = 0; i < 3; i++)
        EXPECT(budget_take(&b, A, "", &s[i], &e) == 0 && s[i].bytes == 16 * MIB);
    EXPECT(b.reserved == 48 * MIB);
    EXPECT(budget_take(&b, B, "", &more, &e) == -EAGAIN && e.kind == SG_ERR_LIMIT);
    EXPECT(strstr(e.message, "machine has no memory left") && !more.class && b.refused == 1);
    budget_give_back(&b, &s[0], 0);
    EXPECT(budget_take(&b, B, "", &more, &e) == 0);
    budget_give_back(&b, &more, 0);
    budget_give_back(&b, &more, 0); /* there is none any more */
    budget_give_back(&b, &s[1], 0);
    budget_give_back(&b, &s[2], 0);
    EXPECT(b.reserved == 0);
    budget_done(&b);
}

TEST(the_95th_percentile_of_tenant_and_template_is_learnt)
{
    struct budget b = {.limit = 100000 * MIB};

    use_some(&b, A, "layer", BUDGET_KNOWN - 1, 100 * MIB);
    EXPECT(budget_expects(&b, A, "layer") == BUDGET_NEW);
    use_some(&b, A, "layer", 1, 100 * MIB);
    EXPECT(budget_expects(&b, A, "layer") == 100 * MIB);
    EXPECT(budget_expects(&b, A, "") == BUDGET_NEW);
    EXPECT(budget_expects(&b, B, "layer") == BUDGET_NEW);
    /* One in twenty may be larger. */
    use_some(&b, B, "", 19, 20 * MIB);
    use_some(&b, B, "", 1, 900 * MIB);
    EXPECT(budget_expects(&b, B, "") == 20 * MIB);
    use_some(&b, B, "", 5, 900 * MIB);
    EXPECT(budget_expects(&b, B, "") == 900 * MIB);
    /* What was long ago is forgotten. */
    use_some(&b, B, "", BUDGET_SAMPLES, 3 * MIB);
    EXPECT(budget_expects(&b, B, "") == 3 * MIB);
    budget_done(&b);
}

TEST(what_is_used_counts_if_it_is_more_than_what_was_reserved)
{
    struct budget b = {.limit = 100 * MIB};
    struct budget_share s = {0}, more = {0};

    EXPECT(budget_take(&b, A, "", &s, &e) == 0);
    b.used = 90 * MIB;
    EXPECT(budget_take(&b, A, "", &more, &e) == -EAGAIN);
    b.used = 84 * MIB;
    EXPECT(budget_take(&b, A, "", &more, &e) == 0);
    b.used = 0;
    EXPECT(budget_has_room(&b, 68 * MIB) && !budget_has_room(&b, 68 * MIB + 1));
    b.closed = true;
    EXPECT(budget_take(&b, A, "", &more, &e) == -EAGAIN);
    EXPECT(!budget_has_room(&b, 0));
    budget_done(&b);
}

TEST(a_tenant_has_its_own_limit)
{
    struct budget b = {.limit = 1000 * MIB, .tenant_limit = 40 * MIB};
    struct budget_share s[4] = {{0}};

    EXPECT(budget_take(&b, A, "", &s[0], &e) == 0 && budget_take(&b, A, "", &s[1], &e) == 0);
    EXPECT(budget_take(&b, A, "", &s[2], &e) == -EDQUOT && strstr(e.message, "40 MiB"));
    EXPECT(budget_take(&b, B, "", &s[2], &e) == 0);
    budget_tenant_uses(&b, B, 30 * MIB);
    EXPECT(budget_take(&b, B, "", &s[3], &e) == -EDQUOT);
    budget_tenant_uses(&b, B, 10 * MIB);
    EXPECT(budget_take(&b, B, "", &s[3], &e) == 0);
    budget_tenant_uses(&b, "nobody", 10 * MIB);
    budget_done(&b);
}

TEST(what_is_known_is_bounded)
{
    struct budget b = {.limit = 1ull << 50};
    struct budget_share kept = {0};
    char name[ID_LEN + 1];

    EXPECT(budget_take(&b, A, "kept", &kept, &e) == 0);
    for (unsigned i = 0; i < 2 * BUDGET_CLASSES; i++) {
        snprintf(name, sizeof(name), "layer%u", i);
        use_some(&b, A, name, 1, MIB);
    }
    EXPECT(b.classes.n == BUDGET_CLASSES);
    budget_give_back(&b, &kept, MIB); /* one that is in use stays */
    EXPECT(b.reserved == 0);
    budget_done(&b);
}
