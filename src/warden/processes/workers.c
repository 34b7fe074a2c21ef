#include "warden/processes/workers.h"

#include "lib/log/log.h"
#include "wire/worker.h"
#include "warden/server.h"
#include "warden/host/program.h"

#define EXPORTER_USER "sandglass-herald"
#define EXPORTER_ID   0x0fff0002u /* if there is no such user: below all ids of sandboxes */

static void meet(struct server *s, struct child_program *v)
{
    struct worker_message m = {.what = WORKER_FRONT};

    child_program_meet(v, &m, sizeof(m), v == &s->dbworker ? TELL_DBWORKER : TELL_EXPORTER);
}

void workers_meet_front(struct server *s)
{
    meet(s, &s->dbworker);
    meet(s, &s->exporter);
}

static int take_message(struct server *s UNUSED, struct child_program *v, void *message,
                        struct ipc_fds *fds UNUSED)
{
    struct worker_message *m = message;

    m->message[sizeof(m->message) - 1] = '\0';
    if (m->what == WORKER_READY)
        child_program_ready(v);
    if (m->what == WORKER_FAILED)
        child_program_failing(v, m->message);
    if (m->what == WORKER_FAILED && !v->kind->has_log)
        log_line(LEVEL_ERROR, "%s: %s", v->kind->name, v->why);
    return 0;
}

static const struct child_program_kind dbworker_kind = {
    .name = "clerk",
    .process = PROCESS_DBWORKER,
    .beat = WORKER_BEAT,
    .told_size = sizeof(struct worker_message),
    .argument = "--clerk",
    .greet = meet,
    .magic = WORKER_MAGIC,
    .size = sizeof(struct worker_message),
    .take = take_message,
};

static const struct child_program_kind exporter_kind = {
    .name = "herald",
    .process = PROCESS_EXPORTER,
    .beat = WORKER_BEAT,
    .told_size = sizeof(struct worker_message),
    .argument = "--herald",
    .greet = meet,
    .magic = WORKER_MAGIC,
    .size = sizeof(struct worker_message),
    .take = take_message,
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
