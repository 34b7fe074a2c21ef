/* The tools over HTTP, with a manager of contexts made by hand, which gives the one sandbox that
 * there is, and an agent made by hand in that. */
#include "front/core/output_filter.h"
#include "front/e2b/request.h"

static void serve(struct http_req *req);
#define HOST_SERVES(req) serve(req)
#include "interpreter_host.h"
#include "front/tools/tools.h"

#define CONTEXT "ctxctxctxctxctxctxct"
#define PLACE   "\"conversationId\":\"c\",\"pathId\":\"p\""

/* ---- the manager ----------------------------------------------------------------------------- */

static struct {
    int fail; /* -errno */
    enum sg_error_kind kind;
    const char *elsewhere;
    bool created, later; /* later: it answers when manager_answer is called */
    unsigned asked, holds;
    char conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1];
    char template_id[SPEC_NAME_MAX]; /* of the sandbox that would be made */
    /* Checkpoints: how many were asked for, and the last; why there is none, or NULL. */
    unsigned marks;
    char message[CTX_NAME_MAX + 1];
    uint64_t wait_ms;
    const char *skipped;
    bool mark_later; /* when mark_answer is called */
    context_marked marked;
    void *marked_arg;
    context_done done;
    void *arg;
} manager;

static struct store_tenant tenant = {.id = "tenanttenanttenantte", .name = "acme"};

int context_name_check(const char *field, const char *value, struct sg_error *e)
{
    if (value[0] && strlen(value) <= CTX_NAME_MAX)
        return 0;
    return err_set(e, SG_ERR_INVALID, -EINVAL, "%s must have 1 to 256 bytes", field);
}

void context_limits(const struct front *f, const struct store_tenant *t, struct context_limits *ret)
{
    (void)f, (void)t;
    *ret = (struct context_limits){
        .execution_ms = 60000, .execution_max_ms = 600000, .code_max = 1000};
}

void context_hold(struct sandbox *b)
{
    EXPECT(b == sandbox);
    manager.holds++;
}

void context_release(struct sandbox *b)
{
    EXPECT(b == sandbox);
    manager.holds--;
}

static void manager_answer(void)
{
    struct ctx_row row = {.id = CONTEXT};
    struct sg_error e;
    struct context_answer a = {.row = &row, .sandbox = sandbox, .created = manager.created};

    if (manager.elsewhere)
        a = (struct context_answer){.row = &row, .elsewhere = manager.elsewhere};
    if (manager.fail < 0)
        a = (struct context_answer){
            .r = err_set(&e, manager.kind, manager.fail, "the limit is 10 sandboxes"), .e = &e};
    manager.done(manager.arg, &a);
}

void context_obtain(struct front *f, const struct context_ask *ask, context_done done, void *arg)
{
    struct sandbox_spec spec = {0};
    char snapshot[ID_LEN + 1];
    struct sg_error e;

    EXPECT(f == &front && strcmp(ask->tenant->id, tenant.id) == 0);
    manager.asked++;
    snprintf(manager.conversation, sizeof(manager.conversation), "%s", ask->conversation);
    snprintf(manager.path, sizeof(manager.path), "%s", ask->path);
    if (ask->spec(arg, NULL, &spec, snapshot, &e) == 0) {
        snprintf(manager.template_id, sizeof(manager.template_id), "%s", spec.template_id);
        EXPECT(spec.envd_token[0] && snapshot[0] == '\0');
        sandbox_spec_done(&spec);
    }
    manager.done = done;
    manager.arg = arg;
    if (!manager.later)
        manager_answer();
}

#define CHECKPOINT "checkpointcheckpoint"

static void mark_answer(void)
{
    manager.marked(manager.marked_arg, manager.skipped ? NULL : CHECKPOINT, manager.skipped);
}

void context_mark(struct sandbox *b, const char *message, uint64_t wait_ms, context_marked done,
                  void *arg)
{
    EXPECT(b == sandbox);
    manager.marks++;
    snprintf(manager.message, sizeof(manager.message), "%s", message);
    manager.wait_ms = wait_ms;
    manager.marked = done;
    manager.marked_arg = arg;
    if (!manager.mark_later)
        mark_answer();
}

