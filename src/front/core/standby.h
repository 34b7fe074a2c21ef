/* Sandboxes of templates with a start command that wait for somebody who wants one: the start command was run in them, and the
 * ready command has succeeded.
 *
 *   create --> one waits: it is handed out ----------------------> the next is made
 *         \--> none does: one is made, started and waited for ----> one is made to wait
 *
 * To the warden they are sandboxes like any other, with a note that says `standby`; a new front ends them. Here they are in
 * the table, and no client sees or counts them.
 *
 * A create gets one only if it would have made the same: the same snapshot (not only the same name: a tag may have moved), limits and
 * defaults, and nothing of its own that programs were started without: variables, network, secrets, volumes. What differs and does not matter
 * to programs is the client's from then on: metadata, tokens, timeout.
 *
 * One is ended when its start command fails, when it ends, when the settings change, when its template was not used
 * for five minutes, and when a sandbox is refused for want of room, which is then asked for once more.
 *
 * Never more than STANDBY_TENANT of a tenant and STANDBY_ALL of the server wait, nor more than pool_max of a tenant. A template that is used takes the
 * place of the tenant's one that was not used for longest. If the server has all that it may, a tenant takes the place of one that has more.
 * One is made at a time for a tenant, and tenants take turns; two in a second are begun at most. */
#pragma once

#include "front/core/sandbox.h"

#define STANDBY_TENANT 4
#define STANDBY_ALL    16

/* A sandbox for this spec, whose template has a start command, that waits: it is the caller's now. NULL: none. Remembers that
 * such sandboxes are wanted. */
struct sandbox *standby_take(struct front *f, const struct sandbox_spec *spec,
                             const char *snapshot);
/* One that waits, or was to, has ended. */
void standby_ended(struct sandbox *b);
/* Ends all that wait, which have the old settings. */
void standby_end_all(void);
/* There was no room for a sandbox that a client asked for: ends those that wait, and makes none for a
 * minute. Only the tenant's, unless it is NULL. True: `gone`, if it is not NULL, is called when they are
 * gone; false: there were none. */
bool standby_give_way(const char *tenant, void (*gone)(void *arg), void *arg);
