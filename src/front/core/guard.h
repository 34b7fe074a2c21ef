/* The front's end of its socket to the guard (wire/guard.h): questions, and their answers in any
 * order.
 *
 * There may be no guard for a moment: it has ended and the next is being started. Nothing is kept
 * for it then; who asks is told at once and says so to its client. What it tells without being
 * asked is for front/core/news.h. */
#pragma once

#include "wire/guard.h"
#include "front/core/front.h"

#define GUARD_WAITING_MAX 1024 /* questions under way */
#define GUARD_WAIT_MS     5000

/* r: 0 or -errno: -EAGAIN if there is no guard, if it went, or if too much waits for it; -ETIMEDOUT
 * after GUARD_WAIT_MS. payload: the answer, or of an error that the guard has told the message,
 * with a NUL behind it that does not count; it lives until the callback returns. fd: what came with
 * the answer, or -1; the callee takes it over. */
typedef void (*guard_done)(void *arg, int r, const void *payload, size_t len, int fd);

/* tenant and id may be NULL. done is called exactly once, perhaps before this returns; it may be
 * NULL, and then nobody waits (ASK_RECORD, which has no answer). */
void guard_ask(struct front *f, enum ask_what what, const char *tenant, const char *id,
               const void *payload, size_t len, guard_done done, void *arg);
/* The socket to a new guard, which is taken over. What is under way on the old one is answered
 * -EAGAIN. -1: there is none. */
void guard_set_socket(struct front *f, int fd);
