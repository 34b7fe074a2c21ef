#include "warden/layers/template.h"

#include <assert.h>
#include <endian.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/hash.h"
#include "lib/base/sys.h"
#include "warden/host/domain.h"
#include "warden/layers/mounts.h"
#include "warden/layers/template_build.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* The pack is our own. */
bool template_next(const uint8_t **at, struct template_packed *ret)
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

/* Hashes the time at which this file of the host was changed, if it is there. */
static uint64_t hash_time(uint64_t h, const char *path)
{
    struct stat st;

    h = hash_stable(h, path, strlen(path) + 1);
    return stat(path, &st) == 0 ? hash_stable(h, &st.st_mtim, sizeof(st.st_mtim)) : h;
}

static const char *const fonts_inputs[] = {
    TEMPLATE_FONTS_MODULE,       "/usr/share/fonts",       "/usr/share/fonts/opentype",
    "/usr/share/fonts/truetype", "/usr/share/fonts/type1",
};

/* The hash of all that the template is made of: the hash in the pack, the times of the host's files
 * in it, and the first page of the sudo program, which contains its build id. */
static uint64_t content_hash(void)
{
    size_t sudo_len = (size_t)(sg_sudo_image_end - sg_sudo_image);
    uint64_t h = hash_stable(0, sg_sudo_image, sudo_len < 4096 ? sudo_len : 4096);
    const uint8_t *place = NULL;
    bool in_host = false;
    struct template_packed p;

    h = hash_stable(h, &sudo_len, sizeof(sudo_len));
    h = hash_stable(h, sg_template_image, TEMPLATE_HASH_LEN);
    while (template_next(&place, &p) && !(in_host && p.entry.mode != 0)) {
        in_host = p.entry.mode == 0;
        if (in_host)
            h = hash_time(h, p.path);
    }
    for (size_t i = 0; i < ARRAY_SIZE(fonts_inputs); i++)
        h = hash_time(h, fonts_inputs[i]);
    return h;
}

static int open_template(int top, const char *name, struct template *ret)
{
    AUTO(close_p) int at = openat(top, name, OPEN_DIR), root = -1, fixtures = -1;

    if (at < 0)
        return -errno;
    if (flock(at, LOCK_SH | LOCK_NB) < 0)
        return -EAGAIN; /* another process is removing it */
    root = openat(at, TEMPLATE_ROOT, OPEN_DIR);
    fixtures = openat(at, TEMPLATE_FIXTURES, OPEN_DIR);
    if (root < 0 || fixtures < 0)
        return -errno;
    ret->lock = steal_fd(&at);
    ret->dir = steal_fd(&root);
    ret->fixtures = steal_fd(&fixtures);
    return 0;
}

/* In memory that the child shares. */
struct outcome {
    int r;
    struct sg_error e;
};

/* Runs in the child. It keeps `top` open and no other descriptor: a copy of a lock or of a socket
 * would outlive this process. */
static void build(struct outcome *o, int userns, int top, const char *name)
{
    if (setgroups(0, NULL) < 0 || setns(userns, CLONE_NEWUSER) < 0 || setresgid(0, 0, 0) < 0 ||
        setresuid(0, 0, 0) < 0) {
        o->r = err_errno(&o->e, "enter the domain's user namespace");
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of ids would clear it */
    for (int fd = STDERR_FILENO + 1; fd <= top; fd = top + 1)
        sys_close_range((unsigned)fd, fd < top ? (unsigned)top - 1 : ~0U, 0);
    o->r = template_build(top, name, &o->e);
}

/* Has a child build the template that is nobody on the host, and waits for it. */
static int build_apart(const struct domain *d, int top, const char *name, struct sg_error *e)
{
    struct outcome *o =
        mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    AUTO(close_p) int userns = domain_open_userns(d, e), mapped = -1;
    pid_t pid = -1;
    int r = userns < 0 ? userns : mounts_map_writable(top, TEMPLATE_DIR, userns, &mapped, e);

    if (o == MAP_FAILED)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "no memory to share with a child");
    if (r == 0) {
        o->r = err_set(&o->e, SG_ERR_INTERNAL, -ECHILD, "the child that makes it was killed");
        pid = fork();
        r = pid < 0 ? err_errno(e, "start a child") : 0;
    }
    if (pid == 0) {
        build(o, userns, mapped, name);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (r == 0)
        r = o->r;
    if (r < 0 && pid > 0 && e)
        *e = o->e;
    munmap(o, sizeof(*o));
    return r;
}

static void set_name(char ret[128])
{
    snprintf(ret, 128, "template-" SG_VERSION "-%016llx", (unsigned long long)content_hash());
}

int template_open_made(struct template *ret, struct sg_error *e)
{
    struct template t = TEMPLATE_NONE;
    AUTO(close_p) int top = open(TEMPLATE_DIR, OPEN_DIR);
    char name[128];

    set_name(name);
    if (top < 0 || open_template(top, name, &t) < 0) {
        template_close(&t);
        return err_set(e, SG_ERR_LIMIT, -ENOENT,
                       "the template has not been made yet: create a sandbox first");
    }
    *ret = t;
    return 0;
}

int template_open(const struct domain *d, struct template *ret, struct sg_error *e)
{
    struct template t = TEMPLATE_NONE;
    AUTO(close_p) int top = -1;
    char name[128];
    int r;

    if (mkdir(TEMPLATE_DIR, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make '" TEMPLATE_DIR "' for the template");
    top = open(TEMPLATE_DIR, OPEN_DIR);
    t.host_usr = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = top < 0 || t.host_usr < 0 ? err_errno(e, "open '" TEMPLATE_DIR "' and /usr") : 0;
    set_name(name);
    if (r == 0 && open_template(top, name, &t) < 0) {
        r = build_apart(d, top, name, e);
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
    close_p(&t->lock);
    close_p(&t->dir);
    close_p(&t->fixtures);
    close_p(&t->host_usr);
}
