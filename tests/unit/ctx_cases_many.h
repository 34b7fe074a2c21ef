/* Many rows: lists and pages, paths, tenants, usage. */
#pragma once

#include "ctx_rig.h"

#define CTX_CASES_MANY(X, kind)      \
    X(kind, list_filters)            \
    X(kind, list_pages)              \
    X(kind, tenants_are_apart)       \
    X(kind, branch_notes_a_path)     \
    X(kind, branch_onto_a_live_path) \
    X(kind, merge_ends_the_source)   \
    X(kind, paths_in_order)          \
    X(kind, usage_adds_up)           \
    X(kind, usage_of_conversations)  \
    X(kind, usage_pages)             \
    X(kind, usage_of_others)         \
    X(kind, usage_is_bounded)        \
    X(kind, forget_what_has_ended)   \
    X(kind, forget_paths)            \
    X(kind, forget_nothing)

static struct ctx_answer list_by(struct ctx_rig *t, const char *conversation, const char *path,
                                 const char *sandbox_id, unsigned statuses)
{
    struct ctx_list q = {.tenant = t->tenant,
                         .conversation = conversation,
                         .path = path,
                         .sandbox_id = sandbox_id,
                         .statuses = statuses,
                         .before_id = "",
                         .limit = 50};

    return CALL(t, list, &q);
}

static void case_list_filters(struct ctx_rig *t)
{
    struct ctx_row a = rig_ready(t, "talk", "a"), b = rig_ready(t, "talk", "b"),
                   c = rig_ready(t, "other", "a"), made = rig_claim(t, "other", "b").row,
                   bad = rig_claim(t, "other", "bad").row;

    EXPECT(CALL(t, terminate, t->tenant, b.id).r == 0);
    EXPECT(CALL(t, settle, t->tenant, bad.id, t->node, NULL, "no", NULL).r == 0);
    EXPECT(list_by(t, NULL, NULL, NULL, CTX_ALL).n == 5);
    struct ctx_answer l = list_by(t, NULL, NULL, NULL, CTX_ACTIVE);
    EXPECT(l.n == 3 && !l.more && rig_has(&l, a.id) && rig_has(&l, c.id) && rig_has(&l, made.id));
    l = list_by(t, "talk", NULL, NULL, CTX_ALL);
    EXPECT(l.n == 2 && rig_has(&l, a.id) && rig_has(&l, b.id));
    l = list_by(t, "talk", NULL, NULL, CTX_ACTIVE);
    EXPECT(l.n == 1 && rig_has(&l, a.id));
    l = list_by(t, NULL, "a", NULL, CTX_ALL);
    EXPECT(l.n == 2 && rig_has(&l, a.id) && rig_has(&l, c.id));
    l = list_by(t, "other", "a", NULL, CTX_ALL);
    EXPECT(l.n == 1 && rig_has(&l, c.id));
    l = list_by(t, NULL, NULL, c.sandbox_id, CTX_ALL);
    EXPECT(l.n == 1 && rig_has(&l, c.id));
    EXPECT(list_by(t, "talk", NULL, c.sandbox_id, CTX_ALL).n == 0);
    l = list_by(t, NULL, NULL, NULL, 1u << CTX_TERMINATED);
    EXPECT(l.n == 1 && rig_has(&l, b.id));
    l = list_by(t, NULL, NULL, NULL, 1u << CTX_ERROR | 1u << CTX_CREATING);
    EXPECT(l.n == 2 && rig_has(&l, bad.id) && rig_has(&l, made.id));
    EXPECT(list_by(t, NULL, NULL, NULL, 0).n == 0);
    EXPECT(list_by(t, "none", NULL, NULL, CTX_ALL).n == 0);
    EXPECT(list_by(t, "%", NULL, NULL, CTX_ALL).n == 0);
}

