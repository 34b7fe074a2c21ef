#include "front/main/world_manage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "front/main/manage.h"
#include "front/main/world_import.h"
#include "front/store/worlds.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/command/state_dir.h"
#include "lib/command/ui.h"
#include "lib/text/json.h"
#include "lib/text/parse.h"

#define WORLDS_MAX 65536
#define OPEN_DIR   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define YOUNG_S    600 /* a world that is there, and about to be named */
#define JSON_MAX   (64u << 20)

static const struct cli_option ls_options[] = {ACTION_STATE, ACTION_JSON, ACTION_HELP};
static const struct cli_option rm_options[] = {ACTION_STATE, ACTION_HELP};
static const struct cli_option gc_options[] = {
    {"all", 0, NULL, "images that builds have fetched too, if nothing stands on them",
     CLI_FLAG(world_options, all)},
    ACTION_STATE,
    ACTION_HELP,
};

const struct cli_syntax world_ls_syntax = {ls_options, ARRAY_SIZE(ls_options), NULL, 0};
const struct cli_syntax world_rm_syntax = {rm_options, ARRAY_SIZE(rm_options), action_apply_which,
                                           0};
const struct cli_syntax world_gc_syntax = {gc_options, ARRAY_SIZE(gc_options), NULL, 0};

/* ---- what is on disk ------------------------------------------------------------------------- */

struct world {
    char id[ID_LEN + 1];
    unsigned layers,
        standing;        /* standing: layers that snapshots, steps and sandboxes have over it */
    uint64_t bytes, own; /* own: what goes with it */
    bool old;            /* not about to be named */
    bool named;          /* the database has a row of it */
    struct store_world row;
};

struct disk {
    const struct world_options *o;
    int worlds;
    struct world *v;
    size_t n;
};

static struct world *find(const struct disk *d, const char *id)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->v[i].id, id) == 0)
            return &d->v[i];
    return NULL;
}

static void measure(struct world *w, int worlds)
{
    int fd = openat(worlds, w->id, OPEN_DIR);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    struct stat st;

    w->old = fd >= 0 && fstat(fd, &st) == 0 && st.st_ctime + YOUNG_S < clock_wall_ms() / 1000;
    while (dir && (entry = readdir(dir)) != NULL) {
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        w->layers += entry->d_name[0] != 'm';
        w->bytes += (uint64_t)st.st_blocks * 512;
        w->own += st.st_nlink == 1 ? (uint64_t)st.st_blocks * 512 : 0;
    }
    if (dir)
        closedir(dir);
}

static void look_at_worlds(struct disk *d)
{
    int fd = openat(d->worlds, ".", OPEN_DIR);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    d->v = xcalloc(WORLDS_MAX, sizeof(*d->v));
    while (dir && d->n < WORLDS_MAX && (entry = readdir(dir)) != NULL) {
        if (!id_valid(entry->d_name))
            continue;
        struct world *w = &d->v[d->n++];
        memcpy(w->id, entry->d_name, sizeof(w->id));
        measure(w, d->worlds);
    }
    if (dir)
        closedir(dir);
}

/* A family of snapshots that stand on a world has its id behind a dot. */
static void look_at_layers(struct disk *d)
{
    AUTO(close_p) int layers = openat(d->worlds, "../layers", OPEN_DIR);
    int fd = layers < 0 ? -1 : openat(layers, ".", OPEN_DIR);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL) {
        const char *dot = strchr(entry->d_name, '.');
        struct world *w = dot && dot[1] ? find(d, dot + 1) : NULL;
        int at = w ? openat(layers, entry->d_name, OPEN_DIR) : -1;
        DIR *family = at < 0 ? NULL : fdopendir(at);
        const struct dirent *one;

        while (family && (one = readdir(family)) != NULL)
            w->standing += one->d_name[0] != '.';
        if (family)
            closedir(family);
    }
    if (dir)
        closedir(dir);
}

/* ---- what the database says ------------------------------------------------------------------ */

static void take_row(const struct store_world *row, void *arg)
{
    struct world *w = find(arg, row->id);

    if (!w)
        return;
    w->named = true;
    w->row = *row;
}

typedef int (*with_store)(struct disk *d, struct store *s, int out, struct sg_error *e);

/* In a child, which becomes the owner of the database: it knows all that was looked at. What it
 * writes to `out` is in *ret. */
