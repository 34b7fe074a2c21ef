/* The default template: the files that every sandbox starts from.
 *
 * Sandboxes see nothing of the host but the programs and data of its /usr, read-only, and of those
 * only the listed directories (inside/stage/root.c). Everything else is made here: the lower layer
 * of the root directory with a synthetic /etc, /home/user, /root, /tmp, /var, /run, links such as
 * bin -> usr/bin (template/manifest), and its own /usr/local with sudo and the kernels in it.
 *
 * Sandboxes with a world of their own (world.h) see nothing of the host. Over their world they have
 * the *fixtures*: that part of the template which every sandbox needs, such as sudo, the kernels and
 * the mount points.
 *
 * The template is made once and kept in /var/lib/sandglass. Its directory's name contains a hash of
 * all that it is made of, so that any change makes a new template. In it are `root` and
 * `fixtures`. */
#pragma once

#include "lib/base/err.h"
#include "warden/host/images.h"

struct domain;

#define TEMPLATE_DIR   "/var/lib/sandglass"
#define TEMPLATE_EMPTY "mnt" /* an empty directory in it */
/* Its list of fonts (template_fonts.h) is made with this. */
#define TEMPLATE_FONTS_MODULE "/usr/lib/python3/dist-packages/matplotlib/font_manager.py"

struct template
{
    int lock;          /* its directory; a shared lock on it prevents its removal */
    int dir, fixtures; /* the layers */
    int host_usr;
};

#define TEMPLATE_NONE                                         \
    {                                                         \
        .lock = -1, .dir = -1, .fixtures = -1, .host_usr = -1 \
    }
#define TEMPLATE_ROOT     "root"
#define TEMPLATE_FIXTURES "fixtures"

/* One entry of the pack (warden/host/images.h). */
struct template_packed {
    struct template_entry entry;
    char path[256];
    const char *data;
};
/* Moves *at to the next entry, from NULL to the first; false at the end. */
bool template_next(const uint8_t **at, struct template_packed *ret);

/* If there is none, a child makes it: one that is nobody on the host, but root of the domain's user
 * namespace. */
int template_open(const struct domain *d, struct template *ret, struct sg_error *e);
/* Opens the one that this server's sandboxes have. -ENOENT: none has been made yet. */
int template_open_made(struct template *ret, struct sg_error *e);
void template_close(struct template *t);
