#include "front/main/key.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "lib/command/ui.h"
#include "front/main/manage.h"

#define DEFAULT_TENANT "default" /* the one that a server makes when it first starts */
#define LIST_MAX       (16u * 1024 * 1024)
#define TIME_LEN       20

struct key_options {
    struct action_options base;
    const char *tenant, *name;
    uint8_t sanitise; /* as the store keeps it */
    bool admin;
};

/* ---- options --------------------------------------------------------------------------------- */

static int apply_sanitise(void *self, const struct cli_option *option UNUSED, const char *value,
                          struct sg_error *e)
{
    return manage_sanitise(value, &((struct key_options *)self)->sanitise, e);
}

static const struct cli_option create_options[] = {
    {"tenant", 0, "NAME", "tenant of the key; made if it is new", CLI_TEXT(key_options, tenant)},
    {"name", 0, "NAME", "what the key is for, shown in the list", CLI_TEXT(key_options, name)},
    {"sanitise", 0, "MODE", "sanitise output: enforce, report-only or off",
     .apply = apply_sanitise},
    {"admin", 0, NULL, "make an operator's token, for E2B's routes for administration",
     CLI_FLAG(key_options, admin)},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};
static const struct cli_option list_options[] = {
    {"tenant", 0, "NAME", "the keys of this tenant only", CLI_TEXT(key_options, tenant)},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};
static const struct cli_option revoke_options[] = {ACTION_STATE, ACTION_HELP};

const struct cli_syntax key_create_syntax = {create_options, ARRAY_SIZE(create_options), NULL, 0};
const struct cli_syntax key_list_syntax = {list_options, ARRAY_SIZE(list_options), NULL, 0};
const struct cli_syntax key_revoke_syntax = {revoke_options, ARRAY_SIZE(revoke_options),
                                             action_apply_which, 0};

/* ---- what is printed ------------------------------------------------------------------------- */

/* "2026-11-15T12:00:00Z"; "" for 0, which means never. */
static void format_time(int64_t ms, char ret[TIME_LEN + 1])
{
    char text[CLOCK_TEXT_LEN] = "";

    if (ms > 0)
        clock_text(ms, text);
    snprintf(ret, TIME_LEN + 1, "%.19s%s", text, ms > 0 ? "Z" : "");
}

static void json_time(struct json *j, const char *key, int64_t ms)
{
    char text[TIME_LEN + 1];

    format_time(ms, text);
    jw_string(jw_key(j, key), text[0] ? text : NULL);
}

static const char *kind_name(enum store_token kind)
{
    static const char *const names[] = {
        [STORE_KEY] = "key", [STORE_ADMIN] = "admin", [STORE_ACCESS] = "access"};
    _Static_assert(ARRAY_SIZE(names) == STORE_TOKEN_MAX_, "every kind has a name");

    return names[kind];
}

/* secret: the key itself, or NULL. */
static void json_one(struct json *j, const struct store_key *k, const char *secret)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "id"), k->id);
    jw_string(jw_key(j, "kind"), kind_name(k->kind));
    jw_string(jw_key(j, "tenant"), k->tenant_name[0] ? k->tenant_name : NULL);
    jw_string(jw_key(j, "name"), k->name);
    jw_string(jw_key(j, secret ? "key" : "hint"), secret ? secret : k->hint);
    jw_string(jw_key(j, "sanitise"), manage_sanitise_name(k->sanitise));
    json_time(j, "created", k->created_ms);
    if (!secret) {
        json_time(j, "last_used", k->used_ms);
        json_time(j, "revoked", k->revoked_ms);
    }
    jw_object_end(j);
}

/* To the minute: "2026-11-15 12:00". */
static void print_time(int64_t ms)
{
    char text[TIME_LEN + 1];

    format_time(ms, text);
    printf("%-10.10s %-5.5s  ", text[0] ? text : "never", text[0] ? text + 11 : "");
}

