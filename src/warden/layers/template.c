#include "warden/layers/template.h"

#include <assert.h>
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/hash.h"
#include "lib/base/ids.h"
#include "warden/host/images.h"
#include "warden/layers/template_fonts.h"
#include "warden/layers/tree.h"

#define FONTS_MAX (4u * 1024 * 1024)

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* One entry of the pack. */
struct packed {
    struct template_entry entry;
    char path[256];
    const char *data;
};

/* Moves *at to the next entry, from NULL to the first; false at the end. The pack is our own. */
static bool next_packed(const uint8_t **at, struct packed *ret)
{
    const uint8_t *p = *at ? *at : sg_template_image + TEMPLATE_HASH_LEN;
    struct template_entry *e = &ret->entry;

    if (p == sg_template_image_end)
        return false;
    memcpy(e, p, sizeof(*e));
    *e = (struct template_entry){le32toh(e->path_len), le32toh(e->len), le32toh(e->mode),
                                 le32toh(e->uid), le32toh(e->gid)};
    p += sizeof(*e);
    assert(e->path_len < sizeof(ret->path) &&
           (size_t)e->path_len + e->len <= (size_t)(sg_template_image_end - p));
    memcpy(ret->path, p, e->path_len);
    ret->path[e->path_len] = '\0';
    ret->data = (const char *)p + e->path_len;
    *at = p + e->path_len + e->len;
    return true;
}

static int make_dir(int at, const char *path, mode_t mode, uint32_t uid, uint32_t gid,
                    struct sg_error *e)
{
    if (mkdirat(at, path, mode) < 0 || fchmodat(at, path, mode, 0) < 0 ||
        fchownat(at, path, uid, gid, 0) < 0)
        return err_errno(e, "make '%s' of the template", path);
    return 0;
}

static int make_file(int at, const char *path, const void *data, size_t len, mode_t mode,
                     uint32_t uid, uint32_t gid, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int r;

    if (fd < 0 || fchmod(fd, mode) < 0 || fchown(fd, uid, gid) < 0)
        return err_errno(e, "make '%s' of the template", path);
    r = fd_write_all(fd, data, len);
    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "write '%s' of the template: %s", path, strerror(-r));
    return 0;
}

static int make_link(int at, const char *path, const char *data, size_t len, struct sg_error *e)
{
    char to[256];

    snprintf(to, sizeof(to), "%.*s", (int)len, data);
    return symlinkat(to, at, path) < 0 ? err_errno(e, "link '%s' of the template", path) : 0;
}

/* Copies all files that match "/etc/python3*" and the like. A pattern may match nothing. */
static int copy_matches(int at, const char *pattern, struct sg_error *e)
{
    glob_t found = {0};
    int r = 0;

    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
            r = tree_copy(found.gl_pathv[i], at, found.gl_pathv[i] + 1, e);
    globfree(&found);
    return r;
}

static int make_packed(int at, const struct packed *p, struct sg_error *e)
{
    const struct template_entry *h = &p->entry;

    switch (h->mode & S_IFMT) {
    case S_IFDIR:
        return make_dir(at, p->path, h->mode & 07777, h->uid, h->gid, e);
    case S_IFREG:
        return make_file(at, p->path, p->data, h->len, h->mode & 07777, h->uid, h->gid, e);
    case S_IFLNK:
        return make_link(at, p->path, p->data, h->len, e);
    default:
        return copy_matches(at, p->path, e);
    }
}

static int make_sub(int at, const char *name, struct sg_error *e)
{
    int fd;

    if (mkdirat(at, name, 0755) < 0 || fchmodat(at, name, 0755, 0) < 0)
        return err_errno(e, "make '%s' of the template", name);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_errno(e, "open '%s' of the template", name);
    return fd;
}

/* Puts the list into both homes. */
static int add_fonts(int at, struct sg_error *e)
{
    static const struct {
        const char *home;
        uid_t uid;
    } homes[] = {{"home/user", 1000}, {"root", 0}};
    struct strbuf list;
    char name[TEMPLATE_FONTS_NAME], path[128];
    int r = 0;

    strbuf_init(&list, FONTS_MAX);
    if (template_fonts_ask(at, name, &list) < 0) {
        strbuf_done(&list);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(homes) && r == 0; i++) {
        uid_t uid = homes[i].uid;

        snprintf(path, sizeof(path), "%s/.cache", homes[i].home);
        r = make_dir(at, path, 0755, uid, uid, e);
        snprintf(path, sizeof(path), "%s/.cache/matplotlib", homes[i].home);
        r = r < 0 ? r : make_dir(at, path, 0755, uid, uid, e);
        snprintf(path, sizeof(path), "%s/.cache/matplotlib/%s", homes[i].home, name);
        r = r < 0 ? r : make_file(at, path, list.buf, list.len, 0644, uid, uid, e);
    }
    strbuf_done(&list);
    return r;
}

