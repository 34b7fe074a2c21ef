#include "warden/layers/layer_stack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "lib/base/sys.h"
#include "warden/layers/attach.h"
#include "warden/layers/mounts.h"

#define SCRATCH_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
/* The last user of a tmpfs frees its files, which takes a second for a gigabyte or for 100,000
 * files. So only a tmpfs with at most this much on it is freed at once: */
#define FREE_BYTES  (1u << 20)
#define FREE_INODES 256

static int set_size(int fs, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return sys_fsconfig_string(fs, key, text);
}

int scratch_make(uint64_t bytes, uint64_t inodes, struct scratch **ret, struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("tmpfs");
    struct scratch *s;
    int mount, r;

    if (fs < 0 || set_size(fs, "size", bytes) < 0 || set_size(fs, "nr_inodes", inodes) < 0 ||
        sys_fsconfig_string(fs, "mode", "0755") < 0 || sys_fsconfig_create(fs) < 0)
        return mounts_mount_error(fs, e, "make the scratch file system");
    mount = sys_fsmount(fs, SCRATCH_FLAGS);
    if (mount < 0)
        return err_errno(e, "mount the scratch file system");
    r = attach_keep(mount, e);
    if (r < 0) {
        close(mount);
        return r;
    }
    s = NEW(struct scratch, .mount = mount, .users = 1, .bytes = bytes, .inodes = inodes);
    *ret = s;
    return 0;
}

static int make_at(struct scratch_place *p, uint64_t bytes, uint32_t first_id, struct scratch **ret,
                   struct sg_error *e)
{
    uint32_t number = 0;
    int mount = -1, r = scratch_place_enter(p, bytes, first_id, &number, &mount, e);

    if (r == 0)
        *ret = NEW(struct scratch, .mount = mount, .users = 1, .bytes = bytes, .place = p,
                   .number = number, .first_id = first_id, .shares = true);
    return r;
}

int scratch_make_in(struct scratch_share *h, uint64_t bytes, uint32_t first_id,
                    struct scratch **ret, struct sg_error *e)
{
    struct scratch_place *p = NULL;
    int r = scratch_place_make(h, &p, e);

    if (r < 0)
        return r;
    r = make_at(p, bytes, first_id, ret, e);
    scratch_place_release(p);
    return r;
}

int scratch_make_below(struct scratch *has, const struct layer *top, struct scratch **ret,
                       struct sg_error *e)
{
    int r;

    if (!top || top->scratch->place == has->place) {
        *ret = scratch_use(has);
        return 0;
    }
    r = make_at(top->scratch->place, has->bytes, has->first_id, ret, e);
    if (r == 0) {
        (*ret)->discard = has->discard;
        (*ret)->discard_arg = has->discard_arg;
    }
    return r;
}

struct scratch *scratch_use(struct scratch *s)
{
    s->users++;
    return s;
}

static bool is_large(const struct scratch *s)
{
    struct statfs now;

    return fstatfs(s->mount, &now) == 0 &&
           ((uint64_t)(now.f_blocks - now.f_bfree) * (uint64_t)now.f_bsize > FREE_BYTES ||
            now.f_files - now.f_ffree > FREE_INODES);
}

void scratch_release(struct scratch *s)
{
    if (!s || --s->users > 0)
        return;
    if (s->place) {
        scratch_place_rest(s->place, s->bytes);
        scratch_place_leave(s->place, s->number, s->first_id);
    } else if (s->discard && is_large(s)) {
        /* No clone can be made of it any more for a worker. */
        s->discard(s->discard_arg, s->mount, s->first_id, attach_active() ? NULL : "u1");
    }
    if (!s->place)
        attach_let_go(s->mount);
    close_p(&s->mount);
    free(s);
}

void scratch_leave(struct scratch *s)
{
    if (s && s->place) {
        scratch_place_rest(s->place, s->bytes);
        s->bytes = 0;
    }
    scratch_release(s);
}

void scratch_work_name(const char upper[LAYER_NAME], char ret[LAYER_NAME])
{
    snprintf(ret, LAYER_NAME, "w%.*s", LAYER_NAME - 2, upper + 1);
}

/* Frozen layers take up room, but the limit is on what the sandbox can write from now on. So the
 * scratch grows by what is on it. The first upper layer needs none of this. */
