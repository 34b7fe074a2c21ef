#include "front/builds/build.h"

#include <stdio.h>
#include <string.h>

#include "front/builds/account.h"
#include "front/builds/fetch.h"
#include "front/builds/log.h"
#include "front/builds/look.h"
#include "front/builds/pour.h"
#include "front/builds/steps.h"
#include "front/builds/upload.h"
#include "front/core/copies.h"
#include "front/core/defaults.h"
#include "front/core/identity.h"
#include "front/core/output_filter.h"
#include "front/core/shell.h"
#include "front/core/starting.h"
#include "lib/base/clock.h"
#include "lib/base/list.h"
#include "lib/channel/wire.h"
#include "lib/log/log.h"
#include "lib/uv/handle.h"

#define NS_PER_MS      1000000ull
#define GRACE_MS       60000 /* the sandbox outlives the build's own deadline by this */
#define READY_MS       (10ull * 60 * 1000)
#define READY_EVERY_MS 2000
#define BLIND_MS       20000
#define SHOWN          300 /* bytes of a command in an error */
#define FRONT_DIED     "the server was restarted while this was built: build it again"

struct build {
    struct list link; /* in builds.all, oldest first */
    struct front *front;
    struct build_plan plan;
    struct build_log log;
    struct step_state state;
    struct step step; /* that is being done */
    size_t at;        /* its index */
    size_t own;       /* that many steps come first, which are the image's own */
    bool told;        /* the log has it */
    char key[STORE_KEY_HEX + 1];
    char digest[STORE_KEY_HEX + 1]; /* of the step's archive, which is part of the key */
    char layer[ID_LEN + 1];         /* what the steps so far have made; "": the plain base */
    bool layer_own;                 /* it is a layer of this tenant's builds */
    bool missed;      /* a step was not in the cache: the ones after it are not looked for */
    bool begun;       /* it is no longer queued */
    bool over;        /* its end was told: freed when no callback is outstanding */
    unsigned waiting; /* orders whose callback is outstanding */
    struct sandbox *sandbox;
    struct output_filter *filter; /* NULL: output is not sanitised */
    struct call call;
    struct account account;
    struct look look;
    struct pour *pour;
    struct fetch_user fetch;
    struct starting *starting;
    uv_timer_t *turn; /* the next step, in a turn of its own; then the deadline */
    uv_timer_t *deadline;
    char saving[ID_LEN + 1];
    uint64_t began_ns;
};

struct builds {
    struct list all;
    struct looked looked;
};

static void pump(struct front *f, const char *tenant);

