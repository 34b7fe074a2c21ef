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

static void list_append(struct proc_list *l, struct proc *p)
{
    p->next = NULL;
    p->link = l->tail;
    *l->tail = p;
    l->tail = &p->next;
    l->n++;
}

static void list_remove(struct proc_list *l, struct proc *p)
{
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    else
        l->tail = p->link;
    l->n--;
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
    if (t->kept.first)
        loop_timer_set(t->loop, &t->expiry, t->kept.first->over_ns + KEPT_NS);
    else
        loop_timer_cancel(&t->expiry);
}

static void on_expiry(struct loop_timer *timer)
{
    struct procs *t = CONTAINER_OF(timer, struct procs, expiry);
    uint64_t now = clock_ns();

    while (t->kept.first && t->kept.first->over_ns + KEPT_NS <= now)
        procs_forget(t->kept.first);
    arm(t);
}

void procs_init(struct procs *t, struct loop *loop)
{
    *t = (struct procs){.loop = loop, .expiry.fn = on_expiry};
    t->living.tail = &t->living.first;
    t->kept.tail = &t->kept.first;
}

/* Called at the end of the agent, which ends every process. */
void procs_done(struct procs *t)
{
    while (t->living.first) {
        struct proc *p = t->living.first;

        reaper_forget(&p->child);
        proc_output_close(p);
        proc_input_close(p);
        procs_forget(p);
    }
    while (t->kept.first)
        procs_forget(t->kept.first);
    loop_timer_cancel(&t->expiry);
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
    list_append(&t->living, p);
}

void procs_keep(struct proc *p)
{
    struct procs *t = &p->agent->procs;

    note_drop(p);
    list_remove(&t->living, p);
    if (t->kept.n == PROCS_MAX)
        procs_forget(t->kept.first);
    p->over_ns = clock_ns();
    list_append(&t->kept, p);
    arm(t);
}

void procs_forget(struct proc *p)
{
    struct procs *t = &p->agent->procs;
    bool kept = p->over_ns > 0;

    note_drop(p);
    loop_timer_cancel(&p->grace);
    loop_timer_cancel(&p->limit);
    loop_unwatch(&p->agent->loop, &p->report);
    close_p(&p->report_fd);
    p->report_fd = -1;
    list_remove(kept ? &t->kept : &t->living, p);
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
        for (struct proc *p = lists[i]->first; p; p = p->next)
            if (matches(p, pid, tag))
                found = p;
    return found;
}
