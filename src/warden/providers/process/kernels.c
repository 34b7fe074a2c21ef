/* Kernels that the domain's broker makes (inside/broker/twin.h): asks for them, and hands them to
 * agents. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "warden/providers/process/process_impl.h"
#include "warden/host/child.h"
#include "inside/broker/twin.h"

_Static_assert(TWIN_FDS_MAX <= ENDS_MAX, "room for what goes along with a request");

#define LAST_WORDS 160

void ends_close(struct ends *s)
{
    for (size_t i = 0; i < s->n; i++)
        close_p(&s->fds[i]);
}

static int broker_open(struct provider *p, struct sg_error *e)
{
    int r = domain_start_broker(&p->domain, e);

    return r < 0 ? r : fd_set_nonblock(p->domain.broker_sock, true);
}

static int broker_fd(const struct provider *p)
{
    return p->domain.broker_sock;
}

/* The agent's pid is safe to use: it is a child that has not been reaped. */
static int add_namespaces(const struct instance *i, const char *const *names, size_t n,
                          struct ends *s, struct sg_error *e)
{
    int pid = child_pid(i->pidfd);
    char path[48];

    if (pid <= 0)
        return err_set(e, SG_ERR_GONE, -ESRCH, "the sandbox has ended");
    for (size_t k = 0; k < n; k++) {
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, names[k]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return err_errno(e, "open '%s'", path);
        s->fds[s->n++] = fd;
    }
    return 0;
}

static int add_doors(struct instance *i, struct ends *s, uint32_t *ret_n, struct sg_error *e)
{
    struct cgroup *cg = i->provider->slots[i->index].cgroup;
    struct cgroup_doors doors = {.n = 0};
    int r = cg->ops->open_doors(cg, &doors, e);

    if (r < 0)
        return r;
    memcpy(s->fds + s->n, doors.fds, doors.n * sizeof(doors.fds[0]));
    s->n += doors.n;
    *ret_n = (uint32_t)doors.n;
    return 0;
}

int broker_send(struct provider *p, const struct twin_request *q, const struct ends *s,
                struct sg_error *e)
{
    int r = ipc_send(p->domain.broker_sock, q, sizeof(*q), s->fds, s->n);

    if (r == -EPIPE || r == -ECONNRESET) /* it has not been noticed yet */
        return err_set(e, SG_ERR_LIMIT, r, "the broker of the tenant has ended: try again");
    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r, "ask the broker: %s", strerror(-r)) : 0;
}

static int zygote_ask(struct provider *p, struct instance *home, const char *imports, bool plain,
                      struct sg_error *e)
{
    static const char *const names[TWIN_ZYGOTE_FDS] = {
        [TWIN_Z_MNT] = "mnt", [TWIN_Z_NET] = "net", [TWIN_Z_IPC] = "ipc", [TWIN_Z_UTS] = "uts"};
    AUTO(ends_close) struct ends s = {.n = 0};
    struct twin_request q = {.magic = TWIN_MAGIC,
                             .op = TWIN_ZYGOTE,
                             .seq = ++p->kernel_seq,
                             .plain = plain,
                             .cpus = home->cpus,
                             .first_id = (home->index + 1) * SLOT_IDS};
    int r = add_namespaces(home, names, ARRAY_SIZE(names), &s, e);

    if (r == 0)
        r = add_doors(home, &s, &q.n_doors, e);
    if (r < 0)
        return r;
    snprintf(q.imports, sizeof(q.imports), "%s", imports);
    r = broker_send(p, &q, &s, e);
    if (r == 0) {
        home->kernel_asked = q.seq;
        p->home = home;
    }
    return r;
}

/* Makes the kernel's control socket and output pipes: the kernel's ends go into `s`, the host's
 * into the instance. */
