/* A poster: posts events to one receiver, from where it was, until each is accepted or given up.
 *
 * 2xx: the receiver has accepted it. 4xx except 408, 425 and 429, and an address that must not be
 * asked: given up at once. Any other status, or no answer: tried again after 1 s, 2 s... 5 min,
 * WEBHOOK_TRIES times in all.
 *
 *   begun: all events up to here were looked at -----+
 *                                                    v
 *   events: ... accepted  accepted  OPEN  accepted  OPEN | next  next ...
 *
 * Events go out in order while the receiver keeps up: the next one is sent when the one before was
 * accepted. An event that fails holds the others up for its first WEBHOOK_HOLD tries; then they
 * overtake it. If many events wait, STORE_WEBHOOK_OPEN are under way at a time. The store keeps the
 * open events and the place where the rest begins, so that the next front goes on from there. An
 * event that is no longer kept (event_keep) when its turn comes is given up.
 *
 * Posters of tenants share what the exporter can have under way: a tenant has a few places, and those
 * whose receivers have failed last have a few of these. So a receiver that does not answer delays
 * others like it, and nobody else. */
#pragma once

#include "front/core/events.h"
#include "front/store/webhooks.h"
#include "lib/base/list.h"

#define WEBHOOK_TRIES 12
#define WEBHOOK_HOLD  3

#define POSTS_OF_TENANTS            24 /* under way at a time; the exporter has EXPORTER_AT_ONCE */
#define POSTS_OF_A_TENANT           4
#define POSTS_THAT_FAIL             8
#define POSTS_OF_A_TENANT_THAT_FAIL 2

enum poster_mood { POSTER_GOOD, POSTER_FAILING, POSTER_GIVING_UP };

struct poster;

struct poster_slot {
    struct poster *poster;
    uint64_t event; /* 0: the slot is free */
    uint32_t tries; /* failed tries */
    uint64_t due_ms;
    bool flying, stale; /* stale: forget the event once the post is answered */
};

struct poster {
    struct list link; /* in the list of all */
    struct front *front;
    char id[UUID_LEN + 1];   /* of its webhook; "": the operator's */
    char tenant[ID_LEN + 1]; /* whose events it posts; "": of all tenants */
    uint32_t kinds;
    bool on;
    /* Sends the event with exporter_post, whose `done` is poster_posted and whose `arg` the slot, and
     * returns what that returns. -ENOENT: it is not for this receiver. */
    int (*post)(struct poster *p, struct poster_slot *slot, const struct event *e);
    /* Frees it, after poster_drop. */
    void (*gone)(struct poster *p);
    struct poster_slot slots[STORE_WEBHOOK_OPEN];
    uint64_t begun;
    uv_timer_t *timer;
    enum poster_mood mood;
    bool unsaved, last_failed, dropped;
    unsigned flying;
};

/* Makes it one of all; front, id, tenant, post and gone are set. It is not on. */
void poster_start(struct poster *p);
/* Goes on from where it was. False: nothing is noted of it. */
bool poster_take_up(struct poster *p);
/* Begins with the next event. */
void poster_begin_here(struct poster *p);
/* Posts what is due, if it is on. */
void poster_go_on(struct poster *p);
/* The same, but from the loop. */
void poster_wake(struct poster *p);
/* Forgets what it was about to post: it is not on. */
void poster_stop(struct poster *p);
/* Makes all open events due now: the new target may accept them. */
void poster_try_anew(struct poster *p);
/* Takes it off the list. `gone` is called once no post is under way, perhaps before this returns. */
void poster_drop(struct poster *p);

void poster_posted(void *slot, int status, uint64_t retry_after_ms);

/* All posters. The loop may drop the one that it is at. */
#define POSTERS_EACH(p) LIST_EACH(struct poster, p, posters_all(), link)
struct list *posters_all(void);
/* Writes the state of those that have changed: for a server that is about to end. */
void posters_save(void);

/* How long to wait before the next try, after `tries` failures. random: any number. asked_ms:
 * the least wait that the receiver asked for. */
uint64_t webhook_delay_ms(uint32_t tries, uint32_t random, uint64_t asked_ms);
/* The length of the second that delays are counted in; tests make it shorter. */
extern uint64_t webhook_second_ms;
