/* The synthetic root directory: the tables that template.c makes it from. */
#pragma once

#include <sys/types.h>

#include "lib/base/base.h"

struct template_dir {
    const char *path;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};
struct template_file {
    const char *path;
    const char *text;
    mode_t mode;
    uid_t uid;
    gid_t gid;
};
struct template_link {
    const char *path, *to;
};

extern const struct template_dir template_dirs[];
extern const size_t template_n_dirs;
extern const struct template_file template_files[];
extern const size_t template_n_files;
extern const struct template_link template_links[];
extern const size_t template_n_links;
/* Files and directories of the host that are copied if they exist: caches and data of programs in
 * /usr. */
extern const char *const template_copies[];
extern const size_t template_n_copies;
