/* Start and ready commands of templates, with an agent that says what it likes. */
#include "interpreter_host.h"

#include "front/core/starting.h"

TAP_MAIN

static unsigned told;
static int result;

static void on_done(void *arg, int r, const struct sg_error *e)
{
    (void)arg, (void)e;
    told++;
    result = r;
}

static void turns(void)
{
    for (int i = 0; i < 20; i++)
        host_turn(&host);
}

/* The end of a command that exited with this status. */
static void exited(struct chan_stream *s, uint32_t status)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(256);

    wire_put_u32(&out, PROC_EXITED);
    wire_put_u32(&out, status);
    for (int i = 0; i < 4; i++)
        wire_put_u64(&out, 0);
    wire_put_u32(&out, 0);
    wire_put_u64(&out, 0);
    wire_put_u64(&out, 0);
    wire_put_u32(&out, 0);
    wire_put_u64(&out, 0);
    chan_end(agent.chan, s, 0, "", out.buf, out.len);
    agent_watch();
    turns();
}

static void started(struct chan_stream *s)
{
    chan_event(agent.chan, s, EVENT_STARTED, "\1\0\0\0\0\0\0\0", 8);
    agent_watch();
    turns();
}

static void begin_starting(void)
{
    struct starting_plan plan = {.limit_ms = 60000, .every_ms = 1, .done = on_done};

    begin();
    sandbox->spec.defaults = json_pack("{s:s, s:s}", "startCmd", "serve", "readyCmd", "look");
    told = 0;
    starting_begin(sandbox, &plan);
    turns();
    EXPECT(agent.opens == 1 && agent.op == OP_PROCESS_START);
}

TEST(ready_at_the_second_try)
{
    begin_starting();
    started(agent.stream);
    EXPECT(agent.opens == 2);
    exited(agent.stream, 1);
    for (int i = 0; i < 1000 && agent.opens < 3; i++)
        turns();
    EXPECT(agent.opens == 3 && told == 0);
    exited(agent.stream, 0);
    EXPECT(told == 1 && result == 0);
    end();
}

/* The agent may be anybody's: a second try beside the first would be written over it. */
TEST(started_is_told_again_and_again)
{
    begin_starting();
    struct chan_stream *start = agent.stream;
    started(start);
    started(start);
    started(start);
    EXPECT(agent.opens == 2 && told == 0);
    exited(agent.stream, 0);
    EXPECT(told == 1 && result == 0);
    end();
}
