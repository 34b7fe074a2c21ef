/* Runs recorded cells again, one after the other, in a sandbox that was made from a checkpoint.
 * Nothing goes out of the sandbox meanwhile: a cell must not send a second time what it has sent
 * before. */
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/base/clock.h"
#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/identity.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/replay_impl.h"

#define CELL_MS_MIN 10000 /* time limit of a cell that was quick the last time */
#define MS_FACTOR   10    /* and of others: this many times what they took */
#define NOTE_ENDED  "(its kernel ended)"
#define NOTE_LATE   "(it did not end in time)"

struct running {
    struct sandbox *sandbox;
    struct checkpoint *from;
    json_t *report;
    size_t context, cell; /* the cell that runs now: indices */
    struct call call;
    struct cell_history_sum sum;
    uint64_t until_ns;
    void (*done)(void *arg, int r, const struct sg_error *e);
    void *arg;
};

static void next(struct running *r);

static void finish(struct running *r, int res, const struct sg_error *e)
{
    r->done(r->arg, res, e);
    checkpoint_unref(r->from);
    json_decref(r->report);
    sandbox_unref(r->sandbox);
    free(r);
}

static json_t *context_now(const struct running *r)
{
    return json_array_get(r->from->cells, r->context);
}

static json_t *cell_now(const struct running *r)
{
    return json_array_get(json_object_get(context_now(r), "cells"), r->cell);
}

/* The report's entry of a context. */
static json_t *entry_of(json_t *report, const json_t *id)
{
    json_t *list = json_object_get(report, "kernels"), *entry;
    size_t i;

    json_array_foreach(list, i, entry) if (json_equal(json_object_get(entry, "contextId"),
                                                      (json_t *)(uintptr_t)id)) return entry;
    return NULL;
}

static void diverged(struct running *r, const char *got)
{
    json_t *cell = cell_now(r),
           *entry = entry_of(r->report, json_object_get(context_now(r), "context"));
    json_t *list = json_object_get(entry, "diverged"), *said;

    if (!entry)
        return;
    said = json_string(got); /* NULL: not valid text */
    if (!list) {
        list = json_array();
        json_object_set_new(entry, "diverged", list);
    }
    json_array_append_new(
        list, json_pack("{s:O, s:s, s:o}", "cell", json_object_get(cell, "number"), "expected",
                        jr_text(cell, "shown"), "got", said ? said : json_string("?")));
}

/* A context is done, and the next one follows. whole: all its cells ran. */
static void context_over(struct running *r, bool whole)
{
    const json_t *id = json_object_get(context_now(r), "context");
    json_t *entry = entry_of(r->report, id);

    if (entry) {
        json_object_set_new(entry, "state", json_string("replayed"));
        json_object_del(entry, "reason");
    }
    if (whole)
        replay_inherit(r->sandbox, json_string_value(id), json_object_get(context_now(r), "cells"));
    r->context++;
    r->cell = 0;
}

/* Skips the rest of a context: one of its cells did not end as it had before, and the later ones
 * build on it. */
static void skip_context(struct running *r, const char *why)
{
    diverged(r, why);
    context_over(r, false);
}

/* ---- one cell -------------------------------------------------------------------------------- */

static void on_data(struct call *call, uint8_t sub, const void *p, size_t len)
{
    struct running *r = call->owner;

    cell_history_sum_add(&r->sum, sub, p, len);
    call_consumed(call, len);
}

static void compare(struct running *r)
{
    enum sanitise_mode mode = output_filter_mode_of(r->sandbox->front, r->sandbox->spec.tenant,
                                                    r->sandbox->spec.context[0] != '\0');
    struct output_filter *o = output_filter_new(r->sandbox->front, mode, r->sandbox->spec.tenant,
                                                r->sandbox->id, NULL, NULL);
    char digest[CELL_HISTORY_DIGEST_LEN + 1], shown[REPLAY_SHOWN_MAX + 1];

    cell_history_sum_end(&r->sum, o, digest, shown);
    output_filter_free(o);
    if (strcmp(jr_text(cell_now(r), "digest"), digest) != 0)
        diverged(r, shown);
}

