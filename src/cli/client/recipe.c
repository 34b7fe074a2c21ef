#include "cli/client/recipe.h"

#include <ctype.h>
#include <string.h>

#define SHOWN_MAX 200

struct cook {
    struct recipe *recipe;
    const char *const *build_args;
    size_t n_args;
    uint64_t used;       /* a bit for each of build_args */
    json_t *before_from; /* ARG before FROM: texts by name */
    struct docker_vars vars;
    json_t *shell;            /* of SHELL, or NULL */
    json_t *entrypoint, *cmd; /* array: exec form; text: shell form; NULL */
    bool has_user, has_workdir;
    const struct docker_line *line;
    struct sg_error *e;
};

/* ---- what is made ---------------------------------------------------------------------------- */

static char *one_line(const struct docker_line *l)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(SHOWN_MAX);

    strbuf_addf(&out, "%s ", l->keyword);
    for (const char *p = l->rest; *p; p++)
        strbuf_addch(&out, iscntrl((unsigned char)*p) ? ' ' : *p);
    return strbuf_detach(&out, NULL);
}

static size_t add_vertex(struct cook *k)
{
    struct recipe *r = k->recipe;

    r->vertices = xgrow(r->vertices, r->n_vertices, &r->cap_vertices, sizeof(*r->vertices));
    r->vertices[r->n_vertices] = (struct recipe_vertex){k->line->number, one_line(k->line)};
    return r->n_vertices++;
}

/* Takes args over. */
static size_t add_step(struct cook *k, const char *type, json_t *args, size_t vertex)
{
    struct recipe *r = k->recipe;
    size_t n = json_array_size(r->steps);

    r->of_step = xgrow(r->of_step, n, &r->cap_steps, sizeof(*r->of_step));
    r->of_step[n] = vertex;
    json_array_append_new(r->steps,
                          json_pack("{s:s, s:o, s:b}", "type", type, "args", args, "force", 0));
    return n;
}

static json_t *args_of(const char *one)
{
    json_t *args = json_array();

    json_array_append_new(args, json_string(one));
    return args;
}

static bool is_shell_word(const char *word)
{
    return *word &&
           word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./:=@%+,")] == '\0';
}

void recipe_quote(struct strbuf *out, const char *word)
{
    if (is_shell_word(word)) {
        strbuf_addstr(out, word);
        return;
    }
    strbuf_addch(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            strbuf_addstr(out, "'\\''");
        else
            strbuf_addch(out, *word);
    }
    strbuf_addch(out, '\'');
}

static void quote_all(struct strbuf *out, const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        if (out->len > 0)
            strbuf_addch(out, ' ');
        recipe_quote(out, json_string_value(json_array_get(words, i)));
    }
}

static int expand(struct cook *k, const char *word, struct strbuf *out)
{
    return dockerfile_expand(k->line, &k->vars, word, false, out, k->e);
}

/* ---- FROM, ARG, ENV -------------------------------------------------------------------------- */

static const char *build_arg(struct cook *k, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < k->n_args; i++)
        if (strncmp(k->build_args[i], name, len) == 0 && k->build_args[i][len] == '=') {
            k->used |= 1ull << i;
            return k->build_args[i] + len + 1;
        }
    return NULL;
}

