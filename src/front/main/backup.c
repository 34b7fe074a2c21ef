#include "front/main/backup.h"

#include <stdio.h>
#include <string.h>

#include "front/backup/backup.h"
#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "lib/command/actions.h"
#include "lib/command/state_dir.h"
#include "lib/command/ui.h"

#define JSON_MAX    (64u * 1024)
#define PROGRESS_NS 100000000ull

struct options {
    struct action_options base; /* `which`: the directory of the backup */
    bool replace, check, no_volumes;
};

/* ---- options --------------------------------------------------------------------------------- */

static int apply_path(void *self, const char *arg, struct sg_error *e)
{
    struct options *o = self;

    if (o->base.which)
        return err_invalid(e, "unexpected argument '%.64s': name one directory", arg);
    o->base.which = arg;
    return 0;
}

static const struct cli_option backup_options[] = {
    ACTION_STATE,
    {"no-volumes", 0, NULL, "leave volumes out, names and contents", CLI_FLAG(options, no_volumes)},
    ACTION_JSON,
    ACTION_HELP,
};
static const struct cli_option restore_options[] = {
    ACTION_STATE,
    {"replace", 0, NULL, "move an existing database aside", CLI_FLAG(options, replace)},
    {"check", 0, NULL, "only check that the backup is complete", CLI_FLAG(options, check)},
    ACTION_JSON,
    ACTION_HELP,
};
const struct cli_syntax backup_syntax = {backup_options, ARRAY_SIZE(backup_options), apply_path, 0};
const struct cli_syntax restore_syntax = {restore_options, ARRAY_SIZE(restore_options), apply_path,
                                          0};

/* ---- what is printed ------------------------------------------------------------------------- */

/* The progress: on a terminal, one line that is written over and over. */
struct shown {
    bool on;
    uint64_t bytes, last_ns;
};

static void on_progress(void *arg, const char *what, uint64_t bytes)
{
    struct shown *s = arg;
    uint64_t now = clock_ns();

    s->bytes += bytes;
    if (!s->on || now - s->last_ns < PROGRESS_NS)
        return;
    s->last_ns = now;
    fprintf(stderr, "\r%s: %.1f MiB ", what, (double)s->bytes / (1024.0 * 1024.0));
    fflush(stderr);
}

static void print_json(const char *path, const char *state, const struct backup_report *r)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(JSON_MAX);
    struct json j = {.out = &out};

    jw_object_begin(&j);
    jw_string(jw_key(&j, "path"), path);
    if (state)
        jw_string(jw_key(&j, "state"), state);
    jw_string(jw_key(&j, "created"), r->created);
    jw_string(jw_key(&j, "version"), r->version);
    jw_u64(jw_key(&j, "schema"), (uint64_t)r->facts.schema);
#define PRINT(name, table) jw_u64(jw_key(&j, #name), r->facts.name);
    STORE_COUNTS(PRINT)
#undef PRINT
    jw_u64(jw_key(&j, "files"), r->files);
    jw_u64(jw_key(&j, "bytes"), r->bytes);
    if (r->aside[0])
        jw_string(jw_key(&j, "before"), r->aside);
    jw_u64(jw_key(&j, "tornFiles"), r->torn);
    jw_u64(jw_key(&j, "volumesLeftOut"), r->volumes_left);
    jw_array_begin(jw_key(&j, "leftOut"));
    for (size_t i = 0; i < r->n_left && i < BACKUP_LEFT_MAX; i++) {
        jw_object_begin(&j);
        jw_string(jw_key(&j, r->left[i].what), r->left[i].id);
        jw_string(jw_key(&j, "reason"), r->left[i].why);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    jw_object_end(&j);
    printf("%s\n", out.buf);
}

static void print_facts(const char *done, const char *path, const struct backup_report *r)
{
    printf("%s %s: %llu tenants, %llu keys, %llu secrets, %llu snapshots, %llu volumes, %llu "
           "contexts; %.1f MiB, of %s\n",
           path, done, (unsigned long long)r->facts.tenants, (unsigned long long)r->facts.keys,
           (unsigned long long)r->facts.secrets, (unsigned long long)r->facts.snapshots,
           (unsigned long long)r->facts.volumes, (unsigned long long)r->facts.contexts,
           (double)r->bytes / (1024.0 * 1024.0), r->created);
}

/* What was left out on request is said when the backup is made, and when it is looked at. */
static void warn_no_volumes(const struct backup_report *r)
{
    if (r->volumes_left > 0)
        ui_note("the backup has no volumes: a server that is restored from it lacks %llu of them, "
                "their names and all that is in them",
                (unsigned long long)r->volumes_left);
}