static void print_row(const struct store_key *k)
{
    manage_print_cell(k->id, ID_LEN);
    manage_print_cell(k->tenant_name, 16);
    manage_print_cell(k->name, 16);
    manage_print_cell(k->hint, 21);
    print_time(k->created_ms);
    print_time(k->used_ms);
    manage_print_cell(kind_name(k->kind), 6);
    printf("%s\n", k->revoked_ms ? "revoked" : "active");
}

struct listing {
    const char *tenant; /* NULL: all */
    struct json *j;     /* NULL: a table */
    bool any;
};

static bool list_one(const struct store_key *k, void *arg)
{
    struct listing *l = arg;

    if (l->tenant && strcmp(k->tenant_name, l->tenant) != 0)
        return true;
    if (l->j) {
        json_one(l->j, k, NULL);
        return true;
    }
    if (!l->any)
        printf("%-20s  %-16s  %-16s  %-21s  %-16s  %-16s  %-6s  %s\n", "ID", "TENANT", "NAME",
               "KEY", "CREATED (UTC)", "LAST USED (UTC)", "KIND", "STATE");
    l->any = true;
    print_row(k);
    return true;
}

/* ---- the three ------------------------------------------------------------------------------- */

static int key_create(struct store *s, const void *options, struct sg_error *e)
{
    const struct key_options *o = options;
    struct store_tenant tenant = {.id = ""};
    char key[STORE_TOKEN_MAX + 1];
    struct store_key info;
    int r = 0;

    if (o->admin && (o->tenant || o->sanitise))
        return err_invalid(e, "--admin: an operator's token has no tenant and runs no code, so "
                              "leave out --tenant and --sanitise");
    if (!o->admin)
        r = store_tenant_ensure(s, o->tenant ? o->tenant : DEFAULT_TENANT, &tenant, e);
    if (r == 0)
        r = store_token_create(s, o->admin ? STORE_ADMIN : STORE_KEY, tenant.id,
                               o->name ? o->name : "", key, &info, e);
    if (r == 0 && o->sanitise)
        r = store_key_sanitise(s, info.id, o->sanitise, e);
    if (r < 0)
        return r;
    info.sanitise = o->sanitise;
    if (o->base.json) {
        AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);
        struct json j = {.out = &out};

        json_one(&j, &info, key);
        puts(out.buf);
    } else {
        puts(key);
    }
    explicit_bzero(key, sizeof(key));
    return 0;
}

static int key_list(struct store *s, const void *options, struct sg_error *e)
{
    const struct key_options *o = options;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(LIST_MAX);
    struct json j = {.out = &out};
    struct listing l = {.tenant = o->tenant, .j = o->base.json ? &j : NULL};

    jw_array_begin(&j);
    int r = store_keys_each(s, NULL, list_one, &l, e);
    jw_array_end(&j);
    if (r < 0)
        return r;
    if (out.truncated)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "too many keys to list: choose some with --tenant");
    if (o->base.json)
        puts(out.buf);
    else if (!l.any)
        ui_note("there are no keys%s", o->tenant ? " of this tenant" : "");
    return 0;
}

static int key_revoke(struct store *s, const void *options, struct sg_error *e)
{
    const struct key_options *o = options;
    return store_key_revoke(s, o->base.which, e);
}

static const struct manage_action actions[] = {
    {{"create", "", "Makes a key and prints it. It is shown only this once.", &key_create_syntax,
      NULL},
     key_create},
    {{"list", "", "Lists the keys of all tenants, and operators' tokens.", &key_list_syntax, NULL},
     key_list},
    {{"revoke", " ID|KEY", "Revokes a key, at once.", &key_revoke_syntax,
      "no key given: name its id, or the key itself"},
     key_revoke},
};

int key_main(int argc, char **argv)
{
    static const struct manage_verb verb = {
        .name = "key",
        .summary = "Manages the API keys of 'sandglass serve'.",
        .actions = actions,
        .n_actions = ARRAY_SIZE(actions),
        .options_size = sizeof(struct key_options),
    };

    return manage_main(&verb, argc, argv);
}
