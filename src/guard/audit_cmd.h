/* `sandglass audit`: shows the record to the operator. It reads the files, whether a guard writes
 * them at the time or not.
 *
 *   audit_cmd.c       options, and the three actions
 *   audit_cmd_show.c  a record as a line for people */
#pragma once

#include "lib/command/actions.h"

extern const struct cli_syntax audit_tail_syntax, audit_query_syntax, audit_verify_syntax;

/* argv[0] is the verb. Returns the exit status. */
int audit_main(int argc, char **argv);

/* ---- audit_cmd_show.c ------------------------------------------------------------------------ */

enum audit_form { AUDIT_TABLE, AUDIT_COLOURS, AUDIT_JSON };
void audit_show_title(enum audit_form form);
/* Shows a line of the record. Bytes that could control a terminal are shown as '?', because anybody
 * may have written the file. */
void audit_show(const char *line, size_t len, enum audit_form form);
