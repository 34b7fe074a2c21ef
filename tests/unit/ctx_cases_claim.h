/* Get-or-create: what is found, what is new, who waits, and the limits. */
#pragma once

#include "ctx_rig.h"

#define CTX_CASES_CLAIM(X, kind)           \
    X(kind, new_row_is_complete)           \
    X(kind, ready_is_found_and_moved)      \
    X(kind, found_by_another_node)         \
    X(kind, ttl_of_claims)                 \
    X(kind, expired_is_ended_and_new)      \
    X(kind, expired_in_use_is_found)       \
    X(kind, creating_elsewhere_is_busy)    \
    X(kind, creating_here_is_an_error)     \
    X(kind, lease_runs_out)                \
    X(kind, many_claims_one_new)           \
    X(kind, limit_of_conversation)         \
    X(kind, limit_of_tenant)               \
    X(kind, limit_under_a_crowd)           \
    X(kind, refused_claim_changes_nothing) \
    X(kind, odd_names)

static void case_new_row_is_complete(struct ctx_rig *t)
{
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, "talk", "main", id);
    struct ctx_answer a = CALL(t, claim, &q);
    const struct ctx_row *row = &a.row;

    EXPECT(a.r == 0 && a.claimed == CLAIM_NEW && a.n == 1);
    EXPECT_STR(row->id, id);
    EXPECT_STR(row->tenant, t->tenant);
    EXPECT_STR(row->conversation, "talk");
    EXPECT_STR(row->path, "main");
    EXPECT_STR(row->parent, "");
    EXPECT_STR(row->sandbox_id, "");
    EXPECT_STR(row->template_id, "base");
    EXPECT_STR(row->error, "");
    EXPECT_STR(row->node, t->node);
    EXPECT_STR(row->node_url, RIG_URL);
    EXPECT(row->node_alive && row->status == CTX_CREATING);
    EXPECT(row->ttl_ms == RIG_TTL_MS && row->terminated_ms == 0);
    EXPECT(row->created_ms > 0 && row->used_ms == row->created_ms);
    EXPECT(row->expires_ms == row->used_ms + RIG_TTL_MS && row->now_ms >= row->created_ms);
    EXPECT(row->usage.cpu_us == 0 && row->usage.executions == 0 && row->usage.sandboxes == 0);
    struct ctx_row again = rig_get(t, id);
    EXPECT(again.status == CTX_CREATING && again.expires_ms == row->expires_ms);
    EXPECT_STR(again.template_id, "base");
}

static void case_ready_is_found_and_moved(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, "talk", "main", id);

    rig_wait_past(t, row.id, row.used_ms + 2);
    q.template_id = "another";
    q.limits = (struct ctx_limits){1, 1}; /* it is there: no limit is asked */
    struct ctx_answer a = CALL(t, claim, &q);
    EXPECT(a.r == 0 && a.claimed == CLAIM_FOUND && a.n == 1);
    EXPECT_STR(a.row.id, row.id);
    EXPECT_STR(a.row.sandbox_id, row.sandbox_id);
    EXPECT_STR(a.row.template_id, "base");
    EXPECT(a.row.status == CTX_READY && a.row.created_ms == row.created_ms);
    EXPECT(a.row.used_ms > row.used_ms);
    EXPECT(a.row.expires_ms == a.row.used_ms + RIG_TTL_MS);
    struct ctx_row again = rig_get(t, row.id);
    EXPECT(again.used_ms == a.row.used_ms && again.expires_ms == a.row.expires_ms);
    EXPECT(rig_list(t, CTX_ALL).n == 1);
}

static void case_found_by_another_node(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready(t, "talk", "main");
    char other[ID_LEN + 1];

    id_random(other);
    EXPECT(CALL(t, seen, other, "").r == 0);
    struct ctx_answer a = rig_claim_as(t, other, "talk", "main");
    EXPECT(a.r == 0 && a.claimed == CLAIM_FOUND);
    EXPECT_STR(a.row.sandbox_id, row.sandbox_id);
    EXPECT_STR(a.row.node, t->node);
    EXPECT_STR(a.row.node_url, RIG_URL);
    EXPECT(a.row.node_alive);
}

