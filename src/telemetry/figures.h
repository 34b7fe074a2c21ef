/* Figures: counters, gauges and histograms of this server, for Prometheus (T2).
 *
 * One table says of each how it is called, what it is and what its label is called; the text of
 * /metrics, docs/observability.md (a test compares) and the dashboard follow it. A figure has at
 * most one label, and a label's values are few: those that come from outside (targets of refused
 * connections) are kept up to FIGURE_VALUES_MAX of them, the rest counts as "other". No tenant, id
 * or name of a user is ever a label.
 *
 * Histograms are in seconds, with the same buckets for all of a kind: from 0.25 ms to 60 s.
 *
 * One thread: the front's loop. What warden and guard count themselves is asked of them for each
 * scrape (front/figures.h). */
#pragma once

#include "base/strbuf.h"

#define FIGURE_VALUES_MAX 200

enum figure_type { FIGURE_COUNTER, FIGURE_GAUGE, FIGURE_HISTOGRAM };

/* id, type, name (without sandglass_), label or NULL, help */
#define FIGURES(X)                                                                                 \
    X(CREATE, HISTOGRAM, "sandbox_create_seconds", "from",                                         \
      "Making a sandbox, until its agent answers; from: pool, template, snapshot, checkpoint")     \
    X(RECONNECT, HISTOGRAM, "sandbox_reconnect_seconds", "from",                                   \
      "Finding the sandbox of a client that comes back; from: running, paused, stored")            \
    X(EXECUTE, HISTOGRAM, "execute_seconds", "kind",                                               \
      "A cell or a program, from start to end; kind: cell, process, tool")                         \
    X(PAUSE, HISTOGRAM, "sandbox_pause_seconds", "kind", "Pausing; kind: memory, files")           \
    X(FORK, HISTOGRAM, "sandbox_fork_seconds", "kind",                                             \
      "A fork, a checkpoint, a rewind, until the copies answer")                                   \
    X(REQUESTS, COUNTER, "http_requests_total", "status", "Requests by the class of their status") \
    X(REQUEST_SECONDS, HISTOGRAM, "http_request_seconds", "plane",                                 \
      "Requests until their answer begins; plane: control, data")                                  \
    X(SANDBOXES, GAUGE, "sandboxes", "state", "Sandboxes; state: running, paused, stored")         \
    X(POOL, GAUGE, "pool_sandboxes", NULL, "Sandboxes that wait ready")                            \
    X(CONTEXTS, GAUGE, "contexts", "state", "Contexts by state")                                   \
    X(CHECKPOINTS, GAUGE, "checkpoints", NULL, "Checkpoints that are kept")                        \
    X(AGENTS, GAUGE, "agents", "state", "Hosted agents by state")                                  \
    X(ENDED, COUNTER, "sandbox_ended_total", "why",                                                \
      "Sandboxes that ended; why: killed, expired, "                                               \
      "died, failed")                                                                              \
    X(REAPED, COUNTER, "reaped_total", "what", "Ended by the reaper; what: context, sandbox")      \
    X(FAILURES, COUNTER, "failures_total", "cause", "Operations that failed, as layer:cause")      \
    X(EGRESS_SECONDS, HISTOGRAM, "egress_flow_seconds", NULL,                                      \
      "Connections out, from first to last "                                                       \
      "byte")                                                                                      \
    X(EGRESS_BYTES, COUNTER, "egress_bytes_total", "direction",                                    \
      "Bytes out of and into sandboxes "                                                           \
      "through the guard")                                                                         \
    X(EGRESS_FLOWS, COUNTER, "egress_flows_total", "verdict", "Connections that were judged")      \
    X(EGRESS_BLOCKED, COUNTER, "egress_blocked_total", "target", "Refused connections by target")  \
    X(SANITISED, COUNTER, "sanitised_total", "kind", "What was taken out of texts, by kind")       \
    X(SPANS, COUNTER, "trace_spans_total", "fate", "Spans; fate: sent, dropped, refused")          \
    X(EVENTS, COUNTER, "events_total", "kind", "Lifecycle events by kind")                         \
    X(WEBHOOKS, COUNTER, "webhook_posts_total", "fate",                                            \
      "Webhooks; fate: delivered, retried, "                                                       \
      "given up")                                                                                  \
    X(LOG_LINES, COUNTER, "log_lines_total", "fate",                                               \
      "Lines of the log; fate: written, suppressed")                                               \
    X(CPU, COUNTER, "process_cpu_seconds_total", "process",                                        \
      "Processor time of this server's own "                                                       \
      "processes")                                                                                 \
    X(RESIDENT, GAUGE, "process_resident_bytes", "process", "Memory of them")                      \
    X(FDS, GAUGE, "process_open_fds", "process", "Open descriptors of them")                       \
    X(STARTED, GAUGE, "process_start_time_seconds", "process", "When they were started")

#define FIGURE_ENUM(id, type, name, label, help) FIG_##id,
enum figure { FIGURES(FIGURE_ENUM) FIGURE_MAX_ };

/* label NULL where the figure has none. */
void figure_add(enum figure f, const char *label, double n);
void figure_set(enum figure f, const char *label, double value);
void figure_observe(enum figure f, const char *label, uint64_t ns);
/* Counted elsewhere: the value so far. */
void figure_total(enum figure f, const char *label, double value);
/* All of them, in Prometheus' text form 0.0.4. */
void figures_print(struct strbuf *out);
