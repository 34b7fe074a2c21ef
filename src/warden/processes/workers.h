/* The front's workers (wire/worker.h): child programs that the warden starts beside it, with rights
 * of their own.
 *
 *   database worker    with a PostgreSQL only; as the front's user, whom the database may know
 *   exporter   always, since settings may name targets later; a user of its own, who owns nothing
 *
 * Each is of the front's program. Who of them cannot be kept alive does not end the server, but for
 * a database worker that never could start: its database's address cannot be read. */
#pragma once

#include "warden/processes/child_program.h"

int workers_init(struct server *s, struct sg_error *e);
void workers_start(struct server *s);
/* Why one could not be started: said once the front could, whose program is the same. */
void workers_say_trouble(const struct server *s);
/* Sockets between them and the front: whenever that is new. */
void workers_meet_front(struct server *s);
void workers_end(struct server *s);