/* BuildKit gives these values about the machine, which nobody knows here. */
static bool is_about_platform(const char *name)
{
    static const char *const names[] = {"TARGETPLATFORM", "TARGETOS", "TARGETARCH", "TARGETVARIANT",
                                        "BUILDPLATFORM",  "BUILDOS",  "BUILDARCH",  "BUILDVARIANT"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int set_arg(struct cook *k, json_t *to, const char *word)
{
    AUTO(strbuf_done) struct strbuf value = strbuf_upto(DOCKERFILE_WORD_MAX);
    size_t len = strcspn(word, "=");
    AUTO(free_p) char *name = strndup(word, len);
    int r = 0;

    if (!name)
        abort();
    const char *given = build_arg(k, name),
               *outer = json_string_value(json_object_get(k->before_from, name));
    if (len == 0)
        return dockerfile_wrong(k->e, k->line, "ARG has no name");
    if (given)
        strbuf_addstr(&value, given);
    else if (word[len] == '=')
        r = expand(k, word + len + 1, &value);
    else if (outer)
        strbuf_addstr(&value, outer);
    else if (is_about_platform(name))
        return dockerfile_wrong(k->e, k->line, "ARG %s is not set here: give it with --build-arg",
                                name);
    else
        return 0;
    if (r == 0)
        json_object_set_new(to, name, json_stringn(value.buf, value.len));
    return r;
}

static int do_arg(struct cook *k)
{
    json_t *to = k->recipe->from ? k->vars.args : k->before_from, *words, *word;
    int r = dockerfile_words(k->line, k->line->rest, &words, k->e);
    size_t i;

    if (r < 0)
        return r;
    json_array_foreach(words, i, word)
    {
        r = r < 0 ? r : set_arg(k, to, json_string_value(word));
    }
    json_decref(words);
    return r;
}

/* The options of an instruction, "--NAME=VALUE" words at its begin. Returns the text after them. */
static int flag_end(struct cook *k, const char **p, char **ret)
{
    size_t len = strcspn(*p, " \t");

    *ret = NULL;
    if (strncmp(*p, "--", 2) != 0)
        return 0;
    AUTO(free_p) char *word = strndup(*p, len);
    AUTO(strbuf_done) struct strbuf value = strbuf_upto(DOCKERFILE_WORD_MAX);
    if (!word)
        abort();
    int r = expand(k, word, &value);
    *p += len + strspn(*p + len, " \t");
    *ret = strbuf_detach(&value, NULL);
    return r;
}

static int no_flag(struct cook *k, const char *flag)
{
    return dockerfile_wrong(k->e, k->line, "%s %.64s is not supported", k->line->keyword, flag);
}

static int set_from(struct cook *k, json_t *words)
{
    const char *second = json_string_value(json_array_get(words, 1));
    AUTO(strbuf_done) struct strbuf image = strbuf_upto(DOCKERFILE_WORD_MAX);
    size_t n = json_array_size(words);
    struct docker_vars outer = {k->before_from, k->vars.envs};

    if (n != 1 && !(n == 3 && strcasecmp(second, "as") == 0))
        return dockerfile_wrong(k->e, k->line, "FROM takes an image, and perhaps 'AS NAME'");
    int r = dockerfile_expand(k->line, &outer, json_string_value(json_array_get(words, 0)), false,
                              &image, k->e);
    if (r < 0)
        return r;
    if (image.len == 0)
        return dockerfile_wrong(k->e, k->line, "FROM has an empty name");
    k->recipe->from = strbuf_detach(&image, NULL);
    size_t vertex = add_vertex(k);
    free(k->recipe->vertices[vertex].text);
    if (asprintf(&k->recipe->vertices[vertex].text, "FROM %.200s", k->recipe->from) < 0)
        abort();
    add_step(k, "USER", args_of("root"), 0);
    add_step(k, "WORKDIR", args_of("/"), 0);
    return 0;
}

static int do_from(struct cook *k)
{
    const char *p = k->line->rest;
    AUTO(free_p) char *flag = NULL;
    json_t *words;
    int r;

    if (k->recipe->from)
        return dockerfile_wrong(k->e, k->line,
                                "a second FROM: builds of several stages are not supported");
    r = flag_end(k, &p, &flag);
    if (r == 0 && flag && strcmp(flag, "--platform=linux/amd64") != 0)
        return no_flag(k, flag);
    if (r == 0)
        r = dockerfile_words(k->line, p, &words, k->e);
    if (r < 0)
        return r;
    r = set_from(k, words);
    json_decref(words);
    return r;
}

/* value: with its quotes. */
static int set_env(struct cook *k, const char *name, const char *value, json_t *args, json_t *known)
{
    AUTO(strbuf_done) struct strbuf key = strbuf_upto(DOCKERFILE_WORD_MAX);
    AUTO(strbuf_done) struct strbuf sent = strbuf_upto(DOCKERFILE_WORD_MAX);
    AUTO(strbuf_done) struct strbuf ours = strbuf_upto(DOCKERFILE_WORD_MAX);
    int r = expand(k, name, &key);

    if (r == 0)
        r = dockerfile_expand(k->line, &k->vars, value, true, &sent, k->e);
    if (r == 0)
        r = expand(k, value, &ours);
    if (r == 0 && key.len == 0)
        r = dockerfile_wrong(k->e, k->line, "ENV has an empty name");
    if (r < 0)
        return r;
    json_array_append_new(args, json_string(key.buf));
    json_array_append_new(args, json_string(sent.buf));
    json_object_set_new(known, key.buf, json_string(ours.buf));
    return 0;
}

static int set_envs(struct cook *k, const json_t *words, json_t *args, json_t *known)
{
    const char *rest = k->line->rest, *first = json_string_value(json_array_get(words, 0));
    size_t i;
    json_t *word;
    int r = 0;

    if (!first)
        return dockerfile_wrong(k->e, k->line, "ENV takes NAME=VALUE");
    if (!strchr(first, '=')) { /* the old form: ENV NAME the rest of the line */
        const char *value = rest + strlen(first) + strspn(rest + strlen(first), " \t");

        return *value ? set_env(k, first, value, args, known)
                      : dockerfile_wrong(k->e, k->line, "ENV %.64s has no value", first);
    }
    json_array_foreach(words, i, word)
    {
        AUTO(free_p) char *name = xstrdup(json_string_value(word));
        char *value = strchr(name, '=');

        if (!value)
            return dockerfile_wrong(k->e, k->line, "ENV: '%.64s' is not NAME=VALUE", name);
        *value++ = '\0';
        r = r < 0 ? r : set_env(k, name, value, args, known);
    }
    return r;
}

static int do_env(struct cook *k)
{
    json_t *words, *args = json_array(), *known = json_object();
    int r = dockerfile_words(k->line, k->line->rest, &words, k->e);

    if (r == 0) {
        r = set_envs(k, words, args, known);
        json_decref(words);
    }
    if (r == 0) {
        json_object_update(k->vars.envs, known); /* they see each other from the next line on */
        add_step(k, "ENV", json_incref(args), add_vertex(k));
    }
    json_decref(args);
    json_decref(known);
    return r;
}

/* ---- RUN ------------------------------------------------------------------------------------- */

static void add_args(struct cook *k, struct strbuf *out)
{
    const char *name;
    json_t *value;
    bool any = false;

    json_object_foreach(k->vars.args, name, value)
    {
        if (json_object_get(k->vars.envs, name))
            continue;
        strbuf_addf(out, "%s%s=", any ? " " : "export ", name);
        recipe_quote(out, json_string_value(value));
        any = true;
    }
    if (any)
        strbuf_addch(out, '\n');
}

/* "<<EOF" alone: the text is the script. Else the shell reads the text, as it does in a script. */
static int add_script(struct cook *k, struct strbuf *out, const char *text)
{
    const struct docker_line *l = k->line;
    bool alone = l->n_heredocs == 1 && strncmp(text, "<<", 2) == 0 && !strpbrk(text, " \t");

    if (alone && strncmp(l->heredocs[0].text, "#!", 2) == 0)
        return dockerfile_wrong(k->e, l,
                                "a script with an interpreter of its own is not supported: "
                                "name it, as in 'RUN python3 <<EOF'");
    if (alone) {
        strbuf_addstr(out, l->heredocs[0].text);
        return 0;
    }
    strbuf_addstr(out, text);
    for (size_t i = 0; i < l->n_heredocs; i++)
        strbuf_addf(out, "\n%s%s", l->heredocs[i].text, l->heredocs[i].name);
    return 0;
}

static int do_run(struct cook *k)
{
    AUTO(strbuf_done) struct strbuf command = strbuf_upto(DOCKERFILE_WORD_MAX);
    AUTO(strbuf_done) struct strbuf all = strbuf_upto(DOCKERFILE_WORD_MAX);
    const char *p = k->line->rest;
    AUTO(free_p) char *flag = NULL;
    int r = flag_end(k, &p, &flag);

    if (r == 0 && flag)
        r = no_flag(k, flag);
    if (r == 0 && !*p)
        r = dockerfile_wrong(k->e, k->line, "RUN has no command");
    json_t *words = r == 0 ? dockerfile_exec_form(p) : NULL;
    if (words)
        quote_all(&command, words);
    else if (r == 0)
        r = add_script(k, &command, p);
    if (r == 0) {
        add_args(k, &all);
        if (k->shell && !words) {
            AUTO(strbuf_done) struct strbuf shell = strbuf_upto(DOCKERFILE_WORD_MAX);

            quote_all(&shell, k->shell);
            strbuf_addf(&all, "%s ", shell.buf);
            recipe_quote(&all, command.buf);
        } else {
            strbuf_addstr(&all, command.buf);
        }
        if (all.truncated || command.truncated)
            r = dockerfile_wrong(k->e, k->line, "RUN is too long");
    }
    json_decref(words);
    if (r == 0)
        add_step(k, "RUN", args_of(all.buf), add_vertex(k));
    return r;
}

static int do_shell(struct cook *k)
{
    json_t *words = dockerfile_exec_form(k->line->rest);

    if (json_array_size(words) == 0) {
        json_decref(words);
        return dockerfile_wrong(k->e, k->line, "SHELL takes the form [\"/bin/bash\", \"-c\"]");
    }
    json_decref(k->shell);
    k->shell = words;
    return 0;
}

/* ---- COPY, ADD ------------------------------------------------------------------------------- */

struct copy_options {
    char owner[128], mode[8];
};

static int read_copy_flag(struct cook *k, const char *flag, struct copy_options *o)
{
    if (strncmp(flag, "--chown=", 8) == 0 && flag[8] && strlen(flag + 8) < sizeof(o->owner)) {
        snprintf(o->owner, sizeof(o->owner), "%s", flag + 8);
    } else if (strncmp(flag, "--chmod=", 8) == 0) {
        size_t len = strspn(flag + 8, "01234567");

        if (len == 0 || len > 4 || flag[8 + len])
            return dockerfile_wrong(k->e, k->line, "%.64s: the mode is not an octal number", flag);
        snprintf(o->mode, sizeof(o->mode), "%.4s", flag + 8);
    } else if (strcmp(flag, "--link") != 0) { /* changes how Docker stores it, and nothing else */
        return no_flag(k, flag);
    }
    return 0;
}

static int check_source(struct cook *k, const char *source)
{
    if (strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0 ||
        strncmp(source, "git@", 4) == 0)
        return dockerfile_wrong(k->e, k->line,
                                "%s of an address is not supported: fetch '%.100s' with RUN",
                                k->line->keyword, source);
    return 0;
}

/* words: sources and the destination, expanded. */
static int add_copy(struct cook *k, const json_t *words, const struct copy_options *o)
{
    struct recipe *r = k->recipe;
    size_t n = json_array_size(words);
    const struct docker_heredoc *h = k->line->heredocs;
    const char *dest = json_string_value(json_array_get(words, n - 1));
    bool many = n > 2 && dest && dest[strlen(dest) - 1] != '/';

    if (n < 2)
        return dockerfile_wrong(k->e, k->line, "%s takes sources and a destination",
                                k->line->keyword);
    if (k->line->n_heredocs > 0 && n != 2)
        return dockerfile_wrong(k->e, k->line, "%s takes one text '<<NAME' and no other source",
                                k->line->keyword);
    if (many)
        return dockerfile_wrong(
            k->e, k->line, "the destination '%.100s' of several sources must end in '/'", dest);
    size_t vertex = add_vertex(k);
    json_t *args = json_pack("[s, s, s, s]", "", dest, o->owner, o->mode);
    struct recipe_copy c = {.step = add_step(k, "COPY", args, vertex),
                            .vertex = vertex,
                            .line = k->line->number,
                            .add = strcmp(k->line->keyword, "ADD") == 0};
    int err = 0;
    if (k->line->n_heredocs > 0) {
        AUTO(strbuf_done) struct strbuf text = strbuf_upto(DOCKERFILE_MAX);

        if (h->literal)
            strbuf_addstr(&text, h->text);
        else
            err = dockerfile_expand_text(k->line, &k->vars, h->text, &text, k->e);
        c.name = xstrdup(h->name);
        c.text = strbuf_detach(&text, NULL);
    } else {
        c.sources = json_array();
        for (size_t i = 0; i + 1 < n; i++) {
            json_array_append(c.sources, json_array_get(words, i));
            err = err < 0 ? err : check_source(k, json_string_value(json_array_get(words, i)));
        }
    }
    r->copies = xgrow(r->copies, r->n_copies, &r->cap_copies, sizeof(*r->copies));
    r->copies[r->n_copies++] = c;
    return err;
}

static int expand_all(struct cook *k, json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        AUTO(strbuf_done) struct strbuf out = strbuf_upto(DOCKERFILE_WORD_MAX);
        int r = expand(k, json_string_value(json_array_get(words, i)), &out);

        if (r == 0 && out.len == 0)
            r = dockerfile_wrong(k->e, k->line, "%s has an empty word", k->line->keyword);
        if (r < 0)
            return r;
        json_array_set_new(words, i, json_string(out.buf));
    }
    return 0;
}

static int do_copy(struct cook *k)
{
    struct copy_options o = {.owner = "root"};
    const char *p = k->line->rest;
    int r = 0;

    for (;;) {
        AUTO(free_p) char *flag = NULL;

        r = flag_end(k, &p, &flag);
        if (r == 0 && flag)
            r = read_copy_flag(k, flag, &o);
        if (r < 0)
            return r;
        if (!flag)
            break;
    }
    json_t *words = dockerfile_exec_form(p);
    if (!words)
        r = dockerfile_words(k->line, p, &words, k->e);
    if (r < 0)
        return r;
    r = expand_all(k, words);
    if (r == 0)
        r = add_copy(k, words, &o);
    json_decref(words);
    return r;
}

/* ---- WORKDIR, USER, CMD, ENTRYPOINT ---------------------------------------------------------- */

static int one_word(struct cook *k, struct strbuf *out)
{
    int r = expand(k, k->line->rest, out);

    return r == 0 && out->len == 0
               ? dockerfile_wrong(k->e, k->line, "%s takes a value", k->line->keyword)
               : r;
}

static int do_workdir(struct cook *k)
{
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(DOCKERFILE_WORD_MAX);
    int r = one_word(k, &path);

    if (r == 0)
        add_step(k, "WORKDIR", args_of(path.buf), add_vertex(k));
    k->has_workdir = true;
    return r;
}

static int do_user(struct cook *k)
{
    AUTO(strbuf_done) struct strbuf name = strbuf_upto(DOCKERFILE_WORD_MAX);
    int r = one_word(k, &name);

    if (r == 0 && strchr(name.buf, ':'))
        r = dockerfile_wrong(k->e, k->line,
                             "USER with a group is not supported: name the user alone");
    if (r == 0)
        add_step(k, "USER", args_of(name.buf), add_vertex(k));
    k->has_user = true;
    return r;
}

static int set_command(struct cook *k, json_t **to)
{
    json_decref(*to);
    *to = dockerfile_exec_form(k->line->rest);
    if (!*to)
        *to = json_string(k->line->rest);
    return 0;
}

static int do_cmd(struct cook *k)
{
    return set_command(k, &k->cmd);
}

static int do_entrypoint(struct cook *k)
{
    return set_command(k, &k->entrypoint);
}

static void make_start(struct cook *k)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(DOCKERFILE_WORD_MAX);

    if (json_is_string(k->entrypoint)) { /* the shell form leaves CMD out */
        strbuf_addstr(&out, json_string_value(k->entrypoint));
    } else {
        quote_all(&out, k->entrypoint);
        if (json_is_array(k->cmd)) {
            quote_all(&out, k->cmd);
        } else if (k->cmd && out.len > 0) {
            strbuf_addstr(&out, " /bin/sh -c ");
            recipe_quote(&out, json_string_value(k->cmd));
        } else if (k->cmd) {
            strbuf_addstr(&out, json_string_value(k->cmd));
        }
    }
    if (out.len > 0)
        k->recipe->start = strbuf_detach(&out, NULL);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int leave_out(struct cook *k)
{
    json_array_append_new(k->recipe->left_out, json_string(k->line->keyword));
    return 0;
}

static int refuse(struct cook *k)
{
    return dockerfile_wrong(k->e, k->line, "%s is not supported", k->line->keyword);
}

static const struct {
    const char *keyword;
    int (*fn)(struct cook *k);
} instructions[] = {
    {"FROM", do_from},
    {"RUN", do_run},
    {"COPY", do_copy},
    {"ADD", do_copy},
    {"ENV", do_env},
    {"ARG", do_arg},
    {"WORKDIR", do_workdir},
    {"USER", do_user},
    {"CMD", do_cmd},
    {"ENTRYPOINT", do_entrypoint},
    {"SHELL", do_shell},
    {"EXPOSE", leave_out},
    {"LABEL", leave_out},
    {"MAINTAINER", leave_out},
    {"VOLUME", leave_out},
    {"STOPSIGNAL", leave_out},
    {"HEALTHCHECK", leave_out},
    {"ONBUILD", refuse},
};

static int do_line(struct cook *k)
{
    const char *keyword = k->line->keyword;

    for (size_t i = 0; i < ARRAY_SIZE(instructions); i++) {
        if (strcmp(instructions[i].keyword, keyword) != 0)
            continue;
        if (!k->recipe->from && strcmp(keyword, "FROM") != 0 && strcmp(keyword, "ARG") != 0)
            return dockerfile_wrong(k->e, k->line, "%s stands before FROM", keyword);
        return instructions[i].fn(k);
    }
    return dockerfile_wrong(k->e, k->line, "unknown instruction '%s'", keyword);
}

/* What E2B's SDKs add to a Dockerfile that does not say it. */
static void add_end(struct cook *k)
{
    size_t none = k->recipe->n_vertices;

    if (!k->has_user)
        add_step(k, "USER", args_of("user"), none);
    if (!k->has_workdir)
        add_step(k, "WORKDIR", args_of("/home/user"), none);
    make_start(k);
}

static int cook(struct cook *k, const char *text)
{
    struct dockerfile file;
    int r = dockerfile_read(text, &file, k->e);

    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < file.n; i++) {
        k->line = &file.lines[i];
        r = do_line(k);
    }
    if (r == 0 && !k->recipe->from)
        r = err_invalid(k->e, "it has no FROM");
    if (r == 0)
        add_end(k);
    dockerfile_done(&file);
    return r;
}