static int in_child(struct disk *d, with_store fn, char *ret, size_t cap, struct sg_error *e)
{
    char dir[ACTION_DIR_MAX];
    struct store *s = NULL;
    int ends[2], status = 0;
    size_t len = 0;
    ssize_t n = 1;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        return err_errno(e, "start a child");
    if (pid == 0) {
        struct sg_error own = {0};
        int r = manage_enter(&d->o->base, dir, &own);

        if (r == 0)
            r = store_open(".", &s, &own);
        if (r == 0)
            r = store_worlds_each(s, take_row, d, &own);
        if (r == 0)
            r = fn(d, s, ends[1], &own);
        if (r < 0)
            ui_error("%s", own.message);
        fflush(stdout);
        _exit(r < 0);
    }
    close(ends[1]);
    while (n > 0 && len + 1 < cap && (n = read(ends[0], ret + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    close(ends[0]);
    ret[len] = '\0';
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        _exit(1); /* the child has said why */
    return 0;
}

static int run(const struct world_options *o, struct disk *d, with_store fn, char *ret, size_t cap,
               struct sg_error *e)
{
    int r = d->worlds = worlds_open(o, e);

    d->o = o;
    if (r < 0)
        return r;
    look_at_worlds(d);
    look_at_layers(d);
    return in_child(d, fn, ret, cap, e);
}

static void disk_done(struct disk *d)
{
    close_p(&d->worlds);
    free(d->v);
}

/* ---- ls -------------------------------------------------------------------------------------- */

static void json_world(struct json *j, const struct world *w)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "id"), w->id);
    jw_string(jw_key(j, "name"), w->named ? w->row.name : NULL);
    jw_string(jw_key(j, "tenant"), w->named ? w->row.tenant : NULL);
    jw_bool(jw_key(j, "fetched"), w->named && w->row.fetched);
    jw_string(jw_key(j, "templates"), w->named ? w->row.templates : "");
    jw_u64(jw_key(j, "standing"), w->standing);
    jw_u64(jw_key(j, "layers"), w->layers);
    jw_u64(jw_key(j, "bytes"), w->bytes);
    jw_u64(jw_key(j, "ownBytes"), w->own);
    jw_i64(jw_key(j, "madeMs"), w->named ? w->row.made_ms : 0);
    jw_object_end(j);
}

static void print_size(uint64_t bytes)
{
    char text[32];

    printf("%10s  ", format_size(bytes, text, sizeof(text)));
}

static int list(struct disk *d, struct store *s UNUSED, int out UNUSED, struct sg_error *e UNUSED)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(JSON_MAX);
    struct json j = {.out = &text};
    int width = 4;

    jw_array_begin(&j);
    for (size_t i = 0; i < d->n; i++) {
        int len = (int)strlen(d->v[i].row.name);

        json_world(&j, &d->v[i]);
        width = len > width ? len : width;
    }
    jw_array_end(&j);
    if (d->o->base.json) {
        puts(text.buf);
        return 0;
    }
    width = width < 60 ? width : 60;
    printf("%-20s  %-*s  %-16s  %6s  %10s  %10s  %8s  %s\n", "ID", width, "NAME", "TENANT",
           "LAYERS", "SIZE", "ITS OWN", "STANDING", "TEMPLATES");
    for (size_t i = 0; i < d->n; i++) {
        const struct world *w = &d->v[i];

        manage_print_cell(w->id, 20);
        manage_print_cell(w->row.name, width);
        manage_print_cell(w->row.tenant, 16);
        printf("%6u  ", w->layers);
        print_size(w->bytes);
        print_size(w->own);
        printf("%8u  ", w->standing);
        manage_print_cell(w->row.templates, 0);
        puts("");
    }
    return 0;
}

int world_ls(const struct world_options *o, struct sg_error *e)
{
    struct disk d = {.worlds = -1};
    char none[2];
    int r = run(o, &d, list, none, sizeof(none), e);

    disk_done(&d);
    return r;
}

/* ---- du -------------------------------------------------------------------------------------- */

struct sum {
    char tenant[STORE_NAME_MAX + 1];
    unsigned worlds;
    uint64_t bytes, own;
};

static size_t add_up(const struct disk *d, struct sum *v)
{
    size_t n = 0, at;

    for (size_t i = 0; i < d->n; i++) {
        for (at = 0; at < n && strcmp(v[at].tenant, d->v[i].row.tenant) != 0; at++)
            ;
        if (at == n)
            memcpy(v[n++].tenant, d->v[i].row.tenant, sizeof(v->tenant));
        v[at].worlds++;
        v[at].bytes += d->v[i].bytes;
        v[at].own += d->v[i].own;
    }
    return n;
}

static void json_sum(struct json *j, const struct sum *s)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "tenant"), s->tenant[0] ? s->tenant : NULL);
    jw_u64(jw_key(j, "worlds"), s->worlds);
    jw_u64(jw_key(j, "bytes"), s->bytes);
    jw_u64(jw_key(j, "ownBytes"), s->own);
    jw_object_end(j);
}

