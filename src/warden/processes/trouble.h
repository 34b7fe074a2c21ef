/* STATE/trouble: why processes of this server cannot start, a line each ("front: the database
 * ..."), for `sandglass doctor`. It is not there while nothing is wrong. After a server that gave
 * up it says why. */
#pragma once

#define TROUBLE_NAME "trouble"
#define TROUBLE_MAX  4096

struct server;

/* Whenever that may have changed. */
void trouble_write(const struct server *s);
