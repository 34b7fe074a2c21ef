#include "front/core/e2b_event.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "front/core/sandbox.h"
#include "front/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/json/values.h"
#include "lib/vault/vault.h"

#define TYPE_PREFIX "sandbox.lifecycle."
#define METADATA    "sandbox_metadata"
#define EVENT_MAX   8192 /* sealed metadata that are larger are left out */
#define PURPOSE     128

static const struct named {
    enum event_kind kind;
    const char *type;
    const char *label; /* as older versions call it; "" for what they did not have */
} types[] = {
    {HAPPENED_SANDBOX_CREATED, TYPE_PREFIX "created", "create"},
    {HAPPENED_SANDBOX_PAUSED, TYPE_PREFIX "paused", "pause"},
    {HAPPENED_SANDBOX_RESUMED, TYPE_PREFIX "resumed", "resume"},
    {HAPPENED_SANDBOX_UPDATED, TYPE_PREFIX "updated", "update"},
    {HAPPENED_SANDBOX_SNAPSHOT, TYPE_PREFIX "checkpointed", ""},
    {HAPPENED_SANDBOX_ENDED, TYPE_PREFIX "killed", "kill"},
};

const struct e2b_event_field e2b_event_fields[] = {
    {"id", "id"},
    {"version", "version"},
    {"type", "type"},
    {"timestamp", "timestamp"},
    {"event_category", "eventCategory"},
    {"event_label", "eventLabel"},
    {"event_data", "eventData"},
    {"sandbox_id", "sandboxId"},
    {"sandbox_execution_id", "sandboxExecutionId"},
    {"sandbox_template_id", "sandboxTemplateId"},
    {"sandbox_build_id", "sandboxBuildId"},
    {"sandbox_team_id", "sandboxTeamId"},
    {NULL, NULL},
};

static const struct named *find(enum event_kind kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (types[i].kind == kind)
            return &types[i];
    return NULL;
}

const char *e2b_event_type(enum event_kind kind)
{
    const struct named *n = find(kind);

    return n ? n->type : NULL;
}

bool e2b_event_kind(const char *type, size_t len, enum event_kind *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strlen(types[i].type) == len && memcmp(types[i].type, type, len) == 0) {
            *ret = types[i].kind;
            return true;
        }
    return false;
}

uint32_t e2b_event_kinds(const char *list)
{
    uint32_t kinds = 0;
    enum event_kind kind;

    for (size_t len; (len = strcspn(list, ",")) > 0; list += len + (list[len] == ','))
        if (e2b_event_kind(list, len, &kind))
            kinds |= 1u << kind;
    return kinds;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static struct vault_key *sealing;

int e2b_event_begin(const struct store *s, struct sg_error *e)
{
    AUTO(close_p) int dir = store_dir(s, e);

    vault_key_free(steal_ptr(&sealing));
    return dir < 0 ? dir : vault_key_open(dir, E2B_EVENT_KEY, &sealing, e);
}

static void purpose_of(char ret[PURPOSE], const char *tenant, const char *sandbox)
{
    snprintf(ret, PURPOSE, "event/%s/%s", tenant, sandbox);
}

/* NULL: they are too large for an event. */
static json_t *seal(const json_t *metadata, const struct event_about *about)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(EVENT_MAX);
    char *text = json_dumps(metadata, JSON_COMPACT), purpose[PURPOSE];
    uint8_t public_key[VAULT_PUBLIC_LEN];

    if (!sealing)
        sealing = vault_key_new();
    vault_key_public(sealing, public_key);
    purpose_of(purpose, about->tenant, about->sandbox_id);
    bool ok = text && vault_seal(public_key, purpose, text, strlen(text), &out, NULL) == 0 &&
              !out.truncated;
    free(text);
    return ok ? json_string(out.buf) : NULL;
}

static json_t *unseal(const json_t *event, const char *sealed)
{
    struct secret text = {0};
    char purpose[PURPOSE];
    json_t *metadata = NULL;

    purpose_of(purpose, jr_text_or(event, "sandbox_team_id", ""),
               jr_text_or(event, "sandbox_id", ""));
    if (sealing && vault_open(sealing, purpose, sealed, &text, NULL) == 0)
        metadata = json_loadb((const char *)text.bytes, text.len, 0, NULL);
    secret_done(&text);
    return metadata;
}

json_t *e2b_event_read(const char *stored)
{
    json_t *event = json_loads(stored, 0, NULL), *data = json_object_get(event, "event_data");
    const char *sealed = jr_text_or(data, METADATA, NULL);
    json_t *metadata = sealed ? unseal(event, sealed) : NULL;

    if (metadata)
        json_object_set_new(data, METADATA, metadata);
    else if (sealed)
        json_object_del(data, METADATA);
    return event;
}

