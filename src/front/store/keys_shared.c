#include "front/store/keys_shared.h"

#include <string.h>

#include "lib/text/json.h"
#include "front/store/key_copy.h"

#define PAGE      "200"
#define PAGE_ROWS 200
#define TELL_KEYS 100 /* keys in one call */
#define TELL_MAX  (128u * 1024)
#define COLUMNS   12

struct keys_shared {
    struct store *store;
    struct dbworker *dbworker;
    uv_timer_t timer;
    bool asked;              /* a call is under way */
    bool stopped, closed;    /* freed once the timer is closed and no call is under way */
    int64_t seen;            /* the last change that was taken from the database */
    char told[KEY_MARK_MAX]; /* the mark of our keys when all were told last */
    char telling[KEY_MARK_MAX];
    size_t n_told; /* how many of our keys the current round has told */
};

static void tell(struct keys_shared *k);
static void take(struct keys_shared *k);

static void free_if_done(struct keys_shared *k)
{
    if (k->closed && !k->asked)
        free(k);
}

/* Whether to go on with the answer. False: this was stopped, or the call failed and the next tick
 * tries again. */
static bool came(struct keys_shared *k, const struct dbworker_rows *rows)
{
    k->asked = false;
    if (k->stopped)
        free_if_done(k);
    else if (rows->r == 0)
        return true;
    return false;
}

/* ---- take ------------------------------------------------------------------------------------ */

static void copy_text(char *ret, size_t cap, const char *text)
{
    snprintf(ret, cap, "%s", text ? text : "");
}

static int64_t number(const char *text)
{
    return text ? strtoll(text, NULL, 10) : 0;
}

/* The first cell is the newest change of all. The others are NULL if there is nothing to take. */
static bool read_copy(const char *const *cells, struct key_copy *ret, int64_t *ret_change)
{
    if (!cells[1])
        return false;
    *ret_change = number(cells[1]);
    copy_text(ret->key.id, sizeof(ret->key.id), cells[2]);
    copy_text(ret->key.tenant, sizeof(ret->key.tenant), cells[3]);
    copy_text(ret->key.tenant_name, sizeof(ret->key.tenant_name), cells[4]);
    copy_text(ret->key.name, sizeof(ret->key.name), cells[5]);
    copy_text(ret->hash, sizeof(ret->hash), cells[6]);
    copy_text(ret->key.hint, sizeof(ret->key.hint), cells[7]);
    ret->key.created_ms = number(cells[8]);
    ret->key.revoked_ms = number(cells[9]);
    ret->key.kind = (enum store_token)number(cells[10]);
    ret->named_ms = number(cells[11]);
    return true;
}

static void on_taken(void *arg, const struct dbworker_rows *rows)
{
    struct keys_shared *k = arg;

    if (!came(k, rows) || rows->columns != COLUMNS || rows->n == 0 || rows->n > PAGE_ROWS)
        return;
    if (number(rows->cells[0]) < k->seen) {
        k->seen = 0;
        k->told[0] = '\0';
        return;
    }
    AUTO(free_p) struct key_copy *copies = xcalloc(rows->n, sizeof(*copies));
    int64_t change = k->seen;
    size_t n = 0;
    while (n < rows->n && read_copy(rows->cells + n * COLUMNS, &copies[n], &change))
        n++;
    if (n > 0 && key_copies_take(k->store, copies, n, NULL) < 0)
        return;
    k->seen = change;
    if (n == PAGE_ROWS)
        take(k);
    else
        tell(k);
}