static void warn_left_out(const struct backup_report *r)
{
    for (size_t i = 0; i < r->n_left && i < BACKUP_LEFT_MAX; i++)
        ui_note("%s %s is not in the backup: %s", r->left[i].what, r->left[i].id, r->left[i].why);
    if (r->n_left > BACKUP_LEFT_MAX)
        ui_note("and %zu more are not in the backup", r->n_left - BACKUP_LEFT_MAX);
    if (r->torn > 0)
        ui_note(
            "%llu files of volumes were written to whenever they were copied: parts of them are "
            "older than others",
            (unsigned long long)r->torn);
    warn_no_volumes(r);
}

/* ---- running --------------------------------------------------------------------------------- */

static int need_root(struct sg_error *e)
{
    return geteuid() == 0 ? 0
                          : err_set(e, SG_ERR_DENIED, -EPERM,
                                    "the files of a server are root's to read: use sudo");
}

static int finish(int r, const struct sg_error *e)
{
    if (r < 0)
        ui_error("%s", e->message);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        ui_error("cannot write to standard output: %s", strerror(errno));
        return 1;
    }
    return r < 0;
}

struct verb {
    const char *name, *about;
    const struct cli_syntax *syntax;
    int (*run)(const struct options *o, const char *state, const struct backup_watch *watch,
               struct backup_report *ret, struct sg_error *e);
    void (*print)(const struct options *o, const char *state, const struct backup_report *r);
};

static int run(const struct verb *v, int argc, char **argv)
{
    struct options o = {0};
    struct shown shown = {.on = isatty(STDERR_FILENO)};
    struct backup_watch watch = {.progress = on_progress, .arg = &shown};
    struct backup_report report = {0};
    char state[STATE_DIR_MAX], **rest;
    struct sg_error e = {0};

    if (cli_parse(v->syntax, argc, argv, &o, &rest, &e) < 0)
        return ui_usage(v->name, e.message);
    if (o.base.help) {
        printf("Usage: sandglass %s [OPTION]... DIR\n\n%s\n\n", v->name, v->about);
        cli_print_options(stdout, v->syntax);
        return finish(0, &e);
    }
    if (!o.base.which && rest)
        o.base.which = rest[0];
    if (!o.base.which)
        return ui_usage(v->name, "no directory given: name that of the backup");
    int r = need_root(&e);
    if (r == 0)
        r = state_dir_find(o.base.state, state, &e);
    if (r == 0)
        r = v->run(&o, state, &watch, &report, &e);
    if (shown.on && shown.last_ns > 0)
        fprintf(stderr, "\r%*s\r", 40, "");
    if (r == 0)
        v->print(&o, state, &report);
    return finish(r, &e);
}

static int run_backup(const struct options *o, const char *state, const struct backup_watch *watch,
                      struct backup_report *ret, struct sg_error *e)
{
    return backup_write(state, o->base.which, !o->no_volumes, watch, ret, e);
}

static void print_written(const struct options *o, const char *state, const struct backup_report *r)
{
    warn_left_out(r);
    if (o->base.json)
        print_json(o->base.which, state, r);
    else
        print_facts("is written", o->base.which, r);
}

int backup_main(int argc, char **argv)
{
    static const struct verb backup = {
        "backup",
        "Writes all that a server cannot make again to a new directory, while the server runs:\n"
        "keys, tenants, secrets, snapshots, volumes, contexts, the record.",
        &backup_syntax, run_backup, print_written};

    return run(&backup, argc, argv);
}

static int run_restore(const struct options *o, const char *state, const struct backup_watch *watch,
                       struct backup_report *ret, struct sg_error *e)
{
    return o->check ? backup_check(o->base.which, watch, ret, e)
                    : backup_restore(o->base.which, state, o->replace, watch, ret, e);
}

static void print_restored(const struct options *o, const char *state,
                           const struct backup_report *r)
{
    warn_no_volumes(r);
    if (o->base.json) {
        print_json(o->base.which, o->check ? NULL : state, r);
        return;
    }
    print_facts(o->check ? "is whole" : "is restored", o->base.which, r);
    if (r->aside[0])
        printf("The database that was there before is in %s: remove it when you are sure.\n",
               r->aside);
    if (!o->check)
        printf("Start the server: sandglass serve --state %s\n", state);
}

int restore_main(int argc, char **argv)
{
    static const struct verb restore = {
        "restore",
        "Restores a backup for a server that does not run. The backup is checked first, and "
        "restored as a\nwhole or not at all.",
        &restore_syntax, run_restore, print_restored};

    return run(&restore, argc, argv);
}
