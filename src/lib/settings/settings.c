#include "lib/settings/settings.h"

#include <assert.h>
#include <inttypes.h>

#include "lib/text/parse.h"
#include "lib/settings/address.h"

#define ENGINE_MAX      16384u
#define CHECKPOINTS_MAX 1024u /* of a sandbox */

enum kind {
    TEXT,
    PATH,
    SECRET,
    URL,
    LISTEN,
    MODULES,
    YES_NO,
    SIZE,
    AUTO_SIZE,
    MILLI,
    COUNT,
    TIME,
    CHOICE
};

struct row {
    struct setting_info info;
    enum kind kind;
    size_t offset, size;
    uint64_t min, max;   /* SIZE, AUTO_SIZE, MILLI, COUNT, TIME */
    const char *choices; /* CHOICE: words with | between */
};

#define MIB    (1024ull * 1024)
#define TIB    (1024ull * 1024 * MIB)
#define DAY_MS 86400000ull
#define FIXED  true
#define LIVE   false

#define AT(field)                        offsetof(struct settings, field), sizeof(((struct settings *)0)->field)
#define BOUNDS_TEXT(key, low, high)      AT(key), low, high, NULL
#define BOUNDS_PATH(key, low, high)      AT(key), low, high, NULL
#define BOUNDS_URL(key, low, high)       AT(key), low, high, NULL
#define BOUNDS_LISTEN(key, low, high)    AT(key), low, high, NULL
#define BOUNDS_MODULES(key, low, high)   AT(key), low, high, NULL
#define BOUNDS_SECRET(key, low, high)    AT(key), low, high, NULL
#define BOUNDS_YES_NO(key, low, high)    AT(key), low, high, NULL
#define BOUNDS_SIZE(key, low, high)      AT(key), low, high, NULL
#define BOUNDS_AUTO_SIZE(key, low, high) AT(key), low, high, NULL
#define BOUNDS_TIME(key, low, high)      AT(key##_ms), low, high, NULL
#define BOUNDS_COUNT(key, low, high)     AT(key), low, high, NULL
#define BOUNDS_MILLI(key, low, high)     AT(key##_milli), low, high, NULL
#define BOUNDS_CHOICE(key, low, high)    AT(key), 0, 0, high

