/* A provider without processes: everything it has is memory and eventfds. It does at once what it
 * is asked, unless `fake` says that something waits or fails. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "warden/layers/layer_stack.h"
#include "warden/providers/provider.h"

#define FAKE_MAX 64

struct provider {
    struct provided head;
    uint32_t max, n;
    int spawner, broker;
    struct kernel_news news[FAKE_MAX];
    int news_r[FAKE_MAX];
    size_t n_news;
    struct instance *all[FAKE_MAX];
};

struct instance {
    struct provided head;
    struct provider *provider;
    int line, process;
    bool finished, up, paused, ended, pending, roots;
    unsigned mounts; /* asked for and not answered */
    int root_code, mount_code;
};

/* Everything that a provider can do wrong, or late. */
enum fake_fault {
    FAKE_OPEN,
    FAKE_BEGIN,
    FAKE_FINISH,
    FAKE_BROKEN, /* finish: the spawner has ended */
    FAKE_START,
    FAKE_CONNECT,
    FAKE_PAUSE,
    FAKE_LIMIT, /* pause: only a limit */
    FAKE_LOST,  /* ended: the slot is lost */
    FAKE_HOLD,
    FAKE_COPY,
    FAKE_FREEZE,
    FAKE_TAKE,
    FAKE_ROOT,
    FAKE_SEAL,
    FAKE_SAVE,
    FAKE_MAKE_ROOT,
    FAKE_WORKER,
    FAKE_MOUNT,  /* cannot be asked for */
    FAKE_ATTACH, /* the agent says so */
    FAKE_MAX_FAULT
};

static struct {
    uint32_t fails; /* bits of faults; each fails once */
    bool no_word, no_root, no_mount, no_news, no_end, never_still; /* what waits */
    bool no_spawner;                       /* each has ended by the finish */
    bool open_files;                       /* kernels have some */
    unsigned providers, instances, stacks; /* that are there */
} fake;

static bool fake_fails(enum fake_fault f)
{
    bool fails = fake.fails & 1u << f;

    fake.fails &= ~(1u << f);
    return fails;
}

static int fake_error(enum fake_fault f, int r, struct sg_error *e)
{
    return fake_fails(f) ? err_set(e, err_kind_of(-r), r, "fault %d", f) : 0;
}

static void fake_signal(int fd, bool on)
{
    uint64_t n = 1;

    if (on)
        (void)!write(fd, &n, sizeof(n));
    else
        (void)!read(fd, &n, sizeof(n));
}

/* ---- the core -------------------------------------------------------------------------------- */

extern const struct provider_ops fake_provider;

static int fake_probe(struct sg_error *e)
{
    (void)e;
    return 0;
}

static int fake_open(const struct provider_setup *setup, struct provider **ret, struct sg_error *e)
{
    struct provider *p;
    int r = fake_error(FAKE_OPEN, -EMFILE, e);

    if (r < 0)
        return r;
    p = xcalloc(1, sizeof(*p));
    p->head.ops = &fake_provider;
    p->max = setup->max_instances < FAKE_MAX ? setup->max_instances : FAKE_MAX;
    p->spawner = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    p->broker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    fake.providers++;
    *ret = p;
    return 0;
}

static void fake_free(struct instance *i)
{
    struct provider *p = i->provider;

    for (uint32_t k = 0; k < p->n; k++)
        if (p->all[k] == i)
            p->all[k] = p->all[--p->n];
    for (size_t k = 0; k < p->n_news; k++)
        if (p->news[k].instance == i)
            p->news[k].instance = NULL;
    close(i->line);
    close(i->process);
    fake.instances--;
    free(i);
}

static int fake_close(struct provider *p, struct sg_error *e)
{
    (void)e;
    while (p->n > 0)
        fake_free(p->all[0]);
    close(p->spawner);
    close(p->broker);
    free(p);
    fake.providers--;
    return 0;
}

static int fake_limit_memory(struct provider *p, uint64_t bytes, struct sg_error *e)
{
    (void)p, (void)bytes, (void)e;
    return 0;
}

static uint64_t fake_memory(const struct provider *p)
{
    (void)p;
    return 0;
}

static uint64_t fake_ooms(struct provider *p)
{
    (void)p;
    return 0;
}

