/* What every store of contexts must do. A test names a kind, says how it is opened and closed, and
 * has all the cases:
 *
 *   static struct ctx_store *file_open(uv_loop_t *loop) { ... }
 *   static void file_close(struct ctx_store *s, uv_loop_t *loop) { ... }
 *   CTX_CONFORMANCE(file)
 *
 * A case uses a tenant and servers of its own, so that the database may have rows of others. */
#pragma once

#include "ctx_cases_claim.h"
#include "ctx_cases_life.h"
#include "ctx_cases_many.h"

#define CTX_CASES(X, kind)   \
    CTX_CASES_CLAIM(X, kind) \
    CTX_CASES_LIFE(X, kind)  \
    CTX_CASES_MANY(X, kind)

#define CTX_CASE(kind, name)                             \
    TEST(kind##_##name)                                  \
    {                                                    \
        rig_run(kind##_open, kind##_close, case_##name); \
    }

#define CTX_CONFORMANCE(kind) CTX_CASES(CTX_CASE, kind)
