/* The start command of a sandbox's template (front/core/defaults.h): it is started, and then the ready command is run
 * again and again until it exits with 0.
 *
 *   begin --> start command started --> ready command: no --> wait --> again
 *                    |                        +--> yes --> done
 *                    +--> it fails, or the time is over --> done with an error
 *
 * The start command goes on when all is over. */
#pragma once

#include "front/core/sandbox.h"

struct starting_plan {
    uint64_t limit_ms;
    uint64_t every_ms; /* between two tries of the ready command */
    uint64_t blind_ms; /* how long to wait if there is a start command, but no ready command */
    /* Output of the start command, while this lasts. NULL: it is dropped. */
    void (*on_output)(void *arg, bool err, const char *p, size_t len);
    void (*done)(void *arg, int r, const struct sg_error *e); /* from the loop; once */
    /* Set: after `done` without an error the start command stays watched, until starting_cancel. If it fails then, this
     * is called, once. */
    void (*failed)(void *arg);
    void *arg;
};

struct starting;
/* Whether there is anything to start or to wait for. */
bool starting_needed(const json_t *defaults);
struct starting *starting_begin(struct sandbox *b, const struct starting_plan *plan);
/* Before `done`, or with `failed` after it. No callback follows. */
void starting_cancel(struct starting *s);
