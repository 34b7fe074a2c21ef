/* A cell, from its code to its last line. POST /execute and the tools for language models run cells
 * in the kernels of a sandbox with this.
 *
 *   asked --EVENT_EXECUTING--> running --END--> ended --all written--> over
 *
 * A cell's output is lines (lines.h): JSON objects, one a line, in the words of E2B's clients.
 * on_write gets them as they come, in pieces of any length, and no faster than the owner takes
 * them. A cell that never ran ends through on_refused instead. Either on_over or on_refused comes,
 * exactly once, as the last callback, unless cell_cancel came first.
 *
 * While the owner takes no more, frames of the agent wait in `queue`, unacknowledged, so the agent
 * sends no more than its window. Output that comes in the middle of a result waits in `held` until
 * the result's line is whole. It is acknowledged, since the end of the result must still find room
 * in the window. Output beyond HELD_MAX is left out, and a line says so. */
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
    enum sanitise_mode sanitise;    /* for everything the cell writes */
    void *owner;
    /* The cell's turn has come, or the cell has waited for long already: lines follow. May be
     * NULL. */
    void (*on_start)(struct cell *c);
    /* False: take no more until cell_resume. */
    bool (*on_write)(struct cell *c, const char *p, size_t len);
    /* failed: the last line but one was an error. */
    void (*on_over)(struct cell *c, bool failed);
    /* `status` is as in front/core/call.h: an errno, or CALL_GONE. If lines were written, no more
     * follow. */
    void (*on_refused)(struct cell *c, int status, const char *message);

    bool running;    /* EVENT_EXECUTING has come */
    uint32_t number; /* the cell's number in its kernel, once it runs */
    struct ending ending;
    struct output_filter
        *output_filter; /* has the findings until cell_done; NULL: nothing is looked for */

    struct call call; /* this and the rest belong to cell.c */
    struct operation operation;
    struct strbuf said;                /* the cell's output, if traces want it */
    struct cell_history *cell_history; /* records the cell, to run it again one day; or NULL */
    uv_timer_t *timer;
    uint64_t wrote_ms;
    struct lines lines;
    struct results results;
    struct frames queue, held;
    size_t lost, owed;
    bool choked, started, ended, over;
    char *message;
};

/* The caller sets sandbox, sanitise, owner and the callbacks first; call.uncounted if it wants. The
 * sandbox must outlive the cell: take a reference. Callbacks may come before cell_begin returns. */
void cell_begin(struct cell *c, struct execute_request *request);
void cell_resume(struct cell *c);
/* Interrupts the cell if it runs. No callbacks come any more. */
void cell_cancel(struct cell *c);
/* Frees the members of the cell, after its end or cell_cancel. */
void cell_done(struct cell *c);
