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
    uint32_t omit;      /* defences left out, in control builds: see defences.h */
    uint32_t n_cgroups; /* descriptors after the channel's; the child writes "0" to each */
    uint32_t last;      /* no other request will follow, so nothing is prepared for it */
};

struct spawn_reply {
    int32_t code; /* 0: two descriptors follow, pidfd and user namespace; STAGE_BEATS */
    char message[256];
};

#define STAGE_BEATS 1 /* the answer to STAGE_BEAT */

/* Descriptors come in this order: root, usr, one per mount, with STAGE_SCRATCH_STORE the figures of its disk.
 * With STAGE_BARE usr is the root once more, and means nothing. */
struct stage_setup {
    uint32_t magic;
    uint32_t n_mounts;
    uint64_t disk_bytes;
    uint32_t pids;
    uint32_t cpus;  /* processors that the sandbox may use, rounded up; no more than the host has */
    uint32_t flags; /* STAGE_... */
    char hostname[64];
    char targets[STAGE_MOUNTS_MAX][512];
};

#define STAGE_LINE  1u /* the socket becomes a line */
#define STAGE_TWINS 2u /* the agent can ask for kernels on the line */
/* The root is a world (warden/layers/world.h): usr is that world's own /usr, read-only, and only a
 * cover over the root's. It goes when the first program of root starts, since that may want to
 * write there. */
#define STAGE_WORLD 4u
#define STAGE_BARE  8u /* with WORLD: there is no cover */
/* Its disk is a place in a scratch store of which statfs tells as a whole: three files have the figures
 * of the place (warden/layers/scratch_store.h). */
#define STAGE_SCRATCH_STORE 16u

#define LINE_TARGET_MAX 256

/* A message on a line; its descriptors come beside it. The warden sends channels, kernels and new
 * roots. A kernel is one that the agent asked for, or a copy of one that ran (inside/broker). The
 * agent asks for kernels, one at a time, and answers how a new root went. */
struct line_message {
    uint32_t what;
    int32_t pid; /* LINE_KERNEL to the agent: the kernel's pid, as seen inside */
    int32_t
        was; /* with it: pid of the kernel that it is a copy of, in that one's sandbox; 0: none */
    int32_t
        code; /* LINE_ROOT to the agent: LINE_ROOT_*. From it: 0 or -errno, also for LINE_MOUNT */
    char target[LINE_TARGET_MAX]; /* LINE_MOUNT to the agent */
};
enum line_what {
    LINE_CHANNEL = 'c',   /* to the agent: one descriptor */
    LINE_KERNEL = 'k',    /* to the agent: control socket, read ends of the kernel's stdout and
                         * stderr, pidfd. From the agent: it asks for a kernel */
    LINE_NO_KERNEL = 'n', /* to the agent: there is no kernel to be had now */
    /* To the agent: a detached mount that becomes the root directory of everything that runs inside
     * (root_move); and if its disk is another one then, the figures of that. With LINE_ROOT_CLEAR the
     * agent first kills everything inside but itself, and contexts lose their kernels. From the
     * agent: how that went. -EBUSY: the agent is writing a file for the host. */
    LINE_ROOT = 'r',
    /* To the agent: a detached mount, to be attached at `target` (root_attach). From the agent: how
     * that went. */
    LINE_MOUNT = 'm',
};
#define LINE_ROOT_CLEAR 1
#define LINE_ROOT_BARE  2 /* without the cover over /usr, if there still is one */
#define LINE_FDS_MAX    4

#define STAGE_FIXED_FDS 2
#define STAGE_FIGURES   3
#define STAGE_FDS_MAX   (STAGE_FIXED_FDS + STAGE_MOUNTS_MAX + STAGE_FIGURES)

struct stage_reply {
    int32_t code;
    int32_t kind; /* enum sg_error_kind */
    char message[256];
};

/* Role entry points of the agent program (src/inside/agent/main.c). */
int holder_main(void);
int spawner_main(void);

/* Takes on the ids of F: from here on the caller is root there and nobody outside. Takes the
 * descriptor over. */
int stage_enter_domain(int userns_fd, struct sg_error *e);
/* In the spawner, once: prepares what all sandboxes share. */
int stage_prepare(struct sg_error *e);
/* In the new sandbox, after its ids are mapped: prepares it, waits for its stage_setup, applies
 * that and serves. Never returns. */
_Noreturn void stage_main(int channel_fd, const int *cgroup_fds, const struct spawn_request *q);

/* netns.c: puts the calling process into a fresh network namespace with only lo, up. procfd is an
 * open /proc. */
int netns_renew(int procfd, struct sg_error *e);

/* root.c, in the order of use. In the spawner, once: makes a mount namespace that has only what the
 * following functions need. */
int root_prepare(struct sg_error *e);
/* In the spawner, while it has time: learns which entries of /proc this kernel lacks. */
void root_learn(void);
/* What root_move and root_uncover have to know of /usr. */
enum root_usr { ROOT_USR_HOST, ROOT_USR_COVERED, ROOT_USR_BARE };
extern enum root_usr root_usr;
/* In the sandbox: builds /proc, /dev and /sys aside. */
struct view_fds;
int root_build(const struct spawn_request *q, struct view_fds *ret_view, struct sg_error *e);
/* Builds the sandbox's root directory from detached mounts, in the order of struct stage_setup, and
 * enters it. */
int root_enter(const struct stage_setup *setup, const int *mounts, unsigned omit,
               struct sg_error *e);
/* In the agent: attaches a detached mount to a directory of its root, which is made if it is
 * missing. No link is followed, and no mount entered on the way. The mount goes along with
 * root_move. -E2BIG: there are ROOT_ATTACHED_MAX. */
#define ROOT_ATTACHED_MAX 8
int root_attach(int tree, const char *target, struct sg_error *e);
/* root_attach.c, for root_move.c: attaches all of them to another root as well. Then that root has
 * taken the place of the old one, or has not. */
int root_attach_again(int new_root, struct sg_error *e);
void root_attached_moved(bool moved);
/* For both: opens a directory (or file) of a root for a mount, and makes it and its parents in the
 * root's own layer if they are missing. No link is followed; resolve: further RESOLVE_ flags. */
int root_make_target(int root, const char *target, bool is_dir, uint64_t resolve, int *ret_fd,
                     struct sg_error *e);
/* In the agent: replaces its root by this one, another overlay like it. /usr, /dev, /proc, /sys
 * and their masks go along; /usr/local and /dev/shm are the new root's own. A process whose root or
 * working directory was the old root is in the new one; whatever else it has open in the old root
 * stays open. On failure everything is as before. bare: see LINE_ROOT_BARE. */
int root_move(int new_root, bool bare, struct sg_error *e);
/* In the agent: takes the cover off /usr, if there is one. Programs that have files of it open go on
 * with these. */
int root_uncover(struct sg_error *e);