/* In any size of page: each row once, none missed, newest first. Many are of the same moment. */
static void check_pages(struct ctx_rig *t, size_t limit, size_t total, bool in_conversation)
{
    struct ctx_list q = {.tenant = t->tenant,
                         .conversation = in_conversation ? "talk" : NULL,
                         .statuses = CTX_ALL,
                         .before_id = "",
                         .limit = limit};
    struct ctx_row last = {0};
    size_t n = 0;

    for (;;) {
        struct ctx_answer a = CALL(t, list, &q);

        EXPECT(a.r == 0 && a.n <= limit);
        for (size_t i = 0; i < a.n; i++) {
            const struct ctx_row *row = &a.rows[i];

            EXPECT(n == 0 || row->created_ms < last.created_ms ||
                   (row->created_ms == last.created_ms && strcmp(row->id, last.id) < 0));
            last = *row;
            n++;
        }
        if (a.r < 0 || a.n == 0 || !a.more)
            break;
        q.before_ms = last.created_ms;
        q.before_id = last.id;
    }
    EXPECT(n == total);
}

#define PAGE_ROWS 47

static void case_list_pages(struct ctx_rig *t)
{
    for (int i = 0; i < PAGE_ROWS; i++) {
        char path[32];

        snprintf(path, sizeof(path), "path %d", i);
        EXPECT(rig_claim(t, i % 2 ? "talk" : "other", path).r == 0);
    }
    check_pages(t, 1, PAGE_ROWS, false);
    check_pages(t, 10, PAGE_ROWS, false);
    check_pages(t, PAGE_ROWS, PAGE_ROWS, false);
    check_pages(t, CTX_LIST_MAX, PAGE_ROWS, false);
    check_pages(t, 5, PAGE_ROWS / 2, true);
}

static void case_tenants_are_apart(struct ctx_rig *t)
{
    char other[ID_LEN + 1];
    struct ctx_row mine = rig_ready_ttl(t, "talk", "main", 50);
    struct ctx_usage_add add = {.usage = {.cpu_us = 5}};

    EXPECT(CALL(t, branch, t->tenant, "talk", "main", "side").r == 0);
    id_random(other);
    rig_wait_past(t, mine.id, mine.expires_ms);
    EXPECT(CALL(t, get, other, mine.id).r == -ENOENT);
    EXPECT(CALL(t, touch, other, mine.id, 0).r == -ENOENT);
    EXPECT(CALL(t, terminate, other, mine.id).r == -ENOENT);
    EXPECT(CALL(t, expire, t->node, other, RIG_LEASE_MS, 10).n == 0);
    EXPECT(CALL(t, paths, other, "talk").n == 0);
    struct ctx_answer a = CALL(t, merge, other, "talk", "main", "side");
    EXPECT(a.r == 0 && a.n == 0);
    EXPECT(CALL(t, branch, other, "talk", "x", "main").r == 0);
    struct ctx_list q = {.tenant = other, .statuses = CTX_ALL, .before_id = "", .limit = 10};
    EXPECT(CALL(t, list, &q).n == 0);
    q.sandbox_id = mine.sandbox_id;
    EXPECT(CALL(t, list, &q).n == 0);
    snprintf(add.tenant, sizeof(add.tenant), "%s", other);
    snprintf(add.context, sizeof(add.context), "%s", mine.id);
    EXPECT(CALL(t, usage_add, &add, 1).r == 0);
    struct ctx_row now = rig_get(t, mine.id);
    EXPECT(now.status == CTX_READY && now.usage.cpu_us == 0 && now.parent[0] == '\0');
    EXPECT(rig_days(t, t->tenant, "2000-01-01", "2999-12-31").n == 0);
    a = CALL(t, paths, t->tenant, "talk");
    EXPECT(a.n == 2 && a.paths[0].merged_into[0] == '\0');
    EXPECT_STR(a.paths[0].context, mine.id);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const struct ctx_path *find_path(const struct ctx_answer *a, const char *path)
{
    static const struct ctx_path none;

    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->paths[i].path, path) == 0)
            return &a->paths[i];
    printf("# no path '%s'\n", path);
    tap_failures++;
    return &none;
}