static int build(int at, struct sg_error *e)
{
    size_t len = (size_t)(sg_sudo_image_end - sg_sudo_image);
    const uint8_t *place = NULL;
    struct packed p;
    int r = 0;

    while (r == 0 && next_packed(&place, &p))
        r = make_packed(at, &p, e);
    if (r == 0)
        r = make_file(at, "usr/local/bin/sudo", sg_sudo_image, len, 0755, 0, 0, e);
    return r < 0 ? r : add_fonts(at, e);
}

/* Removes templates of earlier versions, unless an engine uses one: that holds a shared lock on
 * it. */
static void remove_unused(int top, const char *keep)
{
    AUTO(closedir_p) DIR *d = NULL;
    struct dirent *entry;
    int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    d = fd < 0 ? NULL : fdopendir(fd);
    while (d && (entry = readdir(d)) != NULL) {
        AUTO(close_p) int one = -1;
        if (strncmp(entry->d_name, "template-", 9) != 0 || strcmp(entry->d_name, keep) == 0)
            continue;
        one = openat(top, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0)
            tree_remove(top, entry->d_name, NULL);
    }
}

/* Builds the template under another name and renames it, so that it is complete or absent. If two
 * processes race, one of them wins. */
static int build_aside(int top, const char *name, struct sg_error *e)
{
    AUTO(close_p) int at = -1;
    char id[ID_LEN + 1], aside[64];
    mode_t old = umask(022);
    int r;

    id_random(id);
    snprintf(aside, sizeof(aside), "template-new-%s", id);
    at = make_sub(top, aside, e);
    if (at >= 0)
        flock(at, LOCK_SH);
    r = at < 0 ? at : build(at, e);
    umask(old);
    if (r == 0 && renameat(top, aside, top, name) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        r = err_errno(e, "put the template into '" TEMPLATE_DIR "'");
    tree_remove(top, aside, NULL);
    if (r == 0)
        remove_unused(top, name);
    return r;
}

/* Hashes the time at which this file of the host was changed, if it is there. */
static uint64_t hash_time(uint64_t h, const char *path)
{
    struct stat st;

    h = hash_stable(h, path, strlen(path) + 1);
    return stat(path, &st) == 0 ? hash_stable(h, &st.st_mtim, sizeof(st.st_mtim)) : h;
}

/* The hash of all that the template is made of: the hash in the pack, the times of the host's files
 * in it, and the first page of the sudo program, which contains its build id. */
static uint64_t content_hash(void)
{
    size_t sudo_len = (size_t)(sg_sudo_image_end - sg_sudo_image);
    uint64_t h = hash_stable(0, sg_sudo_image, sudo_len < 4096 ? sudo_len : 4096);
    const uint8_t *place = NULL;
    bool in_host = false;
    struct packed p;

    h = hash_stable(h, &sudo_len, sizeof(sudo_len));
    h = hash_stable(h, sg_template_image, TEMPLATE_HASH_LEN);
    while (next_packed(&place, &p) && !(in_host && p.entry.mode != 0)) {
        in_host = p.entry.mode == 0;
        if (in_host)
            h = hash_time(h, p.path);
    }
    for (size_t i = 0; i < template_n_fonts_inputs; i++)
        h = hash_time(h, template_fonts_inputs[i]);
    return h;
}

static int open_template(int top, const char *name, struct template *ret)
{
    AUTO(close_p) int at = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (at < 0)
        return -errno;
    if (flock(at, LOCK_SH | LOCK_NB) < 0)
        return -EAGAIN; /* another process is removing it */
    ret->dir = steal_fd(&at);
    return 0;
}

int template_open(struct template *ret, struct sg_error *e)
{
    struct template t = {.dir = -1, .host_usr = -1};
    AUTO(close_p) int top = -1;
    char name[128];
    int r;

    if (mkdir(TEMPLATE_DIR, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make '" TEMPLATE_DIR "' for the template");
    top = open(TEMPLATE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    t.host_usr = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = top < 0 || t.host_usr < 0 ? err_errno(e, "open '" TEMPLATE_DIR "' and /usr") : 0;
    snprintf(name, sizeof(name), "template-" SG_VERSION "-%016llx",
             (unsigned long long)content_hash());
    if (r == 0 && open_template(top, name, &t) < 0) {
        r = build_aside(top, name, e);
        if (r == 0 && open_template(top, name, &t) < 0)
            r = err_errno(e, "open the template '%s'", name);
    }
    if (r < 0) {
        template_close(&t);
        if (r == -ENOSPC || r == -EDQUOT)
            return err_set(e, SG_ERR_LIMIT, r,
                           "prepare the default template in '" TEMPLATE_DIR
                           "': No space left: free some space there");
        return err_wrap(e, r, "prepare the default template in '" TEMPLATE_DIR "'");
    }
    *ret = t;
    return 0;
}

void template_close(struct template *t)
{
    close_p(&t->dir);
    close_p(&t->host_usr);
}
