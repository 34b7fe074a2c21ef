/* One row from its beginning to its end: settle, replace, lost, touch, terminate, expire, recover.
 */
#pragma once

#include "ctx_rig.h"

#define CTX_CASES_LIFE(X, kind)           \
    X(kind, settle_makes_ready)           \
    X(kind, settle_makes_error)           \
    X(kind, settle_is_the_makers)         \
    X(kind, settle_after_the_end)         \
    X(kind, replace_makes_it_anew)        \
    X(kind, replace_is_for_what_was_seen) \
    X(kind, replace_has_a_lease)          \
    X(kind, lost_frees_the_quota)         \
    X(kind, lost_of_another_sandbox)      \
    X(kind, touch_moves_the_end)          \
    X(kind, touch_is_for_the_ready)       \
    X(kind, terminate_twice)              \
    X(kind, terminate_what_is_made)       \
    X(kind, expire_in_batches)            \
    X(kind, expire_leaves_other_nodes)    \
    X(kind, expire_of_dead_nodes)         \
    X(kind, expire_what_was_never_made)   \
    X(kind, expire_of_all_tenants)        \
    X(kind, recover_after_a_crash)        \
    X(kind, recover_of_dead_sandboxes)    \
    X(kind, kept_until_the_end)           \
    X(kind, kept_is_long)                 \
    X(kind, kept_follows_a_change)        \
    X(kind, seen_tells_where)             \
    X(kind, leaving_is_dying_at_once)

#define SANDBOX_A "sandboxaaaaaaaaaaaaa"
#define SANDBOX_B "sandboxbbbbbbbbbbbbb"

static void case_settle_makes_ready(struct ctx_rig *t)
{
    struct ctx_answer a = rig_claim_ttl(t, "talk", "main", 30000);
    int64_t before = a.row.used_ms;

    rig_wait_past(t, a.row.id, before + 5);
    a = CALL(t, settle, t->tenant, a.row.id, t->node, SANDBOX_A, NULL, NULL);
    EXPECT(a.r == 0 && a.n == 1 && a.row.status == CTX_READY);
    EXPECT_STR(a.row.sandbox_id, SANDBOX_A);
    EXPECT_STR(a.row.error, "");
    /* The time that making took is not taken off its life. */
    EXPECT(a.row.used_ms > before && a.row.expires_ms == a.row.used_ms + 30000);
    EXPECT(a.row.terminated_ms == 0);
    EXPECT(CALL(t, settle, t->tenant, a.row.id, t->node, SANDBOX_B, NULL, NULL).r == -ESTALE);
    EXPECT_STR(rig_get(t, a.row.id).sandbox_id, SANDBOX_A);
}

static void case_settle_makes_error(struct ctx_rig *t)
{
    static char endless[1000];
    struct ctx_answer a = rig_claim(t, "talk", "main");

    a = CALL(t, settle, t->tenant, a.row.id, t->node, NULL, "no\nroom: 'all' is \"full\"", NULL);
    EXPECT(a.r == 0 && a.row.status == CTX_ERROR && a.row.terminated_ms > 0);
    EXPECT_STR(a.row.error, "no room: 'all' is \"full\"");
    EXPECT_STR(a.row.sandbox_id, "");
    EXPECT(rig_list(t, CTX_ACTIVE).n == 0 && rig_list(t, 1u << CTX_ERROR).n == 1);
    a = rig_claim_limit(t, "talk", "main", 1, 1);
    EXPECT(a.r == 0 && a.claimed == CLAIM_NEW);
    /* Cut, between characters. */
    memset(endless, 'e', sizeof(endless) - 1);
    memcpy(endless + CTX_ERROR_MAX - 1, "\xe2\x82\xac", 3);
    a = CALL(t, settle, t->tenant, a.row.id, t->node, NULL, endless, NULL);
    EXPECT(a.r == 0 && strlen(a.row.error) == CTX_ERROR_MAX - 1);
}

static void case_settle_is_the_makers(struct ctx_rig *t)
{
    char other[ID_LEN + 1], nothing[ID_LEN + 1];
    struct ctx_answer a = rig_claim(t, "talk", "main");

    id_random(other);
    id_random(nothing);
    EXPECT(CALL(t, settle, t->tenant, a.row.id, other, SANDBOX_A, NULL, NULL).r == -ESTALE);
    EXPECT(CALL(t, settle, other, a.row.id, t->node, SANDBOX_A, NULL, NULL).r == -ESTALE);
    EXPECT(CALL(t, settle, t->tenant, nothing, t->node, SANDBOX_A, NULL, NULL).r == -ESTALE);
    EXPECT(CALL(t, settle, t->tenant, a.row.id, other, NULL, "no", NULL).r == -ESTALE);
    EXPECT(CALL(t, settle, other, a.row.id, t->node, NULL, "no", NULL).r == -ESTALE);
    EXPECT(rig_get(t, a.row.id).status == CTX_CREATING);
}

