/* The warden's descriptors, which a limit bounds that it may not be able to raise (lib/base/fds.h).
 *
 *   FDS_LOW      pools are not refilled; what slots keep for their next sandbox goes, piece by
 *                piece, when there is time
 *   FDS_SCARCE   before anything new is begun, what is kept goes at once, then tenant pools that
 * nobody uses; if that is not enough it is refused, to be tried again later
 *
 * What is kept back is for what goes on: ending, pausing, figures, the front's messages. */
#pragma once

#include "lib/base/err.h"

struct server;

/* Room for something new that stays: 0, or -EMFILE with what to do. */
int descriptors_admit(struct server *s, struct sg_error *e);
