/* The command line of `sandglass acp`, as a structure. */
#pragma once

#include "cli/local/cage_options.h"

#define ACP_DEFAULT_TIMEOUT_MS 3600000
#define ACP_SECRETS_MAX        32
#define ACP_SECRET_HOSTS_MAX   16
#define ACP_DEFAULT_INTO       "~/project"

/* --secret NAME[=ENVVAR]@HOST[,HOST...] */
struct acp_secret {
    char *text; /* a copy of the value, which the other fields point into */
    const char *name, *variable;
    const char *hosts[ACP_SECRET_HOSTS_MAX + 1]; /* NULL-terminated */
};

struct acp_options {
    struct cage_options cage; /* must be the first member: see cage_options.h */
    const char *source, *into, *log;
    bool serve_fs;
    struct acp_secret secrets[ACP_SECRETS_MAX];
    size_t n_secrets;
    char **command; /* NULL-terminated */
};

extern const struct cli_syntax acp_syntax;

/* Strings are not copied: argv must live as long as the structure. On failure nothing is left to
 * free; every error here is bad usage. */
int acp_options_parse(int argc, char **argv, struct acp_options *ret, struct sg_error *e);
void acp_options_done(struct acp_options *o);
