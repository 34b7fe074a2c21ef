/* The front's end of the socket to the warden: sends orders, receives answers (wire/warden.h). */
#pragma once

#include "front/core/front.h"
#include "wire/warden.h"

struct warden_answer {
    const struct order_answer *a;
    int r;             /* 0, or the order has failed, */
    struct sg_error e; /* ... with this error */
    int *fd;           /* the descriptor that came with it, or -1; closed unless it is taken out */
};
typedef void (*warden_done)(void *arg, const struct warden_answer *w);

/* Handlers for messages that the warden sends without being asked. They take the descriptors
 * over. */
struct warden_handlers {
    void (*on_tell)(struct front *f, const struct order_answer *a, int *fds, size_t n_fds);
    /* The warden has ended, and every sandbox with it. unreadable: the warden is of another
     * version, and its messages cannot be read. */
    void (*on_gone)(struct front *f, bool unreadable);
};

/* Changes of the store are on disk: sends the orders that waited for that. */
void warden_kept(struct front *f);
/* Takes over the socket. */
void warden_open(struct front *f, int sock, const struct warden_handlers *h);
/* Sends an order; magic and seq are filled in. fd (or -1) is sent along and then closed. done may be
 * NULL. */
void warden_order(struct front *f, struct order *o, int fd, warden_done done, void *arg);
/* The same with two descriptors, such as a note and a policy document. */
void warden_order_two(struct front *f, struct order *o, int fd, int second, warden_done done,
                      void *arg);
