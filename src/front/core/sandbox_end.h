/* How a sandbox ended: for callers whose calls it cut off, and for those who ask later. */
#pragma once

#include "wire/ends.h"

#define SANDBOX_END_DETAIL 128

struct sandbox_end {
    uint32_t why; /* enum order_end; 0: not ended, or not known */
    char detail[SANDBOX_END_DETAIL];
};

struct sandbox;
struct order_answer;

/* Fills end from the warden's message. */
void sandbox_end_told(struct sandbox_end *end, const struct order_answer *a);
/* Whether the end is news for the user, who neither asked for it nor had to expect it. Then the
 * user is told why. */
bool sandbox_end_is_news(const struct sandbox_end *end);
const char *sandbox_end_text(const struct sandbox_end *end);
/* How a program ended because of the memory limit of the sandbox, in bytes, which itself goes on:
 * "killed: the sandbox reached its memory limit of 512 MiB". exit_status: 0, or that of a shell whose
 * program it was: "exit status 137: a program was killed: ...". Returns buf. */
#define MEMORY_LIMIT_TEXT 128
char *memory_limit_text(uint64_t limit, uint32_t exit_status, char buf[MEMORY_LIMIT_TEXT]);
/* Sets the error for a call that ended with CALL_GONE: it says what became of the sandbox, and its
 * kind says who caused that. */
int sandbox_gone_error(const struct sandbox *b, struct sg_error *e);
