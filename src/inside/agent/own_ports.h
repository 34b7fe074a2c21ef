/* The ports of a sandbox that the server itself answers from outside: 49983 and 49999. At E2B a
 * program inside listens on each, and programs inside ask whether it is well (`curl
 * localhost:49999/health`, wait_for_url of a template). So the agent listens there, on the loopback
 * of the sandbox, and answers GET /health; any other request is told where its answer is to be had.
 *
 * The two sockets are made when the first program or cell is about to run: a sandbox that waits in a
 * pool has none. A request is read up to the end of its first line, and nothing else of it is kept.
 * Everybody inside may send whatever they like, so there are at most OWN_PORTS_CALLERS connections,
 * each for OWN_PORTS_CALL_MS; more wait in the queue of the socket. */
#pragma once

#define OWN_PORTS_CALLERS  16
#define OWN_PORTS_CALL_MS  3000
#define OWN_PORTS_LINE_MAX 1024

struct agent;
struct own_ports;

/* Listens, if this is the first call. If a port is taken already, it stays with whoever has it. */
void own_ports_open(struct agent *a);
void own_ports_done(struct agent *a);