static void case_branch_notes_a_path(struct ctx_rig *t)
{
    struct ctx_row main_row = rig_ready(t, "talk", "main");

    EXPECT(CALL(t, branch, t->tenant, "talk", "main", "side").r == 0);
    struct ctx_answer a = CALL(t, paths, t->tenant, "talk");
    EXPECT(a.r == 0 && a.n == 2);
    const struct ctx_path *p = find_path(&a, "side");
    EXPECT_STR(p->parent, "main");
    EXPECT_STR(p->context, "");
    EXPECT(p->created_ms > 0);
    p = find_path(&a, "main");
    EXPECT_STR(p->parent, "");
    EXPECT_STR(p->context, main_row.id);
    EXPECT(p->status == CTX_READY);
    /* Its context, made later, knows whence it comes. */
    struct ctx_answer c = rig_claim(t, "talk", "side");
    EXPECT(c.claimed == CLAIM_NEW);
    EXPECT_STR(c.row.parent, "main");
    a = CALL(t, paths, t->tenant, "talk");
    p = find_path(&a, "side");
    EXPECT_STR(p->context, c.row.id);
    EXPECT(p->status == CTX_CREATING);
    /* Of a path that nobody has heard of: it is lazy. */
    EXPECT(CALL(t, branch, t->tenant, "talk 2", "nowhere", "side").r == 0);
    a = CALL(t, paths, t->tenant, "talk 2");
    EXPECT_STR(find_path(&a, "side")->parent, "nowhere");
    /* Branched anew: the last word counts. */
    EXPECT(CALL(t, branch, t->tenant, "talk 2", "elsewhere", "side").r == 0);
    a = CALL(t, paths, t->tenant, "talk 2");
    EXPECT_STR(find_path(&a, "side")->parent, "elsewhere");
}

static void case_branch_onto_a_live_path(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "side");
    struct ctx_answer a = CALL(t, branch, t->tenant, "talk", "main", "side");

    EXPECT(a.r == -EEXIST && rig_get(t, row.id).parent[0] == '\0');
    EXPECT(rig_claim(t, "talk", "making").claimed == CLAIM_NEW);
    EXPECT(CALL(t, branch, t->tenant, "talk", "main", "making").r == -EEXIST);
    EXPECT(CALL(t, terminate, t->tenant, row.id).r == 0);
    EXPECT(CALL(t, branch, t->tenant, "talk", "main", "side").r == 0);
}

static void case_merge_ends_the_source(struct ctx_rig *t)
{
    struct ctx_row source = rig_ready(t, "talk", "side"), target = rig_ready(t, "talk", "main");
    struct ctx_answer a = CALL(t, merge, t->tenant, "talk", "side", "main");

    EXPECT(a.r == 0 && a.n == 1 && a.row.status == CTX_TERMINATED && a.row.terminated_ms > 0);
    EXPECT_STR(a.row.id, source.id);
    EXPECT_STR(a.row.sandbox_id, source.sandbox_id);
    struct ctx_row now = rig_get(t, target.id);
    EXPECT(now.status == CTX_READY && now.used_ms == target.used_ms);
    a = CALL(t, paths, t->tenant, "talk");
    EXPECT_STR(find_path(&a, "side")->merged_into, "main");
    EXPECT_STR(find_path(&a, "side")->context, "");
    EXPECT_STR(find_path(&a, "main")->merged_into, "");
    /* Again, and without a context: there is nothing to end. */
    a = CALL(t, merge, t->tenant, "talk", "side", "main");
    EXPECT(a.r == 0 && a.n == 0);
    a = CALL(t, merge, t->tenant, "talk", "never", "main");
    EXPECT(a.r == 0 && a.n == 0);
    EXPECT(rig_claim(t, "talk", "side").claimed == CLAIM_NEW);
}

static void case_paths_in_order(struct ctx_rig *t)
{
    static const char *const order[] = {"zebra", "apple", "mango", "kiwi"};

    for (size_t i = 0; i + 1 < ARRAY_SIZE(order); i++)
        EXPECT(CALL(t, branch, t->tenant, "talk", order[i], order[i + 1]).r == 0);
    struct ctx_answer a = CALL(t, paths, t->tenant, "talk");
    EXPECT(a.n == ARRAY_SIZE(order));
    for (size_t i = 0; i < a.n && i < ARRAY_SIZE(order); i++) {
        EXPECT_STR(a.paths[i].path, order[i]);
        EXPECT_STR(a.paths[i].parent, i > 0 ? order[i - 1] : "");
    }
    EXPECT(CALL(t, paths, t->tenant, "another").n == 0);
}

/* ---- usage ----------------------------------------------------------------------------------- */

static struct ctx_usage_add adding(struct ctx_rig *t, const char *context, struct ctx_usage u)
{
    struct ctx_usage_add add = {.usage = u};

