/* The result of a run, as content.
 *
 * Output and errors are text. A model gets the form of a result that says most to it: a picture as
 * a picture, otherwise the text. Forms for programs only, such as a chart's numbers or a PDF, come
 * as resources. The same answer as data has all forms except those that would be there twice. */
#pragma once

#include "front/mcp/result.h"
#include "front/tools/tools.h"

#define SHOWN_SHORT_MAX (256u * 1024) /* bytes of one text, if the whole answer would be too long */

void shown_run(struct result *ret, enum mcp_version version, enum tool t,
               const struct tool_result *r);
/* Adds the output of a program; adds nothing if there is none. max: bytes of each stream. */
void shown_output(struct result *ret, const struct strbuf *out, bool out_cut,
                  const struct strbuf *err, bool err_cut, size_t max);
