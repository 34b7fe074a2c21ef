/* libsandglass: run untrusted code in a hardened sandbox.
 *
 *     struct sg_result r;
 *     struct sg_error e;
 *     if (sg_execute_code("print(1+1)", 10, SG_PYTHON, NULL, &r, &e) < 0)
 *         return fprintf(stderr, "%s\n", e.message), 1;
 *     fwrite(r.stdout_data, 1, r.stdout_len, stdout);
 *     sg_result_free(&r);
 *
 * Rules that hold for every function:
 *   - it returns 0, or a negative errno and fills *e (e may be NULL);
 *   - what it returns through a pointer is written on success only;
 *   - it needs root (CAP_SYS_ADMIN in the initial user namespace) and says so if it has not got it;
 *   - an options structure starts from its initialiser, SG_OPTIONS_INIT or SG_EXEC_INIT; a zero or
 *     NULL field means the default;
 *   - handles are not locked: use one from one thread at a time. Different handles are independent.
 *
 * sandglass(3) is the manual page. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SG_VERSION "0.1.0"
#define SG_EXPORT  __attribute__((visibility("default")))

/* ---- errors ---------------------------------------------------------------------------------- */

enum sg_error_kind {
    SG_ERR_NONE,
    SG_ERR_INTERNAL,    /* our bug, or the kernel refused something it should not */
    SG_ERR_INVALID,     /* the caller's input is wrong */
    SG_ERR_NOT_FOUND,   /* a named file, mount source, user or sandbox is not there */
    SG_ERR_DENIED,      /* the policy refuses it without approval, or file permissions do */
    SG_ERR_UNSUPPORTED, /* this host or this build cannot do it */
    SG_ERR_LIMIT,       /* a quota or a full resource: slots, disk, descriptors */
    SG_ERR_GONE,        /* the sandbox has ended */
    SG_ERR_MAX_
};

/* A struct sg_error lives on the caller's stack and never allocates, so a function can fill it
 * after a failed allocation and between fork and exec. The message is one line: what happened, to
 * which input, what to do. */
struct sg_error {
    enum sg_error_kind kind;
    int code; /* negative errno */
    char message[488];
};

/* The name of the kind in JSON: "invalid", "not_found", ... */
SG_EXPORT const char *sg_error_kind_name(enum sg_error_kind kind);

/* ---- what to run, and inside which limits ---------------------------------------------------- */

enum sg_language { SG_PYTHON, SG_JAVASCRIPT, SG_TYPESCRIPT, SG_BASH, SG_LANGUAGE_MAX_ };

SG_EXPORT const char *sg_language_name(enum sg_language language);
/* Accepts the names above and the usual short forms (py, js, ts, sh). */
SG_EXPORT int sg_language_parse(const char *name, enum sg_language *ret, struct sg_error *e);

/* Tells the language from the suffix: .py, .js, .mjs, .cjs, .ts, .mts, .cts, .sh, .bash. */
SG_EXPORT int sg_language_of_path(const char *path, enum sg_language *ret, struct sg_error *e);

enum sg_network {
    SG_NETWORK_BLOCK, /* nothing goes out */
    SG_NETWORK_ALLOW, /* everything but network_deny */
    SG_NETWORK_LIST,  /* nothing but network_allow */
};

struct sg_limits {
    uint64_t memory_bytes; /* default 1 GiB; swap is never used */
    uint64_t disk_bytes;   /* default 512 MiB; the disk is in memory and counts as memory */
    uint64_t disk_inodes;  /* default: one per 4 KiB of disk, at least 4,096 */
    uint32_t cpus_milli;   /* default 1000 = one core */
    uint32_t pids;         /* default 512, threads included */
};

struct sg_mount {
    const char *source; /* a host directory or file, below one of the policy's roots; a relative
                         * path begins at the working directory */
    const char *target; /* absolute path inside */
    bool writable;      /* needs approval under the default policy */
};

/* The operator's rules: which sandboxes may run without approval, and which need `approved`. The
 * default allows the least. */
struct sg_policy {
    const char *const *mount_roots; /* NULL-terminated; NULL: SG_DEFAULT_MOUNT_ROOTS */
    bool allow_network;             /* network without approval */
    bool allow_writable_mounts;     /* writable mounts without approval */
};

#define SG_DEFAULT_MOUNT_ROOTS                                              \
    {                                                                       \
        "/home", "/srv", "/mnt", "/media", "/opt", "/tmp", "/var/tmp", NULL \
    }

/* A secret that programs inside can use and never see. Inside, the variable `name` holds a
 * placeholder. The guard replaces it by the value in the headers authorization, x-api-key and
 * api-key of requests to `hosts`. To do so it inspects those connections. network_allow must allow
 * the hosts as well. */
struct sg_secret {
    const char *name, *value;
    const char *const *hosts; /* NULL-terminated: names ("api.example.com", "*.example.com") */
};