static void take(struct keys_shared *k)
{
    char seen[24];
    const char *const params[] = {seen};

    snprintf(seen, sizeof(seen), "%lld", (long long)k->seen);
    k->asked = true;
    dbworker_call(k->dbworker,
                  "SELECT newest.change, k.* FROM"
                  " (SELECT coalesce(max(change), 0) AS change FROM sandglass.api_key) newest"
                  " LEFT JOIN (SELECT a.change, a.id, a.tenant_id, t.name AS tenant_name, a.name,"
                  "  a.hash, a.hint, sandglass.ms(a.created_at), sandglass.ms(a.revoked_at),"
                  "  a.kind, a.named_ms"
                  "  FROM sandglass.api_key a LEFT JOIN sandglass.tenant t ON t.id = a.tenant_id"
                  "  WHERE a.change > $1::bigint ORDER BY a.change LIMIT " PAGE ") k ON true"
                  " ORDER BY k.change",
                  NULL, params, 1, on_taken, k);
}

/* ---- tell ------------------------------------------------------------------------------------ */

/* Some of our keys, as JSON. */
struct part {
    struct json j;
    size_t skip, n;
};

static void write_time(struct json *j, const char *key, int64_t ms)
{
    jw_u64(jw_key(j, key), ms > 0 ? (uint64_t)ms : 0);
}

static void write_copy(const struct key_copy *c, void *arg)
{
    struct part *p = arg;

    if (p->skip > 0) {
        p->skip--;
        return;
    }
    if (p->n == TELL_KEYS)
        return;
    p->n++;
    jw_object_begin(&p->j);
    jw_string(jw_key(&p->j, "id"), c->key.id);
    jw_string(jw_key(&p->j, "tenant"), c->key.tenant);
    jw_string(jw_key(&p->j, "tenant_name"), c->key.tenant_name);
    jw_string(jw_key(&p->j, "name"), c->key.name);
    jw_string(jw_key(&p->j, "hash"), c->hash);
    jw_string(jw_key(&p->j, "hint"), c->key.hint);
    write_time(&p->j, "created_ms", c->key.created_ms);
    write_time(&p->j, "revoked_ms", c->key.revoked_ms);
    jw_u64(jw_key(&p->j, "kind"), c->key.kind);
    write_time(&p->j, "named_ms", c->named_ms);
    jw_object_end(&p->j);
}

static void tell_next(struct keys_shared *k);

static void on_told(void *arg, const struct dbworker_rows *rows)
{
    struct keys_shared *k = arg;

    if (came(k, rows))
        tell_next(k);
}

static void tell_next(struct keys_shared *k)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(TELL_MAX);
    struct part p = {.j.out = &text, .skip = k->n_told};

    jw_array_begin(&p.j);
    int r = key_copies_each(k->store, write_copy, &p, NULL);
    jw_array_end(&p.j);
    if (r < 0 || text.truncated)
        return;
    if (p.n == 0) {
        memcpy(k->told, k->telling, sizeof(k->told));
        return;
    }
    const char *const params[] = {text.buf};
    k->n_told += p.n;
    k->asked = true;
    dbworker_call(k->dbworker, "SELECT sandglass.share_keys($1::jsonb)", NULL, params, 1, on_told,
                  k);
}

static void tell(struct keys_shared *k)
{
    if (key_copies_mark(k->store, k->telling, NULL) < 0 || strcmp(k->telling, k->told) == 0)
        return;
    k->n_told = 0;
    tell_next(k);
}

/* ---- the timer ------------------------------------------------------------------------------- */

static void on_tick(uv_timer_t *timer)
{
    struct keys_shared *k = timer->data;

    if (!k->asked)
        take(k);
}

struct keys_shared *keys_shared_start(uv_loop_t *loop, struct store *s, struct dbworker *c)
{
    struct keys_shared *k = NEW(struct keys_shared, .store = s, .dbworker = c);

    uv_timer_init(loop, &k->timer);
    k->timer.data = k;
    uv_timer_start(&k->timer, on_tick, 0, KEYS_EVERY_MS);
    return k;
}

static void on_closed(uv_handle_t *handle)
{
    struct keys_shared *k = handle->data;

    k->closed = true;
    free_if_done(k);
}

void keys_shared_stop(struct keys_shared *k)
{
    k->stopped = true;
    uv_close((uv_handle_t *)&k->timer, on_closed);
}
