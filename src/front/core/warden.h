/* The front's end of the orders (wire/warden.h). */
#pragma once

#include "front/core/front.h"
#include "wire/warden.h"

/* fd: what came with the answer, or -1; the callee takes it over. */
typedef void (*warden_done)(void *arg, const struct order_answer *a, int fd);

/* What the warden tells without being asked. Descriptors are the callee's. */
struct warden_handlers {
    void (*on_tell)(struct front *f, const struct order_answer *a, int *fds, size_t n_fds);
    /* The warden has ended, and with it every sandbox; or it is of another version, and what it
     * says cannot be read. */
    void (*on_gone)(struct front *f, bool unreadable);
};

int warden_open(struct front *f, int sock, const struct warden_handlers *h, struct sg_error *e);
/* Sends an order; magic and seq are filled in. fd (or -1) is sent along and closed. */
void warden_order(struct front *f, struct order *o, int fd, warden_done done, void *arg);
/* The same with two: a note and a policy document, say. */
void warden_order_two(struct front *f, struct order *o, int fd, int second, warden_done done,
                      void *arg);
/* The error of an answer, or 0. */
int warden_error(const struct order_answer *a, struct sg_error *e);
