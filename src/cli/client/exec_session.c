#include "cli/client/exec_session.h"

#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/text/spout.h"
#include "lib/command/exit_status.h"
#include "lib/command/ui.h"
#include "lib/command/terminal.h"
#include "cli/client/connect.h"
#include "cli/client/exec_event.h"
#include "cli/client/payload.h"
#include "cli/client/web.h"

#define KEEPALIVE_S    "50" /* how often the server is to send a sign of life */
#define SILENCE_MAX_MS 200000
#define GRACE_MS       2000 /* time for the server to end the program at its time limit */
#define TURN_MS        1000
#define EXEC_INPUT_MAX (64u * 1024)
#define TYPED_EOF      "\004" /* ^D: the only way to tell a terminal's program that its input is over */
/* ^D is lost on a program that does not read lines at that moment, as a shell that still starts. */
#define TYPED_AGAIN_MS 500
/* An interactive shell ignores SIGTERM. Who ends us by it, as timeout(1) does, sends no second. */
#define PATIENCE_MS 2000
#define REFUSAL_MAX (64u * 1024)
#define NS_PER_MS   1000000ull
/* One whole message of the stream may arrive on top of the high mark. */
#define OUTPUT_MAX (EXEC_OUTPUT_HIGH + 32u * 1024 * 1024)

/* ---- the calls beside the stream ------------------------------------------------------------- */

/* The calls that go beside a process's stream: input, terminal size, signals. Only one is made at a
 * time, so that input keeps its order, and a signal goes before input that waits. */
enum exec_call { CALL_SIGNAL, CALL_RESIZE, CALL_INPUT, CALL_CLOSE };

struct exec_control {
    struct sandbox *sandbox;
    bool pty;
    uint32_t pid; /* 0: not started yet, so all calls wait */

    /* calls that wait */
    int signal;
    bool resize, close;
    struct strbuf input;
    uint64_t typed_ns; /* when ^D was typed last */
    bool input_over;   /* the process takes no more input */

    struct repl_call call; /* the call that is being made, */
    enum exec_call kind;   /* and which one it is */
};

static void finished(void *arg, CURLcode code, const struct web_reply *reply)
{
    struct exec_control *c = arg;
    struct sg_error e = {0};
    int r = web_result(c->call.easy, code, c->call.url.buf, &e);

    if (r == 0 && reply->status != 200)
        r = sandbox_refusal(c->sandbox, reply, &e);
    /* The program may have ended, or closed its input, while input was on its way to it. So a
     * failure only means that the program takes no more input. */
    if (r < 0 && c->kind == CALL_INPUT) {
        c->input_over = true;
        strbuf_reset(&c->input);
    }
    if (r == -ENOSYS && c->kind == CALL_CLOSE)
        ui_note("this server cannot close the program's standard input");
}

static void control_init(struct exec_control *c, struct sandbox *sandbox, struct repl_watch *watch,
                         bool pty)
{
    *c = (struct exec_control){.sandbox = sandbox, .pty = pty};
    repl_call_init(&c->call, watch);
    c->call.finished = finished;
    c->call.arg = c;
    strbuf_init(&c->input, EXEC_INPUT_MAX);
}

static void control_done(struct exec_control *c)
{
    repl_call_done(&c->call);
    strbuf_done(&c->input);
}

/* Whether there is room for input. Then the caller fills c->input, or sets c->close at the end of
 * its input. */
static bool control_wants_input(const struct exec_control *c)
{
    return c->pid && c->input.len == 0 && !c->close && !c->input_over;
}

static void begin_call(struct exec_control *c, enum exec_call kind, const char *method,
                       struct strbuf *body)
{
    struct curl_slist *headers = sandbox_headers(c->sandbox, "application/json");
    struct strbuf url;

    c->kind = kind;
    sandbox_api_url(c->sandbox, &url, method);
    web_add_header(&headers, "Connect-Protocol-Version", "1");
    repl_call_post(&c->call, &url, body, &headers);
}

/* Begins the next call, unless one is being made. A call that fails does not end the session: the
 * stream tells how the process is. */
