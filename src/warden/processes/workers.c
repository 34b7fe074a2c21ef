#include "warden/processes/workers.h"

#include <string.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/log/log.h"
#include "wire/worker.h"
#include "warden/server.h"
#include "warden/host/program.h"

#define HERALD_USER "sandglass-herald"
#define HERALD_ID   0x0fff0002u /* without such a user: below all ids of sandboxes */

static void tell(struct servant *v, enum worker_what what, const int *fds, size_t n_fds)
{
    struct worker_message m = {.magic = WORKER_MAGIC, .what = what};

    servant_tell(v, &m, sizeof m, fds, n_fds);
}

static void meet(struct server *s, struct servant *v, enum order_tell kind)
{
    struct order_answer a = {.tell = kind};
    int socks[2];

    if (s->front.sock < 0 || v->sock < 0)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0) {
        log_line(LEVEL_ERROR, "front and %s get no socket: %s", v->kind->name, strerror(errno));
        return;
    }
    tell(v, WORKER_FRONT, &socks[0], 1);
    front_tell(s, &a, &socks[1], 1);
    close(socks[0]);
    close(socks[1]);
}

void workers_meet_front(struct server *s)
{
    meet(s, &s->clerk, TELL_CLERK);
    meet(s, &s->herald, TELL_HERALD);
}

static void greet_clerk(struct server *s)
{
    meet(s, &s->clerk, TELL_CLERK);
}

static void greet_herald(struct server *s)
{
    meet(s, &s->herald, TELL_HERALD);
}

static int take_message(struct server *s, struct servant *v)
{
    struct worker_message m;
    size_t n_fds = 0;
    ssize_t got = fd_recv(v->sock, &m, sizeof m, NULL, &n_fds);

    (void)s;
    if (got == -EAGAIN)
        return 0;
    heartbeat_heard(&v->heart);
    if (got != (ssize_t)sizeof m || m.magic != WORKER_MAGIC)
        return -EPROTO;
    m.message[sizeof m.message - 1] = '\0';
    if (m.what == WORKER_READY)
        servant_ready(v);
    if (m.what == WORKER_FAILED)
        servant_failing(v, m.message);
    if (m.what == WORKER_FAILED && !v->kind->has_log)
        log_line(LEVEL_ERROR, "%s: %s", v->kind->name, v->why);
    return 0;
}

static void beat(struct heartbeat *b)
{
    struct servant *v = CONTAINER_OF(b, struct servant, heart);

    if (!v->queue)
        tell(v, WORKER_BEAT, NULL, 0);
}

/* The front notices by itself. */
static void ended(struct server *s)
{
    (void)s;
}

static const char *clerk_argument(const struct server *s)
{
    (void)s;
    return "--clerk";
}

static const char *herald_argument(const struct server *s)
{
    (void)s;
    return "--herald";
}

static const struct servant_kind clerk_kind = {
    .name = "clerk",
    .heart = {.process = PROCESS_CLERK, .beat = beat, .hung = servant_kill},
    .argument = clerk_argument,
    .greet = greet_clerk,
    .take = take_message,
    .ended = ended,
};

static const struct servant_kind herald_kind = {
    .name = "herald",
    .heart = {.process = PROCESS_HERALD, .beat = beat, .hung = servant_kill},
    .argument = herald_argument,
    .greet = greet_herald,
    .take = take_message,
    .ended = ended,
};

/* The front's ids and program are known. */
int workers_init(struct server *s, struct sg_error *e)
{
    struct servant *clerk = &s->clerk, *herald = &s->herald;

    servant_init(herald, s, &herald_kind);
    herald->program = s->front.program;
    herald->dir = s->front.dir;
    if (settings_store(&s->settings) == STORE_POSTGRES) {
        servant_init(clerk, s, &clerk_kind);
        clerk->program = s->front.program;
        clerk->dir = s->front.dir;
        clerk->uid = s->front.uid;
        clerk->gid = s->front.gid;
    }
    return program_user("the herald's user", "", HERALD_USER, HERALD_ID, &herald->uid, &herald->gid,
                        e);
}

void workers_start(struct server *s)
{
    struct servant *const workers[] = {&s->clerk, &s->herald};
    struct sg_error e = {0};

    for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
        if (workers[i]->server)
            servant_start(workers[i], &e);
}

void workers_say_trouble(const struct server *s)
{
    const struct servant *const workers[] = {&s->clerk, &s->herald};

    for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
        if (workers[i]->refused)
            log_line(LEVEL_ERROR, "%s", workers[i]->why);
}

void workers_end(struct server *s)
{
    servant_end(&s->clerk, 0);
    servant_end(&s->herald, 0);
}
