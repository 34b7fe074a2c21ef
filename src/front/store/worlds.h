/* Worlds, for the operator (`sandglass world`): of all tenants, whoever made them. */
#pragma once

#include "front/store/templates.h"

struct store_world {
    char id[ID_LEN + 1];
    char tenant[STORE_NAME_MAX + 1]; /* its name */
    char name[STORE_IMAGE_MAX + 1];  /* NAME:TAG of a template, or an image that a build fetched */
    bool fetched;                    /* by a build */
    char templates[STORE_IMAGE_MAX +
                   1]; /* that are this world, without steps of their own; "": none */
    int64_t made_ms;
};

/* Rows of snapshots come along: a world is one whose files are a world. */
int store_worlds_each(struct store *s, void (*fn)(const struct store_world *w, void *arg),
                      void *arg, struct sg_error *e);
/* Nothing names it any more. -EBUSY: a template does. A running front removes its files when it looks at what was dropped. */
int store_world_drop(struct store *s, const char *id, struct sg_error *e);
/* Calls fn for each that was dropped, once. */
int store_dropped_each(struct store *s, void (*fn)(const char *id, void *arg), void *arg,
                       struct sg_error *e);