static void control_go_on(struct exec_control *c)
{
    struct strbuf body;
    uint16_t rows, cols;

    if (!c->pid || c->call.busy)
        return;
    if (c->close && c->pty && c->input.len == 0 && !c->input_over &&
        clock_ns() > c->typed_ns + TYPED_AGAIN_MS * NS_PER_MS) {
        strbuf_addstr(&c->input, TYPED_EOF);
        c->typed_ns = clock_ns();
    }
    if (c->signal) {
        payload_signal(&body, c->pid, c->signal);
        c->signal = 0;
        begin_call(c, CALL_SIGNAL, "process.Process/SendSignal", &body);
    } else if (c->resize) {
        terminal_size(&rows, &cols);
        payload_resize(&body, c->pid, rows, cols);
        c->resize = false;
        begin_call(c, CALL_RESIZE, "process.Process/Update", &body);
    } else if (c->input.len > 0) {
        payload_input(&body, c->pid, c->pty, c->input.buf, c->input.len);
        strbuf_reset(&c->input);
        begin_call(c, CALL_INPUT, "process.Process/SendInput", &body);
    } else if (c->close && !c->pty && !c->input_over) {
        payload_process(&body, c->pid);
        c->input_over = true;
        begin_call(c, CALL_CLOSE, "process.Process/CloseStdin", &body);
    }
}

/* ---- the session ----------------------------------------------------------------------------- */

struct session {
    struct sandbox *sandbox;
    const struct exec_session_options *o;
    CURL *stream;
    struct repl_transfer transfer; /* the stream's */
    struct strbuf url, request;
    struct curl_slist *headers;

    struct strbuf frame;      /* the beginning of a frame */
    struct web_reply refusal; /* an answer that refuses the stream */
    struct spout out[2];
    struct exec_control control;
    bool held;         /* the stream waits for our outputs */
    uint64_t heard_ns; /* when the stream last brought something */
    uint64_t deadline_ns;
    unsigned n_signals; /* how many signals asked us to end */
    uint64_t kill_ns;   /* when a program that did not obey the first is killed; 0: never */

    struct exec_result result;
    bool ended, left;
    CURLcode stream_code;
    bool stream_over;
    int failure; /* error of reading the stream; `error` is why */
    struct sg_error error;
};

/* ---- the stream ------------------------------------------------------------------------------ */

static size_t output_left(const struct session *s)
{
    return spout_waiting(&s->out[0]) + spout_waiting(&s->out[1]);
}

static int take_event(struct session *s, const char *message, size_t len, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(CONNECT_MAX);
    struct exec_event event;

    int r = exec_event_parse(message, len, &event, &data, e);
    if (r < 0)
        return r;
    switch (event.kind) {
    case EXEC_EVENT_START:
        s->result.pid = s->control.pid = event.pid;
        s->left = s->o->detach;
        return 0;
    case EXEC_EVENT_STDOUT:
    case EXEC_EVENT_STDERR:
        spout_write(&s->out[event.kind == EXEC_EVENT_STDERR], data.buf, data.len);
        return 0;
    case EXEC_EVENT_END:
        s->ended = true;
        if (s->left)
            return 0;
        s->result.exit_status = event.exit_status;
        memcpy(s->result.why, event.why, sizeof(s->result.why));
        return 0;
    case EXEC_EVENT_OTHER:
    case EXEC_EVENT_MAX_:
    default:
        return 0;
    }
}

static int take_message(void *arg, bool end, const char *message, size_t len, struct sg_error *e)
{
    struct session *s = arg;

    return end ? exec_event_parse_last(message, len, e) : take_event(s, message, len, e);
}

