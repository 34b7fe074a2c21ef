/* The settings of a server. One table (settings.c) has the name, the type and the explanation of
 * each; the configuration file, the environment, the flags of `sandglass serve` and its manual all
 * follow this table.
 *
 *   key in the file    tls_cert = /etc/ssl/server.pem
 *   environment        SANDGLASS_TLS_CERT=/etc/ssl/server.pem
 *   flag               --tls-cert /etc/ssl/server.pem
 *
 * A flag overrides the environment, and the environment overrides the file. The warden gives the
 * front the result as text, in the form of the file. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/hidden.h"
#include "lib/text/strbuf.h"

#define SETTINGS_TEXT_MAX  (64u * 1024)
#define SETTINGS_PATH_MAX  512
#define SETTINGS_ENV_MAX   48
#define SETTINGS_LISTEN    "127.0.0.1:3000"
#define SETTINGS_STATE_DIR "/var/lib/sandglass/server"

enum settings_store { STORE_SQLITE, STORE_MEMORY, STORE_POSTGRES };
enum settings_log { SETTINGS_LOG_AUTO, SETTINGS_LOG_TEXT, SETTINGS_LOG_JSON };
enum settings_otlp { OTLP_PROTOBUF, OTLP_JSON };
enum settings_fork { FORK_AUTO, FORK_PLAIN };
enum settings_egress { EGRESS_OPEN, EGRESS_BLOCK };
enum settings_path {
    EGRESS_PATH_AUTO,
    EGRESS_PATH_SK_LOOKUP,
    EGRESS_PATH_TPROXY,
    EGRESS_PATH_REDIRECT
};
enum settings_fake { FAKE_AUTO, FAKE_YES, FAKE_NO };
enum settings_sanitise { SETTINGS_ENFORCE, SETTINGS_REPORT_ONLY, SETTINGS_OFF };
enum settings_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR, LEVEL_MAX_ };

/* A sandbox that is paused with its memory counts for at least this much: whatever ran in it, it
 * has a slot, descriptors and an agent. */
#define PAUSED_LEAST (16u * 1024 * 1024)

struct settings {
    char listen[SETTINGS_PATH_MAX]; /* lib/settings/address.h reads it */
    char state[SETTINGS_PATH_MAX];
    char tls_cert[SETTINGS_PATH_MAX], tls_key[SETTINGS_PATH_MAX]; /* both or none */
    char domain[256];                                             /* may have a port; "" if none */
    bool insecure;
    char front_user[64], front_program[SETTINGS_PATH_MAX]; /* "": the usual one */
    uint64_t sandbox_memory, sandbox_disk;                 /* bytes */
    uint32_t sandbox_cpus_milli, sandbox_pids;
    uint64_t machine_memory; /* of all sandboxes; 0: the machine's, less 10 % and less 1 GiB */
    uint64_t tenant_memory;  /* of all sandboxes of a tenant; 0: no limit */
    uint32_t pool_min, pool_max;
    enum settings_fork kernel_fork;
    char warm_kernels[512]; /* auto, standard, science, none, or names of modules with commas
                               between */
    uint32_t tenant_sandboxes;
    uint32_t tenant_paused;
    uint64_t tenant_paused_memory; /* bytes */
    uint32_t tenant_rate;          /* requests a second; 0: no limit */
    uint32_t tenant_snapshots;
    uint64_t tenant_idle_ms;
    uint64_t drain_timeout_ms;
    uint64_t max_timeout_ms;
    char default_template[128];
    struct hidden store;  /* see settings_store(); the address of PostgreSQL may have a password */
    char public_url[256]; /* "": other servers cannot send clients here */
    char context_template[128];
    uint64_t context_ttl_ms;
    uint64_t context_keep_ms, usage_keep_ms; /* keep rows of ended things so long; 0: for ever */
    uint32_t tenant_contexts, conversation_contexts;
    uint64_t execution_timeout_ms, execution_timeout_max_ms;
    uint64_t code_max; /* bytes */
    uint64_t reap_every_ms;
    uint32_t reap_batch;
    bool checkpoints;                         /* whether a checkpoint is made before each message */
    uint32_t checkpoint_keep, checkpoint_max; /* of a sandbox: the newest to keep; most in all */
    uint64_t checkpoint_age_ms;
    uint64_t checkpoint_memory;       /* of a tenant: memory of the kernels of its checkpoints */
    char analysis[SETTINGS_PATH_MAX]; /* "": those that come with the program */
    char guard_user[64], guard_program[SETTINGS_PATH_MAX]; /* "": the usual one */
    enum settings_egress egress_e2b_default;               /* for a create that does not say */
    enum settings_path egress_path;
    char egress_dns[256];                          /* auto, or addresses */
    char egress_internal[1024], egress_deny[1024]; /* lists; "": none */
    char egress_roots[SETTINGS_PATH_MAX];          /* "": the system's alone */
    enum settings_fake egress_fake_ip;
    bool egress_quic, egress_dot, egress_ech;
    uint32_t egress_flows, egress_flow_rate; /* of a sandbox */
    uint64_t egress_bytes;                   /* 0: no limit */
    enum settings_sanitise sanitise, sanitise_streams;
    bool sanitise_always; /* no tenant, key or call may turn it off */
    char sanitise_patterns[SETTINGS_PATH_MAX];
    uint64_t audit_size;
    uint32_t audit_files;
    uint64_t agent_timeout_ms; /* of a hosted agent that sets none */
    uint64_t agent_replay;     /* bytes of its messages kept for a client that reconnects */
    uint32_t tenant_agents;
    char otlp_endpoint[256]; /* "": no traces */
    enum settings_otlp otlp_protocol;
    struct hidden otlp_headers; /* name=value,... */
    uint32_t trace_sample;      /* per cent of traces that begin here */
    bool trace_content;
    char langfuse_host[256]; /* "": none */
    char langfuse_public_key[128];
    struct hidden langfuse_secret_key;
    char metrics_listen[SETTINGS_PATH_MAX]; /* "": no listener of its own */
    struct hidden metrics_token;            /* "": the other listeners have no /metrics */
    char prices[256];                       /* "": usage has no price */
    uint32_t event_keep;
    char webhook_url[256];
    struct hidden webhook_secret;
    char webhook_events[256]; /* kinds, with commas and * at an end; "": all */
    enum settings_log log;
    enum settings_level log_level;
    uint32_t log_rate; /* lines a second; 0: no limit */
    uint64_t log_size; /* of the file */
};

