/* The manager of contexts: how paths get sandboxes and lose them. */
#include "tap.h"

#include "context_rig.h"

#define ASKERS 64
#define DEAD   "deadnodedeadnodedead"

/* ---- one path -------------------------------------------------------------------------------- */

TEST(many_who_ask_for_a_path_get_one_sandbox)
{
    static struct asked asked[ASKERS];
    size_t created = 0;

    begin();
    for (size_t i = 0; i < ASKERS; i++)
        ask_path(&asked[i], "many", "main", 60000);
    for (size_t i = 0; i < ASKERS; i++) {
        turn_until(&asked[i].came);
        EXPECT(asked[i].r == 0);
        EXPECT_STR(asked[i].sandbox_id, asked[0].sandbox_id);
        EXPECT_STR(asked[i].row.id, asked[0].row.id);
        created += asked[i].created;
    }
    EXPECT(created == 1 && asked[0].created);
    EXPECT(asked[0].row.status == CTX_READY);
    EXPECT(orders(ORDER_CREATE) == 1);
}

TEST(later_it_is_found_and_lives_longer)
{
    begin();
    struct asked first = *obtain("found", "main");
    turn_for(5);
    struct asked *second = obtain("found", "main");

    EXPECT(first.created && !second->created && !second->replaced);
    EXPECT_STR(first.sandbox_id, second->sandbox_id);
    EXPECT(second->row.expires_ms > first.row.expires_ms);
    EXPECT(orders(ORDER_CREATE) == 1);
}

TEST(paths_conversations_and_odd_names_are_apart)
{
    begin();
    struct asked a = *obtain("apart", "main");
    struct asked b = *obtain("apart", "other");
    struct asked c = *obtain("apartm", "ain");
    struct asked d = *obtain("a'; DROP TABLE context; --", "%s\xc3\xa9");

    EXPECT(a.created && b.created && c.created && d.created);
    EXPECT(strcmp(a.sandbox_id, b.sandbox_id) != 0 && strcmp(a.sandbox_id, c.sandbox_id) != 0);
    EXPECT_STR(d.row.path, "%s\xc3\xa9");
}

TEST(a_sandbox_that_is_gone_is_replaced_and_said_to_be)
{
    begin();
    struct asked first = *obtain("gone", "main");
    sandbox_kill(sandbox_find(&server.front, first.sandbox_id), NULL, NULL);
    turn_for(5);
    struct asked *second = obtain("gone", "main");

    EXPECT(second->r == 0 && second->created && second->replaced);
    EXPECT_STR(second->row.id, first.row.id);
    EXPECT(strcmp(second->sandbox_id, first.sandbox_id) != 0);
    EXPECT_STR(second->template_id, first.row.template_id);
    EXPECT(!obtain("gone", "main")->replaced);
}

TEST(a_paused_sandbox_is_woken)
{
    begin();
    struct asked first = *obtain("paused", "main");
    sandbox_pause(sandbox_find(&server.front, first.sandbox_id), true, NULL, NULL);
    turn_for(5);
    EXPECT(sandbox_find(&server.front, first.sandbox_id)->state == SANDBOX_PAUSED);
    struct asked *second = obtain("paused", "main");

    EXPECT(second->r == 0 && !second->created);
    EXPECT_STR(second->sandbox_id, first.sandbox_id);
    EXPECT(sandbox_find(&server.front, first.sandbox_id)->state == SANDBOX_RUNNING);
}

TEST(the_wardens_deadline_stays_after_the_rows)
{
    begin();
    struct asked a = *obtain("resumed", "main");
    struct sandbox *b = sandbox_find(&server.front, a.sandbox_id);
    sandbox_pause(b, true, NULL, NULL);
    turn_for(5);
    sandbox_resume(b, true, 1000, NULL, NULL); /* as E2B's SDKs do, who know of no context */
    turn_for(700);
    EXPECT(b->state == SANDBOX_RUNNING && b->deadline_ns > clock_ns() + 30000000000ull);
}