static void case_settle_after_the_end(struct ctx_rig *t)
{
    struct ctx_answer a = rig_claim(t, "talk", "main");
    struct ctx_answer end = CALL(t, terminate, t->tenant, a.row.id);

    EXPECT(end.r == 0 && end.row.status == CTX_TERMINATED);
    EXPECT(CALL(t, settle, t->tenant, a.row.id, t->node, SANDBOX_A, NULL, NULL).r == -ESTALE);
    EXPECT(CALL(t, settle, t->tenant, a.row.id, t->node, NULL, "late", NULL).r == -ESTALE);
    struct ctx_row row = rig_get(t, a.row.id);
    EXPECT(row.status == CTX_TERMINATED && row.terminated_ms == end.row.terminated_ms);
    EXPECT_STR(row.sandbox_id, "");
    EXPECT_STR(row.error, "");
}

/* ---- replace and lost ------------------------------------------------------------------------ */

static const struct ctx_limits plenty = {1000, 1000}, one_only = {1, 1};

static void case_replace_makes_it_anew(struct ctx_rig *t)
{
    char other[ID_LEN + 1];
    struct ctx_row row = rig_ready(t, "talk", "main");

    id_random(other);
    /* It is counted already, so the limits do not matter. */
    struct ctx_answer a = CALL(t, replace, t->tenant, row.id, row.sandbox_id, other, &one_only);
    EXPECT(a.r == 0 && a.n == 1 && a.row.status == CTX_CREATING);
    EXPECT_STR(a.row.id, row.id);
    EXPECT_STR(a.row.sandbox_id, "");
    EXPECT_STR(a.row.node, other);
    EXPECT(a.row.created_ms == row.created_ms);
    a = rig_claim(t, "talk", "main");
    EXPECT(a.claimed == CLAIM_BUSY);
    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, SANDBOX_A, NULL, NULL).r == -ESTALE);
    a = CALL(t, settle, t->tenant, row.id, other, SANDBOX_B, NULL, NULL);
    EXPECT(a.r == 0 && a.row.status == CTX_READY);
    EXPECT_STR(a.row.sandbox_id, SANDBOX_B);
    EXPECT(rig_list(t, CTX_ALL).n == 1);
}

static void case_replace_is_for_what_was_seen(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");

    EXPECT(CALL(t, replace, t->tenant, row.id, SANDBOX_B, t->node, &plenty).r == -ESTALE);
    EXPECT(CALL(t, replace, t->tenant, row.id, "", t->node, &plenty).r == -ESTALE);
    EXPECT(CALL(t, replace, t->node, row.id, row.sandbox_id, t->node, &plenty).r == -ESTALE);
    EXPECT_STR(rig_get(t, row.id).sandbox_id, row.sandbox_id);
    /* The second of two who saw the same. */
    EXPECT(CALL(t, replace, t->tenant, row.id, row.sandbox_id, t->node, &plenty).r == 0);
    EXPECT(CALL(t, replace, t->tenant, row.id, row.sandbox_id, t->node, &plenty).r == -ESTALE);
    EXPECT(CALL(t, replace, t->tenant, row.id, "", t->node, &plenty).r == -ESTALE);
    EXPECT(CALL(t, terminate, t->tenant, row.id).r == 0);
    EXPECT(CALL(t, replace, t->tenant, row.id, "", t->node, &plenty).r == -ESTALE);
}

/* From the replacing on, not from when the row was made. */
static void case_replace_has_a_lease(struct ctx_rig *t)
{
    char other[ID_LEN + 1], id[ID_LEN + 1];
    struct ctx_row row = rig_ready(t, "talk", "main");
    struct ctx_claim q = rig_ask(t, "talk", "main", id);

    id_random(other);
    q.node = other;
    q.lease_ms = 2000;
    rig_wait_past(t, row.id, row.created_ms + 2000);
    EXPECT(CALL(t, replace, t->tenant, row.id, row.sandbox_id, t->node, &plenty).r == 0);
    struct ctx_answer a = CALL(t, claim, &q);
    EXPECT(a.r == 0 && a.claimed == CLAIM_BUSY);
    a = CALL(t, expire, t->node, t->tenant, 2000, 10);
    EXPECT(a.r == 0 && a.n == 0);
}

