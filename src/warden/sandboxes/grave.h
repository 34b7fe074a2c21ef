/* Sandboxes that are being ended. Nothing waits for them: each is looked at when its pid 1 has
 * gone, and at its deadline. */
#pragma once

#include "warden/providers/process/process.h"

struct ward;

/* Kills it and takes it over. `done` (may be NULL) is called when it is gone, or lost: r < 0. */
typedef void (*grave_done)(void *arg, int r, const struct sg_error *e);
void grave_dig(struct ward *w, struct instance *i, grave_done done, void *arg);
