/* A PostgreSQL for a test (tests/postgres), and stores on it, each with a database worker of its
 * own. */
#pragma once

#include "ctx_rig.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "front/main/confine.h"
#include "front/store/dbworker.h"
#include "front/store/dbworker_process.h"

#define PG_URI_MAX 400

struct pg_server {
    char dir[64];
    char uri[PG_URI_MAX];    /* over the loopback, with a password */
    char socket[PG_URI_MAX]; /* the same role, over the socket in dir */
};

/* Runs tests/postgres with these arguments. What it prints is returned, up to cap. */
static inline int pg_script(char *ret, size_t cap, const char *const *args)
{
    int out[2], status = -1;

    if (pipe(out) < 0)
        rig_bail("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        const char *argv[16] = {SG_SOURCE_DIR "/tests/postgres"};

        for (size_t i = 0; args[i] && i < 14; i++)
            argv[i + 1] = args[i];
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execv(argv[0], (char **)(uintptr_t)argv);
        _exit(127);
    }
    close(out[1]);
    size_t len = 0;
    ssize_t got;
    char rest[256];
    while ((got = len + 1 < cap ? read(out[0], ret + len, cap - 1 - len)
                                : read(out[0], rest, sizeof(rest))) > 0)
        len += len + 1 < cap ? (size_t)got : 0;
    close(out[0]);
    if (cap > 0) {
        ret[len] = '\0';
        ret[strcspn(ret, "\n")] = '\0';
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define PG_SCRIPT(ret, cap, ...) pg_script(ret, cap, (const char *const[]){__VA_ARGS__, NULL})

/* One for all cases, removed when the test ends, however that is. */
static inline const struct pg_server *pg_server(void)
{
    static struct pg_server server;
    char pid[16];

    if (server.uri[0])
        return &server;
    snprintf(server.dir, sizeof(server.dir), "/tmp/test_pg.XXXXXX");
    snprintf(pid, sizeof(pid), "%d", getpid());
    if (!mkdtemp(server.dir) ||
        PG_SCRIPT(server.uri, sizeof(server.uri), "start", server.dir, pid) != 0)
        rig_bail("PostgreSQL does not start");
    const char *port = strrchr(server.uri, ':') + 1;
    snprintf(server.socket, sizeof(server.socket),
             "postgresql://sandglass@/sandglass?host=%s&port=%.*s", server.dir,
             (int)strcspn(port, "/"), port);
    return &server;
}

/* As the superuser; the first line of the answer. */
static inline const char *pg_sql(const char *sql)
{
    static char line[512];

    EXPECT(PG_SCRIPT(line, sizeof(line), "psql", pg_server()->dir, "-tAc", sql) == 0);
    return line;
}

/* ---- clerks ---------------------------------------------------------------------------------- */

static char pg_logged[64 * 1024]; /* all lines that clerks had for the log */
static int pg_gone;

static inline void pg_log(bool bad, const char *line)
{
    size_t len = strlen(pg_logged);

    snprintf(pg_logged + len, sizeof(pg_logged) - len, "%s %s\n", bad ? "bad" : "good", line);
    pg_gone += strstr(line, "the clerk, which speaks with the database,") != NULL;
}

/* As the warden does it, but that there is none: it ends with its front. Returns our end. */
static inline int pg_dbworker_process(pid_t *ret_pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        rig_bail("no socket pair");
    *ret_pid = fork();
    if (*ret_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(pair[1], 3);
        sys_close_range(4, UINT32_MAX, 0);
        signal(SIGPIPE, SIG_IGN);
        dbworker_process(-1, 3, confine_dbworker);
    }
    close(pair[1]);
    return pair[0];
}

static inline struct dbworker *pg_dbworker(uv_loop_t *loop, const char *uri)
{
    struct dbworker *c = dbworker_new(loop, pg_log);
    pid_t pid;

    dbworker_set_socket(c, pg_dbworker_process(&pid));
    dbworker_connect(c, uri);
    return c;
}

static inline struct ctx_store *pg_store(uv_loop_t *loop, const char *uri)
{
    return ctx_store_postgres(loop, pg_dbworker(loop, uri));
}

static inline void pg_store_close(struct ctx_store *s, uv_loop_t *loop)
{
    s->ops->close(s);
    uv_run(loop, UV_RUN_DEFAULT);
}
