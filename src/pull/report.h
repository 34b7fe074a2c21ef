/* What this program says: one JSON object a line on standard output.
 *
 *   {"progress":{"layer":2,"of":5,"bytes":1048576,"total":5242880}}    at most five a second
 *   {"layer":{"layer":2,"of":5,"digest","diffId"}}                     it is there, in its order
 *   {"waiting":{"milliseconds":2000,"why":"..."}}                      before something is tried again
 *   {"result":{"digest","configDigest","architecture","config":{"Env","WorkingDir","User",
 *     "Entrypoint","Cmd"},"layers":[{"digest","mediaType","size","diffId"}]}}
 *   {"error":{"code":"not_found","message":"one line"}}
 *
 * The last line is a result or an error. No line has anything of a credential in it. */
#pragma once

#include "pull/manifest.h"

struct report {
    size_t layer, of;
    uint64_t total;
    uint64_t told_ns; /* when the last progress was */
};

/* Return -EPIPE if nobody reads any more. */
int report_layer(struct report *r, size_t layer, size_t of, uint64_t total);
int report_progress(struct report *r, uint64_t bytes);
int report_ready(size_t i, const struct manifest *m, const struct config *c);
int report_waiting(uint64_t ms, const char *why);
int report_result(const struct manifest *m, const struct config *c, struct sg_error *e);
void report_error(const struct sg_error *e);
