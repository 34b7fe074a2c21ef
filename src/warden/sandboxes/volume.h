/* Volumes: directories that sandboxes of a tenant share, and that outlive them.
 *
 *   STATE/volumes/TENANT/ID     one volume; its files have the ids they have inside, 0 to 65535
 *   STATE/volumes/removed-ID/v  one that a files worker is removing; the next start goes on with it
 *
 * The front has the list of them, in its database; the warden looks for the directory when it is
 * told its name. It makes, renames and mounts that directory, and never opens anything in it. Its
 * contents are read and written for the front by a helper (wire/volume.h). */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

struct server;
struct volume;

int volume_make(struct server *s, const char *tenant, const char *id, struct sg_error *e);
/* -EBUSY: somebody uses it. -ENOENT. */
int volume_remove(struct server *s, const char *tenant, const char *id, struct sg_error *e);
/* A connection to the volume's helper, which is started if there is none. */
int volume_connect(struct server *s, const char *tenant, const char *id, int *ret_fd,
                   struct sg_error *e);

/* The volume, for somebody who mounts it. -ENOENT. */
int volume_use(struct server *s, const char *tenant, const char *id, struct volume **ret,
               struct sg_error *e);
void volume_release(struct volume *v);
int volume_dir(const struct volume *v);

/* At the start: goes on with removals. At the end: ends the helpers. */
int volumes_load(struct server *s, struct sg_error *e);
void volumes_close(struct server *s);
