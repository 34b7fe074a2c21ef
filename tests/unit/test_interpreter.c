/* The interpreter of a sandbox as its clients see it, with an agent that behaves and one that does
 * not. */
#include "interpreter_host.h"

#define NUMBER "{\"type\":\"number_of_executions\",\"execution_count\":1}\n"
#define END    "{\"type\":\"end_of_execution\"}\n"
#define OUT(s) "{\"type\":\"stdout\",\"text\":\"" s "\",\"timestamp\":\"T\"}\n"
#define ERR(s) "{\"type\":\"stderr\",\"text\":\"" s "\",\"timestamp\":\"T\"}\n"
#define ERROR(name, value, traceback)                                                              \
    "{\"type\":\"error\",\"name\":\"" name "\",\"value\":\"" value "\",\"traceback\":\"" traceback \
    "\"}\n"
#define GONE ": a new one takes its place, and the variables are gone"

/* ---- executions ------------------------------------------------------------------------------ */

TEST(a_cell_from_request_to_end)
{
    struct wire_reader r;

    begin();
    execute(
        "{\"code\":\"print('hi')\\n1+1\",\"context_id\":null,\"language\":null,\"env_vars\":{\"A\":"
        "\"b\"},\"timeout\":1.5}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT_STR(agent.code.buf, "print('hi')\n1+1");
    wire_reader_init(&r, agent.request.buf, agent.request.len);
    EXPECT_STR(wire_get_str(&r, 100), "");
    EXPECT_STR(wire_get_str(&r, 100), "");
    EXPECT(wire_get_u64(&r) == 1500);
    EXPECT(wire_get_u32(&r) == 4);
    EXPECT_STR(wire_get_str(&r, 100), "E2B_SANDBOX=true");
    EXPECT_STR(wire_get_str(&r, 100), "E2B_SANDBOX_ID=" ID);
    EXPECT_STR(wire_get_str(&r, 100), "E2B_TEMPLATE_ID=base");
    EXPECT_STR(wire_get_str(&r, 100), "GLOBAL=1");
    EXPECT(wire_get_u32(&r) == 1);
    EXPECT_STR(wire_get_str(&r, 100), "A=b");
    EXPECT(wire_done(&r));

    agent_executing(1, "");
    EXPECT(client_wait(&client, "number_of_executions")); /* at once, not at the end */
    agent_data(CHAN_STDOUT, "hi\n", 3);
    EXPECT(client_wait(&client, "hi\\n"));
    agent_data(CHAN_STDERR, "no\n", 3);
    AGENT_PACKET("Rm");
    AGENT_PACKET("Ttext\0"
                 "2");
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(NUMBER OUT("hi\\n") ERR(
        "no\\n") "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"2\"}\n" END);
    EXPECT(strcasestr(client.got.buf, "access-control-allow-origin: *") != NULL);
    EXPECT(sandbox_log_count(&sandbox->log) == 2);
    EXPECT_STR(sandbox_log_get(&sandbox->log, 0)->text, "Cell 1 of python started");
    EXPECT_STR(sandbox_log_get(&sandbox->log, 1)->text, "Cell 1 ended");
    end();
}

#define X10  "xxxxxxxxxx"
#define X100 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10

TEST(contexts_and_languages_of_a_cell)
{
    static const struct {
        const char *body, *context, *language;
    } cases[] = {
        {"{\"code\":\"\",\"language\":\"JS\"}", "", "javascript"},
        {"{\"code\":\"\",\"language\":\"ts\"}", "", "typescript"},
        {"{\"code\":\"\",\"language\":\"R\"}", "", "r"},
        {"{\"code\":\"\",\"language\":\"" X100 X100 X100 "\"}", "",
         X100 X100 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
        {"{\"code\":\"\",\"context_id\":\"3f1c\",\"language\":\"\"}", "3f1c", ""},
    };

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_reader r;
        execute(cases[i].body);
        EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
        wire_reader_init(&r, agent.request.buf, agent.request.len);
        EXPECT_STR(wire_get_str(&r, 100), cases[i].context);
        EXPECT_STR(wire_get_str(&r, 300), cases[i].language);
        agent_executing(1, "");
        agent_end(KERNEL_DONE, 0, false);
        expect_lines(NUMBER END);
    }
    end();
}

TEST(code_of_any_size)
{
    size_t len = 3u << 20;
    char *body = malloc(len + 100);

    begin();
    int head = snprintf(body, 100, "{\"code\":\"");
    memset(body + head, 'x', len);
    snprintf(body + head + len, 50, "\\u0000\"}");
    execute(body);
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT(agent.code.len == len + 1 && agent.code.buf[len] == '\0');
    agent_executing(1, "");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(NUMBER END);
    free(body);
    end();
}

static const struct {
    const char *body;
    int status;
    const char *answer;
} refusals[] = {
    {"", 400, "the body is not valid JSON at byte 0: '[' or '{' expected near end of file"},
    {"{\"code\":\"x\"", 400,
     "the body is not valid JSON at byte 11: '}' expected near end of file"},
    {"[]", 422, "the body must be a JSON object"},
    {"{}", 422, "code is missing"},
    {"{\"code\":1}", 422, "code must be a string"},
    {"{\"code\":null}", 422, "code must be a string"},
    {"{\"code\":\"\",\"language\":1}", 422, "language must be a string"},
    {"{\"code\":\"\",\"context_id\":[]}", 422, "context_id must be a string"},
    {"{\"code\":\"\",\"context_id\":\"a\",\"language\":\"python\"}", 400,
     "Only one of context_id or language can be provided"},
    {"{\"code\":\"\",\"context_id\":\"0123456789012345678901234567890123456\"}", 404,
     "Context 0123456789012345678901234567890123456 not found"},
    {"{\"code\":\"\",\"env_vars\":[]}", 422,
     "env_vars must be an object of strings, with at most 4096 of them"},
    {"{\"code\":\"\",\"env_vars\":{\"A\":1}}", 422,
     "env_vars: 'A' must be a name without '=', its value a string, and both together less than "
     "131072 bytes"},
    {"{\"code\":\"\",\"env_vars\":{\"A=B\":\"1\"}}", 422,
     "env_vars: 'A=B' must be a name without '=', its value a string, and both together less than "
     "131072 bytes"},
    {"{\"code\":\"\",\"env_vars\":{\"A\":\"\\u0000\"}}", 422,
     "env_vars: 'A' must be a name without '=', its value a string, and both together less than "
     "131072 bytes"},
    {"{\"code\":\"\",\"timeout\":\"5\"}", 422, "timeout must be a number of seconds"},
    {"{\"code\":\"\",\"timeout\":-1}", 422, "timeout must be a number of seconds"},
    {"{\"code\":\"\",\"timeout\":1e300}", 422, "timeout must be a number of seconds"},
};

TEST(requests_that_are_refused)
{
    AUTO(strbuf_done) struct strbuf many = {0};

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        execute(refusals[i].body);
        expect_answer(refusals[i].status, refusals[i].answer);
    }
    strbuf_init(&many, 1u << 20);
    strbuf_addstr(&many, "{\"code\":[");
    for (int i = 0; i < 20000; i++)
        strbuf_addstr(&many, "0,");
    execute(many.buf);
    expect_answer(400, "the body has more than 16384 values");
    EXPECT(agent.opens == 0);
    end();
}

