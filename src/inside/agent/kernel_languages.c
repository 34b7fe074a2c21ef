/* Which languages there are: those with a program of their own, if the interpreter is installed,
 * and every Jupyter kernel whose kernelspec the user could use. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fault.h"
#include "inside/agent/dirents.h"
#include "inside/agent/kernels.h"
#include "inside/agent/path.h"
#include "inside/stage/confine.h"

#define PYTHON     "/usr/bin/python3"
#define LISTED_MAX 24 /* how many kernelspecs an error lists */

/* Where Jupyter looks for kernelspecs. The first directory is in the user's home. */
static const char *const spec_dirs[] = {".local/share/jupyter/kernels",
                                        "/usr/local/share/jupyter/kernels",
                                        "/usr/share/jupyter/kernels"};

/* The functions below are called with the permissions of the user. */

static bool is_program(const char *path)
{
    AUTO(close_p) int fd = path ? path_open(AT_FDCWD, path, O_PATH, 0) : -1;
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

static bool is_installed(const struct language *l)
{
    return (is_program(l->needs[0]) || is_program(l->needs[1])) &&
           (l->kernel == PROGRAM_NODE || is_program(PYTHON));
}

static int open_specs(const struct agent_user *as, const char *dir)
{
    char path[OPS_PATH_MAX];

    if (path_absolute(as, dir, path) < 0)
        return -ENAMETOOLONG;
    return path_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

static bool has_spec(int dirfd, const char *name)
{
    char path[KERNEL_LANGUAGE_MAX + sizeof("/kernel.json")];
    struct stat st;

    snprintf(path, sizeof(path), "%s/kernel.json", name);
    AUTO(close_p) int fd = path_open(dirfd, path, O_PATH, 0);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._+-");

    return len > 0 && len <= KERNEL_LANGUAGE_MAX && name[len] == '\0' && name[0] != '.';
}

static bool find_spec(const struct agent_user *as, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < ARRAY_SIZE(spec_dirs) && !found; i++) {
        AUTO(close_p) int fd = open_specs(as, spec_dirs[i]);

        found = fd >= 0 && has_spec(fd, name);
    }
    return found;
}

static bool find(const struct agent_user *as, struct kernel_language *l)
{
    const struct language *known = language_find(l->name);

    if (known) {
        l->program = known->kernel;
        return is_installed(known);
    }
    l->program = PROGRAM_BRIDGE;
    return is_name(l->name) && is_program(PYTHON) && find_spec(as, l->name);
}

struct names {
    char v[LISTED_MAX][KERNEL_LANGUAGE_MAX + 1];
    size_t n;
};

/* Inserts the name in order, once. */
static void add_name(struct names *names, const char *name)
{
    size_t at = 0;

    while (at < names->n && strcmp(names->v[at], name) < 0)
        at++;
    if ((at < names->n && strcmp(names->v[at], name) == 0) || names->n == LISTED_MAX)
        return;
    memmove(names->v[at + 1], names->v[at], (names->n - at) * sizeof(names->v[0]));
    snprintf(names->v[at], sizeof(names->v[at]), "%s", name);
    names->n++;
}

static void add_specs(struct names *names, int dirfd)
{
    struct dirents d = {0};
    struct dirent_name entry;

    if (dirents_init(&d) < 0)
        return;
    while (names->n < LISTED_MAX && dirents_next(&d, dirfd, &entry) == 1)
        if (is_name(entry.name) && !language_find(entry.name) && has_spec(dirfd, entry.name))
            add_name(names, entry.name);
    dirents_done(&d);
}

/* Separated by ", ". */
static void list_all(const struct agent_user *as, struct strbuf *out)
{
    struct names known = {0}, names = {0};

    for (size_t i = 0; i < n_languages; i++)
        if (is_installed(&languages[i]))
            add_name(&known, languages[i].name);
    for (size_t i = 0; i < known.n; i++)
        strbuf_addf(out, "%s%s", out->len ? ", " : "", known.v[i]);
    for (size_t i = 0; i < ARRAY_SIZE(spec_dirs) && is_program(PYTHON); i++) {
        AUTO(close_p) int fd = open_specs(as, spec_dirs[i]);

        if (fd >= 0)
            add_specs(&names, fd);
    }
    for (size_t i = 0; i < names.n; i++)
        strbuf_addf(out, "%s%s", out->len ? ", " : "", names.v[i]);
}

/* Makes the name lower case and resolves aliases. Characters that no name can have become '?'. */
void kernel_language_name(const char *name, char ret[KERNEL_LANGUAGE_MAX + 1])
{
    size_t len = 0;

    for (; name[len] && len < KERNEL_LANGUAGE_MAX; len++) {
        char c = name[len];

        ret[len] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c > ' ' && c < 127 ? c : '?');
    }
    ret[len] = '\0';
    name = language_full_name(ret);
    if (name != ret)
        snprintf(ret, KERNEL_LANGUAGE_MAX + 1, "%s", name);
}

int kernel_language_find(const char *name, struct kernel_language *ret, struct sg_error *e)
{
    const struct agent_user *as = agent_user_find("user");
    struct kernel_language l = {0};
    AUTO(strbuf_done) struct strbuf all = strbuf_upto(sizeof(e->message));
    int r = confine_fs_begin(as);

    if (r < 0)
        return err_internal(e, r, "become user '%s'", as->name);
    kernel_language_name(name, l.name);
    bool found = strlen(name) <= KERNEL_LANGUAGE_MAX && find(as, &l);
    if (!found)
        list_all(as, &all);
    confine_fs_end();
    if (!found)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "unknown language '%s': there are %s", l.name,
                       all.len ? all.buf : "none here");
    *ret = l;
    return 0;
}
