/* The errors, texts and days that both stores of contexts share. For store/ only. */
#pragma once

#include "front/store/contexts.h"

/* False: the text names no status. */
bool ctx_status_parse(const char *text, enum ctx_status *ret);

/* Fill e with one of the errors that contexts.h lists, and return its code. */
int ctx_error_unavailable(struct sg_error *e, const char *why); /* -EAGAIN */
int ctx_error_tenant_limit(struct sg_error *e, uint32_t limit); /* -EDQUOT */
int ctx_error_conversation_limit(struct sg_error *e, uint32_t limit);
int ctx_error_unknown(struct sg_error *e, const char *id);  /* -ENOENT */
int ctx_error_active(struct sg_error *e, const char *path); /* -EEXIST */
int ctx_error_stale(struct sg_error *e, const char *id);    /* -ESTALE */

/* Makes a text safe to keep as a row's error: one line of at most cap - 1 bytes, cut between
 * characters, without control characters. */
void ctx_clean_text(char *ret, size_t cap, const char *text);

/* The day of a time, in UTC. */
void ctx_day(int64_t ms, char ret[CTX_DAY_LEN + 1]);
