#include "cli/local/policy_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "cli/shared/text_file.h"

#define POLICY_FILE_MAX (64u * 1024)

/* Splits "word rest" in place and returns the rest without blanks before it. */
static char *split_word(char *line)
{
    char *p = line + strcspn(line, " \t");

    if (*p)
        *p++ = '\0';
    return p + strspn(p, " \t");
}

static int add_root(struct policy_file *p, const char *where, const char *root, struct sg_error *e)
{
    if (root[0] != '/')
        return err_invalid(e, "%s: mount-root needs an absolute path, not '%.128s'", where, root);
    if (p->n_roots == POLICY_ROOTS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "%s: more than %d mount roots", where,
                       POLICY_ROOTS_MAX);
    p->roots[p->n_roots++] = xstrdup(root);
    p->policy.mount_roots = (const char *const *)p->roots;
    return 0;
}

static int add_permission(struct policy_file *p, const char *where, const char *what,
                          struct sg_error *e)
{
    if (strcmp(what, "network") == 0)
        p->policy.allow_network = true;
    else if (strcmp(what, "writable-mounts") == 0)
        p->policy.allow_writable_mounts = true;
    else
        return err_invalid(
            e, "%s: cannot allow '%.64s': write 'allow network' or 'allow writable-mounts'", where,
            what);
    return 0;
}

static int parse_line(struct policy_file *p, const char *where, char *line, struct sg_error *e)
{
    char *rest = split_word(line);

    if (strcmp(line, "mount-root") == 0)
        return add_root(p, where, rest, e);
    if (strcmp(line, "allow") == 0)
        return add_permission(p, where, rest, e);
    return err_invalid(
        e, "%s: unknown rule '%.64s': a policy has 'mount-root PATH' and 'allow ...'", where, line);
}

int policy_file_parse(struct policy_file *p, const char *path, char *text, struct sg_error *e)
{
    unsigned number = 0;
    char *line;

    while ((line = text_next_line(&text, &number))) {
        char where[192];

        if (*line == '\0' || *line == '#')
            continue;
        snprintf(where, sizeof(where), "%.160s:%u", path, number);
        int r = parse_line(p, where, line, e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Checks the open descriptor and not the path, so that the file that was checked is the one
 * read. */
static int check_owner(int fd, const char *path, struct sg_error *e)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(e, "policy '%.128s'", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "policy '%.128s' belongs to uid %u: it must belong to root (chown root)",
                       path, (unsigned)st.st_uid);
    if (!S_ISDIR(st.st_mode) && (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "policy '%.128s' can be written by others than its owner: chmod go-w it",
                       path);
    return 0;
}

int policy_file_load(struct policy_file *p, const char *path, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    AUTO(close_p) int fd = -1;
    size_t len;
    int r;

    fd = open(path ? path : POLICY_FILE_DEFAULT, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && !path && errno == ENOENT)
        return 0;
    if (!path)
        path = POLICY_FILE_DEFAULT;
    if (fd < 0)
        return err_errno(e, "cannot open policy '%.128s'", path);
    r = check_owner(fd, path, e);
    if (r < 0)
        return r;
    r = text_fd_load("policy", path, fd, POLICY_FILE_MAX, "a policy has a few lines", &text, &len,
                     e);
    if (r < 0)
        return r;
    return policy_file_parse(p, path, text, e);
}

void policy_file_done(struct policy_file *p)
{
    for (size_t i = 0; i < p->n_roots; i++)
        free(p->roots[i]);
    *p = (struct policy_file){0};
}
