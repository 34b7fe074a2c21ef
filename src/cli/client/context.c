#include "cli/client/context.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <zlib.h>

#include "lib/tar/tar_out.h"
#include "lib/base/fd.h"

#define IGNORE_MAX (1024u * 1024)
#define CHUNK      (64u * 1024)
#define FILES_MAX  1000000
#define PACK_LEVEL "wb1" /* the way is short, or the files are few */

/* ---- the directory --------------------------------------------------------------------------- */

static int read_ignore(struct context *c, const char *name, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    size_t len;
    int r = name[0] ? file_read(c->fd, name, IGNORE_MAX, &text, &len) : -ENOENT;

    if (r < 0)
        return r == -ENOENT ? r : err_code(e, r, "cannot read '%.200s/%.100s'", c->dir, name);
    ignore_read(text, &c->ignore);
    return 0;
}

int context_open(const char *dir, const char *ignore_name, struct context *ret, struct sg_error *e)
{
    struct context c = {.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .dir = dir};

    if (c.fd < 0)
        return err_errno(e, "cannot open the directory '%.200s'", dir);
    int r = read_ignore(&c, ignore_name, e);
    if (r == -ENOENT)
        r = read_ignore(&c, ".dockerignore", e);
    if (r < 0 && r != -ENOENT) {
        context_done(&c);
        return r;
    }
    *ret = c;
    return 0;
}

void context_done(struct context *c)
{
    close_p(&c->fd);
    ignore_done(&c->ignore);
}

/* Opens a path of the context; nothing outside of it can be reached. */
static int open_inside(const struct context *c, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, c->fd, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

/* ---- collecting ------------------------------------------------------------------------------ */

struct walk {
    struct context_files *out;
    const char *pattern; /* of the source */
    char path[PATH_MAX]; /* of what is looked at */
    size_t len;
    size_t strip; /* inside of a source: what its names do not have; 0: outside */
    bool inside;
    size_t found;
    struct sg_error *e;
};

static int unreadable(const struct walk *w)
{
    return err_errno(w->e, "cannot read '%.200s/%.200s'", w->out->context->dir, w->path);
}

static int add_file(struct walk *w, const char *name, int dir, const char *leaf,
                    const struct stat *st)
{
    struct context_files *o = w->out;
    char target[PATH_MAX];

    if (o->n == FILES_MAX)
        return err_invalid(w->e, "line %u: more than %d files", o->copy->line, FILES_MAX);
    struct context_file f = {.name = xstrdup(name),
                             .path = xstrdup(w->path),
                             .mode = st->st_mode,
                             .mtime = st->st_mtime};
    o->files = xgrow(o->files, o->n, &o->cap, sizeof(*o->files));
    o->files[o->n++] = f;
    if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dir, leaf, target, sizeof(target) - 1);
        if (n < 0)
            return unreadable(w);
        target[n] = '\0';
        o->files[o->n - 1].link = xstrdup(target);
    } else if (S_ISREG(st->st_mode)) {
        o->files[o->n - 1].size = (uint64_t)st->st_size;
        o->bytes += (uint64_t)st->st_size;
    }
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int walk_entry(struct walk *w, int dir, const char *leaf);

/* Looks at all in the directory, in the order of their names. */
static int walk_dir(struct walk *w, int fd)
{
    struct dirent **list = NULL;
    int n = scandirat(fd, ".", &list, NULL, by_name), r = n < 0 ? unreadable(w) : 0;
    size_t before = w->len;

    for (int i = 0; i < n; i++) {
        const char *leaf = list[i]->d_name;

        if (r == 0 && strcmp(leaf, ".") != 0 && strcmp(leaf, "..") != 0) {
            int len = snprintf(w->path + before, sizeof(w->path) - before, "%s%s",
                               before ? "/" : "", leaf);
            if ((size_t)len >= sizeof(w->path) - before)
                r = err_invalid(w->e, "'%.200s...' is too long a path", w->path);
            w->len = before + (size_t)len;
            r = r < 0 ? r : walk_entry(w, fd, leaf);
        }
        free(list[i]);
    }
    free(list);
    w->len = before;
    w->path[before] = '\0';
    return r;
}

