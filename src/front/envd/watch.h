/* Watches of directories. WatchDir sends changes as a stream (watch.c); CreateWatcher keeps them
 * until the client asks (watch_poll.c). */
#pragma once

#include "front/envd/service.h"

void watch_dir(struct rpc_call *c, json_t *message);
void watcher_create(struct rpc_call *c, json_t *message);
void watcher_get_events(struct rpc_call *c, json_t *message);
void watcher_remove(struct rpc_call *c, json_t *message);

/* The flags of OP_FILE_WATCH for a request. */
uint32_t watch_flags(json_t *message);
/* An EVENT_CHANGE as a canonical FilesystemEvent. NULL: the bytes are none, or say that changes
 * were lost (*ret_lost). */
json_t *watch_event(const void *p, size_t len, uint32_t flags, bool *ret_lost);
/* Fails a call whose watch could not be set up. */
void watch_failed(struct task *t, int status, const char *message);

/* Message of a watch that ended because changes were lost. */
#define WATCH_LOST "watcher error: changes came faster than they were taken, and some are lost"