TEST(a_paused_sandbox_that_ends_while_it_is_woken_is_replaced)
{
    static struct asked second;

    begin();
    struct asked first = *obtain("woken", "main");
    struct sandbox *b = sandbox_ref(sandbox_find(&server.front, first.sandbox_id));
    sandbox_pause(b, true, NULL, NULL);
    turn_for(5);
    ask_path(&second, "woken", "main", 60000);
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    while (b->busy != BUSY_RESUMING && clock_ns() < deadline)
        uv_run(server.front.loop, UV_RUN_NOWAIT); /* the warden has not answered yet */
    EXPECT(b->busy == BUSY_RESUMING);
    sandbox_kill(b, NULL, NULL);
    sandbox_unref(b);
    turn_until(&second.came);
    EXPECT(second.r == 0 && second.created && second.replaced);
    EXPECT(strcmp(second.sandbox_id, first.sandbox_id) != 0);
    EXPECT(sandbox_find(&server.front, second.sandbox_id));
}

TEST(a_sandbox_whose_agent_is_gone_is_not_handed_out)
{
    static struct asked second;

    begin();
    struct asked first = *obtain("breaking", "main");
    struct sandbox *b = sandbox_find(&server.front, first.sandbox_id);
    close_p(&server.agents[(server.n_agents - 1) % AGENTS_MAX]);
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    while (!sandbox_is_breaking(b) && clock_ns() < deadline)
        server_turn(-1);
    ask_path(&second, "breaking", "main", 60000);
    turn_for(50);
    EXPECT(!second.came);
    struct order_answer ended = {.tell = TELL_ENDED, .end = END_DIED};
    memcpy(ended.id, first.sandbox_id, sizeof(ended.id));
    sandbox_told_ended(&server.front, &ended);
    turn_until(&second.came);
    EXPECT(second.r == 0 && second.created && second.replaced);
}

/* ---- when it cannot be made ------------------------------------------------------------------ */

static struct ctx_row row_of(const char *id)
{
    static struct asked a;

    a = (struct asked){0};
    context_get(&server.front, server.acme_tenant.id, id, on_answer, &a);
    turn_until(&a.came);
    EXPECT(a.r == 0);
    return a.row;
}

TEST(the_server_has_no_room_then_it_has)
{
    begin();
    server.fail[ORDER_CREATE] = -EAGAIN;
    struct asked a = *obtain("full", "main");
    server.fail[ORDER_CREATE] = 0;
    EXPECT(a.r == -EAGAIN);
    EXPECT_STR(a.message, "the test said so");
    EXPECT(obtain("full", "main")->created);
}

TEST(one_who_asks_for_what_cannot_be_spoils_it_for_nobody_else)
{
    static struct asked bad, good;

    begin();
    bad.spec_fails = -EINVAL;
    ask_path(&bad, "spoilt", "main", 60000);
    ask_path(&good, "spoilt", "main", 60000);
    turn_until(&bad.came);
    turn_until(&good.came);
    EXPECT(bad.r == -EINVAL && !bad.has_row);
    EXPECT(good.r == 0 && good.created);
}

TEST(a_sandbox_that_the_store_does_not_hear_of_is_ended)
{
    begin();
    shaky.settle_fails = -EAGAIN;
    struct asked a = *obtain("unheard", "main");

    EXPECT(a.r == -EAGAIN);
    EXPECT(orders(ORDER_CREATE) == 1 && orders(ORDER_KILL) == 1);
    struct asked *b = obtain("unheard", "main");
    EXPECT(b->r == 0 && b->created);
}

TEST(settled_but_nobody_heard_it_takes_no_place)
{
    begin();
    server.front.settings.conversation_contexts = 1;
    shaky.settle_fails = -EAGAIN;
    shaky.settled_unheard = true;
    struct asked a = *obtain("not heard", "main");

    EXPECT(a.r == -EAGAIN);
    turn_for(5);
    EXPECT(obtain("not heard", "other")->created);
    server.front.settings.conversation_contexts = 1000;
}

static void ask_again(void *arg, const struct context_answer *a)
{
    EXPECT(a->r == -EAGAIN);
    server.fail[ORDER_CREATE] = 0;
    ask_path(arg, "once more", "main", 60000);
}

