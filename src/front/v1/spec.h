/* Reads the sandbox that a body asks for, with `template`, `metadata`, `envs` and `network`. */
#pragma once

#include "front/e2b/request.h"

/* A context_spec; `arg` is an e2b_req with a body. A template in the context's row wins over the
 * body's. */
int spec_of_body(void *arg, const char *template_id, struct sandbox_spec *ret,
                 char snapshot[ID_LEN + 1], struct sg_error *e);
/* Checks that a sandbox could be made from the body. Also for a path that has its sandbox already,
 * which must not hide a mistake. */
void spec_check(struct e2b_req *q);
