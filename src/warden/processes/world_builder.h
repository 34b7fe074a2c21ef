/* World builders: children of the warden that make worlds of images for builds (wire/world_builder.h), with the ids
 * of files workers. Each makes one and exits; the front is told by the world builder itself. */
#pragma once

#include "lib/base/err.h"

struct server;

/* Starts one. *ret_fd: a socket to it. -EAGAIN: too many run. */
int builder_start(struct server *s, int *ret_fd, struct sg_error *e);
