/* Paths that come from others, messages, and copies side by side: what the manager of contexts
 * makes of checkpoints. */
#include "tap.h"

#include "context_rig.h"
#include "fork_agents.h"
#include "front/core/call.h"

__attribute__((constructor)) static void agents_begin(void)
{
    fork_agents_start();
}

/* ---- branches -------------------------------------------------------------------------------- */

TEST(several_branch_from_one_parent_at_a_time)
{
    static const char *const names[] = {"one", "two", "three"};
    static struct asked a[ARRAY_SIZE(names)];

    begin();
    obtain("twigs", "main");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct context_ask q = {.tenant = &server.acme_tenant,
                                .conversation = "twigs",
                                .path = names[i],
                                .spec = make_spec};
        a[i] = (struct asked){0};
        context_branch(&server.front, &q,
                       &(struct context_from){.path = "main", .inherit = INHERIT_FILES}, on_answer,
                       &a[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        turn_until(&a[i].came);
        EXPECT(a[i].r == 0 && a[i].created);
    }
    EXPECT(orders(ORDER_CHECKPOINT) == ARRAY_SIZE(names));
}

static void branch_with(struct asked *a, const struct context_from *from, const char *to)
{
    struct context_ask q = {.tenant = &server.acme_tenant,
                            .conversation = "tree",
                            .path = to,
                            .ttl_ms = 60000,
                            .spec = make_spec};

    *a = (struct asked){0};
    context_branch(&server.front, &q, from, on_answer, a);
    turn_until(&a->came);
}

static void branch(struct asked *a, const char *from, const char *to, enum context_inherit inherit)
{
    branch_with(a, &(struct context_from){.path = from, .inherit = inherit}, to);
}

TEST(a_branch_is_lazy_unless_it_has_files)
{
    struct asked a;

    begin();
    branch(&a, "nowhere", "lazy", INHERIT_NONE);
    EXPECT(a.r == 0 && !a.has_row);
    branch(&a, "nowhere", "lazy", INHERIT_FILES);
    EXPECT(a.r == 0 && !a.has_row);
    branch(&a, "nowhere", "lazy", INHERIT_STATE);
    EXPECT(a.r == 0 && !a.has_row);
    EXPECT(orders(ORDER_CREATE) == 0);

    obtain("tree", "main");
    branch(&a, "main", "leaf", INHERIT_FILES);
    EXPECT(a.r == 0 && a.has_row && a.created && a.sandbox_id[0] && !a.report[0]);
    const struct order *made = last_order(ORDER_CREATE), *from = last_order(ORDER_CHECKPOINT);
    EXPECT(made && from && from->n_kernels == 0);
    if (made && from)
        EXPECT_STR(made->snapshot, from->snapshot);
    EXPECT(orders(ORDER_SNAPSHOT) == 0);
    branch(&a, "main", "leaf", INHERIT_NONE);
    EXPECT(a.r == -EEXIST);
    EXPECT(strstr(a.message, "leaf"));
}

TEST(what_is_in_the_way_of_files_is_gone_around)
{
    struct asked a;

    begin();
    obtain("tree", "main");
    size_t there = orders(ORDER_CREATE);
    server.fail[ORDER_CHECKPOINT] = -EBUSY;
    branch(&a, "main", "around", INHERIT_FILES);
    EXPECT(a.r == 0 && a.created);
    const struct order *made = last_order(ORDER_CREATE), *from = last_order(ORDER_SNAPSHOT);
    EXPECT(made && from);
    if (made && from)
        EXPECT_STR(made->snapshot, from->snapshot);
    turn_for(5);
    EXPECT(orders(ORDER_FORGET) == 1);

    /* A copy of kernels is not: it says what, and leaves nothing. */
    branch(&a, "main", "copy", INHERIT_STATE);
    EXPECT(a.r == -EBUSY && strstr(a.report, "inTheWay"));
    server.fail[ORDER_CHECKPOINT] = 0;
    fork_agents.cell_runs = true;
    branch(&a, "main", "copy", INHERIT_STATE);
    fork_agents.cell_runs = false;
    EXPECT(a.r == -EBUSY && strstr(a.report, "waitMs"));
    EXPECT(orders(ORDER_CREATE) == there + 1);
    EXPECT(!obtain("tree", "main")->created);
}

TEST(a_branch_with_state_is_made_from_a_checkpoint)
{
    unsigned adopts = fork_agents.adopts;
    struct asked a;

    begin();
    obtain("tree", "main");
    branch(&a, "main", "state", INHERIT_STATE);
    const struct order *made = last_order(ORDER_CREATE), *from = last_order(ORDER_CHECKPOINT);
    EXPECT(a.r == 0 && a.created && strstr(a.report, "\"kernels\":["));
    EXPECT(made && from && from->n_kernels == 1 && from->kernels[0] == 17);
    if (made && from)
        EXPECT_STR(made->snapshot, from->snapshot);
    EXPECT(made && (made->flags & ORDER_STATE) && (made->flags & ORDER_LAST));
    EXPECT(fork_agents.adopts == adopts + 1);
    struct sandbox *b = sandbox_find(&server.front, a.sandbox_id);
    EXPECT(b && strcmp(b->spec.context, a.row.id) == 0);

    /* One that is too many leaves no checkpoint. */
    server.front.settings.tenant_contexts = 1;
    branch(&a, "main", "too many", INHERIT_STATE);
    server.front.settings.tenant_contexts = 1000;
    EXPECT(a.r == -EDQUOT);
    turn_for(5);
    EXPECT(last_order(ORDER_FORGET) != NULL);
    EXPECT_STR(last_order(ORDER_FORGET)->snapshot, last_order(ORDER_CHECKPOINT)->snapshot);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct marked {
    bool came;
    char checkpoint[ID_LEN + 1], skipped[256];
};

static void on_marked(void *arg, const char *checkpoint, const char *skipped)
{
    struct marked *m = arg;

    EXPECT(!m->came && !checkpoint != !skipped);
    m->came = true;
    snprintf(m->checkpoint, sizeof(m->checkpoint), "%s", checkpoint ? checkpoint : "");
    snprintf(m->skipped, sizeof(m->skipped), "%s", skipped ? skipped : "");
}

static struct marked mark(const char *sandbox_id, const char *message)
{
    static struct marked m;

    m = (struct marked){0};
    context_mark(sandbox_find(&server.front, sandbox_id), message, 1000, on_marked, &m);
    turn_until(&m.came);
    return m;
}

static struct asked *rewind_to(const char *id, const char *message, const char *checkpoint)
{
    static struct asked a;

    a = (struct asked){0};
    context_rewind(&server.front, server.acme_tenant.id, id,
                   &(struct context_from){.message = message, .checkpoint = checkpoint}, on_answer,
                   &a);
    turn_until(&a.came);
    return &a;
}

TEST(a_message_leaves_one_checkpoint)
{
    static struct marked at_once[8];

    begin();
    struct asked a = *obtain("messages", "main");
    struct marked one = mark(a.sandbox_id, "m1");
    EXPECT(one.checkpoint[0]);
    EXPECT_STR(mark(a.sandbox_id, "m1").checkpoint, one.checkpoint);
    EXPECT(orders(ORDER_CHECKPOINT) == 1);

    struct sandbox *b = sandbox_find(&server.front, a.sandbox_id);
    memset(at_once, 0, sizeof(at_once));
    for (size_t i = 0; i < ARRAY_SIZE(at_once); i++)
        context_mark(b, "m2", 1000, on_marked, &at_once[i]);
    for (size_t i = 0; i < ARRAY_SIZE(at_once); i++) {
        turn_until(&at_once[i].came);
        EXPECT_STR(at_once[i].checkpoint, at_once[0].checkpoint);
    }
    EXPECT(strcmp(at_once[0].checkpoint, one.checkpoint) != 0);
    EXPECT(orders(ORDER_CHECKPOINT) == 2);

    fork_agents.cell_runs = true;
    struct marked none = mark(a.sandbox_id, "m3");
    fork_agents.cell_runs = false;
    EXPECT(!none.checkpoint[0] && strstr(none.skipped, "cell"));
    server.front.settings.checkpoints = false;
    none = mark(a.sandbox_id, "m4");
    server.front.settings.checkpoints = true;
    EXPECT(strstr(none.skipped, "setting checkpoints"));
    /* One that begins now would not be before it. */
    EXPECT(strstr(mark(a.sandbox_id, "m4").skipped, "has begun"));
    EXPECT(mark(a.sandbox_id, "m5").checkpoint[0]);
}

TEST(back_to_a_message)
{
    begin();
    struct asked a = *obtain("back", "main");
    struct marked one = mark(a.sandbox_id, "m1"), two = mark(a.sandbox_id, "m2");
    struct marked three = mark(a.sandbox_id, "m3");

    turn_for(5);
    struct asked *to = rewind_to(a.row.id, "m2", NULL);
    EXPECT(to->r == 0 && to->row.expires_ms > a.row.expires_ms);
    EXPECT_STR(to->checkpoint, two.checkpoint);
    EXPECT_STR(to->sandbox_id, a.sandbox_id);
    EXPECT_STR(last_order(ORDER_REWIND)->snapshot, two.checkpoint);
    /* The same message, edited: what is there is before it. */
    EXPECT_STR(mark(a.sandbox_id, "m2").checkpoint, two.checkpoint);
    /* On this line there is another of the same name; the other line's is the second choice. */
    struct marked other = mark(a.sandbox_id, "m3");
    EXPECT(strcmp(other.checkpoint, three.checkpoint) != 0);
    EXPECT_STR(rewind_to(a.row.id, "m3", NULL)->checkpoint, other.checkpoint);
    EXPECT_STR(rewind_to(a.row.id, NULL, three.checkpoint)->checkpoint, three.checkpoint);
    EXPECT_STR(rewind_to(a.row.id, "m3", NULL)->checkpoint, three.checkpoint);
    EXPECT_STR(rewind_to(a.row.id, "m1", NULL)->checkpoint, one.checkpoint);

    EXPECT(rewind_to(a.row.id, "never", NULL)->r == -ENOMSG);
    EXPECT(rewind_to(a.row.id, NULL, OTHER)->r == -ENOMSG);
    EXPECT(rewind_to(OTHER, "m1", NULL)->r == -ENOENT);
    sandbox_pause(sandbox_find(&server.front, a.sandbox_id), true, NULL, NULL);
    turn_for(5);
    EXPECT(rewind_to(a.row.id, "m1", NULL)->r == 0);
    EXPECT(sandbox_find(&server.front, a.sandbox_id)->state == SANDBOX_RUNNING);
    sandbox_kill(sandbox_find(&server.front, a.sandbox_id), NULL, NULL);
    turn_for(5);
    EXPECT(rewind_to(a.row.id, "m1", NULL)->r == -ESTALE);
}

TEST(a_branch_at_a_message)
{
    struct asked a;

    begin();
    struct settings before = server.front.settings;
    server.front.settings.checkpoint_keep = 1;
    server.front.settings.checkpoint_max = 2;
    struct asked parent = *obtain("tree", "talk");
    struct marked one = mark(parent.sandbox_id, "m1");
    for (const char *m = "2345"; *m; m++)
        mark(parent.sandbox_id, (const char[]){'m', *m, '\0'});
    server.front.settings = before;

    branch_with(&a,
                &(struct context_from){.path = "talk", .inherit = INHERIT_STATE, .message = "m1"},
                "before1");
    EXPECT(a.r == 0 && a.created);
    EXPECT_STR(last_order(ORDER_CREATE)->snapshot, one.checkpoint);
    EXPECT(!(last_order(ORDER_CREATE)->flags & ORDER_LAST));
    EXPECT(rewind_to(parent.row.id, "m1", NULL)->r == 0);
    /* The branch's own line begins there: the other's is not its to go back to. */
    EXPECT(rewind_to(a.row.id, "m1", NULL)->r == -ENOMSG);

    size_t made = orders(ORDER_CREATE);
    branch_with(&a,
                &(struct context_from){.path = "talk", .inherit = INHERIT_STATE, .message = "m2"},
                "thinned");
    EXPECT(a.r == -ESTALE);
    branch_with(
        &a, &(struct context_from){.path = "talk", .inherit = INHERIT_STATE, .checkpoint = OTHER},
        "never");
    EXPECT(a.r == -ENOMSG);
    branch_with(
        &a, &(struct context_from){.path = "nowhere", .inherit = INHERIT_STATE, .message = "m1"},
        "never");
    EXPECT(a.r == -ENOMSG);
    EXPECT(orders(ORDER_CREATE) == made);
}

/* ---- best of N ------------------------------------------------------------------------------- */

struct explored {
    bool came;
    int r;
    struct exploration *x;
};

static void on_explored(void *arg, const struct context_answer *a, struct exploration *x)
{
    struct explored *e = arg;

    *e = (struct explored){.came = true, .r = a->r, .x = x};
}

static void copy_spec(const struct sandbox_spec *from, struct sandbox_spec *ret)
{
    sandbox_spec_init(ret);
    ret->envs = json_object();
    snprintf(ret->tenant, sizeof(ret->tenant), "%s", from->tenant);
    snprintf(ret->template_id, sizeof(ret->template_id), "%s", from->template_id);
}

static struct explored explore(const char *id, size_t n)
{
    struct explore_ask ask = {
        .tenant = &server.acme_tenant, .context = id, .n = n, .life_ms = 60000, .copy = copy_spec};
    static struct explored e;

    e = (struct explored){0};
    context_explore(&server.front, &ask, on_explored, &e);
    turn_until(&e.came);
    return e;
}

static struct asked *adopt(const char *id, const char *candidate)
{
    static struct asked a;

    a = (struct asked){0};
    context_adopt(&server.front, &server.acme_tenant, id, candidate, on_answer, &a);
    turn_until(&a.came);
    return &a;
}

TEST(candidates_live_until_one_is_adopted)
{
    char ids[3][ID_LEN + 1];

    begin();
    struct asked a = *obtain("best", "main");
    struct explored e = explore(a.row.id, 3);
    EXPECT(e.r == 0 && e.x && e.x->n == 3);
    EXPECT(orders(ORDER_CHECKPOINT) == 1 && orders(ORDER_CREATE) == 4 && orders(ORDER_FORGET) == 1);
    for (size_t i = 0; i < 3; i++)
        snprintf(ids[i], sizeof(ids[i]), "%s", e.x->sandboxes[i]->id);
    EXPECT(adopt(a.row.id, ids[0])->r == -ENOMSG); /* it is still at work */
    exploration_keep(e.x, 60000);
    turn_for(300); /* the reaper has looked */
    for (size_t i = 0; i < 3; i++)
        EXPECT(sandbox_find(&server.front, ids[i]) != NULL);
    EXPECT_STR(obtain("best", "main")->sandbox_id, a.sandbox_id);

    EXPECT(adopt(a.row.id, OTHER)->r == -ENOMSG);
    EXPECT(adopt(a.row.id, a.sandbox_id)->r == -ENOMSG);
    struct asked *taken = adopt(a.row.id, ids[1]);
    EXPECT(taken->r == 0);
    EXPECT_STR(taken->row.id, a.row.id);
    EXPECT_STR(taken->row.sandbox_id, ids[1]);
    turn_for(300);
    EXPECT(!sandbox_find(&server.front, a.sandbox_id) && !sandbox_find(&server.front, ids[0]) &&
           !sandbox_find(&server.front, ids[2]));
    struct asked *later = obtain("best", "main");
    EXPECT(!later->created && !later->replaced);
    EXPECT_STR(later->sandbox_id, ids[1]);
    EXPECT(adopt(a.row.id, ids[0])->r == -ENOMSG);
    EXPECT(list_empty(&server.front.contexts->explorations));
}

TEST(who_asks_while_one_is_adopted_gets_that)
{
    static struct asked before, after, taken;

    begin();
    struct asked a = *obtain("adopted", "main");
    struct explored e = explore(a.row.id, 1);
    char id[ID_LEN + 1];
    snprintf(id, sizeof(id), "%s", e.x->sandboxes[0]->id);
    exploration_keep(e.x, 60000);
    taken = (struct asked){0};
    ask_path(&before, "adopted", "main", 60000);
    context_adopt(&server.front, &server.acme_tenant, a.row.id, id, on_answer, &taken);
    turn_until(&taken.came);
    ask_path(&after, "adopted", "main", 60000);
    turn_until(&before.came);
    turn_until(&after.came);
    EXPECT(taken.r == 0 && before.r == 0 && after.r == 0);
    EXPECT_STR(taken.row.sandbox_id, id);
    EXPECT_STR(after.sandbox_id, id);
    EXPECT(!sandbox_find(&server.front, a.sandbox_id));
}

TEST(candidates_are_all_or_none_and_end_with_their_context)
{
    begin();
    struct asked a = *obtain("none", "main");
    size_t made = orders(ORDER_CREATE);
    server.front.settings.tenant_sandboxes =
        (uint32_t)sandboxes_count(&server.front, server.acme_tenant.id) + 2;
    struct explored e = explore(a.row.id, 3);
    EXPECT(e.r == -EDQUOT && !e.x && orders(ORDER_CREATE) == made);
    server.front.settings.tenant_sandboxes = 1000;
    server.fail[ORDER_CREATE] = -EAGAIN;
    e = explore(a.row.id, 3);
    server.fail[ORDER_CREATE] = 0;
    EXPECT(e.r == -EAGAIN && !e.x);
    EXPECT(list_empty(&server.front.contexts->explorations));
    EXPECT(explore(OTHER, 1).r == -ENOENT);

    e = explore(a.row.id, 2);
    EXPECT(e.r == 0);
    char id[ID_LEN + 1];
    snprintf(id, sizeof(id), "%s", e.x->sandboxes[0]->id);
    exploration_keep(e.x, 60000);
    struct asked end = {0};
    context_terminate(&server.front, server.acme_tenant.id, a.row.id, on_answer, &end);
    turn_until(&end.came);
    EXPECT(!sandbox_find(&server.front, id) && list_empty(&server.front.contexts->explorations));
    EXPECT(adopt(a.row.id, id)->r == -ENOENT);
    EXPECT(explore(a.row.id, 1).r == -ENOENT);
    EXPECT(rewind_to(a.row.id, "m1", NULL)->r == -ENOENT);
}

/* Runs in candidates: when the last is over these are kept, or not. */
static struct {
    struct call calls[3];
    size_t open;
    uint64_t keep_ms;
} runs;

static void on_run_over(struct call *c, int status, const char *message, const void *result,
                        size_t len)
{
    (void)status, (void)message, (void)result, (void)len;
    if (--runs.open == 0)
        exploration_keep(c->owner, runs.keep_ms);
}

TEST(a_context_ends_while_its_candidates_run)
{
    begin();
    for (size_t turn = 0; turn < 2; turn++) {
        struct asked a = *obtain("ends", "main");
        struct explored e = explore(a.row.id, ARRAY_SIZE(runs.calls));
        runs.open = ARRAY_SIZE(runs.calls);
        runs.keep_ms = turn * 60000;
        for (size_t i = 0; i < runs.open; i++) {
            runs.calls[i] = (struct call){.owner = e.x, .on_end = on_run_over};
            EXPECT(call_begin(&runs.calls[i], e.x->sandboxes[i], OP_KERNEL_EXECUTE, NULL, NULL) ==
                   0);
        }
        struct asked end = {0};
        context_terminate(&server.front, server.acme_tenant.id, a.row.id, on_answer, &end);
        turn_until(&end.came);
        EXPECT(end.r == 0 && runs.open == 0 && list_empty(&server.front.contexts->explorations));
    }
}

TAP_MAIN
