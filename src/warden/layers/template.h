/* The default template: what every sandbox starts from.
 *
 * Nothing of the host is shown but the programs and data of its /usr, read-only, and of those only
 * the listed directories (stage/root.c). Everything else is ours: the lower layer of the root
 * directory with a synthetic /etc, /home/user, /root, /tmp, /var, /run, links such as bin ->
 * usr/bin, and an own /usr/local with sudo and the kernels in it.
 *
 * It is made once and kept in /var/lib/sandglass. The folder's name carries a hash of all it is
 * made of, so that a change makes a new one. */
#pragma once

#include "lib/base/err.h"

#define TEMPLATE_DIR   "/var/lib/sandglass"
#define TEMPLATE_EMPTY "mnt" /* a folder of it with nothing inside */

struct template
{
    int dir; /* the layer; a shared lock on it keeps others from removing it */
    int host_usr;
};

int template_open(struct template *ret, struct sg_error *e);
void template_close(struct template *t);
