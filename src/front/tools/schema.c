/* The descriptions and schemas of the tools, for language models. */
#include <assert.h>
#include <string.h>

#include "front/e2b/request.h"
#include "front/tools/tools.h"

#define PLACE                                                                    \
    "\"conversationId\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256," \
    "\"description\":\"The conversation.\"},"                                    \
    "\"pathId\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256,"         \
    "\"description\":\"The path of the conversation. Each has a sandbox of its own.\"}"

/* Only the application knows which message a call belongs to: a model does not. */
#define MESSAGE                                                                             \
    "\"messageId\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256,"                 \
    "\"description\":\"Set by the application, not by a model: the message that this call " \
    "belongs to. A checkpoint is left before it, to go back to.\"}"

#define TIMEOUT                                                                               \
    "\"timeoutSeconds\":{\"type\":\"number\",\"exclusiveMinimum\":0,"                         \
    "\"description\":\"How long the code may run, in seconds.\"},"                            \
    "\"template\":{\"type\":\"string\",\"description\":\"What a new sandbox is made of. Not " \
    "needed.\"}"

static const struct {
    const char *name, *description, *schema;
} tools[] = {
    [TOOL_RUN_CODE] =
        {
            "run_code",
            "Runs code in the sandbox of this conversation path and returns what it printed, its "
            "results (text, tables, images, charts) and its error, if there was one. Variables, "
            "files and processes are kept from one call to the next. The value of the last "
            "expression is a result. There is no access to the user's computer.",
            "{\"type\":\"object\",\"properties\":{" PLACE "," MESSAGE ","
            "\"code\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The code to run.\"},"
            "\"language\":{\"type\":\"string\",\"enum\":[" LANGUAGES_JSON
            "],\"default\":\"python\",\"description\":\"Its language. Each has "
            "variables of its own, and all see the same files.\"},"
            "\"envs\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"},"
            "\"description\":\"Environment variables of this run only.\"}," TIMEOUT "},"
            "\"required\":[\"conversationId\",\"pathId\",\"code\"],"
            "\"additionalProperties\":false}",
        },
    [TOOL_RUN_ANALYSIS] =
        {
            "run_analysis",
            "Runs an analysis with parameters in the sandbox of this conversation path and returns "
            "its output, also parsed by the declared format. data_analysis: statistics, groups and "
            "correlations of records. tax_calculation: tax by progressive brackets. "
            "compliance_check: rules over records, with what violates them. custom: your own code, "
            "which finds the parameters in the variable `parameters` and prints its output.",
            "{\"type\":\"object\",\"properties\":{" PLACE ","
            "\"analysisType\":{\"type\":\"string\",\"pattern\":\"^[a-z0-9_]{1,64}$\","
            "\"examples\":[\"data_analysis\",\"tax_calculation\",\"compliance_check\","
            "\"custom\"],\"description\":\"data_analysis, tax_calculation, compliance_check, "
            "custom, "
            "or another program that the server has.\"},"
            "\"parameters\":{\"description\":\"Any JSON value: what the analysis works on. "
            "data_analysis: {records: [{...}], columns?, groupBy?, correlations?}. "
            "tax_calculation: {income, brackets: [{upTo, rate}], deductions?, credits?, "
            "decimals?}. compliance_check: {records: [{...}], rules: [{id, field, check, value?, "
            "severity?}]}.\"},"
            "\"code\":{\"type\":\"string\",\"minLength\":1,\"description\":\"For custom: the code "
            "to run.\"},"
            "\"language\":{\"type\":\"string\",\"enum\":[\"python\",\"javascript\"],"
            "\"default\":\"python\",\"description\":\"For custom: the language of the code.\"},"
            "\"outputFormat\":{\"type\":\"string\",\"enum\":[\"json\",\"text\",\"csv\"],"
            "\"default\":\"json\",\"description\":\"How the output is to be parsed.\"}," TIMEOUT
            "},\"required\":[\"conversationId\",\"pathId\",\"analysisType\"],"
            "\"additionalProperties\":false}",
        },
};
_Static_assert(ARRAY_SIZE(tools) == TOOL_MAX_, "an entry for each tool");

const char *tool_name(enum tool t)
{
    return tools[t].name;
}

const char *tool_description(enum tool t)
{
    return tools[t].description;
}

json_t *tool_schema(enum tool t)
{
    json_t *schema = json_loads(tools[t].schema, JSON_REJECT_DUPLICATES, NULL);

    assert(schema);
    return schema;
}

void tool_schema_bind(json_t *schema, const char *property)
{
    json_t *required = json_object_get(schema, "required");
    json_t *name;
    size_t i;

    json_object_del(json_object_get(schema, "properties"), property);
    json_array_foreach(required, i, name)
    {
        if (strcmp(json_string_value(name), property) == 0) {
            json_array_remove(required, i);
            return;
        }
    }
}

/* ---- GET /v1/tools --------------------------------------------------------------------------- */

static const struct form {
    const char *name, *schema; /* schema: the key of the schema; NULL: it is in a "function" */
} forms[] = {{"mcp", "inputSchema"}, {"openai", NULL}, {"anthropic", "input_schema"}};

/* Takes over the schema. */
static json_t *in_form(const struct form *f, enum tool t, json_t *schema)
{
    json_t *tool = json_pack("{s:s, s:s, s:o}", "name", tools[t].name, "description",
                             tools[t].description, f->schema ? f->schema : "parameters", schema);

    return f->schema ? tool : json_pack("{s:s, s:o}", "type", "function", "function", tool);
}

static json_t *list_of(struct http_req *req, const struct form *form)
{
    static const char *const bindable[] = {"conversationId", "pathId", "messageId"};
    json_t *list = json_array();

    for (int t = 0; t < TOOL_MAX_; t++) {
        json_t *schema = tool_schema((enum tool)t);

        for (size_t i = 0; i < ARRAY_SIZE(bindable); i++)
            if (http_query_has(req, bindable[i]))
                tool_schema_bind(schema, bindable[i]);
        /* An application that names the path names the message, too: the model is not asked for
         * it. */
        if (http_query_has(req, "pathId"))
            tool_schema_bind(schema, "messageId");
        json_array_append_new(list, in_form(form, (enum tool)t, schema));
    }
    return list;
}

static json_t *listing(struct http_req *req, const char *format)
{
    json_t *all = format ? NULL : json_object();

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        if (!format)
            json_object_set_new(all, forms[i].name, list_of(req, &forms[i]));
        else if (strcmp(format, forms[i].name) == 0)
            return list_of(req, &forms[i]);
    }
    return all;
}

/* A conversation or path that a schema is bound to must be a name that calls accept. */
static int check_bound(struct http_req *req, const char *name, struct sg_error *e)
{
    const char *value = http_query_get(req, name);

    return http_query_has(req, name) ? context_name_check(name, value ? value : "", e) : 0;
}

void tools_list(struct http_req *req)
{
    struct sg_error e;

    if (check_bound(req, "conversationId", &e) < 0 || check_bound(req, "pathId", &e) < 0 ||
        check_bound(req, "messageId", &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    json_t *all = listing(req, http_query_get(req, "format"));
    if (!all) {
        reply_error(req, 400, "unknown format: use mcp, openai or anthropic");
        return;
    }
    AUTO(free_p) char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    http_reply(req, 200, "application/json", text, strlen(text));
}
