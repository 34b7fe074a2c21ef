/* `sandglass world ls`, `rm`, `du` and `gc`. What is on disk is looked at by root; what the database
 * says of it, by a child that is the owner of that. */
#pragma once

#include "lib/command/actions.h"

struct world_options {
    struct action_options base; /* `which`: a file, or "-" for standard input; an image's name */
    const char *name, *tenant;
    bool image;                  /* import: the file is an image */
    const char *user, *insecure; /* pull */
    bool all;                    /* gc */
};

extern const struct cli_syntax world_ls_syntax, world_rm_syntax, world_gc_syntax;

/* STATE/worlds, for root alone. */
int worlds_open(const struct world_options *o, struct sg_error *e);

int world_ls(const struct world_options *o, struct sg_error *e);
/* -EBUSY: a template or a snapshot stands on it. */
int world_rm(const struct world_options *o, struct sg_error *e);
int world_du(const struct world_options *o, struct sg_error *e);
/* Removes directories that no world is, left by what was killed; with o->all also images that builds
 * have fetched and on which nothing stands. */
int world_gc(const struct world_options *o, struct sg_error *e);
