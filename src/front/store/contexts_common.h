/* What the stores of contexts share: how things are said, and texts that are safe to keep. For
 * store/ only. */
#pragma once

#include "front/store/contexts.h"

/* False: it is none. */
bool ctx_status_parse(const char *text, enum ctx_status *ret);

/* The errors that contexts.h lists. Each returns its code. */
int ctx_error_unavailable(struct sg_error *e, const char *why); /* -EAGAIN */
int ctx_error_tenant_limit(struct sg_error *e, uint32_t limit); /* -EDQUOT */
int ctx_error_conversation_limit(struct sg_error *e, uint32_t limit);
int ctx_error_unknown(struct sg_error *e, const char *id);  /* -ENOENT */
int ctx_error_active(struct sg_error *e, const char *path); /* -EEXIST */
int ctx_error_stale(struct sg_error *e, const char *id);    /* -ESTALE */

/* One line of at most cap - 1 bytes, cut between characters, without control characters: what is
 * kept as a row's error. */
void ctx_clean_text(char *ret, size_t cap, const char *text);

/* The day of a time, in UTC. */
void ctx_day(int64_t ms, char ret[CTX_DAY_LEN + 1]);
