/* The options that `run` and `acp` share, because both make a sandbox of their own: limits, mounts,
 * environment, user, network, policy. Parsing touches nothing but the arguments, our environment
 * (for --env NAME) and the working directory (for relative mounts), so that it can be fuzzed. The
 * files that the options name are read afterwards, see cage_inputs.h.
 *
 * A verb's own structure begins with a struct cage_options, and its table ends with CAGE_ROWS. */
#pragma once

#include "cli/shared/env_list.h"
#include "cli/local/network_list.h"
#include "lib/command/options.h"

#define CAGE_MOUNTS_MAX    64
#define CAGE_ENV_FILES_MAX 16

struct cage_options {
    bool help, quiet;
    struct sg_limits limits; /* 0: the library's default */
    uint64_t timeout_ms;
    struct sg_mount mounts[CAGE_MOUNTS_MAX]; /* we own source and target */
    size_t n_mounts;
    struct env_list env;
    const char *env_files[CAGE_ENV_FILES_MAX];
    size_t n_env_files;
    const char *user, *cwd, *hostname, *policy;
    struct network_list network;
    bool network_given;
    bool approve;
};

/* --timeout is not among these rows: its default, which the help shows, differs between the
 * verbs. */
#define CAGE_ROW(...) {__VA_ARGS__},
#define CAGE_ROWS     CAGE_LIMITS(CAGE_ROW) CAGE_SURROUNDINGS(CAGE_ROW) CAGE_LAST(CAGE_ROW)
#define CAGE_LIMITS(X)                                                                   \
    X("memory", 'm', "SIZE", "memory limit: 64M, 1G (default)", cage_apply_memory)       \
    X("cpus", 0, "N", "processor time per second: 0.5, 1 (default), 2", cage_apply_cpus) \
    X("pids", 0, "N", "limit of processes and threads (default 512)", cage_apply_pids)   \
    X("disk", 0, "SIZE", "limit of files written (default 512M), kept in memory", cage_apply_disk)
#define CAGE_SURROUNDINGS(X)                                                                       \
    X("mount", 'v', "SRC:DST[:ro|rw]", "show a host directory or file inside (default ro)",        \
      cage_apply_mount)                                                                            \
    X("env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment",               \
      cage_apply_env)                                                                              \
    X("env-file", 0, "FILE", "set variables from lines NAME=VALUE", cage_apply_env_file)           \
    X("user", 'u', "NAME", "user (default) or root, inside the sandbox", cage_apply_user)          \
    X("cwd", 'w', "DIR", "directory to start in (default: the user's home)", cage_apply_cwd)       \
    X("hostname", 0, "NAME", "host name inside (default sandbox)", cage_apply_hostname)            \
    X("network", 0, "block|allow|LIST", "what may be reached (default block)", cage_apply_network) \
    X("approve", 0, NULL, "agree to what the policy does not allow by itself", cage_apply_approve) \
    X("policy", 0, "FILE", "policy to use (default /etc/sandglass/policy)", cage_apply_policy)
#define CAGE_LAST(X)                                                                     \
    X("quiet", 'q', NULL, "no remarks of sandglass on standard error", cage_apply_quiet) \
    X("help", 'h', NULL, "show this text", cage_apply_help)

int cage_apply_memory(void *self, const char *value, struct sg_error *e);
int cage_apply_disk(void *self, const char *value, struct sg_error *e);
int cage_apply_timeout(void *self, const char *value, struct sg_error *e);
int cage_apply_cpus(void *self, const char *value, struct sg_error *e);
int cage_apply_pids(void *self, const char *value, struct sg_error *e);
int cage_apply_mount(void *self, const char *value, struct sg_error *e);
int cage_apply_env(void *self, const char *value, struct sg_error *e);
int cage_apply_env_file(void *self, const char *value, struct sg_error *e);
int cage_apply_user(void *self, const char *value, struct sg_error *e);
int cage_apply_cwd(void *self, const char *value, struct sg_error *e);
int cage_apply_network(void *self, const char *value, struct sg_error *e);
int cage_apply_hostname(void *self, const char *value, struct sg_error *e);
int cage_apply_policy(void *self, const char *value, struct sg_error *e);
int cage_apply_approve(void *self, const char *value, struct sg_error *e);
int cage_apply_quiet(void *self, const char *value, struct sg_error *e);
int cage_apply_help(void *self, const char *value, struct sg_error *e);
/* Parses a size and checks its bounds; also for options of the verbs' own. */
int cage_size_between(const char *option, const char *value, uint64_t min, uint64_t max,
                      uint64_t *ret, struct sg_error *e);

void cage_options_done(struct cage_options *o);
