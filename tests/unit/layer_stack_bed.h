/* Sandboxes' files without sandboxes: real root overlays over a template of our own, frozen as the
 * warden does it. Root only. */
#pragma once

#include "tap.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/host/idmap.h"
#include "warden/layers/mounts.h"
#include "inside/files/layer_stack_carry.h"
#include "inside/files/layer_stack_merge.h"

#define FIRST_ID 0x30000000u

struct bed {
    struct scratch *base; /* the template is on it */
    int template, userns;
    struct lowers lowers;
};

struct sandbox {
    struct scratch *scratch;
    struct stack *stack;
    char upper[LAYER_NAME];
    int root;
};

/* What a sandbox does, its root does. Nobody else has an id on its files. */
static inline void inside(bool on)
{
    uint32_t id = on ? FIRST_ID : 0;

    EXPECT(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0);
    syscall(SYS_setfsgid, id);
    syscall(SYS_setfsuid, id);
}

static inline int bed_userns(void)
{
    struct clone_args args = {.flags = CLONE_NEWUSER};
    pid_t pid = sys_clone3(&args);
    char map[48], path[48];
    int fd;

    if (pid == 0)
        for (;;)
            pause();
    snprintf(map, sizeof(map), "0 %u 65536", FIRST_ID);
    EXPECT(pid > 0 && idmap_write(pid, map, map, NULL) == 0);
    snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    kill(pid, SIGKILL);
    EXPECT(waitpid(pid, NULL, __WALL) == pid);
    return fd;
}

static inline void bed_begin(struct bed *b)
{
    *b = (struct bed){.lowers = LOWERS_NONE, .userns = bed_userns()};
    EXPECT(scratch_make(0, 0, &b->base, NULL) == 0);
    EXPECT(mkdirat(b->base->mount, "template", 0755) == 0);
    b->template = openat(b->base->mount, "template", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(mounts_map_dir(b->template, "template", b->userns, &b->lowers.template, NULL) == 0);
}

static inline void bed_end(struct bed *b)
{
    lowers_close(&b->lowers);
    close(b->template);
    close(b->userns);
    scratch_release(b->base);
}

static inline int bed_root(const struct bed *b, struct scratch *s, const char *upper,
                           const struct stack *stack)
{
    const struct template template = {.dir = b->template};
    struct mounts_spec spec = {.template = &template,
                               .lowers = &b->lowers,
                               .world = -1,
                               .layer = -1,
                               .userns = b->userns,
                               .first_id = FIRST_ID,
                               .keep = true,
                               .user_marks = true,
                               .stack = stack,
                               .scratch = s,
                               .upper = upper};
    struct sg_error e = {0};
    int fd = -1;

    EXPECT(mounts_make_root(&spec, &fd, &e) == 0);
    EXPECT_STR(e.message, "");
    return fd;
}

static inline int carry(const struct sandbox *x, const char *path, struct carry_budget *left)
{
    struct carry_stack from = {.n = stack_depth(x->stack)};

    for (size_t i = 0; i < from.n; i++)
        from.v[i] = (struct carry_layer){.mount = x->stack->v[i]->scratch->mount,
                                         .dir = x->stack->v[i]->dir};
    return layer_stack_carry(&from, x->scratch->mount, x->upper, path, left, NULL);
}

/* On a stack of somebody's, or NULL; paths: what its processes have open, up to a NULL. */
static inline void sandbox_begin(struct sandbox *x, const struct bed *b, const struct stack *stack,
                                 const char *const *paths)
{
    *x = (struct sandbox){.stack = stack_copy(stack)};
    EXPECT(scratch_make(0, 0, &x->scratch, NULL) == 0);
    EXPECT(scratch_upper(x->scratch, stack_top(stack), x->upper, NULL) == 0);
    for (; paths && *paths; paths++)
        EXPECT(carry(x, *paths, &(struct carry_budget)CARRY_BUDGET) == 0);
    x->root = bed_root(b, x->scratch, x->upper, x->stack);
}

/* Its upper layer becomes a layer. */
static inline void sandbox_freeze(struct sandbox *x, const struct bed *b, const char *const *paths)
{
    struct layer *top = layer_new(x->scratch, x->upper);
    struct stack *stack = NULL;

    EXPECT(stack_push(x->stack, top, &stack, NULL) == 0);
    layer_release(top);
    stack_free(x->stack);
    x->stack = stack;
    EXPECT(scratch_upper(x->scratch, stack_top(stack), x->upper, NULL) == 0);
    for (; paths && *paths; paths++)
        EXPECT(carry(x, *paths, &(struct carry_budget)CARRY_BUDGET) == 0);
    close(x->root);
    x->root = bed_root(b, x->scratch, x->upper, x->stack);
}

static inline void sandbox_end(struct sandbox *x)
{
    close(x->root);
    stack_free(x->stack);
    scratch_release(x->scratch);
}

/* n layers of the sandbox's stack from `first` on become one; a root over it follows with the next
 * freeze. uppers: n_uppers descriptors. */
static inline int sandbox_merge(struct sandbox *x, size_t first, size_t n, const char *name,
                                const int *uppers, size_t n_uppers, struct sg_error *e)
{
    const char *dirs[STACK_MAX];
    struct layer_stack_merge m = {.scratch = x->scratch->mount,
                                  .dirs = dirs,
                                  .n = n,
                                  .uppers = uppers,
                                  .n_uppers = n_uppers,
                                  .aside = "aside",
                                  .name = name};
    struct stack *old = x->stack;
    int r;

    for (size_t i = 0; i < n; i++)
        dirs[i] = old->v[first + i]->dir;
    r = layer_stack_merge(&m, e);
    if (r < 0)
        return r;
    x->stack = xcalloc(1, sizeof(*x->stack));
    for (size_t i = 0; i < old->n; i++) {
        if (i == first)
            x->stack->v[x->stack->n++] = layer_new(x->scratch, name);
        if (i < first || i >= first + n)
            x->stack->v[x->stack->n++] = layer_use(old->v[i]);
    }
    stack_free(old);
    return 0;
}

static inline ino_t inode_of(int dir, const char *path)
{
    struct stat st = {0};

    EXPECT(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0);
    return st.st_ino;
}

static inline void put_text(int dir, const char *path, const char *text)
{
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    EXPECT(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

static inline bool holds(int dir, const char *path, const char *text)
{
    AUTO(free_p) char *got = NULL;

    return file_read(dir, path, 1u << 20, &got, NULL) == 0 && strcmp(got, text) == 0;
}

static inline bool is_absent(int dir, const char *path)
{
    struct stat st;

    return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}
