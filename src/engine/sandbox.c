/* Engines and sandboxes of the public library. */
#include "engine/sandbox.h"

#include <stdio.h>
#include <string.h>

#include "inside/agent/agent.h"
#include "lib/base/clock.h"
#include "engine/control.h"
#include "engine/egress.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/hostmount.h"
#include "warden/host/limits.h"

#define ENGINE_DEFAULT 1024u
#define ENGINE_MAX     16384u
#define HOSTNAME_MAX   63
#define WRITE_MS       60000ull

int sg_engine_open(uint32_t max_sandboxes, struct sg_engine **ret, struct sg_error *e)
{
    struct sg_engine *engine;
    int r;

    if (max_sandboxes > ENGINE_MAX)
        return err_invalid(e, "an engine holds at most %u sandboxes", ENGINE_MAX);
    engine = xcalloc(1, sizeof(*engine));
    struct provider_setup setup = {.max_instances = max_sandboxes ? max_sandboxes : ENGINE_DEFAULT,
                                   .server = CGROUP_LOCAL,
                                   .tenant = CGROUP_RUNS,
                                   .omit = control_omit()};
    r = provider_waiting.ops->open(&setup, &engine->provider, e);
    if (r < 0) {
        free(engine);
        return r;
    }
    *ret = engine;
    return 0;
}

int engine_close(struct sg_engine *engine, struct sg_error *e)
{
    int r;

    egress_kill(engine->egress); /* the guard ends while the sandboxes do */
    r = OPS(engine->provider)->close(engine->provider, e);
    egress_close(engine->egress);
    free(engine);
    return r;
}

void sg_engine_close(struct sg_engine *engine)
{
    if (engine)
        engine_close(engine, NULL);
}

static int check_hostname(const char *name, struct sg_error *e)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    if (n == 0 || name[n] != '\0' || n > HOSTNAME_MAX || name[0] == '-' || name[0] == '.')
        return err_invalid(e, "host name '%.64s' must be 1 to 63 letters, digits, dots or dashes",
                           name);
    return 0;
}

/* Starts the guard while the sandbox starts. */
static int open_guarded(struct sg_engine *engine, const struct instance_spec *spec,
                        const struct sg_options *o, char *const *placeholders, struct sg_sandbox *s,
                        struct sg_error *e)
{
    int r = engine->egress ? 0 : egress_open(o, &engine->egress, e);

    if (r == 0)
        r = provider_waiting.create(engine->provider, spec, &s->instance, e);
    if (r < 0)
        return r;
    r = egress_admit(engine->egress, s->instance, s->id, o, placeholders, e);
    if (r < 0)
        provider_waiting.destroy(s->instance, NULL);
    return r;
}

static int open_mount(const struct instance_spec *spec, size_t which, uint32_t first_id,
                      int *ret_fd, struct sg_error *e)
{
    struct hostmount_spec mount = {.source = spec->mounts[which].source,
                                   .writable = spec->mounts[which].writable,
                                   .roots = spec->mount_roots,
                                   .first_id = first_id,
                                   .owner_inside = spec->mount_owner};

    return hostmount_open(&mount, ret_fd, e);
}

static int open_instance(struct sg_engine *engine, const struct sg_options *o,
                         char *const *placeholders, struct sg_sandbox *s, struct sg_error *e)
{
    struct instance_spec spec = {.hostname = o->hostname ? o->hostname : "sandbox",
                                 .mounts = o->mounts,
                                 .n_mounts = o->n_mounts,
                                 .open_mount = open_mount,
                                 .mount_roots = policy_mount_roots(o)};
    const struct agent_user *owner = agent_user_find(o->mount_owner ? o->mount_owner : "user");
    int r = limits_complete(&o->limits, &spec.limits, e);

    if (r == 0)
        r = check_hostname(spec.hostname, e);
    if (r == 0 && !owner)
        r = err_invalid(e, "mount owner '%.32s': use user or root", o->mount_owner);
    spec.mount_owner = owner ? owner->uid : 0;
    if (r == 0)
        r = policy_check(o, e);
    if (r == 0 && o->network != SG_NETWORK_BLOCK)
        r = open_guarded(engine, &spec, o, placeholders, s, e);
    else if (r == 0)
        r = provider_waiting.create(engine->provider, &spec, &s->instance, e);
    s->limits = spec.limits;
    return r;
}

