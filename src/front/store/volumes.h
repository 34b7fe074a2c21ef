/* The list of volumes (wire/volume.h). A volume is loose while it is made or removed: nobody can
 * name it, and a front that starts finds here what a killed one left, and has it removed. */
#pragma once

#include "front/store/store.h"

struct store_volume {
    char id[ID_LEN + 1], tenant[ID_LEN + 1], name[STORE_NAME_MAX + 1];
};

/* Adds a loose volume, and makes its id. -EEXIST: the tenant has one of that name; -EDQUOT: it has
 * `limit` of them. */
int store_volume_add(struct store *s, const char *tenant, const char *name, uint32_t limit,
                     struct store_volume *ret, struct sg_error *e);
/* It is there now, and no longer loose. */
int store_volume_made(struct store *s, const struct store_volume *v, struct sg_error *e);
/* Makes it loose: its name is free. */
int store_volume_loose(struct store *s, const struct store_volume *v, struct sg_error *e);
/* Removes a loose one. */
void store_volume_gone(struct store *s, const char *id);
/* By id, of any tenant. By name. -ENOENT, without a message. */
int store_volume_get(struct store *s, const char *id, struct store_volume *ret, struct sg_error *e);
int store_volume_named(struct store *s, const char *tenant, const char *name,
                       struct store_volume *ret, struct sg_error *e);
/* Oldest first. */
int store_volumes_each(struct store *s, const char *tenant,
                       void (*fn)(const struct store_volume *v, void *arg), void *arg,
                       struct sg_error *e);
/* Calls fn for those that are loose at the time of the call; it may change the list. */
int store_loose_volumes_each(struct store *s, void (*fn)(const struct store_volume *v, void *arg),
                             void *arg, struct sg_error *e);