int recipe_read(const char *dockerfile, const char *const *build_args, size_t n_args,
                struct recipe *ret, const char **ret_unused, struct sg_error *e)
{
    *ret = (struct recipe){.steps = json_array(), .left_out = json_array()};
    struct cook k = {.recipe = ret,
                     .build_args = build_args,
                     .n_args = n_args,
                     .before_from = json_object(),
                     .vars = {json_object(), json_object()},
                     .e = e};
    int r = cook(&k, dockerfile);

    *ret_unused = NULL;
    for (size_t i = n_args; i-- > 0;)
        if (!(k.used >> i & 1))
            *ret_unused = build_args[i];
    json_decref(k.before_from);
    json_decref(k.vars.args);
    json_decref(k.vars.envs);
    json_decref(k.shell);
    json_decref(k.entrypoint);
    json_decref(k.cmd);
    if (r < 0)
        recipe_done(ret);
    return r;
}

void recipe_done(struct recipe *r)
{
    for (size_t i = 0; i < r->n_vertices; i++)
        free(r->vertices[i].text);
    for (size_t i = 0; i < r->n_copies; i++) {
        json_decref(r->copies[i].sources);
        free(r->copies[i].name);
        free(r->copies[i].text);
    }
    free(r->vertices);
    free(r->of_step);
    free(r->copies);
    free(r->from);
    free(r->start);
    json_decref(r->steps);
    json_decref(r->left_out);
    *r = (struct recipe){0};
}