/* ---- what is told of the sandbox ------------------------------------------------------------- */

/* E2B names each run of a sandbox, from its start or resume on. */
static void execution_id(const struct sandbox *b, char ret[UUID_LEN + 1])
{
    unsigned char h[SHA256_DIGEST_LENGTH];
    char text[ID_LEN + 32];

    snprintf(text, sizeof(text), "%s %lld", b->id, (long long)b->spec.started_ms);
    SHA256((const unsigned char *)text, strlen(text), h);
    uuid_from_bytes(h, ret);
}

static json_t *time_value(int64_t ms)
{
    char text[CLOCK_TEXT_LEN];

    clock_text(ms, text);
    return json_string(text);
}

static json_t *execution(const struct sandbox *b, int64_t ms)
{
    int64_t ran = ms - b->spec.started_ms;

    return json_pack("{s:o, s:I, s:I, s:I}", "started_at", time_value(b->spec.started_ms),
                     "vcpu_count", (json_int_t)spec_cpus(&b->spec.limits), "memory_mb",
                     (json_int_t)spec_mib(b->spec.limits.memory_bytes), "execution_time",
                     (json_int_t)(ran > 0 ? ran : 0));
}

static const char *kill_reason(const char *reason)
{
    static const char *const words[][2] = {{"killed", "request"}, {"expired", "timeout"}};

    for (size_t i = 0; reason && i < ARRAY_SIZE(words); i++)
        if (strcmp(words[i][0], reason) == 0)
            return words[i][1];
    return "unknown";
}

static json_t *data_of(enum event_kind kind, int64_t ms, const struct event_about *about)
{
    const struct sandbox *b = about->sandbox;
    json_t *data = json_object();

    json_t *metadata = b && b->spec.metadata ? seal(b->spec.metadata, about) : NULL;

    if (metadata)
        json_object_set_new(data, METADATA, metadata);
    if (b && (kind == HAPPENED_SANDBOX_PAUSED || kind == HAPPENED_SANDBOX_ENDED))
        json_object_set_new(data, "execution", execution(b, ms));
    if (kind == HAPPENED_SANDBOX_ENDED)
        json_object_set_new(data, "kill_reason", json_string(kill_reason(about->reason)));
    if (b && kind == HAPPENED_SANDBOX_UPDATED && about->reason &&
        strcmp(about->reason, "timeout") == 0)
        json_object_set_new(data, "set_timeout", time_value(b->end_ms));
    return data;
}

/* The fields that name the sandbox: from itself, or from its last event. */
static void name_sandbox(json_t *event, const struct event_about *about)
{
    static const char *const names[] = {"sandbox_execution_id", "sandbox_template_id",
                                        "sandbox_build_id"};
    const struct sandbox *b = about->sandbox;
    char execution[UUID_LEN + 1];

    json_object_set_new(event, "sandbox_id", json_string(about->sandbox_id));
    json_object_set_new(event, "sandbox_team_id", json_string(about->tenant));
    if (b) {
        execution_id(b, execution);
        json_object_set_new(event, names[0], json_string(execution));
        json_object_set_new(event, names[1], json_string(b->spec.template_id));
        json_object_set_new(event, names[2], json_string(b->spec.build_id));
        return;
    }
    json_t *last = about->like ? json_loads(about->like, 0, NULL) : NULL;
    json_t *metadata = json_object_get(json_object_get(last, "event_data"), METADATA);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        json_object_set_new(event, names[i], json_string(jr_text_or(last, names[i], "")));
    if (metadata)
        json_object_set(json_object_get(event, "event_data"), METADATA, metadata);
    json_decref(last);
}

char *e2b_event_write(enum event_kind kind, int64_t ms, const struct event_about *about)
{
    const struct named *n = find(kind);
    char id[UUID_LEN + 1];

    if (!n || !about->sandbox_id || !about->tenant ||
        (about->sandbox && about->sandbox->spec.build))
        return NULL;
    uuid_random(id);
    json_t *event =
        json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:o}", "id", id, "version", "v2", "type", n->type,
                  "timestamp", time_value(ms), "event_category", n->label[0] ? "lifecycle" : "",
                  "event_label", n->label, "event_data", data_of(kind, ms, about));
    name_sandbox(event, about);
    char *text = json_dumps(event, JSON_COMPACT);
    if (text && strlen(text) > EVENT_MAX) {
        free(text);
        json_object_del(json_object_get(event, "event_data"), METADATA);
        text = json_dumps(event, JSON_COMPACT);
    }
    json_decref(event);
    return text;
}