    snprintf(add.tenant, sizeof(add.tenant), "%s", t->tenant);
    snprintf(add.context, sizeof(add.context), "%s", context);
    return add;
}

/* Of all days: midnight may pass while the test runs. */
static struct ctx_usage used(struct ctx_rig *t, const char *from, const char *to)
{
    struct ctx_answer a = rig_days(t, t->tenant, from, to);
    struct ctx_usage sum = {0};

    EXPECT(a.r == 0 && a.n <= 2);
    for (size_t i = 0; i < a.n; i++) {
        EXPECT(strlen(a.used[i].day) == CTX_DAY_LEN && a.used[i].day[4] == '-');
        EXPECT(i == 0 || strcmp(a.used[i - 1].day, a.used[i].day) < 0);
        ctx_usage_sum(&sum, &a.used[i].usage);
    }
    return sum;
}

static void case_usage_adds_up(struct ctx_rig *t)
{
    struct ctx_row a = rig_ready(t, "talk", "a"), b = rig_ready(t, "talk", "b");
    const struct ctx_usage first = {1, 2, 3, 4, 5, 6, 7, 8},
                           second = {10, 20, 30, 40, 50, 60, 70, 80};
    struct ctx_usage_add adds[] = {
        adding(t, a.id, first),
        adding(t, b.id, second),
        adding(t, a.id, second),
        adding(t, "", first),
    };

    EXPECT(CALL(t, usage_add, adds, ARRAY_SIZE(adds)).r == 0);
    struct ctx_usage u = rig_get(t, a.id).usage;
    EXPECT(u.cpu_us == 11 && u.memory_mib_ms == 22 && u.bytes_in == 33);
    EXPECT(u.bytes_out == 44 && u.executions == 55 && u.sandboxes == 66);
    EXPECT(u.egress_up == 77 && u.egress_down == 88);
    EXPECT(rig_get(t, b.id).usage.sandboxes == 60);
    u = used(t, "2000-01-01", "2999-12-31");
    EXPECT(u.cpu_us == 22 && u.memory_mib_ms == 44 && u.bytes_in == 66);
    EXPECT(u.bytes_out == 88 && u.executions == 110 && u.sandboxes == 132);
    EXPECT(u.egress_up == 154 && u.egress_down == 176);
    EXPECT(CALL(t, usage_add, adds, 1).r == 0);
    EXPECT(used(t, "2000-01-01", "2999-12-31").cpu_us == 23);
    EXPECT(used(t, "2000-01-01", "2001-01-01").cpu_us == 0);
    EXPECT(used(t, "2990-01-01", "2999-12-31").cpu_us == 0);
    EXPECT(used(t, "2999-12-31", "2000-01-01").cpu_us == 0);
    /* It stays when the context has ended. */
    EXPECT(CALL(t, terminate, t->tenant, a.id).r == 0);
    EXPECT(CALL(t, usage_add, adds, 1).r == 0);
    EXPECT(rig_get(t, a.id).usage.cpu_us == 13);
}

/* Over all days. after NULL: the first page. */
static struct ctx_answer talks(struct ctx_rig *t, const char *one, const char *after)
{
    struct ctx_usage_query q = {.tenant = t->tenant,
                                .from = "2000-01-01",
                                .to = "2999-12-31",
                                .by = USAGE_BY_CONVERSATION,
                                .conversation = one,
                                .after = after};

    return CALL(t, usage_get, &q);
}

