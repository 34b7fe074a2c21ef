/* Files workers: children of the warden that work on files of sandboxes, and are nobody on the host
 * (wire/files.h). Each does one piece of work and exits. */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"
#include "warden/host/slots.h"
#include "wire/files.h"

struct server;
struct files_worker;
struct layer_stack_view;

/* Part of struct server. */
struct files_workers {
    struct slots slot; /* the ids of all workers */
    int ids;           /* a user namespace of these ids */
    int userns; /* the same; -1: workers have to be root of the host, with marks that only root can
                 * read */
    int image;  /* the program */
    size_t n;   /* how many run, world builders too */
    size_t builders;
};
#define FILES_WORKERS_NONE                                  \
    {                                                       \
        .slot.fd = -1, .ids = -1, .userns = -1, .image = -1 \
    }

int files_workers_open(struct server *s, struct sg_error *e);
/* Whether a tree can be mounted for workers without root, and holds marks that they can read. */
bool files_workers_serve(const struct server *s, int tree);
/* Finds out how workers can be run on this host. Call it once it is known where disks are. */
void files_workers_choose(struct server *s);
/* Waits until those that run have ended, a few seconds at most. */
void files_workers_close(struct server *s);

/* A request that is being put together, and the trees that it is about. */
struct files_order {
    struct files_request request;
    int trees[FILES_MOUNTS_MAX];          /* stay the caller's */
    uint32_t first_ids[FILES_MOUNTS_MAX]; /* on disk, of ids 0 to 65535 in the worker */
    int list;                             /* CARRY: the paths; DIFF: the list; else -1 */
};
void files_order_init(struct files_order *o, enum files_op op);
/* The index of a tree in the request, whose files have these ids. -E2BIG: there are too many. */
int files_order_tree(struct files_order *o, int tree, uint32_t first_id);
/* Adds a directory to the request's layers; to its uppers if `upper`. -E2BIG. */
int files_order_add(struct files_order *o, int tree, uint32_t first_id, const char *dir,
                    bool upper);
int files_order_add_view(struct files_order *o, const struct layer_stack_view *view);

typedef void (*files_done)(void *arg, const struct files_answer *a);
/* Starts a worker; done is called when it has ended, however it ended. NULL: it cannot be started,
 * and done is not called. */
struct files_worker *files_worker_start(struct server *s, const struct files_order *o,
                                        files_done done, void *arg, struct sg_error *e);
/* Starts a process of the agent program in that role, with the ids that workers have. It gets
 * `theirs` as descriptor 3. Takes both ends over if it fails, and `theirs` anyway. */
int files_process_start(struct server *s, const char *role, int userns, int ours, int theirs,
                        int *ret_pidfd, struct sg_error *e);
/* Ends a worker; done is called when it is gone. */
void files_worker_kill(struct files_worker *w);
/* The same, but done is not called. */
void files_worker_cancel(struct files_worker *w);
