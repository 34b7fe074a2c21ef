/* A new root directory, which comes over the line. There are two cases. The warden has frozen the
 * files of this sandbox, and the sandbox goes on with a layer of its own over them. Or the sandbox
 * gets the files of another sandbox, or its own of an earlier time; then nothing that runs may stay
 * (LINE_ROOT_CLEAR).
 *
 * Files that the agent has open for reading in the old root are read to their end there. But the
 * agent must not be writing a file: it would end up in a place that nobody sees. */
#include "inside/agent/kernels.h"
#include "inside/agent/launch.h"

static bool writes(const struct agent *a)
{
    return LIST_FIND(const struct op, op, &a->ops, link, op->ops->writes);
}

/* Whether a program was started since the host was told that cells are held. The broker may not
 * have stopped it with the others, and it would be left behind in the old root. */
static bool started_any(const struct agent *a)
{
    return !a->kernels.hold || a->kernels.launches != launch_count();
}

static int move_root(struct agent *a, int root, bool clear)
{
    int r = writes(a) || (!clear && started_any(a)) ? -EBUSY : 0;

    if (r == 0 && clear) {
        kernels_clear(a);
        r = reaper_kill_everybody(&a->reaper);
    }
    if (r == 0)
        r = root_move(root, NULL);
    if (r == 0)
        file_watch_moved(a, !clear);
    return r;
}

void root_came(struct agent *a, int root, bool clear)
{
    line_told(&a->line, LINE_ROOT, move_root(a, root, clear));
    close(root);
}