static int show_sums(struct disk *d, struct store *s UNUSED, int out UNUSED,
                     struct sg_error *e UNUSED)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(JSON_MAX);
    AUTO(free_p) struct sum *v = xcalloc(d->n + 1, sizeof(*v));
    struct json j = {.out = &text};
    size_t n = add_up(d, v);

    jw_array_begin(&j);
    for (size_t i = 0; i < n; i++)
        json_sum(&j, &v[i]);
    jw_array_end(&j);
    if (d->o->base.json) {
        puts(text.buf);
        return 0;
    }
    printf("%-16s  %6s  %10s  %10s\n", "TENANT", "WORLDS", "SIZE", "ITS OWN");
    for (size_t i = 0; i < n; i++) {
        manage_print_cell(v[i].tenant, 16);
        printf("%6u  ", v[i].worlds);
        print_size(v[i].bytes);
        print_size(v[i].own);
        puts("");
    }
    return 0;
}

int world_du(const struct world_options *o, struct sg_error *e)
{
    struct disk d = {.worlds = -1};
    char none[2];
    int r = run(o, &d, show_sums, none, sizeof(none), e);

    disk_done(&d);
    return r;
}

/* ---- rm, gc ---------------------------------------------------------------------------------- */

static int check_unused(const struct world *w, struct sg_error *e)
{
    if (w->row.templates[0])
        return err_set(e, SG_ERR_GONE, -EBUSY, "'%.80s' is in use by templates: %.120s",
                       w->row.name, w->row.templates);
    if (w->standing > 0)
        return err_set(e, SG_ERR_GONE, -EBUSY,
                       "%u layers of templates, snapshots and paused sandboxes stand on '%.80s': "
                       "delete these first",
                       w->standing, w->named ? w->row.name : w->id);
    return 0;
}

static int drop(const struct world *w, struct store *s, int out, struct sg_error *e)
{
    int r = w->named ? store_world_drop(s, w->id, e) : 0;

    if (r == 0 && write(out, w->id, ID_LEN) != ID_LEN)
        r = err_errno(e, "say which world");
    return r;
}

static struct world *find_which(const struct disk *d, const char *which, struct sg_error *e)
{
    struct world *found = find(d, which);
    bool by_id = found;

    for (size_t i = 0; !by_id && i < d->n; i++) {
        const char *name = d->v[i].row.name;
        size_t len = strlen(which);

        if (strcmp(name, which) != 0 &&
            (strncmp(name, which, len) != 0 || strcmp(name + len, ":default") != 0))
            continue;
        if (found) {
            err_invalid(e,
                        "several worlds are '%.80s': name one by its id, of 'sandglass world ls'",
                        which);
            return NULL;
        }
        found = &d->v[i];
    }
    if (!found)
        err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no world '%.80s': see 'sandglass world ls'",
                which);
    return found;
}

static int drop_one(struct disk *d, struct store *s, int out, struct sg_error *e)
{
    const struct world *w = find_which(d, d->o->base.which, e);
    int r = w ? check_unused(w, e) : e->code;

    return r < 0 ? r : drop(w, s, out, e);
}

/* Those that no row names, and with --all images that wait for another build. */
static int drop_unneeded(struct disk *d, struct store *s, int out, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < d->n; i++) {
        const struct world *w = &d->v[i];
        bool needed = w->named ? !w->row.fetched || !d->o->all : !w->old;

        if (!needed && check_unused(w, e) == 0)
            r = drop(w, s, out, e);
        if (r == -EBUSY) /* by now */
            r = 0;
    }
    return r;
}

/* The warden knows which sandboxes run, so it removes what is dropped; without one, we do. */
static bool server_runs(int worlds)
{
    AUTO(close_p) int lock = openat(worlds, "../lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0;
}

static int remove_dropped(const struct world_options *o, with_store fn, struct sg_error *e)
{
    struct disk d = {.worlds = -1};
    char *ids = xcalloc(WORLDS_MAX, ID_LEN + 1);
    int r = run(o, &d, fn, ids, (size_t)WORLDS_MAX * (ID_LEN + 1), e);
    bool runs = r == 0 && server_runs(d.worlds);
    char id[ID_LEN + 1] = "";

    for (const char *p = ids; r == 0 && strlen(p) >= ID_LEN; p += ID_LEN) {
        memcpy(id, p, ID_LEN);
        const struct world *w = id_valid(id) ? find(&d, id) : NULL;
        if (w && (!runs || !w->named))
            world_discard(d.worlds, id);
        puts(id);
    }
    if (r == 0 && fn == drop_unneeded)
        worlds_sweep(d.worlds);
    if (runs && id[0])
        ui_note("the server removes the files when no sandbox uses them any more");
    free(ids);
    disk_done(&d);
    return r;
}

int world_rm(const struct world_options *o, struct sg_error *e)
{
    return remove_dropped(o, drop_one, e);
}

int world_gc(const struct world_options *o, struct sg_error *e)
{
    return remove_dropped(o, drop_unneeded, e);
}
