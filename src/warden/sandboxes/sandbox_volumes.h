/* The volumes of a sandbox: mounted whenever it gets an instance. Its agent attaches them, which
 * takes a mount over the line that it has anyway: so a sandbox of the pool can get them, and no
 * process of the host enters a sandbox's mount namespace. */
#pragma once

#include "lib/base/err.h"
#include "wire/warden.h"

struct server;
struct volume;

struct sandbox_volumes {
    uint32_t n;
    uint32_t pending;              /* the agent was sent so many, and has not answered */
    int code;                      /* its first answer that is an error */
    char target[ORDER_TARGET_MAX]; /* which one that was */
    struct {
        struct volume *volume;
        bool readonly;
        char target[ORDER_TARGET_MAX];
    } v[ORDER_VOLUMES_MAX];
};

/* Finds the volumes that an order names. -ENOENT, -EINVAL. */
int sandbox_volumes_open(struct server *s, const struct order *o, struct sandbox_volumes *ret,
                         struct sg_error *e);
void sandbox_volumes_done(struct sandbox_volumes *v);
