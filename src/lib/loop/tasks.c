#include "lib/loop/tasks.h"

/* Runs the tasks queued so far; tasks that these queue run in the next turn. */
static void run_tasks(struct loop *l)
{
    struct list now = {0};
    struct loop_task *task;

    list_move(&l->tasks, &now);
    while ((task = LIST_POP(struct loop_task, &now, link)))
        task->fn(task);
}

void loop_task_queue(struct loop *l, struct loop_task *task)
{
    l->run_tasks = run_tasks;
    if (!list_linked(&task->link))
        list_push(&l->tasks, &task->link);
}

void loop_task_cancel(struct loop_task *task)
{
    list_remove(&task->link);
}

static void empty_bin(struct loop *l)
{
    struct loop_trash *t;

    while ((t = LIST_POP(struct loop_trash, &l->bin, link)))
        t->fn(t);
}

void loop_throw_away(struct loop *l, struct loop_trash *trash)
{
    l->empty_bin = empty_bin;
    list_push(&l->bin, &trash->link);
}