static int grow(const struct scratch *s, struct sg_error *e)
{
    AUTO(close_p) int fs = -1;
    struct statfs now;

    if (s->n_uppers == 0 || s->bytes == 0)
        return 0;
    if (s->place)
        return scratch_place_grow(s->place, e);
    if (fstatfs(s->mount, &now) < 0)
        return err_errno(e, "stat the scratch file system");
    fs = sys_fspick(s->mount);
    if (fs < 0 ||
        set_size(fs, "size",
                 s->bytes + (uint64_t)(now.f_blocks - now.f_bfree) * (uint64_t)now.f_bsize) < 0 ||
        set_size(fs, "nr_inodes", s->inodes + (uint64_t)(now.f_files - now.f_ffree)) < 0 ||
        sys_fsconfig_reconfigure(fs) < 0)
        return mounts_mount_error(fs, e, "enlarge the scratch file system");
    return 0;
}

/* like: with the ids that the directory gets. */
static int make_dir(int at, const char *name, const struct stat *like, struct sg_error *e)
{
    if (mkdirat(at, name, 0755) < 0 || fchmodat(at, name, like->st_mode & 07777, 0) < 0 ||
        fchownat(at, name, like->st_uid, like->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "fill the scratch file system");
    return 0;
}

int scratch_upper(struct scratch *s, const struct layer *like, char ret[LAYER_NAME],
                  struct sg_error *e)
{
    char upper[LAYER_NAME], work[LAYER_NAME];
    struct stat st = {.st_mode = 0755}, root = st;
    uint32_t from = like ? like->scratch->first_id : 0;
    int r = grow(s, e);

    if (r < 0)
        return r;
    if (like && fstatat(like->scratch->mount, like->dir, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "stat a frozen layer");
    st.st_uid += s->first_id - from;
    st.st_gid += s->first_id - from;
    root.st_uid = root.st_gid = s->first_id;
    snprintf(upper, sizeof(upper), "u%u", ++s->n_uppers);
    scratch_work_name(upper, work);
    r = make_dir(s->mount, upper, &st, e);
    if (r == 0)
        r = make_dir(s->mount, work, &root, e);
    if (r == 0)
        memcpy(ret, upper, LAYER_NAME);
    return r;
}

void scratch_discard(struct scratch *s, const char *upper)
{
    char work[LAYER_NAME];

    if (!s->discard || s->users <= 1)
        return;
    scratch_work_name(upper, work);
    s->discard(s->discard_arg, s->mount, s->first_id, upper);
    s->discard(s->discard_arg, s->mount, s->first_id, work);
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

int scratch_is_empty(const struct scratch *s, const char *upper, struct sg_error *e)
{
    int fd = openat(s->mount, upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        int r = err_errno(e, "list a sandbox's upper layer");
        close_p(&fd);
        return r;
    }
    while ((entry = readdir(d)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return 0;
    return 1;
}

/* ---- layers and stacks ----------------------------------------------------------------------- */

struct layer *layer_new(struct scratch *s, const char *dir)
{
    struct layer *t = NEW(struct layer, .scratch = scratch_use(s), .users = 1);

    snprintf(t->dir, sizeof(t->dir), "%s", dir);
    return t;
}

struct layer *layer_use(struct layer *t)
{
    t->users++;
    return t;
}

void layer_release(struct layer *t)
{
    if (--t->users > 0)
        return;
    if (!t->written)
        scratch_discard(t->scratch, t->dir);
    scratch_release(t->scratch);
    free(t);
}

struct stack *stack_copy(const struct stack *s)
{
    struct stack *copy = xcalloc(1, sizeof(*copy));

    if (s)
        *copy = *s;
    for (size_t i = 0; i < copy->n; i++)
        layer_use(copy->v[i]);
    return copy;
}

int stack_push(const struct stack *s, struct layer *top, struct stack **ret, struct sg_error *e)
{
    struct stack *copy;

    if (stack_depth(s) == STACK_MAX)
        return err_set(
            e, SG_ERR_LIMIT, -E2BIG,
            "the sandbox's files have %d layers, the most there can be: try again when the server "
            "has merged them; after that many forks in a row, branch with the files alone",
            STACK_MAX);
    copy = stack_copy(s);
    copy->v[copy->n++] = layer_use(top);
    *ret = copy;
    return 0;
}

void stack_free(struct stack *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        layer_release(s->v[i]);
    free(s);
}

size_t stack_depth(const struct stack *s)
{
    return s ? s->n : 0;
}

struct layer *stack_top(const struct stack *s)
{
    return stack_depth(s) ? s->v[s->n - 1] : NULL;
}
