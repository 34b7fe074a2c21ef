/* Wipes JSON from memory: clients send variables, tokens, passwords and secrets as JSON. */
#pragma once

/* From now on, memory that jansson frees is wiped first. Call this before the first use of
 * jansson. */
void wipe_json_memory(void);