/* Every key; enum setting and the flags of `serve` are made from this list. */
#define SETTINGS_KEYS(X)     \
    X(listen)                \
    X(state)                 \
    X(tls_cert)              \
    X(tls_key)               \
    X(domain)                \
    X(insecure)              \
    X(front_user)            \
    X(front_program)         \
    X(sandbox_memory)        \
    X(sandbox_disk)          \
    X(sandbox_cpus)          \
    X(sandbox_pids)          \
    X(machine_memory)        \
    X(pool_min)              \
    X(pool_max)              \
    X(warm_kernels)          \
    X(kernel_fork)           \
    X(tenant_sandboxes)      \
    X(tenant_paused)         \
    X(tenant_paused_memory)  \
    X(tenant_memory)         \
    X(tenant_rate)           \
    X(tenant_snapshots)      \
    X(tenant_idle)           \
    X(drain_timeout)         \
    X(max_timeout)           \
    X(default_template)      \
    X(store)                 \
    X(public_url)            \
    X(context_template)      \
    X(context_ttl)           \
    X(context_keep)          \
    X(usage_keep)            \
    X(tenant_contexts)       \
    X(conversation_contexts) \
    X(execution_timeout)     \
    X(execution_timeout_max) \
    X(code_max)              \
    X(reap_every)            \
    X(reap_batch)            \
    X(checkpoints)           \
    X(checkpoint_keep)       \
    X(checkpoint_max)        \
    X(checkpoint_age)        \
    X(checkpoint_memory)     \
    X(analysis)              \
    X(guard_user)            \
    X(guard_program)         \
    X(egress_e2b_default)    \
    X(egress_path)           \
    X(egress_dns)            \
    X(egress_internal)       \
    X(egress_deny)           \
    X(egress_roots)          \
    X(egress_fake_ip)        \
    X(egress_quic)           \
    X(egress_dot)            \
    X(egress_ech)            \
    X(egress_flows)          \
    X(egress_flow_rate)      \
    X(egress_bytes)          \
    X(sanitise)              \
    X(sanitise_streams)      \
    X(sanitise_always)       \
    X(sanitise_patterns)     \
    X(audit_size)            \
    X(audit_files)           \
    X(agent_timeout)         \
    X(agent_replay)          \
    X(tenant_agents)         \
    X(otlp_endpoint)         \
    X(otlp_protocol)         \
    X(otlp_headers)          \
    X(trace_sample)          \
    X(trace_content)         \
    X(langfuse_host)         \
    X(langfuse_public_key)   \
    X(langfuse_secret_key)   \
    X(metrics_listen)        \
    X(metrics_token)         \
    X(prices)                \
    X(event_keep)            \
    X(webhook_url)           \
    X(webhook_secret)        \
    X(webhook_events)        \
    X(log)                   \
    X(log_level)             \
    X(log_rate)              \
    X(log_size)

#define SETTINGS_ENUM(key) SETTING_##key,
enum setting { SETTINGS_KEYS(SETTINGS_ENUM) SETTING_MAX_ };

struct setting_info {
    const char *key;
    const char *argument; /* "SIZE" in the help; NULL: yes or no, and a flag without a value */
    const char *normal;   /* the default, as text */
    const char *help;
    bool fixed; /* cannot change while the server runs */
};
const struct setting_info *setting_info(enum setting k);
/* "SANDGLASS_TLS_CERT" and "tls-cert". */
void setting_env(enum setting k, char ret[SETTINGS_ENV_MAX]);
void setting_flag(enum setting k, char ret[SETTINGS_ENV_MAX]);

void settings_init(struct settings *s); /* the defaults */
/* `what` names the origin of the value in the error. */
int settings_set(struct settings *s, enum setting k, const char *what, const char *value,
                 struct sg_error *e);
/* Lines `key = value`; empty ones and those that begin with # are skipped. `name` is the file's in
 * errors. The text is changed. */
int settings_parse_text(struct settings *s, const char *name, char *text, struct sg_error *e);
int settings_parse_env(struct settings *s, struct sg_error *e);
/* Checks settings against each other. */
int settings_check(const struct settings *s, struct sg_error *e);
enum settings_store settings_store(const struct settings *s);
/* For a process that need not know them: empties all secrets, and sets the store to "memory", since
 * the database's address may have a password. */
void settings_forget_secrets(struct settings *s);
/* Whether a and b have the same value for a key. */
bool settings_same(const struct settings *a, const struct settings *b, enum setting k);
/* Copies the value of one key. */
void settings_copy(struct settings *to, const struct settings *from, enum setting k);
/* Prints all settings in the form that settings_parse_text reads. */
void settings_print(const struct settings *s, struct strbuf *out);
