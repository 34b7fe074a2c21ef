#include "inside/agent/accounts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "inside/stage/confine.h"
#include "lib/base/fault.h"
#include "lib/base/sys.h"
#include "lib/text/parse.h"

#define FIELDS_MAX 7
#define MEMO       8 /* ids whose names are kept: listings ask for the same ones again and again */

enum { NAME, PASSWORD, UID, GID, COMMENT, HOME, SHELL };

struct account_file {
    const char *path;
    bool (*find)(char *text, const char *name, uint32_t id, struct agent_user *ret);
    /* Names of ids, as they were in the file when it was this one. */
    struct stat was;
    struct {
        uint32_t id;
        char name[OPS_NAME_MAX + 1];
    } memo[MEMO];
    size_t n;
};

static struct account_file users = {.path = "/etc/passwd", .find = accounts_find_user};
static struct account_file groups = {.path = "/etc/group", .find = accounts_find_group};

/* ---- entries --------------------------------------------------------------------------------- */

/* Takes the next line off `*text`, and apart at its colons. 0: there is none. */
static size_t next_line(char **text, char *fields[FIELDS_MAX])
{
    size_t n = 0;
    char *at = *text;

    if (!*at)
        return 0;
    *text += strcspn(at, "\n");
    if (**text)
        *(*text)++ = '\0';
    do
        fields[n++] = strsep(&at, ":");
    while (at && n < FIELDS_MAX);
    return n;
}

/* No empty texts, no long ones, and none that could not be shown or be a variable's value. */
static bool is_plain(const char *text, size_t max)
{
    size_t n = strlen(text);

    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    return n > 0 && n <= max;
}

static bool read_id(const char *text, uint32_t *ret)
{
    uint64_t id;

    if (parse_u64("id", text, 0, UINT32_MAX, &id, NULL) < 0)
        return false;
    *ret = id < AGENT_UID ? (uint32_t)id : ACCOUNTS_NOBODY;
    return true;
}

static void set_path(char ret[AGENT_USER_PATH_MAX], const char *path, const char *otherwise)
{
    bool usable = path[0] == '/' && is_plain(path, AGENT_USER_PATH_MAX - 1);

    snprintf(ret, AGENT_USER_PATH_MAX, "%s", usable ? path : otherwise);
}

static bool is_entry(char *const fields[], const char *name, uint32_t id, struct agent_user *ret)
{
    if (!is_plain(fields[NAME], OPS_NAME_MAX) || !read_id(fields[UID], &ret->uid) ||
        !(name ? strcmp(fields[NAME], name) == 0 : ret->uid == id))
        return false;
    snprintf(ret->name, sizeof(ret->name), "%s", fields[NAME]);
    return true;
}

bool accounts_find_user(char *text, const char *name, uint32_t uid, struct agent_user *ret)
{
    char *fields[FIELDS_MAX];
    struct agent_user found;

    for (size_t n; (n = next_line(&text, fields)) > 0;) {
        if (n < FIELDS_MAX || !is_entry(fields, name, uid, &found) ||
            !read_id(fields[GID], &found.gid))
            continue;
        set_path(found.home, fields[HOME], "/");
        set_path(found.shell, fields[SHELL], "/bin/sh");
        *ret = found;
        return true;
    }
    return false;
}

bool accounts_find_group(char *text, const char *name, uint32_t gid, struct agent_user *ret)
{
    char *fields[FIELDS_MAX];
    struct agent_user found = {0};

    for (size_t n; (n = next_line(&text, fields)) > 0;) {
        if (n <= UID || !is_entry(fields, name, gid, &found))
            continue;
        found.gid = found.uid;
        *ret = found;
        return true;
    }
    return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Only a plain file of the sandbox's root counts, so that reading it is no wait: nothing of /proc, of
 * a volume or of a mount. */
static int open_file(const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                           .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS};
    AUTO(close_p) int fd = sys_openat2(AT_FDCWD, path, &how);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? steal_fd(&fd) : -1;
}

