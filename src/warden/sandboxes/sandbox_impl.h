/* Shared by the files sandbox*.c. */
#pragma once

#include "warden/memory/budget.h"
#include "warden/processes/front_process.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/sandboxes/sandbox_life.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/checkpoint.h"
#include "warden/sandboxes/sandbox_volumes.h"
#include "lib/loop/loop.h"
#include "warden/sandboxes/tenant_pool.h"

/* That a sandbox is made is a job too. */
struct job {
    enum event event;     /* that began it; ON_NONE: no job is under way */
    struct ticket ticket; /* .turn 0: its deadline began the job */
    enum phase from;
    bool answered;
    struct order order; /* the order that began it, if one did */
};

/* An order that waits for the one before it, or a kill that waits for the end. */
struct waiter {
    struct list link;
    struct ticket ticket;
    struct order order;
};

/* The sandbox's way out; see sandbox_network.c. */
struct sandbox_network {
    struct policy_text policy;
    uint64_t epoch; /* of the policy */
    uint64_t life;  /* the number by which the guard knows the instance */
    bool told;      /* the present guard knows of it */
    /* A policy that was sent to the guard, and that the guard has not confirmed yet. */
    struct policy_text asked;
    struct ticket ticket;
    struct loop_timer timer;
};

/* State of a fork, in KEEPING and BRANCHING. */
struct sandbox_fork {
    struct checkpoint *checkpoint;
    size_t n_copied;               /* kernels copied so far */
    struct files_worker *carrying; /* open files into the new root, which is made then */
    bool moving;         /* that, or the agent was sent the new root and has not answered */
    bool moved;          /* the agent has that root */
    bool held;           /* the broker is done */
    struct sg_error why; /* .code not 0: it fails for this when both are done */
    int report;          /* the broker's report; -1: none */
    uint32_t paused_usec;
};

struct sandbox {
    struct server *server;
    struct map_node by_id;
    char id[ID_LEN + 1], tenant[ORDER_TENANT_LEN + 1];
    enum phase phase;
    struct tenant_pool *tenant_pool; /* that the instance is of */
    struct instance *instance;
    struct snapshot *snapshot; /* that it was made from; NULL: the template alone */
    struct sg_limits limits;
    int note;
    uint64_t deadline_ns, started_ns;
    enum order_expiry on_expiry;
    struct loop_source process; /* pid 1 of the instance */
    struct loop_source line;    /* on which its agent asks for a kernel */
    uint64_t asks_since_ns;
    unsigned n_asks;         /* since then */
    bool asks;               /* its agent waits for a kernel */
    bool kernel;             /* the front will ask it for a kernel: ORDER_KERNEL */
    struct loop_timer timer; /* RUNNING: its deadline. FREEZING: the next look */
    uint64_t freeze_until_ns, freeze_step_ns;
    struct job job;
    struct tenant_pool_request request; /* MAKING, BOOTING */
    struct snapshot *new_snapshot;      /* STOWING: that it will be made from again */
    struct save *save;                  /* SAVING */
    struct sandbox_network network;
    struct sandbox_fork fork;
    struct sandbox_volumes volumes;
    struct budget_share share;
    char template[ID_LEN + 1]; /* the template that its share is counted under */
    uint64_t memory_peak;      /* highest that was seen of this instance */
    /* How many processes the kernel killed in it for want of memory, as of the last look, and whose
     * limit was the cause. */
    struct {
        uint64_t seen, looked_ns;
        uint64_t own, tenant, machine;
    } oom;
    struct order_stats spent;   /* used by past instances; memory: the last one's */
    struct list waiting, kills; /* of struct waiter */
    unsigned n_waiting;
    struct order_steps steps; /* how long each step of its making took */
    uint64_t step_ns;         /* when the present step began */
    enum order_end ending;    /* 0, or why it is to end as soon as possible */
    const char *ending_text;  /* a literal for its user, or NULL */
};

