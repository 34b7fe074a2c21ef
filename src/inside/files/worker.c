#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "inside/files/files.h"
#include "inside/files/layer_diff.h"
#include "inside/files/layer_file.h"
#include "inside/files/layer_stack_carry.h"
#include "inside/files/layer_stack_merge.h"
#include "lib/ipc/ipc.h"

#define PATHS_MAX (256u << 10) /* bytes: more than a carry_budget allows */

_Static_assert(FILES_MOUNTS_MAX < IPC_FDS_MAX, "all descriptors go with one message");

/* Opens the directories from `from` on. */
static int open_layers(const struct files_request *q, const int *fds, size_t from, size_t n,
                       int ret[FILES_LAYERS_MAX], struct sg_error *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct files_layer *l = &q->v[from + i];
        ret[i] = openat(fds[l->mount], l->dir, LAYER_DIR_FLAGS);
        if (ret[i] < 0)
            return err_errno(e, "open a layer");
    }
    return 0;
}

static int merge(const struct files_request *q, const int *fds, struct sg_error *e)
{
    const char *dirs[FILES_LAYERS_MAX];
    int uppers[FILES_LAYERS_MAX];
    struct layer_stack_merge m = {.scratch = fds[0],
                                  .dirs = dirs,
                                  .n = q->n_layers,
                                  .uppers = uppers,
                                  .n_uppers = q->n_uppers,
                                  .aside = q->aside,
                                  .name = q->name};

    for (size_t i = 0; i < q->n_layers; i++)
        dirs[i] = q->v[i].dir;
    int r = open_layers(q, fds, q->n_layers, q->n_uppers, uppers, e);
    return r < 0 ? r : layer_stack_merge(&m, e);
}

static int carry(const struct files_request *q, const int *fds, struct sg_error *e)
{
    AUTO(free_p) char *paths = xcalloc(1, PATHS_MAX + 1);
    struct carry_stack from = {.n = q->n_layers - 1};
    const struct files_layer *upper = &q->v[q->n_layers - 1];
    struct carry_budget left = CARRY_BUDGET;
    ssize_t len = pread(fds[q->n_mounts], paths, PATHS_MAX, 0);
    const char *end;
    int r = 0;

    if (len < 0)
        return err_errno(e, "read the list of files that kernels write to");
    for (size_t i = 0; i < from.n; i++)
        from.v[i] = (struct carry_layer){.mount = fds[q->v[i].mount], .dir = q->v[i].dir};
    for (const char *p = paths; r == 0 && left.files > 0; p = end + 1) {
        end = memchr(p, '\0', (size_t)(paths + len - p));
        if (!end) /* the last, or a path that was cut off */
            break;
        r = layer_stack_carry(&from, fds[upper->mount], upper->dir, p, &left, e);
    }
    return r;
}

static int diff(const struct files_request *q, const int *fds, struct sg_error *e)
{
    int of[FILES_LAYERS_MAX], against[FILES_LAYERS_MAX];
    struct layer_diff d = {.of = {of, q->n_layers},
                           .against = {against, q->n_uppers},
                           .owners = !(q->flags & FILES_TRUSTED),
                           .list = fds[q->n_mounts]};
    int r = open_layers(q, fds, 0, q->n_layers, of, e);

    if (r == 0)
        r = open_layers(q, fds, q->n_layers, q->n_uppers, against, e);
    return r < 0 ? r : layer_diff_write(&d, e);
}

/* Removes all that it can, and tells of the last that it cannot. */
static int remove_all(const struct files_request *q, const int *fds, struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; i < q->n_layers; i++) {
        int one = layer_stack_remove(fds[q->v[i].mount], q->v[i].dir, e);
        r = one < 0 ? one : r;
    }
    return r;
}

static int work(const struct files_request *q, const int *fds, uint64_t *ret_bytes,
                struct sg_error *e)
{
    switch ((enum files_op)q->op) {
    case FILES_SAVE:
        return files_save(q, fds, ret_bytes, e);
    case FILES_MERGE:
        return merge(q, fds, e);
    case FILES_CARRY:
        return carry(q, fds, e);
    case FILES_REMOVE:
        return remove_all(q, fds, e);
    case FILES_DIFF:
        return diff(q, fds, e);
    case FILES_OP_MAX_:
        break;
    }
    return -EPROTO;
}

/* The warden is trusted; a request that is not as the contract says is a bug, and not worked on. */
static bool is_sound(const struct files_request *q, const struct ipc_fds *fds)
{
    size_t n = (size_t)q->n_layers + q->n_uppers,
           more = q->op == FILES_CARRY || q->op == FILES_DIFF;

    if (q->magic != FILES_MAGIC || q->op >= FILES_OP_MAX_ || q->n_layers > FILES_LAYERS_MAX ||
        n > FILES_LAYERS_MAX || q->n_mounts == 0 || fds->n != q->n_mounts + more ||
        (q->op == FILES_CARRY && q->n_layers == 0))
        return false;
    for (size_t i = 0; i < n; i++)
        if (q->v[i].mount >= q->n_mounts)
            return false;
    return true;
}

int files_main(void)
{
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = IPC_FDS_MAX};
    AUTO(free_p) struct files_request *q = xcalloc(1, sizeof(*q));
    struct files_answer a = {.magic = FILES_MAGIC};
    struct sg_error e = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ipc_recv(FILES_FD, q, sizeof(*q), &fds) != (ssize_t)sizeof(*q) || !is_sound(q, &fds))
        return 1;
    layer_use_marks((q->flags & FILES_TRUSTED) != 0);
    a.code = files_confine(fds.at[0], (q->flags & FILES_TRUSTED) != 0, q->deadline_s, &e);
    if (a.code == 0)
        a.code = work(q, fds.at, &a.bytes, &e);
    a.kind = (int32_t)e.kind;
    snprintf(a.message, sizeof(a.message), "%.255s", a.code < 0 ? e.message : "");
    return ipc_send(FILES_FD, &a, sizeof(a), NULL, 0) < 0;
}
