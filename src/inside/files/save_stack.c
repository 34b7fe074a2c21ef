#include <fcntl.h>
#include <stdio.h>

#include "inside/files/files.h"
#include "inside/files/layer_file.h"
#include "inside/files/layer_save.h"
#include "inside/files/layer_stack_merge.h"
#include "lib/base/fd.h"
#include "lib/base/ids.h"

static int open_dir(int tree, const char *dir)
{
    return openat(tree, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Writes the layer of step i under a name of its own, and removes the one of the step before. */
static int save_between(struct layer_save *s, char below[ID_LEN + 8], struct sg_error *e)
{
    char id[ID_LEN + 1], name[ID_LEN + 8], aside[ID_LEN + 8];
    uint64_t bytes;

    id_random(id);
    snprintf(name, sizeof(name), "old-%s", id);
    snprintf(aside, sizeof(aside), "new-%s", id);
    s->name = name;
    s->aside = aside;
    int r = layer_save_write(s, &bytes, e);
    close_p(&s->below);
    s->below = -1;
    if (below[0])
        layer_stack_remove(s->parent, below, NULL);
    if (r < 0)
        return r;
    snprintf(below, ID_LEN + 8, "%s", name);
    s->below = open_dir(s->parent, below);
    return s->below < 0 ? err_errno(e, "open a part of the snapshot") : 0;
}

int files_save(const struct files_request *q, const int *fds, uint64_t *ret_bytes,
               struct sg_error *e)
{
    struct layer_save s = {.upper = -1, .below = -1, .parent = fds[0], .first_id = q->first_id};
    char between[ID_LEN + 8] = "";
    uint64_t left = q->most;
    int r = 0;

    s.left = left > 0 ? &left : NULL;
    if (q->below[0] && (s.below = open_dir(fds[0], q->below)) < 0)
        return err_errno(e, "open the snapshot below");
    for (size_t i = 0; i < q->n_layers && r == 0; i++) {
        close_p(&s.upper);
        s.upper = open_dir(fds[q->v[i].mount], q->v[i].dir);
        if (s.upper < 0)
            r = err_errno(e, "open the upper layer");
        else if (i + 1 < q->n_layers)
            r = save_between(&s, between, e);
    }
    s.aside = q->aside;
    s.name = q->name;
    s.durable = (q->flags & FILES_DURABLE) != 0;
    if (r == 0)
        r = layer_save_write(&s, ret_bytes, e);
    if (between[0])
        layer_stack_remove(fds[0], between, NULL);
    return r;
}
