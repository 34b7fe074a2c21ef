#include "image/merge.h"

#include <string.h>
#include <sys/stat.h>

#include "image/path.h"

#define LINKS_MAX 40 /* that are followed in one path, as in Linux */

struct merge {
    struct tree *tree;
    uint16_t layer;
    struct sg_error *e;
};

/* ---- finding the directory of an entry ------------------------------------------------------- */

/* A path on its way: the text that is left, in front of which the targets of links are put. */
struct walk {
    struct inode *dir;
    char *left, *text;
    unsigned links;
    bool make; /* directories that are missing */
};

static void walk_done(struct walk *w)
{
    free(w->text);
}

static int cannot(const struct merge *m, const char *path, const char *why)
{
    return err_invalid(m->e, "the layer's entry '%s' %s", PATH_SHOW(path), why);
}

/* Puts a link's target in front of what is left. */
static int follow(const struct merge *m, struct walk *w, const char *target, const char *path)
{
    size_t len = strlen(target) + 1 + strlen(w->left) + 1;
    char *text;

    if (++w->links > LINKS_MAX || len > 16 * (size_t)IMAGE_PATH_MAX)
        return cannot(m, path, "leads through too many symbolic links");
    text = xcalloc(1, len);
    snprintf(text, len, "%s/%s", target, w->left);
    free(w->text);
    w->left = w->text = text;
    if (target[0] == '/')
        w->dir = m->tree->root;
    return 0;
}

/* Makes a directory on the way, in place of what a lower layer has there. */
static int make_dir(const struct merge *m, struct walk *w, const char *name, size_t len,
                    const char *path)
{
    struct inode *dir = tree_new_dir(w->dir);

    if (dir->depth > IMAGE_DEPTH_MAX) {
        free(dir);
        return cannot(m, path, "is in too many directories");
    }
    dir->layer = m->layer;
    int r = tree_put(m->tree, w->dir, name, len, dir, m->e);
    if (r == 0)
        w->dir = dir;
    return r;
}

/* Goes one directory on. 1: there is none, and none is to be made. */
static int step(const struct merge *m, struct walk *w, const char *name, size_t len,
                const char *path)
{
    struct entry *at;

    if (len == 0 || (len == 1 && name[0] == '.'))
        return 0;
    if (len == 2 && memcmp(name, "..", 2) == 0) { /* of a link's target */
        w->dir = w->dir->parent;
        return 0;
    }
    if (len > IMAGE_NAME_MAX)
        return cannot(m, path, "leads through a link with a name that is too long");
    at = tree_find(w->dir, name, len);
    if (at && S_ISDIR(at->inode->mode)) {
        w->dir = at->inode;
        return 0;
    }
    if (at && at->inode->layer == m->layer) {
        if (!S_ISLNK(at->inode->mode))
            return cannot(m, path, "is below a file of the same layer");
        return follow(m, w, at->inode->target, path);
    }
    return w->make ? make_dir(m, w, name, len, path) : 1;
}

