/* The input of a process: pieces from any number of streams, in the order in which they came. When
 * the process has taken a piece, its stream gets the credit back. */
#include <string.h>

#include "inside/agent/proc.h"

#define PTY_EOF "\004" /* a terminal driver takes this as the end of input */

static struct proc_piece *first_piece(struct proc_input *in)
{
    return LIST_FIRST(struct proc_piece, &in->pieces, link);
}

static void credit(const struct proc_feed *f, size_t n)
{
    if (n > 0)
        chan_consumed(f->op->agent->chan, f->op->stream, n);
}

/* The input was closed before the feed said that it was at its end. If the process had taken all
 * bytes, nothing is wrong: it may have been told to exit. */
static void feed_cut_off(struct proc_feed *f)
{
    struct sg_error e = {0};

    err_set(&e, SG_ERR_GONE, -EPIPE, "process %d no longer reads its standard input",
            (int)f->proc->child.pid);
    if (f->fed && f->owed == 0)
        op_end(f->op, NULL);
    else
        op_fail(f->op, &e);
}

/* Gives the credit back for all bytes that are left: the host must not wait for bytes that nobody
 * will ever read. */
void proc_input_close(struct proc *p)
{
    struct proc_input *in = &p->in;

    if (in->fd < 0)
        return;
    loop_unwatch(&p->agent->loop, &in->src);
    close(in->fd);
    in->fd = -1;
    for (struct proc_piece *piece; (piece = LIST_POP(struct proc_piece, &in->pieces, link));
         free(piece))
        credit(piece->from, piece->len - piece->at);
    LIST_EACH(struct proc_feed, f, &in->feeds, link)
        if (f->is_input)
            feed_cut_off(f);
}

/* Returns how many bytes were taken. Closes the input if the process no longer reads. */
static size_t input_write(struct proc *p, struct proc_feed *f, const void *data, size_t len)
{
    ssize_t n = write(p->in.fd, data, len);

    if (n > 0) {
        f->owed -= (size_t)n;
        credit(f, (size_t)n);
        return (size_t)n;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        proc_input_close(p);
    return 0;
}

/* A feed has come to its end. False: the terminal takes nothing now. */
static bool feed_over(struct proc *p)
{
    struct proc_feed *f = first_piece(&p->in)->from;
    bool closes = f->closes;

    /* A terminal stays open: its output comes through the same descriptor. */
    if (closes && p->tty && write(p->in.fd, PTY_EOF, 1) < 0 && errno == EAGAIN)
        return false;
    free(LIST_POP(struct proc_piece, &p->in.pieces, link));
    if (f->is_input)
        op_end(f->op, NULL);
    if (closes && !p->tty)
        proc_input_close(p);
    return true;
}

/* Writes as much as the process takes, and waits until it takes more. */
static void input_pump(struct proc *p)
{
    struct proc_input *in = &p->in;

    while (in->fd >= 0 && !list_empty(&in->pieces)) {
        struct proc_piece *piece = first_piece(in);

        if (piece->last) {
            if (!feed_over(p))
                break;
            continue;
        }
        size_t n = input_write(p, piece->from, piece->data + piece->at, piece->len - piece->at);
        if (in->fd < 0)
            return;
        piece->at += n;
        if (piece->at < piece->len)
            break;
        list_remove(&piece->link);
        free(piece);
    }
    if (in->fd < 0)
        return;
    if (list_empty(&in->pieces))
        loop_unwatch(&p->agent->loop, &in->src);
    else
        loop_watch(&p->agent->loop, &in->src, in->fd, EPOLLOUT);
}

static void on_input(struct loop_source *src, uint32_t events UNUSED)
{
    input_pump(CONTAINER_OF(src, struct proc, in.src));
}

void proc_input_init(struct proc *p, int fd)
{
    p->in = (struct proc_input){.src = {.fd = -1, .fn = on_input}, .fd = fd, .wired = fd >= 0};
}

void proc_feed_add(struct proc_feed *f, struct op *op, struct proc *p)
{
    *f = (struct proc_feed){.op = op, .proc = p};
    list_push(&p->in.feeds, &f->link);
}

/* The bytes of the feed that were not delivered are dropped. */
void proc_feed_remove(struct proc_feed *f)
{
    if (!list_linked(&f->link))
        return;
    list_remove(&f->link);
    LIST_EACH(struct proc_piece, piece, &f->proc->in.pieces, link)
        if (piece->from == f) {
            list_remove(&piece->link);
            free(piece);
        }
}

void proc_feed_data(struct proc_feed *f, const void *data, size_t len)
{
    struct proc *p = f->proc;
    bool is_input = f->is_input; /* kept, because closing the input ends such a feed */
    size_t n = 0;

    f->fed = true;
    f->owed += len;
    if (p->in.fd >= 0 && list_empty(&p->in.pieces))
        n = input_write(p, f, data, len);
    if (n == len)
        return;
    struct proc_piece *piece = p->in.fd >= 0 ? malloc(sizeof(*piece) + len - n) : NULL;
    if (!piece) {
        proc_input_close(p);
        if (!is_input)
            credit(f, len - n);
        return;
    }
    *piece = (struct proc_piece){.from = f, .len = len - n};
    memcpy(piece->data, (const char *)data + n, len - n);
    list_append(&p->in.pieces, &piece->link);
    loop_watch(&p->agent->loop, &p->in.src, p->in.fd, EPOLLOUT);
}

void proc_feed_eof(struct proc_feed *f)
{
    struct proc *p = f->proc;

    if (p->in.fd < 0)
        return;
    struct proc_piece *piece = xcalloc(1, sizeof(*piece));
    piece->from = f;
    piece->last = true;
    list_append(&p->in.pieces, &piece->link);
    input_pump(p);
}