TEST(what_the_agent_refuses)
{
    static const struct {
        int status, http;
        const char *message, *answer;
    } cases[] = {
        {EINVAL, 400, "no language 'cobol': there are python, bash",
         "no language 'cobol': there are python, bash"},
        {ENOENT, 404, "?", "Context abc not found"},
        {EAGAIN, 429, "too many contexts", "too many contexts"},
        {E2BIG, 413, "too long", "too long"},
        {EIO, 409, "two\nlines", "two lines"},
    };

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        execute("{\"code\":\"1\",\"context_id\":\"abc\"}");
        EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
        agent_fails(cases[i].status, cases[i].message);
        expect_answer(cases[i].http, cases[i].answer);
    }
    end();
}

/* ---- ends ------------------------------------------------------------------------------------ */

static const struct {
    enum kernel_end how;
    uint32_t code;
    bool timed_out, error; /* error: the kernel has sent one */
    const char *line;
} ends[] = {
    {KERNEL_DONE, 0, false, false, ""},
    {KERNEL_DONE, 0, false, true, ERROR("KeyboardInterrupt", "v", "tb")},
    {KERNEL_DONE, 0, true, true,
     ERROR("TimeoutError", "the cell was interrupted after 2.5 s", "tb")},
    {KERNEL_DONE, 0, true, false,
     ERROR("TimeoutError", "the cell was interrupted after 2.5 s", "")},
    {KERNEL_DIED, 3, false, false,
     ERROR("UnexpectedEndOfExecution", "the kernel ended (exit status 3)" GONE, "")},
    {KERNEL_DIED, 137, false, true,
     ERROR("UnexpectedEndOfExecution",
           "the kernel ended (exit status 137: SIGKILL, as when memory runs out)" GONE, "")},
    {KERNEL_DIED, 139, false, false,
     ERROR("UnexpectedEndOfExecution", "the kernel ended (exit status 139: SIGSEGV)" GONE, "")},
    {KERNEL_RESTARTED, 0, false, false,
     ERROR("ContextRestarting", "the context was restarted: its variables are gone", "")},
    {KERNEL_REMOVED, 0, false, false, ERROR("ContextRemoved", "the context was removed", "")},
    {KERNEL_STUCK, 0, false, false,
     ERROR("ExecutionInterrupted",
           "the cell did not stop when it was interrupted, and its kernel was killed" GONE, "")},
    {KERNEL_STUCK, 0, true, false,
     ERROR("TimeoutError",
           "the cell was interrupted after 2.5 s; the cell did not stop when it was interrupted, "
           "and its "
           "kernel "
           "was killed" GONE,
           "")},
    {KERNEL_BROKE, 0, false, false,
     ERROR("KernelProtocolError", "the kernel broke its protocol and was killed" GONE, "")},
};