static void case_lost_frees_the_quota(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "a");

    EXPECT(rig_claim_limit(t, "talk", "b", 1, 1).r == -EDQUOT);
    EXPECT(CALL(t, lost, t->tenant, row.id, row.sandbox_id).r == 0);
    struct ctx_row now = rig_get(t, row.id);
    EXPECT(now.status == CTX_READY && now.expires_ms == row.expires_ms);
    EXPECT_STR(now.sandbox_id, "");
    struct ctx_answer a = rig_claim(t, "talk", "a");
    EXPECT(a.r == 0 && a.claimed == CLAIM_FOUND);
    EXPECT_STR(a.row.sandbox_id, "");
    EXPECT(rig_claim_limit(t, "talk", "b", 1, 1).claimed == CLAIM_NEW);
    /* Now its place is taken. */
    a = CALL(t, replace, t->tenant, row.id, "", t->node, &one_only);
    EXPECT(a.r == -EDQUOT && rig_get(t, row.id).status == CTX_READY);
    a = CALL(t, replace, t->tenant, row.id, "", t->node, &plenty);
    EXPECT(a.r == 0 && a.row.status == CTX_CREATING);
}

static void case_lost_of_another_sandbox(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");

    EXPECT(CALL(t, lost, t->tenant, row.id, SANDBOX_B).r == 0);
    EXPECT(CALL(t, lost, t->node, row.id, row.sandbox_id).r == 0);
    EXPECT_STR(rig_get(t, row.id).sandbox_id, row.sandbox_id);
    EXPECT(CALL(t, terminate, t->tenant, row.id).r == 0);
    EXPECT(CALL(t, lost, t->tenant, row.id, row.sandbox_id).r == 0);
    EXPECT(rig_get(t, row.id).status == CTX_TERMINATED);
    EXPECT_STR(rig_get(t, row.id).sandbox_id, row.sandbox_id);
}

/* ---- touch and terminate --------------------------------------------------------------------- */

static void case_touch_moves_the_end(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready_ttl(t, "talk", "main", 20000);

    rig_wait_past(t, row.id, row.used_ms + 2);
    struct ctx_answer a = CALL(t, touch, t->tenant, row.id, 0);
    EXPECT(a.r == 0 && a.n == 1 && a.row.used_ms > row.used_ms && a.row.ttl_ms == 20000);
    EXPECT(a.row.expires_ms == a.row.used_ms + 20000);
    EXPECT_STR(a.row.sandbox_id, row.sandbox_id);
    a = CALL(t, touch, t->tenant, row.id, 50);
    EXPECT(a.r == 0 && a.row.ttl_ms == 50 && a.row.expires_ms == a.row.used_ms + 50);
    EXPECT(rig_get(t, row.id).expires_ms == a.row.expires_ms);
    /* It is in use, whatever the time says, until somebody ends it. */
    rig_wait_past(t, row.id, a.row.expires_ms);
    a = CALL(t, touch, t->tenant, row.id, 20000);
    EXPECT(a.r == 0 && a.row.status == CTX_READY);
    EXPECT(rig_expire(t, 10).n == 0);
}

static void case_touch_is_for_the_ready(struct ctx_rig *t)
{
    char nothing[ID_LEN + 1];
    struct ctx_answer a = rig_claim(t, "talk", "a");
    struct ctx_row row = rig_ready(t, "talk", "b");

    id_random(nothing);
    EXPECT(CALL(t, touch, t->tenant, nothing, 0).r == -ENOENT);
    EXPECT(CALL(t, touch, t->tenant, a.row.id, 0).r == -ENOENT);
    EXPECT(CALL(t, touch, t->node, row.id, 0).r == -ENOENT);
    EXPECT(CALL(t, terminate, t->tenant, row.id).r == 0);
    a = CALL(t, touch, t->tenant, row.id, 0);
    EXPECT(a.r == -ENOENT && a.e.kind == SG_ERR_NOT_FOUND);
    EXPECT(rig_get(t, row.id).used_ms == row.used_ms);
}

