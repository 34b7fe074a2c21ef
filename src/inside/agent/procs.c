/* The table of processes: those that live, and those that are over but can still be asked about. */
#include <string.h>

#include "inside/agent/proc.h"
#include "lib/base/clock.h"

#define KEPT_NS (PROC_KEPT_MS * 1000000ull)

static void free_proc(struct loop_trash *trash)
{
    struct proc *p = CONTAINER_OF(trash, struct proc, trash);

    free(p->tag);
    free(p->note);
    free(p);
}

static void add(struct proc_list *l, struct proc *p)
{
    list_append(&l->all, &p->link);
    l->n++;
}

static void take_out(struct proc_list *l, struct proc *p)
{
    list_remove(&p->link);
    l->n--;
}

static struct proc *first(const struct proc_list *l)
{
    return LIST_FIRST(struct proc, &l->all, link);
}

static void note_drop(struct proc *p)
{
    if (p->note)
        p->agent->procs.notes -= strlen(p->note);
    free(p->note);
    p->note = NULL;
}

static void arm(struct procs *t)
{
    if (t->kept.n > 0)
        loop_timer_set(t->loop, &t->expiry, first(&t->kept)->over_ns + KEPT_NS);
    else
        loop_timer_cancel(t->loop, &t->expiry);
}

static void on_expiry(struct loop_timer *timer)
{
    struct procs *t = CONTAINER_OF(timer, struct procs, expiry);
    uint64_t now = clock_ns();

    while (t->kept.n > 0 && first(&t->kept)->over_ns + KEPT_NS <= now)
        procs_forget(first(&t->kept));
    arm(t);
}

void procs_init(struct procs *t, struct loop *loop)
{
    *t = (struct procs){.loop = loop, .expiry.fn = on_expiry};
}

/* Called at the end of the agent, which ends every process. */
void procs_done(struct procs *t)
{
    while (t->living.n > 0) {
        struct proc *p = first(&t->living);

        reaper_forget(&p->child);
        proc_output_close(p);
        proc_input_close(p);
        procs_forget(p);
    }
    while (t->kept.n > 0)
        procs_forget(first(&t->kept));
    loop_timer_cancel(t->loop, &t->expiry);
}

int procs_admit(struct agent *a, const char *note, struct sg_error *e)
{
    if (a->procs.living.n >= PROCS_MAX)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "%d processes already run: wait for one to end",
                       PROCS_MAX);
    if (strlen(note) > NOTES_MAX - a->procs.notes)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN,
                       "the notes of all processes would be over %u MiB: wait for one to end",
                       NOTES_MAX >> 20);
    return 0;
}

void procs_add(struct proc *p)
{
    struct procs *t = &p->agent->procs;

    p->trash.fn = free_proc;
    p->serial = ++t->serial;
    t->notes += strlen(p->note);
    add(&t->living, p);
}

void procs_keep(struct proc *p)
{
    struct procs *t = &p->agent->procs;

    note_drop(p);
    take_out(&t->living, p);
    if (t->kept.n == PROCS_MAX)
        procs_forget(first(&t->kept));
    p->over_ns = clock_ns();
    add(&t->kept, p);
    arm(t);
}

void procs_forget(struct proc *p)
{
    struct procs *t = &p->agent->procs;
    bool kept = p->over_ns > 0;

    note_drop(p);
    loop_timer_cancel(&p->agent->loop, &p->grace);
    loop_timer_cancel(&p->agent->loop, &p->limit);
    loop_unwatch(&p->agent->loop, &p->report);
    close_p(&p->report_fd);
    p->report_fd = -1;
    take_out(kept ? &t->kept : &t->living, p);
    loop_throw_away(&p->agent->loop, &p->trash);
}

static bool matches(const struct proc *p, uint32_t pid, const char *tag)
{
    return pid > 0 ? (uint32_t)p->child.pid == pid : tag[0] != '\0' && strcmp(p->tag, tag) == 0;
}

struct proc *procs_find(struct agent *a, uint32_t pid, const char *tag)
{
    const struct proc_list *lists[] = {&a->procs.living, &a->procs.kept};
    struct proc *found = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(lists) && !found; i++)
        LIST_EACH(struct proc, p, &lists[i]->all, link)
            if (matches(p, pid, tag))
                found = p;
    return found;
}