struct sg_options {
    size_t size; /* sizeof(struct sg_options): set by the initialiser, lets the struct grow */
    struct sg_limits limits;
    enum sg_network network;
    const struct sg_mount *mounts;
    size_t n_mounts;
    const char *mount_owner;        /* the user inside who stands for the owners of mounted
                                     * directories: "user" (default) or "root" */
    const struct sg_policy *policy; /* NULL: the default policy */
    bool approved;                  /* a person, or the caller on their behalf, said yes */
    const char *hostname;           /* default "sandbox" */
    /* Each a NULL-terminated list, or NULL: names ("example.com", "*.example.com"), addresses and
     * networks ("192.0.2.0/24"). An allowed entry overrides a denied one. Allowing a name does not
     * allow its address by number. No entry opens an internal address; only guard_settings does. */
    const char *const *network_allow;
    const char *const *network_deny;
    /* The guard's program. Everything that leaves a sandbox goes through the guard. An engine
     * starts one guard for all its sandboxes, when the first of them needs it. NULL: the installed
     * program. */
    const char *guard_program;
    const char *guard_settings; /* egress_... lines of sandglass.conf(5) for the guard, or NULL */
    const char *guard_roots;    /* PEM: roots that the guard trusts beside the host's, or NULL */
    const struct sg_secret *secrets; /* a sandbox with secrets needs a network */
    size_t n_secrets;
};

#define SG_OPTIONS_INIT                   \
    {                                     \
        .size = sizeof(struct sg_options) \
    }

/* ---- one execution --------------------------------------------------------------------------- */

enum sg_stream { SG_STDOUT = 1, SG_STDERR = 2 };

struct sg_exec {
    size_t size;
    const char *const *argv; /* NULL-terminated; the program is looked up in PATH inside */
    const char *const *env;  /* NULL-terminated "K=V", added to a small default environment */
    const char *cwd;         /* default: the user's home */
    const char *user;        /* "user" (default) or "root" */
    uint64_t timeout_ms;     /* default 30,000 */
    uint64_t output_limit;   /* bytes kept of each stream; default 8 MiB; the rest is dropped */
    const void *stdin_data;  /* NULL: empty, unless stdin_fd is set */
    size_t stdin_len;
    int stdin_fd; /* a descriptor to feed stdin from, or -1 (the initialiser's value) */
    bool tty;     /* a pseudo-terminal: stdout and stderr become one stream */
    uint16_t tty_rows, tty_cols;
    /* Called with each piece of output as it comes. If this is set, the result keeps no output. */
    void (*on_output)(void *arg, enum sg_stream stream, const void *data, size_t len);
    void *on_output_arg;
    /* When this descriptor becomes readable, the program is killed and the call returns; -1:
     * none. */
    int interrupt_fd;
    /* For sg_execute_code and sg_sandbox_run_code: the code is a cell of a notebook, not a program.
     * The cell prints the value of its last expression, may use await at top level, and has
     * everything else that a kernel offers. SG_BASH makes no difference between the two. */
    bool cell;
    /* Called for each result of a cell after the cell has ended. A result is a JSON object such as
     * {"main": true, "text": "2"}; its keys are those of E2B's results (png, html, chart, ...). The
     * code in the cell can write results too, so trust them no more than output. At most 32 MiB in
     * all. */
    void (*on_result)(void *arg, const char *json, size_t len);
    void *on_result_arg;
    /* Descriptors to which all output is written as it comes, or -1. With a descriptor the result
     * keeps no output of that stream. A slow reader delays this stream only; standard input goes
     * on. When nobody reads standard output any more, the program is ended and the call fails with
     * -ESHUTDOWN. When nobody reads standard error any more, the rest of it is dropped. */
    int stdout_fd, stderr_fd;
    /* For sg_execute_code and sg_sandbox_run_code: the name of the file that the code comes from.
     * Its suffix may mean something to the interpreter (.mjs). NULL: no name. */
    const char *code_name;
};

#define SG_EXEC_INIT                                                                         \
    {                                                                                        \
        .size = sizeof(struct sg_exec), .stdin_fd = -1, .interrupt_fd = -1, .stdout_fd = -1, \
        .stderr_fd = -1                                                                      \
    }

enum sg_status {
    SG_STATUS_SUCCESS,         /* the program ended with status 0 */
    SG_STATUS_EXECUTION_ERROR, /* the program ended with another status, or by a signal */
    SG_STATUS_TIMEOUT,         /* the time limit ended the program */
    SG_STATUS_SETUP_ERROR,     /* the program never ran */
    SG_STATUS_MAX_
};

/* The limit that shaped the result. The result has the program's own exit status as well. */
enum sg_limit {
    SG_LIMIT_NONE,
    SG_LIMIT_TIME,
    SG_LIMIT_MEMORY,
    SG_LIMIT_PIDS,
    SG_LIMIT_DISK,
    SG_LIMIT_OUTPUT,
    SG_LIMIT_MAX_
};

SG_EXPORT const char *sg_status_name(enum sg_status status);
SG_EXPORT const char *sg_limit_name(enum sg_limit limit); /* "memory"...; NULL for SG_LIMIT_NONE */

