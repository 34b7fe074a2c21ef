/* What sandbox.c, sandbox_job.c, sandbox_fork.c, sandbox_branch.c and sandbox_network.c share. */
#pragma once

#include "warden/memory/budget.h"
#include "warden/processes/front_process.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/sandboxes/checkpoint.h"
#include "warden/reactor.h"
#include "warden/sandboxes/tenant_pool.h"

enum phase {
    MAKING,
    BRANCHING, /* has an instance, which gets files and kernels of a moment */
    RUNNING,
    KEEPING, /* a moment is made of it */
    FREEZING,
    SAVING,
    STOWING,
    PAUSED,
    STORED,
    BOOTING,
    ENDING
};

enum job_kind {
    JOB_NONE,
    JOB_PAUSE,    /* to PAUSED */
    JOB_STORE,    /* to STORED */
    JOB_RESTART,  /* from PAUSED through STORED to RUNNING */
    JOB_BOOT,     /* from STORED to RUNNING */
    JOB_SNAPSHOT, /* and back */
    JOB_CHECKPOINT,
    JOB_BRANCH, /* from MAKING to RUNNING */
    JOB_REWIND,
};

struct job {
    enum job_kind kind;
    struct ticket ticket; /* .turn 0: the deadline's */
    enum phase from;
    bool answered;
    struct order order; /* what was asked, if anything was */
};

/* An order that waits for the one before it, or a kill that waits for the end. */
struct waiter {
    struct waiter *next;
    struct ticket ticket;
    struct order order;
};

/* Its way out; see sandbox_network.c. */
struct sandbox_network {
    struct policy_text policy;
    uint64_t epoch; /* of the policy */
    uint64_t life;  /* what the guard knows the instance by */
    bool told;      /* the guard that is there knows of it */
    /* A policy that the guard has been sent and not confirmed. */
    struct policy_text asked;
    struct ticket ticket;
    struct timer timer;
};

/* KEEPING, BRANCHING. */
struct sandbox_fork {
    struct checkpoint *checkpoint;
    size_t n_copied;     /* of its kernels */
    bool moving;         /* the agent was sent a root */
    bool moved;          /* and is there */
    bool held;           /* the broker is done */
    struct sg_error why; /* there will be no moment, when both are done; .code 0: there may */
    int report;          /* of the broker; -1: none */
    uint32_t paused_usec;
};

struct sandbox {
    struct server *server;
    struct sandbox *next; /* of its bucket */
    char id[ID_LEN + 1], tenant[ORDER_TENANT_LEN + 1];
    enum phase phase;
    struct tenant_pool *tenant_pool; /* of the instance */
    struct instance *instance;
    struct snapshot *snapshot; /* what it was made from; NULL: the template alone */
    struct sg_limits limits;
    int note;
    uint64_t deadline_ns, started_ns;
    enum order_expiry on_expiry;
    struct event_source process; /* pid 1 of the instance */
    struct event_source line;    /* its agent asks for a kernel */
    uint64_t asks_since_ns;
    unsigned n_asks;    /* since then */
    bool asks;          /* its agent waits for a kernel */
    bool kernel;        /* it will be asked for one: ORDER_KERNEL */
    struct timer timer; /* RUNNING: the deadline. FREEZING: when to look */
    uint64_t freeze_until_ns, freeze_step_ns;
    struct job job;
    struct tenant_pool_request request; /* MAKING, BOOTING */
    struct snapshot *new_snapshot;      /* STOWING: what it will be made from */
    struct save *save;                  /* SAVING */
    struct sandbox_network network;
    struct sandbox_fork fork;
    struct budget_share share;
    char template[ID_LEN + 1]; /* that its share is of */
    uint64_t memory_peak;      /* of what was seen of this instance */
    /* What the kernel killed in it, as far as it was looked at; whose limit it was. */
    struct {
        uint64_t seen, looked_ns;
        uint64_t own, tenant, machine;
    } oom;
    struct order_stats spent; /* by its instances that are gone: the memory is the last one's */
    struct waiter *waiting, *kills;
    unsigned n_waiting;
    struct order_steps steps; /* of its making */
    uint64_t step_ns;         /* when the present one began */
    enum order_end ending;    /* 0, or why it ends as soon as that is possible */
    const char *ending_text;  /* a literal: what its user may know of it; NULL: nothing more */
};

/* sandbox.c */
/* Takes an instance over: watches it. */
void sandbox_adopt(struct sandbox *g, struct instance *i);
/* For tenant_pool_request. */
void sandbox_moved(void *arg, struct tenant_pool *to);
/* Its agent waits for a kernel, and may have one now. */
void sandbox_ask_again(struct sandbox *g);
/* A new channel to its agent; returns our end, to be sent to the front. */
int sandbox_connect(struct sandbox *g, struct sg_error *e);
/* The instance, if there is one, is let go and killed; done may be NULL. */
void sandbox_drop_instance(struct sandbox *g,
                           void (*done)(void *arg, int r, const struct sg_error *e));
void sandbox_end(struct sandbox *g, enum order_end why);
/* Its share of the machine's memory. */
int sandbox_take_share(struct sandbox *g, struct sg_error *e);
/* What is known of it, as the front is told. */
void sandbox_describe(const struct sandbox *g, struct order_answer *ret);
/* What it has used; of one without an instance, up to the end of the last. */
void sandbox_usage(struct sandbox *g, struct order_stats *ret);

/* sandbox_fork.c */
/* What is under way of it is given up. */
void sandbox_fork_abandon(struct sandbox *g);
/* Its agent has the new root, or why not. */
void sandbox_rooted(struct sandbox *g, int code);
/* Why it has none. What an agent says is hostile input: it is never the server's fault. */
void sandbox_not_rooted(int code, struct sg_error *e);
/* sandbox_branch.c. From MAKING, with its instance; from RUNNING, back to a moment. */
void sandbox_branch(struct sandbox *g);
/* The same, for one whose agent has been sent the root already, and perhaps has it. */
void sandbox_branch_ready(struct sandbox *g, bool rooted);
void sandbox_rewind(struct sandbox *g, const struct ticket *t, struct checkpoint *m);
void sandbox_branch_rooted(struct sandbox *g, int code);
/* sandbox.c: how long the present step of its making took, in microseconds; the next begins. */
uint32_t sandbox_step(struct sandbox *g);
/* sandbox.c: the answer to the order that made it. */
int sandbox_made(struct sandbox *g, uint32_t flags, struct sg_error *e);

/* sandbox_network.c */
void sandbox_network_init(struct sandbox *g, const struct policy_text *policy);
/* It has an instance now; it is about to lose it. */
void sandbox_network_begin(struct sandbox *g);
void sandbox_network_end(struct sandbox *g);
void sandbox_network_done(struct sandbox *g);

/* sandbox_job.c */
/* Enters a phase in which it waits: arms the deadline, takes the next order. */
void sandbox_settle(struct sandbox *g, enum phase phase);
/* Its end is near: whatever is under way is given up, and whoever waits is told. */
void sandbox_abandon_job(struct sandbox *g);
