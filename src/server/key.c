#include "server/key.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/suggest.h"
#include "cli/ui.h"
#include "order/settings.h"
#include "store/store.h"

#define CONFIG_FILE    "/etc/sandglass.conf"
#define DEFAULT_TENANT "default" /* the one that a server makes when it first starts */
#define LIST_MAX       (16u * 1024 * 1024)
#define TIME_LEN       20

struct key_options {
    const char *state, *tenant, *name, *which;
    bool json, help;
};

/* ---- options --------------------------------------------------------------------------------- */

static int apply_state(void *self, const char *value, struct sg_error *e)
{
    (void)e;
    ((struct key_options *)self)->state = value;
    return 0;
}

static int apply_tenant(void *self, const char *value, struct sg_error *e)
{
    (void)e;
    ((struct key_options *)self)->tenant = value;
    return 0;
}

static int apply_name(void *self, const char *value, struct sg_error *e)
{
    (void)e;
    ((struct key_options *)self)->name = value;
    return 0;
}

static int apply_json(void *self, const char *value, struct sg_error *e)
{
    (void)value, (void)e;
    ((struct key_options *)self)->json = true;
    return 0;
}

static int apply_help(void *self, const char *value, struct sg_error *e)
{
    (void)value, (void)e;
    ((struct key_options *)self)->help = true;
    return 0;
}

static int apply_which(void *self, const char *arg, struct sg_error *e)
{
    struct key_options *o = self;

    if (o->which)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "revoke takes one key at a time");
    o->which = arg;
    return 0;
}

#define OPTION_STATE                                                   \
    {                                                                  \
        "state", 0, "DIR", "the server's state directory", apply_state \
    }
#define OPTION_HELP                                     \
    {                                                   \
        "help", 'h', NULL, "show this text", apply_help \
    }
#define OPTION_JSON                               \
    {                                             \
        "json", 0, NULL, "print JSON", apply_json \
    }

static const struct cli_option create_options[] = {
    {"tenant", 0, "NAME", "whose key it is; made if it is new", apply_tenant},
    {"name", 0, "NAME", "what the key is for, shown in the list", apply_name},
    OPTION_STATE,
    OPTION_JSON,
    OPTION_HELP,
};
static const struct cli_option list_options[] = {
    {"tenant", 0, "NAME", "the keys of this tenant only", apply_tenant},
    OPTION_STATE,
    OPTION_JSON,
    OPTION_HELP,
};
static const struct cli_option revoke_options[] = {OPTION_STATE, OPTION_HELP};

const struct cli_syntax key_create_syntax = {create_options, ARRAY_SIZE(create_options), NULL};
const struct cli_syntax key_list_syntax = {list_options, ARRAY_SIZE(list_options), NULL};
const struct cli_syntax key_revoke_syntax = {revoke_options, ARRAY_SIZE(revoke_options),
                                             apply_which};

/* ---- the store ------------------------------------------------------------------------------- */

/* Where `sandglass serve` would look: the flag, the environment, the configuration file. */
static int state_dir(const char *flag, char ret[SETTINGS_PATH_MAX], struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    struct settings s;
    size_t len;
    int r;

    settings_init(&s);
    r = file_read(AT_FDCWD, CONFIG_FILE, SETTINGS_TEXT_MAX, &text, &len);
    if (r == 0)
        r = settings_parse_text(&s, CONFIG_FILE, text, e);
    else if (r == -ENOENT)
        r = 0;
    else
        r = err_set(e, err_kind_of(-r), r, "cannot read '" CONFIG_FILE "': %s", strerror(-r));
    if (r == 0)
        r = settings_parse_env(&s, e);
    if (r == 0 && flag) {
        AUTO(free_p) char *absolute = realpath(flag, NULL);
        r = settings_set(&s, SETTING_state, "--state", absolute ? absolute : flag, e);
    }
    if (r == 0)
        memcpy(ret, s.state, sizeof(s.state));
    return r;
}

/* Enters the directory. The files belong to the front's user. Becoming it, and not giving new files
 * away afterwards, leaves nothing for that user to redirect. */
static int become_owner(const char *dir, struct sg_error *e)
{
    AUTO(close_p) int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "there is no server in '%s': start one with 'sandglass serve', or name its "
                       "directory with --state",
                       dir);
    /* That user may not be able to go there, if what is above belongs to root alone. */
    if (fd < 0 || fstat(fd, &st) < 0 || fchdir(fd) < 0)
        return err_errno(e, "open '%s'", dir);
    if (geteuid() == st.st_uid)
        return 0;
    if (geteuid() != 0)
        return err_set(e, SG_ERR_DENIED, -EACCES, "the keys in '%s' are root's to manage: use sudo",
                       dir);
    if (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
        setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
        return err_errno(e, "become user %u, who owns '%s'", st.st_uid, dir);
    return 0;
}

