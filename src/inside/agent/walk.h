/* Everything below a directory, one entry at a time, without recursion and with two descriptors:
 * names in lexical order, a directory before what is in it.
 *
 * A directory's names are read before the first of them is told. Of the directories that are under
 * way only names are kept; each is opened again from the top, beneath it and without following
 * links, so a tree that is changed meanwhile can hide entries but not lead elsewhere. A tree too
 * deep for its paths to be named is an error, not a shorter list. */
#pragma once

#include "inside/agent/dirents.h"
#include "inside/agent/path.h"
#include "lib/text/strbuf.h"

struct walk_level;

struct walk {
    int top, dir; /* dir is -1 when it has to be opened anew */
    uint32_t max_depth;
    bool dirs_only;
    char here[OPS_PATH_MAX]; /* path of the level below top, "" for top itself */
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

/* Takes over topfd, an O_PATH descriptor. max_depth 1: its direct children. dirs_only: other files
 * are passed over. 0 or -errno. */
int walk_init(struct walk *w, int topfd, uint32_t max_depth, bool dirs_only);
void walk_done(struct walk *w);
/* Goes on below another top, which is taken over: the same tree in another place. The dirfd of an
 * entry may be of the old one. */
void walk_move(struct walk *w, int topfd);

#define WALK_BUSY 2
/* 1 and an entry, valid until the next call; WALK_BUSY: something was done, ask again; 0 at the
 * end; -ENAMETOOLONG, -E2BIG if there is too much to keep, or another -errno. Call as the user. */
int walk_next(struct walk *w, struct walk_entry *ret);
