/* The default template: the files that every sandbox starts from.
 *
 * Sandboxes see nothing of the host but the programs and data of its /usr, read-only, and of those
 * only the listed directories (inside/stage/root.c). Everything else is made here: the lower layer
 * of the root directory with a synthetic /etc, /home/user, /root, /tmp, /var, /run, links such as
 * bin -> usr/bin (template/manifest), and its own /usr/local with sudo and the kernels in it.
 *
 * The template is made once and kept in /var/lib/sandglass. Its directory's name contains a hash of
 * all that it is made of, so that any change makes a new template. */
#pragma once

#include "lib/base/err.h"

#define TEMPLATE_DIR   "/var/lib/sandglass"
#define TEMPLATE_EMPTY "mnt" /* an empty directory in it */

struct template
{
    int dir; /* the layer; a shared lock on it prevents its removal */
    int host_usr;
};

int template_open(struct template *ret, struct sg_error *e);
void template_close(struct template *t);
