/* The front's workers (wire/worker.h): child programs that the warden starts beside the front, with
 * rights of their own.
 *
 *   database worker   only with PostgreSQL; runs as the front's user, whom the database may know
 *   exporter          always, since settings may name targets later; runs as a user of its own, who
 *                     owns nothing
 *
 * Both run the front's program. A worker that cannot be kept alive does not end the server, with
 * one exception: a database worker that never could start. Then the database's address cannot be
 * read. */
#pragma once

#include "warden/processes/child_program.h"

int workers_init(struct server *s, struct sg_error *e);
void workers_start(struct server *s);
/* Logs why a worker could not be started. Called once the front is started, which has the same
 * program. */
void workers_say_trouble(const struct server *s);
/* Gives the workers and the front sockets to each other. Called whenever the front is new. */
void workers_meet_front(struct server *s);
void workers_end(struct server *s);
