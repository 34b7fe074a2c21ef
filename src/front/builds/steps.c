#include "front/builds/steps.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "front/core/defaults.h"
#include "lib/json/values.h"

#define ARGS_MAX   1000
#define TEXT_MAX   200 /* of a step, in logs */
#define ENVS_MAX   (256u * 1024)
#define NAMES_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const struct {
    const char *name;
    size_t least, most; /* arguments */
} types[STEP_MAX_] = {
    [STEP_RUN] = {"RUN", 1, 2},        [STEP_COPY] = {"COPY", 2, 4},
    [STEP_ENV] = {"ENV", 2, ARGS_MAX}, [STEP_WORKDIR] = {"WORKDIR", 1, 1},
    [STEP_USER] = {"USER", 1, 2},
};

/* ---- reading --------------------------------------------------------------------------------- */

const char *step_arg(const struct step *s, size_t i)
{
    const char *text = json_string_value(json_array_get(s->args, i));

    return text ? text : "";
}

static int read_type(const char *name, enum step_type *ret)
{
    for (size_t i = 0; i < STEP_MAX_; i++)
        if (strcmp(types[i].name, name) == 0) {
            *ret = (enum step_type)i;
            return 0;
        }
    return -EINVAL;
}

int step_read(const json_t *json, struct step *ret, struct sg_error *e)
{
    const char *type = jr_text(json, "type");
    struct step s = {.args = json_object_get(json, "args"),
                     .hash = jr_text(json, "filesHash"),
                     .force = jr_flag(json, "force")};
    const json_t *arg;
    size_t i;

    if (read_type(type, &s.type) < 0)
        return err_invalid(e, "unknown type '%.40s': a step is RUN, COPY, ENV, WORKDIR or USER",
                           type);
    size_t n = json_array_size(s.args);
    if (n < types[s.type].least || n > types[s.type].most || (s.type == STEP_ENV && n % 2 != 0))
        return err_invalid(e, "%s has %zu arguments", type, n);
    json_array_foreach(s.args, i, arg)
    {
        const char *text = json_string_value(arg);
        if (!text || strlen(text) != json_string_length(arg))
            return err_invalid(e, "an argument of %s is not a text", type);
    }
    *ret = s;
    return 0;
}

static int check_envs(const struct step *s, struct sg_error *e)
{
    for (size_t i = 0; i < json_array_size(s->args); i += 2) {
        const char *name = step_arg(s, i);
        if (!name[0] || strchr(name, '='))
            return err_invalid(e, "ENV has the name '%.64s': a name is not empty and has no '='",
                               name);
    }
    return 0;
}

int steps_check(const json_t *steps, struct sg_error *e)
{
    const json_t *json;
    struct step s;
    size_t i, args = 0;

    if (json_array_size(steps) > STEPS_MAX)
        return err_invalid(e, "a build has at most %d steps", STEPS_MAX);
    json_array_foreach(steps, i, json)
    {
        int r = step_read(json, &s, e);
        if (r == 0 && s.type == STEP_ENV)
            r = check_envs(&s, e);
        if (r < 0)
            return err_wrap(e, r, "Invalid step %zu", i + 1);
        args += json_array_size(s.args);
    }
    return args <= STEPS_ARGS_MAX
               ? 0
               : err_invalid(e, "the steps of a build have at most %d arguments", STEPS_ARGS_MAX);
}

json_t *steps_copy(const json_t *steps)
{
    json_t *copy = json_array(), *json;
    struct step s;
    size_t i;

    json_array_foreach(steps, i, json)
    {
        if (step_read(json, &s, NULL) < 0)
            continue;
        json_array_append_new(copy,
                              json_pack("{s:s, s:O, s:s, s:b}", "type", types[s.type].name, "args",
                                        s.args, "filesHash", s.hash, "force", s.force));
    }
    return copy;
}

