#include "warden/processes/workers.h"

#include <string.h>
#include <sys/socket.h>

#include "lib/log/log.h"
#include "wire/worker.h"
#include "warden/server.h"
#include "warden/host/program.h"

#define EXPORTER_USER "sandglass-herald"
#define EXPORTER_ID   0x0fff0002u /* if there is no such user: below all ids of sandboxes */

static void tell(struct child_program *v, enum worker_what what, const int *fds, size_t n_fds)
{
    struct worker_message m = {.what = what};

    child_program_tell(v, &m, sizeof(m), fds, n_fds);
}

static void meet(struct server *s, struct child_program *v, enum order_tell kind)
{
    struct order_answer a = {.tell = kind};
    int socks[2];

    if (s->front.link.sock < 0 || v->link.sock < 0)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0) {
        log_line(LEVEL_ERROR, "cannot connect front and %s: %s", v->kind->name, strerror(errno));
        return;
    }
    tell(v, WORKER_FRONT, &socks[0], 1);
    front_tell(s, &a, &socks[1], 1);
    close(socks[0]);
    close(socks[1]);
}

void workers_meet_front(struct server *s)
{
    meet(s, &s->dbworker, TELL_DBWORKER);
    meet(s, &s->exporter, TELL_EXPORTER);
}

static void greet_dbworker(struct server *s)
{
    meet(s, &s->dbworker, TELL_DBWORKER);
}

static void greet_exporter(struct server *s)
{
    meet(s, &s->exporter, TELL_EXPORTER);
}

static int take_message(struct server *s, struct child_program *v, void *message,
                        struct ipc_fds *fds)
{
    struct worker_message *m = message;

    (void)s;
    (void)fds;
    m->message[sizeof(m->message) - 1] = '\0';
    if (m->what == WORKER_READY)
        child_program_ready(v);
    if (m->what == WORKER_FAILED)
        child_program_failing(v, m->message);
    if (m->what == WORKER_FAILED && !v->kind->has_log)
        log_line(LEVEL_ERROR, "%s: %s", v->kind->name, v->why);
    return 0;
}

static void beat(struct heartbeat *b)
{
    struct child_program *v = CONTAINER_OF(b, struct child_program, heart);

    if (v->link.n_unsent == 0)
        tell(v, WORKER_BEAT, NULL, 0);
}

/* Nothing to do: the front notices by itself. */
static void ended(struct server *s)
{
    (void)s;
}

static const char *dbworker_argument(const struct server *s)
{
    (void)s;
    return "--clerk";
}

static const char *exporter_argument(const struct server *s)
{
    (void)s;
    return "--herald";
}

static const struct child_program_kind dbworker_kind = {
    .name = "clerk",
    .heart = {.process = PROCESS_DBWORKER, .beat = beat, .hung = child_program_kill},
    .argument = dbworker_argument,
    .greet = greet_dbworker,
    .magic = WORKER_MAGIC,
    .size = sizeof(struct worker_message),
    .take = take_message,
    .ended = ended,
};

static const struct child_program_kind exporter_kind = {
    .name = "herald",
    .heart = {.process = PROCESS_EXPORTER, .beat = beat, .hung = child_program_kill},
    .argument = exporter_argument,
    .greet = greet_exporter,
    .magic = WORKER_MAGIC,
    .size = sizeof(struct worker_message),
    .take = take_message,
    .ended = ended,
};

/* Call it when the front's ids and program are known. */
int workers_init(struct server *s, struct sg_error *e)
{
    struct child_program *dbworker = &s->dbworker, *exporter = &s->exporter;

    child_program_init(exporter, s, &exporter_kind);
    exporter->program = s->front.program;
    exporter->dir = s->front.dir;
    if (s->told->store == STORE_POSTGRES) {
        child_program_init(dbworker, s, &dbworker_kind);
        dbworker->program = s->front.program;
        dbworker->dir = s->front.dir;
        dbworker->uid = s->front.uid;
        dbworker->gid = s->front.gid;
    }
    return program_user("the herald's user", "", EXPORTER_USER, EXPORTER_ID, &exporter->uid,
                        &exporter->gid, e);
}

void workers_start(struct server *s)
{
    struct child_program *const workers[] = {&s->dbworker, &s->exporter};
    struct sg_error e = {0};

    for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
        if (workers[i]->server)
            child_program_start(workers[i], &e);
}

void workers_say_trouble(const struct server *s)
{
    const struct child_program *const workers[] = {&s->dbworker, &s->exporter};

    for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
        if (workers[i]->refused)
            log_line(LEVEL_ERROR, "%s", workers[i]->why);
}

void workers_end(struct server *s)
{
    child_program_end(&s->dbworker, 0);
    child_program_end(&s->exporter, 0);
}
