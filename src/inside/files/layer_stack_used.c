#include "inside/files/layer_stack_used.h"

#include <fcntl.h>
#include <string.h>

#include "inside/files/layer_file.h"
#include "inside/files/layer_stack_origin.h"

#define DEPTH_MAX 100 /* each level takes a descriptor */

void inodes_done(struct inode_set *s)
{
    free(s->v);
    *s = INODES_NONE;
}

int inodes_add(struct inode_set *s, ino_t number)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        ino_t *v = reallocarray(s->v, room, sizeof(*v));
        if (!v)
            return -ENOMEM;
        s->v = v;
        s->room = room;
    }
    s->v[s->n++] = number;
    return 0;
}

static int compare(const void *a, const void *b)
{
    ino_t x = *(const ino_t *)a, y = *(const ino_t *)b;

    return (x > y) - (x < y);
}

void inodes_sort(struct inode_set *s)
{
    if (s->n > 1)
        qsort(s->v, s->n, sizeof(*s->v), compare);
}

bool inodes_has(const struct inode_set *s, ino_t number)
{
    return s->n > 0 && bsearch(&number, s->v, s->n, sizeof(*s->v), compare) != NULL;
}

/* ---- walking an upper layer ------------------------------------------------------------------ */

struct look {
    unsigned char uuid[ORIGIN_UUID];
    struct inode_set *set;
};

static int look_at_file(const struct look *l, int dir, const char *name)
{
    AUTO(close_p) int fd = layer_open_file(dir, name);
    struct origin o;

    if (fd < 0 || origin_get(fd, &o) < 0 || !origin_is_on(&o, l->uuid))
        return 0;
    return inodes_add(l->set, origin_inode(&o));
}

static int look_into(const struct look *l, int dir, unsigned depth)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(dir);
    const char *name;
    int r = 0;

    while (r == 0 && layer_next(d, &name) > 0) {
        AUTO(close_p) int in = -1;
        struct stat st;
        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(st.st_mode))
            r = look_at_file(l, dir, name);
        else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
                 (in = openat(dir, name, LAYER_DIR_FLAGS)) >= 0)
            r = look_into(l, in, depth + 1);
    }
    return r;
}

int layer_stack_used(int scratch, int upper, struct inode_set *s, struct sg_error *e)
{
    AUTO(close_p) int here = openat(scratch, ".", LAYER_DIR_FLAGS);
    AUTO(close_p) int top = openat(upper, ".", LAYER_DIR_FLAGS);
    struct look l = {.set = s};
    int r;

    if (here < 0 || top < 0)
        return err_errno(e, "open an upper layer");
    r = origin_file_system(here, l.uuid);
    if (r == -ENOTTY)
        return 0; /* the kernel is too old for origins */
    if (r == 0)
        r = look_into(&l, top, 0);
    return r < 0 ? err_code(e, r, "read an upper layer") : 0;
}
