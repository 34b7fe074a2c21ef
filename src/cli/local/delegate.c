#include "cli/local/delegate.h"

#include "lib/command/exit_status.h"
#include "lib/command/ui.h"

#include <limits.h>

#define WHERE "/../libexec/sandglass/"

int delegate_path(const char *name, char *buf, size_t cap)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n < 0)
        return -errno;
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    if ((size_t)snprintf(buf, cap, "%s" WHERE "%s", self, name) >= cap)
        return -ENAMETOOLONG;
    return 0;
}

int delegate(const char *name, char **argv)
{
    AUTO(free_p) char **args = NULL;
    char path[PATH_MAX];
    size_t n = 0;
    int r = delegate_path(name, path, sizeof(path));

    if (r < 0) {
        ui_error("cannot find '%s': %s", name, strerror(-r));
        return CLI_EXIT_SETUP;
    }
    while (argv[n])
        n++;
    args = xcalloc(n + 2, sizeof(*args));
    args[0] = path;
    memcpy(args + 1, argv, n * sizeof(*args));
    execv(path, args);
    ui_error("cannot start '%s': %s (it comes with sandglass: install all of it)", path,
             strerror(errno));
    return CLI_EXIT_SETUP;
}
