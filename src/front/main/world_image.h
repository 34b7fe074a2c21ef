/* Makes a world of an image: fetched by a puller, its layers unpacked one after the other. */
#pragma once

#include "front/main/world_import.h"
#include "front/main/world_pull.h"

/* Fetches an image into a folder of nobody's in the world's directory, and adds its layers. ret: what
 * came. If its manifest is order->known nothing is added. */
int world_add_image(struct world_making *m, const struct pull_order *order, struct pulled *ret,
                    struct sg_error *e);