static bool fake_idle(struct provider *p)
{
    (void)p;
    return false;
}

static bool fake_trim(struct provider *p, uint64_t before_ns)
{
    (void)p, (void)before_ns;
    return false;
}

static int fake_begin(struct provider *p, struct instance **ret, struct sg_error *e)
{
    struct instance *i;
    int r = fake_error(FAKE_BEGIN, -EMFILE, e);

    if (r == 0 && p->n == p->max)
        r = err_set(e, SG_ERR_LIMIT, -ENOSPC, "no room");
    if (r < 0)
        return r;
    i = xcalloc(1, sizeof(*i));
    *i = (struct instance){.head.ops = &fake_provider, .provider = p};
    i->line = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    i->process = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    p->all[p->n++] = i;
    fake.instances++;
    fake_signal(p->spawner, true);
    *ret = i;
    return 0;
}

static int fake_fd(const struct provider *p)
{
    return p->spawner;
}

static bool fake_begun(struct provider *p)
{
    (void)p;
    return true;
}

static int fake_finish(struct instance *i, const struct instance_spec *spec, struct sg_error *e)
{
    int r = fake_error(FAKE_BROKEN, -EPIPE, e);

    if (fake.no_spawner)
        r = err_set(e, SG_ERR_INTERNAL, -EPIPE, "the spawner has ended");
    (void)spec;
    fake_signal(i->provider->spawner, false);
    if (r == 0)
        r = fake_error(FAKE_FINISH, -EMFILE, e);
    i->finished = r == 0;
    if (r == 0 && !fake.no_word)
        fake_signal(i->line, true);
    return r;
}

static int fake_line(const struct instance *i)
{
    return i->line;
}

static int fake_started(struct instance *i, struct sg_error *e)
{
    int r = fake_error(FAKE_START, -ENOENT, e);

    fake_signal(i->line, false);
    i->up = r == 0;
    return r;
}

static int fake_connect(struct instance *i, int channel_fd, struct sg_error *e)
{
    (void)i, (void)channel_fd;
    return fake_error(FAKE_CONNECT, -EPIPE, e);
}

static int fake_line_take(struct instance *i, enum line_news *ret, int *ret_code)
{
    fake_signal(i->line, false);
    if (i->roots) {
        i->roots = false;
        *ret = LINE_ROOT_DONE;
        *ret_code = i->root_code;
    } else if (i->mounts > 0 && !fake.no_mount) {
        *ret = LINE_MOUNT_DONE;
        *ret_code = i->mount_code;
        if (--i->mounts > 0)
            fake_signal(i->line, true);
    } else {
        return -EAGAIN;
    }
    return 0;
}

static int fake_mount(struct instance *i, int dir, const char *target, bool readonly,
                      struct sg_error *e)
{
    int r = fake_error(FAKE_MOUNT, -EMFILE, e);

    (void)dir, (void)target, (void)readonly;
    if (r < 0)
        return r;
    i->mounts++;
    i->mount_code = fake_fails(FAKE_ATTACH) ? -ELOOP : 0;
    if (!fake.no_mount)
        fake_signal(i->line, true);
    return 0;
}

static void fake_stats(struct instance *i, struct instance_stats *ret)
{
    (void)i;
    *ret = (struct instance_stats){0};
}

static int fake_pause(struct instance *i, bool on, struct sg_error *e)
{
    int r = fake_error(FAKE_LIMIT, -EMFILE, e);

    if (r == 0)
        r = fake_error(FAKE_PAUSE, -EIO, e);
    if (r == 0)
        i->paused = on;
    return r;
}

static bool fake_paused(struct instance *i)
{
    return i->paused && !fake.never_still;
}

static int fake_process(const struct instance *i)
{
    return i->process;
}

static bool fake_was_killed(const struct instance *i)
{
    return i->ended;
}

static void fake_end(struct instance *i, uint32_t siblings)
{
    (void)siblings;
    i->ended = true;
}

static uint64_t fake_end_deadline(const struct instance *i)
{
    (void)i;
    return clock_ns() + 1000000;
}

static int fake_ended(struct instance *i, struct sg_error *e)
{
    if (fake.no_end)
        return -EAGAIN;
    fake_free(i);
    return fake_error(FAKE_LOST, -EBUSY, e);
}

