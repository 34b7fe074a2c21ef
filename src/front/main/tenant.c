#include "front/main/tenant.h"

#include <string.h>

#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "lib/command/ui.h"
#include "lib/settings/settings.h"
#include "front/main/manage.h"

#define LIST_MAX (16u * 1024 * 1024)

/* The limits of a tenant, in the order of the help and of the list:
 * X(name in the store and in JSON, setting, its field, option, argument, help, printer, title,
 * width) */
#define LIMITS(X)                                                                                  \
    X(max_sandboxes, tenant_sandboxes, tenant_sandboxes, "max-sandboxes", "N",                     \
      "sandboxes that the tenant may run at a time", print_number, "SANDBOXES", 9)                 \
    X(max_paused, tenant_paused, tenant_paused, "max-paused", "N",                                 \
      "sandboxes that the tenant may have paused", print_number, "PAUSED", 6)                      \
    X(max_paused_memory, tenant_paused_memory, tenant_paused_memory, "max-paused-memory", "SIZE",  \
      "memory that paused sandboxes may hold", print_size, "THEIR MEM", 9)                         \
    X(max_contexts, tenant_contexts, tenant_contexts, "max-contexts", "N",                         \
      "sandboxes of contexts at a time", print_number, "CONTEXTS", 8)                              \
    X(max_conversation_contexts, conversation_contexts, conversation_contexts,                     \
      "max-conversation-contexts", "N", "sandboxes of one conversation at a time", print_number,   \
      "CONVERSATION", 12)                                                                          \
    X(execution_timeout_ms, execution_timeout, execution_timeout_ms, "execution-timeout", "TIME",  \
      "timeout of a tool call that names none", print_time, "EXECUTION", 9)                        \
    X(execution_timeout_max_ms, execution_timeout_max, execution_timeout_max_ms,                   \
      "execution-timeout-max", "TIME", "longest timeout of a tool call", print_time, "LONGEST", 9) \
    X(code_max, code_max, code_max, "code-max", "SIZE", "longest code of a tool call", print_size, \
      "CODE", 9)                                                                                   \
    X(memory, sandbox_memory, sandbox_memory, "memory", "SIZE", "memory of a sandbox", print_size, \
      "MEMORY", 9)

#define LIMIT_ENUM(name, ...) LIMIT_##name,
enum limit { LIMITS(LIMIT_ENUM) LIMIT_MAX_ };

struct tenant_options {
    struct action_options base;
    enum { LEFT, NORMAL, OWN } change[LIMIT_MAX_]; /* as it is, the server's, one of its own */
    struct settings own;
    bool sanitises, always; /* whether --sanitise and --sanitise-always were given */
    uint8_t sanitise;       /* as the store keeps it */
};

/* ---- options --------------------------------------------------------------------------------- */

static const struct cli_option set_options[LIMIT_MAX_ + 4];

/* Reads a limit in the same way, and with the same bounds, as the setting that it replaces. */
static int apply_limit(void *self, const struct cli_option *option, const char *value,
                       struct sg_error *e)
{
#define LIMIT_SETTING(name, setting, ...) SETTING_##setting,
    static const enum setting settings[] = {LIMITS(LIMIT_SETTING)};
    struct tenant_options *o = self;
    bool normal = strcmp(value, "default") == 0 || strcmp(value, "0") == 0;
    size_t which = (size_t)(option - set_options);
    char what[40];

    o->change[which] = normal ? NORMAL : OWN;
    snprintf(what, sizeof(what), "--%s", option->name);
    return normal ? 0 : settings_set(&o->own, settings[which], what, value, e);
}

static int apply_sanitise(void *self, const struct cli_option *option UNUSED, const char *value,
                          struct sg_error *e)
{
    struct tenant_options *o = self;

    o->sanitises = true;
    o->sanitise = 0;
    return strcmp(value, "default") == 0 ? 0 : manage_sanitise(value, &o->sanitise, e);
}

static const struct cli_option list_options[] = {ACTION_STATE, ACTION_JSON, ACTION_HELP};
#define LIMIT_OPTION(name, setting, field, option, argument, help, ...) \
    {option, 0, argument, help, .apply = apply_limit},
