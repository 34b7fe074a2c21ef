/* POST /v1/execute: the real server, with a warden and an agent made by hand. */
#include "front/core/output_filter.h"
#include "tap.h"

#define FIELD          "Error when parsing request: "
#define SERVER_REQUEST serve
struct http_req;
static void serve(struct http_req *req);
#include "lib/channel/wire.h"
#include "front/e2b/request.h"
#include "e2b_server.h"
#include "front/tools/tools.h"

static void serve(struct http_req *req)
{
    static const struct http_route route = {HTTP_M_POST, "", execute_once, ONCE_BODY_MAX};

    e2b_begin(req, &server.acme_tenant, &route);
}

/* ---- the agent ------------------------------------------------------------------------------- */

static struct {
    struct chan *chan;
    struct chan_stream *program;
    struct strbuf request, input, files; /* files: their paths and contents, a line each */
    bool input_over;
    unsigned cancels, discards;
    int refuse; /* errno: of files below the home directory */
} agent;

/* A file that is written: what came for it. */
struct written {
    char path[256];
    struct strbuf content;
};

static void on_open(struct chan *c, struct chan_stream *s, uint8_t op, const void *req, size_t len)
{
    struct wire_reader r;

    if (op == OP_PROCESS_START) {
        agent.program = s;
        strbuf_add(&agent.request, req, len);
        return;
    }
    EXPECT(op == OP_FILE_WRITE);
    struct written *w = xcalloc(1, sizeof(*w));
    wire_reader_init(&r, req, len);
    wire_get_str(&r, 32);
    snprintf(w->path, sizeof(w->path), "%s", wire_get_str(&r, 255));
    strbuf_init(&w->content, 8u << 20);
    chan_stream_set_owner(s, w);
    (void)c;
}

static void on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    struct written *w = chan_stream_owner(s);

    (void)sub;
    strbuf_add(w ? &w->content : &agent.input, p, len);
    chan_consumed(c, s, len);
}

static void on_eof(struct chan *c, struct chan_stream *s)
{
    struct written *w = chan_stream_owner(s);

    if (!w) {
        agent.input_over = true;
        return;
    }
    bool own = strncmp(w->path, "/run/e2b/", 9) == 0;
    if (!own)
        strbuf_addf(&agent.files, "%s: %s\n", w->path, w->content.buf);
    chan_end(c, s, own ? 0 : agent.refuse, agent.refuse ? "it cannot be written" : "", NULL, 0);
    strbuf_done(&w->content);
    free(w);
}

static void on_cancel(struct chan *c, struct chan_stream *s)
{
    agent.cancels++;
    if (s == agent.program)
        agent.program = NULL;
    chan_end(c, s, ECANCELED, "cancelled", NULL, 0);
}

static void on_control(struct chan *c, struct chan_stream *s, uint8_t what, const void *p,
                       size_t len)
{
    (void)c, (void)s, (void)p, (void)len;
    agent.discards += what == CONTROL_DISCARD;
}

static void on_credit(struct chan *c, struct chan_stream *s)
{
    (void)c, (void)s;
}

static void turn(int fd)
{
    static const struct chan_handlers handlers = {.on_open = on_open,
                                                  .on_data = on_data,
                                                  .on_eof = on_eof,
                                                  .on_cancel = on_cancel,
                                                  .on_control = on_control,
                                                  .on_credit = on_credit};

    server_turn(fd);
    if (!agent.chan && server.n_agents > 0)
        agent.chan = chan_new(server.agents[--server.n_agents], CHAN_AGENT, &handlers, NULL);
    if (agent.chan)
        (void)chan_pump(agent.chan); /* that the other end has closed is no surprise */
}

static void agent_open(void)
{
    memset(&agent, 0, sizeof(agent));
    strbuf_init(&agent.request, OPS_OPEN_MAX);
    strbuf_init(&agent.input, 8u << 20);
    strbuf_init(&agent.files, 8u << 20);
    server.n_orders = 0;
    memset(server.fail, 0, sizeof(server.fail));
}

static void agent_close(void)
{
    chan_free(agent.chan);
    strbuf_done(&agent.request);
    strbuf_done(&agent.input);
    strbuf_done(&agent.files);
}

static void agent_output(uint8_t sub, const char *text, size_t len)
{
    chan_send(agent.chan, agent.program, sub, text, len);
}

