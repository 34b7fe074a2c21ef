/* sandglass template: templates of a server, built from Dockerfiles or made of images. */
#pragma once

#include "cli/client/client.h"

#define TEMPLATE_LIST_MAX 16
#define TEMPLATE_ARGS_MAX 64 /* --build-arg */

struct template_options {
    struct client_actions base;
    const char *name, *file, *start, *ready;
    const char *tags[TEMPLATE_LIST_MAX];
    char *build_args[TEMPLATE_ARGS_MAX];
    size_t n_tags, n_build_args;
    uint64_t cpus, memory; /* bytes; 0: not given */
    bool no_cache;
};

/* The actions `build` and `import`. */
int template_build(struct client *c, void *options, struct sg_error *e);
int template_import(struct client *c, void *options, struct sg_error *e);
/* The name of a template that a directory is built as: its own, in the letters that a name may have. "":
 * none is left. */
void template_name_of(const char *dir, char *ret, size_t cap);
