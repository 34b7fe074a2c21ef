/* The files of a running sandbox: freezes them, and gives the sandbox others. See "live fork" in
 * process.h, and warden/layers/layer_stack.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "warden/providers/process/process_impl.h"
#include "warden/host/child.h"
#include "warden/layers/mounts.h"

_Static_assert(LAYER_STACK_MAX > STACK_MAX, "room for the upper layer too");

static void layers_of(const struct stack *s, struct layer_stack_view *ret)
{
    *ret = (struct layer_stack_view){.n = stack_depth(s)};
    for (size_t k = 0; k < ret->n; k++) {
        ret->place = s->v[k]->scratch->place;
        ret->v[k].mount = s->v[k]->scratch->mount;
        ret->v[k].first_id = s->v[k]->scratch->first_id;
        ret->v[k].dir = s->v[k]->dir;
    }
}

static void add_upper(const struct scratch *s, const char *upper, struct layer_stack_view *ret)
{
    ret->place = s->place;
    ret->v[ret->n].mount = s->mount;
    ret->v[ret->n].first_id = s->first_id;
    ret->v[ret->n++].dir = upper;
}

static void layers(const struct instance *i, struct layer_stack_view *ret)
{
    layers_of(i->stack, ret);
    add_upper(i->scratch, i->upper, ret);
}

static void next_layers(const struct instance *i, struct layer_stack_view *ret)
{
    layers_of(i->move.stack, ret);
    add_upper(i->move.scratch, i->move.upper, ret);
}

static const struct stack *stack_of(const struct instance *i)
{
    return i->same ? i->same : i->stack;
}

static bool can_freeze(const struct instance *i)
{
    return i->scratch && i->scratch->shares;
}

/* ---- roots ----------------------------------------------------------------------------------- */

static int open_of_agent(const struct instance *i, const char *what, int flags, int *ret,
                         struct sg_error *e)
{
    int pid = child_pid(i->pidfd);
    char path[48];

    if (pid <= 0)
        return err_set(e, SG_ERR_GONE, -ESRCH, "the sandbox has ended");
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
    *ret = open(path, flags | O_CLOEXEC);
    return *ret < 0 ? err_errno(e, "open '%s'", path) : 0;
}

