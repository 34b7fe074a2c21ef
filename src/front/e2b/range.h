/* The time that a request for metrics is about: the query's `start` and `end`, in seconds. */
#pragma once

#include "front/e2b/request.h"

struct range {
    int64_t from_ms, to_ms; /* inclusive */
};

/* The fallbacks count for what the query does not say. A mistake is in q->in. */
struct range range_of_request(struct e2b_req *q, int64_t from_ms, int64_t to_ms);
