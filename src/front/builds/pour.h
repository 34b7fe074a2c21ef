/* Pours an archive into a sandbox, which unpacks it (OP_FILE_UNPACK): a COPY step.
 *
 *   file --> [inflate] --> the agent, within its credit
 *
 * In slices of work (lib/http/work.h), so that a small archive that unpacks to a large one takes
 * nobody else's time. How much may come out of it is limited: the sandbox's disk limits the files,
 * and not what is padding between them. */
#pragma once

#include "front/builds/steps.h"
#include "front/core/sandbox.h"

struct pour;
/* r: 0, or -errno with e. Called once, from the loop. */
typedef void (*pour_done)(void *arg, int r, const struct sg_error *e);
/* Takes fd over; -1: an empty archive, which makes the directory and nothing else. */
struct pour *pour_begin(struct sandbox *b, int fd, const struct step_copy *how, pour_done done,
                        void *arg);
/* No callback follows. */
void pour_cancel(struct pour *p);
