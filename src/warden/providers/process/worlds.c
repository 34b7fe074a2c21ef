/* The worlds of a provider: each is mounted once, on first use, and stays while a sandbox has it.
 * What its slots and descriptors cost is the mount alone; without one, the page cache of its files
 * would go with the last sandbox, so it is kept for the next one until the slots are trimmed. With
 * the setting `strict` each is mounted for one instance. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "warden/layers/attach.h"
#include "warden/providers/process/process_impl.h"

static struct world *find(struct provider *p, const char *id)
{
    return LIST_FIND(struct world, w, &p->worlds, link, strcmp(w->id, id) == 0);
}

int worlds_use(struct provider *p, const struct world_source *from, struct world **ret,
               struct sg_error *e)
{
    struct world *w = p->strict ? NULL : find(p, from->id);
    int mount, r = 0;

    if (!w) {
        r = world_mount(from->dir, &mount, e);
        if (r < 0)
            return r;
        w = NEW(struct world, .mount = mount);
        snprintf(w->id, sizeof(w->id), "%s", from->id);
        list_push(&p->worlds, &w->link);
    }
    w->users++;
    *ret = w;
    return 0;
}

void worlds_release(struct world *w)
{
    if (w && --w->users == 0)
        w->rested_ns = clock_ns();
}

/* The kernel forgets all inodes and pages of it at once: seconds, if it is large. */
static void drop(struct provider *p, struct world *w)
{
    list_remove(&w->link);
    attach_let_go(w->mount);
    if (p->discard_mount)
        p->discard_mount(p->discard_arg, steal_fd(&w->mount));
    close_p(&w->mount);
    free(w);
}

bool worlds_trim(struct provider *p, uint64_t before_ns)
{
    struct world *w =
        LIST_FIND(struct world, at, &p->worlds, link, at->users == 0 && at->rested_ns <= before_ns);

    if (w && late_close(&p->late)) /* it may be a clone of this one: the last of them unmounts */
        return true;
    if (w)
        drop(p, w);
    return w;
}

void worlds_close(struct provider *p)
{
    LIST_EACH(struct world, w, &p->worlds, link)
        drop(p, w);
}