static void agent_ends(uint32_t how, uint32_t code, bool timed_out, uint64_t memory_limit)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 128);
    wire_put_u32(&s, how);
    wire_put_u32(&s, code);
    wire_put_u64(&s, 1500000);
    wire_put_u64(&s, 500000);
    wire_put_u64(&s, 10u << 20);
    wire_put_u64(&s, 4096);
    wire_put_u32(&s, 0);
    wire_put_u64(&s, 0);
    wire_put_u64(&s, 0);
    wire_put_u32(&s, timed_out);
    wire_put_u64(&s, memory_limit);
    chan_end(agent.chan, agent.program, 0, NULL, s.buf, s.len);
    agent.program = NULL;
}

/* The program was asked for, and has its input if `with_input`. */
static void expect_program(int fd, bool with_input)
{
    uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;

    while ((!agent.program || (with_input && !agent.input_over)) && clock_ns() < deadline)
        turn(fd);
    if (!agent.program)
        server_fail("the program was not started");
}

static int post(const char *body)
{
    int fd = client_connect();

    client_send(fd, server.acme, "POST", "/v1/execute", body);
    return fd;
}

static struct answer *receive(int fd)
{
    for (int i = 0; i < 50; i++)
        turn(fd);
    return client_receive(fd);
}

static void expect_field(const json_t *v, const char *name, const char *json)
{
    char *text = json_dumps(json_object_get(v, name),
                            JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

    EXPECT_STR(text ? text : "(absent)", json);
    free(text);
}

/* ---- cases ----------------------------------------------------------------------------------- */

TEST(code_runs_in_a_sandbox_of_its_own_which_is_ended)
{
    struct wire_reader r;

    agent_open();
    int fd = post("{\"code\":\"print(input())\",\"stdin\":\"hi\",\"timeoutSeconds\":5,"
                  "\"sessionId\":\"s\",\"envs\":{\"A\":\"b\"},"
                  "\"limits\":{\"memoryMb\":64,\"cpus\":0.5}}");
    expect_program(fd, true);
    EXPECT_STR(agent.files.buf, "main.py: print(input())\n");
    EXPECT_STR(agent.input.buf, "hi");
    wire_reader_init(&r, agent.request.buf, agent.request.len);
    EXPECT_STR(wire_get_str(&r, 32), "user");
    EXPECT_STR(wire_get_str(&r, 32), "");
    EXPECT(wire_get_u32(&r) == PROC_STDIN && wire_get_u32(&r) == 0 && wire_get_u32(&r) == 0);
    EXPECT(wire_get_u64(&r) == 5000);
    EXPECT_STR(wire_get_str(&r, 32), "");
    EXPECT_STR(wire_get_str(&r, 32), "");
    EXPECT(wire_get_u32(&r) == 2);
    EXPECT_STR(wire_get_str(&r, 32), "python3");
    EXPECT_STR(wire_get_str(&r, 32), "main.py");
    EXPECT(wire_get_u32(&r) == 4);
    const struct order *o = last_order(ORDER_CREATE);
    EXPECT(o && o->limits.memory_bytes == 64u << 20 && o->limits.cpus_milli == 500);
    EXPECT(o && o->limits.disk_bytes == 16u << 20);
    EXPECT(!last_order(ORDER_KILL));
    agent_output(CHAN_STDOUT, "hi\n", 3);
    agent_output(CHAN_STDERR, "e\xff", 2);
    agent_ends(PROC_EXITED, 0, false, 0);
    struct answer *a = receive(fd);
    EXPECT(a->status == 200 && last_order(ORDER_KILL));
    expect_field(a->json, "status", "\"success\"");
    expect_field(a->json, "stdout", "\"hi\\n\"");
    expect_field(a->json, "stderr", "\"e\xef\xbf\xbd\"");
    expect_field(a->json, "exitCode", "0");
    expect_field(a->json, "errorMessage", "null");
    expect_field(a->json, "sessionId", "\"s\"");
    expect_field(a->json, "resourceUsage",
                 "{\"cpuSeconds\":2.0,\"memoryMb\":10.0,\"diskBytes\":4096}");
    EXPECT(json_is_real(json_object_get(a->json, "duration")));
    EXPECT(json_is_string(json_object_get(a->json, "sandboxId")));
    agent_close();
}

TEST(what_a_program_says_is_sanitised)
{
    static const struct {
        const char *body, *out, *err, *found;
    } cases[] = {
        {"{\"code\":\"1\"}", "\"to [EMAIL]\"", "\"[IP_ADDRESS]\\n\"",
         "{\"email\":1,\"ip_address\":1}"},
        {"{\"code\":\"1\",\"sanitise\":\"off\"}", "\"to ann@example.com\"", "\"10.1.2.3\\n\"",
         "(absent)"},
    };
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        agent_open();
        EXPECT(output_filter_set_patterns(&server.front, "", &e) == 0);
        int fd = post(cases[i].body);
        expect_program(fd, false);
        agent_output(CHAN_STDOUT, "to ann@exam", 11);
        agent_output(CHAN_STDOUT, "ple.com", 7);
        agent_output(CHAN_STDERR, "10.1.2.3\n", 9);
        agent_ends(PROC_EXITED, 0, false, 0);
        struct answer *a = receive(fd);
        expect_field(a->json, "stdout", cases[i].out);
        expect_field(a->json, "stderr", cases[i].err);
        expect_field(a->json, "sanitised", cases[i].found);
        agent_close();
    }
}

