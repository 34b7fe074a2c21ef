#include "guard/pipes.h"

#include <fcntl.h>

#define KEPT_MAX  16
#define WANT_SIZE (1024 * 1024) /* the most that a process without privilege may set */

static struct list kept;
static size_t n_kept, n_pairs;

struct pipe_pair *pipes_take(void)
{
    struct pipe_pair *p = LIST_POP(struct pipe_pair, &kept, link);
    int size;

    if (p) {
        n_kept--;
        return p;
    }
    if (n_pairs == PIPES_MAX)
        return NULL;
    p = xcalloc(1, sizeof(*p));
    if (pipe2(p->fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        free(p);
        return NULL;
    }
    n_pairs++;
    fcntl(p->fds[1], F_SETPIPE_SZ, WANT_SIZE); /* if that fails, the size stays as it is */
    size = fcntl(p->fds[1], F_GETPIPE_SZ);
    p->size = size > 0 ? (size_t)size : 65536;
    return p;
}

void pipes_give(struct pipe_pair *p)
{
    if (n_kept == KEPT_MAX) {
        pipes_discard(p);
        return;
    }
    list_push(&kept, &p->link);
    n_kept++;
}

void pipes_discard(struct pipe_pair *p)
{
    close(p->fds[0]);
    close(p->fds[1]);
    free(p);
    n_pairs--;
}
