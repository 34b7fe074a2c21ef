/* Saves a layer: one directory with everything in which a sandbox's files differ from the template,
 * in the form that an overlay wants of a lower layer.
 *
 * A sandbox has its own files (`upper`) over a snapshot that it was made from (`below`) over the
 * template. The new layer stands for the first two together:
 *
 *   upper                      below            the new layer
 *   file, link, fifo           anything         upper's, copied
 *   whiteout                   anything         whiteout: it hides the template's too
 *   directory, opaque          anything         upper's, opaque
 *   directory                  directory        both merged; opaque if below's is
 *   directory                  not a directory  upper's, opaque: it hid what is below
 *   directory                  nothing          upper's
 *   nothing                    anything         below's: files as hard links, since no layer ever
 *                                               changes
 *
 * The sandbox stands still meanwhile, and its files are hostile: no link is followed, no name leads
 * out of the directory. Devices and sockets are left out, and so are attributes other than user.*.
 * Files lose their set-uid and set-gid bits, which mean nothing inside: as files of the host they
 * must not have them.
 *
 * Files of `upper` that share their contents, as copies on btrfs do, share them no more in the layer. So
 * what is copied is counted. */
#pragma once

#include "lib/base/err.h"

struct layer_save {
    int upper;         /* the sandbox's own files; -1: none */
    uint32_t first_id; /* id 0 of the sandbox, as `upper` shows it */
    int below;         /* the layer it was made from, ids 0..65535; -1: none */
    int parent;        /* the directory to make the layer in */
    const char *aside; /* its name there while it is being written */
    const char *name;  /* its name when it is complete: must be free */
    bool durable;      /* on disk when it returns */
    uint64_t *left;    /* bytes that may still be copied; NULL: any number */
};

/* Writes the layer completely, or leaves nothing of it. ret_bytes: its size on disk. */
int layer_save_write(const struct layer_save *l, uint64_t *ret_bytes, struct sg_error *e);
