/* Running one program in a sandbox: its bytes, its time, its limits, its result. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/base/signame.h"
#include "lib/channel/wire.h"
#include "engine/sandbox.h"
#include "lib/text/spout.h"

#define TIMEOUT_DEFAULT_MS 30000u
#define OUTPUT_DEFAULT     (8u << 20)
#define END_GRACE_NS       5000000000ull /* from CANCEL to END */
#define DRAIN_NS           1000000000ull /* how long the reader gets to read the last output */
#define SPOUT_MAX          (4u * CHAN_WINDOW)
#define STDIN_CHUNK        (64u * 1024)

struct output {
    struct strbuf kept;
    uint64_t total;
    bool cut;
};

struct exec {
    struct call call;
    struct sg_sandbox *sandbox;
    const struct sg_exec *x;
    uint64_t output_limit;
    struct output out[2];  /* stdout, stderr */
    struct spout spout[2]; /* for the streams that go to a descriptor */
    size_t stdin_sent;
    bool stdin_open;
    bool timed_out, interrupted;
};

/* The agent's report of a process that has ended: see wire/agent.h. */
struct ending {
    uint32_t how, code, disk_full;
    uint64_t utime_us, stime_us, maxrss, disk_used, dropped[2];
};

/* Lets the agent send as many bytes again as have been taken. */
static void taken(struct exec *x, size_t n)
{
    if (n > 0 && x->call.stream)
        chan_consumed(x->sandbox->chan, x->call.stream, n);
}

static void keep_output(struct exec *x, uint8_t sub, const void *p, size_t len)
{
    struct output *o = &x->out[sub == CHAN_STDERR];
    uint64_t room = o->total < x->output_limit ? x->output_limit - o->total : 0;
    size_t keep = len < room ? len : (size_t)room;
    uint32_t channel = sub;

    if (keep && x->x->on_output)
        x->x->on_output(x->x->on_output_arg, sub == CHAN_STDERR ? SG_STDERR : SG_STDOUT, p, keep);
    else if (keep)
        strbuf_add(&o->kept, p, keep);
    if (keep < len && !o->cut) {
        AUTO(strbuf_done) struct strbuf q = strbuf_upto(16);
        o->cut = true;
        wire_put_u32(&q, channel);
        chan_control(x->sandbox->chan, x->call.stream, CONTROL_DISCARD, q.buf, q.len);
    }
}

static void take_output(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct exec *x = CONTAINER_OF(c, struct exec, call);
    struct spout *spout = &x->spout[sub == CHAN_STDERR];

    if (spout->fd < 0)
        keep_output(x, sub, p, len);
    x->out[sub == CHAN_STDERR].total += len;
    taken(x, spout->fd < 0 ? len : spout_write(spout, p, len));
}

static void close_stdin(struct exec *x)
{
    if (x->stdin_open && x->call.stream)
        chan_eof(x->sandbox->chan, x->call.stream);
    x->stdin_open = false;
}

static void send_stdin_data(struct call *c)
{
    struct exec *x = CONTAINER_OF(c, struct exec, call);

    if (x->stdin_open && x->x->stdin_data &&
        session_call_send(x->sandbox->chan, c, x->x->stdin_data, x->x->stdin_len, &x->stdin_sent))
        close_stdin(x);
}

