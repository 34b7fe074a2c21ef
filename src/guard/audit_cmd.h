/* `sandglass audit`: the record, for the operator. It works on the files, whether a guard writes
 * them or not.
 *
 *   audit_cmd.c       options, and the three actions
 *   audit_cmd_show.c  a record as a line for people */
#pragma once

#include "lib/command/actions.h"

extern const struct cli_syntax audit_tail_syntax, audit_query_syntax, audit_verify_syntax;

/* argv[0] is the verb. The result is the exit status. */
int audit_main(int argc, char **argv);

/* ---- audit_cmd_show.c ------------------------------------------------------------------------ */

enum audit_form { AUDIT_TABLE, AUDIT_COLOURS, AUDIT_JSON };
void audit_show_title(enum audit_form form);
/* A line of the record. What could drive a terminal is shown as '?': files can be anybody's. */
void audit_show(const char *line, size_t len, enum audit_form form);