static void case_usage_of_conversations(struct ctx_rig *t)
{
    struct ctx_row a = rig_ready(t, "alpha", "a"), b = rig_ready(t, "beta", "b"),
                   other = rig_ready(t, "alpha", "c");
    struct ctx_usage_add adds[] = {
        adding(t, a.id, (struct ctx_usage){.cpu_us = 1, .egress_up = 5}),
        adding(t, b.id, (struct ctx_usage){.cpu_us = 20}),
        adding(t, other.id, (struct ctx_usage){.cpu_us = 300, .egress_down = 7}),
        adding(t, "", (struct ctx_usage){.cpu_us = 4000}),
    };

    EXPECT(CALL(t, usage_add, adds, ARRAY_SIZE(adds)).r == 0);
    struct ctx_answer all = talks(t, NULL, NULL);
    EXPECT(all.r == 0 && all.n == 3 && !all.more);
    if (all.n == 3) {
        EXPECT_STR(all.used[0].conversation, "");
        EXPECT_STR(all.used[1].conversation, "alpha");
        EXPECT_STR(all.used[2].conversation, "beta");
        EXPECT(all.used[0].usage.cpu_us == 4000 && all.used[1].usage.cpu_us == 301);
        EXPECT(all.used[1].usage.egress_up == 5 && all.used[1].usage.egress_down == 7);
        EXPECT(all.used[2].usage.cpu_us == 20);
    }
    struct ctx_answer rest = talks(t, NULL, "alpha");
    EXPECT(rest.n == 1 && strcmp(rest.used[0].conversation, "beta") == 0);
    rest = talks(t, NULL, "");
    EXPECT(rest.n == 2 && strcmp(rest.used[0].conversation, "alpha") == 0);
    rest = talks(t, "beta", NULL);
    EXPECT(rest.n == 1 && rest.used[0].usage.cpu_us == 20);
    EXPECT(talks(t, "gamma", NULL).n == 0);
    /* A conversation's days: one, or two at midnight. */
    struct ctx_usage_query q = {
        .tenant = t->tenant, .from = "2000-01-01", .to = "2999-12-31", .conversation = "alpha"};
    struct ctx_answer days = CALL(t, usage_get, &q);
    struct ctx_usage sum = {0};
    for (size_t i = 0; i < days.n; i++) {
        EXPECT_STR(days.used[i].conversation, "alpha");
        EXPECT(strlen(days.used[i].day) == CTX_DAY_LEN);
        ctx_usage_sum(&sum, &days.used[i].usage);
    }
    EXPECT(sum.cpu_us == 301);
    id_random(t->tenant);
    EXPECT(talks(t, NULL, NULL).n == 0);
}

static void case_usage_pages(struct ctx_rig *t)
{
    size_t seen = 0;
    char name[32], last[CTX_NAME_MAX + 1] = "";

    for (int i = 0; i < CTX_LIST_MAX + 5; i++) {
        snprintf(name, sizeof(name), "talk-%04d", i);
        struct ctx_answer a = rig_claim(t, name, "main");
        struct ctx_usage_add add = adding(t, a.row.id, (struct ctx_usage){.executions = 1});
        EXPECT(CALL(t, usage_add, &add, 1).r == 0);
    }
    struct ctx_answer page = talks(t, NULL, NULL);
    EXPECT(page.n == CTX_LIST_MAX && page.more);
    for (;;) {
        seen += page.n;
        for (size_t i = 0; i < page.n; i++) {
            EXPECT(strcmp(page.used[i].conversation, last) > 0);
            snprintf(last, sizeof(last), "%s", page.used[i].conversation);
        }
        if (!page.more)
            break;
        page = talks(t, NULL, last);
    }
    EXPECT(seen == CTX_LIST_MAX + 5);
}

static void case_usage_of_others(struct ctx_rig *t)
{
    char nothing[ID_LEN + 1], first[ID_LEN + 1];
    struct ctx_usage_add two[2];

    id_random(nothing);
    memcpy(first, t->tenant, sizeof(first));
    /* A context that is not there: the tenant's day counts all the same. */
    two[0] = adding(t, nothing, (struct ctx_usage){.executions = 3});
    id_random(t->tenant);
    two[1] = adding(t, "", (struct ctx_usage){.executions = 7});
    EXPECT(CALL(t, usage_add, two, 2).r == 0);
    EXPECT(used(t, "2000-01-01", "2999-12-31").executions == 7);
    memcpy(t->tenant, first, sizeof(first));
    EXPECT(used(t, "2000-01-01", "2999-12-31").executions == 3);
    EXPECT(CALL(t, usage_add, two, 0).r == 0);
}

static void case_usage_is_bounded(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");
    struct ctx_usage_add add = adding(t, row.id, (struct ctx_usage){.cpu_us = UINT64_MAX});

    for (int i = 0; i < 3; i++)
        EXPECT(CALL(t, usage_add, &add, 1).r == 0);
    uint64_t most = rig_get(t, row.id).usage.cpu_us;
    EXPECT(most >= 1ull << 52); /* as much as is kept, and never less than before */
    add.usage.cpu_us = 1;
    EXPECT(CALL(t, usage_add, &add, 1).r == 0);
    EXPECT(rig_get(t, row.id).usage.cpu_us >= most);
}

