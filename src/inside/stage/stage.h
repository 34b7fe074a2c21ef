/* The way from the warden to a running agent, and the messages on it.
 *
 *   warden (host root)             spawner (root of F, in W)    future agent (pid 1 of C)
 *   ------------------             -------------------------    -------------------------
 *   spawn_request + channel   -->  clone3(user, mnt, pid,
 *     and cgroup fds               ipc, uts ns), id maps   -->  joins the control groups,
 *   pidfd, user ns fd         <--  spawn_reply                  builds /proc and /dev aside,
 *                                  (next network namespace)     waits on the channel
 *   ... the sandbox is prepared; whose it is and what it may use is not decided yet ...
 *   builds the layers for that
 *   user namespace
 *   stage_setup + mount fds   ------------------------------->  attaches the layers, pivot_root
 *   first bytes on the socket <-------------------------------  stage_reply, agent_serve()
 *
 * From then on the socket is the channel. With STAGE_LINE it is a line: the warden sends the agent
 * channels over it, and closes it to end the sandbox. See agent_serve.
 *
 * The spawner clones with CLONE_PARENT: the agent is the warden's own child, so that the warden
 * alone reaps it. The network namespace is the spawner's current one: made ahead, owned by F, so
 * root inside has no power over it; the spawner then moves on to a fresh one. The very first comes
 * from the holder, which makes it while the spawner is busy with mounts.
 *
 * The agent is not exec'ed: it is a copy of the spawner, a small static program that was exec'ed
 * from a sealed memfd and has never held anything but these messages. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Descriptors the holder and the spawner are started with. */
#define STAGE_CONTROL_FD 3
#define STAGE_NETNS_FD   4 /* a socket from the holder to the spawner */
#define STAGE_USERNS_FD  5 /* spawner only */

#define STAGE_MAGIC 0x73676c31u /* "sgl1" */
#define STAGE_BEAT \
    0x73676c62u /* "sglb": not a request but a heartbeat (warden/processes/heartbeat.h) */
#define STAGE_MOUNTS_MAX  16
#define STAGE_CGROUPS_MAX 6

struct spawn_request {
    uint32_t magic;
    uint32_t first_id;  /* of the sandbox's 65,536 ids, counted in F */
    uint32_t omit;      /* control builds: see defences.h */
    uint32_t n_cgroups; /* descriptors to write "0" to, after the channel's */
    uint32_t last;      /* no other will follow: no need to be ready for it */
};

struct spawn_reply {
    int32_t code; /* 0: two descriptors follow, pidfd and user namespace; STAGE_BEATS */
    char message[256];
};

#define STAGE_BEATS 1 /* the answer to STAGE_BEAT */

/* Descriptors come in this order: root, usr, one per mount. */
struct stage_setup {
    uint32_t magic;
    uint32_t n_mounts;
    uint64_t disk_bytes;
    uint32_t pids;
    uint32_t cpus;  /* that it may use, rounded up; no more than the host has */
    uint32_t flags; /* STAGE_LINE */
    char hostname[64];
    char targets[STAGE_MOUNTS_MAX][512];
};

#define STAGE_LINE  1u /* the socket becomes a line */
#define STAGE_TWINS 2u /* ... on which kernels can be asked for */

/* What goes over a line, and the descriptors beside it. The warden sends channels, kernels that it
 * was asked for or that are copies (src/warden/twin), and new roots; the agent asks for kernels,
 * one at a time, and says how a new root went. */
struct line_message {
    uint32_t what;
    int32_t pid; /* LINE_KERNEL to the agent: its process, as seen inside */
    int32_t
        was; /* with it: the one that it is a copy of, as seen in that one's sandbox; 0: of none */
    int32_t code; /* LINE_ROOT to the agent: LINE_ROOT_*. From it: 0 or -errno */
};
enum line_what {
    LINE_CHANNEL = 'c', /* to the agent: one descriptor */
    LINE_KERNEL = 'k',  /* to the agent: control socket, read ends of its stdout and stderr, pidfd.
                         * From the agent: a kernel, please */
    LINE_NO_KERNEL = 'n', /* to the agent: there is none to be had, now */
    /* To the agent: a detached mount that becomes the root directory of all that runs inside
     * (root_move); with LINE_ROOT_CLEAR everything inside but the agent is killed first, and
     * contexts have no kernels. From the agent: how that went. -EBUSY: it writes a file for the
     * host just now. */
    LINE_ROOT = 'r',
};
#define LINE_ROOT_CLEAR 1
#define LINE_FDS_MAX    4

#define STAGE_FIXED_FDS 2
#define STAGE_FDS_MAX   (STAGE_FIXED_FDS + STAGE_MOUNTS_MAX)

struct stage_reply {
    int32_t code;
    int32_t kind; /* enum sg_error_kind */
    char message[256];
};

/* Role entry points of the agent program (src/inside/agent/main.c). */
int holder_main(void);
int spawner_main(void);

/* The ids of F: from here on the caller is root there and nobody outside. Takes the descriptor. */
int stage_enter_domain(int userns_fd, struct sg_error *e);
/* In the spawner, once: what all sandboxes share. */
int stage_prepare(struct sg_error *e);
/* In the new sandbox, mapped: prepares, waits for its stage_setup, does it and serves. Never
 * returns. */
_Noreturn void stage_main(int channel_fd, const int *cgroup_fds, const struct spawn_request *q);

/* netns.c: leaves the calling process in a fresh network namespace with only lo, up. procfd is a
 * /proc. */
int netns_renew(int procfd, struct sg_error *e);

/* boot_id.c: with /new and /new/proc in place. */
int boot_id_renew(struct sg_error *e);

/* root.c, in the order of use. In the spawner, once: a mount namespace with nothing in it but what
 * follows needs. */
int root_prepare(struct sg_error *e);
/* In the spawner, when there is time: what later sandboxes need not try. */
void root_learn(void);
/* In the sandbox: /proc and /dev, aside. */
int root_build(unsigned omit, struct sg_error *e);
/* From detached mounts, in the order of struct stage_setup, to the sandbox's root directory. */
int root_enter(const struct stage_setup *setup, const int *mounts, unsigned omit,
               struct sg_error *e);
/* In the agent: the root that it has is replaced by this one, another overlay like it; /usr, /dev,
 * /proc and their masks go along, /usr/local and /dev/shm are the new root's own. Processes whose
 * root or working directory was the old root are in the new one; what else they have open in the
 * old one they keep. On failure everything is as before. */
int root_move(int new_root, struct sg_error *e);
