/* Checks whether the processes of this machine's server can start. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "cli/local/doctor.h"
#include "cli/local/server_settings.h"
#include "warden/server.h"
#include "warden/processes/trouble.h"

/* A server notes in its state directory which of its processes cannot start (TROUBLE_NAME). We look
 * in the directory that the settings file and the environment name; a server that was started with
 * --state has another one, and is not seen. */
static void probe_server(struct check_result *r)
{
    AUTO(free_p) struct settings *s = xcalloc(1, sizeof(*s));
    AUTO(free_p) char *text = NULL;
    struct sg_error e = {0};
    char path[SETTINGS_PATH_MAX + sizeof(TROUBLE_NAME) + 1];
    int got;

    if (server_settings(s, &e) < 0) {
        check_warn(r, "a server cannot start: %.120s", e.message);
        check_fix(r, "correct " SERVE_CONFIG " or the environment: see sandglass.conf(5)");
        return;
    }
    snprintf(path, sizeof(path), "%s/" TROUBLE_NAME, s->state);
    got = file_read(AT_FDCWD, path, TROUBLE_MAX, &text, NULL);
    if (got == -ENOENT)
        return check_ok(r, "no trouble reported in %.100s", s->state);
    if (got < 0) {
        check_warn(r, "'%.100s' cannot be read: %s", path, strerror(-got));
        check_fix(r, "run sandglass as root: sudo sandglass doctor");
        return;
    }
    check_warn(r, "the server cannot start its %.*s", (int)strcspn(text, "\n"), text);
    check_fix(r, "correct that; the server tries again by itself, and its log (sandglass logs "
                 "--server) says more");
}

/* A server notes at its start where its sandboxes have their disks. */
static void probe_disks(struct check_result *r)
{
    AUTO(free_p) struct settings *s = xcalloc(1, sizeof(*s));
    AUTO(free_p) char *text = NULL;
    struct sg_error e = {0};
    char path[SETTINGS_PATH_MAX + sizeof(DISKS_NAME) + 1];

    if (server_settings(s, &e) < 0)
        return check_ok(r, "unknown");
    snprintf(path, sizeof(path), "%s/" DISKS_NAME, s->state);
    if (file_read(AT_FDCWD, path, DISKS_MAX, &text, NULL) < 0)
        return check_ok(r, "no server has run in %.100s", s->state);
    text[strcspn(text, "\n")] = '\0';
    if (strncmp(text, "in memory: ", 11) != 0)
        return check_ok(r, "%.150s", text);
    check_warn(r, "in memory, since a server could not have worlds_disk");
    check_fix(r, "%.300s", text + 11);
}

static const struct check checks[] = {{"server", probe_server, NULL},
                                      {"disks of sandboxes", probe_disks, NULL}};

const struct check_group doctor_server = {"Server", checks, ARRAY_SIZE(checks)};