/* ---- what is old ----------------------------------------------------------------------------- */

/* Until nothing is left to be forgotten; how many calls that took. */
static size_t forget_all(struct ctx_rig *t, uint64_t context_keep_ms, uint64_t usage_keep_ms,
                         size_t limit)
{
    struct ctx_forget q = {
        .context_keep_ms = context_keep_ms, .usage_keep_ms = usage_keep_ms, .limit = limit};
    struct ctx_answer a;
    size_t calls = 0;

    do {
        a = CALL(t, forget, &q);
        EXPECT(a.r == 0);
        q.cursor = a.cursor;
    } while (++calls < 2000 && a.more);
    EXPECT(!a.more);
    return calls;
}

static void case_forget_what_has_ended(struct ctx_rig *t)
{
    struct ctx_row lives = rig_ready(t, "talk", "lives"), last = {0};

    forget_all(t, 1, 0, CTX_LIST_MAX); /* of cases before */
    for (int i = 0; i < 7; i++) {
        char path[16];

        snprintf(path, sizeof(path), "path %d", i);
        last = rig_ready(t, "talk", path);
        EXPECT(CALL(t, terminate, t->tenant, last.id).r == 0);
    }
    struct ctx_answer making = rig_claim(t, "talk", "making");
    last = rig_get(t, last.id);
    /* Not before its time. */
    forget_all(t, 3600000, 0, 3);
    EXPECT(rig_list(t, CTX_ALL).n == 9);
    rig_wait_past(t, last.id, last.terminated_ms + 2);
    EXPECT(forget_all(t, 1, 0, 3) >= 3);
    EXPECT(rig_list(t, CTX_ALL).n == 2);
    EXPECT(rig_get(t, lives.id).status == CTX_READY);
    EXPECT(rig_get(t, making.row.id).status == CTX_CREATING);
    EXPECT(CALL(t, get, t->tenant, last.id).r == -ENOENT);
}

/* A conversation's paths go together, when none of it is left. */
static void case_forget_paths(struct ctx_rig *t)
{
    struct ctx_row lives = rig_ready(t, "in use", "main"), over = rig_ready(t, "over", "main");

    EXPECT(CALL(t, branch, t->tenant, "in use", "main", "side").r == 0);
    EXPECT(CALL(t, branch, t->tenant, "over", "main", "side").r == 0);
    EXPECT(CALL(t, branch, t->tenant, "never used", "main", "side").r == 0);
    over = CALL(t, terminate, t->tenant, over.id).row;
    rig_wait_past(t, lives.id, over.terminated_ms + 2);
    forget_all(t, 3600000, 0, 2);
    EXPECT(CALL(t, paths, t->tenant, "over").n == 2);
    forget_all(t, 1, 0, 2);
    forget_all(t, 1, 0, 2); /* paths follow their contexts at the latest with the next turn */
    EXPECT(CALL(t, paths, t->tenant, "in use").n == 2);
    EXPECT(CALL(t, paths, t->tenant, "over").n == 0);
    EXPECT(CALL(t, paths, t->tenant, "never used").n == 0);
}

static void case_forget_nothing(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");
    struct ctx_usage_add add = adding(t, row.id, (struct ctx_usage){.executions = 3});

    EXPECT(CALL(t, usage_add, &add, 1).r == 0);
    row = CALL(t, terminate, t->tenant, row.id).row;
    rig_wait_past(t, row.id, row.terminated_ms + 2);
    struct ctx_forget never = {.limit = 10};
    struct ctx_answer a = CALL(t, forget, &never);
    EXPECT(a.r == 0 && a.n == 0 && !a.more && a.cursor == 0);
    EXPECT(rig_list(t, CTX_ALL).n == 1);
    /* What was used outlives its context, and today is not old. */
    forget_all(t, 1, 2 * 86400000, 100);
    EXPECT(rig_list(t, CTX_ALL).n == 0);
    EXPECT(used(t, "2000-01-01", "2999-12-31").executions == 3);
}
