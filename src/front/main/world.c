#include "front/main/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "front/e2b/ref.h"
#include "front/main/manage.h"
#include "front/main/worker.h"
#include "front/main/world_image.h"
#include "front/main/world_manage.h"
#include "front/store/worlds.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/command/actions.h"
#include "lib/command/exit_status.h"
#include "lib/command/state_dir.h"
#include "lib/command/ui.h"
#include "lib/text/json.h"

#define DEFAULT_TENANT "default" /* the one that a server makes when it first starts */
#define MIB            (1024.0 * 1024.0)
#define SECRET_MAX     4096
#define MAKE           "/worlds/make"

#define NAME_OPTIONS                                                                              \
    {"name", 0, "NAME", "name of the template, NAME or NAME:TAG", CLI_TEXT(world_options, name)}, \
    {                                                                                             \
        "tenant", 0, "NAME", "tenant that it is for", CLI_TEXT(world_options, tenant)             \
    }

static const struct cli_option import_options[] = {
    NAME_OPTIONS,
    {"image", 0, NULL, "FILE is an image, as 'docker save' and OCI's archives are",
     CLI_FLAG(world_options, image)},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};
static const struct cli_option pull_options[] = {
    NAME_OPTIONS,
    {"user", 0, "NAME", "user at the registry; the password is read from standard input",
     CLI_TEXT(world_options, user)},
    {"insecure", 0, "HOST[:PORT]", "ask this registry by HTTP, wherever it is",
     CLI_TEXT(world_options, insecure)},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};

const struct cli_syntax world_import_syntax = {import_options, ARRAY_SIZE(import_options),
                                               action_apply_which, 0};
const struct cli_syntax world_pull_syntax = {pull_options, ARRAY_SIZE(pull_options),
                                             action_apply_which, 0};

/* ---- where from ------------------------------------------------------------------------------ */

int worlds_open(const struct world_options *o, struct sg_error *e)
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
    r = store_snapshot_add(s, row, replaced, e);
    /* What it has replaced is loose already, so the next start of a server removes it, if not this. */
    if (r == 0 && replaced[0])
        store_world_drop(s, replaced, NULL);
    return r;
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

static void print_made(const struct world_options *o, const struct world_made *w)
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

/* Makes the template of what `add` gives. */
static int make(const struct world_options *o,
                int (*add)(const struct world_options *o, struct world_making *m,
                           struct sg_error *e),
                struct sg_error *e)
{
    AUTO(close_p) int worlds = -1;
    AUTO(world_abandon) struct world_making m = WORLD_MAKING_NONE;
    struct store_snapshot row = {.created_ms = clock_wall_ms()};
    struct world_made made;
    int r = read_name(o, &row, e);

    if (r == 0)
        r = worlds = worlds_open(o, e);
    if (r >= 0)
        r = world_begin(&m, worlds, NULL, e);
    if (r == 0)
        r = add(o, &m, e);
    if (r == 0)
        r = world_finish(&m, &made, e);
    if (r < 0)
        return r;
    memcpy(row.id, made.id, sizeof(row.id));
    row.bytes = made.bytes;
    r = name_world(o, &row, e);
    if (r < 0)
        world_discard(worlds, made.id);
    else
        print_made(o, &made);
    return r;
}

static int add_image(struct world_making *m, const struct pull_order *order, struct sg_error *e)
{
    AUTO(free_p) struct pulled *p = xcalloc(1, sizeof(*p));

    return world_add_image(m, order, p, e);
}

/* The puller reads an archive from wherever it likes, so it must be a file. */
static int spool(int from, struct sg_error *e)
{
    AUTO(close_p) int to = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    static char piece[1 << 20];
    ssize_t n = 1;
    int r = to < 0 ? -errno : 0;

    while (r == 0 && (n = read(from, piece, sizeof(piece))) > 0)
        r = fd_write_all(to, piece, (size_t)n);
    if (r < 0 || n < 0)
        return err_code(e, r < 0 ? r : -errno, "keep the image in /var/tmp");
    return lseek(to, 0, SEEK_SET) < 0 ? err_errno(e, "read the image") : steal_fd(&to);
}

