/* Masons: children of the warden that make worlds of images for builds (wire/mason.h), with the ids
 * of files workers. Each makes one and exits; the front is told by the mason itself. */
#pragma once

#include "lib/base/err.h"

struct server;

/* Starts one. *ret_fd: a socket to it. -EAGAIN: too many run. */
int mason_start(struct server *s, int *ret_fd, struct sg_error *e);
