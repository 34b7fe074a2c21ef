/* Files of sandboxes that nobody needs any more: files workers remove them, when there is time. Providers call the first two,
 * with the server (struct provider_setup). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct server;

/* Removes a directory, whose files have this id and those after it. Its file system may go away
 * meanwhile. */
void discard(void *server, int mount, uint32_t first_id, const char *dir);
/* Closes a mount that nobody else has, in a child. Takes it over. */
void discard_mount(void *server, int mount);
/* Work for the loop's idle time. True: there was something to do. */
bool discards_idle(struct server *s);
void discards_close(struct server *s);
