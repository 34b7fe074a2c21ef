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
#include "front/tools/call.h"

#define CUSTOM "custom"
/* Environment variables of a cell. PREFIX has the number of pieces, PREFIX_0 and so on the
 * pieces. */
#define PARAMETERS "SANDGLASS_PARAMETERS"
#define PROGRAM    "SANDGLASS_PROGRAM"
#define NAME       "SANDGLASS_PROGRAM_NAME"
/* Bytes of one variable, so that name and value are less than OPS_ARG_MAX. */
#define PIECE_MAX (OPS_ARG_MAX - 64)

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

/* No character is cut, since a kernel may decode each piece by itself. */
static void put_pieces(json_t *variables, const char *prefix, const char *text, size_t len)
{
    char name[64], count[16];
    unsigned i = 0;

    for (size_t n; len > 0; text += n, len -= n, i++) {
        n = text_cut(text, len, PIECE_MAX);
        snprintf(name, sizeof(name), "%s_%u", prefix, i);
        json_object_set_new(variables, name, json_stringn_nocheck(text, n));
    }
    snprintf(count, sizeof(count), "%u", i);
    json_object_set_new(variables, prefix, json_string(count));
}

static void read_parameters(struct fields *in, struct tool_call *ret)
{
    const json_t *v = json_object_get(in->object, "parameters");
    AUTO(free_p) char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : xstrdup("{}");
    size_t len = text ? strlen(text) : 0;

    if (!text)
        field_wrong(in, "'parameters' cannot be written as JSON");
    if (len > PARAMETERS_MAX)
        fields_fail(in, SG_ERR_INVALID, -E2BIG,
                    "the parameters have %zu bytes as JSON: the limit is %u; write them to a file "
                    "and name that",
                    len, PARAMETERS_MAX);
    if (!fields_ok(in))
        return;
    ret->parameters = json_object();
    put_pieces(ret->parameters, PARAMETERS, text, len);
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

static void read_type(struct fields *in, struct tool_call *ret)
{
    const char *type = field_text(in, "analysisType", PROGRAM_NAME_MAX, NULL);

    if (!type)
        field_wrong(in, "'analysisType' is missing");
    else if (!type[0] || type[strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        field_must(in, "analysisType", "a name of the characters a-z, 0-9 and _");
    else if (strcmp(type, CUSTOM) != 0)
        snprintf(ret->program, sizeof(ret->program), "%s", type);
}

static void read_custom(struct fields *in, const struct context_limits *limits,
                        struct tool_call *ret)
{
    json_t *code = call_read_code(in, limits);
    const char *language = field_text(in, "language", SIZE_MAX, "python");

    if (ret->program[0] && (code || strcmp(language, "python") != 0))
        fields_invalid(
            in, "'code' and 'language' are for the analysisType " CUSTOM ": %s has its own program",
            ret->program);
    if (!ret->program[0] && !code)
        field_wrong(in, "'code' is missing, which the analysisType " CUSTOM " needs");
    /* The code must be sent at once, so that no other cell comes between the two cells: see
     * run.c. */
    if (json_string_length(code) > CHAN_WINDOW)
        fields_fail(in, SG_ERR_INVALID, -E2BIG,
                    "the code has %zu bytes: the limit of an analysis is %u",
                    json_string_length(code), CHAN_WINDOW);
    ret->kernel = strcmp(language, "javascript") == 0 ? "javascript" : "python";
    if (strcmp(language, ret->kernel) != 0)
        fields_invalid(in, "unknown language '%.64s' of an analysis: use python or javascript",
                       language);
    ret->code = json_incref(code);
}

static enum tool_format read_format(struct fields *in)
{
    const char *name = field_text(in, "outputFormat", SIZE_MAX, formats[FORMAT_JSON]);

    for (size_t i = 0; i < FORMAT_MAX_; i++)
        if (strcmp(name, formats[i]) == 0)
            return (enum tool_format)i;
    fields_invalid(in, "unknown outputFormat '%.64s': use json, text or csv", name);
    return FORMAT_JSON;
}

int analysis_call_read(const struct context_limits *limits, const json_t *arguments,
                       const struct tool_place *place, struct tool_call *ret, struct sg_error *e)
{
    struct fields in = request_fields(arguments, e);
    struct tool_call c = {0};

    fields_known(&in, "conversationId", "pathId", "analysisType", "parameters", "code", "language",
                 "outputFormat", "timeoutSeconds", "template");
    call_read_place(&in, place, &c);
    read_type(&in, &c);
    read_custom(&in, limits, &c);
    c.format = read_format(&in);
    c.timeout_ms = call_read_timeout(&in, limits);
    read_parameters(&in, &c);
    if (in.r < 0)
        tool_call_done(&c);
    else
        *ret = c;
    return in.r;
}
