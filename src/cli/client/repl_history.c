#include "cli/client/repl_history.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/base.h"

/* Makes each missing directory of the path. */
static void make_directories(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
}

char *repl_history_path(const char *language)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;

    if (state && state[0] == '/')
        n = asprintf(&path, "%s/sandglass/repl_history-%s", state, language);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s/.local/state/sandglass/repl_history-%s", home, language);
    if (n < 0)
        return NULL;
    make_directories(path);
    return path;
}

void repl_history_save(History *h, const char *path)
{
    AUTO(free_p) char *temporary = NULL;
    HistEvent event;

    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return;
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return;
    FILE *file = fdopen(fd, "w");
    if (!file) {
        close(fd);
        unlink(temporary);
        return;
    }
    bool written = history(h, &event, H_SAVE_FP, file) >= 0;
    if (fclose(file) != 0 || !written || rename(temporary, path) < 0)
        unlink(temporary);
}
