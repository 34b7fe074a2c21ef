/* Images that builds start from: fetched by world builders (wire/world_builder.h), kept as layers of the tenant.
 *
 *   known by its digest ------------------------------------------------> there
 *   known by its tag --> asked for ---- same, or no answer -------------> there
 *   not known ---------> asked for --> fetched --> unpacked --> stored -> there
 *
 * An image may also be an archive that the tenant has uploaded, as an archive of a COPY step: "upload:HASH".
 *
 * What was fetched is found again by the image's name and the credentials that came with it, and by
 * its tenant alone. Builds of a tenant that want the same image at the same time wait for one
 * fetch; it ends when the last of them leaves. */
#pragma once

#include "front/builds/log.h"
#include "front/core/front.h"
#include "lib/base/ids.h"
#include "lib/base/list.h"

struct fetch;

struct fetched {
    char layer[ID_LEN + 1]; /* a world, and a layer of the tenant's builds */
    /* Of the image's config, borrowed: variables (front/core/defaults.h), and its user and directory as steps. */
    json_t *defaults, *steps;
};

/* Somebody who waits for an image. */
struct fetch_user {
    struct list link;
    struct fetch *fetch;   /* NULL: it waits for nothing */
    struct build_log *log; /* that is told how it goes */
    /* Called once, perhaps before fetch_join returns. r: 0, or -errno with e. */
    void (*done)(void *arg, int r, const struct fetched *f, const struct sg_error *e);
    void *arg;
};

#define FETCH_UPLOAD "upload:"
/* Whether the name is one of an archive that was uploaded (front/builds/upload.h). */
bool fetch_is_upload(const char *image);
/* credentials: as pull/request.h has them, or NULL. */
void fetch_join(struct front *f, const char *tenant, const char *image, const json_t *credentials,
                struct fetch_user *u);
/* done is not called any more. */
void fetch_leave(struct fetch_user *u);
/* Whether somebody may get this layer, which was fetched before. */
bool fetches_need(const char *layer);
/* Once, at the start: removes what was left of fetches when a server was killed, and from then on what
 * `sandglass world rm` has dropped. */
void fetches_tidy(struct front *f);