void build_plan_done(struct build_plan *p)
{
    json_decref(p->defaults);
    json_decref(p->steps);
    json_decref(p->credentials);
    free(p->image);
    free(p->start);
    free(p->ready);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void on_output(void *arg, bool err, const char *p, size_t len)
{
    struct build *b = arg;
    struct output_filter_text text =
        output_filter_feed(b->filter, err ? OUTPUT_FILTER_ERR : OUTPUT_FILTER_OUT, p, len);

    build_log_output(&b->log, err, text.p, text.len);
}

/* The command is over: tells what was held back. */
static void flush_output(struct build *b)
{
    for (int err = 0; err < 2; err++) {
        struct output_filter_text text =
            output_filter_flush(b->filter, err ? OUTPUT_FILTER_ERR : OUTPUT_FILTER_OUT);

        build_log_output(&b->log, err, text.p, text.len);
    }
    build_log_flush(&b->log);
}

/* ---- end ------------------------------------------------------------------------------------- */

static void drop_if_over(struct build *b)
{
    if (!b->over || b->waiting > 0)
        return;
    build_log_done(&b->log);
    step_state_done(&b->state);
    build_plan_done(&b->plan);
    free(b);
}

static void let_sandbox_go(struct build *b)
{
    output_filter_free(steal_ptr(&b->filter));
    if (!b->sandbox)
        return;
    sandbox_kill(b->sandbox, NULL, NULL);
    sandbox_unref(steal_ptr(&b->sandbox));
}

static void stop_work(struct build *b)
{
    call_cancel(&b->call);
    account_cancel(&b->account);
    look_cancel(&b->look);
    fetch_leave(&b->fetch);
    if (b->pour)
        pour_cancel(steal_ptr(&b->pour));
    if (b->starting)
        starting_cancel(steal_ptr(&b->starting));
    alarm_drop(&b->turn);
    alarm_drop(&b->deadline);
    let_sandbox_go(b);
}

/* The build is over, whatever its row says. Another may begin. */
static void leave(struct build *b)
{
    struct front *f = b->front;
    char tenant[ID_LEN + 1];

    memcpy(tenant, b->plan.tenant.id, sizeof(tenant));
    b->over = true;
    list_remove(&b->link);
    stop_work(b);
    drop_if_over(b);
    pump(f, tenant);
    builds_sweep(f, tenant);
}

static int write_end(struct build *b, const char *defaults, struct sg_error *e)
{
    int r = store_build_end(b->front->store, &b->plan.row, defaults, e);

    return r == -EALREADY ? 0 : r;
}

PRINTF(2, 3)
static void fail(struct build *b, const char *fmt, ...)
{
    struct store_build *row = &b->plan.row;
    struct sg_error e;
    va_list ap;

    row->state = BUILD_ERROR;
    va_start(ap, fmt);
    vsnprintf(row->reason, sizeof(row->reason), fmt, ap);
    va_end(ap);
    snprintf(row->reason_step, sizeof(row->reason_step), "%s", b->log.step);
    flush_output(b);
    build_log_line(&b->log, BUILD_FAULT, "%s", row->reason);
    if (write_end(b, "", &e) < 0)
        log_line(LEVEL_ERROR, "the end of build %s could not be stored: %s", row->id, e.message);
    leave(b);
}

static void succeed(struct build *b, json_t *defaults)
{
    struct store_build *row = &b->plan.row;
    AUTO(free_p) char *text = json_dumps(defaults, JSON_COMPACT | JSON_SORT_KEYS);
    struct sg_error e;

    row->state = BUILD_READY;
    memcpy(row->base, b->plan.base, sizeof(row->base));
    memcpy(row->layer, b->layer, sizeof(row->layer));
    if (write_end(b, text ? text : "", &e) < 0) { /* too many tags, for one */
        row->layer[0] = '\0';
        fail(b, "the template could not be stored: %s", e.message);
        return;
    }
    build_log_line(&b->log, BUILD_INFO, "Build finished in %.1f s",
                   (double)(clock_ns() - b->began_ns) / 1e9);
    leave(b);
}

/* An order has been answered. False: the build is over, and may be gone. */
static bool back(struct build *b)
{
    bool over = b->over;

    b->waiting--;
    drop_if_over(b);
    return !over;
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

typedef void (*build_go)(struct build *b);
static void look_at_kernels(struct build *b); /* which can do without a sandbox */

struct making {
    struct build *build;
    build_go go;
};

static void on_created(void *arg, struct sandbox *sandbox, int r, const struct sg_error *e)
{
    struct making *m = arg;
    struct build *b = m->build;
    build_go go = m->go;

    free(m);
    if (!back(b)) {
        if (r == 0)
            sandbox_kill(sandbox, NULL, NULL);
        return;
    }
    if (r < 0 && go == look_at_kernels) {
        go(b);
        return;
    }
    if (r < 0) {
        fail(b, "no sandbox could be had for the build: %s", e->message);
        return;
    }
    b->sandbox = sandbox_ref(sandbox);
    b->filter =
        output_filter_new(b->front, output_filter_mode_of(b->front, b->plan.tenant.id, false),
                          b->plan.tenant.id, sandbox->id, NULL, NULL);
    go(b);
}

static void fill_spec(const struct build *b, struct sandbox_spec *ret)
{
    const struct settings *s = &b->front->settings;
    const struct store_build *row = &b->plan.row;

    sandbox_spec_init(ret);
    memcpy(ret->tenant, b->plan.tenant.id, sizeof(b->plan.tenant.id));
    snprintf(ret->template_id, sizeof(ret->template_id), "%s", row->template_id);
    snprintf(ret->alias, sizeof(ret->alias), "%s", b->plan.name);
    ret->envs = json_object();
    ret->gateway = strcmp(b->plan.base, GATEWAY_TEMPLATE) == 0;
    ret->build = true;
    token_random(ret->envd_token);
    ret->limits = (struct sg_limits){
        .memory_bytes = row->memory_mib ? (uint64_t)row->memory_mib << 20 : s->sandbox_memory,
        .disk_bytes = s->sandbox_disk,
        .cpus_milli = row->cpus ? row->cpus * 1000 : s->sandbox_cpus_milli,
        .pids = s->sandbox_pids};
}

/* Goes on when there is a sandbox with what the steps so far have made. */
static void with_sandbox(struct build *b, build_go go)
{
    struct sandbox_spec spec;

    if (b->sandbox) {
        go(b);
        return;
    }
    fill_spec(b, &spec);
    b->waiting++;
    sandbox_create(b->front, &spec, b->layer[0] ? b->layer : NULL,
                   b->front->settings.build_timeout_ms + GRACE_MS, on_created,
                   NEW(struct making, .build = b, .go = go));
}

/* ---- layers ---------------------------------------------------------------------------------- */

struct saving {
    struct build *build;
    bool cached; /* the cache is to find it */
    build_go go;
};

static void on_saved(void *arg, int r, const struct sg_error *e, uint64_t bytes)
{
    struct saving *s = arg;
    struct build *b = s->build;
    struct front *f = b->front;
    struct sg_error failed;
    char id[ID_LEN + 1];
    build_go go = s->go;

    memcpy(id, b->saving, sizeof(id));
    if (r == 0 && !b->over) {
        r = store_build_layer_add(f->store, b->plan.tenant.id, s->cached ? b->key : NULL, id, bytes,
                                  &failed);
        e = &failed;
        if (r < 0)
            sandbox_forget_snapshot(f, id);
    } else if (r == 0) {
        sandbox_forget_snapshot(f, id);
    }
    free(s);
    if (!back(b))
        return;
    if (r < 0) {
        fail(b, "the files could not be saved: %s", e->message);
        return;
    }
    memcpy(b->layer, id, sizeof(id));
    b->layer_own = true;
    builds_sweep(f, b->plan.tenant.id);
    go(b);
}

static void save(struct build *b, bool cached, build_go go)
{
    id_random(b->saving);
    b->waiting++;
    sandbox_snapshot(b->sandbox, b->saving, true, on_saved,
                     NEW(struct saving, .build = b, .cached = cached, .go = go));
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void next_step(struct build *b);

/* Whether the step is one of the image's config. */
static bool is_own(const struct build *b)
{
    return b->at < b->own;
}

static void tell_step(struct build *b, bool cached)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(1024);

    if (b->told)
        return;
    b->told = true;
    step_text(&b->step, &text);
    build_log_line(&b->log, BUILD_INFO, "%s%s %s", cached ? "CACHED " : "", b->log.prefix,
                   text.buf);
}

static void on_turn(uv_timer_t *t)
{
    next_step(t->data);
}

static void step_saved(struct build *b)
{
    b->at++;
    alarm_set(b->turn, 0, on_turn);
}

/* The step has been carried out in the sandbox. */
static void step_done(struct build *b)
{
    flush_output(b);
    save(b, true, step_saved);
}

static void ignore_event(struct call *c UNUSED, uint8_t what UNUSED, const void *p UNUSED,
                         size_t len UNUSED)
{
}

static void on_run_data(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct build *b = c->owner;

    on_output(b, sub == CHAN_STDERR, p, len);
    call_consumed(c, len);
}

static void on_run_end(struct call *c, int status, const char *message, const void *result,
                       size_t len)
{
    struct build *b = c->owner;
    const char *command = step_arg(&b->step, 0);
    struct shell_end end;
    struct sg_error e;

    if (status == CALL_GONE) {
        sandbox_gone_error(b->sandbox, &e);
        fail(b, "failed to run command '%.*s': %s", SHOWN, command, e.message);
    } else if (status != 0) {
        fail(b, "failed to run command '%.*s': %s", SHOWN, command, message);
    } else if (shell_end_read(result, len, &end) < 0) {
        fail(b, "failed to run command '%.*s': the sandbox sent a malformed answer", SHOWN,
             command);
    } else if (end.text[0]) {
        fail(b, "failed to run command '%.*s': %s", SHOWN, command, end.text);
    } else {
        step_done(b);
    }
}

static void do_run(struct build *b)
{
    struct shell sh = {.command = step_arg(&b->step, 0),
                       .user = step_arg(&b->step, 1)[0] ? step_arg(&b->step, 1) : b->state.user,
                       .cwd = b->state.workdir,
                       .envs = b->state.envs};
    struct sg_error e;

    b->call = (struct call){.owner = b,
                            .uncounted = true,
                            .on_event = ignore_event,
                            .on_data = on_run_data,
                            .on_end = on_run_end};
    if (shell_begin(&b->call, b->sandbox, &sh, &e) < 0)
        fail(b, "failed to run command '%.*s': %s", SHOWN, sh.command, e.message);
}

static void on_poured(void *arg, int r, const struct sg_error *e)
{
    struct build *b = arg;

    b->pour = NULL;
    if (r < 0)
        fail(b, "failed to %s '%.*s': %s", b->step.type == STEP_COPY ? "copy" : "make", SHOWN,
             step_arg(&b->step, 0), e->message);
    else
        step_done(b);
}

static int find_upload(struct build *b, struct store_upload *ret)
{
    return store_upload_get(b->front->store, b->plan.tenant.id, b->step.hash, ret, NULL);
}

static void do_copy(struct build *b)
{
    struct store_upload u;
    struct step_copy how;
    struct sg_error e;

    if (step_copy(&b->step, &b->state, &how, &e) < 0) {
        fail(b, "failed to copy '%.*s': %s", SHOWN, step_arg(&b->step, 0), e.message);
        return;
    }
    bool same = find_upload(b, &u) == 0 && strcmp(u.digest, b->digest) == 0;
    int fd = same ? upload_open(b->front->store, &u) : -1;
    if (fd < 0)
        fail(b, "failed to copy '%.*s': its files were replaced or removed: build again", SHOWN,
             step_arg(&b->step, 0));
    else
        b->pour = pour_begin(b->sandbox, fd, &how, on_poured, b);
}

/* Makes the working directory: an archive without files. */
static void make_workdir(struct build *b)
{
    struct step_copy how = {.mode = UNPACK_OWN_MODE};

    memcpy(how.user, b->state.user, sizeof(how.user));
    snprintf(how.dest, sizeof(how.dest), "%.*s/", OPS_PATH_MAX - 2, b->state.workdir);
    b->pour = pour_begin(b->sandbox, -1, &how, on_poured, b);
}

/* The step has changed nothing, and what comes next may be in the cache. */
static void step_changed_nothing(struct build *b)
{
    tell_step(b, !b->missed);
    if (!b->missed)
        let_sandbox_go(b);
    step_saved(b);
}

/* The image's own user cannot be used. */
static void leave_out_user(struct build *b)
{
    tell_step(b, !b->missed);
    build_log_line(&b->log, BUILD_WARN,
                   "[base] the image has no user '%.64s' in its /etc/passwd: it is 'user' in its "
                   "place",
                   step_arg(&b->step, 0));
    step_state_user(&b->state, DEFAULTS_USER, "");
}

static void on_account(struct account *a, int r, const char *home, bool made,
                       const struct sg_error *e)
{
    struct build *b = a->arg;

    if (r == -EUSERS && !a->make) {
        leave_out_user(b);
        step_changed_nothing(b);
        return;
    }
    if (r < 0) {
        tell_step(b, false);
        fail(b, "failed to use user '%s': %s", b->state.user, e->message);
        return;
    }
    snprintf(b->state.home, sizeof(b->state.home), "%s", home);
    if (made) {
        b->missed = true;
        tell_step(b, false);
        step_done(b);
    } else {
        step_changed_nothing(b);
    }
}

/* Finds out where the user's home is. A user that is not there is made, as E2B does; one that an image's
 * config names is not, since nobody asked for it. */
static void do_user(struct build *b)
{
    struct sg_error e;

    b->account = (struct account){.sandbox = b->sandbox,
                                  .name = b->state.user,
                                  .make = !is_own(b),
                                  .on_output = on_output,
                                  .done = on_account,
                                  .arg = b};
    if (account_begin(&b->account, &e) < 0)
        fail(b, "failed to use user '%s': %s", b->state.user, e.message);
}

static void on_directory(struct look *l, const char *text, const char *words UNUSED)
{
    struct build *b = l->arg;

    if (!text[0]) {
        looked_add(&b->front->builds->looked, b->key, text);
        step_changed_nothing(b);
        return;
    }
    b->missed = true;
    tell_step(b, false);
    make_workdir(b);
}

/* The directory that an image's config names is there, as a rule. */
static void do_workdir(struct build *b)
{
    struct sg_error e;

    if (!is_own(b)) {
        make_workdir(b);
        return;
    }
    b->look = (struct look){.sandbox = b->sandbox, .done = on_directory, .arg = b};
    if (look_at_path(&b->look, b->state.workdir, &e) < 0)
        fail(b, "failed to make '%s': %s", b->state.workdir, e.message);
}

static void do_step(struct build *b)
{
    static void (*const todo[STEP_MAX_])(struct build *) = {[STEP_RUN] = do_run,
                                                            [STEP_COPY] = do_copy,
                                                            [STEP_WORKDIR] = do_workdir,
                                                            [STEP_USER] = do_user};

    todo[b->step.type](b);
}

/* Reads the next step, and names it for the log. An image's own steps belong to its FROM. */
static void read_step(struct build *b)
{
    size_t n = json_array_size(b->plan.steps);
    struct sg_error e;

    step_read(json_array_get(b->plan.steps, b->at), &b->step, &e);
    b->told = false;
    if (is_own(b)) {
        snprintf(b->log.prefix, sizeof(b->log.prefix), "[base]");
        return;
    }
    snprintf(b->log.step, sizeof(b->log.step), "%zu", b->at - b->own + 1);
    snprintf(b->log.prefix, sizeof(b->log.prefix), "[builder %zu/%zu]", b->at - b->own + 1,
             n - b->own);
}

/* Whether the cache has what the step makes of the files, which becomes the build's layer. */
static bool find_cached(struct build *b)
{
    if (b->missed || b->step.type == STEP_ENV ||
        store_build_layer_get(b->front->store, b->plan.tenant.id, b->key, b->layer, NULL) < 0)
        return false;
    b->layer_own = true;
    return true;
}

/* Whether it is known that the step changes no file: of a user that has to be looked for it is not. */
static bool changes_nothing(const struct build *b)
{
    return b->step.type == STEP_ENV || (b->step.type == STEP_USER && b->state.home[0]) ||
           (b->step.type == STEP_WORKDIR && is_own(b) &&
            looked_find(&b->front->builds->looked, b->key));
}

/* The same of one that it takes a look for. */
static bool may_change_nothing(const struct build *b)
{
    return b->step.type == STEP_USER || (b->step.type == STEP_WORKDIR && is_own(b));
}

/* Carries out the next step, or finds what it made in the cache. */
static void begin_step(struct build *b)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(1024);
    struct store_upload u = {.digest = ""};
    char below[STORE_KEY_HEX + 1];
    struct sg_error e = {0};

    read_step(b);
    if (step_apply(&b->step, &b->state, &e) < 0 && is_own(b)) { /* its name is none */
        leave_out_user(b);
        step_saved(b);
        return;
    }
    if (e.code < 0) {
        tell_step(b, false);
        step_text(&b->step, &text);
        fail(b, "%s: %s", text.buf, e.message);
        return;
    }
    if (b->step.type == STEP_COPY && find_upload(b, &u) < 0) {
        fail(b, "failed to copy '%.*s': its files were not uploaded", SHOWN, step_arg(&b->step, 0));
        return;
    }
    memcpy(below, b->key, sizeof(below));
    memcpy(b->digest, u.digest, sizeof(b->digest));
    step_key(below, &b->step, b->digest, b->key);
    b->missed |= b->step.force;
    bool cached = find_cached(b), nothing = changes_nothing(b);
    b->missed |= !cached && !nothing && !may_change_nothing(b);
    if (cached || nothing || !may_change_nothing(b))
        tell_step(b, !b->missed);
    if (nothing || (cached && b->step.type != STEP_USER))
        step_saved(b);
    else
        with_sandbox(b, do_step);
}

/* ---- the end of the steps -------------------------------------------------------------------- */

static json_t *final_defaults(const struct build *b)
{
    const struct build_plan *p = &b->plan;
    const char *start = p->start ? p->start : defaults_start(p->defaults);
    const char *ready = p->ready ? p->ready : p->start ? NULL : defaults_ready(p->defaults);

    return step_state_defaults(&b->state, start, ready);
}

static void end_well(struct build *b, const char *of_python)
{
    json_t *defaults = final_defaults(b);

    if (of_python[0])
        build_log_line(&b->log, BUILD_WARN, "[finalize] %s", of_python);
    succeed(b, defaults);
    json_decref(defaults);
}

static void on_python(struct look *l, const char *text, const char *words)
{
    struct build *b = l->arg;

    on_output(b, true, words, strlen(words));
    flush_output(b);
    looked_add(&b->front->builds->looked, b->layer, text);
    end_well(b, text);
}

static void look_at_kernels(struct build *b)
{
    struct sg_error e;

    b->look =
        (struct look){.sandbox = b->sandbox, .envs = b->state.envs, .done = on_python, .arg = b};
    if (!b->sandbox || look_at_python(&b->look, &e) < 0)
        end_well(b, "");
}

/* What kernels cannot do in the template's files is said when it is built, and not only with the first
 * cell. */
static void finish(struct build *b)
{
    const char *text = b->layer[0] ? looked_find(&b->front->builds->looked, b->layer) : "";

    if (text)
        end_well(b, text);
    else
        with_sandbox(b, look_at_kernels);
}

static void on_started(void *arg, int r, const struct sg_error *e)
{
    struct build *b = arg;

    b->starting = NULL;
    flush_output(b);
    if (r < 0) {
        fail(b, "%s", e->message);
        return;
    }
    build_log_line(&b->log, BUILD_INFO, "[finalize] Template is ready");
    save(b, false, finish);
}

static void do_start(struct build *b)
{
    struct starting_plan plan = {.limit_ms = READY_MS,
                                 .every_ms = READY_EVERY_MS,
                                 .blind_ms = BLIND_MS,
                                 .on_output = on_output,
                                 .done = on_started,
                                 .arg = b};

    b->sandbox->spec.defaults = final_defaults(b); /* as in the sandboxes of the template */
    b->starting = starting_begin(b->sandbox, &plan);
}

static void save_all(struct build *b)
{
    save(b, false, finish);
}

static void finalize(struct build *b)
{
    json_t *defaults = final_defaults(b);
    bool starts = starting_needed(defaults);

    snprintf(b->log.step, sizeof(b->log.step), "finalize");
    snprintf(b->log.prefix, sizeof(b->log.prefix), "[finalize]");
    if (defaults_start(defaults))
        build_log_line(&b->log, BUILD_INFO, "[finalize] Running start command: %.*s", SHOWN,
                       defaults_start(defaults));
    if (defaults_ready(defaults))
        build_log_line(&b->log, BUILD_INFO, "[finalize] Waiting for ready command: %.*s", SHOWN,
                       defaults_ready(defaults));
    json_decref(defaults);
    if (starts)
        with_sandbox(b, do_start);
    else if (b->layer[0] && !b->layer_own) /* the files of a snapshot */
        with_sandbox(b, save_all);
    else
        finish(b);
}

static void next_step(struct build *b)
{
    if (b->at < json_array_size(b->plan.steps))
        begin_step(b);
    else
        finalize(b);
}

/* ---- begin ----------------------------------------------------------------------------------- */

static void on_deadline(uv_timer_t *t)
{
    struct build *b = t->data;

    fail(b, "the build took longer than %llu s (build_timeout)",
         (unsigned long long)b->front->settings.build_timeout_ms / 1000);
}

/* The base is there. */
static void begin_steps(struct build *b)
{
    struct build_plan *p = &b->plan;

    step_state_init(&b->state, p->defaults);
    memcpy(b->layer, p->layer, sizeof(b->layer));
    b->layer_own = p->layer_own;
    step_base_key(p->base, p->layer, p->defaults, b->key);
    alarm_set(b->turn, 0, on_turn);
}

/* The steps of the image come before those of the client. */
static void put_own_steps(struct build *b, const json_t *own)
{
    json_t *all = json_copy((json_t *)(uintptr_t)own);

    b->own = json_array_size(all);
    json_array_extend(all, b->plan.steps);
    json_decref(b->plan.steps);
    b->plan.steps = all;
}

static void on_fetched(void *arg, int r, const struct fetched *f, const struct sg_error *e)
{
    struct build *b = arg;

    if (r < 0) {
        fail(b, "%s", e->message);
        return;
    }
    memcpy(b->plan.layer, f->layer, sizeof(b->plan.layer));
    b->plan.layer_own = true;
    b->plan.defaults = json_incref(f->defaults);
    put_own_steps(b, f->steps);
    begin_steps(b);
}

static void begin_fetch(struct build *b)
{
    const struct build_plan *p = &b->plan;

    b->fetch.log = &b->log;
    b->fetch.done = on_fetched;
    b->fetch.arg = b;
    fetch_join(b->front, p->tenant.id, p->image, p->credentials, &b->fetch);
}

static void begin(struct build *b)
{
    struct build_plan *p = &b->plan;
    struct sg_error e;

    b->begun = true;
    b->began_ns = clock_ns();
    b->missed = p->force;
    if (store_build_state(b->front->store, p->row.id, BUILD_RUNNING, &e) < 0) {
        fail(b, "%s", e.message);
        return;
    }
    build_log_line(&b->log, BUILD_INFO, "[base] FROM %s", p->from);
    if (p->refusal[0]) {
        fail(b, "%s", p->refusal);
        return;
    }
    if (store_build_layers_named(b->front->store, p->tenant.id) >=
        b->front->settings.tenant_build_size) {
        fail(b,
             "your templates take up all that they may (tenant_build_size, %llu MiB): delete "
             "some",
             (unsigned long long)b->front->settings.tenant_build_size >> 20);
        return;
    }
    b->deadline = alarm_new(b->front->loop, b);
    alarm_set(b->deadline, b->front->settings.build_timeout_ms * NS_PER_MS, on_deadline);
    if (p->image)
        begin_fetch(b);
    else
        begin_steps(b);
}

static void on_begin(uv_timer_t *t)
{
    begin(t->data);
}

static bool is_of(const struct build *b, const char *tenant)
{
    return strcmp(b->plan.tenant.id, tenant) == 0;
}

/* Begins builds of a tenant that wait, as many as may run. */
static void pump(struct front *f, const char *tenant)
{
    uint32_t running = 0;

    LIST_EACH(struct build, b, &f->builds->all, link) {
        running += is_of(b, tenant) && b->begun;
    }
    LIST_EACH(struct build, b, &f->builds->all, link) {
        if (running >= f->settings.tenant_builds)
            break;
        if (is_of(b, tenant) && !b->begun) {
            b->begun = true;
            alarm_set(b->turn, 0, on_begin);
            running++;
        }
    }
}

/* A build that waits holds its plan in memory. */
static int check_room(struct front *f, const char *tenant, struct sg_error *e)
{
    uint32_t n = 0;

    LIST_EACH(struct build, b, &f->builds->all, link) {
        n += is_of(b, tenant);
    }
    return n < f->settings.tenant_builds + BUILDS_WAITING_MAX
               ? 0
               : err_set(e, SG_ERR_LIMIT, -EDQUOT,
                         "%u builds of yours wait or run already: try again when some have ended",
                         n);
}

int build_submit(struct front *f, struct build_plan *plan, struct sg_error *e)
{
    int r = check_room(f, plan->tenant.id, e);

    if (r == 0)
        r = store_build_state(f->store, plan->row.id, BUILD_QUEUED, e);
    if (r < 0)
        return r;
    struct build *b = NEW(struct build, .front = f, .plan = *plan);
    build_log_init(&b->log, f->store, plan->row.id);
    snprintf(b->log.step, sizeof(b->log.step), "base");
    b->turn = alarm_new(f->loop, b);
    list_append(&f->builds->all, &b->link);
    pump(f, plan->tenant.id);
    return 0;
}

static struct build *under_way(const struct front *f, const char *tenant, const char *template_id,
                               const char *id)
{
    return LIST_FIND(struct build, at, &f->builds->all, link,
                     (!tenant || strcmp(at->plan.tenant.id, tenant) == 0) &&
                         (!template_id || strcmp(at->plan.row.template_id, template_id) == 0) &&
                         (!id || strcmp(at->plan.row.id, id) == 0));
}

size_t builds_cancel(struct front *f, const char *template_id, const char *id)
{
    struct build *b;
    size_t n = 0;

    for (; (b = under_way(f, NULL, template_id, id)); n++)
        fail(b, "the build was cancelled");
    return n;
}

size_t builds_cancel_all(struct front *f, const char *tenant, const char *why)
{
    struct build *b;
    size_t n = 0;

    for (; (b = under_way(f, tenant, NULL, NULL)); n++)
        fail(b, "%s", why);
    return n;
}

/* ---- layers that nothing needs --------------------------------------------------------------- */

static void forget_layer(const char *id, void *arg)
{
    sandbox_forget_snapshot(arg, id);
}

/* Whether a build under way starts from the layer, or ends with it, or may. */
static bool is_needed(const char *id, void *arg)
{
    const struct front *f = arg;

    if (fetches_need(id))
        return true;
    LIST_EACH(struct build, b, &f->builds->all, link) {
        if (strcmp(b->layer, id) == 0 || strcmp(b->plan.layer, id) == 0)
            return true;
    }
    return false;
}

void builds_sweep(struct front *f, const char *tenant)
{
    struct sg_error e;

    copies_tidy(f);
    copies_fit(f, tenant);
    if (store_build_layers_sweep(f->store, tenant, f->settings.tenant_build_layers,
                                 f->settings.tenant_build_size, is_needed, forget_layer, f, &e) < 0)
        log_line(LEVEL_WARN, "layers of builds could not be removed: %s", e.message);
}

int builds_start(struct front *f, struct sg_error *e)
{
    f->builds = xcalloc(1, sizeof(*f->builds));
    uploads_tidy(f);
    fetches_tidy(f);
    return store_builds_abandon(f->store, FRONT_DIED, e);
}
