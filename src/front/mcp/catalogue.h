/* Which tools there are. */
#pragma once

#include "lib/text/json.h"
#include "front/mcp/call.h"

const struct mcp_tool *tool_find(const char *name); /* NULL: none */
/* All, as tools/list tells of them. Where the client's configuration says which conversation or
 * path, a language model is not bothered with it. */
void catalogue_write(struct json *j, bool conversation_set, bool path_set);

extern const struct mcp_tool run_code_tool, run_analysis_tool, execute_code_tool, read_file_tool,
    write_file_tool, list_files_tool, list_contexts_tool, end_context_tool;
/* The fields that say where, for schemas. */
void schema_add_place(json_t *properties);
/* An object of such properties; takes them over. `required` ends with NULL. */
json_t *schema_object(json_t *properties, const char *const *required);
json_t *schema_field(const char *type, const char *description);
