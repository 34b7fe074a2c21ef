/* Keys as other servers are told of them, and as these tell: with the hash, without the key. For
 * keys_shared.c. */
#pragma once

#include "front/store/store.h"

#define KEY_HASH_HEX 64
#define KEY_MARK_MAX 96

struct key_copy {
    struct store_key key;
    char hash[KEY_HASH_HEX + 1]; /* hexadecimal */
};

/* Changes when a key is added or revoked here. */
int key_copies_mark(struct store *s, char ret[KEY_MARK_MAX], struct sg_error *e);
int key_copies_each(struct store *s, void (*fn)(const struct key_copy *, void *), void *arg,
                    struct sg_error *e);
/* Adds what is new, and revokes what was revoked elsewhere: in one transaction. The tenants are
 * made by their names. What is no key is left out. */
int key_copies_take(struct store *s, const struct key_copy *copies, size_t n, struct sg_error *e);