struct sg_usage {
    uint64_t cpu_user_us, cpu_system_us;
    uint64_t memory_peak_bytes;
    uint64_t disk_bytes;                 /* in use when the program ended */
    uint64_t stdout_bytes, stderr_bytes; /* written by the program, dropped ones included */
};

struct sg_result {
    char *stdout_data, *stderr_data; /* NUL-terminated for convenience; may hold NULs inside */
    size_t stdout_len, stderr_len;
    int exit_code; /* 0..255; 128 + signal; 124 after a timeout */
    int signal;    /* the signal that ended it, or 0 */
    uint64_t duration_us;
    enum sg_status status;
    enum sg_limit limit;
    char error_message[256]; /* empty on success */
    struct sg_usage usage;
    struct sg_limits limits_applied;
    uint64_t timeout_ms, output_limit; /* the values that were applied */
};

SG_EXPORT void sg_result_free(struct sg_result *r);

/* ---- one-shot -------------------------------------------------------------------------------- */

struct sg_run {
    struct sg_options options;
    struct sg_exec exec; /* argv is ignored by sg_execute_code and sg_execute_file */
};

#define SG_RUN_INIT                                      \
    {                                                    \
        .options = SG_OPTIONS_INIT, .exec = SG_EXEC_INIT \
    }

/* Makes a sandbox, runs the code in it, and removes the sandbox. `run` may be NULL. A program that
 * failed, timed out or hit a limit gives a result; an error means that nothing could be run. */
SG_EXPORT int sg_execute_code(const char *code, size_t len, enum sg_language language,
                              const struct sg_run *run, struct sg_result *ret, struct sg_error *e);
/* The language comes from the file's suffix when `language` is SG_LANGUAGE_MAX_. */
SG_EXPORT int sg_execute_file(const char *path, enum sg_language language, const struct sg_run *run,
                              struct sg_result *ret, struct sg_error *e);
SG_EXPORT int sg_execute_command(const struct sg_run *run, struct sg_result *ret,
                                 struct sg_error *e);

/* ---- sandboxes that live on ------------------------------------------------------------------ */

/* An engine prepares what its sandboxes share: id ranges, layers, helper processes. Opening one
 * takes about a millisecond; keep it for many sandboxes. max_sandboxes 0 means 1024. */
struct sg_engine;
SG_EXPORT int sg_engine_open(uint32_t max_sandboxes, struct sg_engine **ret, struct sg_error *e);
/* Ends every sandbox of the engine. NULL is allowed. */
SG_EXPORT void sg_engine_close(struct sg_engine *engine);

struct sg_sandbox;
SG_EXPORT int sg_sandbox_open(struct sg_engine *engine, const struct sg_options *options,
                              struct sg_sandbox **ret, struct sg_error *e);
/* 20 characters of [a-z0-9]. */
SG_EXPORT const char *sg_sandbox_id(const struct sg_sandbox *sandbox);
SG_EXPORT int sg_sandbox_exec(struct sg_sandbox *sandbox, const struct sg_exec *exec,
                              struct sg_result *ret, struct sg_error *e);
/* Runs code as sg_execute_code does, in this sandbox: files written by earlier calls are there. */
SG_EXPORT int sg_sandbox_run_code(struct sg_sandbox *sandbox, const char *code, size_t len,
                                  enum sg_language language, const struct sg_exec *exec,
                                  struct sg_result *ret, struct sg_error *e);
SG_EXPORT int sg_sandbox_write_file(struct sg_sandbox *sandbox, const char *user, const char *path,
                                    const void *data, size_t len, struct sg_error *e);
SG_EXPORT int sg_sandbox_read_file(struct sg_sandbox *sandbox, const char *user, const char *path,
                                   size_t max, char **ret, size_t *ret_len, struct sg_error *e);
/* Pause stops every process where it is; resume lets all go on. Memory and files stay. */
SG_EXPORT int sg_sandbox_pause(struct sg_sandbox *sandbox, struct sg_error *e);
SG_EXPORT int sg_sandbox_resume(struct sg_sandbox *sandbox, struct sg_error *e);
/* Kills every process, waits for their end, removes the sandbox and checks that nothing is left.
 * NULL is allowed. */
SG_EXPORT int sg_sandbox_close(struct sg_sandbox *sandbox, struct sg_error *e);

/* ---- the host -------------------------------------------------------------------------------- */

struct sg_host_state {
    uint32_t slots_used;   /* id ranges that running programs hold: one for each sandbox that their
                            * engines have room for, and one for each engine */
    uint32_t slots_stale;  /* left by crashed programs; swept when their ranges are needed */
    uint32_t groups_stale; /* empty control groups that crashed servers left */
};
SG_EXPORT int sg_host_state(struct sg_host_state *ret, struct sg_error *e);
/* Removes the processes, control groups and id ranges that crashed programs left. Returns the
 * number of ranges. */
SG_EXPORT int sg_host_sweep(struct sg_error *e);
/* The system-call policy of every sandbox as text, one call per line. The caller frees it. */
SG_EXPORT char *sg_syscall_policy(void);

#ifdef __cplusplus
}
#endif
