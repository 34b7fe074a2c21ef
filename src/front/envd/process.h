/* The parts of the process service. */
#pragma once

#include "front/envd/service.h"

/* Writes into `request` which process a message is about: pid u32, tag str. False: the call has
 * failed. */
bool process_selector(struct rpc_call *c, json_t *message, struct strbuf *request);

/* process_stream.c */
void process_stream_start(struct rpc_call *c, json_t *message);
void process_stream_connect(struct rpc_call *c, json_t *message);
/* process_input.c */
void process_send_input(struct rpc_call *c, json_t *message);
void process_close_stdin(struct rpc_call *c, json_t *message);
void process_stream_input(struct rpc_call *c, json_t *message);

/* process_status.c: how a process ended, as a canonical EndEvent, in the words that Go uses.
 * memory_limit: that ended it, or 0. */
json_t *process_end_event(bool killed, uint32_t code, uint64_t memory_limit);