static void case_ttl_of_claims(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready_ttl(t, "talk", "main", 5000);

    EXPECT(row.ttl_ms == 5000 && row.expires_ms == row.used_ms + 5000);
    struct ctx_answer a = rig_claim(t, "talk", "main");
    EXPECT(a.claimed == CLAIM_FOUND && a.row.ttl_ms == 5000);
    EXPECT(a.row.expires_ms == a.row.used_ms + 5000);
    a = rig_claim_ttl(t, "talk", "main", 9000);
    EXPECT(a.claimed == CLAIM_FOUND && a.row.ttl_ms == 9000);
    EXPECT(a.row.expires_ms == a.row.used_ms + 9000);
    EXPECT(rig_get(t, row.id).ttl_ms == 9000);
}

static void case_expired_is_ended_and_new(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready_ttl(t, "talk", "main", 50);

    rig_wait_past(t, row.id, row.expires_ms);
    EXPECT(rig_get(t, row.id).status == CTX_READY); /* nobody has looked yet */
    struct ctx_answer a = rig_claim_limit(t, "talk", "main", 1, 1);
    EXPECT(a.r == 0 && a.claimed == CLAIM_NEW && strcmp(a.row.id, row.id) != 0);
    EXPECT(a.row.status == CTX_CREATING && a.row.ttl_ms == RIG_TTL_MS);
    struct ctx_row old = rig_get(t, row.id);
    EXPECT(old.status == CTX_TERMINATED && old.terminated_ms >= row.expires_ms);
    EXPECT_STR(old.sandbox_id, row.sandbox_id);
    EXPECT(rig_list(t, CTX_ACTIVE).n == 1 && rig_list(t, CTX_ALL).n == 2);
}

static void case_expired_in_use_is_found(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready_ttl(t, "talk", "main", 50);
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, "talk", "main", id);

    rig_wait_past(t, row.id, row.expires_ms);
    q.in_use = row.sandbox_id;
    struct ctx_answer a = CALL(t, claim, &q);
    EXPECT(a.r == 0 && a.claimed == CLAIM_FOUND);
    EXPECT_STR(a.row.id, row.id);
    EXPECT(a.row.expires_ms == a.row.used_ms + 50 && a.row.used_ms >= row.expires_ms);
    rig_wait_past(t, row.id, a.row.expires_ms);
    q.in_use = "sandbox0000000000009"; /* of an earlier row, perhaps */
    a = CALL(t, claim, &q);
    EXPECT(a.r == 0 && a.claimed == CLAIM_NEW);
    EXPECT(rig_get(t, row.id).status == CTX_TERMINATED);
}

static void case_creating_elsewhere_is_busy(struct ctx_rig *t)
{
    char other[ID_LEN + 1];
    struct ctx_answer a = rig_claim(t, "talk", "main");

    id_random(other);
    struct ctx_answer b = rig_claim_as(t, other, "talk", "main");
    EXPECT(b.r == 0 && b.claimed == CLAIM_BUSY && b.n == 1);
    EXPECT_STR(b.row.id, a.row.id);
    EXPECT_STR(b.row.node, t->node);
    EXPECT(b.row.status == CTX_CREATING);
    EXPECT(CALL(t, settle, t->tenant, a.row.id, t->node, "sandbox0000000000001", NULL, NULL).r ==
           0);
    b = rig_claim_as(t, other, "talk", "main");
    EXPECT(b.claimed == CLAIM_FOUND);
    EXPECT_STR(b.row.sandbox_id, "sandbox0000000000001");
}

static void case_creating_here_is_an_error(struct ctx_rig *t)
{
    struct ctx_answer a = rig_claim(t, "talk", "main");
    struct ctx_answer b = rig_claim(t, "talk", "main");

    EXPECT(b.r == 0 && b.claimed == CLAIM_NEW && strcmp(a.row.id, b.row.id) != 0);
    struct ctx_row old = rig_get(t, a.row.id);
    EXPECT(old.status == CTX_ERROR && old.terminated_ms > 0 && old.error[0]);
    EXPECT(CALL(t, settle, t->tenant, a.row.id, t->node, "sandbox0000000000001", NULL, NULL).r ==
           -ESTALE);
    EXPECT(CALL(t, settle, t->tenant, b.row.id, t->node, "sandbox0000000000002", NULL, NULL).r ==
           0);
}

