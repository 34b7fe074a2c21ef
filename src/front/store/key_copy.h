/* Keys as servers tell each other of them: with the hash, without the key itself. For
 * keys_shared.c. */
#pragma once

#include "front/store/store.h"

#define KEY_HASH_HEX 64
#define KEY_MARK_MAX 128

struct key_copy {
    struct store_key key;
    int64_t named_ms;            /* when it was renamed; 0: never */
    char hash[KEY_HASH_HEX + 1]; /* hexadecimal */
};

/* A mark that changes whenever a key is added, renamed or revoked here. */
int key_copies_mark(struct store *s, char ret[KEY_MARK_MAX], struct sg_error *e);
int key_copies_each(struct store *s, void (*fn)(const struct key_copy *, void *), void *arg,
                    struct sg_error *e);
/* Adds the keys that are new here, and revokes and renames those that were elsewhere, in one
 * transaction. Makes missing tenants by their names. Leaves out a copy that is no valid key. */
int key_copies_take(struct store *s, const struct key_copy *copies, size_t n, struct sg_error *e);
