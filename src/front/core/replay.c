#include "front/core/replay.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/base/clock.h"
#include "lib/base/languages.h"
#include "wire/agent.h"
#include "front/core/replay_impl.h"

#define LANGUAGES_MAX 64 /* contexts whose language is remembered */

#define WHY_PYTHON "cells of Python are not recorded"
#define WHY_GAP    "not all of its cells are on record"
#define WHY_MANY   "it ran more cells than are recorded"
#define WHY_CUT    "one of its cells was interrupted"

/* The record of a sandbox. A cell is a JSON object, so that checkpoints can share it by reference:
 * {"context": its id, or "", "language", "number" in its kernel, "code", "envs"?, and when it is
 * over "digest", "shown", "tookMs"}. */
struct replay {
    json_t *cells; /* in the order in which they began */
    size_t bytes;
    json_t *languages; /* languages of contexts, by id */
    json_t *broken;    /* contexts without a record: why, by key_of */
};

static struct replay *replay_make(struct sandbox *b)
{
    if (!b->replay)
        b->replay = NEW(struct replay, .cells = json_array(), .languages = json_object(),
                        .broken = json_object());
    return b->replay;
}

void replay_free(struct replay *r)
{
    if (!r)
        return;
    json_decref(r->cells);
    json_decref(r->languages);
    json_decref(r->broken);
    free(r);
}

/* Whether a cell was sent to this context. context "": to the default context of the language. */
static bool is_of(const json_t *cell, const char *context, const char *language)
{
    const char *own = jr_text(cell, "context");

    return context[0] ? strcmp(own, context) == 0
                      : !own[0] && strcmp(jr_text(cell, "language"), language) == 0;
}

static const char *key_of(const char *context, const char *language)
{
    return context[0] ? context : language;
}

static size_t size_of(const json_t *cell)
{
    json_t *envs = json_object_get(cell, "envs"), *value;
    size_t n = json_string_length(json_object_get(cell, "code"));
    const char *name;

    json_object_foreach(envs, name, value) n += strlen(name) + json_string_length(value);
    return n;
}

static void forget_cells(struct replay *r, const char *context, const char *language)
{
    for (size_t i = json_array_size(r->cells); i > 0; i--) {
        json_t *cell = json_array_get(r->cells, i - 1);

        if (!is_of(cell, context, language))
            continue;
        r->bytes -= size_of(cell);
        json_array_remove(r->cells, i - 1);
    }
}

static void break_off(struct replay *r, const char *context, const char *language, const char *why)
{
    forget_cells(r, context, language);
    if (json_object_size(r->broken) < 2 * KERNELS_MAX)
        json_object_set_new(r->broken, key_of(context, language), json_string(why));
}

/* ---- recording ------------------------------------------------------------------------------- */

struct cell_history {
    struct sandbox *sandbox;
    json_t *cell;
    struct cell_history_sum sum;
    uint64_t since_ns;
    bool running;
};

void replay_learn(struct sandbox *b, const char *context, const char *language)
{
    struct replay *r = replay_make(b);

    if (json_object_size(r->languages) < LANGUAGES_MAX || json_object_get(r->languages, context))
        json_object_set_new(r->languages, context, json_string(language));
}

struct cell_history *cell_history_new(struct sandbox *b, const char *context, const char *language,
                                      const char *code, size_t len, json_t *envs)
{
    const char *known = b->replay ? jr_text_or(b->replay->languages, context, NULL) : NULL;
    const char *name = context[0] ? (known ? known : "?") : language_full_name(language);

    if (strcmp(name, "python") == 0)
        return NULL;
    struct cell_history *t = NEW(struct cell_history, .sandbox = sandbox_ref(b));
    /* Code beyond the limit of the whole record is not kept: the cell cannot be recorded. */
    t->cell = json_pack("{s:s, s:s, s:o*, s:O*}", "context", context, "language", name, "code",
                        len <= REPLAY_BYTES ? json_stringn(code, len) : NULL, "envs", envs);
    cell_history_sum_init(&t->sum);
    return t;
}

void cell_history_running(struct cell_history *t, uint32_t number)
{
    if (!t || !t->cell)
        return;
    struct replay *r = replay_make(t->sandbox);
    const char *context = jr_text(t->cell, "context"), *language = jr_text(t->cell, "language");
    size_t bytes = size_of(t->cell);

    if (number == 1) { /* the first cell of a new kernel */
        forget_cells(r, context, language);
        json_object_del(r->broken, key_of(context, language));
    }
    if (json_object_get(r->broken, key_of(context, language)))
        return;
    if (!json_object_get(t->cell, "code") || r->bytes + bytes > REPLAY_BYTES ||
        json_array_size(r->cells) >= REPLAY_CELLS) {
        break_off(r, context, language, WHY_MANY);
        return;
    }
    json_object_set_new(t->cell, "number", json_integer(number));
    json_array_append(r->cells, t->cell);
    r->bytes += bytes;
    t->running = true;
    t->since_ns = clock_ns();
}

