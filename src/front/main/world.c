#include "front/main/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "front/e2b/ref.h"
#include "front/main/manage.h"
#include "front/main/world_import.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/command/actions.h"
#include "lib/command/state_dir.h"
#include "lib/command/ui.h"
#include "lib/text/json.h"

#define DEFAULT_TENANT "default" /* the one that a server makes when it first starts */
#define MIB            (1024.0 * 1024.0)

struct world_options {
    struct action_options base; /* `which`: the layer's file; "-" is standard input */
    const char *name, *tenant;
};

static const struct cli_option import_options[] = {
    {"name", 0, "NAME", "name of the template, NAME or NAME:TAG", CLI_TEXT(world_options, name)},
    {"tenant", 0, "NAME", "tenant that it is for", CLI_TEXT(world_options, tenant)},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};

const struct cli_syntax world_import_syntax = {import_options, ARRAY_SIZE(import_options),
                                               action_apply_which, 0};

/* ---- import ---------------------------------------------------------------------------------- */

static int open_worlds(const struct world_options *o, struct sg_error *e)
{
    char state[STATE_DIR_MAX], path[STATE_DIR_MAX + 8];
    int fd, r;

    if (geteuid() != 0)
        return err_set(e, SG_ERR_DENIED, -EPERM, "the worlds of a server are root's: use sudo");
    r = state_dir_find(o->base.state, state, e);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/worlds", state);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "there is no server in '%s': start one with 'sandglass serve', or name its "
                       "directory with --state",
                       state);
    return fd < 0 ? err_errno(e, "open '%s'", path) : fd;
}

static int open_layer(const char *path, struct sg_error *e)
{
    int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? err_errno(e, "open '%s'", path) : fd;
}

/* The name that E2B's programs will ask for. */
static int read_name(const struct world_options *o, struct store_snapshot *ret, struct sg_error *e)
{
    struct template_ref ref;
    int r;

    if (!o->name)
        return err_invalid(e, "no name given: add --name, such as --name debian:12");
    r = template_ref_parse(o->name, &ref, e);
    if (r == 0 && ref.space[0])
        r = err_invalid(e, "--name '%.80s': a tenant is named with --tenant", o->name);
    if (r < 0)
        return r;
    snprintf(ret->name, sizeof(ret->name), "%s", ref.name);
    snprintf(ret->tag, sizeof(ret->tag), "%s", ref.tag);
    return 0;
}

static int add_row(struct store *s, const struct world_options *o, struct store_snapshot *row,
                   struct sg_error *e)
{
    char replaced[ID_LEN + 1];
    struct store_tenant tenant;
    int r = store_tenant_ensure(s, o->tenant ? o->tenant : DEFAULT_TENANT, &tenant, e);

    if (r < 0)
        return r;
    snprintf(row->tenant, sizeof(row->tenant), "%s", tenant.id);
    return store_snapshot_add(s, row, replaced, e);
}

/* In a child, which becomes the owner of the database. */
static int name_world(const struct world_options *o, struct store_snapshot *row, struct sg_error *e)
{
    char dir[ACTION_DIR_MAX];
    struct store *s = NULL;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct sg_error own = {0};
        int r = manage_enter(&o->base, dir, &own);

        if (r == 0)
            r = store_open(".", &s, &own);
        if (r == 0)
            r = add_row(s, o, row, &own);
        if (r < 0)
            ui_error("%s", own.message);
        _exit(r < 0);
    }
    if (pid < 0)
        return err_errno(e, "start a child");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? 0 : err_set(e, SG_ERR_INTERNAL, -EIO, "the world was not kept");
}

static void print_imported(const struct world_options *o, const struct world_imported *w)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);
    struct json j = {.out = &out};

    if (!o->base.json) {
        printf("%s is template %s: %llu files, %.1f MiB\n", o->name, w->id,
               (unsigned long long)w->files, (double)w->bytes / MIB);
        if (w->left_out > 0)
            ui_note("%u devices were left out: a sandbox has its own", w->left_out);
        return;
    }
    jw_object_begin(&j);
    jw_string(jw_key(&j, "id"), w->id);
    jw_string(jw_key(&j, "name"), o->name);
    jw_u64(jw_key(&j, "files"), w->files);
    jw_u64(jw_key(&j, "bytes"), w->bytes);
    jw_u64(jw_key(&j, "leftOut"), w->left_out);
    jw_object_end(&j);
    puts(out.buf);
}

static int import(const struct world_options *o, struct sg_error *e)
{
    AUTO(close_p) int worlds = -1, layer = -1;
    struct store_snapshot row = {.created_ms = clock_wall_ms()};
    struct world_imported w;
    int r = read_name(o, &row, e);

    if (r == 0)
        r = worlds = open_worlds(o, e);
    if (r >= 0)
        r = layer = open_layer(o->base.which, e);
    if (r >= 0)
        r = world_import(worlds, layer, &w, e);
    if (r < 0)
        return r;
    memcpy(row.id, w.id, sizeof(row.id));
    row.bytes = w.bytes;
    r = name_world(o, &row, e);
    if (r < 0)
        world_discard(worlds, w.id);
    else
        print_imported(o, &w);
    return r;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static const struct action actions[] = {
    {"import", " FILE",
     "Makes a template of a root file system, as a tar file (plain, gzip, zstd); - reads standard "
     "input.",
     &world_import_syntax, "no file given: name a tar file, or - for standard input"},
};

static int run(const void *arg UNUSED, size_t i UNUSED, const void *options, struct sg_error *e)
{
    return import(options, e);
}

int world_main(int argc, char **argv)
{
    static const struct action_verb verb = {
        .name = "world",
        .summary = "Manages templates that are whole root file systems.",
        .actions = actions,
        .n_actions = ARRAY_SIZE(actions),
        .options_size = sizeof(struct world_options),
        .run = run,
    };

    return actions_main(&verb, argc, argv);
}
