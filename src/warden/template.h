/* The default template: what every sandbox starts from.
 *
 * Nothing of the host is shown but a list of directories of its /usr. Everything else is ours: a
 * small root directory with a synthetic /etc, made once per version and kept in /var/lib/sandglass.
 *
 *   root/   lower layer of /      etc, home/user, root, tmp, var, run, ... and links such as bin ->
 * usr/bin usr/    upper of two lower layers of /usr: sudo, whiteouts over what is not on the list,
 * an empty /usr/local. The other is the host's /usr itself.
 *
 * The folder's name carries a hash of all it is made of, and the identity and modification time of
 * the host's /usr directory: when an entry appears there, the name changes and the template is made
 * anew, so the list holds. */
#pragma once

#include "base/err.h"

#define TEMPLATE_DIR "/var/lib/sandglass"

struct template
{
    int dir; /* with root/ and usr/ in it; a shared lock on it keeps others from removing it */
    int host_usr;
};

int template_open(struct template *ret, struct sg_error *e);
void template_close(struct template *t);
