/* Walks over everything below a directory, one entry at a time, without recursion and with two
 * descriptors. Names come in lexical order, a directory before its contents.
 *
 * The walk reads all names of a directory before it returns the first. It keeps only the names of
 * the directories above the current one, and opens each of them again from the top, beneath it and
 * without following links. So somebody who changes the tree meanwhile can hide entries, but cannot
 * lead the walk elsewhere. If a tree is too deep for its paths to be named, the walk fails; it does
 * not return a shorter list. */
#pragma once

#include "inside/agent/dirents.h"
#include "inside/agent/path.h"
#include "lib/text/strbuf.h"

struct walk_level;

struct walk {
    int top, dir; /* dir is -1 when it must be opened again */
    uint32_t max_depth;
    bool dirs_only;
    char here[OPS_PATH_MAX]; /* path of the current directory below top, "" for top itself */
    struct walk_level *level;
    uint32_t depth;
    size_t bytes; /* of all names that are kept */
    struct dirents names;
};

struct walk_entry {
    int dirfd;
    const char *name;
    bool is_dir;
    char path[OPS_PATH_MAX]; /* below the top */
};

/* Takes over topfd, an O_PATH descriptor. max_depth 1: its direct children. dirs_only: skips other
 * files. 0 or -errno. */
int walk_init(struct walk *w, int topfd, uint32_t max_depth, bool dirs_only);
void walk_done(struct walk *w);
/* Goes on below another top, which is taken over: the same tree in another place. The dirfd of an
 * entry returned before may still be in the old tree. */
void walk_move(struct walk *w, int topfd);

#define WALK_BUSY 2
/* Call it with the permissions of the user. 1: *ret is an entry, valid until the next call.
 * WALK_BUSY: some work was done, call again. 0: the end. -ENAMETOOLONG; -E2BIG if there are too
 * many names to keep; or another -errno. */
int walk_next(struct walk *w, struct walk_entry *ret);
