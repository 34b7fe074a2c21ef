/* Reads the arguments of run_analysis.
 *
 * Parameters reach the code as data, in a variable `parameters`: never as a part of its source.
 * They travel as environment variables of a cell, in pieces, and a cell with fixed code makes one
 * value of them. So the code keeps its line numbers, and no file is written.
 *
 * Code that the caller gave is a cell like any other and uses the kernel's own names. A cell before
 * it sets `parameters`; the two stand next to each other in the kernel's queue (run.c).
 *
 * A named program travels the same way as its parameters, and the fixed code runs it with names of
 * its own: it is one cell, and neither sees nor changes the variables of the conversation. */
#include <stdio.h>
#include <string.h>

#include "wire/agent.h"
#include "lib/channel/frame.h"
#include "front/e2b/field.h"
#include "front/tools/call.h"

#define CUSTOM "custom"
/* Environment variables of a cell. PREFIX has the number of pieces, PREFIX_0 and so on the
 * pieces. */
#define PARAMETERS "SANDGLASS_PARAMETERS"
#define PROGRAM    "SANDGLASS_PROGRAM"
#define NAME       "SANDGLASS_PROGRAM_NAME"
/* Bytes of one variable, so that name and value are less than OPS_ARG_MAX. */
#define PIECE_MAX (OPS_ARG_MAX - 64)

static const char *const known[] = {"conversationId", "pathId",         "analysisType",
                                    "parameters",     "code",           "language",
                                    "outputFormat",   "timeoutSeconds", "template"};

static const char *const formats[] = {"json", "text", "csv"};
_Static_assert(ARRAY_SIZE(formats) == FORMAT_MAX_, "a name for each format");

#define JOINED(prefix)                                           \
    "b''.join(__import__('os').environb[b'" prefix "_%d' % i]\n" \
    "    for i in range(int(__import__('os').environ['" prefix "'])))"
#define LOADED "__import__('json').loads(" JOINED(PARAMETERS) ")"

/* The cells that set `parameters`. They clear the old value first: if the rest fails, the code must
 * not find old parameters. */
static const struct {
    const char *kernel, *code;
} preludes[] = {
    {"python", "parameters = None\n"
               "parameters = " LOADED "\n"},
    {"javascript", "var parameters = undefined;\n"
                   "parameters = JSON.parse(Array.from({ length: +process.env." PARAMETERS " },\n"
                   "    (_, i) => process.env['" PARAMETERS "_' + i]).join(''));\n"},
};

static const char launcher[] =
    "exec(compile(" JOINED(PROGRAM) ", __import__('os').environ['" NAME "'], 'exec'),\n"
                                    "     {'__name__': '__main__', 'parameters': " LOADED "})\n";

const char *parameters_code(const struct tool_call *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(preludes); i++)
        if (strcmp(c->kernel, preludes[i].kernel) == 0)
            return preludes[i].code;
    return NULL;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* The length of the next piece. No character is cut, since a kernel may decode each piece by
 * itself. */
