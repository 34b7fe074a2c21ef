#include "front/main/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "front/e2b/ref.h"
#include "front/main/manage.h"
#include "front/main/worker.h"
#include "front/main/world_import.h"
#include "front/main/world_pull.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/command/actions.h"
#include "lib/command/exit_status.h"
#include "lib/command/state_dir.h"
#include "lib/command/ui.h"
#include "lib/text/json.h"

#define DEFAULT_TENANT "default" /* the one that a server makes when it first starts */
#define MIB            (1024.0 * 1024.0)
#define LAYERS         "layers" /* while a world is made: what was pulled */
#define SECRET_MAX     4096
#define MAKE           "/worlds/make"

struct world_options {
    struct action_options base; /* `which`: a file, or "-" for standard input; an image's name */
    const char *name, *tenant;
    bool image;                  /* import: the file is an image */
    const char *user, *insecure; /* pull */
};

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
        r = worlds = open_worlds(o, e);
    if (r >= 0)
        r = world_begin(&m, worlds, e);
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

/* Its folder is the puller's, who could have put anything there. */
static int open_pulled(int dir, const char *digest, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(dir, digest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "open a layer of the image");
    return S_ISREG(st.st_mode) ? steal_fd(&fd) : err_invalid(e, "a layer of the image is no file");
}

/* The layers of an image, which is fetched into a folder of nobody's. */
static int add_image(const struct pull_order *order, struct world_making *m, struct sg_error *e)
{
    AUTO(close_p) int dir = -1;
    struct pulled *p = NULL;
    int r = mkdirat(m->dir, LAYERS, 0700) < 0 ? -errno : 0;

    dir = openat(m->dir, LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r < 0 || dir < 0 || fchown(dir, WORKER_NOBODY, WORKER_NOBODY) < 0)
        return err_errno(e, "make a folder for layers");
    p = xcalloc(1, sizeof(*p));
    r = world_pull(dir, order, p, e);
    for (uint32_t i = 0; r == 0 && i < p->n; i++) {
        AUTO(close_p) int layer = open_pulled(dir, p->layers[i].digest, e);

        r = layer < 0 ? layer : world_add(m, layer, p->layers[i].diff_id + strlen("sha256:"), e);
    }
    for (uint32_t i = 0; r == 0 && i < p->n; i++)
        unlinkat(dir, p->layers[i].digest, 0);
    free(p);
    if (r == 0 && unlinkat(m->dir, LAYERS, AT_REMOVEDIR) < 0)
        r = err_errno(e, "remove the layers of the image");
    return r;
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
    struct pull_order order = {.archive = spooled >= 0 ? spooled : file, .shows = false};
    return add_image(&order, m, e);
}

/* The password is a line of standard input: other users of the host can see a command line. */
static int read_secret(char *ret, size_t cap, struct sg_error *e)
{
    if (!fgets(ret, (int)cap, stdin))
        return err_invalid(e, "--user: give the password on standard input");
    ret[strcspn(ret, "\r\n")] = '\0';
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
                               .shows = isatty(STDERR_FILENO)};
    int r = o->user ? read_secret(secret, sizeof(secret), e) : 0;

    if (r == 0)
        r = add_image(&order, m, e);
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
};

static int run(const void *arg UNUSED, size_t i, const void *options, struct sg_error *e)
{
    return make(options, i == 0 ? add_file : add_pulled, e);
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
