/* Everything below a directory, one entry at a time, without recursion and with two descriptors.
 *
 * Directories still to be visited are kept as paths below the top and opened again from there,
 * beneath it and without following links, so a tree that is changed meanwhile can hide entries but
 * not lead elsewhere. A tree too deep for its paths to be named is an error, not a shorter list. */
#pragma once

#include "agent/dirents.h"
#include "agent/path.h"
#include "base/strbuf.h"

struct walk {
    int top, dir; /* dir is -1 between directories */
    uint32_t max_depth, depth;
    char here[OPS_PATH_MAX]; /* path of dir below top, "" for top itself */
    struct strbuf todo;      /* a stack: path, NUL, depth, length of both */
    struct dirents names;
};

struct walk_entry {
    int dirfd;
    const char *name;
    bool is_dir;
    char path[OPS_PATH_MAX]; /* below the top */
};

/* Takes over topfd, an O_PATH descriptor. max_depth 1: its direct children. 0 or -errno. */
int walk_init(struct walk *w, int topfd, uint32_t max_depth);
void walk_done(struct walk *w);
/* 1 and an entry, valid until the next call; 0 at the end; -ENAMETOOLONG, -E2BIG if too much is
 * waiting to be visited, or another -errno. Call as the user. */
int walk_next(struct walk *w, struct walk_entry *ret);
