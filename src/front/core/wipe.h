/* What clients send as JSON may be secret: variables, tokens, passwords, secrets. */
#pragma once

/* From now on memory that jansson gives back is wiped. Before its first use. */
void wipe_json_memory(void);