static void serve(struct http_req *req)
{
    static const struct http_route routes[] = {
        {HTTP_M_GET, "/v1/tools", tools_list, 0},
        {HTTP_M_POST, "/v1/tools/run_code", tools_run_code, 0},
        {HTTP_M_POST, "/v1/tools/run_analysis", tools_run_analysis, 0},
        {HTTP_M_POST, "/v1/execute", execute_once, ONCE_BODY_MAX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
        if (strcmp(req->path, routes[i].pattern) == 0)
            e2b_begin(req, &tenant, &routes[i]);
}

static void begin_tools(void)
{
    memset(&manager, 0, sizeof(manager));
    begin();
    settings_init(&front.settings);
    snprintf(front.settings.world, sizeof(front.settings.world), "host");
    front.settings.analysis[0] = '\0';
    extra = "";
}

static void end_tools(void)
{
    end();
    EXPECT(manager.holds == 0);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void run_code(const char *fields)
{
    char body[4096];

    snprintf(body, sizeof(body), "{" PLACE ",%s}", fields);
    ask("POST", "/v1/tools/run_code", body);
}

static void run_analysis(const char *fields)
{
    char body[4096];

    snprintf(body, sizeof(body), "{" PLACE ",%s}", fields);
    ask("POST", "/v1/tools/run_analysis", body);
}

/* The body of a whole answer, as JSON; the caller releases it. */
static json_t *answer(int status)
{
    const char *at;
    json_t *v = NULL;

    for (uint64_t deadline = clock_ns() + WAIT_NS; !v && clock_ns() < deadline;) {
        client_read(&client, SIZE_MAX);
        at = strstr(client.got.buf, "\r\n\r\n");
        v = at ? json_loads(at + 4, 0, NULL) : NULL;
        host_turn(&host);
    }
    if (client_status(&client) != status)
        printf("# wanted %d, got: %.600s\n", status, client.got.buf);
    EXPECT(v && client_status(&client) == status);
    return v;
}

static void expect_refused(int status, const char *message, bool unavailable)
{
    json_t *v = answer(status);

    EXPECT(json_integer_value(json_object_get(v, "code")) == status);
    EXPECT_STR(json_string_value(json_object_get(v, "message")), message);
    EXPECT(json_is_true(json_object_get(v, "unavailable")) == unavailable);
    json_decref(v);
}

static void expect_field(const json_t *v, const char *name, const char *json)
{
    char *text = json_dumps(json_object_get(v, name), JSON_COMPACT | JSON_ENCODE_ANY);

    EXPECT_STR(text ? text : "(absent)", json);
    free(text);
}

/* The language that a cell was asked for in. */
static const char *request_log_language(void)
{
    struct wire_reader r;

    wire_reader_init(&r, agent.request.buf, agent.request.len);
    wire_get_str(&r, 100);
    return wire_get_str(&r, 100);
}

/* ---- run_code -------------------------------------------------------------------------------- */

TEST(code_is_run_and_answered)
{
    begin_tools();
    manager.created = true;
    run_code("\"code\":\"print(1)\\n2\"");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT_STR(agent.code.buf, "print(1)\n2");
    EXPECT_STR(request_log_language(), "python");
    EXPECT_STR(manager.conversation, "c");
    EXPECT_STR(manager.path, "p");
    EXPECT_STR(manager.template_id, "sgcodeinterpreter001");
    EXPECT(manager.holds == 1);
    agent_executing(1, "");
    agent_data(CHAN_STDOUT, "1\n", 2);
    agent_data(CHAN_STDERR, "e\n", 2);
    AGENT_PACKET("Rm");
    AGENT_PACKET("Ttext\0"
                 "2");
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
    json_t *v = answer(200);
    expect_field(v, "success", "true");
    expect_field(v, "stdout", "\"1\\n\"");
    expect_field(v, "stderr", "\"e\\n\"");
    expect_field(v, "exitCode", "0");
    expect_field(v, "results", "[{\"is_main_result\":true,\"text\":\"2\"}]");
    expect_field(v, "error", "null");
    expect_field(v, "sandboxId", "\"" ID "\"");
    expect_field(v, "contextId", "\"" CONTEXT "\"");
    expect_field(v, "wasCreated", "true");
    expect_field(v, "replaced", "false");
    expect_field(v, "truncated", "{\"stdout\":false,\"stderr\":false}");
    EXPECT(json_is_integer(json_object_get(v, "executionTimeMs")));
    EXPECT(json_object_size(v) == 12);
    json_decref(v);
    end_tools();
}

TEST(a_message_leaves_a_checkpoint_before_the_code)
{
    begin_tools();
    manager.mark_later = true;
    run_code("\"code\":\"1\",\"messageId\":\"m \u00fc\",\"timeoutSeconds\":7");
    for (uint64_t deadline = clock_ns() + WAIT_NS; manager.marks == 0 && clock_ns() < deadline;)
        host_turn(&host);
    EXPECT(manager.marks == 1 && manager.wait_ms == 7000 && agent.opens == 0);
    EXPECT_STR(manager.message, "m \xc3\xbc");
    mark_answer();
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_end(KERNEL_DONE, 0, false);
    json_t *v = answer(200);
    expect_field(v, "checkpoint",
                 "{\"checkpointId\":\"" CHECKPOINT "\",\"messageId\":\"m \xc3\xbc\"}");
    json_decref(v);

    /* What is in its way does not stop the code; the query may name the message. */
    manager.mark_later = false;
    manager.skipped = "a thread runs";
    ask("POST", "/v1/tools/run_code?messageId=m2", "{" PLACE ",\"code\":\"1\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT_STR(manager.message, "m2");
    agent_end(KERNEL_DONE, 0, false);
    v = answer(200);
    expect_field(v, "checkpoint", "{\"skipped\":\"a thread runs\"}");
    json_decref(v);
    end_tools();
}

TEST(a_client_that_leaves_while_a_checkpoint_is_left)
{
    begin_tools();
    manager.mark_later = true;
    run_code("\"code\":\"1\",\"messageId\":\"m\"");
    for (uint64_t deadline = clock_ns() + WAIT_NS; manager.marks == 0 && clock_ns() < deadline;)
        host_turn(&host);
    close(steal_fd(&client.fd));
    for (uint64_t deadline = clock_ns() + WAIT_NS; manager.holds > 0 && clock_ns() < deadline;)
        host_turn(&host);
    EXPECT(manager.holds == 0);
    mark_answer();
    EXPECT(agent.opens == 0);
    end_tools();
}

/* ---- sanitising ------------------------------------------------------------------------------ */

static void says_mail(const char *fields)
{
    run_code(fields);
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    agent_data(CHAN_STDOUT, "to ann@exam", 11);
    agent_data(CHAN_STDOUT, "ple.com", 7);
    AGENT_PACKET("Rm");
    AGENT_PACKET("Ttext\0"
                 "10.1.2.3");
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
}

TEST(what_code_says_is_sanitised_as_the_call_asks)
{
    static const struct {
        const char *fields, *out, *results, *found;
    } cases[] = {
        {"\"code\":\"1\"", "\"to [EMAIL]\"", "[IP_ADDRESS]", "{\"email\":1,\"ip_address\":1}"},
        {"\"code\":\"1\",\"sanitise\":\"report-only\"", "\"to ann@example.com\"", "10.1.2.3",
         "{\"email\":1,\"ip_address\":1}"},
        {"\"code\":\"1\",\"sanitise\":\"off\"", "\"to ann@example.com\"", "10.1.2.3", "(absent)"},
    };
    struct sg_error e;

    begin_tools();
    EXPECT(output_filter_set_patterns(&front, "", &e) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        says_mail(cases[i].fields);
        json_t *v = answer(200);
        expect_field(v, "stdout", cases[i].out);
        expect_field(v, "sanitised", cases[i].found);
        char *results = json_dumps(json_object_get(v, "results"), 0);
        EXPECT(results && strstr(results, cases[i].results));
        free(results);
        json_decref(v);
    }
    end_tools();
}

TEST(off_where_it_is_forbidden_is_refused)
{
    struct sg_error e;

    begin_tools();
    EXPECT(output_filter_set_patterns(&front, "", &e) == 0);
    run_code("\"code\":\"1\",\"sanitise\":\"maybe\"");
    expect_refused(
        400, "Error when parsing request: 'sanitise' must be enforce, report-only or off", false);
    front.settings.sanitise_always = true;
    run_code("\"code\":\"1\",\"sanitise\":\"off\"");
    expect_refused(403, "sanitise: off is not allowed here: the server or the tenant forbids it",
                   false);
    front.settings.sanitise_always = false;
    tenant.sanitise_always = true;
    run_code("\"code\":\"1\",\"sanitise\":\"off\"");
    expect_refused(403, "sanitise: off is not allowed here: the server or the tenant forbids it",
                   false);
    /* The key may not either, and says nothing then. */
    tenant.key_sanitise = SANITISE_OFF + 1;
    says_mail("\"code\":\"1\"");
    json_t *v = answer(200);
    expect_field(v, "stdout", "\"to [EMAIL]\"");
    json_decref(v);
    tenant.sanitise_always = false;
    tenant.key_sanitise = 0;
    end_tools();
}

/* The name must be the table's: that of the call's JSON has gone when the cell begins. */
TEST(each_language_has_its_kernel)
{
    static const char *const cases[][2] = {{"python", "python"},
                                           {"javascript", "javascript"},
                                           {"typescript", "typescript"},
                                           {"bash", "bash"},
                                           {"sh", "bash"}};

    begin_tools();
    manager.later = true;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char arguments[64];
        snprintf(arguments, sizeof(arguments), "\"code\":\"x\",\"language\":\"%s\"", cases[i][0]);
        run_code(arguments);
        for (int turn = 0; manager.asked == i && turn < 1000; turn++)
            host_turn(&host);
        manager_answer();
        EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
        EXPECT_STR(request_log_language(), cases[i][1]);
        agent_executing(1, "");
        agent_end(KERNEL_DONE, 0, false);
        json_decref(answer(200));
    }
    end_tools();
}

TEST(how_a_cell_ended_is_its_exit_code)
{
    static const struct {
        enum kernel_end how;
        uint32_t code;
        bool timed_out;
        const char *exit_code, *name;
        uint64_t memory_limit;
    } cases[] = {
        {KERNEL_DONE, 0, true, "124", "TimeoutError", 0},
        {KERNEL_DIED, 137, false, "137", "UnexpectedEndOfExecution", 0},
        {KERNEL_DIED, KERNEL_CODE_UNKNOWN, false, "1", "UnexpectedEndOfExecution", 0},
        {KERNEL_DIED, KERNEL_CODE_UNKNOWN, false, "137", "UnexpectedEndOfExecution", 64u << 20},
        {KERNEL_STUCK, 0, true, "124", "TimeoutError", 0},
        {KERNEL_DONE, 3, false, "3", NULL, 0}, /* a shell's */
    };

    begin_tools();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        run_code("\"code\":\"x\",\"language\":\"sh\"");
        EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
        EXPECT_STR(request_log_language(), "bash");
        agent_executing(1, "");
        agent_memory_limit = cases[i].memory_limit;
        agent_end(cases[i].how, cases[i].code, cases[i].timed_out);
        agent_memory_limit = 0;
        json_t *v = answer(200);
        expect_field(v, "success", "false");
        expect_field(v, "exitCode", cases[i].exit_code);
        const char *name = json_string_value(json_object_get(json_object_get(v, "error"), "name"));
        EXPECT_STR(name ? name : "", cases[i].name ? cases[i].name : "");
        json_decref(v);
    }
    end_tools();
}

TEST(what_is_wrong_with_a_call_is_said)
{
    static const struct {
        const char *fields, *message;
        int status;
    } cases[] = {
        {"\"code\":\"\"", "Error when parsing request: 'code' must be a string that is not empty",
         400},
        {"\"code\":1", "Error when parsing request: 'code' must be a string that is not empty",
         400},
        {"\"language\":\"sh\"", "Error when parsing request: 'code' is missing", 400},
        {"\"code\":\"1\",\"lang\":\"sh\"", "Error when parsing request: unknown field 'lang'", 400},
        {"\"code\":\"1\",\"language\":\"ruby\"",
         "unknown language 'ruby': use python, javascript, typescript, bash or sh", 400},
        {"\"code\":\"1\",\"timeoutSeconds\":601",
         "timeoutSeconds is 601: the limit is 600 s (execution_timeout_max)", 400},
        {"\"code\":\"1\",\"timeoutSeconds\":-1",
         "Error when parsing request: 'timeoutSeconds' must be a number greater than 0", 400},
        {"\"code\":\"1\",\"envs\":{\"\":\"\"}",
         "Error when parsing request: 'envs': \"\" must be a name without '=', and with its value "
         "less than 131072 bytes",
         400},
        {"\"code\":\"1\",\"stream\":1",
         "Error when parsing request: 'stream' must be true or false", 400},
        {"\"code\":\"1\",\"tenantId\":\"other\"", "tenantId is not that of the key", 403},
        {"\"code\":\"1\",\"messageId\":\"\"", "messageId must have 1 to 256 bytes", 400},
        {"\"code\":\"1\",\"messageId\":7",
         "Error when parsing request: 'messageId' must be a string", 400},
    };
    char body[2048], code[1002];

    begin_tools();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        run_code(cases[i].fields);
        expect_refused(cases[i].status, cases[i].message, false);
    }
    memset(code, 'x', sizeof(code) - 1);
    code[sizeof(code) - 1] = '\0';
    snprintf(body, sizeof(body), "\"code\":\"%s\"", code);
    run_code(body);
    expect_refused(413, "the code has 1001 bytes: the limit is 1000 (code_max)", false);
    ask("POST", "/v1/tools/run_code", "{\"pathId\":\"p\",\"code\":\"1\"}");
    expect_refused(400, "Error when parsing request: 'conversationId' is missing", false);
    ask("POST", "/v1/tools/run_code", "{\"conversationId\":\"\",\"pathId\":\"p\",\"code\":\"1\"}");
    expect_refused(400, "conversationId must have 1 to 256 bytes", false);
    EXPECT(manager.asked == 0);
    end_tools();
}

TEST(a_bound_call_names_its_path_in_the_query)
{
    begin_tools();
    ask("POST", "/v1/tools/run_code?conversationId=a%20b&pathId=main", "{\"code\":\"1\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT_STR(manager.conversation, "a b");
    EXPECT_STR(manager.path, "main");
    agent_executing(1, "");
    agent_end(KERNEL_DONE, 0, false);
    json_decref(answer(200));
    ask("POST", "/v1/tools/run_code?conversationId=a&pathId=main",
        "{\"code\":\"1\",\"pathId\":\"other\",\"tenantId\":\"tenanttenanttenantte\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT_STR(manager.path, "other");
    agent_end(KERNEL_DONE, 0, false);
    json_decref(answer(200));
    end_tools();
}

TEST(a_sandbox_that_cannot_be_made_makes_the_tool_unavailable)
{
    begin_tools();
    manager.kind = SG_ERR_LIMIT;
    manager.fail = -EDQUOT;
    run_code("\"code\":\"1\"");
    expect_refused(429, "the limit is 10 sandboxes", true);
    manager.fail = -EAGAIN;
    run_code("\"code\":\"1\",\"stream\":true");
    expect_refused(503, "the limit is 10 sandboxes", true);
    EXPECT(strstr(client.got.buf, "Retry-After: 1\r\n"));
    manager.kind = SG_ERR_INTERNAL;
    manager.fail = -EIO;
    run_code("\"code\":\"1\"");
    expect_refused(500, "Internal error: the server's log has the reason", true);
    manager.kind = SG_ERR_NOT_FOUND;
    manager.fail = -ENOENT;
    run_code("\"code\":\"1\"");
    expect_refused(404, "the limit is 10 sandboxes", false);
    end_tools();
}

TEST(a_path_of_another_server_is_pointed_to)
{
    begin_tools();
    manager.elsewhere = "http://b.example:3000";
    ask("POST", "/v1/tools/run_code?x=1", "{" PLACE ",\"code\":\"1\"}");
    expect_refused(307, "another server has this path", false);
    EXPECT(strstr(client.got.buf, "Location: http://b.example:3000/v1/tools/run_code?x=1\r\n"));
    end_tools();
}

TEST(a_sandbox_that_is_gone_before_the_code_began_is_request_log_for_again)
{
    begin_tools();
    run_code("\"code\":\"1\"");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT(manager.asked == 1);
    link_drop_calls(sandbox->link);
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT(manager.asked == 2 && manager.holds == 1);
    agent_executing(1, "");
    agent_data(CHAN_STDOUT, "x", 1);
    for (int i = 0; i < 20; i++)
        host_turn(&host);
    link_drop_calls(sandbox->link); /* now part of it has run */
    json_t *v = answer(200);
    expect_field(v, "stdout", "\"x\"");
    expect_field(v, "error",
                 "{\"name\":\"SandboxGone\",\"value\":\"the sandbox is not running any "
                 "more\",\"traceback\":\"\"}");
    expect_field(v, "success", "false");
    EXPECT(manager.asked == 2);
    json_decref(v);
    end_tools();
}

TEST(a_client_that_leaves_interrupts_the_cell)
{
    begin_tools();
    run_code("\"code\":\"while True: pass\"");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    close(steal_fd(&client.fd));
    for (uint64_t deadline = clock_ns() + WAIT_NS; agent.cancels == 0 && clock_ns() < deadline;)
        host_turn(&host);
    EXPECT(agent.cancels == 1 && manager.holds == 0);
    end_tools();
}

TEST(a_client_that_leaves_before_there_is_a_sandbox)
{
    begin_tools();
    manager.later = true;
    run_code("\"code\":\"1\"");
    for (uint64_t deadline = clock_ns() + WAIT_NS; manager.asked == 0 && clock_ns() < deadline;)
        host_turn(&host);
    close(steal_fd(&client.fd));
    for (int i = 0; i < 20; i++)
        host_turn(&host);
    manager_answer();
    EXPECT(manager.holds == 0 && agent.opens == 0);
    end_tools();
}

/* ---- events ---------------------------------------------------------------------------------- */

TEST(a_stream_tells_of_everything_as_it_comes)
{
    begin_tools();
    extra = "Accept: application/json, text/event-stream\r\n";
    run_code("\"code\":\"print(1)\"");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT(client_wait(&client,
                       "event: context\ndata: {\"type\":\"context\",\"contextId\":\"" CONTEXT
                       "\",\"conversationId\":\"c\",\"pathId\":\"p\",\"sandboxId\":\"" ID
                       "\",\"wasCreated\":false,\"replaced\":false}\n\n") ||
           strstr(unchunked(), "event: context\ndata: {\"type\":\"context\""));
    agent_executing(1, "");
    agent_data(CHAN_STDOUT, "1\n", 2);
    EXPECT(client_wait(&client, "\"text\":\"1\\n\""));
    EXPECT(strstr(unchunked(), "event: stdout\ndata: {\"type\":\"stdout\",\"text\":\"1\\n\""));
    agent_end(KERNEL_DONE, 0, false);
    EXPECT(take_all() && client_status(&client) == 200);
    EXPECT(strstr(client.got.buf, "Content-Type: text/event-stream\r\n"));
    EXPECT(strstr(client.got.buf, "X-Accel-Buffering: no\r\n"));
    const char *done = strstr(unchunked(), "event: done\ndata: ");
    json_t *v = done
                    ? json_loads(done + strlen("event: done\ndata: "), JSON_DISABLE_EOF_CHECK, NULL)
                    : NULL;
    expect_field(v, "stdout", "\"1\\n\"");
    expect_field(v, "success", "true");
    json_decref(v);
    end_tools();
}

TEST(a_slow_reader_of_a_stream_holds_the_agent_up_and_loses_nothing)
{
    static char text[64 * 1024];
    const size_t times = 400;
    size_t sent = 0;

    begin_tools();
    memset(text, 'x', sizeof(text));
    run_code("\"code\":\"1\",\"stream\":true");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    for (int idle = 0; sent < times && idle < 50;) { /* nothing is read meanwhile */
        if (chan_credit(agent.stream) >= sizeof(text)) {
            chan_send(agent.chan, agent.stream, CHAN_STDOUT, text, sizeof(text));
            agent_watch();
            sent++;
            idle = 0;
        } else {
            idle++;
        }
        host_turn(&host);
    }
    EXPECT(sent < times);
    for (; sent < times; sent++)
        agent_data(CHAN_STDOUT, text, sizeof(text));
    agent_end(KERNEL_DONE, 0, false);
    EXPECT(take_all());
    size_t n = 0;
    for (const char *at = unchunked(); (at = strstr(at, "event: stdout\n")); at++)
        n++;
    EXPECT(n >= times);
    EXPECT(strstr(unchunked(), "\"truncated\":{\"stdout\":true,\"stderr\":false}"));
    end_tools();
}

/* ---- run_analysis ---------------------------------------------------------------------------- */

/* Of a request's variables for the cell, the named one; "" if it is not there. */
static const char *cell_variable(const struct strbuf *request, const char *name)
{
    struct wire_reader r;
    size_t len = strlen(name);
    const char *found = "";

    wire_reader_init(&r, request->buf, request->len);
    wire_get_str(&r, 100);
    wire_get_str(&r, 100);
    wire_get_u64(&r);
    for (uint32_t n = wire_get_u32(&r); n > 0; n--)
        wire_get_str(&r, OPS_ARG_MAX);
    for (uint32_t n = wire_get_u32(&r); n > 0; n--) {
        const char *pair = wire_get_str(&r, OPS_ARG_MAX);
        if (strncmp(pair, name, len) == 0 && pair[len] == '=')
            found = pair + len + 1;
    }
    return found;
}

/* Asks for code with parameters; both cells have come when it returns. */
static void ask_custom(void)
{
    run_analysis("\"analysisType\":\"custom\",\"parameters\":{\"a\":\"'\\\"\"},"
                 "\"code\":\"print(parameters)\"");
    for (uint64_t deadline = clock_ns() + WAIT_NS;
         agent.opens < agent.seen + 2 && clock_ns() < deadline;)
        host_turn(&host);
    must(agent.opens == agent.seen + 2, "two cells came"); /* none is waited for */
    agent.seen = agent.opens;
}

/* The one before goes on. */
static void take_before(void)
{
    agent.stream = agent.before;
    agent.before = NULL;
}

TEST(parameters_are_data_of_a_cell_before_the_code)
{
    begin_tools();
    ask_custom();
    EXPECT_STR(agent.code.buf, "print(parameters)");
    EXPECT_STR(cell_variable(&agent.request, "SANDGLASS_PARAMETERS"), "");
    EXPECT_STR(cell_variable(&agent.request_before, "SANDGLASS_PARAMETERS"), "1");
    EXPECT_STR(cell_variable(&agent.request_before, "SANDGLASS_PARAMETERS_0"), "{\"a\":\"'\\\"\"}");
    struct chan_stream *code = agent.stream;
    take_before();
    agent_executing(1, "");
    agent_data(CHAN_STDOUT, "nobody sees this", 16);
    agent_end(KERNEL_DONE, 0, false);
    agent.stream = code;
    agent_executing(2, "");
    agent_data(CHAN_STDOUT, "{\"n\": 1}\n", 9);
    agent_end(KERNEL_DONE, 0, false);
    json_t *v = answer(200);
    expect_field(v, "stdout", "\"{\\\"n\\\": 1}\\n\"");
    expect_field(v, "parsedOutput", "{\"n\":1}");
    expect_field(v, "success", "true");
    json_decref(v);
    end_tools();
}

TEST(parameters_that_did_not_arrive_are_the_error)
{
    begin_tools();
    ask_custom();
    struct chan_stream *code = agent.stream;
    take_before();
    agent_executing(1, "");
    AGENT_PACKET("Re");
    AGENT_PACKET("Tname\0MemoryError");
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
    agent.stream = code;
    agent_executing(2, "");
    agent_end(KERNEL_DONE, 0, false);
    json_t *v = answer(200);
    expect_field(v, "success", "false");
    expect_field(v, "exitCode", "1");
    expect_field(v, "error", "{\"name\":\"MemoryError\",\"value\":\"\",\"traceback\":\"\"}");
    json_decref(v);
    end_tools();
}

TEST(a_queue_that_is_full_refuses_both_cells)
{
    begin_tools();
    ask_custom();
    agent_fails(EAGAIN, "64 cells wait in this context already: wait for one");
    expect_refused(429, "64 cells wait in this context already: wait for one", true);
    EXPECT(agent.cancels == 1);
    end_tools();
}

/* A JSON array of as many ones as one output may have. */
static void print_long_json(void)
{
    static char text[960 * 1024];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 ? '1' : ',';
    text[0] = '[';
    text[sizeof(text) - 2] = text[sizeof(text) - 3];
    text[sizeof(text) - 1] = ']';
    run_analysis("\"analysisType\":\"tax_calculation\",\"parameters\":{\"income\":1}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
    agent_data(CHAN_STDOUT, text, sizeof(text));
    agent_end(KERNEL_DONE, 0, false);
    for (uint64_t deadline = clock_ns() + WAIT_NS;
         host.loop.active_reqs.count == 0 && clock_ns() < deadline;)
        host_turn(&host);
    EXPECT(host.loop.active_reqs.count == 1); /* a thread has it */
}

TEST(a_long_result_is_made_on_a_thread)
{
    begin_tools();
    print_long_json();
    json_t *v = answer(200);
    EXPECT(json_array_size(json_object_get(v, "parsedOutput")) == 960 * 512 - 1);
    EXPECT(json_string_length(json_object_get(v, "stdout")) == 960 * 1024);
    expect_field(v, "success", "true");
    json_decref(v);
    end_tools();
}

TEST(a_client_that_leaves_while_its_result_is_made)
{
    begin_tools();
    print_long_json();
    close(steal_fd(&client.fd));
    for (uint64_t deadline = clock_ns() + WAIT_NS;
         (host.loop.active_reqs.count > 0 || manager.holds > 0) && clock_ns() < deadline;)
        host_turn(&host);
    EXPECT(host.loop.active_reqs.count == 0 && manager.holds == 0);
    end_tools();
}

TEST(a_program_with_a_name_is_one_cell)
{
    begin_tools();
    run_analysis("\"analysisType\":\"tax_calculation\",\"parameters\":{\"income\":1}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT_STR(cell_variable(&agent.request, "SANDGLASS_PARAMETERS"), "1");
    EXPECT_STR(cell_variable(&agent.request, "SANDGLASS_PARAMETERS_0"), "{\"income\":1}");
    EXPECT_STR(cell_variable(&agent.request, "SANDGLASS_PROGRAM_NAME"), "tax_calculation.py");
    EXPECT(
        strstr(cell_variable(&agent.request, "SANDGLASS_PROGRAM_0"), "def calculate(parameters):"));
    EXPECT(!strstr(agent.code.buf, "income"));
    agent_executing(1, "");
    agent_data(CHAN_STDOUT, "{\"tax\": 5}\n", 11);
    agent_end(KERNEL_DONE, 0, false);
    json_t *v = answer(200);
    expect_field(v, "parsedOutput", "{\"tax\":5}");
    expect_field(v, "parseError", "null");
    expect_field(v, "result", "null");
    EXPECT(json_object_size(v) == 15);
    json_decref(v);
    end_tools();
}

TEST(large_parameters_come_in_pieces_between_characters)
{
    static char body[700 * 1024];
    AUTO(strbuf_done) struct strbuf all = {0};
    char name[64];
    size_t n;

    begin_tools();
    n = (size_t)snprintf(body, sizeof(body),
                         "{" PLACE ",\"analysisType\":\"data_analysis\",\"parameters\":\"");
    for (int i = 0; i < 200000; i++)
        n += (size_t)snprintf(body + n, sizeof(body) - n, "\xe2\x82\xac");
    snprintf(body + n, sizeof(body) - n, "\"}");
    ask("POST", "/v1/tools/run_analysis", body);
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    strbuf_init(&all, sizeof(body));
    unsigned long pieces = strtoul(cell_variable(&agent.request, "SANDGLASS_PARAMETERS"), NULL, 10);
    EXPECT(pieces == 5);
    for (unsigned long i = 0; i < pieces; i++) {
        snprintf(name, sizeof(name), "SANDGLASS_PARAMETERS_%lu", i);
        const char *piece = cell_variable(&agent.request, name);
        EXPECT(((unsigned char)piece[0] & 0xc0) != 0x80);
        strbuf_addstr(&all, piece);
    }
    EXPECT(all.len == 600002);
    agent_end(KERNEL_DONE, 0, false);
    json_decref(answer(200));
    end_tools();
}

TEST(an_operators_folder_comes_first)
{
    char dir[] = "/tmp/test_tools.XXXXXX", path[64];

    begin_tools();
    must(mkdtemp(dir) != NULL, "mkdtemp");
    snprintf(path, sizeof(path), "%s/own_kind.py", dir);
    FILE *f = fopen(path, "w");
    must(f && fputs("print(parameters)\n", f) >= 0 && fclose(f) == 0, "write a program");
    snprintf(front.settings.analysis, sizeof(front.settings.analysis), "%s", dir);
    run_analysis("\"analysisType\":\"own_kind\",\"outputFormat\":\"text\"");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT_STR(cell_variable(&agent.request, "SANDGLASS_PROGRAM_0"), "print(parameters)\n");
    EXPECT_STR(cell_variable(&agent.request, "SANDGLASS_PARAMETERS_0"), "{}");
    agent_end(KERNEL_DONE, 0, false);
    json_decref(answer(200));
    run_analysis("\"analysisType\":\"data_analysis\"");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    EXPECT(
        strstr(cell_variable(&agent.request, "SANDGLASS_PROGRAM_0"), "def analyse(parameters):"));
    agent_end(KERNEL_DONE, 0, false);
    json_decref(answer(200));
    run_analysis("\"analysisType\":\"other\"");
    expect_refused(400,
                   "unknown analysisType 'other': use data_analysis, tax_calculation, "
                   "compliance_check or custom",
                   false);
    unlink(path);
    rmdir(dir);
    end_tools();
}

TEST(what_is_wrong_with_an_analysis_is_said)
{
    static const struct {
        const char *fields, *message;
    } cases[] = {
        {"\"code\":\"1\"", "Error when parsing request: 'analysisType' is missing"},
        {"\"analysisType\":\"custom\"",
         "Error when parsing request: 'code' is missing, which the analysisType custom needs"},
        {"\"analysisType\":\"data_analysis\",\"code\":\"1\"",
         "'code' and 'language' are for the analysisType custom: data_analysis has its own "
         "program"},
        {"\"analysisType\":\"../etc/passwd\"",
         "Error when parsing request: 'analysisType' must be a name of the characters a-z, 0-9 and "
         "_"},
        {"\"analysisType\":\"custom\",\"code\":\"1\",\"language\":\"bash\"",
         "unknown language 'bash' of an analysis: use python or javascript"},
        {"\"analysisType\":\"custom\",\"code\":\"1\",\"outputFormat\":\"xml\"",
         "unknown outputFormat 'xml': use json, text or csv"},
    };

    begin_tools();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        run_analysis(cases[i].fields);
        expect_refused(400, cases[i].message, false);
    }
    EXPECT(manager.asked == 0);
    end_tools();
}

/* ---- the registry ---------------------------------------------------------------------------- */

TEST(tools_are_listed_in_three_forms)
{
    static const struct {
        const char *form, *path[2], *schema;
    } forms[] = {{"mcp", {NULL}, "inputSchema"},
                 {"openai", {"function"}, "parameters"},
                 {"anthropic", {NULL}, "input_schema"}};

    begin_tools();
    ask("GET", "/v1/tools", "");
    json_t *all = answer(200);
    EXPECT(json_object_size(all) == ARRAY_SIZE(forms));
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        json_t *list = json_object_get(all, forms[i].form);
        json_t *tool = json_array_get(list, TOOL_RUN_CODE);
        EXPECT(json_array_size(list) == TOOL_MAX_);
        if (forms[i].path[0])
            tool = json_object_get(tool, forms[i].path[0]);
        EXPECT_STR(json_string_value(json_object_get(tool, "name")), "run_code");
        EXPECT(json_is_string(json_object_get(tool, "description")));
        const json_t *schema = json_object_get(tool, forms[i].schema);
        expect_field(schema, "type", "\"object\"");
        expect_field(schema, "required", "[\"conversationId\",\"pathId\",\"code\"]");
        expect_field(schema, "additionalProperties", "false");
    }
    json_decref(all);
    end_tools();
}

TEST(a_bound_list_leaves_the_path_out)
{
    begin_tools();
    ask("GET", "/v1/tools?format=anthropic&conversationId=c&pathId=p", "");
    json_t *list = answer(200);
    for (size_t i = 0; i < TOOL_MAX_; i++) {
        const json_t *schema = json_object_get(json_array_get(list, i), "input_schema");
        const json_t *properties = json_object_get(schema, "properties");
        EXPECT(!json_object_get(properties, "conversationId") &&
               !json_object_get(properties, "pathId") && json_object_get(properties, "code") &&
               !json_object_get(properties, "messageId"));
    }
    expect_field(json_object_get(json_array_get(list, TOOL_RUN_ANALYSIS), "input_schema"),
                 "required", "[\"analysisType\"]");
    json_decref(list);
    ask("GET", "/v1/tools?format=xml", "");
    expect_refused(400, "unknown format: use mcp, openai or anthropic", false);
    ask("GET", "/v1/tools?format=mcp", "");
    list = answer(200);
    const json_t *schema = json_object_get(json_array_get(list, TOOL_RUN_CODE), "inputSchema");
    EXPECT(json_object_get(json_object_get(schema, "properties"), "messageId") != NULL);
    expect_field(schema, "required", "[\"conversationId\",\"pathId\",\"code\"]");
    json_decref(list);
    ask("GET", "/v1/tools?pathId=", "");
    expect_refused(400, "pathId must have 1 to 256 bytes", false);
    end_tools();
}

TAP_MAIN
