/* The arguments of a request that runs a program without a context. */
#pragma once

#include "front/tools/tools.h"

#define ONCE_FILES_MAX 64

struct once_file {
    const char *path; /* relative to the home directory, or absolute */
    const char *content;
    size_t len;
};

struct once_request {
    json_t *body; /* the texts below point into it; the owner releases it */
    struct once_file files[ONCE_FILES_MAX + 1];
    size_t n_files;
    const char *const *command; /* "@" stands for the program's path; ends with NULL */
    const char *path;           /* path of the program, which is one of `files` */
    const char *input;          /* NULL: none */
    size_t input_len;
    json_t *envs; /* object of strings, or NULL */
    uint64_t timeout_ms;
    uint64_t memory_bytes; /* 0: the default; also for the two below */
    uint32_t cpus_milli;
    size_t output_max;
    const char *session; /* NULL: none */
};

/* -E2BIG: over a limit, which the message names. */
int once_request_read(struct front *f, const struct store_tenant *tenant, const json_t *arguments,
                      struct once_request *ret, struct sg_error *e);
