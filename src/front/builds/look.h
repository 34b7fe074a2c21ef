/* Looks into the sandbox of a build, whose answers are remembered: a build whose steps are all in the
 * cache needs no sandbox then. */
#pragma once

#include "front/core/call.h"
#include "front/store/templates.h"
#include "lib/text/strbuf.h"

#define LOOKED_MAX  64
#define LOOKED_TEXT 200

/* The last answers, by what identifies the files that were looked at. */
struct looked {
    struct {
        char key[STORE_KEY_HEX + 1];
        char text[LOOKED_TEXT];
    } all[LOOKED_MAX];
    size_t n;
};
/* NULL: not known (any more). */
const char *looked_find(const struct looked *l, const char *key);
void looked_add(struct looked *l, const char *key, const char *text);

struct look {
    struct sandbox *sandbox; /* set by the caller; it stays until `done` */
    json_t *envs;            /* more variables, or NULL */
    /* Once, unless look_cancel was called. text: see below; words: what a program wrote last about it. */
    void (*done)(struct look *l, const char *text, const char *words);
    void *arg;
    struct call call; /* private from here on */
    struct strbuf said;
};
/* Negative: it did not begin, and `done` is not called. */

/* Whether a path is there: text is "" then. */
int look_at_path(struct look *l, const char *path, struct sg_error *e);
/* Whether kernels can run the sandbox's Python and be copied: text is "", or what they cannot do and why. */
int look_at_python(struct look *l, struct sg_error *e);
void look_cancel(struct look *l);
