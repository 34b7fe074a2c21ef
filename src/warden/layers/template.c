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
#include "warden/layers/template_etc.h"
#include "warden/layers/template_fonts.h"
#include "warden/layers/tree.h"

#define FONTS_MAX (4u * 1024 * 1024)

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

static int make_dir(int at, const struct template_dir *d, struct sg_error *e)
{
    if (mkdirat(at, d->path, d->mode) < 0 || fchmodat(at, d->path, d->mode, 0) < 0 ||
        fchownat(at, d->path, d->uid, d->gid, 0) < 0)
        return err_errno(e, "make '%s' of the template", d->path);
    return 0;
}

static int make_file(int at, const char *path, const void *data, size_t len, mode_t mode,
                     struct sg_error *e)
{
    AUTO(close_p) int fd = openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int r;

    if (fd < 0 || fchmod(fd, mode) < 0)
        return err_errno(e, "make '%s' of the template", path);
    r = fd_write_all(fd, data, len);
    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "write '%s' of the template: %s", path, strerror(-r));
    return 0;
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

static int fill_root(int at, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; i < template_n_dirs && r == 0; i++)
        r = make_dir(at, &template_dirs[i], e);
    for (size_t i = 0; i < template_n_copies && r == 0; i++)
        r = copy_matches(at, template_copies[i], e);
    for (size_t i = 0; i < template_n_files && r == 0; i++) {
        const struct template_file *f = &template_files[i];
        r = make_file(at, f->path, f->text, strlen(f->text), f->mode, e);
        if (r == 0 && fchownat(at, f->path, f->uid, f->gid, 0) < 0)
            r = err_errno(e, "set the owner of '%s' in the template", f->path);
    }
    for (size_t i = 0; i < template_n_links && r == 0; i++)
        if (symlinkat(template_links[i].to, at, template_links[i].path) < 0)
            r = err_errno(e, "link '%s' of the template", template_links[i].path);
    return r;
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

static int unpack_kernels(int at, struct sg_error *e)
{
    const uint8_t *p = sg_kernels_image + KERNELS_HASH_LEN;
    int r = 0;

    while (p < sg_kernels_image_end && r == 0) {
        struct kernels_entry entry;
        char path[256];

        memcpy(&entry, p, sizeof(entry));
        p += sizeof(entry);
        entry.path_len = le32toh(entry.path_len);
        entry.len = le32toh(entry.len);
        assert(entry.path_len > 0 && entry.path_len < sizeof(path) &&
               (size_t)entry.path_len + entry.len <= (size_t)(sg_kernels_image_end - p));
        memcpy(path, p, entry.path_len);
        path[entry.path_len] = '\0';
        p += entry.path_len;
        if (path[entry.path_len - 1] == '/')
            r = make_dir(at, &(struct template_dir){path, 0755, 0, 0}, e);
        else
            r = make_file(at, path, p, entry.len, 0644, e);
        p += entry.len;
    }
    return r;
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
        struct template_dir dir = {path, 0755, homes[i].uid, homes[i].uid};

        snprintf(path, sizeof(path), "%s/.cache", homes[i].home);
        r = make_dir(at, &dir, e);
        snprintf(path, sizeof(path), "%s/.cache/matplotlib", homes[i].home);
        r = r < 0 ? r : make_dir(at, &dir, e);
        snprintf(path, sizeof(path), "%s/.cache/matplotlib/%s", homes[i].home, name);
        r = r < 0 ? r : make_file(at, path, list.buf, list.len, 0644, e);
        if (r == 0 && fchownat(at, path, homes[i].uid, homes[i].uid, 0) < 0)
            r = err_errno(e, "set the owner of '%s' in the template", path);
    }
    strbuf_done(&list);
    return r;
}

static int build(int at, struct sg_error *e)
{
    size_t len = (size_t)(sg_sudo_image_end - sg_sudo_image);
    int r = fill_root(at, e);

    if (r == 0)
        r = make_file(at, "usr/local/bin/sudo", sg_sudo_image, len, 0755, e);
    if (r == 0)
        r = unpack_kernels(at, e);
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

static uint64_t hash_str(uint64_t h, const char *s)
{
    return hash_stable(h, s, strlen(s) + 1);
}

/* Hashes the times at which these files of the host were changed; missing files are skipped. */
static uint64_t hash_times(uint64_t h, const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        h = hash_str(h, paths[i]);
        if (stat(paths[i], &st) == 0)
            h = hash_stable(h, &st.st_mtim, sizeof(st.st_mtim));
    }
    return h;
}

/* The hash of all that the template is made of: the tables of template_etc.c, the times of the
 * host's files in it, the first page of the sudo program, which contains its build id, and the hash
 * in the pack of kernels. */
static uint64_t content_hash(void)
{
    size_t sudo_len = (size_t)(sg_sudo_image_end - sg_sudo_image);
    uint64_t h = hash_stable(0, sg_sudo_image, sudo_len < 4096 ? sudo_len : 4096);

    h = hash_stable(h, &sudo_len, sizeof(sudo_len));
    h = hash_stable(h, sg_kernels_image, KERNELS_HASH_LEN);
    for (size_t i = 0; i < template_n_dirs; i++)
        h = hash_str(h, template_dirs[i].path) ^ template_dirs[i].mode;
    for (size_t i = 0; i < template_n_files; i++)
        h = hash_str(hash_str(h, template_files[i].path), template_files[i].text);
    for (size_t i = 0; i < template_n_links; i++)
        h = hash_str(hash_str(h, template_links[i].path), template_links[i].to);
    h = hash_times(h, template_copies, template_n_copies);
    return hash_times(h, template_fonts_inputs, template_n_fonts_inputs);
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
