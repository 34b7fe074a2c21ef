/* Packets and output of a kernel. See kernels.h for their order. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "inside/agent/kernels.h"

#define PIECE_MAX        (128u * 1024)
#define PACKETS_PER_TURN 32

static struct execution *listener(const struct kernel *k)
{
    return k->context ? k->context->running : NULL;
}

static void send_out(struct kernel *k, uint8_t sub, const void *data, size_t len)
{
    struct execution *x = listener(k);

    if (x && len > 0)
        chan_send(k->agent->chan, x->op.stream, sub, data, len);
}

/* ---- watching -------------------------------------------------------------------------------- */

static void watch_control(struct kernel *k)
{
    uint32_t events = EPOLLIN | (!list_empty(&k->pieces) || k->has_code ? (uint32_t)EPOLLOUT : 0);

    if (k->control >= 0 && !k->paused)
        loop_watch(&k->agent->loop, &k->control_src, k->control, events);
}

void kernel_io_watch(struct kernel *k)
{
    watch_control(k);
    for (int i = 0; i < 2; i++)
        if (k->out[i].fd >= 0)
            loop_watch(&k->agent->loop, &k->out[i].src, k->out[i].fd, EPOLLIN);
}

/* Takes it out of the loop altogether: epoll would report a hang-up again and again. */
static void kernel_pause(struct kernel *k)
{
    k->paused = true;
    loop_unwatch(&k->agent->loop, &k->control_src);
    for (int i = 0; i < 2; i++)
        loop_unwatch(&k->agent->loop, &k->out[i].src);
}

void kernel_resume(struct kernel *k)
{
    if (!k->paused)
        return;
    k->paused = false;
    loop_task_queue(&k->agent->loop, &k->task);
    kernel_io_watch(k);
}

static void on_task(struct loop_task *task)
{
    kernel_pump(CONTAINER_OF(task, struct kernel, task));
}