/* NULL: it cannot be read. */
static char *read_file(const char *path)
{
    AUTO(close_p) int fd = open_file(path);
    AUTO(free_p) char *text = NULL;
    size_t len = 0;

    if (fd < 0)
        return NULL;
    text = xcalloc(1, ACCOUNTS_MAX + 1);
    for (ssize_t n; len < ACCOUNTS_MAX; len += (size_t)n) {
        n = read(fd, text + len, ACCOUNTS_MAX - len);
        if (n <= 0)
            break;
    }
    if (len == ACCOUNTS_MAX) /* half an entry is none */
        while (len > 0 && text[len - 1] != '\n')
            text[--len] = '\0';
    return steal_ptr(&text);
}

static bool find(struct account_file *f, const char *name, uint32_t id, struct agent_user *ret)
{
    AUTO(free_p) char *text = read_file(f->path);

    return text && f->find(text, name, id, ret);
}

/* Finds a name, and then a number. */
static bool find_any(struct account_file *f, const char *name, struct agent_user *ret)
{
    uint32_t id;

    if (!is_plain(name, OPS_NAME_MAX))
        return false;
    if (find(f, name, 0, ret))
        return true;
    if (!read_id(name, &id))
        return false;
    if (!find(f, NULL, id, ret)) { /* as in images: of group 0 */
        *ret = (struct agent_user){
            .uid = id, .gid = f == &groups ? id : 0, .home = "/", .shell = "/bin/sh"};
        snprintf(ret->name, sizeof(ret->name), "%u", id);
    }
    return true;
}

static const struct agent_user *find_fixed(const char *name)
{
    const struct agent_user *fixed = agent_user_find(name);
    uint32_t id;

    return fixed || !read_id(name, &id) ? fixed : agent_user_by_uid(id);
}

bool account_user(const char *name, struct agent_user *ret)
{
    const struct agent_user *fixed = find_fixed(name);

    if (!fixed)
        return find_any(&users, name, ret);
    *ret = *fixed;
    return true;
}

static int find_as_root(struct account_file *f, const char *what, const char *name,
                        struct agent_user *ret, struct sg_error *e)
{
    const struct agent_user *fixed = find_fixed(name);

    if (fixed) {
        *ret = *fixed;
        return 0;
    }
    AUTO(confine_fs_leave) int entered = confine_fs_begin(agent_user_find("root"));
    if (entered < 0)
        return err_internal(e, entered, "work as root");
    return find_any(f, name, ret)
               ? 0
               : err_set(e, SG_ERR_NOT_FOUND, -EUSERS, "the sandbox has no %s '%s'", what, name);
}

int agent_account_user(const char *name, struct agent_user *ret, struct sg_error *e)
{
    return find_as_root(&users, "user", name, ret, e);
}

int agent_account_group(const char *name, uint32_t *ret_gid, struct sg_error *e)
{
    struct agent_user found;
    int r = find_as_root(&groups, "group", name, &found, e);

    if (r == 0)
        *ret_gid = found.gid;
    return r;
}

/* ---- names of ids ---------------------------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void name_of(struct account_file *f, uint32_t id, char ret[OPS_NAME_MAX + 1])
{
    const struct agent_user *fixed = agent_user_by_uid(id); /* of groups, too */
    struct agent_user found;
    struct stat now = {0};
    size_t i;

    if (fixed) {
        snprintf(ret, OPS_NAME_MAX + 1, "%s", fixed->name);
        return;
    }
    if (stat(f->path, &now) < 0 || !same_file(&now, &f->was))
        f->n = 0;
    f->was = now;
    for (i = 0; i < f->n && i < MEMO; i++)
        if (f->memo[i].id == id)
            break;
    if (i == f->n || i == MEMO) {
        i = f->n++ % MEMO;
        f->memo[i].id = id;
        if (find(f, NULL, id, &found))
            memcpy(f->memo[i].name, found.name, sizeof(found.name));
        else
            snprintf(f->memo[i].name, sizeof(f->memo[i].name), "%u", id);
    }
    memcpy(ret, f->memo[i].name, sizeof(f->memo[i].name));
}

void account_user_name(uint32_t uid, char ret[OPS_NAME_MAX + 1])
{
    name_of(&users, uid, ret);
}

void account_group_name(uint32_t gid, char ret[OPS_NAME_MAX + 1])
{
    name_of(&groups, gid, ret);
}
