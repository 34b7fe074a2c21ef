/* The default template: what every sandbox starts from.
 *
 * Nothing of the host is shown but a list of directories of its /usr. The template is one layer
 * over that: it hides what is not on the list (whiteouts, an empty local/), adds bin/sudo, and
 * carries in .sandbox/ what becomes the root directory: a synthetic etc, home/user, root, tmp, var,
 * run, ... and links such as bin -> usr/bin. So one overlay does for / and for /usr: its folder
 * .sandbox is mounted as /, and its own root as /usr in it.
 *
 * It is made once and kept in /var/lib/sandglass. The folder's name carries a hash of all it is
 * made of, and the identity and modification time of the host's /usr directory: when an entry
 * appears there, the name changes and the template is made anew, so the list holds. */
#pragma once

#include "base/err.h"

#define TEMPLATE_DIR  "/var/lib/sandglass"
#define TEMPLATE_ROOT ".sandbox" /* stage/root.c knows it as well */

struct template
{
    int dir; /* the layer; a shared lock on it keeps others from removing it */
    int host_usr;
};

int template_open(struct template *ret, struct sg_error *e);
void template_close(struct template *t);
