#include "front/mcp/catalogue.h"

#include <string.h>

#define CONVERSATION "conversationId"
#define PATH         "pathId"
#define MESSAGE      "messageId"

static const struct mcp_tool *const tools[] = {
    &run_code_tool,   &run_analysis_tool, &execute_code_tool,  &read_file_tool,
    &write_file_tool, &list_files_tool,   &list_contexts_tool, &end_context_tool,
};

const struct mcp_tool *tool_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        if (strcmp(tools[i]->name, name) == 0)
            return tools[i];
    return NULL;
}

/* ---- schemas --------------------------------------------------------------------------------- */

static json_t *schema_of_fields(const struct mcp_field *f)
{
    json_t *properties = json_object(), *required = json_array();

    for (; f->name; f++) {
        json_t *one = json_pack("{s:s, s:s}", "type", f->type, "description", f->description);

        if (f->values)
            json_object_set_new(one, "enum", json_loads(f->values, 0, NULL));
        json_object_set_new(properties, f->name, one);
        if (f->required)
            json_array_append_new(required, json_string(f->name));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", 0);
}

static void remove_required(json_t *schema, const char *name)
{
    json_t *required = json_object_get(schema, "required");

    for (size_t i = json_array_size(required); i > 0; i--)
        if (strcmp(json_string_value(json_array_get(required, i - 1)), name) == 0)
            json_array_remove(required, i - 1);
}

/* The schema of a tool. Conversation and path have defaults, so neither is required. */
static json_t *schema_of(const struct mcp_tool *t, bool conversation_set, bool path_set)
{
    json_t *schema = t->fields   ? schema_of_fields(t->fields)
                     : t->schema ? t->schema()
                                 : tool_schema(t->runs);

    remove_required(schema, CONVERSATION);
    remove_required(schema, PATH);
    if (conversation_set)
        tool_schema_bind(schema, CONVERSATION);
    /* A client that sets the path also names the message, with each call. */
    if (path_set) {
        tool_schema_bind(schema, PATH);
        tool_schema_bind(schema, MESSAGE);
    }
    return schema;
}

/* ---- the list -------------------------------------------------------------------------------- */

void catalogue_write(struct json *j, bool conversation_set, bool path_set)
{
    jw_array_begin(j);
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        const struct mcp_tool *t = tools[i];
        json_t *schema = schema_of(t, conversation_set, path_set);
        AUTO(free_p) char *text = json_dumps(schema, JSON_COMPACT);

        json_decref(schema);
        jw_object_begin(j);
        jw_string(jw_key(j, "name"), t->name);
        jw_string(jw_key(j, "title"), t->title);
        jw_string(jw_key(j, "description"),
                  t->description ? t->description : tool_description(t->runs));
        jw_raw(jw_key(j, "inputSchema"), text, strlen(text));
        jw_object_begin(jw_key(j, "annotations"));
        jw_bool(jw_key(j, "readOnlyHint"), t->reads_only);
        jw_bool(jw_key(j, "destructiveHint"), t->destroys);
        jw_bool(jw_key(j, "idempotentHint"), t->repeatable);
        jw_bool(jw_key(j, "openWorldHint"), t->reaches_out);
        jw_object_end(j);
        jw_object_end(j);
    }
    jw_array_end(j);
}