static void add_own(json_t *steps, enum step_type type, const char *arg, size_t len)
{
    json_array_append_new(steps, json_pack("{s:s, s:[s%], s:s, s:b}", "type", types[type].name,
                                           "args", arg, len, "filesHash", "", "force", 0));
}

/* "user", "user:group" or ids: a user has the group of its entry. What could be no user's name is told when
 * the step is done, as one that the image does not know. */
json_t *steps_of_image(const char *config)
{
    json_t *c = config ? json_loads(config, 0, NULL) : NULL, *steps = json_array();
    const char *user = jr_text(c, "User"), *dir = jr_text(c, "WorkingDir");
    size_t len = strcspn(user, ":");

    if (len > 0)
        add_own(steps, STEP_USER, user, len);
    if (dir[0] == '/' && dir[1] && strlen(dir) < OPS_PATH_MAX)
        add_own(steps, STEP_WORKDIR, dir, strlen(dir));
    json_decref(c);
    return steps;
}

void step_text(const struct step *s, struct strbuf *out)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(TEXT_MAX);

    strbuf_addstr(&line, types[s->type].name);
    for (size_t i = 0; i < json_array_size(s->args); i++)
        if (step_arg(s, i)[0])
            strbuf_addf(&line, " %s", step_arg(s, i));
    for (size_t i = 0; i < line.len; i++)
        if (line.buf[i] == '\n' || line.buf[i] == '\r')
            line.buf[i] = ' ';
    strbuf_add(out, line.buf, line.len);
    if (line.truncated)
        strbuf_addstr(out, "...");
}

/* ---- state ----------------------------------------------------------------------------------- */

void step_state_user(struct step_state *s, const char *name, const char *home)
{
    if (strcmp(name, "root") == 0)
        home = "/root";
    else if (strcmp(name, DEFAULTS_USER) == 0)
        home = "/home/user";
    snprintf(s->user, sizeof(s->user), "%s", name);
    snprintf(s->home, sizeof(s->home), "%s", home);
}

void step_state_init(struct step_state *s, const json_t *defaults)
{
    *s = (struct step_state){0};
    step_state_user(s, defaults_user(defaults), defaults_home(defaults));
    snprintf(s->workdir, sizeof(s->workdir), "%s", defaults_workdir(defaults));
    s->envs = json_deep_copy(defaults_envs(defaults));
    if (!s->envs)
        s->envs = json_object();
}

void step_state_done(struct step_state *s)
{
    json_decref(s->envs);
    s->envs = NULL;
}

json_t *step_state_defaults(const struct step_state *s, const char *start, const char *ready)
{
    json_t *d = json_pack("{s:s, s:s, s:s, s:O}", "user", s->user, "home", s->home, "workdir",
                          s->workdir, "envs", s->envs);

    if (start)
        json_object_set_new(d, "startCmd", json_string(start));
    if (ready)
        json_object_set_new(d, "readyCmd", json_string(ready));
    return d;
}

/* Whether there is such a user is the sandbox's to say. */
static int check_name(const char *name, struct sg_error *e)
{
    return user_name_valid(name) ? 0 : err_invalid(e, "'%.64s' is no name of a user", name);
}

static int apply_envs(const struct step *s, struct step_state *state, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf value = strbuf_upto(OPS_ARG_MAX / 2);
    size_t size = 0;
    const char *name;
    json_t *v;

    for (size_t i = 0; i < json_array_size(s->args); i += 2) {
        strbuf_reset(&value);
        step_expand(state, step_arg(s, i + 1), &value);
        if (value.truncated)
            return err_invalid(e, "the variable '%.64s' is longer than %u bytes", step_arg(s, i),
                               OPS_ARG_MAX / 2);
        json_object_set_new(state->envs, step_arg(s, i), json_stringn(value.buf, value.len));
    }
    json_object_foreach(state->envs, name, v) size += strlen(name) + json_string_length(v);
    return size <= ENVS_MAX
               ? 0
               : err_invalid(e, "the template's variables have more than %u bytes", ENVS_MAX);
}