static void case_terminate_twice(struct ctx_rig *t)
{
    char nothing[ID_LEN + 1];
    struct ctx_row row = rig_ready(t, "talk", "main");
    struct ctx_answer a = CALL(t, terminate, t->tenant, row.id);

    EXPECT(a.r == 0 && a.n == 1 && a.row.status == CTX_TERMINATED);
    EXPECT(a.row.terminated_ms >= row.created_ms);
    EXPECT_STR(a.row.sandbox_id, row.sandbox_id);
    rig_wait_past(t, row.id, a.row.terminated_ms + 2);
    struct ctx_answer again = CALL(t, terminate, t->tenant, row.id);
    EXPECT(again.r == 0 && again.row.status == CTX_TERMINATED);
    EXPECT(again.row.terminated_ms == a.row.terminated_ms);
    id_random(nothing);
    EXPECT(CALL(t, terminate, t->tenant, nothing).r == -ENOENT);
    EXPECT(CALL(t, get, t->tenant, nothing).r == -ENOENT);
    a = rig_claim(t, "talk", "main");
    EXPECT(a.claimed == CLAIM_NEW && strcmp(a.row.id, row.id) != 0);
}

static void case_terminate_what_is_made(struct ctx_rig *t)
{
    struct ctx_answer a = rig_claim(t, "talk", "main");
    struct ctx_row row = a.row;

    a = CALL(t, terminate, t->tenant, row.id);
    EXPECT(a.r == 0 && a.row.status == CTX_TERMINATED && a.row.terminated_ms > 0);
    a = rig_claim(t, "talk", "main");
    EXPECT(a.claimed == CLAIM_NEW);
    row = a.row;
    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, NULL, "no", NULL).r == 0);
    a = CALL(t, terminate, t->tenant, row.id);
    EXPECT(a.r == 0 && a.row.status == CTX_ERROR);
    EXPECT_STR(a.row.error, "no");
}

/* ---- expire, recover, seen ------------------------------------------------------------------- */

static void case_expire_in_batches(struct ctx_rig *t)
{
    struct ctx_row live = rig_ready(t, "live", "main"), last = {0};
    size_t ended = 0;

    for (int i = 0; i < 7; i++) {
        char path[32];

        snprintf(path, sizeof(path), "path %d", i);
        last = rig_ready_ttl(t, "talk", path, 50);
    }
    rig_wait_past(t, last.id, last.expires_ms);
    for (int i = 0; i < 3; i++) {
        struct ctx_answer a = rig_expire(t, 3);

        EXPECT(a.r == 0 && a.n == (i < 2 ? 3u : 1u));
        for (size_t k = 0; k < a.n; k++) {
            EXPECT(a.rows[k].status == CTX_TERMINATED && a.rows[k].terminated_ms > 0);
            EXPECT(a.rows[k].sandbox_id[0] && strcmp(a.rows[k].id, live.id) != 0);
            EXPECT_STR(a.rows[k].tenant, t->tenant);
        }
        ended += a.n;
    }
    EXPECT(ended == 7 && rig_expire(t, 3).n == 0);
    struct ctx_answer left = rig_list(t, CTX_ACTIVE);
    EXPECT(left.n == 1 && strcmp(left.row.id, live.id) == 0);
}

static void case_expire_leaves_other_nodes(struct ctx_rig *t)
{
    char other[ID_LEN + 1];
    struct ctx_row row = rig_ready_ttl(t, "talk", "main", 50);

    id_random(other);
    EXPECT(CALL(t, seen, other, "").r == 0);
    rig_wait_past(t, row.id, row.expires_ms);
    struct ctx_answer a = CALL(t, expire, other, t->tenant, RIG_LEASE_MS, 10);
    EXPECT(a.r == 0 && a.n == 0);
    EXPECT(rig_get(t, row.id).status == CTX_READY);
    a = rig_expire(t, 10);
    EXPECT(a.n == 1 && rig_has(&a, row.id));
}

/* One that has never said that it lives is dead. */
static void case_expire_of_dead_nodes(struct ctx_rig *t)
{
    char living[ID_LEN + 1];

    memcpy(living, t->node, sizeof(living));
    id_random(t->node);
    struct ctx_row row = rig_ready_ttl(t, "talk", "main", 50), fresh = rig_ready(t, "talk", "b");
    EXPECT(!row.node_alive && row.node_url[0] == '\0');
    rig_wait_past(t, row.id, row.expires_ms);
    memcpy(t->node, living, sizeof(living));
    struct ctx_answer a = rig_expire(t, 10);
    EXPECT(a.r == 0 && a.n == 1 && rig_has(&a, row.id));
    EXPECT(rig_get(t, fresh.id).status == CTX_READY);
}

