#include "guard/names.h"

#include "lib/base/map.h"

#define LABEL_MAX 63

/* ---- the form of names ----------------------------------------------------------------------- */

/* Whether some resolver would take a name with this last label for an address: 127.1, 0x7f.1,
 * 2130706433. No top-level domain is a number, so the last label tells. */
static bool is_number(const char *label)
{
    if (label[0] == '0' && label[1] == 'x')
        label += 2 + strspn(label + 2, "0123456789abcdef");
    else
        label += strspn(label, "0123456789");
    return *label == '\0';
}

int name_normalise(const char *name, size_t len, char *ret)
{
    char out[POLICY_NAME_MAX + 1];
    size_t label = 0;

    if (len > 0 && name[len - 1] == '.')
        len--;
    if (len == 0 || len > POLICY_NAME_MAX)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        char c = name[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        out[i] = c;
        if (c == '.' && label > 0)
            label = 0;
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
            label++;
        else
            return -EINVAL;
        if (label > LABEL_MAX)
            return -EINVAL;
    }
    out[len] = '\0';
    if (label == 0 || is_number(out + len - label))
        return -EINVAL;
    memcpy(ret, out, len + 1);
    return 0;
}

int name_pattern(const char *text, char ret[POLICY_NAME_MAX + 1])
{
    size_t star = strncmp(text, "*.", 2) == 0 ? 2 : 0;
    char name[POLICY_NAME_MAX + 1];
    int r = name_normalise(text + star, strlen(text + star), name);

    if (r < 0 || strlen(name) + star > POLICY_NAME_MAX)
        return -EINVAL;
    memcpy(ret, "*.", star);
    memcpy(ret + star, name, strlen(name) + 1);
    return 0;
}

bool name_matches(const char *pattern, const char *name)
{
    size_t n = strlen(name), m;

    if (pattern[0] != '*')
        return strcmp(pattern, name) == 0;
    m = strlen(pattern + 1); /* with the dot */
    return n > m && strcmp(name + n - m, pattern + 1) == 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

struct entry {
    struct map_node node;
    const void *itself; /* the value of `x` */
    const void *below;  /* the value of `*.x` */
    char name[];
};

struct names {
    struct map entries;
    unsigned depth; /* most labels that a name has */
};

struct names *names_new(void)
{
    return xcalloc(1, sizeof(struct names));
}

void names_free(struct names *n)
{
    if (!n)
        return;
    MAP_EACH(struct entry, x, &n->entries, node) {
        map_remove(&n->entries, &x->node);
        free(x);
    }
    free(n);
}

bool names_empty(const struct names *n)
{
    return n->entries.n == 0;
}

static struct entry *find(const struct names *n, uint64_t hash, const char *name)
{
    return MAP_FIND(struct entry, x, &n->entries, hash, node, strcmp(x->name, name) == 0);
}

/* An ending of a name. next_ending walks from the last label to the first, one more label each
 * time. */
struct ending {
    const char *name;
    const char *at; /* where the ending begins */
    uint64_t hash;
    unsigned labels;
};

static bool next_ending(struct ending *e)
{
    const char *end = e->labels ? e->at - 1 : e->at;

    if (e->at == e->name)
        return false;
    e->at = end;
    while (e->at > e->name && e->at[-1] != '.')
        e->at--;
    e->hash = hash_bytes(e->hash, e->at, (size_t)(end - e->at));
    e->labels++;
    return true;
}

void names_add(struct names *n, const char *pattern, const void *value)
{
    bool below = pattern[0] == '*';
    const char *name = pattern + (below ? 2 : 0);
    struct ending e = {.name = name, .at = name + strlen(name)};
    const void **to;

    while (next_ending(&e))
        ;
    if (e.labels > n->depth)
        n->depth = e.labels;
    struct entry *x = find(n, e.hash, name);
    if (!x) {
        x = xcalloc(1, sizeof(*x) + strlen(name) + 1);
        memcpy(x->name, name, strlen(name) + 1);
        map_add(&n->entries, &x->node, e.hash);
    }
    to = below ? &x->below : &x->itself;
    if (!*to)
        *to = value;
}

const void *names_find(const struct names *n, const char *name)
{
    struct ending e = {.name = name, .at = name + strlen(name)};
    const void *found = NULL;

    while (e.labels < n->depth && next_ending(&e)) {
        const struct entry *x = find(n, e.hash, e.at);
        const void *value = !x ? NULL : e.at == name ? x->itself : x->below;

        if (value)
            found = value;
    }
    return found;
}
