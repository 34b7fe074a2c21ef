/* What came of a run, as content.
 *
 * Output and errors are text. Of a result a model gets the form that says most to it: a picture as
 * a picture, otherwise its text; what only programs understand, a chart's numbers or a PDF, comes
 * as a resource. The same answer as data has all forms but those that would be there twice. */
#pragma once

#include "front/mcp/result.h"
#include "front/tools/tools.h"

#define SHOWN_SHORT_MAX (256u * 1024) /* of one text, in an answer that would be too long */

void shown_run(struct result *ret, enum mcp_version version, enum tool t,
               const struct tool_result *r);
/* What a program wrote; nothing if that is nothing. max: bytes of each. */
void shown_output(struct result *ret, const struct strbuf *out, bool out_cut,
                  const struct strbuf *err, bool err_cut, size_t max);