void cell_history_add(struct cell_history *t, uint8_t sub, const void *p, size_t len)
{
    if (t && t->running)
        cell_history_sum_add(&t->sum, sub, p, len);
}

static void cell_history_done(struct cell_history *t)
{
    cell_history_sum_done(&t->sum);
    json_decref(t->cell);
    sandbox_unref(t->sandbox);
    free(t);
}

void cell_history_end(struct cell_history *t, struct output_filter *o)
{
    char digest[CELL_HISTORY_DIGEST_LEN + 1], shown[REPLAY_SHOWN_MAX + 1];

    if (!t)
        return;
    if (t->running) {
        cell_history_sum_end(&t->sum, o, digest, shown);
        json_object_set_new(t->cell, "digest", json_string(digest));
        json_object_set_new(t->cell, "shown", json_string(shown));
        json_object_set_new(t->cell, "tookMs",
                            json_integer((json_int_t)((clock_ns() - t->since_ns) / 1000000)));
    }
    cell_history_done(t);
}

/* A cell that was cut off cannot be replayed: it would not be cut off at the same place, if at
 * all. */
void cell_history_free(struct cell_history *t)
{
    if (!t)
        return;
    if (t->running && t->sandbox->replay)
        break_off(t->sandbox->replay, jr_text(t->cell, "context"), jr_text(t->cell, "language"),
                  WHY_CUT);
    cell_history_done(t);
}

void replay_forget(struct sandbox *b, const char *context)
{
    if (!b->replay)
        return;
    forget_cells(b->replay, context, "");
    json_object_del(b->replay->broken, context);
}

void replay_forget_all(struct sandbox *b)
{
    replay_free(steal_ptr(&b->replay));
}

/* ---- using it -------------------------------------------------------------------------------- */

/* Whether a cell belongs to a context. A default context's cells may name only the language. */
static bool is_of_context(const json_t *cell, const json_t *context)
{
    return is_of(cell, jr_text(context, "id"), "") ||
           (jr_flag(context, "default") && is_of(cell, "", jr_text(context, "language")));
}

static const char *why_broken(const struct replay *r, const json_t *context)
{
    const char *why = jr_text_or(r->broken, jr_text(context, "id"), NULL);

    if (strcmp(jr_text(context, "language"), "python") == 0)
        return WHY_PYTHON;
    if (!why && jr_flag(context, "default"))
        why = jr_text_or(r->broken, jr_text(context, "language"), NULL);
    return why ? why : WHY_GAP;
}

/* Returns the cells of a context's kernel, from its first to its last, number `ran`; NULL if some
 * are missing. Cells of an earlier kernel may come before them in the record. */
static json_t *whole_record(const struct replay *r, const json_t *context, json_int_t ran)
{
    json_t *found = json_array();

    for (size_t i = json_array_size(r->cells); ran > 0 && i > 0; i--) {
        json_t *cell = json_array_get(r->cells, i - 1);

        if (!is_of_context(cell, context))
            continue;
        if (jr_int(cell, "number") != ran)
            break;
        json_array_insert(found, 0, cell);
        ran--;
    }
    if (ran == 0)
        return found;
    json_decref(found);
    return NULL;
}

json_t *replay_of(struct sandbox *b, json_t *contexts)
{
    static const struct replay none;
    const struct replay *r = b->replay ? b->replay : &none;
    json_t *whole = json_array(), *entry;
    size_t i;

    json_array_foreach(contexts, i, entry)
    {
        json_int_t ran = jr_int(entry, "cells");
        bool runs = jr_int(entry, "pid") > 0;
        json_t *cells;

        /* The variables of a kernel that has ended are gone in the original as well: nothing to
         * replay. */
        if (jr_flag(entry, "carried") || ran == 0 || !runs)
            continue;
        cells = whole_record(r, entry, ran);
        if (cells)
            json_array_append_new(whole, json_pack("{s:O, s:o}", "context",
                                                   json_object_get(entry, "id"), "cells", cells));
        else
            json_object_set_new(entry, "unrecorded", json_string(why_broken(r, entry)));
    }
    if (json_array_size(whole) > 0)
        return whole;
    json_decref(whole);
    return NULL;
}

void replay_inherit(struct sandbox *b, const char *context, json_t *cells)
{
    struct replay *r = replay_make(b);
    json_t *cell;
    size_t i;

    json_array_foreach(cells, i, cell)
    {
        json_t *own = json_copy(cell);
        json_object_set_new(own, "context", json_string(context));
        json_array_append_new(r->cells, own);
        r->bytes += size_of(own);
    }
}
