#include "image/tree.h"

#include <string.h>
#include <sys/stat.h>

#include "image/path.h"

static uint64_t hash_of(const char *name, size_t len)
{
    return hash_bytes(0, name, len);
}

struct inode *tree_new_dir(struct inode *parent)
{
    return NEW(struct inode, .mode = S_IFDIR | 0755, .parent = parent,
               .depth = parent ? parent->depth + 1 : 0);
}

void tree_init(struct tree *t, uint64_t entries_max)
{
    *t = (struct tree){.root = tree_new_dir(NULL), .entries_max = entries_max};
    t->root->parent = t->root;
    t->root->links = 1;
}

static void inode_free(struct inode *i)
{
    free(i->attrs);
    free(i->target);
    free(i);
}

/* An inode that has lost an entry. */
static void release(struct inode *i)
{
    if (--i->links == 0)
        inode_free(i);
}

static void take_out(struct tree *t, struct inode *dir, struct entry *entry)
{
    map_remove(&dir->entries, &entry->by_name);
    t->entries--;
    release(entry->inode);
    free(entry);
}

/* Empties a directory from its leaves on, going up and down instead of calling itself: how deep it is, a stranger
 * has chosen. */
static void clear(struct tree *t, struct inode *top)
{
    struct inode *dir = top;

    for (;;) {
        struct entry *first = MAP_FIRST(struct entry, &dir->entries, by_name);

        if (first && S_ISDIR(first->inode->mode) && first->inode->entries.n > 0) {
            dir = first->inode;
        } else if (first) {
            take_out(t, dir, first);
        } else if (dir == top) {
            return;
        } else {
            dir = dir->parent;
        }
    }
}

void tree_done(struct tree *t)
{
    if (!t->root)
        return;
    clear(t, t->root);
    inode_free(t->root);
}

void tree_drop(struct tree *t, struct inode *dir, struct entry *entry)
{
    if (S_ISDIR(entry->inode->mode))
        clear(t, entry->inode);
    take_out(t, dir, entry);
}

struct entry *tree_find(const struct inode *dir, const char *name, size_t len)
{
    return MAP_FIND(struct entry, at, &dir->entries, hash_of(name, len), by_name,
                    at->len == len && memcmp(at->name, name, len) == 0);
}

int tree_put(struct tree *t, struct inode *dir, const char *name, size_t len, struct inode *inode,
             struct sg_error *e)
{
    struct entry *entry, *old = tree_find(dir, name, len);

    inode->links++; /* before the old one goes, which may be the same inode's */
    if (old)
        tree_drop(t, dir, old);
    if (t->entries >= t->entries_max) {
        release(inode);
        return err_set(e, SG_ERR_LIMIT, -EFBIG, "the image has more than %llu files",
                       (unsigned long long)t->entries_max);
    }
    entry = xcalloc(1, sizeof(*entry) + len + 1);
    entry->inode = inode;
    entry->len = (uint8_t)len;
    memcpy(entry->name, name, len);
    map_add(&dir->entries, &entry->by_name, hash_of(name, len));
    t->entries++;
    return 0;
}