static int walk_into(struct walk *w, int dir, const char *leaf)
{
    AUTO(close_p) int fd = openat(dir, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? unreadable(w) : walk_dir(w, fd);
}

/* A source: a directory gives its content, anything else itself. A link is followed. */
static int take_source(struct walk *w)
{
    const char *slash = strrchr(w->path, '/'), *leaf = slash ? slash + 1 : w->path;
    AUTO(close_p)
    int fd = open_inside(w->out->context, w->len ? w->path : ".", O_RDONLY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_invalid(w->e,
                           "line %u: '%.200s' cannot be read, or leads out of the context: %s",
                           w->out->copy->line, w->path, strerror(fd < 0 ? -fd : errno));
    w->found++;
    if (S_ISREG(st.st_mode)) {
        w->out->itself++;
        return add_file(w, leaf, -1, leaf, &st);
    }
    if (!S_ISDIR(st.st_mode))
        return err_invalid(w->e, "line %u: '%.200s' is neither a file nor a directory",
                           w->out->copy->line, w->path);
    w->inside = true;
    w->strip = w->len ? w->len + 1 : 0;
    int r = walk_dir(w, fd);
    w->inside = false;
    return r;
}

static int walk_entry(struct walk *w, int dir, const char *leaf)
{
    const struct ignore *g = &w->out->context->ignore;
    bool ignored = ignore_has(g, w->path);
    struct stat st;
    int r = 0;

    if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : unreadable(w);
    if (!w->inside && !ignored && ignore_match(w->pattern, w->path))
        return take_source(w);
    if (w->inside && !ignored &&
        (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)))
        r = add_file(w, w->path + w->strip, dir, leaf, &st);
    if (r == 0 && S_ISDIR(st.st_mode) && (!ignored || g->has_exceptions))
        r = walk_into(w, dir, leaf);
    return r;
}

/* The source without "./" and the like; NULL: it leads out of the context. */
static char *clean_source(const char *p)
{
    char *out = xcalloc(1, strlen(p) + 1);
    size_t n = 0;

    while (*p) {
        size_t part = strcspn(p, "/");

        if (part == 2 && memcmp(p, "..", 2) == 0) {
            free(out);
            return NULL;
        }
        if (part > 0 && !(part == 1 && *p == '.')) {
            if (n > 0)
                out[n++] = '/';
            memcpy(out + n, p, part);
            n += part;
        }
        p += part + (p[part] == '/');
    }
    return out;
}

static int collect_source(struct context_files *f, const char *source, struct sg_error *e)
{
    AUTO(free_p) char *pattern = clean_source(source);
    AUTO(free_p) struct walk *w = xcalloc(1, sizeof(*w));

    if (!pattern)
        return err_invalid(e, "line %u: '%.200s' leads out of the context", f->copy->line, source);
    *w = (struct walk){.out = f, .pattern = pattern, .e = e};
    int r;
    if (!pattern[0]) {
        r = take_source(w);
    } else {
        AUTO(close_p) int fd = open_inside(f->context, ".", O_RDONLY | O_DIRECTORY);

        r = fd < 0 ? unreadable(w) : walk_dir(w, fd);
    }
    if (r == 0 && w->found == 0)
        return err_invalid(e, "line %u: there is no '%.200s' in '%.200s'%s", f->copy->line, source,
                           f->context->dir,
                           f->context->ignore.n ? ", or .dockerignore leaves it out" : "");
    return r;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* Gives the content of a file, which is as long as it was when it was found, even if it has changed. */
static int each_chunk(const struct context_files *f, const struct context_file *one,
                      const struct tar_out *to, struct sg_error *e)
{
    AUTO(free_p) char *chunk = xcalloc(1, CHUNK);
    AUTO(close_p) int fd = -1;

    if (f->copy->text)
        return to->put(to->arg, f->copy->text, strlen(f->copy->text));
    fd = open_inside(f->context, one->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_code(e, fd, "cannot read '%.200s/%.200s'", f->context->dir, one->path);
    for (uint64_t left = one->size; left > 0;) {
        size_t want = left < CHUNK ? (size_t)left : CHUNK;
        ssize_t n = read(fd, chunk, want);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "cannot read '%.200s/%.200s'", f->context->dir, one->path);
        if (n == 0) {
            memset(chunk, 0, want);
            n = (ssize_t)want;
        }
        int r = to->put(to->arg, chunk, (size_t)n);
        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    return 0;
}

static int hash_put(void *arg, const void *data, size_t len)
{
    if (EVP_DigestUpdate(arg, data, len) != 1)
        abort();
    return 0;
}

static int hash_files(struct context_files *f, struct sg_error *e)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    const struct tar_out to = {hash_put, md};
    unsigned char digest[CONTEXT_HASH / 2];
    int r = 0;

    if (!md || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1)
        abort();
    for (size_t i = 0; r == 0 && i < f->n; i++) {
        const struct context_file *one = &f->files[i];
        const char *link = one->link ? one->link : "";
        uint64_t numbers[2] = {one->mode & (S_IFMT | 07777), one->size};

        hash_put(md, one->name, strlen(one->name) + 1);
        hash_put(md, link, strlen(link) + 1);
        hash_put(md, numbers, sizeof(numbers));
        r = S_ISREG(one->mode) ? each_chunk(f, one, &to, e) : 0;
    }
    if (EVP_DigestFinal_ex(md, digest, NULL) != 1)
        abort();
    EVP_MD_CTX_free(md);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(f->hash + 2 * i, 3, "%02x", digest[i]);
    return r;
}

/* Docker unpacks an archive that ADD names; we would copy it as it is. */
static int check_archive(const struct context_files *f, struct sg_error *e)
{
    static const struct {
        size_t at, len;
        const char *magic;
    } kinds[] = {{0, 2, "\x1f\x8b"},
                 {0, 3, "BZh"},
                 {0, 5,
                  "\xfd"
                  "7zXZ"},
                 {0, 4, "\x28\xb5\x2f\xfd"},
                 {257, 5, "ustar"}};
    AUTO(close_p)
    int fd =
        f->copy->sources ? open_inside(f->context, f->files[0].path, O_RDONLY | O_NONBLOCK) : -1;
    char head[262] = "";

    if (fd < 0 || pread(fd, head, sizeof(head), 0) < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (memcmp(head + kinds[i].at, kinds[i].magic, kinds[i].len) == 0)
            return err_invalid(e,
                               "line %u: ADD of the archive '%.200s' is not supported: COPY it, "
                               "and unpack it with RUN",
                               f->copy->line, f->files[0].path);
    return 0;
}

int context_collect(const struct context *c, const struct recipe_copy *copy,
                    struct context_files *ret, struct sg_error *e)
{
    struct context_files f = {.context = c, .copy = copy, .source = "."};
    size_t n = json_array_size(copy->sources);
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = collect_source(&f, json_string_value(json_array_get(copy->sources, i)), e);
    if (copy->text) {
        f.files = xgrow(f.files, f.n, &f.cap, sizeof(*f.files));
        f.files[f.n++] = (struct context_file){.name = xstrdup(copy->name),
                                               .path = xstrdup(copy->name),
                                               .mode = S_IFREG | 0644,
                                               .size = strlen(copy->text)};
        f.itself = 1;
    }
    /* A directory with one file gives the same archive, and is told apart by its source. */
    if (r == 0 && f.n == 1 && f.itself == 1) {
        f.source = f.files[0].name;
        r = copy->add ? check_archive(&f, e) : 0;
    }
    if (r == 0)
        r = hash_files(&f, e);
    if (r < 0)
        context_files_done(&f);
    else
        *ret = f;
    return r;
}

void context_files_done(struct context_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->files[i].name);
        free(f->files[i].path);
        free(f->files[i].link);
    }
    free(f->files);
    *f = (struct context_files){0};
}

/* ---- packing --------------------------------------------------------------------------------- */

static int gz_put(void *arg, const void *data, size_t len)
{
    return gzwrite(arg, data, (unsigned)len) == (int)len ? 0 : -EIO;
}

static int pack_one(const struct context_files *f, const struct context_file *one,
                    const struct tar_out *to, struct sg_error *e)
{
    bool link = S_ISLNK(one->mode), dir = S_ISDIR(one->mode);
    AUTO(free_p) char *name = xcalloc(1, strlen(one->name) + 2);

    memcpy(name, one->name, strlen(one->name));
    if (dir)
        name[strlen(name)] = '/';
    int r = tar_out_entry(to, &(struct tar_out_entry){.name = name,
                                                      .link = link ? one->link : "",
                                                      .type = link  ? '2'
                                                              : dir ? '5'
                                                                    : '0',
                                                      .mode = one->mode,
                                                      .mtime = one->mtime,
                                                      .size = one->size});
    if (r == 0 && S_ISREG(one->mode))
        r = each_chunk(f, one, to, e);
    return r < 0 ? r : tar_out_pad(to, one->size);
}

int context_pack(const struct context_files *f, int *ret_fd, uint64_t *ret_size, struct sg_error *e)
{
    const char *tmp = getenv("TMPDIR");
    AUTO(close_p) int fd = open(tmp && *tmp ? tmp : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct stat st;
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    gzFile gz = copy < 0 ? NULL : gzdopen(copy, PACK_LEVEL);

    if (!gz)
        return err_errno(e, "cannot make a file in '%.200s'", tmp && *tmp ? tmp : "/tmp");
    const struct tar_out to = {gz_put, gz};
    int r = 0;
    err_code(e, -EIO, "cannot write the archive of line %u", f->copy->line);
    for (size_t i = 0; r == 0 && i < f->n; i++)
        r = pack_one(f, &f->files[i], &to, e);
    if (r == 0)
        r = tar_out_end(&to);
    int closed = gzclose(gz);
    if (r == 0 && (closed != Z_OK || fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0))
        r = err_code(e, -EIO, "cannot write the archive of line %u", f->copy->line);
    if (r < 0)
        return r;
    *ret_size = (uint64_t)st.st_size;
    *ret_fd = steal_fd(&fd);
    return 0;
}
