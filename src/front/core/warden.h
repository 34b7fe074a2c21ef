/* The front's end of the socket to the warden: sends orders, receives answers (wire/warden.h). */
#pragma once

#include "front/core/front.h"
#include "wire/warden.h"

/* fd: the descriptor that came with the answer, or -1; the callee takes it over. */
typedef void (*warden_done)(void *arg, const struct order_answer *a, int fd);

/* Handlers for messages that the warden sends without being asked. They take the descriptors
 * over. */
struct warden_handlers {
    void (*on_tell)(struct front *f, const struct order_answer *a, int *fds, size_t n_fds);
    /* The warden has ended, and every sandbox with it. unreadable: the warden is of another
     * version, and its messages cannot be read. */
    void (*on_gone)(struct front *f, bool unreadable);
};

/* Takes over the socket. */
void warden_open(struct front *f, int sock, const struct warden_handlers *h);
/* Sends an order; magic and seq are filled in. fd (or -1) is sent along and then closed. */
void warden_order(struct front *f, struct order *o, int fd, warden_done done, void *arg);
/* The same with two descriptors, such as a note and a policy document. */
void warden_order_two(struct front *f, struct order *o, int fd, int second, warden_done done,
                      void *arg);
/* Sets e from an answer and returns its error, or 0. */
int warden_error(const struct order_answer *a, struct sg_error *e);