TEST(how_a_program_ended)
{
    static const struct {
        uint32_t how, code;
        bool timed_out;
        uint64_t memory_limit;
        const char *status, *exit_code, *message;
    } cases[] = {
        {PROC_EXITED, 3, false, 0, "\"execution_error\"", "3",
         "\"the program ended with exit status 3\""},
        {PROC_KILLED, 9, false, 0, "\"execution_error\"", "137",
         "\"the program was killed by SIGKILL, as when memory runs out\""},
        {PROC_KILLED, 9, false, 512u << 20, "\"execution_error\"", "137",
         "\"killed: the sandbox reached its memory limit of 512 MiB\""},
        {PROC_EXITED, 137, false, 512u << 20, "\"execution_error\"", "137",
         "\"exit status 137: a program was killed: the sandbox reached its memory limit of 512 "
         "MiB\""},
        {PROC_KILLED, 9, true, 0, "\"timeout\"", "124", "\"the program was ended after 30 s\""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        agent_open();
        int fd = post("{\"code\":\"1\",\"language\":\"bash\"}");
        expect_program(fd, false);
        EXPECT_STR(agent.files.buf, "main.bash: 1\n");
        agent_ends(cases[i].how, cases[i].code, cases[i].timed_out, cases[i].memory_limit);
        struct answer *a = receive(fd);
        expect_field(a->json, "status", cases[i].status);
        expect_field(a->json, "exitCode", cases[i].exit_code);
        expect_field(a->json, "errorMessage", cases[i].message);
        EXPECT(last_order(ORDER_KILL));
        agent_close();
    }
}

TEST(one_of_several_files_is_run)
{
    struct wire_reader r;

    agent_open();
    int fd = post("{\"file\":\"src/a.mjs\",\"files\":[{\"path\":\"src/a.mjs\",\"content\":\"A\"},"
                  "{\"path\":\"data.txt\",\"content\":\"\"}]}");
    expect_program(fd, false);
    EXPECT_STR(agent.files.buf, "src/a.mjs: A\ndata.txt: \n");
    wire_reader_init(&r, agent.request.buf, agent.request.len);
    wire_get_str(&r, 32);
    wire_get_str(&r, 32);
    EXPECT(wire_get_u32(&r) == 0);
    wire_get_u32(&r);
    wire_get_u32(&r);
    wire_get_u64(&r);
    wire_get_str(&r, 32);
    wire_get_str(&r, 32);
    EXPECT(wire_get_u32(&r) == 2);
    EXPECT_STR(wire_get_str(&r, 32), "node");
    EXPECT_STR(wire_get_str(&r, 32), "src/a.mjs");
    agent_ends(PROC_EXITED, 0, false, 0);
    EXPECT(receive(fd)->status == 200);
    agent_close();
}

TEST(output_is_cut_at_the_limit)
{
    agent_open();
    int fd = post("{\"code\":\"1\",\"sanitise\":\"off\",\"limits\":{\"outputBytes\":5}}");
    expect_program(fd, false);
    agent_output(CHAN_STDOUT, "123456", 6);
    agent_output(CHAN_STDERR, "12345", 5);
    for (int i = 0; i < 2000 && agent.discards == 0; i++)
        turn(fd);
    EXPECT(agent.discards == 1);
    agent_output(CHAN_STDOUT, "789", 3); /* what was under way */
    agent_ends(PROC_EXITED, 0, false, 0);
    struct answer *a = receive(fd);
    expect_field(a->json, "stdout", "\"12345\"");
    expect_field(a->json, "stderr", "\"12345\"");
    expect_field(a->json, "truncated", "{\"stdout\":true,\"stderr\":false}");
    agent_close();
}

TEST(what_cannot_be_set_up_is_told_and_ends_the_sandbox)
{
    agent_open();
    agent.refuse = ENOSPC;
    int fd = post("{\"code\":\"1\"}");
    struct answer *a = receive(fd);
    EXPECT(a->status == 200 && last_order(ORDER_KILL));
    expect_field(a->json, "status", "\"setup_error\"");
    expect_field(a->json, "errorMessage", "\"main.py: it cannot be written\"");
    expect_field(a->json, "exitCode", "null");
    agent_close();

    agent_open();
    server.fail[ORDER_CREATE] = -EAGAIN;
    a = receive(post("{\"code\":\"1\"}"));
    EXPECT(a->status == 503 && strstr(a->text, "Retry-After: 1\r\n"));
    expect_field(a->json, "unavailable", "true");
    expect_field(a->json, "status", "\"setup_error\"");
    agent_close();
}

TEST(a_client_that_leaves_ends_the_sandbox)
{
    agent_open();
    int fd = post("{\"code\":\"1\"}");
    expect_program(fd, false);
    close(fd);
    for (uint64_t deadline = clock_ns() + SERVER_DEADLINE_NS;
         !last_order(ORDER_KILL) && clock_ns() < deadline;)
        turn(-1);
    EXPECT(last_order(ORDER_KILL));
    agent_close();
}

TEST(what_is_wrong_with_a_request_is_said)
{
    static const struct {
        const char *body, *message;
        int status;
    } cases[] = {
        {"{}", FIELD "one of 'code' and 'file' must be given", 400},
        {"{\"code\":\"1\",\"file\":\"a\",\"files\":[{\"path\":\"a\",\"content\":\"\"}]}",
         FIELD "one of 'code' and 'file' must be given", 400},
        {"{\"file\":\"a\"}", FIELD "'files' has no 'a'", 400},
        {"{\"code\":\"1\",\"files\":[{\"path\":\"main.py\",\"content\":\"\"}]}",
         FIELD "'files' has 'main.py', which is where the code is put", 400},
        {"{\"code\":\"1\",\"files\":[{\"path\":\"a\",\"content\":\"\"},{\"path\":\"a\","
         "\"content\":\"\"}]}",
         FIELD "'files' has 'a' twice", 400},
        {"{\"code\":\"1\",\"files\":[{\"path\":\"a/\",\"content\":\"\"}]}",
         FIELD "'a/' is not the path of a file", 400},
        {"{\"code\":\"1\",\"files\":[{\"path\":\"a\",\"content\":1}]}",
         FIELD "the 'content' of 'a' must be a string", 400},
        {"{\"code\":\"1\",\"timeoutSeconds\":301}",
         FIELD "'timeoutSeconds' must be a number from 1 to 300", 400},
        {"{\"code\":\"1\",\"timeoutSeconds\":0.5}",
         FIELD "'timeoutSeconds' must be a number from 1 to 300", 400},
        {"{\"code\":\"1\",\"limits\":{\"memoryMb\":1}}",
         FIELD "'memoryMb' must be a number from 16 to 2048", 400},
        {"{\"code\":\"1\",\"limits\":{\"disk\":1}}", FIELD "unknown field 'disk'", 400},
        {"{\"code\":\"1\",\"language\":\"c\"}",
         "unknown language 'c': use python, javascript, typescript, bash or sh", 400},
        {"{\"code\":\"1\",\"context\":\"c\"}", FIELD "unknown field 'context'", 400},
        {"{\"code\":\"1\",\"tenantId\":\"c\"}", "tenantId is not that of the key", 403},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        agent_open();
        server.front.settings.sandbox_memory = 2048ull << 20;
        struct answer *a = receive(post(cases[i].body));
        EXPECT(a->status == cases[i].status && server.n_orders == 0);
        EXPECT_STR(message_of(a), cases[i].message);
        agent_close();
    }
}

TAP_MAIN