/* Finds the directory of a path that is not the root's, and the last part of the path. 1: it is not there. */
static int find_dir(const struct merge *m, const char *path, bool make, struct inode **ret,
                    const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    AUTO(walk_done) struct walk w = {.dir = m->tree->root, .make = make};

    *ret_name = slash ? slash + 1 : path;
    w.text = w.left = slash ? xstrdup(path) : NULL;
    if (slash)
        w.text[slash - path] = '\0';
    while (w.left && *w.left) {
        char *name = w.left;
        size_t len = strcspn(name, "/");

        w.left += len + (name[len] == '/');
        int r = step(m, &w, name, len, path);
        if (r != 0)
            return r;
    }
    *ret = w.dir;
    return 0;
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* What a mark is about, in the layers below: by name alone. NULL: nothing has this name. */
static struct entry *find_below(const struct tree *t, const char *path, struct inode **ret_dir)
{
    struct inode *dir = t->root;

    for (;;) {
        size_t len = strcspn(path, "/");
        struct entry *at = tree_find(dir, path, len);

        *ret_dir = dir;
        if (!at || path[len] == '\0')
            return at;
        if (!S_ISDIR(at->inode->mode))
            return NULL;
        dir = at->inode;
        path += len + 1;
    }
}

static void apply_mark(struct merge *m, const struct record_entry *entry)
{
    struct inode *dir = m->tree->root;
    struct entry *at = entry->path[0] ? find_below(m->tree, entry->path, &dir) : NULL;

    if (entry->r.kind == RECORD_WHITEOUT && at)
        tree_drop(m->tree, dir, at);
    if (entry->r.kind == RECORD_OPAQUE && (at || entry->path[0] == '\0')) {
        struct inode *opaque = at ? at->inode : m->tree->root;

        MAP_EACH(struct entry, below, &opaque->entries, by_name)
            tree_drop(m->tree, opaque, below);
    }
}

static int apply_marks(struct merge *m, struct records *l)
{
    struct record_entry entry;
    int r;

    while ((r = records_next(l, &entry, m->e)) > 0)
        if (entry.r.kind == RECORD_WHITEOUT || entry.r.kind == RECORD_OPAQUE)
            apply_mark(m, &entry);
    return r;
}

/* ---- entries --------------------------------------------------------------------------------- */

static const uint16_t types[RECORD_MAX_] = {[RECORD_FILE] = S_IFREG,
                                            [RECORD_DIR] = S_IFDIR,
                                            [RECORD_SYMLINK] = S_IFLNK,
                                            [RECORD_FIFO] = S_IFIFO};

static void set_looks(struct inode *i, const struct record_entry *entry)
{
    i->mode = (uint16_t)(types[entry->r.kind] | entry->r.mode);
    i->uid = entry->r.uid;
    i->gid = entry->r.gid;
    i->mtime = entry->r.mtime;
    i->mtime_ns = entry->r.mtime_ns;
    free(i->attrs);
    i->attrs_len = entry->r.attrs_len;
    i->attrs = i->attrs_len ? xmemdup(entry->attrs, i->attrs_len) : NULL;
}

/* A directory may be there already, with what is in it. */
static int put_dir(struct merge *m, struct inode *dir, const char *name,
                   const struct record_entry *entry)
{
    struct entry *old = tree_find(dir, name, strlen(name));
    struct inode *i = old && S_ISDIR(old->inode->mode) ? old->inode : NULL;
    struct walk here = {.dir = dir};
    int r = 0;

    if (!i) {
        r = make_dir(m, &here, name, strlen(name), entry->path);
        i = here.dir;
    }
    if (r == 0) {
        set_looks(i, entry);
        i->layer = m->layer;
    }
    return r;
}

/* A directory that hides what is below is there, whether or not the layer has an entry for it. */
static int keep_dir(struct merge *m, struct inode *dir, const char *name,
                    const struct record_entry *entry)
{
    struct entry *old = tree_find(dir, name, strlen(name));
    struct walk here = {.dir = dir};

    if (old && (S_ISDIR(old->inode->mode) || old->inode->layer == m->layer))
        return 0;
    return make_dir(m, &here, name, strlen(name), entry->path);
}

static int put_link(struct merge *m, struct inode *dir, const char *name,
                    const struct record_entry *entry)
{
    struct inode *in;
    const char *last;
    int r = find_dir(m, entry->target, false, &in, &last);
    struct entry *at = r == 0 ? tree_find(in, last, strlen(last)) : NULL;

    if (r < 0)
        return r;
    if (!at || S_ISDIR(at->inode->mode))
        return err_invalid(m->e, "the hard link '%s' is to '%s', which is %s",
                           PATH_SHOW(entry->path), PATH_SHOW(entry->target),
                           at ? "a directory" : "not there");
    /* To itself, it changes nothing. */
    return in == dir && strcmp(last, name) == 0
               ? 0
               : tree_put(m->tree, dir, name, strlen(name), at->inode, m->e);
}

static int put_other(struct merge *m, struct inode *dir, const char *name,
                     const struct record_entry *entry)
{
    struct inode *i =
        NEW(struct inode, .layer = m->layer, .size = entry->r.size, .block = entry->r.block);

    set_looks(i, entry);
    if (entry->r.kind == RECORD_SYMLINK) {
        i->target = xstrdup(entry->target);
        i->size = entry->r.target_len;
    }
    return tree_put(m->tree, dir, name, strlen(name), i, m->e);
}

static int apply_entry(struct merge *m, const struct record_entry *entry)
{
    struct inode *dir;
    const char *name;

    if (entry->path[0] == '\0') {
        if (entry->r.kind == RECORD_DIR)
            set_looks(m->tree->root, entry);
        return 0;
    }
    int r = find_dir(m, entry->path, true, &dir, &name);
    if (r < 0 || entry->r.kind == RECORD_WHITEOUT)
        return r;
    if (entry->r.kind == RECORD_OPAQUE)
        return keep_dir(m, dir, name, entry);
    if (entry->r.kind == RECORD_DIR)
        return put_dir(m, dir, name, entry);
    if (entry->r.kind == RECORD_HARDLINK)
        return put_link(m, dir, name, entry);
    return put_other(m, dir, name, entry);
}

int merge_layer(struct tree *t, struct records *l, uint16_t number, struct sg_error *e)
{
    struct merge m = {.tree = t, .layer = number, .e = e};
    struct record_entry entry;
    int r = apply_marks(&m, l);

    if (r < 0)
        return r;
    records_rewind(l);
    while ((r = records_next(l, &entry, e)) > 0) {
        r = apply_entry(&m, &entry);
        if (r < 0)
            return r;
    }
    return r;
}
