#include "front/main/tenant.h"

#include <string.h>

#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "lib/command/ui.h"
#include "lib/settings/settings.h"
#include "front/main/manage.h"

#define LIST_MAX (16u * 1024 * 1024)

enum limit {
    MAX_SANDBOXES,
    MAX_PAUSED,
    MAX_PAUSED_MEMORY,
    MAX_CONTEXTS,
    MAX_CONVERSATION_CONTEXTS,
    EXECUTION_TIMEOUT,
    EXECUTION_TIMEOUT_MAX,
    CODE_MAX,
    MEMORY,
    LIMIT_MAX_
};

struct tenant_options {
    struct action_options base;
    enum { LEFT, NORMAL, OWN } change[LIMIT_MAX_]; /* as it is, the server's, one of its own */
    struct settings own;
    bool sanitises, always; /* whether --sanitise and --sanitise-always were given */
    uint8_t sanitise;       /* as the store keeps it */
};

/* ---- options --------------------------------------------------------------------------------- */

/* Reads a limit in the same way, and with the same bounds, as the setting that it replaces. */
static int apply_limit(void *self, enum limit which, enum setting key, const char *option,
                       const char *value, struct sg_error *e)
{
    struct tenant_options *o = self;
    bool normal = strcmp(value, "default") == 0 || strcmp(value, "0") == 0;

    o->change[which] = normal ? NORMAL : OWN;
    return normal ? 0 : settings_set(&o->own, key, option, value, e);
}

#define APPLY(name, which, key, option)                                        \
    static int apply_##name(void *self, const char *value, struct sg_error *e) \
    {                                                                          \
        return apply_limit(self, which, SETTING_##key, option, value, e);      \
    }
APPLY(sandboxes, MAX_SANDBOXES, tenant_sandboxes, "--max-sandboxes")
APPLY(paused, MAX_PAUSED, tenant_paused, "--max-paused")
APPLY(paused_memory, MAX_PAUSED_MEMORY, tenant_paused_memory, "--max-paused-memory")
APPLY(contexts, MAX_CONTEXTS, tenant_contexts, "--max-contexts")
APPLY(conversation, MAX_CONVERSATION_CONTEXTS, conversation_contexts, "--max-conversation-contexts")
APPLY(timeout, EXECUTION_TIMEOUT, execution_timeout, "--execution-timeout")
APPLY(timeout_max, EXECUTION_TIMEOUT_MAX, execution_timeout_max, "--execution-timeout-max")
APPLY(code, CODE_MAX, code_max, "--code-max")
APPLY(memory, MEMORY, sandbox_memory, "--memory")

static int apply_sanitise(void *self, const char *value, struct sg_error *e)
{
    struct tenant_options *o = self;

    o->sanitises = true;
    o->sanitise = 0;
    return strcmp(value, "default") == 0 ? 0 : manage_sanitise(value, &o->sanitise, e);
}

static int apply_always(void *self, const char *value, struct sg_error *e)
{
    (void)value, (void)e;
    ((struct tenant_options *)self)->always = true;
    return 0;
}

static const struct cli_option list_options[] = {ACTION_STATE, ACTION_JSON, ACTION_HELP};
static const struct cli_option set_options[] = {
    {"max-sandboxes", 0, "N", "sandboxes that it may run at a time", apply_sandboxes},
    {"max-paused", 0, "N", "sandboxes that it may have paused", apply_paused},
    {"max-paused-memory", 0, "SIZE", "and the memory that these may hold", apply_paused_memory},
    {"max-contexts", 0, "N", "of these, sandboxes of contexts", apply_contexts},
    {"max-conversation-contexts", 0, "N", "and of one conversation", apply_conversation},
    {"execution-timeout", 0, "TIME", "time of a tool's code that names none", apply_timeout},
    {"execution-timeout-max", 0, "TIME", "and the longest that it can name", apply_timeout_max},
    {"code-max", 0, "SIZE", "code that a tool takes", apply_code},
    {"memory", 0, "SIZE", "memory of a sandbox", apply_memory},
    {"sanitise", 0, "MODE", "what is said is sanitised: enforce, report-only or off",
     apply_sanitise},
    {"sanitise-always", 0, NULL, "with --sanitise: its keys and calls may not say off",
     apply_always},
    ACTION_STATE,
    ACTION_HELP,
};

const struct cli_syntax tenant_list_syntax = {list_options, ARRAY_SIZE(list_options), NULL};
const struct cli_syntax tenant_set_syntax = {set_options, ARRAY_SIZE(set_options),
                                             action_apply_which};

/* ---- list ------------------------------------------------------------------------------------ */

static void json_limit(struct json *j, const char *key, uint64_t value)
{
    jw_key(j, key);
    if (value)
        jw_u64(j, value);
    else
        jw_string(j, NULL);
}

static void json_tenant(struct json *j, const struct store_tenant *t)
{
    jw_object_begin(j);
    jw_key(j, "id");
    jw_string(j, t->id);
    jw_key(j, "name");
    jw_string(j, t->name);
    json_limit(j, "max_sandboxes", t->max_sandboxes);
    json_limit(j, "max_paused", t->max_paused);
    json_limit(j, "max_paused_memory", t->max_paused_memory);
    json_limit(j, "max_contexts", t->max_contexts);
    json_limit(j, "max_conversation_contexts", t->max_conversation_contexts);
    json_limit(j, "execution_timeout_ms", t->execution_timeout_ms);
    json_limit(j, "execution_timeout_max_ms", t->execution_timeout_max_ms);
    json_limit(j, "code_max", t->code_max);
    json_limit(j, "memory", t->memory);
    jw_key(j, "sanitise");
    jw_string(j, manage_sanitise_name(t->sanitise));
    jw_key(j, "sanitise_always");
    jw_bool(j, t->sanitise_always);
    jw_object_end(j);
}

static void print_number(uint64_t n, int width)
{
    char text[24] = "";

    if (n)
        snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    manage_print_cell(text, width);
}

static void print_time(uint64_t ms, int width)
{
    char text[32] = "";

    manage_print_cell(ms ? format_duration_us(ms * 1000, text, sizeof(text)) : text, width);
}

static void print_size(uint64_t bytes, int width)
{
    char text[32] = "";

    manage_print_cell(bytes ? format_size(bytes, text, sizeof(text)) : text, width);
}

struct listing {
    struct json *j; /* NULL: a table */
    bool any;
};

static bool list_one(const struct store_tenant *t, void *arg)
{
    struct listing *l = arg;

    if (l->j) {
        json_tenant(l->j, t);
        return true;
    }
    if (!l->any)
        printf("%-16s  %-20s  %-9s  %-6s  %-9s  %-8s  %-12s  %-9s  %-9s  %-9s  %-9s  %s\n", "NAME",
               "ID", "SANDBOXES", "PAUSED", "THEIR MEM", "CONTEXTS", "CONVERSATION", "EXECUTION",
               "LONGEST", "CODE", "MEMORY", "SANITISE");
    l->any = true;
    manage_print_cell(t->name, 16);
    manage_print_cell(t->id, ID_LEN);
    print_number(t->max_sandboxes, 9);
    print_number(t->max_paused, 6);
    print_size(t->max_paused_memory, 9);
    print_number(t->max_contexts, 8);
    print_number(t->max_conversation_contexts, 12);
    print_time(t->execution_timeout_ms, 9);
    print_time(t->execution_timeout_max_ms, 9);
    print_size(t->code_max, 9);
    print_size(t->memory, 9);
    const char *mode = manage_sanitise_name(t->sanitise);
    manage_print_cell(mode ? mode : "", t->sanitise_always ? 11 : 0);
    puts(t->sanitise_always ? "always" : "");
    return true;
}

static int tenant_list(struct store *s, const void *options, struct sg_error *e)
{
    const struct tenant_options *o = options;
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;
    struct listing l = {.j = o->base.json ? &j : NULL};

    strbuf_init(&out, LIST_MAX);
    jw_init(&j, &out);
    jw_array_begin(&j);
    int r = store_tenants_each(s, list_one, &l, e);
    jw_array_end(&j);
    if (r < 0)
        return r;
    if (out.truncated)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "too many tenants to list as JSON");
    if (o->base.json)
        puts(out.buf);
    else if (!l.any)
        ui_note("there are no tenants: 'sandglass key create --tenant NAME' makes one");
    return 0;
}