/* Whether the path is in a layer. No link of the sandbox's is followed. */
static bool is_in(int mount, const char *layer, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    AUTO(close_p) int top = openat(mount, layer, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(close_p) int fd = top < 0 ? -1 : sys_openat2(top, path, &how);

    return fd >= 0 || errno != ENOENT;
}

bool instance_python_changed(const struct instance *i)
{
    struct layer_stack_view layers;

    process_files.layers(i, &layers);
    for (size_t k = 0; k < layers.n; k++)
        if (world_is_changed_by(layers.v[k].mount, layers.v[k].dir) ||
            world_packages_are_changed_by(layers.v[k].mount, layers.v[k].dir) ||
            is_in(layers.v[k].mount, layers.v[k].dir, "home/user/.local/lib"))
            return true;
    return false;
}

/* Whether anything below the sandbox's next upper layer changes the /usr of its world. */
static bool changes_usr(const struct instance *i, const int *layer)
{
    const struct stack *s = i->move.stack;

    for (size_t k = 0; k < stack_depth(s); k++)
        if (world_is_changed_by(s->v[k]->scratch->mount, s->v[k]->dir))
            return true;
    return layer && world_is_changed_by(*layer, ".");
}

static void forget_next(struct instance *i)
{
    stack_free(steal_ptr(&i->move.stack));
    scratch_release(steal_ptr(&i->move.scratch));
}

/* Makes the upper layer of the sandbox's next root, on a scratch of its own. */
static int begin_move(struct instance *i, struct sg_error *e)
{
    const struct layer *top = stack_top(i->move.stack);
    int r = scratch_make_below(i->scratch, top, &i->move.scratch, e);

    if (r == 0)
        r = scratch_upper(i->move.scratch, top, i->move.upper, e);
    if (r < 0)
        forget_next(i);
    i->move.under_way = r == 0;
    return r;
}

static void moved_to(struct instance *i, bool moved);

static int make_root(struct instance *i, const int *layer, int *ret, struct sg_error *e)
{
    struct provider *p = i->provider;
    AUTO(close_p) int userns = -1;
    struct mounts_spec ls = {.template = &p->template,
                             .lowers = &p->slots[i->index].lowers,
                             .world = i->world ? i->world->mount : -1,
                             .layer = layer ? *layer : -1,
                             .first_id = instance_first_id(i),
                             .keep = true,
                             .user_marks = p->user_marks,
                             .late = &p->late,
                             .stack = i->move.stack,
                             .scratch = i->move.scratch,
                             .upper = i->move.upper};
    int r = open_of_agent(i, "ns/user", O_RDONLY, &userns, e);

    ls.userns = userns;
    if (r == 0)
        r = mounts_make_root(&ls, ret, e);
    if (r == 0 && i->world)
        i->bare |= changes_usr(i, layer);
    if (r < 0)
        moved_to(i, false);
    return r;
}

static int seal(struct instance *i, struct sg_error *e)
{
    AUTO(close_p) int fs = -1;

    if (i->old_root < 0)
        return 0;
    fs = sys_fspick(i->old_root);
    if (fs < 0 || sys_fsconfig_flag(fs, "ro") < 0)
        return err_errno(e, "seal a sandbox's files");
    if (sys_fsconfig_reconfigure(fs) == 0) {
        close_p(&i->old_root);
        return 0;
    }
    return errno == EBUSY ? err_set(e, SG_ERR_GONE, -EBUSY,
                                    "a file of the sandbox is open for writing, or deleted and in "
                                    "use: end the program that uses it, and try again")
                          : err_errno(e, "seal a sandbox's files");
}

static int check_can(const struct instance *i, struct sg_error *e)
{
    if (!can_freeze(i))
        return err_set(
            e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
            "sharing a sandbox's files needs Linux 6.3 or later, or disks that are not in memory");
    if (i->move.under_way)
        return err_set(e, SG_ERR_INTERNAL, -EALREADY,
                       "the sandbox is already changing to a new root");
    return 0;
}

static int freeze(struct instance *i, struct stack **ret, struct sg_error *e)
{
    struct layer *top;
    int r = check_can(i, e);

    /* An old root that could not be sealed before is in the stack, and may still be written to. */
    if (r == 0)
        r = seal(i, e);
    if (r == 0)
        r = scratch_is_empty(i->scratch, i->upper, e);
    if (r < 0)
        return r;
    i->shares = true;
    if (r == 1) {
        *ret = stack_copy(stack_of(i));
        return 1;
    }
    top = layer_new(i->scratch, i->upper);
    top->written = true; /* until the sandbox has moved */
    i->move.frozen = true;
    r = stack_push(stack_of(i), top, &i->move.stack, e);
    if (r == 0)
        r = begin_move(i, e);
    layer_release(top);
    if (r == 0)
        *ret = stack_copy(i->move.stack);
    return r;
}

static int take(struct instance *i, const struct stack *s, struct sg_error *e)
{
    int r = check_can(i, e);

    if (r < 0)
        return r;
    i->move.frozen = false;
    i->move.stack = stack_copy(s);
    return begin_move(i, e);
}

/* Keeps the old root open, to seal it later. */
static int root_send(struct instance *i, int root, bool clear, struct sg_error *e)
{
    struct line_message m = {
        .what = LINE_ROOT, .code = (clear ? LINE_ROOT_CLEAR : 0) | (i->bare ? LINE_ROOT_BARE : 0)};
    int fds[1 + STAGE_FIGURES] = {root};
    size_t n = 1;
    int r = 0;

    if (i->move.frozen)
        r = open_of_agent(i, "root", O_PATH | O_DIRECTORY, &i->old_root, e);
    if (r == 0 && i->move.scratch->place != i->scratch->place) {
        r = scratch_place_open_figures(i->move.scratch->place, fds + 1, e);
        n += r == 0 ? STAGE_FIGURES : 0;
    }
    if (r == 0)
        r = fd_set_nonblock(i->channel, true);
    if (r == 0) {
        r = ipc_send(i->channel, &m, sizeof(m), fds, n);
        if (r < 0)
            err_set(e, SG_ERR_GONE, r, "the sandbox cannot take a new root: %s", strerror(-r));
    }
    while (n > 0)
        close_p(&fds[--n]);
    return r;
}

static void moved_to(struct instance *i, bool moved)
{
    struct scratch *to = i->move.scratch, *from = moved ? i->scratch : to;
    char left[LAYER_NAME];

    if (!i->move.under_way)
        return;
    i->move.under_way = false;
    i->move.scratch = NULL;
    memcpy(left, moved ? i->upper : i->move.upper, sizeof(left));
    if (moved) {
        memcpy(i->upper, i->move.upper, sizeof(i->upper));
        i->scratch = to;
        stack_free(i->stack);
        stack_free(steal_ptr(&i->same));
        i->stack = steal_ptr(&i->move.stack);
        if (i->move.frozen)
            stack_top(i->stack)->written = false;
    } else {
        stack_free(steal_ptr(&i->move.stack));
    }
    /* The old root needs no seal: the sandbox went back, or it did not move. */
    if (moved != i->move.frozen)
        close_p(&i->old_root);
    if (!moved || !i->move.frozen)
        scratch_discard(from, left);
    (from == i->scratch ? scratch_release : scratch_leave)(from);
}

static void swap(struct instance *i, struct stack *s)
{
    stack_free(i->same);
    i->same = s;
}

int instance_mount(struct instance *i, int dir, const char *target, bool readonly,
                   struct sg_error *e)
{
    struct line_message m = {.what = LINE_MOUNT};
    AUTO(close_p) int userns = -1, tree = -1;
    int r = open_of_agent(i, "ns/user", O_RDONLY, &userns, e);

    snprintf(m.target, sizeof(m.target), "%s", target);
    if (r == 0)
        r = (readonly ? mounts_map_dir : mounts_map_writable)(dir, "a volume", userns, &tree, e);
    if (r == 0)
        r = fd_set_nonblock(i->channel, true);
    if (r == 0) {
        r = ipc_send(i->channel, &m, sizeof(m), &tree, 1);
        if (r < 0)
            err_set(e, SG_ERR_GONE, r, "the sandbox cannot take a mount: %s", strerror(-r));
    }
    return r;
}

void instance_files_done(struct instance *i)
{
    close_p(&i->old_root);
    forget_next(i);
    stack_free(steal_ptr(&i->stack));
    stack_free(steal_ptr(&i->same));
    scratch_leave(steal_ptr(&i->scratch));
    i->move.under_way = false;
}

const struct provider_files process_files = {
    .layers = layers,
    .layers_of = layers_of,
    .next_layers = next_layers,
    .can_freeze = can_freeze,
    .freeze = freeze,
    .take = take,
    .root = make_root,
    .root_send = root_send,
    .moved = moved_to,
    .seal = seal,
    .swap = swap,
    .stack = stack_of,
};