static const struct cli_option set_options[LIMIT_MAX_ + 4] = {
    LIMITS(LIMIT_OPTION) /* the first rows: their numbers are enum limit */
    {"sanitise", 0, "MODE", "sanitise output: enforce, report-only or off",
     .apply = apply_sanitise},
    {"sanitise-always", 0, NULL, "with --sanitise: keys and calls may not switch it off",
     CLI_FLAG(tenant_options, always)},
    ACTION_STATE,
    ACTION_HELP,
};

const struct cli_syntax tenant_list_syntax = {list_options, ARRAY_SIZE(list_options), NULL, 0};
const struct cli_syntax tenant_set_syntax = {set_options, ARRAY_SIZE(set_options),
                                             action_apply_which, 0};

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
    jw_string(jw_key(j, "id"), t->id);
    jw_string(jw_key(j, "name"), t->name);
#define LIMIT_JSON(name, ...) json_limit(j, #name, t->name);
    LIMITS(LIMIT_JSON)
    jw_string(jw_key(j, "sanitise"), manage_sanitise_name(t->sanitise));
    jw_bool(jw_key(j, "sanitise_always"), t->sanitise_always);
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
#define LIMIT_TITLE(name, setting, field, option, argument, help, print, title, width) \
    printf("%-*s  ", width, title);
#define LIMIT_PRINT(name, setting, field, option, argument, help, print, title, width) \
    print(t->name, width);
    if (!l->any) {
        printf("%-16s  %-20s  ", "NAME", "ID");
        LIMITS(LIMIT_TITLE)
        puts("SANITISE");
    }
    l->any = true;
    manage_print_cell(t->name, 16);
    manage_print_cell(t->id, ID_LEN);
    LIMITS(LIMIT_PRINT)
    const char *mode = manage_sanitise_name(t->sanitise);
    manage_print_cell(mode ? mode : "", t->sanitise_always ? 11 : 0);
    puts(t->sanitise_always ? "always" : "");
    return true;
}

static int tenant_list(struct store *s, const void *options, struct sg_error *e)
{
    const struct tenant_options *o = options;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(LIST_MAX);
    struct json j = {.out = &out};
    struct listing l = {.j = o->base.json ? &j : NULL};

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
#define LIMIT_VALUE(name, setting, field, ...) own->field,
    const uint64_t values[] = {LIMITS(LIMIT_VALUE)};
    const uint64_t *change[LIMIT_MAX_] = {NULL};
    bool any = false;

    for (size_t i = 0; i < LIMIT_MAX_; i++) {
        if (o->change[i] != LEFT)
            change[i] = o->change[i] == OWN ? &values[i] : &normal;
        any = any || change[i];
    }
    if (o->always && !o->sanitises)
        return err_invalid(e, "--sanitise-always goes with --sanitise MODE: name both");
    if (!any && !o->sanitises)
        return err_invalid(e, "nothing to set: name a limit, such as --max-contexts 20");
    if (o->sanitises) {
        int r = store_tenant_sanitise(s, o->base.which, o->sanitise, o->always, e);
        if (r < 0 || !any)
            return r;
    }
#define LIMIT_CHANGE(name, ...) .name = change[LIMIT_##name],
    const struct store_limits limits = {LIMITS(LIMIT_CHANGE)};
    return store_tenant_limit(s, o->base.which, &limits, e);
}

static const struct manage_action actions[] = {
    {{"list", "", "Lists the tenants and their limits; '-' is the server's setting.",
      &tenant_list_syntax, NULL},
     tenant_list},
    {{"set", " NAME", "Changes limits of a tenant. 'default' is the server's setting.",
      &tenant_set_syntax, "no tenant given: name one"},
     tenant_set},
};

int tenant_main(int argc, char **argv)
{
    static const struct manage_verb verb = {
        .name = "tenant",
        .summary = "Manages the tenants of 'sandglass serve', which own keys and have limits.",
        .actions = actions,
        .n_actions = ARRAY_SIZE(actions),
        .options_size = sizeof(struct tenant_options),
    };

    return manage_main(&verb, argc, argv);
}
