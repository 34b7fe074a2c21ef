/* The output of an agent: lines, of which those that are messages go into the backlog. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "front/acp/impl.h"
#include "lib/text/json_check.h"
#include "lib/text/utf8.h"

#define ON_THE_WAY (16u * 1024 * 1024) /* bytes on the way: more than a connection's buffers hold */
#define DYING_MAX  (4u * 1024 * 1024)  /* bytes beyond the limit that an ending agent may write */

static void noise(struct hosted *h, const char *p, size_t len, const char *why)
{
    h->noise++;
    if (why)
        sandbox_log_add(&h->log, LOG_WARN, FAULT_AGENT, h->pid, "%s", why);
    sandbox_log_output(&h->log, h->pid, "noise", p,
                       len < SANDBOX_LOG_LINE ? len : SANDBOX_LOG_LINE);
}

/* The agent ends soon: its output is read whether there is room or not. */
bool hosted_is_dying(const struct hosted *h)
{
    return h->killed || h->stopping;
}

void hosted_out_of_memory(struct hosted *h)
{
    if (h->killed)
        return;
    snprintf(h->reason, sizeof(h->reason), "out of memory for the agent's messages");
    hosted_signal(h, SIGKILL);
}

static void take_line(struct hosted *h, const char *p, size_t len)
{
    size_t blanks = 0;

    while (blanks < len && (p[blanks] == ' ' || p[blanks] == '\t' || p[blanks] == '\r'))
        blanks++;
    if (blanks == len)
        return;
    if ((p[blanks] != '{' && p[blanks] != '[') || !utf8_valid(p, len))
        noise(h, p, len, NULL);
    else if (hosted_is_dying(h) && backlog_waiting(&h->backlog) > h->backlog.limit + DYING_MAX)
        noise(h, p, len, NULL);
    else if (backlog_add(&h->backlog, p, len) < 0)
        hosted_out_of_memory(h);
}

static void drop_partial(struct hosted *h)
{
    if (h->line.cap > AGENT_KEEP_MAX) {
        strbuf_done(&h->line);
        strbuf_init(&h->line, AGENT_MESSAGE_MAX);
    } else {
        strbuf_reset(&h->line);
    }
}

/* Takes a piece that is not a whole line by itself. ends: a newline follows. */
static void take_piece(struct hosted *h, const char *p, size_t len, bool ends)
{
    if (h->skipping) {
        h->skipping = !ends;
        return;
    }
    strbuf_add(&h->line, p, len);
    if (h->line.truncated) {
        noise(h, h->line.buf, h->line.len,
              "a line is longer than a message may be and was left out");
        h->skipping = !ends;
        drop_partial(h);
    } else if (ends) {
        take_line(h, h->line.buf, h->line.len);
        drop_partial(h);
    }
}

static void take_output(struct hosted *h, const char *p, size_t len)
{
    while (len > 0) {
        const char *end = memchr(p, '\n', len);
        size_t n = end ? (size_t)(end - p) : len;

        if (end && h->line.len == 0 && !h->skipping)
            take_line(h, p, n);
        else
            take_piece(h, p, n, end != NULL);
        n += end ? 1 : 0;
        p += n;
        len -= n;
    }
}

/* The output has ended without a newline. The last line may be a whole message all the same. */
void hosted_take_rest(struct hosted *h)
{
    if (h->line.len > 0 && json_check_object(h->line.buf, h->line.len))
        take_line(h, h->line.buf, h->line.len);
    else if (h->line.len > 0)
        noise(h, h->line.buf, h->line.len, NULL);
    drop_partial(h);
}

/* Limits the long lines of many agents at once: when a tenant's lines are too much together, only
 * the longest is read on, until it is whole. */
static bool line_waits(const struct hosted *h)
{
    size_t lines, longest, input;

    if (h->line.len < AGENT_BIG_MIN)
        return false;
    agents_hold(h, &lines, &longest, &input);
    return lines > AGENT_BIG_MAX && h->line.len < longest;
}

/* Whether the agent's output must wait. If the agent does not read, we do not read the client, so
 * no confirmations come, so the backlog fills, and the agent would wait for ever. To break this
 * circle, a paused client counts as having all that was sent. backlog_assume still keeps the
 * messages that may be on the way. */
static bool output_waits(struct hosted *h)
{
    const struct viewer *w = h->writer;
    struct backlog *b = &h->backlog;

    if (hosted_is_dying(h))
        return false;
    if (w && w->paused)
        backlog_assume(b, w->cursor.boundary, b->limit > ON_THE_WAY ? b->limit : ON_THE_WAY);
    return backlog_full(b, w && w->paused ? w->cursor.boundary : b->confirmed, h->line.len) ||
           line_waits(h);
}

void hosted_read_on(struct hosted *h)
{
    size_t owed = h->owed;

    if (owed == 0 || output_waits(h))
        return;
    h->owed = 0;
    call_consumed(&h->call, owed);
}

void hosted_on_data(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct hosted *h = c->owner;

    if (sub != CHAN_STDOUT) {
        sandbox_log_output(&h->log, h->pid, "stderr", p, len);
        call_consumed(c, len);
        return;
    }
    take_output(h, p, len);
    h->owed += len;
    hosted_read_on(h);
    viewers_pump(h);
}
