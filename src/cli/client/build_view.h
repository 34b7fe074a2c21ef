/* Shows how far a build is, in the form that people know from BuildKit. On a terminal the step that
 * runs is drawn again and again, with the last lines of its output, and what is done becomes a line;
 * elsewhere each line of output is a line.
 *
 * A build has parts: the instructions of a Dockerfile that make steps, and one more at its end. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/recipe.h"

#define BUILD_VIEW_TAIL 20 /* lines of the last part that are kept, to be shown if it fails */

struct build_view {
    const struct recipe *recipe;
    bool on, live;
    bool open;       /* a part is being shown */
    bool cached;     /* ... and was found in the cache */
    size_t part;     /* its index; recipe->n_vertices: the end */
    unsigned number; /* of the parts so far */
    unsigned n_cached;
    int64_t began_ms, last_ms; /* of the part, by the server's clock */
    uint64_t began_ns;         /* and by ours */
    char *tail[BUILD_VIEW_TAIL];
    size_t n_tail;  /* all that came; the last ones are kept */
    unsigned drawn; /* lines of the terminal that will be drawn again */
};

void build_view_init(struct build_view *v, const struct recipe *recipe, bool quiet);
/* A line about the time before the server has anything to do: "load build context". */
void build_view_say(struct build_view *v, const char *fmt, ...) PRINTF(2, 3);
/* An entry of the build's log. step: "base", "1" and so on, "finalize". */
void build_view_entry(struct build_view *v, const char *step, const char *message, int64_t ms);
/* Draws again what changes with time. */
void build_view_tick(struct build_view *v);
/* The build is over. failed: the part that was last is the one to blame. */
void build_view_end(struct build_view *v, bool failed);
/* The instruction that a step belongs to; NULL: none. */
const struct recipe_vertex *build_view_vertex(const struct recipe *r, const char *step);