/* ---- set ------------------------------------------------------------------------------------- */

static int tenant_set(struct store *s, const void *options, struct sg_error *e)
{
    static const uint64_t normal = 0;
    const struct tenant_options *o = options;
    const struct settings *own = &o->own;
    const uint64_t values[LIMIT_MAX_] = {
        [MAX_SANDBOXES] = own->tenant_sandboxes,
        [MAX_PAUSED] = own->tenant_paused,
        [MAX_PAUSED_MEMORY] = own->tenant_paused_memory,
        [MAX_CONTEXTS] = own->tenant_contexts,
        [MAX_CONVERSATION_CONTEXTS] = own->conversation_contexts,
        [EXECUTION_TIMEOUT] = own->execution_timeout_ms,
        [EXECUTION_TIMEOUT_MAX] = own->execution_timeout_max_ms,
        [CODE_MAX] = own->code_max,
        [MEMORY] = own->sandbox_memory,
    };
    const uint64_t *change[LIMIT_MAX_] = {NULL};
    bool any = false;

    for (size_t i = 0; i < LIMIT_MAX_; i++) {
        if (o->change[i] != LEFT)
            change[i] = o->change[i] == OWN ? &values[i] : &normal;
        any = any || change[i];
    }
    if (o->always && !o->sanitises)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "--sanitise-always goes with --sanitise MODE: name both");
    if (!any && !o->sanitises)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "nothing to set: name a limit, such as --max-contexts 20");
    if (o->sanitises) {
        int r = store_tenant_sanitise(s, o->base.which, o->sanitise, o->always, e);
        if (r < 0 || !any)
            return r;
    }
    const struct store_limits limits = {
        .max_sandboxes = change[MAX_SANDBOXES],
        .max_paused = change[MAX_PAUSED],
        .max_paused_memory = change[MAX_PAUSED_MEMORY],
        .max_contexts = change[MAX_CONTEXTS],
        .max_conversation_contexts = change[MAX_CONVERSATION_CONTEXTS],
        .execution_timeout_ms = change[EXECUTION_TIMEOUT],
        .execution_timeout_max_ms = change[EXECUTION_TIMEOUT_MAX],
        .code_max = change[CODE_MAX],
        .memory = change[MEMORY],
    };
    return store_tenant_limit(s, o->base.which, &limits, e);
}

static const struct manage_action actions[] = {
    {{"list", "", "Lists the tenants and their limits; '-' is the server's setting.",
      &tenant_list_syntax, NULL},
     tenant_list},
    {{"set", " NAME", "Changes limits of a tenant. 'default' is the server's setting.",
      &tenant_set_syntax, "which tenant? give its name"},
     tenant_set},
};

int tenant_main(int argc, char **argv)
{
    static const struct manage_verb verb = {
        .name = "tenant",
        .summary =
            "Manages the tenants of 'sandglass serve': whom keys belong to, and their limits.",
        .actions = actions,
        .n_actions = ARRAY_SIZE(actions),
        .options_size = sizeof(struct tenant_options),
    };

    return manage_main(&verb, argc, argv);
}
