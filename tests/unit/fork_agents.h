/* Agents for the sandboxes of e2b_server.h that hold their cells, take kernels over, and run cells
 * that say what their code is. Programs that they start do not end. Everything else they answer with success. */
#pragma once

#include "lib/channel/chan.h"
#include "lib/channel/wire.h"
#include "e2b_server.h"

#define FORK_KERNEL "11111111-2222-4333-8444-555555555555"

struct fork_agent {
    struct fork_agent *next;
    struct chan *chan;
    struct strbuf code; /* of the cell that is being sent */
};

static struct {
    uv_prepare_t prepare;
    size_t seen; /* of server.agents */
    struct fork_agent *first;
    unsigned holds, adopts, cells;
    bool cell_runs; /* in all of them: nothing can be held */
    bool slow;      /* kernels are not taken over, cells do not end, and are waited for */
} fork_agents;

static inline void fork_hold(struct chan *c, struct chan_stream *s)
{
    AUTO(strbuf_done) struct strbuf p = {0};

    fork_agents.holds++;
    if (fork_agents.cell_runs) {
        chan_end(c, s, EBUSY, "context " FORK_KERNEL, NULL, 0);
        return;
    }
    if (fork_agents.slow)
        return;
    strbuf_init(&p, 4096);
    wire_put_str(&p, FORK_KERNEL);
    wire_put_str(&p, "python");
    wire_put_str(&p, "/home/user");
    wire_put_u32(&p, KERNEL_IDLE);
    wire_put_u32(&p, 1);  /* cells */
    wire_put_u32(&p, 1);  /* default */
    wire_put_u32(&p, 0);  /* cold */
    wire_put_u32(&p, 17); /* pid */
    wire_put_u32(&p, 1);  /* twin */
    wire_put_u32(&p, 0);
    chan_event(c, s, EVENT_KERNEL, p.buf, p.len);
    chan_event(c, s, EVENT_HELD, NULL, 0);
}

static inline void fork_on_open(struct chan *c, struct chan_stream *s, uint8_t op, const void *req,
                                size_t len)
{
    struct fork_agent *a = chan_arg(c);

    (void)req, (void)len;
    if (op == OP_KERNEL_HOLD) {
        fork_hold(c, s);
    } else if (op == OP_KERNEL_EXECUTE) {
        strbuf_reset(&a->code);
    } else if (op == OP_PROCESS_START) {
        chan_event(c, s, EVENT_STARTED, "\1\0\0\0\0\0\0\0", 8); /* and it does not end */
    } else {
        fork_agents.adopts += op == OP_KERNEL_ADOPT;
        if (op != OP_KERNEL_ADOPT || !fork_agents.slow)
            chan_end(c, s, 0, NULL, "\1\0\0\0", 4);
    }
}

static inline void fork_on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p,
                                size_t len)
{
    struct fork_agent *a = chan_arg(c);

    (void)sub;
    strbuf_add(&a->code, p, len);
    chan_consumed(c, s, len);
}

static inline void fork_on_eof(struct chan *c, struct chan_stream *s)
{
    AUTO(strbuf_done) struct strbuf begun = {0}, over = {0};
    struct fork_agent *a = chan_arg(c);

    strbuf_init(&begun, 64);
    wire_put_u32(&begun, 1);
    wire_put_str(&begun, "");
    strbuf_init(&over, 64);
    wire_put_u32(&over, KERNEL_DONE);
    wire_put_u32(&over, 0);
    wire_put_u32(&over, 0);
    wire_put_u64(&over, 0);
    fork_agents.cells++;
    chan_event(c, s, EVENT_EXECUTING, begun.buf, begun.len);
    chan_send(c, s, CHAN_STDOUT, a->code.buf, a->code.len);
    if (!fork_agents.slow)
        chan_end(c, s, 0, NULL, over.buf, over.len);
}

static inline void fork_on_cancel(struct chan *c, struct chan_stream *s)
{
    chan_end(c, s, ECANCELED, "cancelled", NULL, 0);
}

static inline void fork_on_control(struct chan *c, struct chan_stream *s, uint8_t what,
                                   const void *p, size_t len)
{
    (void)c, (void)s, (void)what, (void)p, (void)len;
}

static inline void fork_on_credit(struct chan *c, struct chan_stream *s)
{
    (void)c, (void)s;
}

static inline void fork_agent_add(int fd)
{
    static const struct chan_handlers handlers = {.on_open = fork_on_open,
                                                  .on_data = fork_on_data,
                                                  .on_eof = fork_on_eof,
                                                  .on_cancel = fork_on_cancel,
                                                  .on_control = fork_on_control,
                                                  .on_credit = fork_on_credit};
    struct fork_agent *a = xcalloc(1, sizeof(*a));

    strbuf_init(&a->code, KERNEL_CODE_MAX);
    a->chan = chan_new(fcntl(fd, F_DUPFD_CLOEXEC, 3), CHAN_AGENT, &handlers, a);
    a->next = fork_agents.first;
    fork_agents.first = a;
}

/* With each turn of the loop: new ones, and what they were asked. */
static inline void fork_agents_turn(uv_prepare_t *p)
{
    (void)p;
    if (server.n_agents < fork_agents.seen)
        fork_agents.seen = 0;
    while (fork_agents.seen < server.n_agents)
        fork_agent_add(server.agents[fork_agents.seen++ % AGENTS_MAX]);
    for (struct fork_agent **at = &fork_agents.first; *at;) {
        struct fork_agent *a = *at;

        if (chan_pump(a->chan) == 0) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        chan_free(a->chan);
        strbuf_done(&a->code);
        free(a);
    }
}

static inline void fork_agents_start(void)
{
    uv_prepare_init(server.front.loop, &fork_agents.prepare);
    uv_prepare_start(&fork_agents.prepare, fork_agents_turn);
    uv_unref((uv_handle_t *)&fork_agents.prepare);
}