/* A program compiled with an older header passes a shorter structure: the fields it lacks are
 * zero. */
static int complete_options(const struct sg_options *given, struct sg_options *ret,
                            struct sg_error *e)
{
    static const struct sg_options defaults = SG_OPTIONS_INIT;

    if (!given)
        given = &defaults;
    if (given->size > sizeof(*ret) || given->size < offsetof(struct sg_options, network_allow))
        return err_invalid(e, "struct sg_options was not initialised with SG_OPTIONS_INIT");
    *ret = (struct sg_options){0};
    memcpy(ret, given, given->size);
    return 0;
}

int sandbox_begin(struct sg_engine *engine, const struct sg_options *options,
                  struct sg_sandbox **ret, struct sg_error *e)
{
    struct sg_options o;
    struct sg_sandbox *s;
    char **placeholders;
    int r = complete_options(options, &o, e);

    if (r == 0)
        r = secrets_prepare(&o, &placeholders, e);
    if (r < 0)
        return r;
    s = xcalloc(1, sizeof(*s));
    s->engine = engine;
    id_random(s->id);
    r = open_instance(engine, &o, placeholders, s, e);
    if (r < 0) {
        free(s);
    } else {
        s->chan = session_open(provider_waiting.take_channel(s->instance));
        s->starting = true;
        r = secrets_install(s, &o, placeholders, e);
        if (r < 0)
            sg_sandbox_close(s, NULL);
    }
    strings_free(placeholders);
    if (r == 0)
        *ret = s;
    return r;
}

int sandbox_await(struct sg_sandbox *s, struct sg_error *e)
{
    if (!s->starting)
        return 0;
    s->starting = false;
    return provider_waiting.await(s->instance, chan_fd(s->chan), e);
}

int sg_sandbox_open(struct sg_engine *engine, const struct sg_options *options,
                    struct sg_sandbox **ret, struct sg_error *e)
{
    struct sg_sandbox *s;
    int r = sandbox_begin(engine, options, &s, e);

    if (r < 0)
        return r;
    r = sandbox_await(s, e);
    if (r < 0) {
        sg_sandbox_close(s, NULL);
        return r;
    }
    *ret = s;
    return 0;
}

const char *sg_sandbox_id(const struct sg_sandbox *sandbox)
{
    return sandbox->id;
}

static int complete_exec(const struct sg_exec *given, struct sg_exec *ret, struct sg_error *e)
{
    struct sg_exec x = SG_EXEC_INIT;

    if (given->size > sizeof(x) || given->size < offsetof(struct sg_exec, stdout_fd))
        return err_invalid(e, "struct sg_exec was not initialised with SG_EXEC_INIT");
    memcpy(&x, given, given->size);
    *ret = x;
    return 0;
}

int sg_sandbox_exec(struct sg_sandbox *sandbox, const struct sg_exec *exec, struct sg_result *ret,
                    struct sg_error *e)
{
    struct sg_exec x;
    int r = complete_exec(exec, &x, e);

    if (r < 0)
        return r;
    chan_cork(sandbox->chan);
    return exec_run(sandbox, &x, NULL, NULL, ret, e);
}

int sg_sandbox_pause(struct sg_sandbox *sandbox, struct sg_error *e)
{
    return provider_waiting.pause(sandbox->instance, true, e);
}

int sg_sandbox_resume(struct sg_sandbox *sandbox, struct sg_error *e)
{
    return provider_waiting.pause(sandbox->instance, false, e);
}

/* A command line that runs code, with the strings that it points to. */
struct code_command {
    const char *argv[10];
    char path[AGENT_USER_PATH_MAX + 64]; /* of the code */
    char results[64];
    bool has_results;
};

