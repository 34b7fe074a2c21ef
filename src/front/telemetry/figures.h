/* Figures: counters, gauges and histograms of this server, for Prometheus.
 *
 * One table gives the name, the meaning and the label of each figure; the text of /metrics,
 * docs/observability.md (a test compares) and the dashboard follow it. A figure has at most one
 * label, or two whose names have a colon between them: a value is then "sandbox:timeout", and is
 * divided at the first colon. A label has few values: of values that come from outside (targets of
 * refused connections), FIGURE_VALUES_MAX are kept, and the rest counts as "other". No tenant, id
 * or name of a user is ever a label.
 *
 *   figures.c        the numbers: figure_add and figure_observe allocate for a new label value only
 *   figures_print.c  Prometheus' text form 0.0.4
 *
 * Histograms are in seconds, all with the same buckets: from 0.25 ms to 60 s. In a label's value,
 * invalid UTF-8 is replaced, and everything beyond FIGURE_LABEL_MAX is cut.
 *
 * One thread uses this: the front's loop. Each scrape asks the warden and the guard for the figures
 * that they count themselves (front/core/figures.h). */
#pragma once

#include "lib/text/strbuf.h"

#define FIGURE_VALUES_MAX 200
#define FIGURE_LABEL_MAX  128 /* bytes of a label's value */
#define FIGURES_TEXT_MAX  (4u * 1024 * 1024)
#define FIGURES_PREFIX    "sandglass_"

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
      "A fork, a checkpoint, a snapshot, a rewind, until the copies answer")                       \
    X(REQUESTS, COUNTER, "http_requests_total", "status", "Requests by the class of their status") \
    X(REQUEST_SECONDS, HISTOGRAM, "http_request_seconds", "plane",                                 \
      "Requests until their answer begins; plane: control, data")                                  \
    X(SANDBOXES, GAUGE, "sandboxes", "state", "Sandboxes; state: running, paused, stored")         \
    X(WARDEN_SANDBOXES, COUNTER, "warden_sandboxes_total", "what",                                 \
      "Sandboxes since the server was started; what: made, pooled (made before they were asked "   \
      "for), ended")                                                                               \
    X(POOL, GAUGE, "pool_sandboxes", NULL, "Sandboxes that wait ready")                            \
    X(ZYGOTES, GAUGE, "template_zygotes", NULL,                                                    \
      "Interpreters of templates of which kernels are copied")                                     \
    X(MEMORY_BUDGET, GAUGE, "memory_budget_bytes", "what",                                         \
      "Memory of all sandboxes; what: limit, reserved (for those that run), used (without what "   \
      "can be reclaimed), available (of the machine)")                                             \
    X(MEMORY_PRESSURE, GAUGE, "memory_pressure", NULL,                                             \
      "0: none; 1: pools are dropped; 2: kernels of checkpoints too; 3: creates are refused")      \
    X(MEMORY_RELIEF, COUNTER, "memory_relief_total", "what",                                       \
      "Dropped or refused for lack of memory; what: pool (sandboxes), checkpoint (their "          \
      "kernels), "                                                                                 \
      "create")                                                                                    \
    X(CONTEXTS, GAUGE, "contexts", "state",                                                        \
      "Contexts with a sandbox here; state: creating, running, paused")                            \
    X(CHECKPOINTS, GAUGE, "checkpoints", NULL, "Checkpoints that are kept")                        \
    X(AGENTS, GAUGE, "agents", "state", "Hosted agents; state: running, ended (still listed)")     \
    X(ENDED, COUNTER, "sandbox_ended_total", "why",                                                \
      "Sandboxes that ended; why: killed, expired, "                                               \
      "died, failed, memory, tenant, machine")                                                     \
    X(REAPED, COUNTER, "reaped_total", "what", "Ended by the reaper; what: context, sandbox")      \
    X(FAILURES, COUNTER, "failures_total", "layer:cause",                                          \
      "Operations that failed; layer: whose fault it is, as in the log")                           \
    X(EGRESS_SECONDS, HISTOGRAM, "egress_flow_seconds", NULL,                                      \
      "Connections out, from first to last "                                                       \
      "byte")                                                                                      \
    X(EGRESS_BYTES, COUNTER, "egress_bytes_total", "direction",                                    \
      "Bytes out of and into sandboxes "                                                           \
      "through the guard")                                                                         \
    X(EGRESS_FLOWS, COUNTER, "egress_flows_total", "verdict",                                      \
      "Connections that ended; verdict: allowed, blocked, failed")                                 \
    X(EGRESS_BLOCKED, COUNTER, "egress_blocked_total", "target", "Refused connections by target")  \
    X(DNS, COUNTER, "dns_questions_total", "verdict",                                              \
      "Names that sandboxes asked for; verdict: allowed, blocked")                                 \
    X(SANITISED, COUNTER, "sanitised_total", "kind",                                               \
      "Personal data and secrets replaced in texts, by kind")                                      \
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
    X(RESIDENT, GAUGE, "process_resident_memory_bytes", "process",                                 \
      "Memory of this server's own processes")                                                     \
    X(FDS, GAUGE, "process_open_fds", "process",                                                   \
      "Open descriptors of this server's own processes")                                           \
    X(FDS_MAX, GAUGE, "process_max_fds", "process",                                                \
      "How many descriptors this server's own processes may have")                                 \
    X(STARTED, GAUGE, "process_start_time_seconds", "process",                                     \
      "When this server's own processes were started, since 1970")                                 \
    X(FAULTS, COUNTER, "process_faults_total", "process:reason",                                   \
      "Processes that failed and were replaced; reason: exited, killed, stopped, silent")          \
    X(UP, GAUGE, "up", "process",                                                                  \
      "1: the process has answered this scrape; process: front, warden, guard")                    \
    X(BUILD, GAUGE, "build_info", "version", "Always 1; version: that of this server")

#define FIGURE_ENUM(id, type, name, label, help) FIG_##id,
enum figure { FIGURES(FIGURE_ENUM) FIGURE_MAX_ };

/* label: NULL for a figure without one. */
void figure_add(enum figure f, const char *label, double n);
void figure_set(enum figure f, const char *label, double value);
void figure_observe(enum figure f, const char *label, uint64_t ns);
/* Sets the total so far of a figure that is counted elsewhere. */
void figure_total(enum figure f, const char *label, double value);
/* Leaves the figure out until it is set again, since its value is not known now. */
void figure_forget(enum figure f, const char *label);

/* Prints all figures in Prometheus' text form 0.0.4; `out` has room for FIGURES_TEXT_MAX. */
void figures_print(struct strbuf *out);