static int open_store(const struct key_options *o, struct store **ret, struct sg_error *e)
{
    char state[SETTINGS_PATH_MAX], dir[SETTINGS_PATH_MAX + 8];
    int r = state_dir(o->state, state, e);

    if (r < 0)
        return r;
    snprintf(dir, sizeof(dir), "%s/front", state);
    r = become_owner(dir, e);
    if (r < 0)
        return r;
    r = store_open(".", ret, e);
    return r < 0 ? err_wrap(e, r, "in '%s'", dir) : 0;
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* "2026-11-15T12:00:00Z"; "" if it never was. */
static void format_time(int64_t ms, char ret[TIME_LEN + 1])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    ret[0] = '\0';
    if (ms > 0 && gmtime_r(&seconds, &tm))
        strftime(ret, TIME_LEN + 1, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void json_time(struct json *j, const char *key, int64_t ms)
{
    char text[TIME_LEN + 1];

    format_time(ms, text);
    jw_key(j, key);
    jw_string(j, text[0] ? text : NULL);
}

static void json_pair(struct json *j, const char *key, const char *value)
{
    jw_key(j, key);
    jw_string(j, value);
}

/* secret: the key itself, or NULL. */
static void json_one(struct json *j, const struct store_key *k, const char *secret)
{
    jw_object_begin(j);
    json_pair(j, "id", k->id);
    json_pair(j, "tenant", k->tenant_name);
    json_pair(j, "name", k->name);
    json_pair(j, secret ? "key" : "hint", secret ? secret : k->hint);
    json_time(j, "created", k->created_ms);
    if (!secret) {
        json_time(j, "last_used", k->used_ms);
        json_time(j, "revoked", k->revoked_ms);
    }
    jw_object_end(j);
}

/* Names are anybody's text: nothing in them may drive the terminal. */
static void print_cell(const char *text, int width)
{
    char clean[STORE_NAME_MAX + 1];
    size_t n = 0;

    for (; text[n] && n < STORE_NAME_MAX; n++)
        clean[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
    clean[n] = '\0';
    printf("%-*s  ", width, clean[0] ? clean : "-");
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
    print_cell(k->id, ID_LEN);
    print_cell(k->tenant_name, 16);
    print_cell(k->name, 16);
    print_cell(k->hint, 15);
    print_time(k->created_ms);
    print_time(k->used_ms);
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
        printf("%-20s  %-16s  %-16s  %-15s  %-16s  %-16s  %s\n", "ID", "TENANT", "NAME", "KEY",
               "CREATED (UTC)", "LAST USED (UTC)", "STATE");
    l->any = true;
    print_row(k);
    return true;
}

/* ---- the three ------------------------------------------------------------------------------- */

static int key_create(struct store *s, const struct key_options *o, struct sg_error *e)
{
    struct store_tenant tenant;
    char key[STORE_KEY_LEN + 1];
    struct store_key info;
    int r = store_tenant_ensure(s, o->tenant ? o->tenant : DEFAULT_TENANT, &tenant, e);

    if (r == 0)
        r = store_key_create(s, tenant.id, o->name ? o->name : "", key, &info, e);
    if (r < 0)
        return r;
    if (o->json) {
        AUTO(strbuf_done) struct strbuf out = {0};
        struct json j;

        strbuf_init(&out, 4096);
        jw_init(&j, &out);
        json_one(&j, &info, key);
        puts(out.buf);
    } else {
        puts(key);
    }
    explicit_bzero(key, sizeof(key));
    return 0;
}

static int key_list(struct store *s, const struct key_options *o, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;
    struct listing l = {.tenant = o->tenant, .j = o->json ? &j : NULL};

    strbuf_init(&out, LIST_MAX);
    jw_init(&j, &out);
    jw_array_begin(&j);
    int r = store_keys_each(s, NULL, list_one, &l, e);
    jw_array_end(&j);
    if (r < 0)
        return r;
    if (out.truncated)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "too many keys to list: choose some with --tenant");
    if (o->json)
        puts(out.buf);
    else if (!l.any)
        ui_note("there are no keys%s", o->tenant ? " of this tenant" : "");
    return 0;
}

static int key_revoke(struct store *s, const struct key_options *o, struct sg_error *e)
{
    return store_key_revoke(s, o->which, e);
}

static const struct action {
    const char *name, *arguments, *summary;
    const struct cli_syntax *syntax;
    int (*run)(struct store *s, const struct key_options *o, struct sg_error *e);
} actions[] = {
    {"create", "", "Makes a key and prints it. It is shown only this once.", &key_create_syntax,
     key_create},
    {"list", "", "Lists the keys of all tenants.", &key_list_syntax, key_list},
    {"revoke", " ID|KEY", "Makes a key useless, at once.", &key_revoke_syntax, key_revoke},
};

static void print_help(void)
{
    printf("Usage: sandglass key create|list|revoke [OPTION]...\n\n"
           "Manages the API keys of 'sandglass serve'.\n");
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
        printf("\nsandglass key %s [OPTION]...%s\n%s\n", actions[i].name, actions[i].arguments,
               actions[i].summary);
        cli_print_options(stdout, actions[i].syntax);
    }
}

static int run_action(const struct action *a, int argc, char **argv)
{
    struct key_options o = {0};
    struct store *s = NULL;
    struct sg_error e;
    char **rest;

    if (cli_parse(a->syntax, argc, argv, &o, &rest, &e) < 0)
        return ui_usage("key", e.message);
    if (o.help) {
        print_help();
        return 0;
    }
    if (!o.which && a->syntax->positional && rest)
        o.which = rest[0];
    if (!o.which && a->syntax->positional)
        return ui_usage("key", "which key? give its id or the key itself");
    int r = open_store(&o, &s, &e);
    if (r == 0)
        r = a->run(s, &o, &e);
    store_close(s);
    if (r < 0)
        ui_error("%s", e.message);
    return r < 0;
}

static int unknown_action(const char *name)
{
    const char *names[ARRAY_SIZE(actions)];
    char message[160];

    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        names[i] = actions[i].name;
    const char *near = suggest_nearest(name, names, ARRAY_SIZE(names));
    snprintf(message, sizeof(message), "'%.64s' is none of create, list, revoke%s%s%s", name,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return ui_usage("key", message);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return ui_usage("key", "what to do? create, list or revoke");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i].name, argv[1]) == 0)
            return run_action(&actions[i], argc - 1, argv + 1);
    return unknown_action(argv[1]);
}

int key_main(int argc, char **argv)
{
    int status = dispatch(argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        ui_error("cannot write to standard output: %s", strerror(errno));
        return status ? status : 1;
    }
    return status;
}
