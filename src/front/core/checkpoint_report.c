/* Reports what became of kernels: turns the texts of agent and broker, which are hostile, into a
 * report for people. */
#include <string.h>
#include <sys/stat.h>

#include "lib/json/values.h"
#include "lib/base/clock.h"
#include "lib/base/languages.h"
#include "lib/base/fd.h"
#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/reply.h"

#define ANSWER_MAX  (2u * 1024 * 1024)
#define PID_MAX_    (4 * 1024 * 1024)
#define COMMAND_MAX 256
#define WHAT_MAX    64
#define HOLDS_MAX   1024
#define REMEDY_MAX  512

#define REASON_NODE  "Node.js has threads from its start and cannot be copied"
#define REASON_OTHER "its interpreter runs in another process, which is not copied"
#define REASON_PLAIN "it was not made as a copy of a warm interpreter: restart its context"
#define REASON_BUSY  "it was not idle"
#define REASON_LEFT  "it could not be copied"

/* ---- contexts -------------------------------------------------------------------------------- */

/* A directory's name need not be valid text. If it is not, "" stands for the home directory. */
static json_t *text_or_empty(const char *text)
{
    json_t *v = json_string(text);

    return v ? v : json_string("");
}

static const char *why_not(const char *language, bool twin, bool idle)
{
    const struct language *known = language_find(language);

    if (known && known->kernel == PROGRAM_NODE)
        return REASON_NODE;
    if (strcmp(language, "python") != 0)
        return REASON_OTHER;
    return !twin ? REASON_PLAIN : idle ? REASON_LEFT : REASON_BUSY;
}

json_t *report_read_context(const void *event, size_t len)
{
    struct wire_reader r = wire_reader_of(event, len);

    const char *id = wire_get_str(&r, KERNEL_ID_LEN), *language = wire_get_str(&r, OPS_TAG_MAX);
    const char *cwd = wire_get_str(&r, OPS_PATH_MAX);
    uint32_t state = wire_get_u32(&r), cells = wire_get_u32(&r), is_default = wire_get_u32(&r);
    wire_get_u32(&r); /* cold: `twin` says it better */
    uint32_t pid = wire_get_u32(&r), twin = wire_get_u32(&r), n_env = wire_get_u32(&r);
    /* The variables are skipped: a kernel gets those of the sandbox that it will be in. */
    for (uint32_t i = 0; i < n_env && !r.bad; i++)
        wire_get_str(&r, OPS_ARG_MAX);
    if (!wire_done(&r) || pid > PID_MAX_ || !id[0])
        return NULL;
    bool idle = state == KERNEL_IDLE, carried = pid > 0 && twin && idle;
    json_t *entry = json_pack("{s:s, s:s, s:o, s:b, s:i, s:i, s:b}", "id", id, "language", language,
                              "cwd", text_or_empty(cwd), "default", is_default != 0, "cells",
                              (int)(cells & INT32_MAX), "pid", (int)pid, "carried", carried);
    if (entry && pid > 0 && !carried)
        json_object_set_new(entry, "reason", json_string(why_not(language, twin != 0, idle)));
    return entry;
}

/* ---- the broker ------------------------------------------------------------------------------ */