/* sandbox.c */
/* Makes an instance the sandbox's own, and watches its process. */
void sandbox_adopt(struct sandbox *g, struct instance *i);
/* on_moved of the sandbox's tenant_pool_request. */
void sandbox_moved(void *arg, struct tenant_pool *to);
/* If the sandbox's agent waits for a kernel, asks for one again. */
void sandbox_ask_again(struct sandbox *g);
/* Makes a new channel to the agent; returns the host's end, to be sent to the front. */
int sandbox_connect(struct sandbox *g, struct sg_error *e);
/* Parts with the instance, if there is one, and kills it. done may be NULL. */
void sandbox_drop_instance(struct sandbox *g, void (*done)(void *arg));
void sandbox_end(struct sandbox *g, enum order_end why);
/* Takes the sandbox's share of the machine's memory. */
int sandbox_take_share(struct sandbox *g, struct sg_error *e);
/* Describes the sandbox, as the front is told of it. */
void sandbox_describe(const struct sandbox *g, struct order_answer *ret);
/* The sandbox's usage so far; without an instance, up to the end of its last one. */
void sandbox_usage(struct sandbox *g, struct order_stats *ret);

/* Ends the present step of its making and begins the next; returns how long the step took, in
 * microseconds. */
uint32_t sandbox_step(struct sandbox *g);
/* Tells whoever ordered the sandbox that it is there. Takes the channel over. */
void sandbox_made(struct sandbox *g, uint32_t flags, int channel);
struct happening;
/* Answers that the sandbox did not start. Its client decides nothing that a system call of the start
 * can refuse, so "not found" or "denied" by Linux is an error of the server. */
void sandbox_answer_not_started(struct sandbox *g, const struct happening *h);

/* sandbox_fork.c */
void sandbox_fork_fail(struct sandbox *g, int r, const struct sg_error *e); /* ON_FAILED */
/* Gives up the checkpoint or the branch that was under way. */
void sandbox_fork_abandon(struct sandbox *g, enum phase was);
/* Makes the sandbox's next root, and sends it to the agent. Open files of the checkpoint are carried
 * there first, by a files worker: ON_CARRIED follows then, and sandbox_send_root. */
int sandbox_move(struct sandbox *g, struct sg_error *e);
int sandbox_send_root(struct sandbox *g, struct sg_error *e);
/* The agent says that it has the new root (0), or why not. False: it was not asked. */
bool sandbox_took_root(struct sandbox *g, int code);
/* Sets the error for an agent that has no new root. Anything an agent says is hostile input: it is
 * never the server's fault. */
void sandbox_not_rooted(int code, struct sg_error *e);

/* sandbox_network.c */
void sandbox_network_init(struct sandbox *g, const struct policy_text *policy);
/* Called when the sandbox gets an instance, and before it loses it. */
void sandbox_network_begin(struct sandbox *g);
void sandbox_network_end(struct sandbox *g);
void sandbox_network_done(struct sandbox *g);

/* sandbox_volumes.c */
/* Sends the agent all volumes; ON_MOUNTED follows when it has answered. */
int sandbox_mount(struct sandbox *g, struct sg_error *e);
void sandbox_mount_answered(struct sandbox *g, int code);
void sandbox_mount_lost(struct sandbox *g);
/* Sets the error for an agent that could not attach a volume. */
int sandbox_not_mounted(const struct sandbox *g, int code, struct sg_error *e);

/* sandbox_life.c */
/* In a state in which the sandbox waits for orders: takes the next, if there is one. */
void sandbox_take_next_order(struct sandbox *g);

/* sandbox_job.c */
/* The sandbox is about to end: gives up the job under way, and tells everybody who waits. */
void sandbox_abandon_job(struct sandbox *g, enum phase was);
/* Why a job failed, for whoever ordered it. If the sandbox has ended, which may not have been
 * noticed yet, that is the reason, whatever failed first. Returns the code. */
int sandbox_judge(const struct sandbox *g, const struct happening *h, struct sg_error *ret);
