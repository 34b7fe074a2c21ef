#include "inside/broker/remote_calls.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "inside/broker/tracee.h"
#include "inside/stage/seccomp.h"

#define CODE_ROOM 64
#define PAGE      4096u

void remote_calls_init(struct remote_calls *v)
{
    *v = (struct remote_calls){.n = 0};
    strbuf_init(&v->data, REMOTE_CALLS_DATA_MAX);
}

void remote_calls_done(struct remote_calls *v)
{
    free(v->steps);
    strbuf_done(&v->data);
    *v = (struct remote_calls){.n = 0};
}

static struct remote_call *next_step(struct remote_calls *v)
{
    if (v->n == REMOTE_CALLS_STEPS_MAX) {
        v->overflow = true;
        return NULL;
    }
    v->steps = xgrow(v->steps, v->n, &v->room, sizeof(*v->steps));
    return &v->steps[v->n++];
}

void remote_calls_add(struct remote_calls *v, int64_t want, const struct cpu_call *c)
{
    struct remote_call *s = next_step(v);

    if (s)
        *s = (struct remote_call){.call = *c, .data = REMOTE_CALLS_NO_DATA, .want = want};
}

void remote_calls_add_data(struct remote_calls *v, int64_t want, const struct cpu_call *c,
                           int which, const void *data, size_t len)
{
    struct remote_call *s = next_step(v);

    if (!s)
        return;
    *s = (struct remote_call){.call = *c, .data = which, .want = want};
    s->call.args[which] = (int64_t)v->data.len;
    strbuf_add(&v->data, data, len);
    while (v->data.len % sizeof(uint64_t) != 0 && !v->data.truncated)
        strbuf_addch(&v->data, '\0');
    v->overflow |= v->data.truncated;
}

size_t remote_calls_len(const struct remote_calls *v)
{
    return v->n * sizeof(struct cpu_call);
}

void remote_calls_place(const struct remote_calls *v, struct cpu_call *calls, uint64_t data_at)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct remote_call *s = &v->steps[i];
        calls[i] = s->call;
        calls[i].ret = CPU_NOT_MADE;
        if (s->data != REMOTE_CALLS_NO_DATA)
            calls[i].args[s->data] += (int64_t)data_at;
    }
}

int remote_calls_check(const struct remote_calls *v, const struct cpu_call *calls,
                       struct sg_error *e)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct remote_call *s = &v->steps[i];
        const char *about =
            s->data == REMOTE_CALLS_NO_DATA ? "" : v->data.buf + s->call.args[s->data];
        int64_t said = calls[i].ret;
        bool any = s->want == REMOTE_CALLS_ANY && said != CPU_NOT_MADE;
        if (any || said == s->want || (s->want == REMOTE_CALLS_DONE && said >= 0))
            continue;
        return err_set(e, SG_ERR_INTERNAL, said < 0 ? (int)said : -EPROTO,
                       "%s%s%.100s (step %zu): %s", seccomp_call_name(s->call.nr),
                       about[0] == '/' ? " of " : "", about[0] == '/' ? about : "", i,
                       said < 0 ? strerror((int)-said) : "unexpected result");
    }
    return 0;
}

/* ---- in a process that is not ours ----------------------------------------------------------- */

struct stay {
    pid_t tid;
    struct cpu_state state;
    uint64_t call_at;
    bool lent;
    long saved;
};

/* Blocks all signals, so that none comes between the calls. SIGTRAP stays as it is, because it ends
 * the table. */
static int keep_signals_out(pid_t tid)
{
    uint64_t all = ~(UINT64_C(1) << (SIGTRAP - 1));

    return ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(all), &all) < 0 ? -errno : 0;
}

static int arrive(struct stay *s)
{
    int r = cpu_save(s->tid, &s->state);

    if (r == 0 && !cpu_native(&s->state))
        r = -EREMOTE;
    if (r < 0)
        return r;
    s->call_at = cpu_call_of(s->tid, &s->state);
    if (!s->call_at) {
        r = cpu_lend_call(s->tid, &s->state, &s->call_at, &s->saved);
        if (r < 0)
            return r;
        s->lent = true;
    }
    return keep_signals_out(s->tid);
}

static int leave(struct stay *s)
{
    int r = s->lent ? cpu_take_call(s->tid, &s->state, s->saved) : 0;

    return r < 0 ? r : cpu_load(s->tid, &s->state);
}

static int call(const struct stay *s, const struct cpu_call *c, int64_t *ret, struct sg_error *e)
{
    return tracee_call(s->tid, &s->state, s->call_at, c, ret, e);
}

/* The part while the page is mapped; the caller unmaps the page however this ends. */
static int work(const struct stay *s, const struct remote_calls *v, uint64_t page, size_t len,
                struct sg_error *e)
{
    AUTO(free_p) char *bytes = xcalloc(1, len);
    struct cpu_call *calls = (struct cpu_call *)(void *)(bytes + CODE_ROOM);
    uint64_t data_at = page + CODE_ROOM + remote_calls_len(v) + sizeof(*calls);
    int r;

    memcpy(bytes, cpu_code, cpu_code_len);
    remote_calls_place(v, calls, data_at);
    calls[v->n].nr = CPU_TABLE_END;
    memcpy(&calls[v->n + 1], v->data.buf, v->data.len);
    r = tracee_write(s->tid, page, bytes, len);
    if (r == 0)
        r = cpu_aim_table(s->tid, &s->state, page, page + CODE_ROOM, page);
    if (r < 0)
        return err_internal(e, r, "write to process %d", s->tid);
    r = tracee_run_table(s->tid, e);
    if (r == 0 && tracee_read(s->tid, page + CODE_ROOM, calls, remote_calls_len(v)) < 0)
        r = err_set(e, SG_ERR_INTERNAL, -EFAULT, "read from process %d", s->tid);
    return r < 0 ? r : remote_calls_check(v, calls, e);
}

int remote_calls_make(pid_t tid, const struct remote_calls *v, struct sg_error *e)
{
    size_t len = CODE_ROOM + remote_calls_len(v) + sizeof(struct cpu_call) + v->data.len;
    struct cpu_call map = {.nr = SYS_mmap,
                           .args = {0, (int64_t)((len + PAGE - 1) / PAGE * PAGE),
                                    PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                                    -1, 0}};
    struct cpu_call unmap = {.nr = SYS_munmap};
    struct stay s = {.tid = tid};
    int64_t page = 0;
    int r = v->overflow ? -E2BIG : arrive(&s), r2;

    if (r < 0) {
        if (s.lent)
            leave(&s);
        return err_internal(e, r, "make calls in process %d", tid);
    }
    r = call(&s, &map, &page, e);
    if (r == 0) {
        r = work(&s, v, (uint64_t)page, len, e);
        unmap.args[0] = page;
        unmap.args[1] = map.args[1];
        call(&s, &unmap, NULL, r < 0 ? NULL : e);
    }
    r2 = leave(&s);
    if (r == 0 && r2 < 0)
        r = err_internal(e, r2, "give process %d its registers", tid);
    return r;
}
