/* Writes a layer: one directory with everything that makes a sandbox's files differ from the
 * template, in the form that an overlay wants of a lower layer.
 *
 * A sandbox has its own files (`upper`) over a layer it was made from (`below`) over the template.
 * The new layer stands for the first two together:
 *
 *   upper                      below            the new layer
 *   file, link, fifo           anything         upper's, copied
 *   whiteout                   anything         whiteout: it hides the template's too
 *   directory, opaque          anything         upper's, opaque
 *   directory                  directory        both merged; opaque if below's is
 *   directory                  not a directory  upper's, opaque: what is below was hidden by that
 *   directory                  nothing          upper's
 *   nothing                    anything         below's: files as hard links, for no layer is ever
 *                                               changed
 *
 * The sandbox stands still meanwhile, and is hostile: nothing is followed, its names never lead
 * out, devices and sockets are left out, and so are attributes but user.*. Set-uid and set-gid
 * programs lose those bits, which mean nothing inside: as files of the host's they must not have
 * them. */
#pragma once

#include "lib/base/err.h"

struct layer_save {
    int upper;         /* what the sandbox changed; -1: nothing */
    uint32_t first_id; /* the sandbox's id 0, as ids are seen there */
    int below;         /* the layer it was made from, ids 0..65535; -1: none */
    int parent;        /* where to make it */
    const char *aside; /* what to call it there while it is being written */
    const char *name;  /* and then: must be free */
    bool durable;      /* on disk when it returns */
};

/* Whole, or nothing of it is left. ret_bytes: what it takes on disk. */
int layer_save_write(const struct layer_save *l, uint64_t *ret_bytes, struct sg_error *e);