/* Whether the host must take something first. If so, pauses the kernel. */
static bool held_up(struct kernel *k)
{
    struct execution *x = listener(k);

    if (!x || chan_credit(x->op.stream) >= KERNEL_PACKET_MAX)
        return false;
    kernel_pause(k);
    return true;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void output_close(struct kernel_output *out)
{
    loop_unwatch(&out->kernel->agent->loop, &out->src);
    close_p(&out->fd);
    out->fd = -1;
    out->owed = 0;
}

static void output_take(struct kernel_output *out, size_t n)
{
    struct kernel *k = out->kernel;

    if (listener(k))
        send_out(k, out->sub, agent_scratch, n);
    else if (!k->context || !k->context->busy)
        strbuf_add(&out->kept, agent_scratch, n);
    out->owed -= n < out->owed ? n : out->owed;
}

/* Reads at most `max` bytes. The kernel must not be held up. */
static void output_read(struct kernel_output *out, size_t max)
{
    struct execution *x = listener(out->kernel);
    size_t room = x ? chan_credit(x->op.stream) : sizeof(agent_scratch);

    if (room > sizeof(agent_scratch))
        room = sizeof(agent_scratch);
    ssize_t n = read(out->fd, agent_scratch, max < room ? max : room);
    if (n > 0)
        output_take(out, (size_t)n);
    else if (n < 0 && (errno == EAGAIN || errno == EINTR))
        out->owed = 0;
    else
        output_close(out);
}

static void on_output(struct loop_source *src, uint32_t events UNUSED)
{
    struct kernel_output *out = CONTAINER_OF(src, struct kernel_output, src);

    if (!held_up(out->kernel))
        output_read(out, SIZE_MAX);
}

static void note_owed(struct kernel *k)
{
    for (int i = 0; i < 2; i++) {
        int n = 0;

        if (k->out[i].fd >= 0 && ioctl(k->out[i].fd, FIONREAD, &n) == 0 && n > 0)
            k->out[i].owed = (size_t)n;
    }
}

/* False: paused before all owed output was delivered. */
static bool deliver_owed(struct kernel *k)
{
    for (int i = 0; i < 2; i++)
        while (k->out[i].owed > 0) {
            if (held_up(k))
                return false;
            output_read(&k->out[i], k->out[i].owed);
        }
    return !held_up(k);
}

/* The last line that is not empty: earlier lines may be about anything. */
void kernel_last_words(const struct kernel *k, char *ret, size_t size)
{
    const char *text = k->out[1].kept.buf;
    size_t end = k->out[1].kept.len;

    while (end > 0 && strchr("\n\r \t", text[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    size_t len = end - start < size - 1 ? end - start : size - 1;
    for (size_t i = 0; i < len; i++)
        ret[i] = (char)((unsigned char)text[start + i] < ' ' ? ' ' : text[start + i]);
    ret[len] = '\0';
}

/* ---- packets to the kernel ------------------------------------------------------------------- */

static void drop_pieces(struct kernel *k)
{
    struct kernel_piece *piece;

    while ((piece = LIST_POP(struct kernel_piece, &k->pieces, link)))
        free(piece);
    k->has_code = false;
    strbuf_done(&k->code);
}

static void encode_u32(char out[4], uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (char)(v >> (8 * i));
}

/* Sends the next packet of the code; the last one makes it run. */
static ssize_t send_code(struct kernel *k)
{
    size_t len = k->code.len - k->code_at;
    bool last = len <= PIECE_MAX;
    char head[5] = {last ? 'X' : 'C'};

    len = last ? len : PIECE_MAX;
    encode_u32(head + 1, k->packets.cell);
    struct iovec parts[] = {{head, last ? sizeof(head) : 1}, {k->code.buf + k->code_at, len}};
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = len > 0 ? 2 : 1};
    ssize_t n = sendmsg(k->control, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0)
        return n;
    k->code_at += len;
    if (last) {
        k->has_code = false;
        strbuf_done(&k->code);
    }
    return n;
}

static ssize_t send_piece(struct kernel *k)
{
    struct kernel_piece *piece = LIST_FIRST(struct kernel_piece, &k->pieces, link);
    ssize_t n = send(k->control, piece->data, piece->len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0)
        return n;
    list_remove(&piece->link);
    free(piece);
    return n;
}

/* If sending fails, either the kernel has hung up, which reading finds out; or there is no memory,
 * and the kernel cannot go on. */
static void kernel_flush(struct kernel *k)
{
    while (k->control >= 0 && (!list_empty(&k->pieces) || k->has_code)) {
        ssize_t n = list_empty(&k->pieces) ? send_code(k) : send_piece(k);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            if (errno != EPIPE && errno != ECONNRESET)
                kernel_kill_process(k);
            drop_pieces(k);
        }
        if (n < 0)
            break;
    }
    watch_control(k);
}

void kernel_queue(struct kernel *k, char what, const char *text)
{
    size_t len = strlen(text);
    struct kernel_piece *piece = malloc(sizeof(*piece) + 1 + len);

    if (!piece) {
        kernel_kill_process(k);
        return;
    }
    piece->data[0] = what;
    memcpy(piece->data + 1, text, len);
    piece->len = 1 + len;
    list_append(&k->pieces, &piece->link);
    kernel_flush(k);
}

void kernel_rest(struct kernel *k)
{
    if (k->packets.resting)
        return;
    kernel_packets_rest(&k->packets);
    kernel_queue(k, 'P', "");
}

void kernel_run(struct kernel *k, uint32_t cell, struct strbuf *code)
{
    assert(!k->has_code);
    kernel_packets_run(&k->packets, cell);
    k->code = *code;
    strbuf_init(code, code->max);
    k->code_at = 0;
    k->has_code = true;
    for (int i = 0; i < 2; i++) {
        send_out(k, k->out[i].sub, k->out[i].kept.buf, k->out[i].kept.len);
        strbuf_done(&k->out[i].kept);
    }
    kernel_flush(k);
}

/* ---- packets from the kernel ----------------------------------------------------------------- */

/* Acts on the held R or F, now that the output before it has been delivered. */
static void release_held(struct kernel *k)
{
    size_t len = k->held_len;

    k->held_len = 0;
    if (k->held[0] == 'F')
        context_cell_over(k->context, KERNEL_DONE, len == 6 ? k->held[5] : 0);
    else
        send_out(k, CHAN_KERNEL, k->held, len);
}

static void hold(struct kernel *k, size_t len)
{
    assert(len <= sizeof(k->held));
    memcpy(k->held, agent_scratch, len);
    k->held_len = len;
    note_owed(k);
}

/* Drops what a new kernel wrote while it started: it belongs to no cell. */
static void drop_kept(struct kernel *k)
{
    note_owed(k);
    deliver_owed(k);
    for (int i = 0; i < 2; i++)
        strbuf_done(&k->out[i].kept);
}

static void take_packet(struct kernel *k, size_t len)
{
    int what = kernel_packets_check(&k->packets, agent_scratch, len);

    if (what < 0) {
        kernel_is_broken(k);
    } else if (what == PACKET_READY) {
        if (k->was == 0)
            drop_kept(k);
        kernel_is_ready(k);
    } else if (what == PACKET_RESULT) {
        send_out(k, CHAN_KERNEL, agent_scratch, len);
    } else if (what == PACKET_RESTED) {
        kernels_hold_check(k->agent);
    } else if (what != PACKET_STRAY) {
        hold(k, len);
    }
}

static void control_close(struct kernel *k)
{
    loop_unwatch(&k->agent->loop, &k->control_src);
    close_p(&k->control);
    k->control = -1;
    drop_pieces(k);
}

/* Reads one packet. False: there is none now. */
static bool read_packet(struct kernel *k)
{
    if (k->control < 0)
        return false;
    ssize_t n = recv(k->control, agent_scratch, KERNEL_PACKET_MAX, MSG_DONTWAIT | MSG_TRUNC);
    if (n > 0) {
        take_packet(k, (size_t)n); /* n may be longer than allowed: the check refuses it */
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    /* The kernel is about to exit, which its pidfd or the reaper tells. If it does not, it no
     * longer behaves as a kernel. */
    control_close(k);
    if (!k->dead)
        kernel_kill_process(k);
    return false;
}

void kernel_pump(struct kernel *k)
{
    for (unsigned i = 0; i < PACKETS_PER_TURN && !k->over; i++) {
        if (held_up(k))
            return;
        if (k->held_len > 0 || k->ending) {
            if (!deliver_owed(k))
                return;
            if (k->held_len > 0)
                release_held(k);
            else
                kernel_is_over(k);
        } else if (!read_packet(k)) {
            if (!k->dead)
                return;
            k->ending = true;
            note_owed(k);
        }
    }
    /* no event may come for the packets that are left */
    if (!k->over)
        loop_task_queue(&k->agent->loop, &k->task);
}

static void on_control(struct loop_source *src, uint32_t events)
{
    struct kernel *k = CONTAINER_OF(src, struct kernel, control_src);

    if (events & EPOLLOUT)
        kernel_flush(k);
    kernel_pump(k);
}

bool kernel_is_there(const struct kernel *k)
{
    char byte;

    return !k->dead && k->control >= 0 &&
           recv(k->control, &byte, sizeof(byte), MSG_DONTWAIT | MSG_PEEK) != 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

void kernel_io_init(struct kernel *k)
{
    k->control = -1;
    k->control_src = (struct loop_source){.fd = -1, .fn = on_control};
    k->task.fn = on_task;
    strbuf_init(&k->code, KERNEL_CODE_MAX);
    for (int i = 0; i < 2; i++) {
        k->out[i] = (struct kernel_output){.src = {.fd = -1, .fn = on_output},
                                           .kernel = k,
                                           .fd = -1,
                                           .sub = i == 0 ? CHAN_STDOUT : CHAN_STDERR};
        strbuf_init(&k->out[i].kept, KERNEL_KEPT_MAX);
    }
}

void kernel_io_close(struct kernel *k)
{
    loop_task_cancel(&k->task);
    control_close(k);
    for (int i = 0; i < 2; i++) {
        output_close(&k->out[i]);
        strbuf_done(&k->out[i].kept);
    }
}