TEST(how_cells_end)
{
    begin();
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        AUTO(strbuf_done) struct strbuf want = {0};
        strbuf_init(&want, 4096);
        strbuf_addf(&want, "%s%s", NUMBER, ends[i].line);
        if (ends[i].code != 0)
            strbuf_addf(&want, "{\"type\":\"end_of_execution\",\"exit_code\":%u}\n", ends[i].code);
        else
            strbuf_addstr(&want, END);
        execute("{\"code\":\"x\",\"timeout\":2.5}");
        EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
        agent_executing(1, "");
        if (ends[i].error) {
            AGENT_PACKET("Re");
            AGENT_PACKET("Tname\0"
                         "KeyboardInterrupt");
            AGENT_PACKET("Tvalue\0"
                         "v");
            AGENT_PACKET("Ttraceback\0"
                         "tb");
            AGENT_PACKET("r");
        }
        agent_end(ends[i].how, ends[i].code, ends[i].timed_out);
        expect_lines(want.buf);
    }
    end();
}

TEST(a_kernel_that_the_memory_limit_ended)
{
    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    agent_memory_limit = 512u << 20;
    agent_end(KERNEL_DIED, KERNEL_CODE_UNKNOWN, false);
    agent_memory_limit = 0;
    expect_lines(NUMBER ERROR(
        "UnexpectedEndOfExecution",
        "the kernel was killed: the sandbox reached its memory limit of 512 MiB" GONE, "") END);
    end();
}

TEST(a_cell_that_ends_before_its_turn)
{
    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_end(KERNEL_REMOVED, 0, false);
    expect_lines(ERROR("ContextRemoved", "the context was removed", "") END);
    EXPECT(sandbox_log_count(&sandbox->log) == 0);
    end();
}

TEST(a_kernel_that_forgot)
{
    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "the kernel was killed, and the variables are gone");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(NUMBER ERR("sandglass: the kernel was killed, and the variables are gone\\n") END);
    end();
}

TEST(the_sandbox_ends)
{
    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    EXPECT(client_wait(&client, "number_of_executions"));
    link_drop_calls(sandbox->link);
    EXPECT(client_wait_end(&client)); /* cut off, not ended */
    EXPECT(strstr(unchunked(), "end_of_execution") == NULL);
    EXPECT(!memmem(client.got.buf, client.got.len, "\r\n0\r\n", 5));

    client_close(&client);
    client_open(&client, &host);
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    link_drop_calls(sandbox->link);
    EXPECT(client_wait(&client, "The sandbox was not found"));
    EXPECT(client_status(&client) == 502);
    link_free(steal_ptr(&sandbox->link));
    execute("{\"code\":\"x\"}");
    EXPECT(client_wait(&client, "The sandbox was not found"));
    EXPECT(client_status(&client) == 502);
    end();
}

