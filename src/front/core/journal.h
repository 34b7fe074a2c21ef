/* The journal: what this front knows of sandboxes that nobody else does, their logs and samples, for
 * the front that comes after it.
 *
 * It is a file in memory (memfd) that the warden keeps and gives to each front. Every entry is
 * appended when it comes about, so that a front that is killed leaves all of them. The next one
 * reads it before it hears of the sandboxes, and gives each what is its own:
 *
 *   head | (a hole) | start: the state at some time, entries after it ... | size
 *
 * What is kept of each log is bounded, and so is the journal: when much was appended since the last
 * time, the state as it is now is written behind it, the head is set to that place in one write, and
 * what was before becomes a hole. */
#pragma once

#include "front/core/ended_logs.h"
#include "front/core/sandbox.h"

/* Reads what an earlier front has left, and goes on writing after it. Takes the descriptor over. */
void journal_open(struct front *f, int fd);
/* Moves what was read of a sandbox to its log and its samples, which are empty. */
void journal_give(const char *id, struct sandbox_log *log, struct sandbox_metrics *metrics);
/* Every sandbox that is left is known: forgets what was read of others. */
void journal_settle(void);

/* log->id "": nothing is noted of it. */
void journal_log(const struct sandbox_log *log, const struct log_entry *e);
void journal_metric(const char *id, const struct metric *m);
void journal_ended(const struct ended_log *ended);