static void make_command(struct code_command *c, const struct language *l, const char *home,
                         const struct sg_exec *x)
{
    bool cell = x->cell && l->cell[0];
    const char *const *words = cell ? l->cell : l->program;
    char id[ID_LEN + 1];
    size_t n = 0, len;
    const char *suffix = language_suffix(l, x->code_name, &len);

    *c = (struct code_command){.has_results = cell && x->on_result};
    snprintf(c->path, sizeof(c->path), "%s/main.%.*s", home, (int)len, suffix);
    for (; n < ARRAY_SIZE(l->program) && words[n]; n++)
        c->argv[n] = strcmp(words[n], "@") == 0 ? c->path : words[n];
    if (!c->has_results)
        return;
    id_random(id); /* a fresh name: the kernel would append to the file of an earlier cell */
    snprintf(c->results, sizeof(c->results), "/tmp/.sandglass-results-%s", id);
    c->argv[n++] = "--results";
    c->argv[n] = c->results;
}

/* Code that fits into the window is sent together with the command that runs it: one round trip
 * instead of two. */
static int run_command(struct sg_sandbox *s, const struct code_command *c, const char *code,
                       size_t len, const struct sg_exec *x, struct sg_result *ret,
                       struct sg_error *e)
{
    const char *results = c->has_results ? c->results : NULL;
    bool together = len <= CHAN_WINDOW;
    struct file_write write = {0};
    int r = together ? 0 : sg_sandbox_write_file(s, x->user, c->path, code, len, e);

    if (r < 0)
        return r;
    chan_cork(s->chan);
    if (together)
        r = file_write_begin(s->chan, &write, x->user ? x->user : "user", c->path, 0644, code, len,
                             e);
    if (r < 0)
        chan_uncork(s->chan);
    else
        r = exec_run(s, x, together ? &write : NULL, results, ret, e);
    session_call_done(&write.call);
    return r;
}

int sg_sandbox_run_code(struct sg_sandbox *sandbox, const char *code, size_t len,
                        enum sg_language language, const struct sg_exec *exec,
                        struct sg_result *ret, struct sg_error *e)
{
    const struct language *l = language_get(language);
    struct sg_exec x = SG_EXEC_INIT;
    struct code_command command;
    int r;

    if (!l)
        return err_invalid(e, "unknown language");
    r = exec ? complete_exec(exec, &x, e) : 0;
    if (r < 0)
        return r;
    const struct agent_user *user = agent_user_find(x.user ? x.user : "user");
    if (!user)
        return err_set(e, SG_ERR_NOT_FOUND, -EUSERS, "unknown user '%.32s': use user or root",
                       x.user);
    make_command(&command, l, user->home, &x);
    x.argv = command.argv;
    return run_command(sandbox, &command, code, len, &x, ret, e);
}

int sg_sandbox_write_file(struct sg_sandbox *sandbox, const char *user, const char *path,
                          const void *data, size_t len, struct sg_error *e)
{
    struct file_write write;
    int r = sandbox_await(sandbox, e);

    if (r < 0)
        return r;
    r = file_write_begin(sandbox->chan, &write, user ? user : "user", path, 0644, data, len, e);
    if (r == 0)
        r = session_wait(sandbox->chan, &write.call, clock_ns() + WRITE_MS * 1000000u, e);
    if (r == 0)
        r = session_call_error(&write.call, e);
    session_call_done(&write.call);
    return r;
}

int sg_sandbox_read_file(struct sg_sandbox *sandbox, const char *user, const char *path, size_t max,
                         char **ret, size_t *ret_len, struct sg_error *e)
{
    return file_read_whole(sandbox->chan, user ? user : "user", path, max, ret, ret_len, e);
}

struct instance *sandbox_leave(struct sg_sandbox *s)
{
    struct instance *i = s->instance;

    egress_dismiss(s->engine->egress, s->id);
    chan_free(s->chan);
    strings_free(s->env);
    free(s);
    return i;
}

int sg_sandbox_close(struct sg_sandbox *sandbox, struct sg_error *e)
{
    struct instance *i = sandbox ? sandbox_leave(sandbox) : NULL;

    return i ? provider_waiting.destroy(i, e) : 0;
}

void sg_result_free(struct sg_result *r)
{
    free(r->stdout_data);
    free(r->stderr_data);
    *r = (struct sg_result){0};
}