static void case_expire_what_was_never_made(struct ctx_rig *t)
{
    struct ctx_answer a = rig_claim(t, "talk", "main");
    struct ctx_row row = a.row;

    EXPECT(rig_expire(t, 10).n == 0);
    rig_wait_past(t, row.id, row.created_ms + 50);
    a = CALL(t, expire, t->node, t->tenant, 50, 10);
    EXPECT(a.r == 0 && a.n == 1 && rig_has(&a, row.id));
    EXPECT(a.row.status == CTX_ERROR && a.row.terminated_ms > 0 && a.row.error[0]);
    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, SANDBOX_A, NULL, NULL).r == -ESTALE);
}

static void case_expire_of_all_tenants(struct ctx_rig *t)
{
    char first[ID_LEN + 1];
    struct ctx_row a = rig_ready_ttl(t, "talk", "main", 50);

    memcpy(first, t->tenant, sizeof(first));
    id_random(t->tenant);
    struct ctx_row b = rig_ready_ttl(t, "talk", "main", 50);
    rig_wait_past(t, b.id, b.expires_ms);
    bool has_a = false, has_b = false;
    for (;;) { /* others may have left some, of nodes that are dead */
        struct ctx_answer r = CALL(t, expire, t->node, NULL, RIG_LEASE_MS, CTX_LIST_MAX);

        EXPECT(r.r == 0);
        has_a = has_a || rig_has(&r, a.id);
        has_b = has_b || rig_has(&r, b.id);
        if (r.n == 0)
            break;
    }
    EXPECT(has_a && has_b);
    memcpy(t->tenant, first, sizeof(first));
}

static void case_recover_after_a_crash(struct ctx_rig *t)
{
    char other[ID_LEN + 1];
    struct ctx_row ready = rig_ready(t, "talk", "ready");
    struct ctx_answer half = rig_claim(t, "talk", "half");
    struct ctx_row replaced = rig_ready(t, "talk", "replaced");
    const char *const still[] = {ready.sandbox_id};

    id_random(other);
    struct ctx_answer theirs = rig_claim_as(t, other, "talk", "theirs");
    EXPECT(CALL(t, replace, t->tenant, replaced.id, replaced.sandbox_id, t->node, &plenty).r == 0);
    struct ctx_answer a = CALL(t, recover, t->node, still, 1);
    EXPECT(a.r == 0 && a.n == 2);
    EXPECT(rig_has(&a, half.row.id) && rig_has(&a, replaced.id));
    EXPECT(a.row.status == CTX_ERROR && a.row.error[0] && a.row.terminated_ms > 0);
    EXPECT(rig_get(t, ready.id).status == CTX_READY);
    EXPECT(rig_get(t, theirs.row.id).status == CTX_CREATING);
    a = CALL(t, recover, t->node, still, 1);
    EXPECT(a.r == 0 && a.n == 0);
    EXPECT(rig_claim(t, "talk", "half").claimed == CLAIM_NEW);
}

/* Sandboxes end with their server: its rows must not say that they are there. */
static void case_recover_of_dead_sandboxes(struct ctx_rig *t)
{
    char other[ID_LEN + 1];
    struct ctx_row alive = rig_ready(t, "talk", "alive"), dead = rig_ready(t, "talk", "dead");
    const char *const still[] = {alive.sandbox_id, SANDBOX_A};

    id_random(other);
    struct ctx_answer a = rig_claim_as(t, other, "talk", "theirs");
    struct ctx_row theirs = CALL(t, settle, t->tenant, a.row.id, other, SANDBOX_B, NULL, NULL).row;
    a = CALL(t, recover, t->node, still, 2);
    EXPECT(a.r == 0 && a.n == 1 && rig_has(&a, dead.id));
    EXPECT_STR(a.row.sandbox_id, dead.sandbox_id);
    EXPECT_STR(rig_get(t, alive.id).sandbox_id, alive.sandbox_id);
    EXPECT_STR(rig_get(t, theirs.id).sandbox_id, SANDBOX_B);
    dead = rig_get(t, dead.id);
    EXPECT(dead.status == CTX_READY && !dead.sandbox_id[0]);
    /* None at all: of a server that was started anew. */
    a = CALL(t, recover, t->node, NULL, 0);
    EXPECT(a.r == 0 && a.n == 1 && rig_has(&a, alive.id));
    EXPECT_STR(rig_get(t, alive.id).sandbox_id, "");
    EXPECT(rig_claim(t, "talk", "alive").claimed == CLAIM_FOUND);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* "": nothing. */
static const char *kept_of(struct ctx_rig *t, const char *id, const char *sandbox_id)
{
    struct ctx_answer a = CALL(t, replace, t->tenant, id, sandbox_id, t->node, &plenty);

    EXPECT(a.r == 0);
    return a.kept_text ? a.kept_text : "";
}

static void case_kept_until_the_end(struct ctx_rig *t)
{
    struct ctx_row row = rig_claim(t, "talk", "main").row;

    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, SANDBOX_A, NULL, "sealed 'one'").r == 0);
    EXPECT_STR(kept_of(t, row.id, SANDBOX_A), "sealed 'one'");
    /* The next sandbox says nothing of it: it stays. */
    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, SANDBOX_B, NULL, NULL).r == 0);
    EXPECT(CALL(t, lost, t->tenant, row.id, SANDBOX_B).r == 0);
    EXPECT_STR(kept_of(t, row.id, ""), "sealed 'one'");
    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, SANDBOX_A, NULL, "another").r == 0);
    EXPECT_STR(kept_of(t, row.id, SANDBOX_A), "another");
    EXPECT(CALL(t, terminate, t->tenant, row.id).r == 0);
    /* A path that begins anew has nothing of the one before. */
    struct ctx_row next = rig_ready(t, "talk", "main");
    EXPECT_STR(kept_of(t, next.id, next.sandbox_id), "");
    EXPECT(strcmp(next.id, row.id) != 0);
}