static int add_file(const struct world_options *o, struct world_making *m, struct sg_error *e)
{
    AUTO(close_p) int file = open_layer(o->base.which, e), spooled = -1;
    struct stat st;

    if (file < 0)
        return file;
    if (!o->image)
        return world_add(m, file, NULL, e);
    if (fstat(file, &st) == 0 && !S_ISREG(st.st_mode)) {
        int r = spooled = spool(file, e);

        if (r < 0)
            return r;
    }
    return add_image(m, &(struct pull_order){.archive = spooled >= 0 ? spooled : file}, e);
}

/* The password is a line of standard input: other users of the host can see a command line. */
static int read_secret(char *ret, size_t cap, struct sg_error *e)
{
    if (!fgets(ret, (int)cap, stdin))
        return err_invalid(e, "--user: give the password on standard input");
    ret[strcspn(ret, "\r\n")] = '\0';
    return 0;
}

static int show(const struct pulled *p, void *arg UNUSED, struct sg_error *e UNUSED)
{
    if (p->what == PULLED_PROGRESS)
        fprintf(stderr, "\rlayer %u of %u: %.1f of %.1f MiB ", p->layer, p->of,
                (double)p->layer_bytes / MIB, (double)p->layer_total / MIB);
    return 0;
}

static int add_pulled(const struct world_options *o, struct world_making *m, struct sg_error *e)
{
    char secret[SECRET_MAX] = "";
    struct pull_order order = {.image = o->base.which,
                               .archive = -1,
                               .user = o->user,
                               .secret = secret,
                               .insecure = o->insecure,
                               .tell = isatty(STDERR_FILENO) ? show : NULL};
    int r = o->user ? read_secret(secret, sizeof(secret), e) : 0;

    if (r == 0)
        r = add_image(m, &order, e);
    if (order.tell)
        fprintf(stderr, "\r%*s\r", 60, "");
    explicit_bzero(secret, sizeof(secret));
    return r;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static const struct action actions[] = {
    {"import", " FILE",
     "Makes a template of a root file system, as a tar file (plain, gzip, zstd); - reads standard "
     "input.",
     &world_import_syntax, "no file given: name a tar file, or - for standard input"},
    {"pull", " IMAGE", "Makes a template of an image from a registry, such as debian:12.",
     &world_pull_syntax, "no image given: name one, such as debian:12"},
    {"ls", "", "Lists worlds, and what stands on them.", &world_ls_syntax, NULL},
    {"rm", " WORLD", "Removes a world on which nothing stands, and its template.", &world_rm_syntax,
     "no world given: name one by its id or name; 'sandglass world ls' shows them"},
    {"du", "", "Shows how much of the disk the worlds of each tenant take.", &world_ls_syntax,
     NULL},
    {"gc", "", "Removes what nothing needs.", &world_gc_syntax, NULL},
};

static int run_import(const struct world_options *o, struct sg_error *e)
{
    return make(o, add_file, e);
}

static int run_pull(const struct world_options *o, struct sg_error *e)
{
    return make(o, add_pulled, e);
}

static int run(const void *arg UNUSED, size_t i, const void *options, struct sg_error *e)
{
    static int (*const runs[])(const struct world_options *o, struct sg_error *e) = {
        run_import, run_pull, world_ls, world_rm, world_du, world_gc};

    return runs[i](options, e);
}

/* `world make` is a script beside this program: it calls the verbs of this one, and a server. */
static int become_make(char **argv)
{
    char path[STATE_DIR_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(MAKE));

    path[n < 0 ? 0 : n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        memcpy(slash, MAKE, sizeof(MAKE));
    execv(path, argv);
    ui_error("cannot start '%s': %s (it comes with sandglass: install all of it)", path,
             strerror(errno));
    return CLI_EXIT_SETUP;
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

    if (argc > 1 && strcmp(argv[1], "make") == 0)
        return become_make(argv + 1);
    return actions_main(&verb, argc, argv);
}
