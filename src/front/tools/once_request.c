#include <stdio.h>
#include <string.h>

#include "front/e2b/field.h"
#include "front/tools/call.h"
#include "front/tools/once.h"

#define TIMEOUT_S      30
#define TIMEOUT_MAX_S  300
#define PATH_MAX_      1024
#define SESSION_MAX    256
#define INPUT_MAX      (1024u * 1024)
#define FILES_BYTES    (4u * 1024 * 1024)
#define MIB            (1024ull * 1024)
#define MEMORY_MIN_MIB 16
#define CPUS_MIN       0.01

static const char *const known[] = {"code",   "language",  "file",           "files", "stdin",
                                    "limits", "sessionId", "timeoutSeconds", "envs"};
static const char *const known_limits[] = {"memoryMb", "cpus", "outputBytes"};

/* ---- language -------------------------------------------------------------------------------- */

/* Finds a language by its name, or by the path's suffix. Without either, *ret stays as it is. */
static int find_language(const char *name, const char *path, const struct language **ret,
                         struct sg_error *e)
{
    const char *kernel;

    /* From the last on: bash has the suffix of sh too. */
    for (size_t i = n_languages_with_program; !name && path && i-- > 0;)
        if (language_has_suffix(&languages[i], path)) {
            *ret = &languages[i];
            return 0;
        }
    if (!name)
        return 0;
    *ret = language_find(name);
    return tool_language(name, &kernel, e);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int check_path(const char *path, struct sg_error *e)
{
    if (!path[0] || path[strlen(path) - 1] == '/')
        return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'%.64s' is not the path of a file",
                       path);
    return 0;
}

static int read_file(const json_t *v, struct once_file *ret, struct sg_error *e)
{
    static const char *const fields[] = {"path", "content"};
    const char *path = NULL;

    if (!json_is_object(v))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'files' must be an array of {path, content}");
    int r = fields_known(v, fields, ARRAY_SIZE(fields), e);
    if (r == 0)
        r = field_string(v, "path", PATH_MAX_, &path, e);
    if (r == 0 && !path)
        r = err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "a file of 'files' has no 'path'");
    if (r == 0)
        r = check_path(path, e);
    if (r < 0)
        return r;
    const json_t *content = json_object_get(v, "content");
    if (!json_is_string(content))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "the 'content' of '%.64s' must be a string", path);
    *ret = (struct once_file){path, json_string_value(content), json_string_length(content)};
    return 0;
}

static bool has_file(const struct once_request *q, const char *path)
{
    for (size_t i = 0; i < q->n_files; i++)
        if (strcmp(q->files[i].path, path) == 0)
            return true;
    return false;
}

static int read_files(const json_t *arguments, struct once_request *q, struct sg_error *e)
{
    const json_t *files = NULL;
    size_t bytes = 0;
    int r = field_array(arguments, "files", ONCE_FILES_MAX, &files, e);

    for (size_t i = 0; r == 0 && i < json_array_size(files); i++) {
        struct once_file *f = &q->files[q->n_files];

        r = read_file(json_array_get(files, i), f, e);
        if (r == 0 && has_file(q, f->path))
            r = err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'files' has '%.64s' twice",
                        f->path);
        if (r == 0) {
            bytes += f->len;
            q->n_files++;
        }
    }
    if (r == 0 && bytes > FILES_BYTES)
        r = err_set(e, SG_ERR_INVALID, -E2BIG, "'files' have %zu bytes: the limit is %u", bytes,
                    FILES_BYTES);
    return r;
}

/* Reads which program is to run: the code, or one of the files. */
static int read_program(const json_t *arguments, const struct context_limits *limits,
                        struct once_request *q, struct sg_error *e)
{
    const char *file = NULL, *name = NULL;
    const struct language *l = &languages[0];
    json_t *code = NULL;
    int r = call_read_code(arguments, limits, &code, e);