static void read_stdin_fd(struct exec *x)
{
    char buf[STDIN_CHUNK];
    size_t credit = chan_credit(x->call.stream);
    ssize_t n = read(x->x->stdin_fd, buf, credit < sizeof(buf) ? credit : sizeof(buf));

    if (n > 0)
        chan_send(x->sandbox->chan, x->call.stream, CHAN_STDIN, buf, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_stdin(x);
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* Puts both lists into the request as one. */
static void put_lists(struct strbuf *q, const char *const *first, const char *const *second)
{
    wire_put_u32(q, (uint32_t)(count(first) + count(second)));
    for (; first && *first; first++)
        wire_put_str(q, *first);
    for (; second && *second; second++)
        wire_put_str(q, *second);
}

static int check_request(const struct sg_exec *x, struct sg_error *e)
{
    if (!x->argv || !x->argv[0] || !x->argv[0][0])
        return err_invalid(e, "no command to run");
    if (count(x->argv) > OPS_ARGS_MAX || count(x->env) > OPS_ARGS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG,
                       "too many arguments or variables: at most %d of each", OPS_ARGS_MAX);
    for (const char *const *v = x->env; v && *v; v++)
        if (**v == '=' || !strchr(*v, '='))
            return err_invalid(e, "an environment variable must look like NAME=VALUE");
    return 0;
}

static int begin(struct exec *x, struct sg_error *e)
{
    const struct sg_exec *q = x->x;
    bool has_stdin = q->stdin_data || q->stdin_fd >= 0;
    AUTO(strbuf_done) struct strbuf req = strbuf_upto(OPS_OPEN_MAX);
    int r;

    r = check_request(q, e);
    if (r < 0)
        return r;
    wire_put_str(&req, q->user ? q->user : "user");
    wire_put_str(&req, q->cwd ? q->cwd : "");
    wire_put_u32(&req, (q->tty ? PROC_PTY : 0) | (has_stdin ? PROC_STDIN : 0));
    wire_put_u32(&req, q->tty_rows ? q->tty_rows : 24);
    wire_put_u32(&req, q->tty_cols ? q->tty_cols : 80);
    wire_put_u64(&req, 0); /* the host keeps the deadline: that also ends a sandbox that hangs */
    wire_put_str(&req, "");
    wire_put_str(&req, "");
    put_lists(&req, q->argv, NULL);
    put_lists(&req, q->env, (const char *const *)x->sandbox->env);
    x->call.on_data = take_output;
    x->call.owes = true;
    x->call.on_credit = send_stdin_data;
    x->stdin_open = has_stdin;
    r = session_call_begin(x->sandbox->chan, &x->call, OP_PROCESS_START, &req, e);
    if (r == 0)
        send_stdin_data(&x->call);
    return r;
}

/* poll reports that the reader is gone even if no event is asked for. */
static struct pollfd watch_spout(const struct spout *s)
{
    return (struct pollfd){.fd = s->error ? -1 : s->fd,
                           .events = spout_waiting(s) > 0 ? POLLOUT : 0};
}

static void serve_spout(struct exec *x, struct spout *s, short revents)
{
    if (revents & POLLOUT)
        taken(x, spout_pump(s));
    if (revents & (POLLERR | POLLHUP))
        spout_hung_up(s);
    if (s->error)
        taken(x, spout_pump(s)); /* drops what is queued */
}

/* One turn: serves the channel, the caller's descriptors and its interruption. */
static int step(struct exec *x, uint64_t deadline, struct sg_error *e)
{
    bool from_fd = x->stdin_open && x->x->stdin_fd >= 0 && chan_credit(x->call.stream) > 0;
    bool cancelled = x->timed_out || x->interrupted || x->spout[0].error;
    struct pollfd p[4] = {
        {.fd = cancelled ? -1 : x->x->interrupt_fd, .events = POLLIN},
        {.fd = from_fd && !cancelled ? x->x->stdin_fd : -1, .events = POLLIN},
        watch_spout(&x->spout[0]),
        watch_spout(&x->spout[1]),
    };
    int r = session_step(x->sandbox->chan, p, ARRAY_SIZE(p), deadline, e);

    if (r < 0 || x->call.ended)
        return r;
    if (p[1].revents && x->stdin_open)
        read_stdin_fd(x);
    serve_spout(x, &x->spout[0], p[2].revents);
    serve_spout(x, &x->spout[1], p[3].revents);
    x->interrupted |= p[0].revents != 0;
    return 0;
}

static int wait_for_write(struct exec *x, struct file_write *w, struct sg_error *e)
{
    int r;

    if (!w || !w->call.ended || w->call.status == 0)
        return 0;
    r = session_call_error(&w->call, e);
    if (x->call.stream)
        chan_cancel(x->sandbox->chan, x->call.stream);
    return r;
}

/* Gives the reader time for the output that is left after the program has ended. */
static void drain(struct exec *x, uint64_t deadline)
{
    if (x->timed_out || x->interrupted)
        deadline = clock_ns() + DRAIN_NS;
    while (spout_waiting(&x->spout[0]) + spout_waiting(&x->spout[1]) > 0) {
        struct pollfd p[3] = {watch_spout(&x->spout[0]),
                              watch_spout(&x->spout[1]),
                              {.fd = x->interrupted ? -1 : x->x->interrupt_fd, .events = POLLIN}};
        int n = poll(p, ARRAY_SIZE(p), clock_poll_ms(deadline));

        x->timed_out |= n == 0 && !x->interrupted;
        x->interrupted |= n > 0 && p[2].revents;
        if (n == 0 || p[2].revents)
            return;
        for (size_t i = 0; n > 0 && i < ARRAY_SIZE(x->spout); i++)
            serve_spout(x, &x->spout[i], p[i].revents);
    }
}

/* Runs until the program has ended. After CANCEL the agent has END_GRACE_NS to send END. */
static int run_loop(struct exec *x, struct file_write *w, uint64_t deadline, struct sg_error *e)
{
    bool cancelled = false;

    while (!x->call.ended) {
        int r = step(x, deadline, e);
        if (r < 0)
            return r;
        r = wait_for_write(x, w, e);
        if (r < 0)
            return r;
        if (x->call.ended)
            break;
        if (clock_ns() >= deadline && cancelled)
            return err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT, "the sandbox does not end its program");
        x->timed_out |= !cancelled && clock_ns() >= deadline;
        if (!cancelled && (x->timed_out || x->interrupted || x->spout[0].error)) {
            chan_cancel(x->sandbox->chan, x->call.stream);
            cancelled = true;
            deadline = clock_ns() + END_GRACE_NS;
        }
    }
    drain(x, deadline);
    return 0;
}

static int read_ending(const struct call *c, struct ending *ret, struct sg_error *e)
{
    struct wire_reader r = wire_reader_of(c->result.buf, c->result.len);

    ret->how = wire_get_u32(&r);
    ret->code = wire_get_u32(&r);
    ret->utime_us = wire_get_u64(&r);
    ret->stime_us = wire_get_u64(&r);
    ret->maxrss = wire_get_u64(&r);
    ret->disk_used = wire_get_u64(&r);
    ret->disk_full = wire_get_u32(&r);
    ret->dropped[0] = wire_get_u64(&r);
    ret->dropped[1] = wire_get_u64(&r);
    wire_get_u32(&r); /* whether the agent's time limit ended the program: none was set */
    wire_get_u64(&r); /* the memory limit that ended it: the group is looked at here */
    if (!wire_done(&r) || ret->code > 255)
        return err_set(e, SG_ERR_GONE, -EPROTO, "the sandbox sent a malformed result");
    return 0;
}

static enum sg_limit which_limit(const struct exec *x, const struct ending *end,
                                 const struct instance_events *events)
{
    if (x->timed_out)
        return SG_LIMIT_TIME;
    if (events->oom_kills > 0)
        return SG_LIMIT_MEMORY;
    if (events->pids_hits > 0)
        return SG_LIMIT_PIDS;
    if (end->disk_full || (end->how == PROC_KILLED && end->code == SIGXFSZ))
        return SG_LIMIT_DISK;
    if (x->out[0].cut || x->out[1].cut)
        return SG_LIMIT_OUTPUT;
    return SG_LIMIT_NONE;
}

static void explain(struct sg_result *r)
{
    const struct sg_limits *l = &r->limits_applied;
    char text[32], ended[64];

    if (r->signal)
        snprintf(ended, sizeof(ended), "killed by signal %d (SIG%s)", r->signal,
                 signal_name(r->signal));
    else
        snprintf(ended, sizeof(ended), "exit status %d", r->exit_code);
    switch (r->limit) {
    case SG_LIMIT_TIME:
        format_duration_us(r->timeout_ms * 1000, text, sizeof(text));
        snprintf(r->error_message, sizeof(r->error_message), "timed out after %s", text);
        break;
    case SG_LIMIT_MEMORY:
        snprintf(r->error_message, sizeof(r->error_message), "out of memory: the limit is %s (%s)",
                 format_size(l->memory_bytes, text, sizeof(text)), ended);
        break;
    case SG_LIMIT_PIDS:
        snprintf(r->error_message, sizeof(r->error_message),
                 "too many processes: the limit is %u (%s)", l->pids, ended);
        break;
    case SG_LIMIT_DISK:
        snprintf(r->error_message, sizeof(r->error_message), "disk full: the limit is %s (%s)",
                 format_size(l->disk_bytes, text, sizeof(text)), ended);
        break;
    case SG_LIMIT_OUTPUT:
        snprintf(r->error_message, sizeof(r->error_message),
                 "output cut: the limit is %s a stream (%s)",
                 format_size(r->output_limit, text, sizeof(text)), ended);
        break;
    case SG_LIMIT_NONE:
    case SG_LIMIT_MAX_:
        if (r->status != SG_STATUS_SUCCESS)
            snprintf(r->error_message, sizeof(r->error_message), "%s", ended);
        break;
    }
}

static void fill_result(struct exec *x, const struct ending *end, struct sg_result *r)
{
    r->signal = end->how == PROC_KILLED ? (int)end->code : 0;
    r->exit_code = r->signal ? 128 + r->signal : (int)end->code;
    r->status = r->exit_code == 0 ? SG_STATUS_SUCCESS : SG_STATUS_EXECUTION_ERROR;
    if (x->timed_out) {
        r->status = SG_STATUS_TIMEOUT;
        r->exit_code = 124;
    }
    r->usage.cpu_user_us = end->utime_us;
    r->usage.cpu_system_us = end->stime_us;
    r->usage.disk_bytes = end->disk_used;
    r->usage.stdout_bytes = x->out[0].total + end->dropped[0];
    r->usage.stderr_bytes = x->out[1].total + end->dropped[1];
    r->stdout_data = strbuf_detach(&x->out[0].kept, &r->stdout_len);
    r->stderr_data = strbuf_detach(&x->out[1].kept, &r->stderr_len);
    if (x->interrupted)
        snprintf(r->error_message, sizeof(r->error_message), "interrupted");
    else
        explain(r);
}

static int finish(struct exec *x, uint64_t started, struct sg_result *ret, struct sg_error *e)
{
    struct instance_events events;
    struct ending end = {0};
    int r = session_call_error(&x->call, e), unread = x->spout[0].error;

    if (r == 0 && (unread == EPIPE || unread == ECONNRESET))
        r = err_set(e, SG_ERR_GONE, -ESHUTDOWN,
                    "the reader of the program's standard output has closed it");
    else if (r == 0 && unread)
        r = err_set(e, err_kind_of(unread), -unread, "cannot write the program's output: %s",
                    strerror(unread));
    if (r == 0)
        r = read_ending(&x->call, &end, e);
    if (r < 0)
        return r;
    provider_waiting.events(x->sandbox->instance, &events);
    struct sg_result res = {
        .duration_us = (clock_ns() - started) / 1000,
        .limit = which_limit(x, &end, &events),
        .limits_applied = x->sandbox->limits,
        .timeout_ms = x->x->timeout_ms ? x->x->timeout_ms : TIMEOUT_DEFAULT_MS,
        .output_limit = x->output_limit,
        .usage.memory_peak_bytes = events.memory_peak,
    };
    fill_result(x, &end, &res);
    *ret = res;
    return 0;
}

int exec_run(struct sg_sandbox *s, const struct sg_exec *q, struct file_write *pending,
             const char *results, struct sg_result *ret, struct sg_error *e)
{
    uint64_t started = clock_ns(), timeout = q->timeout_ms ? q->timeout_ms : TIMEOUT_DEFAULT_MS;
    struct exec x = {
        .sandbox = s, .x = q, .output_limit = q->output_limit ? q->output_limit : OUTPUT_DEFAULT};
    int r;

    if (s->broken)
        return err_set(e, SG_ERR_GONE, -EPIPE, "this sandbox has ended");
    strbuf_init(&x.out[0].kept, x.output_limit);
    strbuf_init(&x.out[1].kept, x.output_limit);
    spout_init(&x.spout[0], q->stdout_fd, SPOUT_MAX);
    spout_init(&x.spout[1], q->stderr_fd, SPOUT_MAX);
    r = begin(&x, e);
    chan_uncork(s->chan);
    if (r == 0)
        r = sandbox_await(s, e);
    if (r == 0)
        r = run_loop(&x, pending, started + timeout * 1000000u, e);
    if (r == 0 && results)
        results_give(s, q, results);
    if (s->one_shot)
        provider_waiting.kill(s->instance); /* the sandbox dies while we read its counters */
    s->broken = r == -EPIPE || r == -EPROTO || r == -ETIMEDOUT || r == -ECONNRESET;
    if (r == 0)
        r = finish(&x, started, ret, e);
    session_call_done(&x.call);
    strbuf_done(&x.out[0].kept);
    strbuf_done(&x.out[1].kept);
    spout_done(&x.spout[0]);
    spout_done(&x.spout[1]);
    return r;
}
