/* Cells, run by a real agent. */
#pragma once

#include "agent_host.h"

#define FOREVER "while True: pass"

struct cell_end {
    uint32_t how, code, timed_out;
    uint64_t memory_limit;
};

static inline void cell_send(struct agent_host *h, struct call *c, const char *code)
{
    if (code[0])
        chan_send(h->chan, c->stream, 0, code, strlen(code));
    chan_eof(h->chan, c->stream);
}

/* In the context of that id, or with "" in the default one of the language. */
static inline void cell_open(struct agent_host *h, struct call *c, const char *id,
                             const char *language, uint64_t timeout_ms, const char *code)
{
    call_open(h, c, OP_KERNEL_EXECUTE, "ssUuu", id, language, timeout_ms, 0u, 0u);
    cell_send(h, c, code);
}

static inline struct cell_end cell_end(const struct call *c)
{
    struct cell_end end = {99, 99, 99, 99};
    struct wire_reader r;

    EXPECT(c->status == 0);
    if (c->status != 0)
        printf("# %s\n", c->message);
    wire_reader_init(&r, c->result.buf, c->result.len);
    end.how = wire_get_u32(&r);
    end.code = wire_get_u32(&r);
    end.timed_out = wire_get_u32(&r);
    end.memory_limit = wire_get_u64(&r);
    EXPECT(wire_done(&r));
    return end;
}

static inline struct cell_end cell_wait(struct agent_host *h, struct call *c)
{
    EXPECT(host_wait(h, &c->ended, AGENT_WAIT_MS));
    return cell_end(c);
}

/* How a cell ended; the caller owes call_done. */
static inline uint32_t cell_in(struct agent_host *h, struct call *c, const char *id,
                               const char *language, const char *code)
{
    cell_open(h, c, id, language, 0, code);
    return cell_wait(h, c).how;
}

/* Everything that one in the default Python told, which must end well. Valid until the next call.
 */
static inline const char *cell_story(struct agent_host *h, const char *code)
{
    static char text[65536];
    struct call c;

    EXPECT(cell_in(h, &c, "", "", code) == KERNEL_DONE);
    snprintf(text, sizeof(text), "%s", c.story.buf);
    call_done(&c);
    return text;
}

static inline int kernel_op(struct agent_host *h, enum chan_op op, const char *id)
{
    struct call c;

    CALL(h, &c, op, "s", id);
    int status = c.status;
    call_done(&c);
    return status;
}

/* "ID LANGUAGE CWD STATE CELLS DEFAULT" of each context, a line each. Valid until the next call. */
static inline const char *contexts(struct agent_host *h)
{
    static char text[65536];
    struct call c;

    CALL(h, &c, OP_KERNEL_LIST, "");
    EXPECT(c.status == 0 && c.result.len == 0);
    snprintf(text, sizeof(text), "%s", c.events.buf);
    call_done(&c);
    return text;
}

/* What follows the id in the line of a context, or "". */
static inline const char *context_line(struct agent_host *h, const char *id)
{
    static char line[OPS_PATH_MAX + 256];
    const char *at = strstr(contexts(h), id);

    line[0] = '\0';
    if (at && strlen(at) > KERNEL_ID_LEN)
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + KERNEL_ID_LEN + 1, "\n"),
                 at + KERNEL_ID_LEN + 1);
    return line;
}

/* The id of the default context. */
static inline void default_id(struct agent_host *h, const char *language,
                              char ret[KERNEL_ID_LEN + 1])
{
    char wanted[128];

    ret[0] = '\0';
    for (const char *p = contexts(h); *p; p += strcspn(p, "\n") + 1) {
        snprintf(wanted, sizeof(wanted), "%.*s", (int)strcspn(p, "\n"), p);
        if (strncmp(p + KERNEL_ID_LEN + 1, language, strlen(language)) == 0)
            snprintf(ret, KERNEL_ID_LEN + 1, "%.*s", KERNEL_ID_LEN, p);
    }
    EXPECT(strlen(ret) == KERNEL_ID_LEN);
}

/* Until the context is in that state. */
static inline bool wait_state(struct agent_host *h, const char *id, enum kernel_state state)
{
    uint64_t deadline = clock_ns() + AGENT_WAIT_MS * 1000000ull;
    unsigned now = 99;
    bool never = false;

    while (clock_ns() < deadline) {
        const char *line = context_line(h, id);

        if (sscanf(line, "%*s %*s %u", &now) == 1 && now == state)
            return true;
        host_wait(h, &never, 10);
    }
    return false;
}

/* A new context. */
static inline void context_create(struct agent_host *h, const char *language, const char *cwd,
                                  char ret[KERNEL_ID_LEN + 1])
{
    struct wire_reader r;
    struct call c;

    CALL(h, &c, OP_KERNEL_CREATE, "ss", language, cwd);
    EXPECT(c.status == 0);
    wire_reader_init(&r, c.result.buf, c.result.len);
    snprintf(ret, KERNEL_ID_LEN + 1, "%s", wire_get_str(&r, KERNEL_ID_LEN));
    call_done(&c);
}

/* A cell that runs for ever, and is known to. */
static inline void open_forever(struct agent_host *h, struct call *c, const char *id,
                                uint64_t timeout_ms)
{
    cell_open(h, c, id, "", timeout_ms, "print('on', flush=True)\n" FOREVER);
    EXPECT(host_wait_output(h, c, "on\n"));
}