static const struct row rows[] = {
#define SETTING(kind, key, when, low, high, argument, normal, help) \
    {{#key, argument, normal, help, when}, kind, BOUNDS_##kind(key, low, high)},
#include "lib/settings/settings_table.h"
#undef SETTING
};

const struct setting_info *setting_info(enum setting k)
{
    return &rows[k].info;
}

void setting_env(enum setting k, char ret[SETTINGS_ENV_MAX])
{
    snprintf(ret, SETTINGS_ENV_MAX, "SANDGLASS_%s", rows[k].info.key);
    for (char *p = ret; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
}

void setting_flag(enum setting k, char ret[SETTINGS_ENV_MAX])
{
    snprintf(ret, SETTINGS_ENV_MAX, "%s", rows[k].info.key);
    for (char *p = ret; *p; p++)
        if (*p == '_')
            *p = '-';
}

static void put_number(void *at, size_t size, uint64_t v)
{
    uint32_t small = (uint32_t)v;

    if (size == sizeof(small))
        memcpy(at, &small, size);
    else
        memcpy(at, &v, size);
}

static uint64_t get_number(const void *at, size_t size)
{
    uint32_t small;
    uint64_t v;

    if (size == sizeof(small))
        return memcpy(&small, at, size), small;
    return memcpy(&v, at, size), v;
}

/* A text must survive a line of the file form: settings_parse_text must read back what
 * settings_print wrote. */
static int set_text(const struct row *row, char *at, const char *what, const char *value,
                    struct sg_error *e)
{
    size_t n = strlen(value);

    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_invalid(e, "%s has a control character", what);
    if (n >= row->size)
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "%s is longer than %zu bytes", what,
                       row->size - 1);
    if (row->kind == PATH && n > 0 && value[0] != '/')
        return err_invalid(e, "%s needs an absolute path, not '%.64s'", what, value);
    memcpy(at, value, n + 1);
    return 0;
}

/* The error must not repeat the value, which is secret. */
static int set_hidden(struct hidden *at, const char *what, const char *value, struct sg_error *e)
{
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_invalid(e, "%s has a control character", what);
    if (!hidden_set(at, value, strlen(value)))
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "%s is longer than %d bytes", what,
                       HIDDEN_MAX - 1);
    return 0;
}

static int set_url(const struct row *row, char *at, const char *what, const char *value,
                   struct sg_error *e)
{
    size_t scheme = strncmp(value, "http://", 7) == 0    ? 7
                    : strncmp(value, "https://", 8) == 0 ? 8
                                                         : 0;
    bool clean = scheme > 0 && value[scheme] != '\0' && value[scheme] != '/';

    for (const char *p = value; *p; p++)
        clean &= *p > 0x20 && *p < 0x7f && *p != '@' && *p != '#';
    if (value[0] && !clean)
        return err_invalid(e,
                           "%s must be a URL like https://host.example.com/path, without user, "
                           "password and fragment",
                           what);
    return set_text(row, at, what, value, e);
}

static int set_listen(const struct row *row, char *at, const char *what, const char *value,
                      struct sg_error *e)
{
    const char *cursor = value;
    struct address a;
    int r, n = 0;

    while ((r = address_next(what, &cursor, &a, e)) > 0)
        n++;
    if (r < 0)
        return r;
    if (n == 0 && row->info.normal[0])
        return err_invalid(e, "%s names no address", what);
    return set_text(row, at, what, value, e);
}

static int set_modules(const struct row *row, char *at, const char *what, const char *value,
                       struct sg_error *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,";

    if (value[0] == '\0' || value[strspn(value, allowed)] != '\0')
        return err_invalid(
            e,
            "%s '%.64s' is neither standard, science, none nor names of modules with "
            "commas between",
            what, value);
    return set_text(row, at, what, value, e);
}

static int set_yes_no(bool *at, const char *what, const char *value, struct sg_error *e)
{
    static const char *const yes[] = {"yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};

    for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
        if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
            *at = strcmp(value, yes[i]) == 0;
            return 0;
        }
    return err_invalid(e, "%s '%.64s' is neither yes nor no", what, value);
}

/* The length of the word of `choices` at p; *p moves behind it and the | that follows. */
static size_t next_choice(const char **p)
{
    size_t n = strcspn(*p, "|");

    *p += n + ((*p)[n] == '|');
    return n;
}

static int set_choice(const struct row *row, void *at, const char *what, const char *value,
                      struct sg_error *e)
{
    const char *word = row->choices, *next = word;
    char list[64] = "";

    for (uint32_t i = 0; *word; i++, word = next) {
        size_t n = strlen(list), len = next_choice(&next);
        if (strncmp(value, word, len) == 0 && value[len] == '\0') {
            put_number(at, row->size, i);
            return 0;
        }
        snprintf(list + n, sizeof(list) - n, "%s%.*s", i ? ", " : "", (int)len, word);
    }
    return err_invalid(e, "%s '%.64s' is none of %s", what, value, list);
}

static void print_choice(const struct row *row, uint64_t which, struct strbuf *out)
{
    const char *word = row->choices, *next = word;
    size_t len = next_choice(&next);

    for (; which > 0; which--) {
        word = next;
        len = next_choice(&next);
    }
    strbuf_add(out, word, len);
}

static bool is_size(const struct row *row)
{
    return row->kind == SIZE || row->kind == AUTO_SIZE;
}

/* Formats a number for people or, if exact, so that settings_parse_text reads it back. */
static void format_number(const struct row *row, uint64_t v, bool exact, char *buf, size_t cap)
{
    if (row->kind == AUTO_SIZE && v == SETTINGS_AUTO)
        snprintf(buf, cap, "auto");
    else if (row->kind == MILLI)
        snprintf(buf, cap, "%" PRIu64 ".%03u", v / 1000, (unsigned)(v % 1000));
    else if (is_size(row) && !exact)
        format_size(v, buf, cap);
    else if (row->kind == TIME && !exact)
        format_duration_us(v * 1000, buf, cap);
    else
        snprintf(buf, cap, "%" PRIu64 "%s", v, row->kind == TIME ? "ms" : "");
}

static int set_number(const struct row *row, void *at, const char *what, const char *value,
                      struct sg_error *e)
{
    char min[32], max[32];
    uint32_t milli = 0;
    uint64_t v = 0;
    int r;

    if (row->kind == AUTO_SIZE && strcmp(value, "auto") == 0) {
        put_number(at, row->size, SETTINGS_AUTO);
        return 0;
    }
    if (is_size(row)) {
        r = parse_size(what, value, &v, e);
    } else if (row->kind == TIME) {
        r = parse_duration_ms(what, value, &v, e);
    } else if (row->kind == MILLI) {
        r = parse_milli(what, value, &milli, e);
        v = milli;
    } else {
        r = parse_u64(what, value, row->min, row->max, &v, e);
    }
    if (r < 0)
        return r;
    format_number(row, row->min, false, min, sizeof(min));
    format_number(row, row->max, false, max, sizeof(max));
    if (v < row->min || v > row->max)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "%s '%.64s' is out of range: use %s to %s", what,
                       value, min, max);
    put_number(at, row->size, v);
    return 0;
}