static void case_lease_runs_out(struct ctx_rig *t)
{
    char other[ID_LEN + 1], id[ID_LEN + 1];
    struct ctx_answer a = rig_claim(t, "talk", "main");
    struct ctx_claim q = rig_ask(t, "talk", "main", id);

    id_random(other);
    q.node = other;
    q.lease_ms = 50;
    rig_wait_past(t, a.row.id, a.row.created_ms + 50);
    struct ctx_answer b = CALL(t, claim, &q);
    EXPECT(b.r == 0 && b.claimed == CLAIM_NEW);
    EXPECT_STR(b.row.node, other);
    EXPECT(rig_get(t, a.row.id).status == CTX_ERROR);
    /* The first comes back, too late. */
    EXPECT(CALL(t, settle, t->tenant, a.row.id, t->node, "sandbox0000000000001", NULL, NULL).r ==
           -ESTALE);
    EXPECT(CALL(t, settle, t->tenant, b.row.id, t->node, "sandbox0000000000001", NULL, NULL).r ==
           -ESTALE);
    EXPECT(CALL(t, settle, t->tenant, b.row.id, other, "sandbox0000000000002", NULL, NULL).r == 0);
}

/* ---- crowds ---------------------------------------------------------------------------------- */

struct crowd {
    int came, n_new, busy, over;
    char winner[ID_LEN + 1];
    char seen[ID_LEN + 1]; /* whom those who wait were told of */
};

static inline void crowd_done(void *arg, const struct ctx_reply *reply)
{
    struct crowd *c = arg;

    c->came++;
    if (reply->r == -EDQUOT) {
        c->over++;
        return;
    }
    EXPECT(reply->r == 0 && reply->n == 1);
    if (reply->r < 0)
        return;
    c->n_new += reply->claimed == CLAIM_NEW;
    c->busy += reply->claimed == CLAIM_BUSY;
    snprintf(reply->claimed == CLAIM_NEW ? c->winner : c->seen, ID_LEN + 1, "%s",
             reply->rows[0].id);
}

#define CROWD 32

static void case_many_claims_one_new(struct ctx_rig *t)
{
    struct crowd c = {0};

    for (int i = 0; i < CROWD; i++) {
        char id[ID_LEN + 1], node[ID_LEN + 1];
        struct ctx_claim q = rig_ask(t, "talk", "main", id);

        id_random(node);
        q.node = node;
        t->s->ops->claim(t->s, &q, crowd_done, &c);
        memset(id, 'x', ID_LEN); /* what was pointed to has been read */
        memset(node, 'x', ID_LEN);
    }
    EXPECT(c.came == 0);
    rig_run_until(t->loop, &c.came, CROWD);
    EXPECT(c.n_new == 1 && c.busy == CROWD - 1);
    EXPECT_STR(c.winner, c.seen);
    struct ctx_answer all = rig_list(t, CTX_ALL);
    EXPECT(all.n == 1 && all.row.status == CTX_CREATING);
    EXPECT_STR(all.row.id, c.winner);
}

static void case_limit_of_conversation(struct ctx_rig *t)
{
    EXPECT(rig_claim_limit(t, "talk", "a", 10, 2).claimed == CLAIM_NEW);
    EXPECT(rig_claim_limit(t, "talk", "b", 10, 2).r == 0);
    struct ctx_answer a = rig_claim_limit(t, "talk", "c", 10, 2);
    EXPECT(a.r == -EDQUOT && a.e.kind == SG_ERR_LIMIT);
    EXPECT(strstr(a.e.message, "2") && strstr(a.e.message, "conversation"));
    a = rig_claim_limit(t, "other talk", "c", 10, 2);
    EXPECT(a.r == 0 && a.claimed == CLAIM_NEW);
    EXPECT(rig_list(t, CTX_ALL).n == 3);
}