TEST(who_is_refused_may_ask_again_at_once)
{
    static struct asked a;
    struct context_ask q = {.tenant = &server.acme_tenant,
                            .conversation = "once more",
                            .path = "main",
                            .spec = make_spec};

    begin();
    server.fail[ORDER_CREATE] = -EAGAIN;
    context_obtain(&server.front, &q, ask_again, &a);
    turn_until(&a.came);
    EXPECT(a.r == 0 && a.created);
}

TEST(ended_by_somebody_while_it_is_made)
{
    begin();
    shaky.end_first = true;
    struct asked *a = obtain("ended", "main");

    EXPECT(a->r == 0 && a->created);
    EXPECT(orders(ORDER_CREATE) == 2 && orders(ORDER_KILL) == 1);
    EXPECT(row_of(a->row.id).status == CTX_READY);
}

TEST(limits_name_themselves_and_a_lost_sandbox_does_not_count)
{
    begin();
    server.front.settings.conversation_contexts = 2;
    struct asked first = *obtain("limited", "a");
    EXPECT(obtain("limited", "b")->created);
    struct asked third = *obtain("limited", "c");
    EXPECT(third.r == -EDQUOT && strstr(third.message, "2"));
    EXPECT(!obtain("limited", "a")->created);
    sandbox_kill(sandbox_find(&server.front, first.sandbox_id), NULL, NULL);
    turn_for(5);
    EXPECT(obtain("limited", "c")->created);
    server.front.settings.conversation_contexts = 1000;
}

TEST(a_sandbox_that_ends_while_the_store_is_away_is_told_of_later)
{
    begin();
    struct asked a = *obtain("told later", "main");
    shaky.lost_fails = -EAGAIN;
    sandbox_kill(sandbox_find(&server.front, a.sandbox_id), NULL, NULL);
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    while (row_of(a.row.id).sandbox_id[0] && clock_ns() < deadline)
        server_turn(-1);
    EXPECT_STR(row_of(a.row.id).sandbox_id, "");
    EXPECT(shaky.lost_fails == 0);
    EXPECT(row_of(a.row.id).status == CTX_READY);
}

/* ---- ends ------------------------------------------------------------------------------------ */

TEST(terminate_ends_row_and_sandbox)
{
    struct asked end = {0};

    begin();
    struct asked a = *obtain("over", "main");
    context_terminate(&server.front, server.acme_tenant.id, a.row.id, on_answer, &end);
    turn_until(&end.came);
    EXPECT(end.r == 0 && end.row.status == CTX_TERMINATED && end.row.terminated_ms > 0);
    EXPECT(!sandbox_find(&server.front, a.sandbox_id));
    EXPECT(orders(ORDER_KILL) == 1);
    struct asked *again = obtain("over", "main");
    EXPECT(again->created && !again->replaced && strcmp(again->row.id, a.row.id) != 0);
}

TEST(another_tenant_ends_nothing)
{
    struct asked end = {0};

    begin();
    struct asked a = *obtain("mine", "main");
    context_terminate(&server.front, "betabetabetabetabeta", a.row.id, on_answer, &end);
    turn_until(&end.came);
    EXPECT(end.r == -ENOENT);
    EXPECT(sandbox_find(&server.front, a.sandbox_id));
}

TEST(what_is_not_used_expires_and_what_is_used_does_not)
{
    static struct asked idle, busy;

    begin();
    ask_path(&idle, "idle", "main", 1000);
    ask_path(&busy, "busy", "main", 1000);
    turn_until(&idle.came);
    turn_until(&busy.came);
    struct sandbox *b = sandbox_find(&server.front, busy.sandbox_id);
    context_hold(b);
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    while (sandbox_find(&server.front, idle.sandbox_id) && clock_ns() < deadline)
        server_turn(-1);
    EXPECT(!sandbox_find(&server.front, idle.sandbox_id));
    EXPECT(row_of(idle.row.id).status == CTX_TERMINATED);
    turn_for(600);
    EXPECT(sandbox_find(&server.front, busy.sandbox_id) == b);
    context_release(b);
    while (sandbox_find(&server.front, busy.sandbox_id) && clock_ns() < deadline)
        server_turn(-1);
    EXPECT(!sandbox_find(&server.front, busy.sandbox_id));
}

