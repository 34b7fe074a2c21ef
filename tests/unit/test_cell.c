/* A cell without HTTP: who owns it, and when he is told what. What its lines are is looked at in
 * test_interpreter.c. */
#include "front/interpreter/cell.h"
#include "interpreter_host.h"

static struct {
    struct cell cell;
    struct strbuf got;
    unsigned starts, overs, refusals;
    bool failed, full;
    int status;
    char message[256];
} owner;

static void on_start(struct cell *c)
{
    EXPECT(c->owner == &owner && owner.got.len == 0);
    owner.starts++;
}

static bool on_write(struct cell *c, const char *p, size_t len)
{
    EXPECT(c == &owner.cell && owner.overs == 0);
    strbuf_add(&owner.got, p, len);
    return !owner.full;
}

static void on_over(struct cell *c, bool failed)
{
    (void)c;
    owner.overs++;
    owner.failed = failed;
}

static void on_refused(struct cell *c, int status, const char *message)
{
    (void)c;
    owner.refusals++;
    owner.status = status;
    snprintf(owner.message, sizeof(owner.message), "%s", message);
}

static void start_cell(const char *code)
{
    struct execute_request q = {.body = json_string(code)};

    memset(&owner, 0, sizeof(owner));
    strbuf_init(&owner.got, 64u << 20);
    owner.cell = (struct cell){.sandbox = sandbox,
                               .owner = &owner,
                               .on_start = on_start,
                               .on_write = on_write,
                               .on_over = on_over,
                               .on_refused = on_refused};
    q.code = json_string_value(q.body);
    q.code_len = strlen(q.code);
    cell_begin(&owner.cell, &q);
    EXPECT(q.body == NULL);
}

static void drop_cell(void)
{
    cell_cancel(&owner.cell);
    cell_done(&owner.cell);
    strbuf_done(&owner.got);
}

static bool turn_until(const bool *flag, const unsigned *count, const char *text)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    while (clock_ns() < deadline) {
        if ((flag && *flag) || (count && *count) || (text && strstr(owner.got.buf, text)))
            return true;
        host_turn(&host);
    }
    return false;
}

TEST(lines_come_as_they_are_said_and_the_end_comes_once)
{
    begin();
    start_cell("print('a')");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE) && owner.starts == 0);
    agent_executing(3, "");
    EXPECT(turn_until(&owner.cell.running, NULL, NULL) && owner.starts == 1);
    EXPECT(owner.cell.number == 3);
    agent_data(CHAN_STDOUT, "a\n", 2);
    EXPECT(turn_until(NULL, NULL, "a\\n"));
    agent_end(KERNEL_DONE, 0, false);
    EXPECT(turn_until(NULL, &owner.overs, NULL));
    EXPECT(owner.overs == 1 && owner.refusals == 0 && !owner.failed);
    EXPECT(strstr(owner.got.buf, "\"end_of_execution\"}\n") != NULL);
    drop_cell();
    end();
}

TEST(an_error_is_told_with_the_end)
{
    begin();
    start_cell("1/0");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    agent_end(KERNEL_DIED, 137, false);
    EXPECT(turn_until(NULL, &owner.overs, NULL) && owner.failed);
    EXPECT(owner.cell.ending.how == KERNEL_DIED && owner.cell.ending.code == 137);
    drop_cell();
    end();
}

TEST(a_cell_that_never_ran_is_refused)
{
    begin();
    start_cell("1");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_fails(EINVAL, "no such language");
    EXPECT(turn_until(NULL, &owner.refusals, NULL));
    EXPECT(owner.status == EINVAL && owner.overs == 0 && owner.starts == 0);
    EXPECT_STR(owner.message, "no such language");
    drop_cell();
    end();
}

TEST(a_sandbox_that_is_gone_refuses_at_once_or_later)
{
    begin();
    start_cell("1");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    EXPECT(turn_until(&owner.cell.running, NULL, NULL));
    link_drop_calls(sandbox->link);
    EXPECT(owner.refusals == 1 && owner.status == CALL_GONE);
    drop_cell();
    link_free(steal_ptr(&sandbox->link));
    start_cell("1");
    EXPECT(owner.refusals == 1 && owner.status == CALL_GONE);
    drop_cell();
    end();
}

TEST(an_owner_that_takes_no_more_holds_the_agent_up)
{
    static char text[256 * 1024];
    size_t before;

    begin();
    memset(text, 'x', sizeof(text));
    start_cell("print(...)");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    EXPECT(turn_until(&owner.cell.running, NULL, NULL));
    owner.full = true;
    agent_data(CHAN_STDOUT, text, sizeof(text));
    agent_data(CHAN_STDOUT, text, sizeof(text)); /* the window is used up */
    for (int i = 0; i < 20; i++)
        host_turn(&host);
    EXPECT(chan_credit(agent.stream) == 0);
    before = owner.got.len;
    EXPECT(before < 2 * sizeof(text));
    owner.full = false;
    cell_resume(&owner.cell);
    EXPECT(owner.got.len > before);
    agent_end(KERNEL_DONE, 0, false);
    EXPECT(turn_until(NULL, &owner.overs, NULL));
    EXPECT(owner.got.len > 2 * sizeof(text));
    drop_cell();
    end();
}

TEST(a_cell_that_is_cancelled_says_nothing_more)
{
    begin();
    start_cell("while True: pass");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    EXPECT(turn_until(&owner.cell.running, NULL, NULL));
    drop_cell();
    strbuf_init(&owner.got, 1024);
    for (int i = 0; i < 20 && agent.cancels == 0; i++)
        host_turn(&host);
    EXPECT(agent.cancels == 1 && owner.overs == 0 && owner.refusals == 0);
    strbuf_done(&owner.got);
    end();
}

TEST(a_cell_that_never_began_can_be_dropped)
{
    struct cell c = {0};

    cell_cancel(&c);
    cell_resume(&c);
    cell_done(&c);
    EXPECT(!c.running);
}

TAP_MAIN