static void case_kept_is_long(struct ctx_rig *t)
{
    struct ctx_row row = rig_claim(t, "talk", "main").row;
    AUTO(free_p) char *text = xcalloc(1, CTX_KEPT_MAX + 1);

    for (size_t i = 0; i < CTX_KEPT_MAX; i++)
        text[i] = (char)('a' + i % 23);
    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, SANDBOX_A, NULL, text).r == 0);
    EXPECT(strcmp(kept_of(t, row.id, SANDBOX_A), text) == 0);
}

static void case_kept_follows_a_change(struct ctx_rig *t)
{
    struct ctx_row row = rig_claim(t, "talk", "main").row;
    char other[ID_LEN + 1];

    EXPECT(CALL(t, keep, t->tenant, row.id, SANDBOX_A, "too early").r == -ESTALE);
    EXPECT(CALL(t, settle, t->tenant, row.id, t->node, SANDBOX_A, NULL, "first").r == 0);
    struct ctx_answer a = CALL(t, keep, t->tenant, row.id, SANDBOX_A, "second");
    EXPECT(a.r == 0 && a.n == 1 && a.row.status == CTX_READY);
    EXPECT(CALL(t, keep, t->tenant, row.id, SANDBOX_B, "of another sandbox").r == -ESTALE);
    id_random(other);
    EXPECT(CALL(t, keep, other, row.id, SANDBOX_A, "of another tenant").r == -ESTALE);
    EXPECT_STR(kept_of(t, row.id, SANDBOX_A), "second");
    EXPECT(CALL(t, keep, t->tenant, row.id, SANDBOX_A, "while it is replaced").r == -ESTALE);
    /* One that was made with nothing to keep may get something. */
    struct ctx_row bare = rig_ready(t, "talk", "bare");
    EXPECT(CALL(t, keep, t->tenant, bare.id, bare.sandbox_id, "later").r == 0);
    EXPECT(CALL(t, terminate, t->tenant, bare.id).r == 0);
    EXPECT(CALL(t, keep, t->tenant, bare.id, bare.sandbox_id, "too late").r == -ESTALE);
}

static void case_seen_tells_where(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");

    EXPECT(CALL(t, seen, t->node, "https://moved.example").r == 0);
    row = rig_get(t, row.id);
    EXPECT_STR(row.node_url, "https://moved.example");
    EXPECT(row.node_alive);
    EXPECT(CALL(t, seen, t->node, "").r == 0);
    EXPECT_STR(rig_get(t, row.id).node_url, "");
}

/* A server that ends in order: its rows are anybody's at once. */
static void case_leaving_is_dying_at_once(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");

    EXPECT(CALL(t, seen, t->node, "https://here.example").r == 0);
    row = rig_get(t, row.id);
    EXPECT(row.node_alive && row.sandbox_id[0]);
    EXPECT(CALL(t, leave, t->node).r == 0);
    row = rig_get(t, row.id);
    EXPECT(!row.node_alive && !row.sandbox_id[0] && row.status == CTX_READY);
    EXPECT(CALL(t, seen, t->node, "https://here.example").r == 0);
    EXPECT(rig_get(t, row.id).node_alive);
}