int step_apply(const struct step *s, struct step_state *state, struct sg_error *e)
{
    int r = 0;

    if (s->type == STEP_ENV)
        return apply_envs(s, state, e);
    if (s->type == STEP_USER) {
        r = check_name(step_arg(s, 0), e);
        if (r == 0)
            step_state_user(state, step_arg(s, 0), "");
    } else if (s->type == STEP_WORKDIR) {
        char path[OPS_PATH_MAX];

        r = step_path(state, step_arg(s, 0), path, e);
        if (r == 0)
            memcpy(state->workdir, path, sizeof(path));
    }
    return r;
}

/* ---- expansion ------------------------------------------------------------------------------- */

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_len(const char *p)
{
    size_t n = 0;

    if (is_name_start(p[0]))
        for (n = 1; is_name_start(p[n]) || (p[n] >= '0' && p[n] <= '9'); n++)
            ;
    return n;
}

static void add_variable(const struct step_state *state, const char *name, size_t len,
                         struct strbuf *out)
{
    const struct {
        const char *name, *value;
    } usual[] = {{"HOME", state->home},
                 {"USER", state->user},
                 {"LOGNAME", state->user},
                 {"SHELL", "/bin/bash"},
                 {"PATH", NAMES_PATH},
                 {"LANG", "C.UTF-8"},
                 {"PWD", state->workdir[0] ? state->workdir : state->home}};
    AUTO(free_p) char *key = xcalloc(1, len + 1);

    memcpy(key, name, len);
    const json_t *value = json_object_get(state->envs, key);
    if (value) {
        strbuf_add(out, json_string_value(value), json_string_length(value));
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
        if (strlen(usual[i].name) == len && memcmp(usual[i].name, name, len) == 0)
            strbuf_addstr(out, usual[i].value);
}

void step_expand(const struct step_state *state, const char *text, struct strbuf *out)
{
    for (const char *p = text; *p && !out->truncated;) {
        bool braced = p[0] == '$' && p[1] == '{';
        size_t len = p[0] == '$' ? name_len(p + 1 + braced) : 0;

        if (p[0] == '\\' && (p[1] == '$' || p[1] == '\\')) {
            strbuf_addch(out, p[1]);
            p += 2;
        } else if (len > 0 && (!braced || p[2 + len] == '}')) {
            add_variable(state, p + 1 + braced, len, out);
            p += 1 + len + (braced ? 2 : 0);
        } else {
            strbuf_addch(out, *p++);
        }
    }
}

/* ---- paths ----------------------------------------------------------------------------------- */

int step_path(const struct step_state *state, const char *path, char ret[OPS_PATH_MAX],
              struct sg_error *e)
{
    const char *from = "", *rest = path;

    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
        from = state->home;
        rest = path + 1 + (path[1] == '/');
    } else if (path[0] != '/') {
        from = state->workdir[0] ? state->workdir : state->home;
    }
    size_t len = strlen(from);
    bool slash = len > 0 && from[len - 1] != '/';
    int n = snprintf(ret, OPS_PATH_MAX, "%s%s%s", from, slash ? "/" : "", rest);
    if (n < 0 || n >= OPS_PATH_MAX)
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "the path '%.80s...' is too long", path);
    return 0;
}

/* ---- copy ------------------------------------------------------------------------------------ */

static int read_mode(const char *text, uint32_t *ret, struct sg_error *e)
{
    char *end;

    *ret = UNPACK_OWN_MODE;
    if (!text[0])
        return 0;
    unsigned long v = strtoul(text, &end, 8);
    if (*end || v > 07777 || text[0] < '0' || text[0] > '7')
        return err_invalid(e, "the mode '%.20s' is not an octal number up to 7777", text);
    *ret = (uint32_t)v;
    return 0;
}

/* "user", "user:group" or ":group". */
static int read_owner(const char *text, const struct step_state *state, struct step_copy *ret,
                      struct sg_error *e)
{
    size_t len = strcspn(text, ":");
    const char *group = text[len] ? text + len + 1 : "";
    int r;

