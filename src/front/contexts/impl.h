/* What the files of context/ share. */
#pragma once

#include "front/contexts/context.h"
#include "front/contexts/kept.h"
#include "front/core/operation.h"
#include "front/core/replay.h"

/* How long a server may take to make a sandbox, before another believes that it never will. */
#define CONTEXT_LEASE_MS 30000
/* And before the reaper does, which nobody waits for: cells may have to run again first. */
#define CONTEXT_STUCK_MS (CONTEXT_LEASE_MS + REPLAY_MS)
enum obtain_step { OBTAIN_NONE, OBTAIN_CLAIM, OBTAIN_REPLACE, OBTAIN_CREATE, OBTAIN_WAKE };

/* Who waits for the sandbox of a path. */
struct waiter {
    struct waiter *next;
    struct store_tenant tenant;
    uint64_t ttl_ms;
    char template_id[CTX_TEMPLATE_MAX + 1]; /* "": the setting's */
    context_spec spec;
    char checkpoint[ID_LEN + 1]; /* "": none */
    bool last, replay, files_do;
    struct sandbox *bring; /* or NULL */
    struct operation operation;
    bool woken; /* its sandbox was paused */
    context_done done;
    void *arg;
};

/* A path of which this server has the sandbox, or is about to know. */
struct context {
    struct front *front;
    char tenant[ID_LEN + 1];
    char conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1];
    struct ctx_row row;      /* as the store last said */
    struct sandbox *sandbox; /* NULL: none here */
    uint64_t told_ns;        /* when the store was last told of a use */
    uint64_t heard_ns;       /* told_ns before the touch that is under way */
    uint64_t looked_ns;      /* told_ns when the row was last asked for */
    enum obtain_step step;
    unsigned attempts, waits;        /* of this obtaining */
    bool replacing;                  /* the sandbox that is made takes the place of a lost one */
    bool kept_lost;                  /* of what its row keeps it gets nothing: another's key */
    bool telling, checking;          /* a touch, or a look, is under way */
    bool awaited;                    /* that touch: the reaper waits for it */
    struct waiter *waiters;          /* in order; empty: nothing is under way */
    char *kept;                      /* of the row that is replaced (kept.h); NULL: nothing */
    char *keep;                      /* what the row is to keep from now on; NULL: as it is */
    json_t *report;                  /* of the sandbox that is being settled; NULL: none */
    char unmarked[CTX_NAME_MAX + 1]; /* the message that began without a checkpoint; "": none */
    struct context *next_in_bucket;
};

struct contexts {
    struct front *front;
    struct ctx_store *store;
    char node[ID_LEN + 1];
    struct vault_key *key; /* of what rows keep: kept.h */
    bool recovered;        /* what an earlier front left is ended: there may be new ones */
    struct sg_error why;   /* not yet */
    uint64_t away_ns;      /* since when the store cannot be reached; 0: it can */
    uint64_t back_ns;      /* when it came back after long; 0: it never was away */
    void (*on_started)(struct front *f);
    struct reaper *reaper;
    struct lost *lost; /* sandboxes whose end the store has not heard of */
    size_t n_lost;
    struct exploration *explorations;
    struct network_change *changes; /* of sandboxes' networks, in order: network.c */
    struct context **buckets;
};

/* manager.c */
struct context *contexts_find(struct front *f, const char *tenant, const char *conversation,
                              const char *path);
struct context *contexts_find_or_add(struct front *f, const char *tenant, const char *conversation,
                                     const char *path);
/* Frees it if it has no sandbox and nobody waits. */
void context_drop_if_idle(struct context *c);
/* Calls fn for each; it may drop that one. */
void contexts_each(struct front *f, void (*fn)(struct context *c, void *arg), void *arg);
/* They belong together from now on. A sandbox that it had before is ended. */
void context_attach(struct context *c, struct sandbox *b);
void context_detach(struct context *c);
/* Ends its sandbox, if it has one: the row is another's by now, or nobody's. */
void context_kill_sandbox(struct context *c);
/* Somebody works in its sandbox, or has since the store was told; or it was paused to be kept. */
bool context_used(const struct context *c);
/* It has ended, in one word why: the event, and what is counted. */
void context_tell_end(struct front *f, const struct ctx_row *row, const char *reason);
/* The row is final: its sandbox, if it is here, is ended. done may be NULL. */
void context_end_sandbox(struct front *f, const struct ctx_row *row, sandbox_done done, void *arg);
/* How long the warden lets the sandbox live from now on: until after the row's end and the next
 * turn of the reaper, for the case that nobody else ends it. */
uint64_t context_life_ms(const struct context *c);
void context_move_deadline(struct context *c);
/* Only if it is before the row's end: whoever resumes a sandbox names a time that he needs. */
void context_keep_deadline(struct context *c);
/* Whether a server that the store has not heard of for long is dead. */
bool contexts_know_the_dead(const struct contexts *t);
/* Whether another server has what the row says, and can be asked. Fills a->elsewhere, or a->r and e
 * if it lives and did not say where it is. */
bool context_is_elsewhere(struct front *f, const struct ctx_row *row, struct context_answer *a,
                          struct sg_error *e);

/* sweep.c: the same for many, a few at a time. done comes once, perhaps before it returns. */
void context_end_sandboxes(struct front *f, const struct ctx_row *rows, size_t n,
                           void (*done)(void *arg), void *arg);

/* ready.c: when it runs and nothing else is done with it; a paused one is woken. -ENOENT: it has
 * ended. done comes once, perhaps before it returns. */
void context_when_ready(struct sandbox *b, sandbox_done done, void *arg);

/* context_checkpoint.c: of the last message that the sandbox has come from, or NULL. */
struct checkpoint *checkpoint_last(struct sandbox *b);

/* explore.c */
struct exploration *exploration_of(const struct sandbox *b);
bool explorations_want(const struct sandbox *b); /* it is one's, or being made for one */
void explorations_end(struct front *f, const char *context); /* all of a context */
void explorations_sandbox_ended(struct sandbox *b);

/* lost.c */
void lost_tell(const struct context *c, const struct sandbox *b);
void lost_tell_again(struct front *f);

/* retention.c */
void retention_start(struct front *f);

/* reaper.c */
void reaper_start(struct front *f);
/* Tells the store of uses. False: without what it has not heard yet, something that is used would
 * have expired. */
bool reaper_uses_told(struct front *f);