    if (r == 0)
        r = field_string(arguments, "file", PATH_MAX_, &file, e);
    if (r == 0)
        r = field_string(arguments, "language", SIZE_MAX, &name, e);
    if (r == 0)
        r = find_language(name, file, &l, e);
    if (r < 0)
        return r;
    if (!code == !file)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "one of 'code' and 'file' must be given");
    if (file && !has_file(q, file))
        return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'files' has no '%.64s'", file);
    if (code && has_file(q, l->main))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'files' has '%s', which is where the code is put", l->main);
    q->command = l->program;
    q->path = file ? file : l->main;
    if (code)
        q->files[q->n_files++] =
            (struct once_file){l->main, json_string_value(code), json_string_length(code)};
    return 0;
}

/* ---- the other fields ------------------------------------------------------------------------ */

static int read_number(const json_t *object, const char *name, double min, double max,
                       double fallback, double *ret, struct sg_error *e)
{
    const json_t *v = field_get(object, name);
    double number = v ? json_number_value(v) : fallback;

    if (v && (!json_is_number(v) || !(number >= min && number <= max)))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'%s' must be a number from %g to %g", name, min, max);
    *ret = number;
    return 0;
}

static int read_limits(const struct settings *s, const json_t *arguments, struct once_request *q,
                       struct sg_error *e)
{
    const json_t *limits = NULL;
    double memory = 0, cpus = 0, output = 0;
    int r = field_object(arguments, "limits", &limits, e);

    if (r == 0)
        r = fields_known(limits, known_limits, ARRAY_SIZE(known_limits), e);
    if (r == 0)
        r = read_number(limits, "memoryMb", MEMORY_MIN_MIB, (double)(s->sandbox_memory / MIB), 0,
                        &memory, e);
    if (r == 0)
        r = read_number(limits, "cpus", CPUS_MIN, (double)s->sandbox_cpus_milli / 1000, 0, &cpus,
                        e);
    if (r == 0)
        r = read_number(limits, "outputBytes", 1, ONCE_OUTPUT_MAX, TOOL_OUTPUT_MAX, &output, e);
    if (r < 0)
        return r;
    q->memory_bytes = (uint64_t)memory * MIB;
    q->cpus_milli = (uint32_t)(cpus * 1000);
    q->output_max = (size_t)output;
    return 0;
}

static int read_input(const json_t *arguments, struct once_request *q, struct sg_error *e)
{
    int r = field_string(arguments, "stdin", INPUT_MAX, &q->input, e);

    if (r == 0)
        r = field_string(arguments, "sessionId", SESSION_MAX, &q->session, e);
    q->input_len = q->input ? json_string_length(json_object_get(arguments, "stdin")) : 0;
    return r;
}

int once_request_read(struct front *f, const struct store_tenant *tenant, const json_t *arguments,
                      struct once_request *ret, struct sg_error *e)
{
    struct once_request q = {0};
    struct context_limits limits;
    double seconds = TIMEOUT_S;

    context_limits(f, tenant, &limits);
    if (!json_is_object(arguments))
        return err_set(e, SG_ERR_INVALID, -EINVAL, "the arguments must be an object");
    int r = fields_known(arguments, known, ARRAY_SIZE(known), e);
    if (r == 0)
        r = read_files(arguments, &q, e);
    if (r == 0)
        r = read_program(arguments, &limits, &q, e);
    if (r == 0)
        r = read_input(arguments, &q, e);
    if (r == 0)
        r = read_number(arguments, "timeoutSeconds", 1, TIMEOUT_MAX_S, TIMEOUT_S, &seconds, e);
    if (r == 0)
        r = read_limits(&f->settings, arguments, &q, e);
    if (r == 0)
        r = call_read_envs(arguments, &q.envs, e);
    if (r < 0)
        return r;
    q.timeout_ms = (uint64_t)(seconds * 1000);
    q.body = json_incref((json_t *)(uintptr_t)arguments);
    *ret = q;
    return 0;
}