static int make_ends(struct instance *i, struct ends *s, struct sg_error *e)
{
    int p[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0)
        return err_errno(e, "make a kernel's socket");
    i->kernel_ends[0] = p[0];
    s->fds[s->n++] = p[1];
    for (int k = 1; k < 3; k++) {
        if (pipe2(p, O_CLOEXEC) < 0)
            return err_errno(e, "make a kernel's output");
        i->kernel_ends[k] = p[0];
        s->fds[s->n++] = p[1];
    }
    return 0;
}

static void drop_ends(struct instance *i)
{
    for (size_t k = 0; k < ARRAY_SIZE(i->kernel_ends); k++)
        close_p(&i->kernel_ends[k]);
    ends_close(&i->kernel_with);
    i->kernel_with.n = 0;
    close_p(&i->kept_kernel);
    i->kernel_asked = 0;
}

static int gather(struct instance *i, struct sg_error *e)
{
    static const char *const names[] = {
        [TWIN_K_USER] = "user",    [TWIN_K_MNT] = "mnt", [TWIN_K_PID] = "pid",
        [TWIN_K_NET] = "net",      [TWIN_K_IPC] = "ipc", [TWIN_K_UTS] = "uts",
        [TWIN_K_CGROUP] = "cgroup"};
    struct ends *s = &i->kernel_with;
    int r;

    if (i->kernel_asked || s->n > 0)
        return 0;
    r = add_namespaces(i, names, ARRAY_SIZE(names), s, e);
    if (r == 0)
        r = make_ends(i, s, e);
    if (r == 0)
        r = add_doors(i, s, &i->kernel_doors, e);
    if (r < 0)
        drop_ends(i);
    return r;
}

/* The pid in a request is that of the frozen kernel; the agent is told of it only if it has variables of a user's. */
static int ask_kernel(struct instance *i, struct twin_request *q, bool used, struct sg_error *e)
{
    struct provider *p = i->provider;
    int r;

    q->magic = TWIN_MAGIC;
    q->op = TWIN_KERNEL;
    q->seq = ++p->kernel_seq;
    q->owner = instance_serial(i);
    q->pids = i->pids;
    q->disk_bytes = i->disk_bytes;
    if (i->kernel_asked)
        return err_set(e, SG_ERR_INVALID, -EALREADY, "the sandbox already waits for a kernel");
    r = gather(i, e);
    if (r < 0)
        return r;
    q->n_doors = i->kernel_doors;
    r = broker_send(p, q, &i->kernel_with, e);
    if (r < 0) {
        drop_ends(i);
        return r;
    }
    ends_close(&i->kernel_with);
    i->kernel_with.n = 0;
    i->kernel_asked = q->seq;
    i->copied_frozen_kernels = q->frozen_kernels;
    i->copied_was = used ? q->was : 0;
    i->copied_last = (q->flags & TWIN_LAST) != 0;
    return 0;
}

static int kernel_ask(struct instance *i, uint64_t frozen_kernels, int32_t was, struct sg_error *e)
{
    struct twin_request q = {.frozen_kernels = frozen_kernels, .was = was};

    return ask_kernel(i, &q, false, e);
}

static int kernel_copy(struct instance *i, uint64_t frozen_kernels, int32_t was, bool last,
                       struct sg_error *e)
{
    struct twin_request q = {
        .frozen_kernels = frozen_kernels, .was = was, .flags = last ? TWIN_LAST : 0};

    return ask_kernel(i, &q, true, e);
}

/* ---- an interpreter that becomes a zygote ---------------------------------------------------- */

static int load(struct instance *home, const char *imports, struct sg_error *e)
{
    struct twin_request q = {
        .flags = TWIN_FRESH, .cpus = home->cpus, .first_id = (home->index + 1) * SLOT_IDS};
    int r;

    snprintf(q.imports, sizeof(q.imports), "%s", imports);
    r = ask_kernel(home, &q, false, e);
    home->keeps_kernel = home->loads = r == 0;
    return r;
}

static int loading(const struct instance *home)
{
    return home->kernel_ends[0];
}