static size_t piece_len(const char *text, size_t left)
{
    size_t n = left < PIECE_MAX ? left : PIECE_MAX;

    while (n < left && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static void put_pieces(json_t *variables, const char *prefix, const char *text, size_t len)
{
    char name[64], count[16];
    unsigned i = 0;

    for (size_t n; len > 0; text += n, len -= n, i++) {
        n = piece_len(text, len);
        snprintf(name, sizeof(name), "%s_%u", prefix, i);
        json_object_set_new(variables, name, json_stringn_nocheck(text, n));
    }
    snprintf(count, sizeof(count), "%u", i);
    json_object_set_new(variables, prefix, json_string(count));
}

static int read_parameters(const json_t *arguments, struct tool_call *ret, struct sg_error *e)
{
    const json_t *v = json_object_get(arguments, "parameters");
    AUTO(free_p) char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : xstrdup("{}");

    if (!text)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'parameters' cannot be written as JSON");
    if (strlen(text) > PARAMETERS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG,
                       "the parameters have %zu bytes as JSON: the limit is %u; write them to a "
                       "file and name that",
                       strlen(text), PARAMETERS_MAX);
    ret->parameters = json_object();
    put_pieces(ret->parameters, PARAMETERS, text, strlen(text));
    return 0;
}

void call_use_program(struct tool_call *c, json_t *code)
{
    c->envs = steal_ptr(&c->parameters);
    put_pieces(c->envs, PROGRAM, json_string_value(code), json_string_length(code));
    json_object_set_new(c->envs, NAME, json_sprintf("%s.py", c->program));
    c->code = json_string(launcher);
    json_decref(code);
}

/* ---- type, code and format ------------------------------------------------------------------- */

static int read_type(const json_t *arguments, struct tool_call *ret, struct sg_error *e)
{
    const char *type = NULL;
    int r = field_string(arguments, "analysisType", PROGRAM_NAME_MAX, &type, e);

    if (r < 0)
        return r;
    if (!type)
        return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'analysisType' is missing");
    if (!type[0] || type[strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR
                       "'analysisType' must be a name of the characters a-z, 0-9 and _");
    if (strcmp(type, CUSTOM) != 0)
        snprintf(ret->program, sizeof(ret->program), "%s", type);
    return 0;
}

static int read_custom(const json_t *arguments, const struct context_limits *limits,
                       struct tool_call *ret, struct sg_error *e)
{
    const char *language = "python";
    int r = call_read_code(arguments, limits, &ret->code, e);

    if (r == 0)
        r = field_string(arguments, "language", SIZE_MAX, &language, e);
    if (r < 0)
        return r;
    if (ret->program[0] && (ret->code || strcmp(language, "python") != 0))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "'code' and 'language' are for the analysisType " CUSTOM
                       ": %s has its own program",
                       ret->program);
    if (!ret->program[0] && !ret->code)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       FIELD_ERROR "'code' is missing, which the analysisType " CUSTOM " needs");
    /* The code must be sent at once, so that no other cell comes between the two cells: see
     * run.c. */
    if (ret->code && json_string_length(ret->code) > CHAN_WINDOW)
        return err_set(e, SG_ERR_INVALID, -E2BIG,
                       "the code has %zu bytes: the limit of an analysis is %u",
                       json_string_length(ret->code), CHAN_WINDOW);
    ret->kernel = strcmp(language, "javascript") == 0 ? "javascript" : "python";
    if (strcmp(language, ret->kernel) != 0)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "unknown language '%.64s' of an analysis: use python or javascript",
                       language);
    return 0;
}

static int read_format(const json_t *arguments, struct tool_call *ret, struct sg_error *e)
{
    const char *name = formats[FORMAT_JSON];
    int r = field_string(arguments, "outputFormat", SIZE_MAX, &name, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < FORMAT_MAX_; i++)
        if (strcmp(name, formats[i]) == 0) {
            ret->format = (enum tool_format)i;
            return 0;
        }
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "unknown outputFormat '%.64s': use json, text or csv", name);
}

int analysis_call_read(const struct context_limits *limits, const json_t *arguments,
                       const struct tool_place *place, struct tool_call *ret, struct sg_error *e)
{
    struct tool_call c = {0};
    int r = fields_known(arguments, known, ARRAY_SIZE(known), e);

    if (r == 0)
        r = call_read_place(arguments, place, &c, e);
    if (r == 0)
        r = read_type(arguments, &c, e);
    if (r == 0)
        r = read_custom(arguments, limits, &c, e);
    if (r == 0)
        r = read_format(arguments, &c, e);
    if (r == 0)
        r = call_read_timeout(arguments, limits, &c, e);
    if (r == 0)
        r = read_parameters(arguments, &c, e);
    if (r < 0)
        return r;
    json_incref(c.code);
    *ret = c;
    return 0;
}
