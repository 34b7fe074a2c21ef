#include "front/core/spec.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "lib/json/memfd.h"
#include "wire/warden.h"

void sandbox_spec_init(struct sandbox_spec *s)
{
    *s = (struct sandbox_spec){.allow_internet = -1, .auto_pause_memory = true};
}

void sandbox_spec_done(struct sandbox_spec *s)
{
    json_decref(s->metadata);
    json_decref(s->envs);
    json_decref(s->network);
    json_decref(s->secrets);
    json_decref(s->tokens);
    json_decref(s->volumes);
    json_decref(s->agents);
    json_decref(s->defaults);
    OPENSSL_cleanse(s->envd_token, sizeof(s->envd_token));
    OPENSSL_cleanse(s->traffic_token, sizeof(s->traffic_token));
    sandbox_spec_init(s);
}

/* The fields of a note: one table serves for writing and for reading. Numbers are below 2^63. */
enum field_type { TEXT, FLAG, NUMBER32, NUMBER64, OBJECT };

struct field {
    const char *name;
    enum field_type type;
    size_t offset, size;
    bool later; /* notes of an earlier version do not have it */
};

#define FIELD_(n, t, m, later)                                                               \
    {                                                                                        \
        n, t, offsetof(struct sandbox_spec, m), sizeof(((struct sandbox_spec *)0)->m), later \
    }
#define FIELD(n, t, m)       FIELD_(n, t, m, false)
#define FIELD_LATER(n, t, m) FIELD_(n, t, m, true)

static const struct field fields[] = {
    FIELD("tenant", TEXT, tenant),
    FIELD_LATER("context", TEXT, context),
    FIELD_LATER("checkpoint", TEXT, checkpoint),
    FIELD_LATER("checkpointSerial", NUMBER64, checkpoint_serial),
    FIELD_LATER("unfinished", FLAG, unfinished),
    FIELD_LATER("goesBack", TEXT, goes_back),
    FIELD("template", TEXT, template_id),
    FIELD("alias", TEXT, alias),
    FIELD_LATER("buildId", TEXT, build_id),
    FIELD("metadata", OBJECT, metadata),
    FIELD("envs", OBJECT, envs),
    FIELD("network", OBJECT, network),
    FIELD("allowInternet", NUMBER32, allow_internet),
    FIELD_LATER("secrets", OBJECT, secrets),
    FIELD_LATER("tokens", OBJECT, tokens),
    FIELD_LATER("volumes", OBJECT, volumes),
    FIELD_LATER("agents", OBJECT, agents),
    FIELD("envdToken", TEXT, envd_token),
    FIELD("trafficToken", TEXT, traffic_token),
    FIELD("autoPause", FLAG, auto_pause),
    FIELD("autoPauseMemory", FLAG, auto_pause_memory),
    FIELD("autoResume", FLAG, auto_resume),
    FIELD("interpreter", FLAG, interpreter),
    FIELD_LATER("gateway", FLAG, gateway),
    FIELD_LATER("build", FLAG, build),
    FIELD_LATER("standby", FLAG, standby),
    FIELD_LATER("defaults", OBJECT, defaults),
    FIELD("timeoutMs", NUMBER64, timeout_ms),
    FIELD("createdMs", NUMBER64, created_ms),
    FIELD("startedMs", NUMBER64, started_ms),
    FIELD("memory", NUMBER64, limits.memory_bytes),
    FIELD("disk", NUMBER64, limits.disk_bytes),
    FIELD("inodes", NUMBER64, limits.disk_inodes),
    FIELD("cpus", NUMBER32, limits.cpus_milli),
    FIELD("pids", NUMBER32, limits.pids),
};

static json_t *field_save(const struct field *f, const struct sandbox_spec *s)
{
    const void *at = (const char *)s + f->offset;

    switch (f->type) {
    case TEXT:
        return json_string(at);
    case FLAG:
        return json_boolean(*(const bool *)at);
    case NUMBER32:
        return json_integer(*(const int32_t *)at);
    case NUMBER64:
        return json_integer(*(const int64_t *)at);
    case OBJECT:
        return *(json_t *const *)at ? json_incref(*(json_t *const *)at) : json_null();
    }
    return NULL;
}

static int field_load(const struct field *f, const json_t *v, struct sandbox_spec *s)
{
    void *at = (char *)s + f->offset;

    if (!v && f->later)
        return 0;
    switch (f->type) {
    case TEXT:
        if (!json_is_string(v) || json_string_length(v) >= f->size)
            return -EINVAL;
        memcpy(at, json_string_value(v), json_string_length(v) + 1);
        return 0;
    case FLAG:
        *(bool *)at = json_is_true(v);
        return 0;
    case NUMBER32:
        *(int32_t *)at = (int32_t)json_integer_value(v);
        return 0;
    case NUMBER64:
        *(int64_t *)at = json_integer_value(v);
        return 0;
    case OBJECT:
        if (json_is_object(v) || json_is_array(v))
            *(json_t **)at = json_deep_copy(v);
        return 0;
    }
    return -EINVAL;
}

int sandbox_spec_save(const struct sandbox_spec *s, struct sg_error *e)
{
    json_t *note = json_object();

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        json_object_set_new(note, fields[i].name, field_save(&fields[i], s));
    int r = memfd_of_json("sandglass-note", note, ORDER_NOTE_MAX);
    if (r == -E2BIG)
        return err_set(e, SG_ERR_INVALID, r,
                       "metadata, envVars and network are larger than %u bytes together",
                       ORDER_NOTE_MAX);
    return r < 0 ? err_set(e, SG_ERR_LIMIT, r, "write the sandbox's note: out of memory") : r;
}

int sandbox_spec_load(int memfd, struct sandbox_spec *ret, struct sg_error *e)
{
    struct sandbox_spec s;
    json_t *note;
    int r = memfd_read_json(memfd, ORDER_NOTE_MAX, &note);

    sandbox_spec_init(&s);
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "read a sandbox's note: %s", strerror(-r));
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fields); i++)
        r = field_load(&fields[i], json_object_get(note, fields[i].name), &s);
    json_decref(note);
    if (!s.envs)
        s.envs = json_object();
    if (r < 0) {
        sandbox_spec_done(&s);
        return err_set(e, SG_ERR_INTERNAL, r, "a sandbox's note is malformed");
    }
    *ret = s;
    return 0;
}

uint32_t spec_cpus(const struct sg_limits *l)
{
    return l->cpus_milli <= 1000 ? 1 : (l->cpus_milli + 999) / 1000;
}

uint64_t spec_mib(uint64_t bytes)
{
    uint64_t mib = bytes >> 20;

    return mib ? mib : 1;
}

void token_random(char ret[SPEC_TOKEN_LEN + 1])
{
    unsigned char bytes[SPEC_TOKEN_LEN / 2];

    /* getrandom never returns less for this size. A guessable token would be worse than none. */
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        abort();
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

bool token_equal(const char *a, const char *b)
{
    size_t len = strlen(a);

    return len == strlen(b) && CRYPTO_memcmp(a, b, len) == 0;
}
