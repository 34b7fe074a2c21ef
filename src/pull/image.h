/* The way from a source to layers in a directory: which manifest, its config, its layers. */
#pragma once

#include "pull/source.h"

struct request;

/* Says on standard output how it goes, and at the end what the image is. */
int image_pull(struct source *source, const struct request *q, struct store *store,
               struct sg_error *e);
