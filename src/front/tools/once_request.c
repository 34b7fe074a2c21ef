#include <stdio.h>
#include <string.h>

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

static struct once_file read_file(struct fields *in, const json_t *v)
{
    struct fields file = fields_within(in, v);
    const json_t *content = json_object_get(v, "content");

    if (!json_is_object(v))
        field_must(in, "files", "an array of {path, content}");
    fields_known(&file, "path", "content");
    const char *path = field_text(&file, "path", PATH_MAX_, NULL);
    if (!path)
        field_wrong(in, "a file of 'files' has no 'path'");
    else if (!path[0] || path[strlen(path) - 1] == '/')
        field_wrong(in, "'%.64s' is not the path of a file", path);
    else if (!json_is_string(content))
        field_wrong(in, "the 'content' of '%.64s' must be a string", path);
    return (struct once_file){path, json_string_value(content), json_string_length(content)};
}

static bool has_file(const struct once_request *q, const char *path)
{
    for (size_t i = 0; i < q->n_files; i++)
        if (strcmp(q->files[i].path, path) == 0)
            return true;
    return false;
}

static void read_files(struct fields *in, struct once_request *q)
{
    json_t *files = field_array(in, "files", ONCE_FILES_MAX), *v;
    size_t bytes = 0, i;

    json_array_foreach(files, i, v)
    {
        struct once_file f = read_file(in, v);

        if (fields_ok(in) && has_file(q, f.path))
            field_wrong(in, "'files' has '%.64s' twice", f.path);
        if (!fields_ok(in))
            return;
        bytes += f.len;
        q->files[q->n_files++] = f;
    }
    if (bytes > FILES_BYTES)
        fields_fail(in, SG_ERR_INVALID, -E2BIG, "'files' have %zu bytes: the limit is %u", bytes,
                    FILES_BYTES);
}

/* Reads which program is to run: the code, or one of the files. */
static void read_program(struct fields *in, const struct context_limits *limits,
                         struct once_request *q)
{
    const json_t *code = call_read_code(in, limits);
    const char *file = field_text(in, "file", PATH_MAX_, NULL);
    const char *name = field_text(in, "language", SIZE_MAX, NULL);
    const struct language *l = &languages[0];

    fields_check(in, find_language(name, file, &l, in->e));
    if (!code == !file)
        field_wrong(in, "one of 'code' and 'file' must be given");
    if (file && !has_file(q, file))
        field_wrong(in, "'files' has no '%.64s'", file);
    if (!fields_ok(in))
        return;
    if (code && has_file(q, l->main))
        field_wrong(in, "'files' has '%s', which is where the code is put", l->main);
    q->command = l->program;
    q->path = file ? file : l->main;
    if (code)
        q->files[q->n_files++] =
            (struct once_file){l->main, json_string_value(code), json_string_length(code)};
}

/* ---- the other fields ------------------------------------------------------------------------ */

static void read_limits(struct fields *in, const struct settings *s, struct once_request *q)
{
    struct fields limits = field_object(in, "limits");

    fields_known(&limits, "memoryMb", "cpus", "outputBytes");
    q->memory_bytes = MIB * (uint64_t)field_real(&limits, "memoryMb", MEMORY_MIN_MIB,
                                                 (double)(s->sandbox_memory / MIB), 0);
    q->cpus_milli = (uint32_t)(1000 * field_real(&limits, "cpus", CPUS_MIN,
                                                 (double)s->sandbox_cpus_milli / 1000, 0));
    q->output_max = (size_t)field_real(&limits, "outputBytes", 1, ONCE_OUTPUT_MAX, TOOL_OUTPUT_MAX);
}

int once_request_read(struct front *f, const struct store_tenant *tenant, const json_t *arguments,
                      struct once_request *ret, struct sg_error *e)
{
    struct fields in = request_fields(arguments, e);
    struct once_request q = {0};
    struct context_limits limits;

    context_limits(f, tenant, &limits);
    if (!json_is_object(arguments))
        fields_invalid(&in, "the arguments must be an object");
    fields_known(&in, "code", "language", "file", "files", "stdin", "limits", "sessionId",
                 "timeoutSeconds", "envs");
    read_files(&in, &q);
    read_program(&in, &limits, &q);
    q.input = field_text(&in, "stdin", INPUT_MAX, NULL);
    q.input_len = q.input ? json_string_length(field_get(&in, "stdin")) : 0;
    q.session = field_text(&in, "sessionId", SESSION_MAX, NULL);
    q.timeout_ms =
        (uint64_t)(1000 * field_real(&in, "timeoutSeconds", 1, TIMEOUT_MAX_S, TIMEOUT_S));
    read_limits(&in, &f->settings, &q);
    q.envs = call_read_envs(&in);
    if (in.r < 0)
        return in.r;
    q.body = json_incref((json_t *)(uintptr_t)arguments);
    *ret = q;
    return 0;
}