static void on_end(struct call *call, int status, const char *message, const void *result,
                   size_t len)
{
    struct running *r = call->owner;
    struct wire_reader w = wire_reader_of(result, len);
    struct sg_error e = {0};

    uint32_t how = wire_get_u32(&w);
    wire_get_u32(&w); /* skips the exit code */
    uint32_t timed_out = wire_get_u32(&w);
    wire_get_u64(&w); /* memory_limit */
    if (status == CALL_GONE) {
        cell_history_sum_done(&r->sum);
        finish(r, err_set(&e, SG_ERR_NOT_FOUND, -ENOENT, "the sandbox has ended"), &e);
        return;
    }
    if (status != 0 || !wire_done(&w)) {
        char shown[REPLAY_SHOWN_MAX + 1];
        snprintf(shown, sizeof(shown), "(%.190s)", status != 0 ? message : "no answer");
        skip_context(r, shown);
    } else if (timed_out) {
        skip_context(r, NOTE_LATE);
    } else if (how != KERNEL_DONE) {
        skip_context(r, NOTE_ENDED);
    } else {
        compare(r);
        r->cell++;
    }
    cell_history_sum_done(&r->sum);
    next(r);
}

static uint64_t limit_ms(const struct running *r)
{
    uint64_t now = clock_ns(), left = r->until_ns > now ? (r->until_ns - now) / 1000000 : 0;
    json_int_t took = jr_int(cell_now(r), "tookMs");
    uint64_t limit = (uint64_t)(took > 0 ? took : 0) * MS_FACTOR;

    limit = limit > CELL_MS_MIN ? limit : CELL_MS_MIN;
    limit = limit < left ? limit : left;
    return limit > 0 ? limit : 1;
}

static void run_cell(struct running *r)
{
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(OPS_OPEN_MAX);
    const json_t *code = json_object_get(cell_now(r), "code");
    struct sg_error e = {0};

    wire_put_str(&q, jr_text(context_now(r), "context"));
    wire_put_str(&q, "");
    wire_put_u64(&q, limit_ms(r));
    identity_put_envs(r->sandbox, NULL, NULL, &q);
    envs_put(json_object_get(cell_now(r), "envs"), &q);
    r->call = (struct call){.owner = r, .uncounted = true, .on_data = on_data, .on_end = on_end};
    cell_history_sum_init(&r->sum);
    int res = call_begin(&r->call, r->sandbox, OP_KERNEL_EXECUTE, &q, &e);
    if (res < 0) {
        cell_history_sum_done(&r->sum);
        finish(r, res, &e);
        return;
    }
    call_pour(&r->call, json_string_value(code), json_string_length(code));
}

static void next(struct running *r)
{
    while (context_now(r) && !cell_now(r))
        context_over(r, true);
    if (context_now(r))
        run_cell(r);
    else
        finish(r, 0, NULL);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Adds to the report why contexts could not be replayed. That says more than why they were not
 * copied. */
static void say_unrecorded(const json_t *contexts, json_t *report)
{
    for (size_t i = 0; i < json_array_size(contexts); i++) {
        const json_t *context = json_array_get(contexts, i);
        const char *why = jr_text_or(context, "unrecorded", NULL);
        json_t *entry = entry_of(report, json_object_get(context, "id"));
        const char *reason = jr_text(entry, "reason");

        if (why && entry)
            json_object_set_new(entry, "reason",
                                json_sprintf("%s%s%s", reason, reason[0] ? "; " : "", why));
    }
}

void replay_run(struct sandbox *b, struct checkpoint *c, json_t *report,
                void (*done)(void *arg, int r, const struct sg_error *e), void *arg)
{
    struct running *r =
        NEW(struct running, .sandbox = sandbox_ref(b), .from = checkpoint_ref(c),
            .report = json_incref(report), .until_ns = clock_ns() + REPLAY_MS * 1000000ull,
            .done = done, .arg = arg);

    say_unrecorded(c->contexts, report);
    next(r);
}