/* ---- kernels, files and live fork ------------------------------------------------------------ */

static void fake_tell(struct provider *p, struct instance *i, enum kernel_news_kind kind, int r)
{
    if (p->n_news == FAKE_MAX)
        return;
    p->news_r[p->n_news] = r;
    p->news[p->n_news++] = (struct kernel_news){
        .kind = kind, .instance = i, .frozen_kernels = 7, .report = -1, .written = -1};
    if (!fake.no_news)
        fake_signal(p->broker, true);
}

static int fake_kernels_open(struct provider *p, struct sg_error *e)
{
    (void)p, (void)e;
    return 0;
}

static int fake_kernels_fd(const struct provider *p)
{
    return p->broker;
}

static int fake_take_news(struct provider *p, struct kernel_news *ret, struct sg_error *e)
{
    int r = p->n_news ? p->news_r[0] : -EAGAIN;

    *ret = (struct kernel_news){.report = -1, .written = -1};
    if (p->n_news == 0 || fake.no_news) {
        fake_signal(p->broker, false);
        return -EAGAIN;
    }
    *ret = p->news[0];
    p->n_news--;
    memmove(p->news, p->news + 1, p->n_news * sizeof(p->news[0]));
    memmove(p->news_r, p->news_r + 1, p->n_news * sizeof(p->news_r[0]));
    if (p->n_news == 0)
        fake_signal(p->broker, false);
    if (ret->kind == NEWS_KERNEL && ret->instance)
        ret->instance->pending = false;
    if (ret->kind == NEWS_STILL && fake.open_files) {
        ret->written = memfd_create("written", MFD_CLOEXEC);
        (void)!write(ret->written, "/f", 3);
    }
    if (ret->kind == NEWS_HELD && r == 0) {
        ret->kernels[0] = 2;
        ret->n_kernels = 1;
    }
    return r < 0 ? err_set(e, SG_ERR_INTERNAL, r, "news of an error") : 0;
}

static int fake_zygote(struct provider *p, struct instance *home, const char *imports, bool plain,
                       struct sg_error *e)
{
    (void)home, (void)imports, (void)plain, (void)e;
    fake_tell(p, NULL, NEWS_ZYGOTE, 0);
    return 0;
}

static int fake_ask(struct instance *i, uint64_t frozen, int32_t was, struct sg_error *e)
{
    (void)frozen, (void)was, (void)e;
    if (i->pending)
        return -EALREADY;
    i->pending = true;
    fake_tell(i->provider, i, NEWS_KERNEL, 0);
    return 0;
}

static int fake_refuse(struct instance *i, struct sg_error *e)
{
    (void)i, (void)e;
    return 0;
}

static bool fake_has(const struct instance *i)
{
    (void)i;
    return false;
}

static bool fake_pending(const struct instance *i)
{
    return i->pending;
}

static void fake_keep(struct instance *i)
{
    (void)i;
}

static int fake_copy(struct instance *i, uint64_t frozen, int32_t was, bool last,
                     struct sg_error *e)
{
    (void)frozen, (void)was, (void)last, (void)e;
    fake_tell(i->provider, i, NEWS_KERNEL, fake_fails(FAKE_COPY) ? -EIO : 0);
    i->pending = true;
    return 0;
}

static void fake_layers(const struct instance *i, struct layer_stack_view *ret)
{
    (void)i;
    *ret = (struct layer_stack_view){0};
}

static void fake_layers_of(const struct stack *s, struct layer_stack_view *ret)
{
    (void)s;
    *ret = (struct layer_stack_view){0};
}

static bool fake_can_freeze(const struct instance *i)
{
    (void)i;
    return true;
}

static int fake_freeze(struct instance *i, struct stack **ret, struct sg_error *e)
{
    int r = fake_error(FAKE_FREEZE, -EBUSY, e);

    (void)i;
    if (r < 0)
        return r;
    *ret = xcalloc(1, sizeof(**ret));
    return 0;
}

static int fake_take(struct instance *i, const struct stack *s, struct sg_error *e)
{
    (void)i, (void)s;
    return fake_error(FAKE_TAKE, -EIO, e);
}