json_t *report_read(int memfd)
{
    AUTO(free_p) char *text = NULL;
    struct stat st;
    size_t len = 0;

    if (memfd < 0 || fstat(memfd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > REPORT_MAX ||
        lseek(memfd, 0, SEEK_SET) < 0 || fd_read_all(memfd, REPORT_MAX, &text, &len) < 0 ||
        body_weight_check(text, len, NULL) < 0)
        return NULL;
    json_t *v = json_loadb(text, len, 0, NULL);
    if (json_is_object(v))
        return v;
    json_decref(v);
    return NULL;
}

/* A member: at most `max` bytes of it, cut between characters. */
static json_t *cut_text(const json_t *entry, const char *key, size_t max)
{
    const json_t *v = json_object_get(entry, key);
    const char *text = json_is_string(v) ? json_string_value(v) : "";
    size_t len = json_string_length(v);

    if (len > max)
        for (len = max; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
    json_t *cut = json_stringn(text, len);
    return cut ? cut : json_string("");
}

static json_int_t cut_number(const json_t *entry, const char *key)
{
    json_int_t n = jr_int(entry, key);

    return n > 0 && n <= PID_MAX_ ? n : 0;
}

static const json_t *kernel_of(const json_t *broker, json_int_t pid)
{
    const json_t *list = json_object_get(broker, "kernels");

    for (size_t i = 0; pid > 0 && i < json_array_size(list) && i < KERNELS_MAX; i++)
        if (jr_int(json_array_get(list, i), "pid") == pid)
            return json_array_get(list, i);
    return NULL;
}

static json_t *cut_dropped(const json_t *list)
{
    size_t n = json_array_size(list);
    json_t *cut = json_array();

    for (size_t i = 0; i < n && i < REPORT_DROPPED_MAX; i++) {
        const json_t *v = json_array_get(list, i);
        json_array_append_new(cut, json_pack("{s:I, s:o}", "fd", cut_number(v, "fd"), "what",
                                             cut_text(v, "what", WHAT_MAX)));
    }
    return cut;
}

size_t report_mark_carried(json_t *contexts, const json_t *broker)
{
    json_t *entry;
    size_t i, n = 0;

    json_array_foreach(contexts, i, entry)
    {
        if (!jr_flag(entry, "carried"))
            continue;
        const json_t *k = kernel_of(broker, jr_int(entry, "pid"));
        if (!k) {
            json_object_set_new(entry, "carried", json_false());
            json_object_set_new(entry, "reason", json_string(REASON_LEFT));
            continue;
        }
        n++;
        if (json_array_size(json_object_get(k, "dropped")) > 0)
            json_object_set_new(entry, "dropped", cut_dropped(json_object_get(k, "dropped")));
    }
    return n;
}

static json_t *one_in_the_way(const char *what, const char *message, const char *remedy)
{
    json_t *holds = json_string(message);

    return json_pack("{s:i, s:s, s:s, s:o, s:s}", "pid", 0, "command", "", "what", what, "holds",
                     holds ? holds : json_string(""), "remedy", remedy);
}

json_t *report_in_the_way(const json_t *broker, const char *message)
{
    const json_t *list = json_object_get(broker, "inTheWay");
    json_t *cut = json_array();

    for (size_t i = 0; i < json_array_size(list) && i < REPORT_WAY_MAX; i++) {
        const json_t *v = json_array_get(list, i);
        json_array_append_new(
            cut, json_pack("{s:I, s:o, s:o, s:o, s:o}", "pid", cut_number(v, "pid"), "command",
                           cut_text(v, "command", COMMAND_MAX), "what",
                           cut_text(v, "what", WHAT_MAX), "holds", cut_text(v, "holds", HOLDS_MAX),
                           "remedy", cut_text(v, "remedy", REMEDY_MAX)));
    }
    /* The broker lists nothing: the warden itself found something when it checked all that runs. */
    if (json_array_size(cut) == 0)
        json_array_append_new(cut, one_in_the_way("restless", message, "try again"));
    return json_pack("{s:o}", "inTheWay", cut);
}

json_t *report_cell_in_the_way(const char *message)
{
    return json_pack("{s:[o]}", "inTheWay",
                     one_in_the_way("cell", message, "wait for it (waitMs), or interrupt it"));
}

/* ---- for people ------------------------------------------------------------------------------ */

/* The report's entry for one context. NULL: no kernel was ever started for it, so it has lost
 * nothing. */
static json_t *kernel_entry(const json_t *context, const char *gone)
{
    bool carried = jr_flag(context, "carried") && !gone;
    const json_t *dropped = json_object_get(context, "dropped");
    json_t *reason = json_object_get(context, "reason");

    if (jr_int(context, "pid") == 0)
        return NULL;
    json_t *k =
        json_pack("{s:O, s:O, s:s}", "contextId", json_object_get(context, "id"), "language",
                  json_object_get(context, "language"), "state", carried ? "carried" : "fresh");
    if (carried && dropped)
        json_object_set(k, "dropped", json_object_get(context, "dropped"));
    if (!carried && reason)
        json_object_set(k, "reason", reason);
    else if (!carried && gone)
        json_object_set_new(k, "reason", json_string(gone));
    return k;
}

json_t *report_kernels(const json_t *contexts, const char *gone)
{
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(contexts); i++) {
        json_t *k = kernel_entry(json_array_get(contexts, i), gone);
        if (k)
            json_array_append_new(list, k);
    }
    return json_pack("{s:o}", "kernels", list);
}

static void put_member(struct json *j, const json_t *report, const char *key)
{
    const json_t *v = json_object_get(report, key);
    AUTO(free_p) char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    if (text)
        jw_raw(jw_key(j, key), text, strlen(text));
}

void report_put(struct json *j, const json_t *report)
{
    put_member(j, report, "kernels");
    put_member(j, report, "inTheWay");
}

void checkpoint_put(struct json *j, const struct checkpoint *c)
{
    const struct sandbox *b = sandbox_find(c->front, c->sandbox_id);
    char at[CLOCK_TEXT_LEN];

    clock_text(c->at_ms, at);
    jw_object_begin(j);
    jw_string(jw_key(j, "checkpointId"), c->name);
    if (c->label[0])
        jw_bytes(jw_key(j, "messageId"), c->label, strlen(c->label));
    if (checkpoint_find(c->front, c->tenant, c->parent))
        jw_string(jw_key(j, "parentId"), c->parent);
    jw_string(jw_key(j, "createdAt"), at);
    jw_u64(jw_key(j, "memoryBytes"), c->kernels ? c->memory_bytes : 0);
    jw_bool(jw_key(j, "kernels"), c->kernels);
    jw_bool(jw_key(j, "current"), b && strcmp(sandbox_came_from(b), c->name) == 0);
    jw_object_end(j);
}

void reply_fork_error(struct http_req *req, int r, const struct sg_error *e, const json_t *report)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};

    if (r == -ESTALE) {
        reply_error(req, 410, "%s", e->message);
        return;
    }
    if (r != -EOWNERDEAD && (r != -EBUSY || !json_object_get(report, "inTheWay"))) {
        reply_sg_error(req, e);
        return;
    }
    jw_object_begin(&j);
    jw_i64(jw_key(&j, "code"), 409);
    jw_bytes(jw_key(&j, "message"), e->message, strlen(e->message));
    if (r == -EOWNERDEAD)
        jw_string(jw_key(&j, "reason"), "state_lost");
    reply_put_fault(req, &j, 409, e->message);
    report_put(&j, report);
    jw_object_end(&j);
    reply_json(req, 409, &out);
}