static size_t take_bytes(char *data, size_t size, size_t n, void *arg)
{
    struct session *s = arg;

    s->heard_ns = clock_ns();
    if (s->refusal.status == 0)
        curl_easy_getinfo(s->stream, CURLINFO_RESPONSE_CODE, &s->refusal.status);
    if (s->refusal.status != 200) {
        strbuf_add(&s->refusal.body, data, size * n);
        return size * n;
    }
    if (output_left(s) > EXEC_OUTPUT_HIGH) {
        s->held = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    s->failure = connect_feed(&s->frame, data, size * n, take_message, s, &s->error);
    return s->failure < 0 ? 0 : size * n;
}

static void begin_stream(struct session *s)
{
    AUTO(strbuf_done) struct strbuf message = {0};
    char ms[32];

    payload_start(&message, &s->o->start);
    strbuf_init(&s->request, message.max + CONNECT_HEADER);
    connect_write(&s->request, &message);
    sandbox_api_url(s->sandbox, &s->url, "process.Process/Start");
    s->headers = sandbox_headers(s->sandbox, "application/connect+json");
    web_add_header(&s->headers, "Connect-Protocol-Version", "1");
    web_add_header(&s->headers, "Keepalive-Ping-Interval", KEEPALIVE_S);
    snprintf(ms, sizeof(ms), "%llu", (unsigned long long)s->o->timeout_ms);
    if (s->o->timeout_ms)
        web_add_header(&s->headers, "Connect-Timeout-Ms", ms);
    struct web_request q = {
        .method = "POST", .url = s->url.buf, .headers = s->headers, .body = &s->request};
    web_prepare(s->stream, &q);
    curl_easy_setopt(s->stream, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(s->stream, CURLOPT_WRITEDATA, s);
    repl_watch_add(s->o->watch, s->stream, &s->transfer);
}

static void stream_done(struct repl_transfer *t, CURLcode code)
{
    struct session *s = CONTAINER_OF(t, struct session, transfer);

    s->stream_code = code;
    s->stream_over = true;
}

/* ---- our side -------------------------------------------------------------------------------- */

static void leave(struct session *s, int status)
{
    s->left = true;
    s->result.exit_status = status;
}

/* The protocol knows two signals. Our first signal asks the program to end (SIGTERM), the second
 * ends it (SIGKILL), and at the third we leave without it. A lost terminal (SIGHUP) cannot ask
 * twice, so it ends the program at once. On a terminal the second step is taken without being
 * asked. */
static void take_signal(struct session *s, int sig)
{
    if (s->o->start.pty && s->kill_ns == 0)
        s->kill_ns = clock_ns() + PATIENCE_MS * NS_PER_MS;
    s->n_signals++;
    if (!s->control.pid || s->n_signals > 2)
        leave(s, CLI_EXIT_SIGNAL + sig);
    s->control.signal = s->n_signals > 1 || sig == SIGHUP ? SIGKILL : SIGTERM;
}

static void take_input(struct session *s)
{
    char piece[EXEC_INPUT_MAX];
    ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

    if (n > 0)
        strbuf_add(&s->control.input, piece, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        s->control.close = true;
}

/* Writes output. If nobody reads it any more, the program is killed, as a closed pipe would do. */
static void check_outputs(struct session *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(s->out); i++) {
        spout_pump(&s->out[i]);
        if (s->out[i].error && s->n_signals < 2 && s->control.pid) {
            s->n_signals = 2;
            s->control.signal = SIGKILL;
        }
    }
    if (s->held && output_left(s) == 0) {
        s->held = false;
        s->heard_ns = clock_ns();
        curl_easy_pause(s->stream, CURLPAUSE_CONT);
    }
}

static void wait_for_something(struct session *s)
{
    bool input = s->o->input && control_wants_input(&s->control);
    struct pollfd fds[] = {
        {.fd = input ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = spout_waiting(&s->out[0]) > 0 ? STDOUT_FILENO : -1, .events = POLLOUT},
        {.fd = spout_waiting(&s->out[1]) > 0 ? STDERR_FILENO : -1, .events = POLLOUT},
    };
    struct repl_turn turn = repl_watch_wait(s->o->watch, fds, ARRAY_SIZE(fds), TURN_MS);

    s->control.resize |= turn.resized && s->o->start.pty;
    for (size_t i = 0; i < turn.n_signals; i++)
        take_signal(s, turn.signals[i]);
    if (fds[0].revents)
        take_input(s);
}

static void check_clock(struct session *s)
{
    uint64_t now = clock_ns();

    if (s->kill_ns && now > s->kill_ns && s->n_signals < 2) {
        s->n_signals = 2;
        s->control.signal = SIGKILL;
    }
    if (s->o->timeout_ms && now > s->deadline_ns)
        s->failure = err_set(&s->error, SG_ERR_LIMIT, -ETIMEDOUT, "the timeout expired");
    else if (!s->held && now > s->heard_ns + SILENCE_MAX_MS * NS_PER_MS)
        s->failure =
            err_set(&s->error, SG_ERR_GONE, -EHOSTUNREACH, "the server has stopped sending");
}

static void loop(struct session *s)
{
    for (;;) {
        repl_watch_run(s->o->watch);
        check_outputs(s);
        s->stream_over |= s->failure < 0;
        bool written = output_left(s) == 0;
        if (s->left || (s->stream_over && written))
            return;
        if (!s->stream_over)
            control_go_on(&s->control);
        wait_for_something(s);
        if (!s->stream_over)
            check_clock(s);
    }
}

/* ---- the outcome ----------------------------------------------------------------------------- */

/* Explains why the connection broke. If the sandbox has ended, that is what the user wants to
 * hear. */
static int explain_loss(struct session *s, struct sg_error *e)
{
    AUTO(web_headers_done) struct curl_slist *headers = sandbox_headers(s->sandbox, NULL);
    AUTO(web_reply_done) struct web_reply reply = {0};
    AUTO(strbuf_done) struct strbuf url = {0};
    int r = web_result(s->stream, s->stream_code, s->url.buf, e);

    if (!s->control.pid)
        return r;
    sandbox_api_url(s->sandbox, &url, "health");
    struct web_request q = {.method = "GET", .url = url.buf, .headers = headers};
    if (web_call(s->sandbox->client->easy, &q, &reply, NULL) == 0 && reply.status == 502)
        sandbox_gone(s->sandbox, &reply, "has ended, and the program with it", e);
    else
        err_set(e, SG_ERR_GONE, -EHOSTUNREACH,
                "the connection was lost; the program may still run in sandbox %s, as process %u",
                s->sandbox->id, s->control.pid);
    return e->code = -EHOSTUNREACH;
}

static int outcome(struct session *s, struct sg_error *e)
{
    char time[32];

    for (size_t i = 0; i < ARRAY_SIZE(s->out); i++) {
        if (s->out[i].error == EPIPE)
            s->result.exit_status = CLI_EXIT_SIGNAL + SIGPIPE;
        else if (s->out[i].error)
            return err_set(e, SG_ERR_INTERNAL, -s->out[i].error,
                           "cannot write the program's output: %s", strerror(s->out[i].error));
    }
    if (s->left)
        return 0;
    /* Checked before `ended`: at the time limit a server may kill the program and report both. */
    if (s->failure == -ETIMEDOUT && s->o->timeout_ms)
        return err_set(e, SG_ERR_LIMIT, -ETIMEDOUT, "the program did not end within %s",
                       format_duration_us(s->o->timeout_ms * 1000, time, sizeof(time)));
    if (s->ended)
        return 0;
    if (s->failure < 0) {
        *e = s->error;
        return s->failure;
    }
    curl_easy_getinfo(s->stream, CURLINFO_RESPONSE_CODE, &s->refusal.status);
    if (s->stream_code == CURLE_OK && s->refusal.status != 200)
        return sandbox_refusal(s->sandbox, &s->refusal, e);
    if (s->stream_code != CURLE_OK)
        return explain_loss(s, e);
    return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server did not report how the program ended");
}

int exec_session_run(struct sandbox *sandbox, const struct exec_session_options *o,
                     struct exec_result *ret, struct sg_error *e)
{
    struct session s = {
        .sandbox = sandbox, .o = o, .stream = curl_easy_init(), .transfer.done = stream_done};

    if (!s.stream)
        abort();
    strbuf_init(&s.frame, CONNECT_FRAME_MAX);
    strbuf_init(&s.refusal.body, REFUSAL_MAX);
    spout_init(&s.out[0], STDOUT_FILENO, OUTPUT_MAX);
    spout_init(&s.out[1], STDERR_FILENO, OUTPUT_MAX);
    control_init(&s.control, sandbox, o->watch, o->start.pty);
    s.heard_ns = clock_ns();
    s.deadline_ns = s.heard_ns + (o->timeout_ms + GRACE_MS) * NS_PER_MS;

    begin_stream(&s);
    if (!s.request.truncated)
        loop(&s);
    int r = s.request.truncated ? err_set(e, SG_ERR_LIMIT, -E2BIG, "the command is too long")
                                : outcome(&s, e);
    *ret = s.result;

    control_done(&s.control);
    curl_multi_remove_handle(o->watch->multi, s.stream);
    curl_easy_cleanup(s.stream);
    web_headers_done(&s.headers);
    web_reply_done(&s.refusal);
    strbuf_done(&s.frame);
    for (size_t i = 0; i < ARRAY_SIZE(s.out); i++)
        spout_done(&s.out[i]);
    strbuf_done(&s.url);
    strbuf_done(&s.request);
    return r;
}