static int fake_make_root(struct instance *i, const int *layer, int *ret_root, struct sg_error *e)
{
    (void)i, (void)layer;
    *ret_root = 0;
    return fake_error(FAKE_MAKE_ROOT, -ENOSPC, e);
}

static int fake_root_send(struct instance *i, int root, bool clear, struct sg_error *e)
{
    int r = fake_error(FAKE_ROOT, -EPIPE, e);

    (void)root, (void)clear;
    if (r < 0)
        return r;
    i->roots = true;
    if (!fake.no_root)
        fake_signal(i->line, true);
    return 0;
}

static void fake_moved(struct instance *i, bool moved)
{
    (void)i, (void)moved;
}

static int fake_seal(struct instance *i, struct sg_error *e)
{
    (void)i;
    return fake_error(FAKE_SEAL, -EBUSY, e);
}

static const struct stack *fake_stack(const struct instance *i)
{
    (void)i;
    return NULL;
}

/* Replies to what was asked before are about no sandbox any more. */
static void fake_ask_anew(struct instance *i)
{
    struct provider *p = i->provider;

    for (size_t k = 0; k < p->n_news; k++)
        if (p->news[k].instance == i && p->news[k].kind >= NEWS_STILL)
            p->news[k].instance = NULL;
}

static int fake_hold(struct instance *i, const struct hold_spec *spec, uint64_t *ret,
                     struct sg_error *e)
{
    int r = fake_error(FAKE_HOLD, -EMFILE, e);

    (void)spec;
    if (r < 0)
        return r;
    *ret = 7;
    fake_ask_anew(i);
    fake_tell(i->provider, i, NEWS_STILL, 0);
    fake_tell(i->provider, i, NEWS_HELD, 0);
    return 0;
}

static int fake_go(struct instance *i, bool moved, struct sg_error *e)
{
    (void)moved, (void)e;
    fake_ask_anew(i);
    fake_tell(i->provider, i, NEWS_WENT, 0);
    return 0;
}

static void fake_drop(struct provider *p, uint64_t frozen_kernels)
{
    (void)p, (void)frozen_kernels;
}

static int fake_gather(struct instance *i, struct sg_error *e)
{
    (void)i, (void)e;
    return 0;
}

static int fake_hand_over(struct instance *i, struct sg_error *e)
{
    (void)i, (void)e;
    return 0;
}

static const struct provider_kernels fake_kernels = {
    .open = fake_kernels_open,
    .fd = fake_kernels_fd,
    .take = fake_take_news,
    .zygote = fake_zygote,
    .ask = fake_ask,
    .refuse = fake_refuse,
    .has = fake_has,
    .pending = fake_pending,
    .gather = fake_gather,
    .keep = fake_keep,
    .hand_over = fake_hand_over,
    .copy = fake_copy,
};

static const struct provider_files fake_files = {
    .layers = fake_layers,
    .layers_of = fake_layers_of,
    .can_freeze = fake_can_freeze,
    .freeze = fake_freeze,
    .take = fake_take,
    .next_layers = fake_layers,
    .root = fake_make_root,
    .root_send = fake_root_send,
    .moved = fake_moved,
    .seal = fake_seal,
    .stack = fake_stack,
};

static const struct provider_fork fake_fork = {.hold = fake_hold, .go = fake_go, .drop = fake_drop};

const struct provider_ops fake_provider = {
    .name = "fake",
    .probe = fake_probe,
    .open = fake_open,
    .close = fake_close,
    .limit_memory = fake_limit_memory,
    .memory = fake_memory,
    .ooms = fake_ooms,
    .idle = fake_idle,
    .trim = fake_trim,
    .begin = fake_begin,
    .fd = fake_fd,
    .begun = fake_begun,
    .finish = fake_finish,
    .line = fake_line,
    .started = fake_started,
    .connect = fake_connect,
    .line_take = fake_line_take,
    .stats = fake_stats,
    .usage = fake_stats,
    .pause = fake_pause,
    .paused = fake_paused,
    .process = fake_process,
    .was_killed = fake_was_killed,
    .end = fake_end,
    .end_deadline = fake_end_deadline,
    .ended = fake_ended,
    .kernels = &fake_kernels,
    .files = &fake_files,
    .fork = &fake_fork,
    .mount = fake_mount,
};