/* The last line that it wrote to its standard error, of which a stranger chose each byte. */
static void last_words(const struct instance *home, char ret[LAST_WORDS])
{
    char text[4096], *line;
    ssize_t n = fd_set_nonblock(home->kernel_ends[2], true) < 0
                    ? 0
                    : read(home->kernel_ends[2], text, sizeof(text) - 1);

    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n > 0 ? n : 0] = '\0';
    line = strrchr(text, '\n');
    snprintf(ret, LAST_WORDS, "%.*s", LAST_WORDS - 1, line ? line + 1 : text);
    for (char *c = ret; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static int loaded(struct instance *home, int32_t *ret_was, struct sg_error *e)
{
    char word, words[LAST_WORDS];
    ssize_t n = recv(home->kernel_ends[0], &word, 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    if (n == 1 && word == 'Q') {
        *ret_was = home->kept_pid;
        return 0;
    }
    last_words(home, words);
    return err_set(e, SG_ERR_UNSUPPORTED, -ENOEXEC, "its Python cannot be used%s%s",
                   words[0] ? ": " : "", words);
}

static void unload(struct instance *home)
{
    child_kill(home->kept_kernel);
    drop_ends(home);
}

static bool has_kernel(const struct instance *i)
{
    return i->kernel_asked != 0 || i->n_twins > 0;
}

static bool is_pending(const struct instance *i)
{
    return i->kernel_asked != 0;
}

/* ---- news of the broker ---------------------------------------------------------------------- */

static struct instance *asked_by(struct provider *p, uint64_t seq)
{
    for (uint32_t n = 0; seq > 0 && n < p->n_slots; n++)
        if (p->slots[n].used_by && p->slots[n].used_by->kernel_asked == seq)
            return p->slots[n].used_by;
    return NULL;
}

static bool twin_is_dead(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

bool instance_drop_dead_twins(struct instance *i)
{
    size_t n = 0;

    for (size_t k = 0; k < i->n_twins; k++) {
        if (twin_is_dead(i->twins[k]))
            close(i->twins[k]);
        else
            i->twins[n++] = i->twins[k];
    }
    i->n_twins = n;
    while (i->n_twins < ARRAY_SIZE(i->twins)) {
        int frozen_kernels = frozen_kernels_wait_for(i);
        if (frozen_kernels < 0)
            break;
        if (twin_is_dead(frozen_kernels))
            close(frozen_kernels);
        else
            i->twins[i->n_twins++] = frozen_kernels;
    }
    return i->n_twins == 0 && i->hold_asked == 0;
}

void instance_kill_twins(struct instance *i)
{
    for (size_t k = 0; k < i->n_twins; k++)
        child_kill(i->twins[k]);
    frozen_kernels_kill_of(i);
    drop_ends(i);
}

void instance_forget_twins(struct instance *i)
{
    while (i->n_twins > 0)
        close(i->twins[--i->n_twins]);
    frozen_kernels_forget(i);
}

/* Never waits for the line: an agent that does not read it has no use for kernels either. */
static int tell_agent(struct instance *i, const struct line_message *m, const int *fds, size_t n,
                      struct sg_error *e)
{
    int r = fd_set_nonblock(i->channel, true);

    if (r == 0)
        r = ipc_send(i->channel, m, sizeof(*m), fds, n);
    return r < 0 ? err_set(e, SG_ERR_GONE, r, "the sandbox cannot take a kernel: %s", strerror(-r))
                 : 0;
}

static int refuse(struct instance *i, struct sg_error *e)
{
    return tell_agent(i, &(struct line_message){.what = LINE_NO_KERNEL}, NULL, 0, e);
}

static bool keep_twin(struct instance *i, int *pidfd)
{
    instance_drop_dead_twins(i);
    if (i->n_twins == ARRAY_SIZE(i->twins))
        return false;
    i->twins[i->n_twins++] = steal_fd(pidfd);
    return true;
}

static int give(struct instance *i, int32_t pid, int pidfd, struct sg_error *e)
{
    int all[LINE_FDS_MAX] = {i->kernel_ends[0], i->kernel_ends[1], i->kernel_ends[2], pidfd};
    struct line_message m = {.what = LINE_KERNEL, .pid = pid, .was = i->copied_was};

    return tell_agent(i, &m, all, ARRAY_SIZE(all), e);
}

/* Hands a kernel to the agent. fds: pidfds of K and H (inside/broker/twin.h); those taken become
 * -1. */
static int hand_over(struct instance *i, const struct twin_reply *reply, int *fds,
                     struct sg_error *e)
{
    if (!keep_twin(i, &fds[1]))
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "the sandbox already has %zu kernels",
                       ARRAY_SIZE(i->twins));
    if (!i->keeps_kernel)
        return give(i, reply->pid, fds[0], e);
    i->kept_kernel = steal_fd(&fds[0]);
    i->kept_pid = reply->pid;
    return 0;
}

static void keep(struct instance *i)
{
    i->keeps_kernel = true;
}

static int hand_over_kept(struct instance *i, struct sg_error *e)
{
    int r;

    i->keeps_kernel = false;
    if (i->kept_kernel < 0)
        return 0;
    r = give(i, i->kept_pid, i->kept_kernel, e);
    if (r < 0)
        child_kill(i->kept_kernel);
    drop_ends(i);
    return r < 0 ? r : 1;
}

int broker_judge(const struct twin_reply *reply, struct sg_error *e)
{
    bool known = reply->kind > SG_ERR_NONE && reply->kind < SG_ERR_MAX_;

    if (reply->code == 0)
        return 0;
    return err_set(e, known ? (enum sg_error_kind)reply->kind : SG_ERR_INTERNAL,
                   reply->code < 0 ? reply->code : -EIO, "%.255s", reply->message);
}

/* Kills a new kernel that nobody has: its sandbox has ended meanwhile, or cannot take it. */
static void kill_both(const int *fds, size_t n)
{
    for (size_t k = 0; k < n; k++)
        child_kill(fds[k]);
}

/* The zygote counts as one of the home's processes, too. */
static void take_begun(struct provider *p, const struct twin_reply *reply, int *fds, size_t n)
{
    struct instance *home = asked_by(p, reply->seq);

    if (n == 1 && !(home && keep_twin(home, fds)))
        child_kill(fds[0]);
    if (home)
        home->kernel_asked = 0;
}

static int take_kernel(struct provider *p, const struct twin_reply *reply, int *fds, size_t n,
                       struct kernel_news *ret, struct sg_error *e)
{
    struct instance *i = asked_by(p, reply->seq);
    int r = broker_judge(reply, e);

    *ret = (struct kernel_news){.kind = NEWS_KERNEL, .instance = i, .report = -1, .written = -1};
    if (r == 0 && n != 2)
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "the broker sent %zu descriptors", n);
    if (r == 0 && i && i->copied_last)
        frozen_kernels_used_up(p, i->copied_frozen_kernels, i->copied_was);
    if (r == 0 && !i)
        r = err_set(e, SG_ERR_GONE, -ESRCH, "the sandbox has ended");
    if (r == 0)
        r = hand_over(i, reply, fds, e);
    if (r < 0)
        kill_both(fds, n);
    if (i && i->keeps_kernel && !i->loads)
        ret->kind = NEWS_NONE;
    if (i && i->kept_kernel < 0)
        drop_ends(i);
    return r;
}

/* Forgets all requests, since the broker will not answer any more. */
static void forget_asked(struct provider *p)
{
    struct sg_error e;

    frozen_kernels_gone(p);
    for (uint32_t n = 0; n < p->n_slots; n++) {
        struct instance *i = p->slots[n].used_by;
        if (!i || !i->kernel_asked)
            continue;
        drop_ends(i);
        refuse(i, &e);
    }
}

static int take_reply(struct provider *p, const struct twin_reply *reply, int *fds, size_t n,
                      struct kernel_news *ret, struct sg_error *e)
{
    switch (reply->op) {
    case TWIN_KERNEL:
        return take_kernel(p, reply, fds, n, ret, e);
    case TWIN_BEGUN:
        take_begun(p, reply, fds, n);
        return 0;
    case TWIN_HOLD:
        return frozen_kernels_take_held(p, reply, fds, n, ret, e);
    case TWIN_STILL:
        frozen_kernels_take_still(p, reply, fds, n, ret);
        return 0;
    case TWIN_GO:
        return frozen_kernels_take_went(p, reply, ret, e);
    case TWIN_LOST:
        frozen_kernels_take_lost(p, reply->frozen_kernels, ret);
        return 0;
    case TWIN_BEAT:
        return 0;
    default:
        ret->kind = NEWS_ZYGOTE;
        return broker_judge(reply, e);
    }
}

/* A broker that was taken over may send anything. Reading from a pipe or an eventfd would make the
 * warden wait for it. A descriptor may be missing: the warden has no number left for it. */
static bool is_proper(const struct twin_reply *reply, const struct ipc_fds *fds)
{
    static const size_t held[] = {TWIN_REPORT_MAX, TWIN_WRITTEN_MAX};

    if (reply->op == TWIN_STILL && fds->n > 0)
        return fd_check_memfd(fds->at[0], TWIN_WRITTEN_MAX) == 0;
    for (size_t k = 0; reply->op == TWIN_HOLD && k < ARRAY_SIZE(held) && k < fds->n; k++)
        if (fd_check_memfd(fds->at[k], held[k]) < 0)
            return false;
    return true;
}

static int take_news(struct provider *p, struct kernel_news *ret, struct sg_error *e)
{
    struct twin_reply reply;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = TWIN_HELD_FDS + TWIN_KERNELS_MAX};
    ssize_t got =
        ipc_take(p->domain.broker_sock, TWIN_MAGIC, &reply, sizeof(reply), sizeof(reply), &fds);

    *ret = (struct kernel_news){.kind = NEWS_NONE, .report = -1, .written = -1};
    if (got == -EAGAIN)
        return -EAGAIN;
    if (got < 0 || !is_proper(&reply, &fds)) {
        ret->kind = NEWS_GONE;
        forget_asked(p);
        return err_set(e, SG_ERR_INTERNAL, -EPIPE, "the broker of a domain has ended");
    }
    reply.message[sizeof(reply.message) - 1] = '\0';
    return take_reply(p, &reply, fds.at, fds.n, ret, e);
}

int instance_line_take(struct instance *i, enum line_news *ret, int *ret_code)
{
    struct line_message m;
    ssize_t n = recv(i->channel, &m, sizeof(m), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    if (n != (ssize_t)sizeof(m) ||
        (m.what != LINE_KERNEL && m.what != LINE_ROOT && m.what != LINE_MOUNT))
        return -EPROTO;
    *ret = m.what == LINE_ROOT    ? LINE_ROOT_DONE
           : m.what == LINE_MOUNT ? LINE_MOUNT_DONE
                                  : LINE_WANTS_KERNEL;
    *ret_code = m.code;
    return 0;
}

const struct provider_kernels process_kernels = {
    .open = broker_open,
    .fd = broker_fd,
    .take = take_news,
    .zygote = zygote_ask,
    .load = load,
    .loading = loading,
    .loaded = loaded,
    .unload = unload,
    .python_changed = instance_python_changed,
    .ask = kernel_ask,
    .refuse = refuse,
    .has = has_kernel,
    .pending = is_pending,
    .gather = gather,
    .keep = keep,
    .hand_over = hand_over_kept,
    .copy = kernel_copy,
};