static void ignore_reply(void *arg, const struct ctx_reply *reply)
{
    EXPECT(reply->r == 0);
    *(bool *)arg = true;
}

TEST(a_row_that_others_ended_takes_its_sandbox_along)
{
    bool came = false;

    begin();
    struct asked a = *obtain("from outside", "main");
    shaky.real->ops->terminate(shaky.real, server.acme_tenant.id, a.row.id, ignore_reply, &came);
    turn_until(&came);
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    while (sandbox_find(&server.front, a.sandbox_id) && clock_ns() < deadline)
        server_turn(-1);
    EXPECT(!sandbox_find(&server.front, a.sandbox_id));
}

TEST(a_sandbox_whose_row_is_nobodys_is_ended)
{
    struct sandbox_spec spec;
    char snapshot[ID_LEN + 1];
    struct asked a = {0};

    begin();
    make_spec(&a, NULL, &spec, snapshot, NULL);
    snprintf(spec.context, sizeof(spec.context), "nosuchcontextnosuchc");
    sandbox_create(&server.front, &spec, NULL, 60000, NULL, NULL);
    turn_for(5);
    EXPECT(orders(ORDER_CREATE) == 1);
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
    while (orders(ORDER_KILL) == 0 && clock_ns() < deadline)
        server_turn(-1);
    EXPECT(orders(ORDER_KILL) == 1);
}

static void on_counted(void *arg, int r, const struct sg_error *e, size_t n)
{
    struct asked *a = arg;

    (void)e;
    a->came = true;
    a->r = r;
    a->row.usage.executions = n;
}

TEST(cleanup_of_a_conversation)
{
    struct asked end = {0};

    begin();
    struct asked a = *obtain("whole", "a"), b = *obtain("whole", "b"), c = *obtain("rest", "a");
    context_cleanup(&server.front, server.acme_tenant.id, "whole", on_counted, &end);
    turn_until(&end.came);
    EXPECT(end.r == 0 && end.row.usage.executions == 2);
    EXPECT(!sandbox_find(&server.front, a.sandbox_id) &&
           !sandbox_find(&server.front, b.sandbox_id));
    EXPECT(sandbox_find(&server.front, c.sandbox_id));
}

TEST(cleanup_says_what_it_could_not_end)
{
    struct asked end = {0};

    begin();
    struct asked a = *obtain("stuck", "a");
    shaky.terminate_fails = -EAGAIN;
    context_cleanup(&server.front, server.acme_tenant.id, "stuck", on_counted, &end);
    turn_until(&end.came);
    shaky.terminate_fails = 0;
    EXPECT(end.r == -EAGAIN && end.row.usage.executions == 0);
    EXPECT(sandbox_find(&server.front, a.sandbox_id));
}

TEST(what_somebody_works_in_survives_that_the_store_was_away)
{
    static struct asked a;
    struct asked end = {0};

    begin();
    ask_path(&a, "long cell", "main", 1000);
    turn_until(&a.came);
    struct sandbox *b = sandbox_find(&server.front, a.sandbox_id);
    context_hold(b);
    b->deadline_ns = clock_ns();
    shaky.touch_fails = -EAGAIN;
    turn_for(1600);
    EXPECT(row_of(a.row.id).expires_ms < clock_wall_ms());
    EXPECT(orders(ORDER_DEADLINE) > 0 && b->deadline_ns > clock_ns());
    context_cleanup(&server.front, server.acme_tenant.id, NULL, on_counted, &end);
    turn_until(&end.came);
    EXPECT(end.r == -EAGAIN);
    struct asked *again = obtain("long cell", "main");
    EXPECT(again->r == 0 && !again->created);
    EXPECT_STR(again->sandbox_id, a.sandbox_id);
    shaky.touch_fails = 0;
    turn_for(600);
    EXPECT(sandbox_find(&server.front, a.sandbox_id) == b);
    context_release(b);
}

/* ---- merging --------------------------------------------------------------------------------- */

