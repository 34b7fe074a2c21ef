#include "guard/names.h"

#include <assert.h>
#include <endian.h>
#include <string.h>
#include <sys/random.h>

#include "lib/text/strbuf.h"

#define LABEL_MAX 63
#define TEXT_MAX  (64u * 1024 * 1024) /* more than any document holds */

/* ---- the form of names ----------------------------------------------------------------------- */

static bool is_hex(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'f'))
            return false;
    return true;
}

/* Whether some resolver would take a name with this last label for an address: 127.1, 0x7f.1,
 * 2130706433. No top-level domain is a number, so the last label tells. */
static bool is_number(const char *label)
{
    if (label[0] == '0' && label[1] == 'x')
        return is_hex(label + 2, strlen(label + 2));
    return label[strspn(label, "0123456789")] == '\0';
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

/* ---- the hash -------------------------------------------------------------------------------- */

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = (v[1] << 13 | v[1] >> 51) ^ v[0];
    v[0] = v[0] << 32 | v[0] >> 32;
    v[2] += v[3];
    v[3] = (v[3] << 16 | v[3] >> 48) ^ v[2];
    v[0] += v[3];
    v[3] = (v[3] << 21 | v[3] >> 43) ^ v[0];
    v[2] += v[1];
    v[1] = (v[1] << 17 | v[1] >> 47) ^ v[2];
    v[2] = v[2] << 32 | v[2] >> 32;
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static const uint64_t *hash_key(void)
{
    static uint64_t key[2];
    static bool drawn;

    if (!drawn) {
        if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
            abort();
        drawn = true;
    }
    return key;
}

/* The hash of a label and of the labels behind it, whose hash is `rest`. */
static uint64_t hash_label(uint64_t rest, const char *label, size_t len)
{
    const uint64_t *key = hash_key();
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    uint64_t word, last = (uint64_t)len << 56;
    size_t whole = len / 8 * 8;

    sip_word(v, rest);
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, label + i, 8);
        sip_word(v, le64toh(word));
    }
    for (size_t i = whole; i < len; i++)
        last |= (uint64_t)(unsigned char)label[i] << i % 8 * 8;
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- the table ------------------------------------------------------------------------------- */

struct slot {
    uint64_t hash;
    size_t name;        /* offset in the text, from 1 on; 0: the slot is free */
    const void *itself; /* the value of `x` */
    const void *below;  /* the value of `*.x` */
};

struct names {
    struct slot *slots;
    size_t n, cap;      /* cap is a power of two */
    unsigned depth;     /* most labels that a name has */
    struct strbuf text; /* all names, each with its NUL */
};

struct names *names_new(void)
{
    struct names *n = xcalloc(1, sizeof *n);

    n->cap = 8;
    n->slots = xcalloc(n->cap, sizeof *n->slots);
    strbuf_init(&n->text, TEXT_MAX);
    strbuf_addch(&n->text, '\0');
    return n;
}

void names_free(struct names *n)
{
    if (!n)
        return;
    free(n->slots);
    strbuf_done(&n->text);
    free(n);
}

bool names_empty(const struct names *n)
{
    return n->n == 0;
}

/* The slot of a name, or the free slot where it would go. */
static struct slot *find_slot(const struct names *n, uint64_t hash, const char *name)
{
    size_t i = hash & (n->cap - 1);

    while (n->slots[i].name &&
           (n->slots[i].hash != hash || strcmp(n->text.buf + n->slots[i].name, name) != 0))
        i = (i + 1) & (n->cap - 1);
    return &n->slots[i];
}

static void grow(struct names *n)
{
    struct slot *old = n->slots;
    size_t cap = n->cap;

    n->cap *= 2;
    n->slots = xcalloc(n->cap, sizeof *n->slots);
    for (size_t i = 0; i < cap; i++)
        if (old[i].name)
            *find_slot(n, old[i].hash, n->text.buf + old[i].name) = old[i];
    free(old);
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
    e->hash = hash_label(e->hash, e->at, (size_t)(end - e->at));
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
    struct slot *s = find_slot(n, e.hash, name);
    if (!s->name) {
        *s = (struct slot){.hash = e.hash, .name = n->text.len};
        strbuf_add(&n->text, name, strlen(name) + 1);
        assert(!n->text.truncated);
        n->n++;
    }
    to = below ? &s->below : &s->itself;
    if (!*to)
        *to = value;
    if (n->n * 2 > n->cap)
        grow(n);
}

const void *names_find(const struct names *n, const char *name)
{
    struct ending e = {.name = name, .at = name + strlen(name)};
    const void *found = NULL;

    while (e.labels < n->depth && next_ending(&e)) {
        const struct slot *s = find_slot(n, e.hash, e.at);
        const void *value = e.at == name ? s->itself : s->below;

        if (value)
            found = value;
    }
    return found;
}
