#include "warden/processes/guard_process.h"

#include "wire/text_fd.h"
#include "lib/log/log.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/server.h"
#include "warden/host/program.h"

void guard_tell(struct server *s, struct guard_message *m, const int *fds, size_t n_fds)
{
    child_program_tell(&s->guard, m, sizeof(*m), fds, n_fds);
}

void guard_tell_settings(struct server *s)
{
    struct guard_message m = {.what = GUARD_SETTINGS};
    AUTO(close_p) int settings = -1, roots = -1, patterns = -1;
    struct sg_error e;

    settings = text_memfd(s->told->guard.text, s->told->guard.len, &e);
    roots = text_memfd(s->texts.roots.text, s->texts.roots.len, &e);
    patterns = text_memfd(s->texts.patterns.text, s->texts.patterns.len, &e);
    if (settings >= 0 && roots >= 0 && patterns >= 0)
        guard_tell(s, &m, (int[]){settings, roots, patterns}, 3);
    else
        log_line(LEVEL_ERROR, "%s", e.message);
}

void guard_meet_front(struct server *s)
{
    struct guard_message m = {.what = GUARD_FRONT};

    child_program_meet(&s->guard, &m, sizeof(m), TELL_GUARD);
}

static void greet(struct server *s, struct child_program *v UNUSED)
{
    guard_tell_settings(s);
    guard_meet_front(s);
    sandboxes_introduce_guard(s);
}

static int take_message(struct server *s, struct child_program *v, void *message,
                        struct ipc_fds *fds UNUSED)
{
    struct guard_message *m = message;

    m->id[ID_LEN] = m->tenant[ID_LEN] = m->message[sizeof(m->message) - 1] = '\0';
    switch (m->what) {
    case GUARD_APPLIED:
        sandboxes_policy_applied(s, m);
        return 0;
    case GUARD_ASK_UDP:
        sandboxes_ask_udp(s, m);
        return 0;
    case GUARD_READY:
        child_program_ready(v);
        return 0;
    case GUARD_BEAT:
        return 0;
    case GUARD_FAILED:
        child_program_failing(v, m->message);
        return 0;
    default:
        return -EPROTO;
    }
}

static const struct child_program_kind guard_kind = {
    .name = "guard",
    .has_log = true,
    .process = PROCESS_GUARD,
    .beat = GUARD_BEAT,
    .told_size = sizeof(struct guard_message),
    .memlock = GUARD_MEMLOCK,
    .greet = greet,
    .magic = GUARD_MAGIC,
    .size = sizeof(struct guard_message),
    .take = take_message,
    .ended = sandboxes_guard_gone,
};

int guard_process_init(struct server *s, const char *program, struct sg_error *e)
{
    struct child_program *v = &s->guard;

    child_program_init(v, s, &guard_kind);
    v->program = program;
    v->dir = "guard";
    return program_user("guard_user", s->settings.guard_user, GUARD_USER, GUARD_ID, &v->uid,
                        &v->gid, e);
}
