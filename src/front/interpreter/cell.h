/* A cell, from its code to its last line: what POST /execute, and the tools for language models, do
 * with the kernels of a sandbox.
 *
 *   asked --EVENT_EXECUTING--> running --END--> ended --all written--> over
 *
 * What it says is lines (lines.h): JSON objects, one a line, in the words of E2B's clients. They
 * are handed to on_write as they come, in pieces of any length, and no faster than the owner takes
 * them. A cell that never ran ends through on_refused instead. One of on_over and on_refused comes,
 * exactly once, as the last callback, unless cell_cancel came first.
 *
 * Frames that come while the owner does not take more wait in `queue`, unacknowledged, so the agent
 * sends no more than its window. Output that comes in the middle of a result waits in `held` until
 * the line is whole: it is acknowledged, since the end of the result must still find room in the
 * window, and what exceeds HELD_MAX is left out, and said to be. */
#pragma once

#include "front/core/call.h"
#include "front/core/operation.h"
#include "front/core/output_filter.h"
#include "front/core/replay.h"
#include "front/interpreter/ending.h"
#include "front/interpreter/frames.h"
#include "front/interpreter/request.h"

struct cell {
    struct sandbox *sandbox;
    struct execute_request request; /* taken over by cell_begin */
    enum sanitise_mode sanitise;    /* of all that it says */
    void *owner;
    /* It is the cell's turn, or it has begun to wait for long: what is written follows. May be
     * NULL.
     */
    void (*on_start)(struct cell *c);
    /* False: take no more until cell_resume. */
    bool (*on_write)(struct cell *c, const char *p, size_t len);
    /* failed: its last line but one was an error. */
    void (*on_over)(struct cell *c, bool failed);
    /* status as in call.h: an errno, or CALL_GONE. If lines were written, they are all there is. */
    void (*on_refused)(struct cell *c, int status, const char *message);

    bool running;    /* EVENT_EXECUTING has come */
    uint32_t number; /* of the cell in its kernel, then */
    struct ending ending;
    struct output_filter
        *output_filter; /* what was found in it, until cell_done; NULL if nothing is looked for */

    struct call call; /* this and below: cell.c's */
    size_t sent;
    struct operation operation;
    struct strbuf said; /* its output, as far as a trace wants it */
    struct cell_history
        *cell_history; /* of what it says, if it may be run again one day; or NULL */
    uv_timer_t *timer;
    uint64_t wrote_ms;
    struct lines lines;
    struct results results;
    struct frames queue, held;
    size_t lost, owed;
    bool choked, started, ended, over;
    char *message;
};

/* sandbox, sanitise, owner and the callbacks must be set; call.uncounted may be. The sandbox must
 * outlive the cell: take a reference. Callbacks may come before it returns. */
void cell_begin(struct cell *c, struct execute_request *request);
void cell_resume(struct cell *c);
/* Interrupts it if it runs; no more callbacks. */
void cell_cancel(struct cell *c);
/* Frees what it holds, after its end or cell_cancel. */
void cell_done(struct cell *c);
