/* Declarations that the files of contexts/ share. */
#pragma once

#include "front/contexts/context.h"
#include "front/contexts/kept.h"
#include "front/core/events.h"
#include "front/core/operation.h"
#include "front/core/replay.h"
#include "lib/base/map.h"

/* How long a server may take to make a sandbox before another server assumes that it never will. */
#define CONTEXT_LEASE_MS 30000
/* The same for the reaper. It may be patient, since nobody waits for it, and cells may have to be
 * replayed first. */
#define CONTEXT_STUCK_MS (CONTEXT_LEASE_MS + REPLAY_MS)
enum obtain_step { OBTAIN_NONE, OBTAIN_CLAIM, OBTAIN_REPLACE, OBTAIN_CREATE, OBTAIN_WAKE };

/* A caller that waits for the sandbox of a path. */
struct waiter {
    struct list in_line;
    struct store_tenant tenant;
    uint64_t ttl_ms;
    char template_id[CTX_TEMPLATE_MAX + 1]; /* "": the setting's */
    context_spec spec;
    char checkpoint[ID_LEN + 1]; /* "": none */
    bool last, replay, files_do;
    struct sandbox *bring; /* or NULL */
    struct operation operation;
    bool woken; /* the sandbox was paused and is resumed for it */
    context_done done;
    void *arg;
};

/* A path whose sandbox this server has, or is about to ask the store for. */
struct context {
    struct front *front;
    char tenant[ID_LEN + 1];
    char conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1];
    struct ctx_row row;      /* as the store last reported it */
    struct sandbox *sandbox; /* NULL: none on this server */
    uint64_t told_ns;        /* when a use was last reported to the store */
    uint64_t heard_ns;       /* told_ns before the touch that is under way */
    uint64_t looked_ns;      /* told_ns when the row was last read */
    enum obtain_step step;
    unsigned attempts, waits;        /* so far, for these waiters */
    bool replacing;                  /* the new sandbox replaces a lost one */
    bool kept_lost;                  /* what its row keeps cannot be opened: another's key */
    bool telling, checking;          /* a touch, or a read of the row, is under way */
    bool awaited;                    /* the reaper waits for that touch */
    struct list waiters;             /* in order; empty: nothing under way */
    char *kept;                      /* from the row of a lost sandbox (kept.h), or NULL */
    char *keep;                      /* what the row is to keep; NULL: no change */
    json_t *report;                  /* on the sandbox that was made; NULL: none */
    char unmarked[CTX_NAME_MAX + 1]; /* a message that began without a checkpoint; "" */
    struct map_node by_path;
};

struct contexts {
    struct front *front;
    struct ctx_store *store;
    char node[ID_LEN + 1];
    struct vault_key *key; /* for what rows keep (kept.h) */
    bool recovered;        /* cleaned up after an earlier front: new ones may begin */
    struct sg_error why;   /* why it has not recovered yet */
    uint64_t away_ns;      /* since when the store is unreachable; 0: it answers */
    uint64_t back_ns;      /* when it returned after a long absence; 0: never */
    void (*on_started)(struct front *f);
    void (*on_left)(void *arg);
    void *left_arg;
    struct reaper *reaper;
    struct list lost; /* sandboxes whose end the store does not know yet */
    size_t n_lost;
    struct list explorations;
    struct list changes; /* of networks, in order: network.c */
    struct map all;      /* the contexts, by their path */
};

/* manager.c */
struct context *contexts_find(struct front *f, const char *tenant, const char *conversation,
                              const char *path);
struct context *contexts_find_or_add(struct front *f, const char *tenant, const char *conversation,
                                     const char *path);
/* Frees a context that has no sandbox and no waiters. */
void context_drop_if_idle(struct context *c);
/* Makes b the sandbox of c. A sandbox that c had before is ended. */
void context_attach(struct context *c, struct sandbox *b);
void context_detach(struct context *c);
/* Ends the context's sandbox, if it has one, because its row is now another's or nobody's. */
void context_kill_sandbox(struct context *c);
/* Whether the sandbox is in use: somebody works in it, or did since the last report to the store,
 * or it was paused to be kept. */
bool context_used(const struct context *c);
/* Reports the beginning or end of a context as an event. reason: one word. */
void context_tell(struct front *f, enum event_kind kind, const struct ctx_row *row,
                  const char *reason);
/* Ends the sandbox of a row that is final, if the sandbox is on this server. done may be NULL. */
void context_end_sandbox(struct front *f, const struct ctx_row *row, sandbox_done done, void *arg);
/* How long the warden lets the sandbox live from now on: until after the row's end and the reaper's
 * next turn, in case nobody else ends it. */
uint64_t context_life_ms(const struct context *c);
void context_move_deadline(struct context *c);
/* Moves the deadline only if it is before the row's end. A client that resumes a sandbox names the
 * time that it needs, and a later deadline is left as it is. */
void context_keep_deadline(struct context *c);
/* Whether a server that the store has not heard of for long can be taken for dead. */
bool contexts_know_the_dead(const struct contexts *t);
/* Whether another server has the row's sandbox. Fills a->elsewhere with its address, or a->r and e
 * if that server lives but has given no address. */
bool context_is_elsewhere(struct front *f, const struct ctx_row *row, struct context_answer *a,
                          struct sg_error *e);

/* sweep.c: ends the sandboxes of many rows, a few at a time. done is called once, perhaps before
 * this returns. */
void context_end_sandboxes(struct front *f, const struct ctx_row *rows, size_t n,
                           void (*done)(void *arg), void *arg);

/* ready.c: calls done when the sandbox runs and no transition is under way; wakes a paused one.
 * -ENOENT: it has ended. done is called once, perhaps before this returns. */
void context_when_ready(struct sandbox *b, sandbox_done done, void *arg);

/* context_checkpoint.c: the checkpoint of the last message that the sandbox has come from, or
 * NULL. */
struct checkpoint *checkpoint_last(struct sandbox *b);

/* explore.c */
struct exploration *exploration_of(const struct sandbox *b);
bool explorations_want(const struct sandbox *b);             /* a candidate, or being made as one */
void explorations_end(struct front *f, const char *context); /* those of one context */
void explorations_sandbox_ended(struct sandbox *b);

/* lost.c */
void lost_tell(const struct context *c, const struct sandbox *b);
void lost_tell_again(struct front *f);

/* retention.c */
void retention_start(struct front *f);

/* reaper.c */
void reaper_start(struct front *f);
/* Reports uses to the store. False: the store lacks a report without which a sandbox in use would
 * count as expired. */
bool reaper_uses_told(struct front *f);