TEST(merging_ends_the_source)
{
    struct asked end = {0};

    begin();
    struct asked source = *obtain("merge", "source"), target = *obtain("merge", "target");
    context_merge(&server.front, server.acme_tenant.id, "merge", "source", "target", on_answer,
                  &end);
    turn_until(&end.came);
    EXPECT(end.r == 0 && end.has_row);
    EXPECT_STR(end.row.id, source.row.id);
    EXPECT(!sandbox_find(&server.front, source.sandbox_id) &&
           sandbox_find(&server.front, target.sandbox_id));
    end = (struct asked){0};
    context_merge(&server.front, server.acme_tenant.id, "merge", "source", "target", on_answer,
                  &end);
    turn_until(&end.came);
    EXPECT(end.r == 0 && !end.has_row);
}

/* ---- other servers --------------------------------------------------------------------------- */

/* A context of another node, which has a sandbox there. */
static void of_other(const char *conversation, const char *node, const char *url)
{
    struct ctx_claim q = {.tenant = server.acme_tenant.id,
                          .conversation = conversation,
                          .path = "main",
                          .node = node,
                          .template_id = "base",
                          .default_ttl_ms = 60000,
                          .lease_ms = 60000,
                          .limits = {1000, 1000}};
    char id[ID_LEN + 1], sandbox_id[ID_LEN + 1];
    bool came = false;

    id_random(id);
    id_random(sandbox_id);
    q.id = id;
    shaky.real->ops->claim(shaky.real, &q, ignore_reply, &came);
    turn_until(&came);
    came = false;
    shaky.real->ops->settle(shaky.real, q.tenant, id, node, sandbox_id, NULL, NULL, ignore_reply,
                            &came);
    turn_until(&came);
    if (!url)
        return;
    came = false;
    shaky.real->ops->seen(shaky.real, node, url, ignore_reply, &came);
    turn_until(&came);
}

TEST(what_a_dead_server_had_is_replaced_here)
{
    begin();
    of_other("dead", DEAD, NULL);
    struct asked *a = obtain("dead", "main");
    EXPECT(a->r == 0 && a->created && a->replaced && !a->elsewhere[0]);
    EXPECT_STR(a->row.node, server.front.contexts->node);
}

TEST(after_the_store_was_away_nobody_is_thought_dead_at_once)
{
    begin();
    of_other("silent", DEAD, NULL);
    server.front.contexts->back_ns = clock_ns();
    struct asked *a = obtain("silent", "main");
    EXPECT(a->r == -EAGAIN && orders(ORDER_CREATE) == 0);
    server.front.contexts->back_ns = 0;
    EXPECT(obtain("silent", "main")->replaced);
}

TEST(what_another_server_has_is_request_log_for_there)
{
    begin();
    of_other("theirs", OTHER, "http://other.example:3000");
    struct asked *a = obtain("theirs", "main");
    EXPECT(a->r == 0 && !a->created && !a->sandbox_id[0]);
    EXPECT_STR(a->elsewhere, "http://other.example:3000");
    EXPECT(orders(ORDER_CREATE) == 0);

    of_other("unknown place", OTHER, "");
    a = obtain("unknown place", "main");
    EXPECT(a->r == -EAGAIN && strstr(a->message, "public_url"));
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(names)
{
    char longest[CTX_NAME_MAX + 2];
    struct sg_error e;

    memset(longest, 'x', sizeof(longest));
    longest[CTX_NAME_MAX] = '\0';
    EXPECT(context_name_check("id", longest, &e) == 0);
    longest[CTX_NAME_MAX] = 'x';
    longest[CTX_NAME_MAX + 1] = '\0';
    EXPECT(context_name_check("id", longest, &e) == -EINVAL && strstr(e.message, "256"));
    EXPECT(context_name_check("conversationId", "", &e) == -EINVAL);
    EXPECT(strstr(e.message, "conversationId"));
    EXPECT(context_name_check("id", NULL, &e) == -EINVAL);
    EXPECT(context_name_check("id", "a/b?c=d e\xc3\xa9\xf0\x9f\x8c\xb3\xe2\x82\xac", &e) == 0);
    static const char *const bad[] = {"a\nb",     "\x7f",         "\xc2\x85", "\xff",
                                      "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82", "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(context_name_check("id", bad[i], &e) == -EINVAL);
}

TAP_MAIN
