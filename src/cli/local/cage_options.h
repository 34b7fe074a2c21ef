/* The options that `run` and `acp` share, because both make a sandbox of their own: limits, mounts,
 * environment, user, network, policy. Parsing touches nothing but the arguments, our environment
 * (for --env NAME) and the working directory (for relative mounts), so that it can be fuzzed. The
 * files that the options name are read afterwards, see cage_inputs.h.
 *
 * A verb's own structure begins with a struct cage_options, and its table ends with CAGE_ROWS. */
#pragma once

#include "cli/shared/env_options.h"
#include "lib/base/err.h"
#include "lib/command/options.h"

#define CAGE_MOUNTS_MAX 64

/* The value of --network: "block", "allow", or a list of destinations with commas between:
 *
 *     example.com,*.example.com,192.0.2.0/24     nothing but these
 *     !192.0.2.7,!*.ads.example                  everything but these */
#define NETWORK_LIST_MAX 4096 /* entries */

struct network_list {
    enum sg_network mode;
    const char **allow, **deny; /* NULL-terminated, or NULL */
    char *text;                 /* a copy of the value, which the lists point into */
};

struct cage_options {
    bool help, quiet;
    struct sg_limits limits; /* 0: the library's default */
    uint64_t timeout_ms;
    struct sg_mount mounts[CAGE_MOUNTS_MAX]; /* we own source and target */
    size_t n_mounts;
    struct env_list env;
    struct env_files env_files;
    const char *user, *cwd, *hostname, *policy;
    struct network_list network;
    bool network_given;
    bool approve;
};

#define CAGE_MIB (1024ull * 1024)
#define CAGE_TIB (1024ull * 1024 * CAGE_MIB)
#define CAGE_SIZE(type, member, low, high) \
    CLI_AT(cage_size, type, member), .least = low, .most = high
/* --timeout is not among the rows below: its default, which the help shows, differs between the
 * verbs. */
#define CAGE_TIMEOUT  CLI_TIME(cage_options, timeout_ms, 1, 24ull * 3600 * 1000, "1ms and 24h")
#define CAGE_ROW(...) {__VA_ARGS__},
#define CAGE_ROWS     CAGE_LIMITS(CAGE_ROW) CAGE_SURROUNDINGS(CAGE_ROW) CAGE_LAST(CAGE_ROW)
#define CAGE_LIMITS(X)                                                            \
    X("memory", 'm', "SIZE", "memory limit: 64M, 1G (default)",                   \
      CAGE_SIZE(cage_options, limits.memory_bytes, 16 * CAGE_MIB, CAGE_TIB))      \
    X("cpus", 0, "N", "processor time per second: 0.5, 1 (default), 2",           \
      CLI_AT(cage_cpus, cage_options, limits.cpus_milli))                         \
    X("pids", 0, "N", "limit of processes and threads (default 512)",             \
      CLI_AT(cage_pids, cage_options, limits.pids))                               \
    X("disk", 0, "SIZE", "limit of files written (default 512M), kept in memory", \
      CAGE_SIZE(cage_options, limits.disk_bytes, CAGE_MIB, CAGE_TIB))
#define CAGE_SURROUNDINGS(X)                                                                \
    X("mount", 'v', "SRC:DST[:ro|rw]", "show a host directory or file inside (default ro)", \
      .apply = cage_mount)                                                                  \
    X("env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment",        \
      CLI_AT(env_option, cage_options, env))                                                \
    X("env-file", 0, "FILE", "set variables from lines NAME=VALUE",                         \
      CLI_AT(env_file_option, cage_options, env_files))                                     \
    X("user", 'u', "NAME", "user (default) or root, inside the sandbox",                    \
      CLI_AT(cage_user, cage_options, user))                                                \
    X("cwd", 'w', "DIR", "directory to start in (default: the user's home)",                \
      CLI_AT(cage_cwd, cage_options, cwd))                                                  \
    X("hostname", 0, "NAME", "host name inside (default sandbox)",                          \
      CLI_AT(cage_hostname, cage_options, hostname))                                        \
    X("network", 0, "block|allow|LIST", "what the sandbox may reach (default block)",       \
      .apply = cage_network)                                                                \
    X("approve", 0, NULL, "approve what the policy does not allow by itself",               \
      CLI_FLAG(cage_options, approve))                                                      \
    X("policy", 0, "FILE", "policy to use (default /etc/sandglass/policy)",                 \
      CLI_FILLED(cage_options, policy, "the name of the file"))
#define CAGE_LAST(X)                                                 \
    X("quiet", 'q', NULL, "no notes of sandglass on standard error", \
      CLI_FLAG(cage_options, quiet))                                 \
    X("help", 'h', NULL, "show this text", CLI_FLAG(cage_options, help))

/* Values of the rows above: cage_size checks the row's bounds, and is for options of the verbs' own
 * too. */
int cage_size(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cage_cpus(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cage_pids(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cage_mount(void *self, const struct cli_option *o, const char *value, struct sg_error *e);
int cage_user(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cage_cwd(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cage_hostname(void *to, const struct cli_option *o, const char *value, struct sg_error *e);
int cage_network(void *self, const struct cli_option *o, const char *value, struct sg_error *e);

/* Parses `value` into `l`, and frees what `l` held before. */
int network_list_parse(struct network_list *l, const char *value, struct sg_error *e);
void network_list_done(struct network_list *l);

void cage_options_done(struct cage_options *o);
