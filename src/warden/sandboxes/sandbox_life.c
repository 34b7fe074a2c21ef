#include "warden/sandboxes/sandbox_life.h"

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/sandboxes/sandbox_impl.h"
#include "warden/server.h"

#define WAITING_MAX 64

/* A sandbox that is not known ends with the front that ordered it. */
const struct phase_rules phase_rules[PHASE_MAX_] = {
    [MAKING] = {"making", .told = STATE_STORED},
    [MOUNTING] = {"mounting", .counts = true, .told = STATE_RUNNING},
    [BRANCHING] = {"branching", .counts = true, .no_kernels = true, .told = STATE_RUNNING},
    [RUNNING] = {"running", .rests = true, .known = true, .counts = true, .told = STATE_RUNNING},
    [KEEPING] = {"keeping", .known = true, .counts = true, .no_kernels = true,
                 .told = STATE_RUNNING},
    [REWINDING] = {"rewinding", .known = true, .counts = true, .no_kernels = true,
                   .told = STATE_RUNNING},
    [FREEZING] = {"freezing", .known = true, .counts = true, .told = STATE_RUNNING},
    [SAVING] = {"saving", .known = true, .counts = true},
    [STOWING] = {"stowing", .known = true, .counts = true, .told = STATE_STORED},
    [PAUSED] = {"paused", .rests = true, .known = true, .counts = true, .told = STATE_PAUSED},
    [STORED] = {"stored", .rests = true, .known = true, .counts = true, .told = STATE_STORED},
    [BOOTING] = {"booting", .known = true, .counts = true, .told = STATE_STORED},
    [ENDING] = {"ending", .told = STATE_STORED},
};

/* ---- orders that do not begin a job ---------------------------------------------------------- */

static void answer(struct sandbox *g, const struct happening *h, enum sg_error_kind kind, int r,
                   const char *why)
{
    struct sg_error e = {0};

    front_answer_error(g->server, h->ticket, err_set(&e, kind, r, "%s", why), &e);
}

/* Waits for the job under way. */
static void wait_turn(struct sandbox *g, const struct happening *h)
{
    struct waiter *w;

    if (g->n_waiting == WAITING_MAX) {
        answer(g, h, SG_ERR_LIMIT, -EBUSY, "too many operations wait for this sandbox: try again");
        return;
    }
    w = xcalloc(1, sizeof(*w));
    w->ticket = *h->ticket;
    w->order = *h->order;
    list_append(&g->waiting, &w->link);
    g->n_waiting++;
}

static void refuse_running(struct sandbox *g, const struct happening *h)
{
    answer(g, h, SG_ERR_INVALID, -EALREADY, "the sandbox runs already");
    sandbox_take_next_order(g);
}

static void refuse_paused(struct sandbox *g, const struct happening *h)
{
    answer(g, h, SG_ERR_INVALID, -EALREADY, "the sandbox is paused already");
    sandbox_take_next_order(g);
}

/* Checkpoints and rewinds do not wait: whoever ordered them meant the sandbox as it was then. */
static void refuse_now(struct sandbox *g, const struct happening *h)
{
    if (h->event == ON_CHECKPOINT)
        close(h->fd);
    answer(g, h, SG_ERR_GONE, -EALREADY,
           "the sandbox is not running, or another operation changes it");
}

static void ignore(struct sandbox *g UNUSED, const struct happening *h UNUSED)
{
}

/* ---- the table ------------------------------------------------------------------------------- */

#define STAYS  PHASE_MAX_
#define BEFORE (PHASE_MAX_ + 1) /* the state in which the job began */

/* An empty cell cannot happen; the event is logged and dropped. */
struct cell {
    sandbox_action *act;
    int next; /* enum phase, STAYS or BEFORE */
};

/* clang-format off */
/* In a job: orders wait, except those that are about the sandbox as it is now. */
#define ORDERS_WAIT \
    [ON_PAUSE] = {wait_turn, STAYS}, [ON_STORE] = {wait_turn, STAYS}, \
    [ON_RESUME] = {wait_turn, STAYS}, [ON_RESTART] = {wait_turn, STAYS}, \
    [ON_SNAPSHOT] = {wait_turn, STAYS}, [ON_CHECKPOINT] = {refuse_now, STAYS}, \
    [ON_REWIND] = {refuse_now, STAYS}

/* News of a checkpoint that was given up meanwhile. Without an instance there is none. */
#define NOT_KEEPING \
    [ON_STILL] = {action_drop_news, STAYS}, [ON_HELD] = {action_drop_news, STAYS}, \
    [ON_WENT] = {ignore, STAYS}

#define NO_FORK \
    NOT_KEEPING, [ON_ROOTED] = {ignore, STAYS}, [ON_BROKER_GONE] = {ignore, STAYS}