    /* A name that is cut here is none that exists. */
    snprintf(ret->user, sizeof(ret->user), "%.*s", (int)(len < OPS_NAME_MAX ? len : OPS_NAME_MAX),
             text);
    if (!ret->user[0])
        memcpy(ret->user, state->user, sizeof(ret->user));
    snprintf(ret->group, sizeof(ret->group), "%s", group);
    r = check_name(ret->user, e);
    return r < 0 || !group[0] ? r : check_name(ret->group, e);
}

/* Counts the components of a source: "./app/" has one, "." has none. */
static uint32_t components(const char *p)
{
    uint32_t n = 0;

    while (*p) {
        size_t len = strcspn(p, "/");

        n += len > 0 && !(len == 1 && p[0] == '.');
        p += len + (p[len] == '/');
    }
    return n;
}

int step_copy(const struct step *s, const struct step_state *state, struct step_copy *ret,
              struct sg_error *e)
{
    const char *src = step_arg(s, 0), *dest = step_arg(s, 1);
    struct step_copy c = {.strip = components(src)};
    int r = read_owner(step_arg(s, 2), state, &c, e);

    if (r == 0)
        r = read_mode(step_arg(s, 3), &c.mode, e);
    if (r == 0)
        r = step_path(state, dest, c.dest, e);
    if (r < 0)
        return r;
    size_t len = strlen(c.dest), dots = strlen(dest);
    /* Several files, and ".", can only go into a directory. */
    bool into = strpbrk(src, "*?[{") ||
                (dots > 0 && dest[dots - 1] == '.' && (dots == 1 || dest[dots - 2] == '/'));
    if (into && len + 1 < sizeof(c.dest) && c.dest[len - 1] != '/')
        memcpy(c.dest + len, "/", 2);
    *ret = c;
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define KEY_VERSION "1" /* a change of how steps are carried out makes old layers useless */

static void must(int ok)
{
    if (ok != 1)
        abort(); /* can only fail for want of memory: the algorithm is built in */
}

/* With its length, so that no two lists of texts are the same bytes. */
static void add_text(EVP_MD_CTX *c, const char *text)
{
    uint64_t len = strlen(text);

    must(EVP_DigestUpdate(c, &len, sizeof(len)));
    must(EVP_DigestUpdate(c, text, len));
}

static EVP_MD_CTX *key_begin(const char *kind)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();

    must(c != NULL);
    must(EVP_DigestInit_ex(c, EVP_sha256(), NULL));
    add_text(c, KEY_VERSION);
    add_text(c, kind);
    return c;
}

static void key_end(EVP_MD_CTX *c, char ret[STORE_KEY_HEX + 1])
{
    unsigned char digest[STORE_KEY_HEX / 2];

    must(EVP_DigestFinal_ex(c, digest, NULL));
    EVP_MD_CTX_free(c);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

void step_key(const char *below, const struct step *s, const char *digest,
              char ret[STORE_KEY_HEX + 1])
{
    EVP_MD_CTX *c = key_begin(types[s->type].name);

    add_text(c, below);
    for (size_t i = 0; i < json_array_size(s->args); i++)
        add_text(c, step_arg(s, i));
    add_text(c, digest);
    key_end(c, ret);
}

void step_base_key(const char *base, const char *layer, const json_t *defaults,
                   char ret[STORE_KEY_HEX + 1])
{
    EVP_MD_CTX *c = key_begin("FROM");
    AUTO(free_p) char *text = defaults ? json_dumps(defaults, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    add_text(c, base);
    add_text(c, layer);
    add_text(c, text ? text : "");
    key_end(c, ret);
}

void step_image_key(const char *image, const json_t *credentials, char ret[STORE_KEY_HEX + 1])
{
    EVP_MD_CTX *c = key_begin("IMAGE");
    char *text = credentials ? json_dumps(credentials, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    add_text(c, image);
    add_text(c, text ? text : "");
    key_end(c, ret);
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}
