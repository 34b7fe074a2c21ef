/* The command line of `sandglass create`. */
#pragma once

#include "cli/shared/env_options.h"
#include "cli/client/client.h"

#define CREATE_METADATA_MAX 64

struct create_options {
    struct client_common common;
    const char *template; /* NULL: the default */
    uint64_t timeout_s;   /* 0: the default */
    struct env_list env;
    struct env_files env_files;
    char *metadata[CREATE_METADATA_MAX]; /* "K=V"; we own the strings */
    size_t n_metadata;
    bool auto_pause, json;
};

/* Frees the environment and the metadata; plain values stay. */
void create_options_done(struct create_options *o);