static const struct cell life[PHASE_MAX_][ON_MAX_] = {
    /* The tenant pool has the request. It cannot be taken back, so an end waits for its answer.
     * FAILED: there is no channel. */
    [MAKING] = {
        ORDERS_WAIT, [ON_STARTED] = {action_made, RUNNING},
        [ON_STARTED_BRANCH] = {action_branch, BRANCHING},
        [ON_TO_MOUNT] = {action_mount, MOUNTING},
        [ON_NOT_STARTED] = {action_not_made, ENDING}, [ON_UNWANTED] = {action_unwanted, ENDING},
        [ON_BROKER_GONE] = {ignore, STAYS}, [ON_FAILED] = {action_failed, ENDING},
        [ON_END] = {ignore, STAYS},
    },
    /* Its agent attaches its volumes. If that fails, nothing of it is left. */
    [MOUNTING] = {
        ORDERS_WAIT, NO_FORK, [ON_MOUNTED] = {action_mounted, STAYS},
        [ON_STARTED] = {action_made, RUNNING}, [ON_FAILED] = {action_failed, ENDING},
        [ON_END] = {action_end, ENDING},
    },
    /* It gets files and kernels of a checkpoint. If that fails, nothing of it is left. */
    [BRANCHING] = {
        ORDERS_WAIT, NOT_KEEPING, [ON_CARRIED] = {action_branch_carried, STAYS},
        [ON_ROOTED] = {action_branch_rooted, STAYS},
        [ON_COPIED] = {action_copied, STAYS}, [ON_MOUNTED] = {action_branch_mounted, STAYS},
        [ON_BROKER_GONE] = {action_branch_broker_gone, STAYS},
        [ON_DONE] = {action_branched, RUNNING}, [ON_FAILED] = {action_failed, ENDING},
        [ON_END] = {action_end, ENDING},
    },
    /* Its deadline counts. */
    [RUNNING] = {
        [ON_PAUSE] = {action_freeze, FREEZING}, [ON_STORE] = {action_freeze, FREEZING},
        [ON_RESUME] = {refuse_running, STAYS}, [ON_RESTART] = {refuse_running, STAYS},
        [ON_SNAPSHOT] = {action_freeze, FREEZING}, [ON_CHECKPOINT] = {action_keep, KEEPING},
        [ON_REWIND] = {action_rewind, REWINDING}, NO_FORK, [ON_END] = {action_end, ENDING},
    },
    /* Its kernels stand still while broker and agent work. If it fails, the sandbox goes on. */
    [KEEPING] = {
        ORDERS_WAIT, [ON_STILL] = {action_still, STAYS}, [ON_HELD] = {action_held, STAYS},
        [ON_WENT] = {action_went, STAYS}, [ON_CARRIED] = {action_keep_carried, STAYS},
        [ON_ROOTED] = {action_keep_rooted, STAYS},
        [ON_BROKER_GONE] = {action_keep_broker_gone, STAYS}, [ON_DONE] = {action_kept, RUNNING},
        [ON_FAILED] = {action_not_kept, RUNNING}, [ON_END] = {action_end, ENDING},
    },
    /* As BRANCHING, but if it fails, the sandbox goes on with the files that it has by then. */
    [REWINDING] = {
        ORDERS_WAIT, NOT_KEEPING, [ON_CARRIED] = {action_branch_carried, STAYS},
        [ON_ROOTED] = {action_branch_rooted, STAYS},
        [ON_COPIED] = {action_copied, STAYS},
        [ON_BROKER_GONE] = {action_branch_broker_gone, STAYS},
        [ON_DONE] = {action_rewound, RUNNING}, [ON_FAILED] = {action_not_rewound, RUNNING},
        [ON_END] = {action_end, ENDING},
    },
    /* A timer looks whether all stands still. If that does not come, a sandbox that was ordered to
     * freeze goes on (THAWED); one whose deadline is over ends. */
    [FREEZING] = {
        ORDERS_WAIT, [ON_FROZEN] = {action_paused, PAUSED},
        [ON_TO_SAVE] = {action_save, SAVING}, [ON_THAWED] = {NULL, RUNNING}, NO_FORK,
        [ON_END] = {action_end, ENDING},
    },
    /* A child writes its files; it is frozen, or stored already. FROZEN: the files could not be
     * written, or it could not go on, and it stays in memory. */
    [SAVING] = {
        ORDERS_WAIT, [ON_FROZEN] = {action_paused, PAUSED}, [ON_THAWED] = {NULL, RUNNING},
        [ON_BACK] = {NULL, BEFORE}, [ON_SAVED] = {action_stow, STOWING}, NO_FORK,
        [ON_END] = {action_end, ENDING},
    },
    /* Its processes end; its files are saved. An end waits until they are gone. */
    [STOWING] = {
        ORDERS_WAIT, [ON_GONE] = {NULL, STORED}, [ON_STOWED] = {action_paused, STORED},
        [ON_ANOTHER] = {action_boot, BOOTING}, [ON_BROKER_GONE] = {ignore, STAYS},
        [ON_END] = {ignore, STAYS},
    },
    /* Frozen, in memory. No deadline counts. */
    [PAUSED] = {
        [ON_PAUSE] = {refuse_paused, STAYS}, [ON_STORE] = {action_save, SAVING},
        [ON_RESUME] = {action_thaw, STAYS}, [ON_RESTART] = {action_save, SAVING},
        [ON_SNAPSHOT] = {action_save, SAVING}, [ON_CHECKPOINT] = {refuse_now, STAYS},
        [ON_REWIND] = {refuse_now, STAYS}, [ON_THAWED] = {NULL, RUNNING}, NO_FORK,
        [ON_END] = {action_end, ENDING},
    },
    /* Files only: it has no instance, no tenant pool and no share of the memory. */
    [STORED] = {
        [ON_PAUSE] = {refuse_paused, STAYS}, [ON_STORE] = {refuse_paused, STAYS},
        [ON_RESUME] = {action_boot, BOOTING}, [ON_RESTART] = {action_boot, BOOTING},
        [ON_SNAPSHOT] = {action_save, SAVING}, [ON_CHECKPOINT] = {refuse_now, STAYS},
        [ON_REWIND] = {refuse_now, STAYS}, [ON_END] = {action_end, ENDING},
    },
    /* As MAKING, from its files; but if nobody wants it any more, it is stored again. */
    [BOOTING] = {
        ORDERS_WAIT, [ON_STARTED] = {action_booted, RUNNING},
        [ON_TO_MOUNT] = {action_mount, STAYS}, [ON_MOUNTED] = {action_boot_mounted, STAYS},
        [ON_NOT_STARTED] = {action_not_booted, STORED},
        [ON_UNWANTED] = {action_unboot, STOWING}, [ON_BROKER_GONE] = {ignore, STAYS},
        [ON_END] = {ignore, STAYS},
    },
    /* Nobody waits for it but those who ordered its end; orders.c refuses other orders. */
    [ENDING] = {
        [ON_GONE] = {action_gone, STAYS}, [ON_BROKER_GONE] = {ignore, STAYS},
        [ON_END] = {ignore, STAYS},
    },
};
/* clang-format on */

