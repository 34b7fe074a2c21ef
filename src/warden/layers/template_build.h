/* Makes the default template (template.h), in a child that is root of a user namespace alone. */
#pragma once

#include "warden/layers/template.h"

/* Builds the template under another name and renames it, so that it is complete or absent. If two
 * processes race, one of them wins. Removes templates of earlier versions that nobody uses. top:
 * TEMPLATE_DIR, mapped for the namespace. */
int template_build(int top, const char *name, struct sg_error *e);
