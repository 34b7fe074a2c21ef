#include "warden/processes/child_program.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/processes/faults.h"
#include "warden/server.h"
#include "warden/processes/trouble.h"
#include "warden/host/child.h"
#include "warden/host/program.h"

#define PAUSE_FIRST_NS 50000000ull
#define PAUSE_MAX_NS   30000000000ull
#define SAID_PAUSE_NS  1000000000ull /* log a pause that is at least this long */
#define END_MS         5000
#define LAST_WORDS_MAX 64

static void on_process(struct loop_source *src, uint32_t events);
static void on_messages(struct loop_source *src, uint32_t events);
static void on_timer(struct loop_timer *timer);
static int on_message(struct ipc_in *in);
static void on_gone(struct ipc_link *l, int r);
static void on_changed(struct ipc_link *l);

/* A process that does not read its messages gets no more beats. */
static void beat(struct heartbeat *b)
{
    struct child_program *v = CONTAINER_OF(b, struct child_program, heart);
    AUTO(free_p) struct ipc_head *m = xcalloc(1, v->kind->told_size);

    m->type = v->kind->beat;
    if (v->link.n_unsent == 0)
        child_program_tell(v, m, v->kind->told_size, NULL, 0);
}

static void kill_hung(struct heartbeat *b, enum process_fault why UNUSED)
{
    struct child_program *v = CONTAINER_OF(b, struct child_program, heart);

    log_line(LEVEL_ERROR, "%s %u is killed and replaced", v->kind->name, v->turn);
    v->hung = true;
    child_kill(v->pidfd); /* on_process does the rest */
}

