/* Changes that are made at once and kept (on disk) a little later. What tells somebody of a change,
 * such as an answer, waits until `kept` has come to the number that `made` had then. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct commits {
    uint64_t made, kept;
};

/* The change that must be kept before something is told that began when `since` changes were made;
 * 0: none. */
static inline uint64_t commits_awaited(const struct commits *c, uint64_t since)
{
    return c->made > since && c->made > c->kept ? c->made : 0;
}
