/* The user of a step, looked for in the sandbox of a build, and made there if it may be.
 *
 *   OP_USER --> there is one ------------------------------------------------> done
 *       +-----> there is none --> may be made --> `make`, as root --> OP_USER --> done
 *                     +---------> may not ------------------------------------> done, -EUSERS */
#pragma once

#include "front/core/call.h"

struct account {
    struct sandbox *sandbox; /* these are set by the caller, and stay until `done` */
    const char *name;
    bool make;
    /* What the program that makes it writes. */
    void (*on_output)(void *arg, bool err, const char *p, size_t len);
    /* Once, unless account_cancel was called. home: where it is; made: files have changed. */
    void (*done)(struct account *a, int r, const char *home, bool made, const struct sg_error *e);
    void *arg;
    struct call call; /* private from here on */
    bool made;
};

/* Negative: it did not begin, and `done` is not called. */
int account_begin(struct account *a, struct sg_error *e);
void account_cancel(struct account *a);