static void case_limit_of_tenant(struct ctx_rig *t)
{
    char other[ID_LEN + 1];
    struct ctx_row first = rig_ready(t, "talk", "a");
    struct ctx_answer a = rig_claim_limit(t, "talk 2", "b", 2, 2);

    EXPECT(a.r == 0 && a.claimed == CLAIM_NEW);
    a = rig_claim_limit(t, "talk 3", "c", 2, 2);
    EXPECT(a.r == -EDQUOT && a.e.kind == SG_ERR_LIMIT);
    EXPECT(strstr(a.e.message, "2") && strstr(a.e.message, "tenant"));
    /* What ends makes room; what another tenant has takes none. */
    EXPECT(CALL(t, terminate, t->tenant, first.id).r == 0);
    EXPECT(rig_claim_limit(t, "talk 3", "c", 2, 2).r == 0);
    EXPECT(rig_claim_limit(t, "talk 4", "d", 2, 2).r == -EDQUOT);
    memcpy(other, t->tenant, sizeof(other));
    id_random(t->tenant);
    EXPECT(rig_claim_limit(t, "talk 4", "d", 1, 1).claimed == CLAIM_NEW);
    memcpy(t->tenant, other, sizeof(other));
}

static void case_limit_under_a_crowd(struct ctx_rig *t)
{
    struct crowd c = {0};

    for (int i = 0; i < CROWD; i++) {
        char id[ID_LEN + 1], path[32];
        struct ctx_claim q = rig_ask(t, "talk", path, id);

        snprintf(path, sizeof(path), "path %d", i);
        q.limits = (struct ctx_limits){3, 5};
        t->s->ops->claim(t->s, &q, crowd_done, &c);
    }
    rig_run_until(t->loop, &c.came, CROWD);
    EXPECT(c.n_new == 3 && c.over == CROWD - 3);
    EXPECT(rig_list(t, CTX_ALL).n == 3);
}

static void case_refused_claim_changes_nothing(struct ctx_rig *t)
{
    struct ctx_row row = rig_ready_ttl(t, "talk", "a", 50);

    EXPECT(rig_claim(t, "talk", "b").claimed == CLAIM_NEW);
    rig_wait_past(t, row.id, row.expires_ms);
    EXPECT(rig_claim_limit(t, "talk", "a", 1, 1).r == -EDQUOT);
    struct ctx_row now = rig_get(t, row.id);
    EXPECT(now.status == CTX_READY && now.expires_ms == row.expires_ms);
    EXPECT_STR(now.sandbox_id, row.sandbox_id);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void case_odd_names(struct ctx_rig *t)
{
    static char longest[CTX_NAME_MAX + 1], wide[CTX_NAME_MAX + 1];
    static const char *const names[] = {
        "'; DROP TABLE context; --",
        "%",
        "_",
        "100%s%n",
        "\"quoted\" \\ back",
        "$1 ?1 :a @b",
        "{\"json\": [1]}",
        "a,b",
        "Stra\xc3\x9f"
        "e \xf0\x9f\x90\xa6 \xe6\xbc\xa2",
        "NULL",
        " ",
        "Talk",
        "talk",
        longest,
        wide,
    };
    size_t n = ARRAY_SIZE(names);
    char ids[ARRAY_SIZE(names)][ID_LEN + 1];

    memset(longest, 'y', CTX_NAME_MAX);
    for (size_t i = 0; i < CTX_NAME_MAX; i += 2)
        memcpy(wide + i, "\xc3\xa4", 2);
    for (size_t i = 0; i < n; i++) {
        struct ctx_row row = rig_ready(t, names[i], names[n - 1 - i]);

        EXPECT_STR(row.conversation, names[i]);
        EXPECT_STR(row.path, names[n - 1 - i]);
        memcpy(ids[i], row.id, sizeof(ids[i]));
    }
    for (size_t i = 0; i < n; i++) {
        struct ctx_answer a = rig_claim(t, names[i], names[n - 1 - i]);
        struct ctx_list q = {.tenant = t->tenant,
                             .conversation = names[i],
                             .statuses = CTX_ALL,
                             .before_id = "",
                             .limit = 10};

        EXPECT(a.claimed == CLAIM_FOUND);
        EXPECT_STR(a.row.id, ids[i]);
        a = CALL(t, list, &q);
        EXPECT(a.n == 1);
        EXPECT_STR(a.row.id, ids[i]);
        a = CALL(t, paths, t->tenant, names[i]);
        EXPECT(a.n == 1 && strcmp(a.paths[0].path, names[n - 1 - i]) == 0);
    }
    EXPECT(rig_list(t, CTX_ALL).n == n);
}
