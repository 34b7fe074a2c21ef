/* The field volumeMounts of a create: [{"name", "path", "readOnly"}], where readOnly is ours. */
#pragma once

#include "front/e2b/field.h"

/* A new array for struct sandbox_spec, without ids; NULL: nothing is mounted, or an error. A path
 * must not hide what a sandbox needs. */
json_t *volume_mounts_parse(struct fields *in);
