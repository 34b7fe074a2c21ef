/* The guard's end of its socket to the front (wire/guard.h). The front reads the world's requests,
 * so it may be taken over. Whoever does that can ask here for the certificate of any sandbox, which
 * is public, and can read and add to the record as any tenant could. The front gets no key and no
 * secret, and cannot make the guard wait or grow: questions that are too long, too many at once or
 * not understood are refused.
 *
 *   front_link.c      the socket, and which question it is
 *   front_audit.c     questions about the record, answered by a thread, and additions to it
 *   front_figures.c   the figures */
#pragma once

#include "guard/guard.h"

/* Takes over the socket to a new front and closes the old one. -1: there is no front. */
void front_link_set(struct guard *g, int fd);

/* Tells the front something that it did not ask for. False: there is no front, or it does not read,
 * and nothing was sent. */
bool front_link_tell(struct guard *g, enum ask_what what, const void *payload, size_t len);

/* ---- between the files ----------------------------------------------------------------------- */

/* The connection that a question came from: the answer goes there or nowhere. */
struct front_asker {
    struct guard *guard;
    uint64_t connection, seq;
    uint32_t what;
};
/* code < 0: the payload is an error message. fd (or -1) is sent along and closed. */
void asker_answer(const struct front_asker *to, int code, const void *payload, size_t len, int fd);
void asker_refuse(const struct front_asker *to, int code, const char *message);

/* text: the payload, as JSON, with a NUL behind. */
void front_ask_audit(const struct front_asker *from, const char *tenant, const char *text,
                     size_t len);
void front_ask_figures(const struct front_asker *from);
void front_ask_record(struct guard *g, const char *tenant, const char *id, const char *text,
                      size_t len);
