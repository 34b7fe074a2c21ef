/* An image of a registry, over the protocol of Docker's and OCI's registries. */
#pragma once

#include "pull/auth.h"
#include "pull/source.h"

struct registry {
    struct source source;
    struct http *http;
    struct url url; /* of the registry itself */
    struct auth auth;
};

int registry_init(struct registry *g, struct http *h, struct sg_error *e);
void registry_done(struct registry *g); /* accepts a zeroed struct */
