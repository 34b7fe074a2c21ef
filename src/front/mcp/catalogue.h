/* The list of tools, and helpers for their schemas. */
#pragma once

#include "lib/text/json.h"
#include "front/mcp/call.h"

const struct mcp_tool *tool_find(const char *name); /* NULL: none */
/* Writes all tools, as tools/list has them. If the client's configuration sets the conversation or
 * the path, the schemas leave it out, so that the language model is not asked for it. */
void catalogue_write(struct json *j, bool conversation_set, bool path_set);

extern const struct mcp_tool run_code_tool, run_analysis_tool, execute_code_tool, read_file_tool,
    write_file_tool, list_files_tool, list_contexts_tool, end_context_tool;
