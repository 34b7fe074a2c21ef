#include "inside/agent/meta.h"

#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#define PREFIX_LEN (sizeof(FILE_XATTR_PREFIX) - 1)
#define NAME_SIZE  (PREFIX_LEN + FILE_META_KEY_MAX + 1)

int meta_read(struct wire_reader *r, struct meta *ret, struct sg_error *e)
{
    size_t total = 0;

    ret->n = wire_get_u32(r);
    if (!r->bad && ret->n > FILE_META_KEYS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "more than %d keys of metadata",
                       FILE_META_KEYS_MAX);
    for (uint32_t i = 0; i < ret->n && !r->bad; i++) {
        ret->v[i].key = wire_get_str(r, FILE_META_KEY_MAX);
        ret->v[i].value = wire_get_str(r, FILE_META_MAX);
        total += strlen(ret->v[i].key) + strlen(ret->v[i].value);
        if (!r->bad && ret->v[i].key[0] == '\0')
            return err_set(e, SG_ERR_INVALID, -EINVAL, "a key of metadata is empty");
    }
    if (r->bad)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "metadata is malformed, or a key is longer than %d bytes",
                       FILE_META_KEY_MAX);
    if (total > FILE_META_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "metadata of more than %d bytes", FILE_META_MAX);
    return 0;
}

/* Attributes are reached through /proc's link to the open file, because the calls that take a
 * descriptor refuse O_PATH. */
struct fd_path {
    char text[32];
};

static struct fd_path path_of(int fd)
{
    struct fd_path p;

    snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", fd);
    return p;
}

static int set_one(const char *path, const char *name, const void *value, size_t len)
{
    if (setxattr(path, name, value, len, 0) == 0)
        return 0;
    return errno == ENOTSUP ? -EOPNOTSUPP : -errno;
}

int meta_set(int fd, const struct meta *m)
{
    struct fd_path path = path_of(fd);
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < m->n; i++) {
        char name[NAME_SIZE];

        snprintf(name, sizeof(name), FILE_XATTR_PREFIX "%s", m->v[i].key);
        r = set_one(path.text, name, m->v[i].value, strlen(m->v[i].value));
    }
    return r;
}

/* A walk over the attributes that are metadata. */
struct meta_walk {
    struct fd_path path;
    char *names;
    size_t at, len, left; /* left: bytes of FILE_META_MAX that are left */
    unsigned n;
    char value[FILE_META_MAX + 1];
    size_t value_len;
};

static void walk_begin(struct meta_walk *w, int fd)
{
    ssize_t n;

    w->path = path_of(fd);
    w->names = NULL;
    w->at = w->len = w->n = 0;
    w->left = FILE_META_MAX;
    n = listxattr(w->path.text, NULL, 0);
    if (n <= 0)
        return;
    /* the kernel allows no list longer than 64 KiB; if the list grows meanwhile, it counts as
     * empty */
    w->names = malloc((size_t)n);
    n = w->names ? listxattr(w->path.text, w->names, (size_t)n) : 0;
    w->len = n > 0 ? (size_t)n : 0;
}

static bool is_text(const struct meta_walk *w)
{
    return memchr(w->value, '\0', w->value_len) == NULL;
}

/* The name of the next attribute, or NULL. Its value is in w->value and ends in NUL. */
static const char *walk_next(struct meta_walk *w)
{
    while (w->at < w->len && w->n < FILE_META_KEYS_MAX) {
        const char *name = w->names + w->at;
        size_t len = strlen(name);

        w->at += len + 1;
        if (strncmp(name, FILE_XATTR_PREFIX, PREFIX_LEN) != 0 || len == PREFIX_LEN ||
            len >= NAME_SIZE || len - PREFIX_LEN > w->left)
            continue;
        size_t room = w->left - (len - PREFIX_LEN);
        /* one byte more than fits: a size of 0 would only ask for the length */
        ssize_t n = getxattr(w->path.text, name, w->value, room + 1);
        if (n < 0 || (size_t)n > room)
            continue;
        w->value_len = (size_t)n;
        w->value[n] = '\0';
        if (!is_text(w))
            continue;
        w->left -= len - PREFIX_LEN + (size_t)n;
        w->n++;
        return name;
    }
    return NULL;
}

static void walk_end(struct meta_walk *w)
{
    free(w->names);
}

void meta_clear(int fd)
{
    struct meta_walk w;

    walk_begin(&w, fd);
    for (; w.at < w.len; w.at += strlen(w.names + w.at) + 1)
        if (strncmp(w.names + w.at, FILE_XATTR_PREFIX, PREFIX_LEN) == 0)
            removexattr(w.path.text, w.names + w.at);
    walk_end(&w);
}

void meta_put(struct strbuf *out, int fd)
{
    AUTO(strbuf_done)
    struct strbuf pairs = strbuf_upto(FILE_META_MAX + FILE_META_KEYS_MAX * 10);
    struct meta_walk w;
    const char *name;

    walk_begin(&w, fd);
    while ((name = walk_next(&w))) {
        wire_put_str(&pairs, name + PREFIX_LEN);
        wire_put_str(&pairs, w.value);
    }
    wire_put_u32(out, pairs.truncated ? 0 : w.n);
    if (!pairs.truncated)
        strbuf_add(out, pairs.buf, pairs.len);
    walk_end(&w);
}

int meta_copy(int from, int to)
{
    struct fd_path path = path_of(to);
    struct meta_walk w;
    const char *name;
    int r = 0;

    walk_begin(&w, from);
    while (r == 0 && (name = walk_next(&w)))
        r = set_one(path.text, name, w.value, w.value_len);
    walk_end(&w);
    return r;
}
