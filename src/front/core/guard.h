/* The front's end of its socket to the guard (wire/guard.h): the front asks questions, and the
 * guard answers them in any order.
 *
 * For a moment there may be no guard: the old one has ended and the next is being started.
 * Questions are not kept for the next guard: the asker gets an error at once and passes it on to
 * its client. Messages that the guard sends without being asked go to front/core/news.h. */
#pragma once

#include "wire/guard.h"
#include "front/core/front.h"

#define GUARD_WAITING_MAX 1024 /* questions that wait for an answer */
#define GUARD_WAIT_MS     5000

/* r is 0 or -errno. -EAGAIN: there is no guard, it went away, or too many questions wait for it.
 * -ETIMEDOUT: no answer within GUARD_WAIT_MS. payload is the answer or, if the guard reports an
 * error, its message; a NUL follows that len does not count. It is valid until the callback
 * returns. fd is the descriptor that came with the answer, or -1; the callee takes it over. */
typedef void (*guard_done)(void *arg, int r, const void *payload, size_t len, int fd);

/* Asks the guard. tenant and id may be NULL. done is called exactly once, perhaps before this
 * returns. It may be NULL for a question without an answer (ASK_RECORD). */
void guard_ask(struct front *f, enum ask_what what, const char *tenant, const char *id,
               const void *payload, size_t len, guard_done done, void *arg);
/* Sets the socket to a new guard and takes it over; -1: there is no guard. Questions that wait on
 * the old socket end with -EAGAIN. */
void guard_set_socket(struct front *f, int fd);
