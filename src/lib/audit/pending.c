/* The records of a chain that wait to be written. Their number is bounded, and no denial goes
 * uncounted:
 *
 *   - A refusal stays known for a second after it was written. Equal ones that come meanwhile are
 *     counted, and written as one.
 *   - Up to half of the room, every other record has a line of its own.
 *   - Above that, equal records are counted and share a line.
 *   - If even different records are too many, only tenant, sandbox, kind and verdict are kept.
 *   - At last only the number of records of each verdict is kept. */

#include "lib/audit/audit_impl.h"

#define FOLD_FROM (AUDIT_PENDING_MAX / 2)
/* Room that is kept back for folded records: by sandbox, and by verdict. */
#define ROOM_OF_SANDBOXES 1024
#define ROOM_OF_VERDICTS  8

#define FOLDED "too many records at once"

/* The texts of a record: first those that make it equal to another, then those that do not count
 * for that. */
#define TEXTS 10
static const size_t texts[TEXTS] = {
    offsetof(struct audit_record, kind),    offsetof(struct audit_record, tenant),
    offsetof(struct audit_record, sandbox), offsetof(struct audit_record, name),
    offsetof(struct audit_record, address), offsetof(struct audit_record, protocol),
    offsetof(struct audit_record, verdict), offsetof(struct audit_record, rule),
    offsetof(struct audit_record, detail),  offsetof(struct audit_record, policy),
};
#define TEXTS_EQUAL 9 /* the first of them decide whether records are equal */

static const char **text_of(struct audit_record *r, size_t i)
{
    return (const char **)(void *)((char *)r + texts[i]);
}

static const char *text_at(const struct audit_record *r, size_t i)
{
    const char *s = *(const char *const *)(const void *)((const char *)r + texts[i]);

    return s ? s : "";
}

