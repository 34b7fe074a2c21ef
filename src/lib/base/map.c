#include "lib/base/map.h"

#define BUCKETS_LEAST 16

static struct list *bucket_of(const struct map *m, uint64_t hash)
{
    return &m->buckets[hash & (m->n_buckets - 1)]; /* a power of two */
}

static void grow(struct map *m)
{
    m->n_buckets = m->n_buckets ? m->n_buckets * 2 : BUCKETS_LEAST;
    free(m->buckets);
    m->buckets = xcalloc(m->n_buckets, sizeof(*m->buckets));
    LIST_EACH(struct map_node, node, &m->all, all)
        list_push(bucket_of(m, node->hash), &node->chain);
}

void map_add(struct map *m, struct map_node *node, uint64_t hash)
{
    if (m->n == m->n_buckets)
        grow(m);
    node->hash = hash;
    list_append(&m->all, &node->all);
    list_push(bucket_of(m, hash), &node->chain);
    m->n++;
}

void map_remove(struct map *m, struct map_node *node)
{
    if (!list_linked(&node->all))
        return;
    list_remove(&node->all);
    list_remove(&node->chain);
    if (--m->n > 0)
        return;
    free(m->buckets);
    *m = (struct map){0};
}

void map_renew(struct map *m, struct map_node *node)
{
    list_remove(&node->all);
    list_append(&m->all, &node->all);
}

struct map_node *map_find(const struct map *m, uint64_t hash, const struct map_node *at)
{
    const struct list *bucket = m->n ? bucket_of(m, hash) : NULL;
    struct list *next;

    if (!bucket)
        return NULL;
    for (next = list_next(bucket, at ? &at->chain : bucket); next; next = list_next(bucket, next)) {
        struct map_node *node = CONTAINER_OF(next, struct map_node, chain);

        if (node->hash == hash)
            return node;
    }
    return NULL;
}
