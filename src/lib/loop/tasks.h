/* Work that a turn of the loop (loop.h) does beside its events: tasks, and emptying the bin. For the
 * agent. */
#pragma once

#include "lib/loop/loop.h"

/* Runs once, in the next turn. A task with much to do queues itself again for each next part. */
struct loop_task {
    void (*fn)(struct loop_task *task);
    struct list link;
};

struct loop_trash {
    struct list link;
    void (*fn)(struct loop_trash *trash); /* frees the object */
};

void loop_task_queue(struct loop *l, struct loop_task *task);
void loop_task_cancel(struct loop_task *task);
void loop_throw_away(struct loop *l, struct loop_trash *trash);