void child_program_init(struct child_program *v, struct server *s,
                        const struct child_program_kind *kind)
{
    *v = (struct child_program)CHILD_PROGRAM_NONE;
    v->kind = kind;
    v->server = s;
    v->process.fn = on_process;
    v->messages.fn = on_messages;
    v->timer.fn = on_timer;
    v->heart_kind =
        (struct heartbeat_kind){.process = kind->process, .beat = beat, .hung = kill_hung};
    /* While the process does not read, the warden does not read from it either. So what it can make
     * the warden keep is bounded. One message per turn of the loop, so that others get theirs. */
    v->link_kind = (struct ipc_kind){.magic = kind->magic,
                                     .max = kind->size,
                                     .fds_max = kind->fds_max,
                                     .read_below = 1,
                                     .turn = 1,
                                     .take = on_message,
                                     .gone = on_gone};
    ipc_link_init(&v->link, &v->link_kind, on_changed);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int start(struct child_program *v, struct sg_error *e)
{
    struct server *s = v->server;
    AUTO(close_p) int dir = openat(s->state.dir, v->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct program program = {.name = v->kind->name,
                              .path = v->program,
                              .arguments = (const char *const[]){v->kind->argument, NULL},
                              .uid = v->uid,
                              .gid = v->gid,
                              .dir = dir,
                              .more = v->kind->has_log ? s->log.fd : -1,
                              .memlock = v->kind->memlock,
                              .ends_with_thread = true};
    struct program_ends ends;
    int r;

    if (dir < 0)
        return err_errno(e, "open '%s' of the state directory", v->dir);
    r = program_start(&program, &ends, e);
    if (r < 0)
        return r;
    v->pidfd = ends.pidfd;
    v->turn++;
    v->ready = v->refused = v->hung = false;
    v->why[0] = '\0';
    loop_watch(&s->loop, &v->process, v->pidfd, EPOLLIN);
    ipc_link_open(&v->link, ends.sock);
    heartbeat_start(s, &v->heart, &v->heart_kind, ends.pid);
    v->heart.starting = true;
    log_line(LEVEL_INFO, "%s %u started, pid %d", v->kind->name, v->turn, ends.pid);
    v->kind->greet(s, v);
    return 0;
}

/* The pause grows while the process keeps ending before it is ready. */
static void plan_restart(struct child_program *v)
{
    uint64_t pause = v->ready ? 0 : v->pause_ns;

    v->n_deaths = v->ready ? 0 : v->n_deaths + 1;
    v->pause_ns = pause == 0 ? PAUSE_FIRST_NS : 2 * pause;
    if (v->pause_ns > PAUSE_MAX_NS)
        v->pause_ns = PAUSE_MAX_NS;
    if (pause >= SAID_PAUSE_NS)
        log_line(LEVEL_WARN, "%s will be restarted in %u s", v->kind->name,
                 (unsigned)(pause / 1000000000));
    loop_timer_set(&v->server->loop, &v->timer, clock_ns() + pause);
}

int child_program_start(struct child_program *v, struct sg_error *e)
{
    int r = start(v, e);

    if (r < 0) {
        v->ready = false;
        v->refused = true;
        child_program_failing(v, e->message);
        plan_restart(v);
    }
    return r;
}

static void on_timer(struct loop_timer *timer)
{
    struct child_program *v = CONTAINER_OF(timer, struct child_program, timer);
    bool said = v->refused;
    struct sg_error e = {0};

    if (child_program_start(v, &e) < 0 && !said)
        log_line(LEVEL_ERROR, "%s", e.message);
}

bool child_program_ready(struct child_program *v)
{
    bool first = !v->was_ready;

    v->ready = v->was_ready = true;
    v->heart.starting = false;
    v->why[0] = '\0';
    trouble_write(v->server);
    return first;
}

/* `why` comes from a process without rights: it is used as text only. */
void child_program_failing(struct child_program *v, const char *why)
{
    snprintf(v->why, sizeof(v->why), "%s", why);
    for (char *c = v->why; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    trouble_write(v->server);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* For a process that never was ready and gave no reason, the way it ended is the reason. */
static void tell_end(struct child_program *v, const struct child_exit *how)
{
    char text[FAULT_TEXT];

    if (!v->hung)
        fault_count_end(v->server, v->kind->process, how);
    fault_describe(how, text);
    log_line(LEVEL_WARN, "%s %u has ended unexpectedly: it %s", v->kind->name, v->turn, text);
    if (!v->ready && !v->why[0])
        child_program_failing(v, text);
}

static void on_process(struct loop_source *src, uint32_t events UNUSED)
{
    struct child_program *v = CONTAINER_OF(src, struct child_program, process);
    struct server *s = v->server;
    struct child_exit how = {0};

    loop_unwatch(&s->loop, &v->process);
    /* Its last messages may say why it cannot start. */
    for (int i = 0; i < LAST_WORDS_MAX && !v->ready && v->link.sock >= 0; i++)
        if (!ipc_link_take(&v->link))
            break;
    ipc_link_close(&v->link);
    heartbeat_stop(&v->heart);
    child_reap(&v->pidfd, &how);
    if (v->leaving) {
        log_line(LEVEL_INFO, "%s %u has finished", v->kind->name, v->turn);
        return;
    }
    tell_end(v, &how);
    plan_restart(v);
    if (v->kind->ended)
        v->kind->ended(s);
}

bool child_program_failed(const struct child_program *v)
{
    return !v->was_ready && v->n_deaths >= CHILD_PROGRAM_FIRST_TRIES;
}

void child_program_leave(struct child_program *v)
{
    v->leaving = true;
    loop_timer_cancel(&v->server->loop, &v->timer);
}

bool child_program_lives(const struct child_program *v)
{
    return v->pidfd >= 0;
}

void child_program_end(struct child_program *v, int grace_ms)
{
    struct pollfd ended = {.fd = v->pidfd, .events = POLLIN};

    if (!v->server)
        return;
    loop_timer_cancel(&v->server->loop, &v->timer);
    loop_unwatch(&v->server->loop, &v->process);
    heartbeat_stop(&v->heart);
    ipc_link_close(&v->link);
    poll(&ended, v->pidfd >= 0, grace_ms);
    child_end(&v->pidfd, END_MS, NULL);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void on_changed(struct ipc_link *l)
{
    struct child_program *v = CONTAINER_OF(l, struct child_program, link);

    if (l->sock >= 0)
        loop_watch(&v->server->loop, &v->messages, l->sock, (uint32_t)ipc_link_events(l));
    else
        loop_unwatch(&v->server->loop, &v->messages);
}

static void on_messages(struct loop_source *src, uint32_t events UNUSED)
{
    ipc_link_ready(&CONTAINER_OF(src, struct child_program, messages)->link);
}

static int on_message(struct ipc_in *in)
{
    struct child_program *v = CONTAINER_OF(in->link, struct child_program, link);

    heartbeat_heard(&v->heart);
    return v->kind->take(v->server, v, in->m, &in->fds);
}

static void on_gone(struct ipc_link *l, int r)
{
    struct child_program *v = CONTAINER_OF(l, struct child_program, link);

    if (r != -EPIPE)
        log_line(LEVEL_ERROR, "%s %u sent a malformed message and is killed", v->kind->name,
                 v->turn);
    child_kill(v->pidfd); /* on_process does the rest */
}

/* A broken socket is noticed when it is read. */
void child_program_tell(struct child_program *v, void *message, size_t len, const int *fds,
                        size_t n_fds)
{
    struct ipc_out out = {.head = message, .len = len, .fds = fds, .n_fds = n_fds};

    if (v->link.sock >= 0)
        ipc_link_send(&v->link, &out);
}

void child_program_meet(struct child_program *v, void *hello, size_t len, enum order_tell to_front)
{
    struct child_program *front = v->server ? &v->server->front : v;
    struct order_answer a = {.tell = to_front};
    int socks[2];

    if (front->link.sock < 0 || v->link.sock < 0)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0) {
        log_line(LEVEL_ERROR, "cannot connect front and %s: %s", v->kind->name, strerror(errno));
        return;
    }
    child_program_tell(v, hello, len, &socks[0], 1);
    child_program_tell(front, &a, sizeof(a), &socks[1], 1);
    close(socks[0]);
    close(socks[1]);
}
