/* Layers onto a tree, the lowest first, as runtimes of containers do it:
 *
 * * Layers are merged by name. An entry replaces what has its name; only a directory over a directory keeps what is in
 *   it and takes the new looks.
 * * Marks are about the layers below, whatever their place in the layer: those of a layer are applied before
 *   its entries.
 * * What is on the way to an entry and is no directory becomes one, if a layer below brought it. That is what an overlay
 *   of the layers shows: a directory hides whatever has its name below. So a layer with lib/x over Debian's
 *   lib -> usr/lib has its own /lib, in every runtime; builders know that, and write usr/lib/x.
 * * But a symbolic link that this very layer brought is followed, within the root, as tar does while it
 *   unpacks the layer: a flat layer with lib -> usr/lib and then lib/x means usr/lib/x.
 * * A hard link may be to a file of this layer or of one below, that its path names by these rules. */
#pragma once

#include "image/tree.h"

/* Applies a layer; number: 1 for the lowest. Reads the list twice; its digests can be had then. */
int merge_layer(struct tree *t, struct records *l, uint16_t number, struct sg_error *e);