/* How much of a text is kept, whole characters if it is UTF-8. */
static size_t kept(const char *s)
{
    size_t n = strnlen(s, AUDIT_TEXT_MAX + 1);

    if (n <= AUDIT_TEXT_MAX)
        return n;
    for (n = AUDIT_TEXT_MAX; n > AUDIT_TEXT_MAX - 3 && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
        ;
    return n;
}

static uint64_t key_of(const struct audit_record *r)
{
    uint64_t h = r->port;

    for (size_t i = 0; i < TEXTS_EQUAL; i++)
        h = hash_bytes(h, text_at(r, i), kept(text_at(r, i)));
    return h;
}

static bool equal(const struct audit_record *kept_one, const struct audit_record *r)
{
    if (kept_one->port != r->port)
        return false;
    for (size_t i = 0; i < TEXTS_EQUAL; i++) {
        const char *a = text_at(kept_one, i), *b = text_at(r, i);
        size_t n = kept(b);

        if (strlen(a) != n || memcmp(a, b, n) != 0)
            return false;
    }
    return true;
}

static struct audit_entry *entry_new(const struct audit_record *r, int64_t time_ms)
{
    struct audit_entry *en;
    size_t size = sizeof(*en);
    char *at;

    for (size_t i = 0; i < TEXTS; i++)
        size += kept(text_at(r, i)) + 1;
    en = xcalloc(1, size);
    *en = (struct audit_entry){.count = 1, .time_ms = time_ms, .r = *r};
    at = (char *)(en + 1);
    for (size_t i = 0; i < TEXTS; i++) {
        size_t n = kept(text_at(r, i));

        memcpy(at, text_at(r, i), n);
        *text_of(&en->r, i) = at;
        at += n + 1;
    }
    return en;
}

static void queue_add(struct audit_queue *q, struct audit_entry *en)
{
    list_append(&q->all, &en->link);
    q->n++;
}

static struct audit_entry *queue_first(const struct audit_queue *q)
{
    return LIST_FIRST(struct audit_entry, &q->all, link);
}

static struct audit_entry *queue_take(struct audit_queue *q)
{
    q->n--;
    return LIST_POP(struct audit_entry, &q->all, link);
}

static bool is_refusal(const struct audit_record *r)
{
    return r->verdict && strcmp(r->verdict, "deny") == 0;
}

static bool count_into_equal(const struct map *t, const struct audit_record *r, uint64_t key,
                             int64_t time_ms)
{
    struct audit_entry *en = MAP_FIND(struct audit_entry, at, t, key, node, equal(&at->r, r));

    if (!en)
        return false;
    if (en->count++ == 0) { /* the entry was written: it now counts those that came since */
        en->time_ms = time_ms;
        en->r.up = en->r.down = en->r.ms = 0;
    }
    en->r.up += r->up;
    en->r.down += r->down;
    en->r.ms += r->ms;
    return true;
}

/* Counts the record into an equal one, or adds it. False: it is a new one, and there is no room. */
static bool add_within(struct audit_pending *p, const struct audit_record *r, int64_t time_ms,
                       size_t room)
{
    uint64_t key = key_of(r);
    struct audit_entry *en;

    if ((p->wait.n >= FOLD_FROM || is_refusal(r)) && count_into_equal(p->table, r, key, time_ms))
        return true;
    if (p->wait.n >= room)
        return false;
    en = entry_new(r, time_ms);
    map_add(p->table, &en->node, key);
    queue_add(&p->wait, en);
    return true;
}

/* Maps a verdict to one of four: none, allow, report, deny. */
static const char *plain_verdict(const char *verdict)
{
    if (!verdict || !verdict[0])
        return NULL;
    return strcmp(verdict, "allow") == 0    ? "allow"
           : strcmp(verdict, "report") == 0 ? "report"
                                            : "deny";
}

void audit_pending_add(struct audit_pending *p, const struct audit_record *r, int64_t time_ms)
{
    struct audit_record of_sandbox = {.kind = r->kind,
                                      .tenant = r->tenant,
                                      .sandbox = r->sandbox,
                                      .verdict = r->verdict,
                                      .rule = FOLDED,
                                      .up = r->up,
                                      .down = r->down,
                                      .ms = r->ms};
    struct audit_record of_verdict = {.kind = "folded",
                                      .tenant = r->tenant,
                                      .verdict = plain_verdict(r->verdict),
                                      .rule = FOLDED,
                                      .up = r->up,
                                      .down = r->down,
                                      .ms = r->ms};

    (void)(add_within(p, r, time_ms, AUDIT_PENDING_MAX - ROOM_OF_SANDBOXES - ROOM_OF_VERDICTS) ||
           add_within(p, &of_sandbox, time_ms, AUDIT_PENDING_MAX - ROOM_OF_VERDICTS) ||
           add_within(p, &of_verdict, time_ms, AUDIT_PENDING_MAX));
}

static void entry_free(struct map *t, struct audit_entry *en)
{
    map_remove(t, &en->node);
    free(en);
}

void audit_pending_written(struct audit_pending *p, size_t n, uint64_t now_ns)
{
    for (; n > 0; n--) {
        struct audit_entry *en = queue_take(&p->wait);

        if (!is_refusal(&en->r) || p->recent.n >= AUDIT_PENDING_MAX) {
            entry_free(p->table, en);
            continue;
        }
        en->count = 0;
        en->again_ns = now_ns + AUDIT_REPEAT_NS;
        queue_add(&p->recent, en);
    }
}

void audit_pending_repeat(struct audit_pending *p, uint64_t now_ns, bool all)
{
    while (p->recent.n > 0 && (all || queue_first(&p->recent)->again_ns <= now_ns)) {
        struct audit_entry *en = queue_take(&p->recent);

        if (en->count > 0)
            queue_add(&p->wait, en);
        else
            entry_free(p->table, en);
    }
}

void audit_pending_done(struct audit_pending *p)
{
    while (p->wait.n > 0)
        entry_free(p->table, queue_take(&p->wait));
    while (p->recent.n > 0)
        entry_free(p->table, queue_take(&p->recent));
}