/* ---- driving it ------------------------------------------------------------------------------ */

static void on_deadline(struct loop_timer *timer)
{
    struct sandbox *g = CONTAINER_OF(timer, struct sandbox, timer);
    struct ticket nobody = {0};

    log_sandbox(LEVEL_DEBUG, FAULT_SANDBOX, g->id, "the timeout has expired");
    if (g->on_expiry == EXPIRY_KILL)
        sandbox_end(g, END_EXPIRED);
    else
        sandbox_happens(g, g->on_expiry == EXPIRY_PAUSE ? ON_PAUSE : ON_STORE,
                        &(struct happening){.ticket = &nobody});
}

/* The job is over: arms the deadline, and takes the next order. */
static void settle(struct sandbox *g)
{
    g->job = (struct job){0};
    if (g->ending) {
        sandbox_end(g, g->ending);
        return;
    }
    g->timer.fn = on_deadline;
    loop_timer_cancel(&g->server->loop, &g->timer);
    if (g->phase == RUNNING && g->deadline_ns)
        loop_timer_set(&g->server->loop, &g->timer, g->deadline_ns);
    if (g->phase == RUNNING)
        sandbox_ask_again(g);
    sandbox_take_next_order(g);
}

static void begin_job(struct sandbox *g, const struct happening *h)
{
    g->job = (struct job){.event = h->event, .ticket = *h->ticket, .from = h->was};
    if (h->order)
        g->job.order = *h->order;
    loop_timer_cancel(&g->server->loop, &g->timer);
}

void sandbox_happens(struct sandbox *g, enum event event, const struct happening *h)
{
    const struct cell *c = &life[g->phase][event];
    struct happening now = h ? *h : (struct happening){0};
    bool stays = c->next == STAYS;

    if (!c->act && !c->next) {
        g->server->impossible++;
        log_sandbox(LEVEL_ERROR, FAULT_INFRASTRUCTURE, g->id, "event %d while the sandbox is %s",
                    event, phase_rules[g->phase].name);
        return;
    }
    now.event = event;
    now.was = g->phase;
    if (!stays)
        g->phase = c->next == BEFORE ? g->job.from : (enum phase)c->next;
    if (!stays && event < ON_ORDERS_END_)
        begin_job(g, &now);
    bool rests = !stays && phase_rules[g->phase].rests;
    if (c->act)
        c->act(g, &now); /* unless the next state rests, the sandbox may be gone now */
    if (rests)
        settle(g);
}

void sandbox_take_next_order(struct sandbox *g)
{
    struct waiter *w;

    while ((w = LIST_POP(struct waiter, &g->waiting, link))) {
        struct waiter copy = *w;

        g->n_waiting--;
        free(w);
        if (!ticket_valid(g->server, &copy.ticket))
            continue;
        sandbox_order(g, &copy.ticket, &copy.order);
        return;
    }
}

void sandbox_order(struct sandbox *g, const struct ticket *t, const struct order *o)
{
    bool files = (o->flags & ORDER_FILES_ONLY) != 0;
    enum event event = o->op == ORDER_SNAPSHOT ? ON_SNAPSHOT
                       : o->op == ORDER_RESUME ? (files ? ON_RESTART : ON_RESUME)
                                               : (files ? ON_STORE : ON_PAUSE);

    sandbox_happens(g, event, &(struct happening){.ticket = t, .order = o});
}
