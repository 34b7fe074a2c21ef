/* STATE/trouble: why child programs of this server cannot start, a line each ("front: the database
 * ..."), for `sandglass doctor`. The file exists only while something is wrong. After a server that
 * gave up, it says why. */
#pragma once

#define TROUBLE_NAME "trouble"
#define TROUBLE_MAX  4096

struct server;

/* Writes the file anew. Call it whenever a reason may have changed. */
void trouble_write(const struct server *s);
