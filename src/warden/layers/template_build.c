#include "warden/layers/template_build.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/ids.h"
#include "warden/layers/template_fonts.h"
#include "warden/layers/tree.h"

#define FONTS_MAX (4u * 1024 * 1024)

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
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

static int make_packed(int at, const struct template_packed *p, struct sg_error *e)
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

/* Makes the files that have this bit in their modes; 0: all. */
static int make_all(int at, uint32_t bit, struct sg_error *e)
{
    size_t len = (size_t)(sg_sudo_image_end - sg_sudo_image);
    const uint8_t *place = NULL;
    struct template_packed p;
    int r = 0;

    while (r == 0 && template_next(&place, &p))
        if ((p.entry.mode & bit) == bit)
            r = make_packed(at, &p, e);
    return r < 0 ? r : make_file(at, "usr/local/bin/sudo", sg_sudo_image, len, 0755, 0, 0, e);
}

static int build(int at, struct sg_error *e)
{
    AUTO(close_p) int root = make_sub(at, TEMPLATE_ROOT, e), fixtures = -1;
    int r = root < 0 ? root : make_all(root, 0, e);

    if (r == 0)
        r = add_fonts(root, e);
    if (r == 0)
        r = fixtures = make_sub(at, TEMPLATE_FIXTURES, e);
    return r < 0 ? r : make_all(fixtures, TEMPLATE_FIXTURE, e);
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

int template_build(int top, const char *name, struct sg_error *e)
{
    AUTO(close_p) int at = -1;
    char id[ID_LEN + 1], aside[64];
    int r;

    umask(022);
    id_random(id);
    snprintf(aside, sizeof(aside), "template-new-%s", id);
    at = make_sub(top, aside, e);
    if (at >= 0)
        flock(at, LOCK_SH);
    r = at < 0 ? at : build(at, e);
    if (r == 0 && renameat(top, aside, top, name) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        r = err_errno(e, "put the template into '" TEMPLATE_DIR "'");
    tree_remove(top, aside, NULL);
    if (r == 0)
        remove_unused(top, name);
    return r;
}