TEST(the_client_goes_away)
{
    begin();
    execute("{\"code\":\"while True: pass\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    client_close(&client); /* while it waits for its turn */
    WAIT_UNTIL(&host, agent.cancels == 1);
    client_open(&client, &host);
    execute("{\"code\":\"while True: pass\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    EXPECT(client_wait(&client, "number_of_executions"));
    agent_data(CHAN_STDOUT, "x", 1);
    client_close(&client);
    WAIT_UNTIL(&host, agent.cancels == 2);
    client_open(&client, &host);
    EXPECT_STR(sandbox_log_get(&sandbox->log, 1)->text,
               "Cell 1 was interrupted: its client has disconnected");
    end();
}

/* The head of the answer is there before the cell's turn, and keeps the client waiting. */
TEST(a_long_queue)
{
    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT(client_wait(&client, "{\"type\":\"keepalive\"}\n"));
    EXPECT(client_status(&client) == 200);
    strbuf_consume(&client.got, client.got.len - 2); /* the end of its chunk */
    EXPECT(client_wait(&client, "{\"type\":\"keepalive\"}\n"));
    strbuf_reset(&client.got);
    agent_fails(EAGAIN, "too many\ncells wait");
    EXPECT(client_wait(&client, "\r\n0\r\n\r\n"));
    EXPECT(strstr(client.got.buf, ERROR("ExecutionFailed", "too many\\ncells wait", "")) != NULL);
    EXPECT(strstr(client.got.buf, END) != NULL);
    end();
}

/* ---- an agent that does not behave ----------------------------------------------------------- */

TEST(nonsense)
{
    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_data(CHAN_STDOUT, "early", 5);
    AGENT_PACKET("Rm");
    chan_event(agent.chan, agent.stream, EVENT_EXECUTING, "x", 1);
    chan_event(agent.chan, agent.stream, EVENT_STARTED, "12345678", 8);
    agent_executing(1, "");
    agent_executing(2, "again");
    agent_data(CHAN_STDIN, "what is this", 12);
    AGENT_PACKET("Ttext\0"
                 "no result has begun");
    AGENT_PACKET("r");
    chan_end(agent.chan, agent.stream, 0, NULL, "short", 5);
    agent_watch();
    expect_lines(NUMBER ERROR("ExecutionFailed", "the sandbox sent a malformed answer", "") END);

    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    AGENT_PACKET("Rm");
    AGENT_PACKET("Ttext\0"
                 "half");
    agent_end(KERNEL_BROKE, 0, false); /* in the middle of a result */
    expect_lines(NUMBER "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"half\"}\n" ERROR(
        "KernelProtocolError", "the kernel broke its protocol and was killed" GONE, "") END);
    end();
}

TEST(output_during_a_result)
{
    static char flood[300 * 1024];

    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    AGENT_PACKET("Rd");
    AGENT_PACKET("Ttext\0"
                 "a");
    agent_data(CHAN_STDOUT, "one ", 4);
    agent_data(CHAN_STDOUT, "two\n", 4);
    AGENT_PACKET("Ttext\0"
                 "b");
    agent_data(CHAN_STDERR, "three\n", 6);
    AGENT_PACKET("r");
    agent_data(CHAN_STDOUT, "four\n", 5);
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(NUMBER "{\"type\":\"result\",\"is_main_result\":false,\"text\":\"ab\"}\n" OUT(
        "one two\\n") ERR("three\\n") OUT("four\\n") END);

    memset(flood, '.', sizeof(flood));
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    AGENT_PACKET("Rd");
    AGENT_PACKET("Ttext\0"
                 "a");
    agent_data(CHAN_STDOUT, "kept\n", 5);
    agent_data(CHAN_STDOUT, flood, 200 * 1024);
    agent_data(CHAN_STDOUT, flood, 128 * 1024); /* no room for this */
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
    EXPECT(client_wait(&client, "\r\n0\r\n\r\n"));
    const char *body = unchunked();
    EXPECT(strstr(body, "\"text\":\"a\"}\n{\"type\":\"stdout\",\"text\":\"kept\\n.....") != NULL);
    EXPECT(strstr(body, "\"sandglass: 131072 bytes of output were left out: they were written in "
                        "the middle of a result\\n\"") != NULL);
    end();
}

/* ---- a client that is slow ------------------------------------------------------------------- */

/* Output in single bytes, of both streams, as much as the window takes, while the client reads
 * nothing. It is not lost, in order, and the connection lives. */
TEST(a_slow_client_of_small_pieces)
{
    size_t sent = 0, out = 0, err = 0;
    uint64_t deadline = clock_ns() + WAIT_NS;

    begin();
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    while (chan_credit(agent.stream) > 0 || chan_backlog(agent.chan) > 0) {
        for (int i = 0; i < 1000 && chan_credit(agent.stream) > 0; i++, sent++)
            chan_send(agent.chan, agent.stream, sent % 2 ? CHAN_STDERR : CHAN_STDOUT, "\1", 1);
        agent_watch();
        host_turn(&host);
        if (clock_ns() > deadline || sent > (8u << 20))
            break;
    }
    EXPECT(sent >= CHAN_WINDOW && sent < (4u << 20)); /* it was held back */
    agent_end(KERNEL_DONE, 0, false);
    EXPECT(take_all());
    for (const char *p = unchunked(); *p; p++) {
        out += strncmp(p, "\\u0001", 6) == 0;
        err += strncmp(p, "\"stderr\"", 8) == 0;
    }
    EXPECT(out == sent && err == sent / 2);
    end();
}

TEST(much_output_at_the_pace_of_the_client)
{
    static char piece[64 * 1024];
    size_t sent = 0;

    begin();
    memset(piece, '#', sizeof(piece));
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    /* As long as there is credit; the client takes nothing. */
    for (int idle = 0; idle < 50; idle++) {
        while (chan_credit(agent.stream) >= sizeof(piece)) {
            chan_send(agent.chan, agent.stream, CHAN_STDOUT, piece, sizeof(piece));
            sent += sizeof(piece);
            idle = 0;
        }
        agent_watch();
        host_turn(&host);
    }
    EXPECT(sent < (32u << 20));
    client_read(&client, SIZE_MAX);
    for (int i = 0; i < 64; i++, sent += sizeof(piece))
        agent_data(CHAN_STDOUT, piece, sizeof(piece));
    agent_end(KERNEL_DONE, 0, false);
    EXPECT(take_all());
    size_t n = 0;
    for (const char *p = unchunked(); *p; p++)
        n += *p == '#';
    EXPECT(n == sent);
    end();
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void put_context(struct strbuf *s, const char *id, const char *language, const char *cwd)
{
    strbuf_init(s, 4096);
    wire_put_str(s, id);
    wire_put_str(s, language);
    wire_put_str(s, cwd);
    for (int i = 0; i < 3; i++)
        wire_put_u32(s, 0);
    wire_put_u32(s, 1); /* cold */
}

TEST(contexts)
{
    AUTO(strbuf_done) struct strbuf c = {0};
    struct wire_reader r;

    begin();
    put_context(&c, "id1", "python", "/home/user");
    ask("GET", "/contexts", "");
    EXPECT(agent_request_log(OP_KERNEL_LIST));
    chan_event(agent.chan, agent.stream, EVENT_CONTEXT, c.buf, c.len);
    chan_event(agent.chan, agent.stream, EVENT_CONTEXT, c.buf, c.len);
    chan_end(agent.chan, agent.stream, 0, NULL, NULL, 0);
    expect_answer(200, "[{\"id\":\"id1\",\"language\":\"python\",\"cwd\":\"/home/user\"},"
                       "{\"id\":\"id1\",\"language\":\"python\",\"cwd\":\"/home/user\"}]");

    ask("POST", "/contexts", "{\"language\":\"TS\",\"cwd\":\"/tmp\"}");
    EXPECT(agent_request_log(OP_KERNEL_CREATE));
    wire_reader_init(&r, agent.request.buf, agent.request.len);
    EXPECT_STR(wire_get_str(&r, 100), "typescript");
    EXPECT_STR(wire_get_str(&r, 100), "/tmp");
    EXPECT(wire_done(&r));
    chan_end(agent.chan, agent.stream, 0, NULL, c.buf, c.len);
    expect_answer(200, "{\"id\":\"id1\",\"language\":\"python\",\"cwd\":\"/home/user\"}");

    ask("POST", "/contexts", "{\"language\":null,\"cwd\":null}");
    EXPECT(agent_request_log(OP_KERNEL_CREATE));
    wire_reader_init(&r, agent.request.buf, agent.request.len);
    EXPECT_STR(wire_get_str(&r, 100), "python");
    EXPECT_STR(wire_get_str(&r, 100), "");
    agent_fails(EINVAL, "no such language");
    expect_answer(400, "no such language");
    ask("POST", "/contexts", "");
    EXPECT(agent_request_log(OP_KERNEL_CREATE));
    agent_fails(EAGAIN, "too many");
    expect_answer(429, "too many");
    ask("POST", "/contexts", "{\"cwd\":7}");
    expect_answer(422, "cwd must be a string");
    end();
}

TEST(remove_restart_interrupt)
{
    static const struct {
        const char *method, *path;
        uint8_t op;
    } cases[] = {
        {"DELETE", "/contexts/id1", OP_KERNEL_REMOVE},
        {"POST", "/contexts/id1/restart", OP_KERNEL_RESTART},
        {"POST", "/contexts/id1/interrupt", OP_KERNEL_INTERRUPT},
    };

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_reader r;
        ask(cases[i].method, cases[i].path, "");
        EXPECT(agent_request_log(cases[i].op));
        wire_reader_init(&r, agent.request.buf, agent.request.len);
        EXPECT_STR(wire_get_str(&r, 100), "id1");
        chan_end(agent.chan, agent.stream, 0, NULL, NULL, 0);
        expect_answer(200, "null");
        ask(cases[i].method, cases[i].path, "");
        EXPECT(agent_request_log(cases[i].op));
        agent_fails(ENOENT, "no such context");
        expect_answer(404, "Context id1 not found");
    }
    ask("DELETE", "/contexts/0123456789012345678901234567890123456", "");
    expect_answer(404, "Context 0123456789012345678901234567890123456 not found");
    end();
}

TEST(contexts_of_an_agent_that_does_not_behave)
{
    begin();
    ask("GET", "/contexts", "");
    EXPECT(agent_request_log(OP_KERNEL_LIST));
    chan_event(agent.chan, agent.stream, EVENT_CONTEXT, "rubbish", 7);
    chan_event(agent.chan, agent.stream, EVENT_CONTEXT, "rubbish", 7);
    agent_watch();
    expect_answer(409, "the sandbox sent a malformed answer");
    WAIT_UNTIL(&host, agent.cancels == 1);
    ask("POST", "/contexts", "");
    EXPECT(agent_request_log(OP_KERNEL_CREATE));
    chan_end(agent.chan, agent.stream, 0, NULL, "rubbish", 7);
    expect_answer(409, "the sandbox sent a malformed answer");
    end();
}

/* ---- who may --------------------------------------------------------------------------------- */

TEST(routes_and_tokens)
{
    static const char refused[] = "the sandbox's access token is missing or wrong: X-Access-Token";

    begin();
    ask("GET", "/health", "");
    expect_answer(200, "\"OK\"");
    ask("GET", "/nothing", "");
    expect_answer(404, "there is no /nothing here");
    ask("GET", "/execute", "");
    expect_answer(405, "/execute is not for GET");
    EXPECT(strcasestr(client.got.buf, "\r\nallow: POST\r\n") != NULL);
    ask("OPTIONS", "/execute", "");
    expect_answer(204, "");

    snprintf(sandbox->spec.envd_token, sizeof(sandbox->spec.envd_token), "%s", TOKEN);
    execute("{\"code\":\"x\"}");
    expect_answer(401, refused);
    ask("POST", "/contexts/a/interrupt", "");
    expect_answer(401, refused);
    extra = "X-Access-Token: wrong\r\n";
    execute("{\"code\":\"x\"}");
    expect_answer(401, refused);
    ask("GET", "/contexts", "");
    expect_answer(401, refused);
    extra = "";
    ask("GET", "/contexts", ""); /* the SDKs send no token here */
    EXPECT(agent_request_log(OP_KERNEL_LIST));
    agent_fails(EIO, "broken");
    expect_answer(409, "broken");
    extra = "X-Access-Token: " TOKEN "\r\n";
    execute("{\"code\":\"x\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(NUMBER END);
    extra = "";
    end();
}

TAP_MAIN