int settings_set(struct settings *s, enum setting k, const char *what, const char *value,
                 struct sg_error *e)
{
    const struct row *row = &rows[k];
    void *at = (char *)s + row->offset;

    switch (row->kind) {
    case TEXT:
    case PATH:
        return set_text(row, at, what, value, e);
    case SECRET:
        return set_hidden(at, what, value, e);
    case URL:
        return set_url(row, at, what, value, e);
    case LISTEN:
        return set_listen(row, at, what, value, e);
    case MODULES:
        return set_modules(row, at, what, value, e);
    case YES_NO:
        return set_yes_no(at, what, value, e);
    case CHOICE:
        return set_choice(row, at, what, value, e);
    case SIZE:
    case AUTO_SIZE:
    case MILLI:
    case COUNT:
    case TIME:
        break;
    }
    return set_number(row, at, what, value, e);
}

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        int r = settings_set(s, k, rows[k].info.key, rows[k].info.normal, NULL);
        assert(r == 0);
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Turns dots into underscores: `egress.dns` is the same key as `egress_dns`. */
static void join_dotted(char *key)
{
    for (; (key = strchr(key, '.')); key++)
        *key = '_';
}

/* Removes the blanks around a text, in place. */
static char *trim(char *s)
{
    char *end = s + strlen(s);

    while (end > s && is_blank(end[-1]))
        *--end = '\0';
    while (is_blank(*s))
        s++;
    return s;
}

static int parse_line(struct settings *s, const char *where, char *line, struct sg_error *e)
{
    char *equals = strchr(line, '='), what[256];

    /* The error shows the first word only, since the next may be a secret. */
    if (!equals) {
        size_t word = strcspn(line, " \t");
        return err_invalid(e, "%s: write 'key = value': '%.*s' has no '='", where,
                           word < 64 ? (int)word : 64, line);
    }
    *equals = '\0';
    char *key = trim(line), *value = trim(equals + 1);
    join_dotted(key);
    for (enum setting k = 0; k < SETTING_MAX_; k++)
        if (strcmp(key, rows[k].info.key) == 0) {
            snprintf(what, sizeof(what), "%s: %s", where, key);
            return settings_set(s, k, what, value, e);
        }
    return err_invalid(e, "%s: unknown setting '%.64s' (see sandglass.conf(5))", where, key);
}

int settings_parse_text(struct settings *s, const char *name, char *text, struct sg_error *e)
{
    char *rest = text, *line, where[192];

    for (unsigned number = 1; (line = strsep(&rest, "\n")); number++) {
        line = trim(line);
        if (*line == '\0' || *line == '#')
            continue;
        snprintf(where, sizeof(where), "%.160s:%u", name, number);
        int r = parse_line(s, where, line, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int settings_parse_env(struct settings *s, struct sg_error *e)
{
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        char name[SETTINGS_ENV_MAX];
        setting_env(k, name);
        const char *value = getenv(name);
        int r = value ? settings_set(s, k, name, value, e) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

void settings_forget_secrets(struct settings *s)
{
    for (enum setting k = 0; k < SETTING_MAX_; k++)
        if (rows[k].kind == SECRET)
            hidden_wipe((struct hidden *)(void *)((char *)s + rows[k].offset));
    hidden_set(&s->store, "memory", 6);
}

static bool is_text(const struct row *row)
{
    return row->kind == TEXT || row->kind == PATH || row->kind == URL || row->kind == LISTEN ||
           row->kind == MODULES;
}

bool settings_same(const struct settings *a, const struct settings *b, enum setting k)
{
    const struct row *row = &rows[k];
    const char *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;

    return is_text(row) ? strcmp(x, y) == 0 : memcmp(x, y, row->size) == 0;
}

void settings_copy(struct settings *to, const struct settings *from, enum setting k)
{
    memcpy((char *)to + rows[k].offset, (const char *)from + rows[k].offset, rows[k].size);
}

void settings_print(const struct settings *s, struct strbuf *out)
{
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        const struct row *row = &rows[k];
        const char *at = (const char *)s + row->offset;
        char number[32];

        strbuf_addf(out, "%s = ", row->info.key);
        if (is_text(row)) {
            strbuf_addstr(out, at);
        } else if (row->kind == SECRET) {
            strbuf_addstr(out, hidden_reveal((const struct hidden *)(const void *)at));
        } else if (row->kind == YES_NO) {
            strbuf_addstr(out, *(const bool *)at ? "yes" : "no");
        } else if (row->kind == CHOICE) {
            print_choice(row, get_number(at, row->size), out);
        } else {
            format_number(row, get_number(at, row->size), true, number, sizeof(number));
            strbuf_addstr(out, number);
        }
        strbuf_addch(out, '\n');
    }
}
