/* The only hash table: chained, made of nodes that are embedded in its entries.
 *
 *   struct sandbox { struct map_node by_id; ... };
 *
 *   map_add(&server->sandboxes, &s->by_id, hash_text(0, s->id));
 *   return MAP_FIND(struct sandbox, s, &server->sandboxes, hash_text(0, id), by_id,
 *                   strcmp(s->id, id) == 0);
 *
 * Zero bytes are an empty map: nothing needs to be initialised, and a map that became empty holds no
 * memory. It grows with its entries. Keys are not its business: it compares hashes, and the caller
 * compares keys. All entries are in one list too, in the order in which they were added or
 * renewed: the first is the one to drop from a cache. */
#pragma once

#include "lib/base/hash.h"
#include "lib/base/list.h"

struct map_node {
    struct list all, chain;
    uint64_t hash;
};

struct map {
    struct list all;
    struct list *buckets;
    size_t n, n_buckets;
};

void map_add(struct map *m, struct map_node *node, uint64_t hash);
/* Does nothing if the node is in no map. */
void map_remove(struct map *m, struct map_node *node);

/* Makes the entry the last in the order of all, as if it had just been added. */
void map_renew(struct map *m, struct map_node *node);

/* The next entry with this hash, after `at` or from the beginning; NULL at the end. */
struct map_node *map_find(const struct map *m, uint64_t hash, const struct map_node *at);

static inline void *map_entry_(struct map_node *node, size_t offset)
{
    return node ? (char *)node - offset : NULL;
}

#define MAP_FIRST(type, map, member) LIST_FIRST(type, &(map)->all, member.all)

/* All entries, as LIST_EACH. */
#define MAP_EACH(type, at, map, member) LIST_EACH(type, at, &(map)->all, member.all)

/* The entries with this hash. The loop must end if it takes one out. */
#define MAP_AT(type, at, map, key_hash, member)                                            \
    for (type *at = map_entry_(map_find(map, key_hash, NULL), offsetof(type, member)); at; \
         at = map_entry_(map_find(map, at->member.hash, &at->member), offsetof(type, member)))

/* The first of these that meets the condition, which calls it `at`; NULL: none does. */
#define MAP_FIND(type, at, map, key_hash, member, condition) \
    ({                                                       \
        type *found_ = NULL;                                 \
        MAP_AT(type, at, map, key_hash, member)              \
            if (condition) {                                 \
                found_ = at;                                 \
                break;                                       \
            }                                                \
        found_;                                              \
    })
