/* Verbs on a state directory of their own, as a server would have made it: `sandglass key` and
 * `sandglass tenant`. */
#pragma once

#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/command/options.h"

#define MANAGE_OWNER    4242u
#define MANAGE_TEXT_MAX (1u << 20)

struct outcome {
    int status;
    char out[8192], err[2048];
};

static char state[64];

static inline void read_pipe(int fd, char *ret, size_t cap)
{
    AUTO(free_p) char *text = NULL;
    size_t len = 0;

    if (fd_read_all(fd, cap - 1, &text, &len) == 0)
        snprintf(ret, cap, "%s", text);
    close(fd);
}

/* In a process of its own: it takes on another user. */
static inline struct outcome manage_run(int (*verb_main)(int, char **), const char *const *args)
{
    char *argv[24] = {NULL};
    struct outcome o = {0};
    int out[2], err[2], argc = 0, status;

    for (; args[argc]; argc++)
        argv[argc] = xstrdup(args[argc]);
    fflush(stdout);
    EXPECT(pipe(out) == 0 && pipe(err) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        setenv("SANDGLASS_STATE", state, 1);
        _exit(verb_main(argc, argv));
    }
    close(out[1]);
    close(err[1]);
    read_pipe(out[0], o.out, sizeof(o.out));
    read_pipe(err[0], o.err, sizeof(o.err));
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    o.status = WEXITSTATUS(status);
    while (argc > 0)
        free(argv[--argc]);
    return o;
}

static inline void make_state(void)
{
    char front[96];

    snprintf(state, sizeof(state), "/tmp/test_state.XXXXXX");
    EXPECT(mkdtemp(state) != NULL);
    EXPECT(chmod(state, 0711) == 0);
    snprintf(front, sizeof(front), "%s/front", state);
    EXPECT(mkdir(front, 0700) == 0);
    /* As a server does it; without root all stays our own, which is as good here. */
    if (geteuid() == 0)
        EXPECT(chown(front, MANAGE_OWNER, MANAGE_OWNER) == 0);
}

static inline void remove_state(void)
{
    static const char *const files[] = {"/front/server.db", "/front/server.db-wal",
                                        "/front/server.db-shm", "/front", ""};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s%s", state, files[i]);
        if (unlink(path) < 0)
            rmdir(path);
    }
}

static inline char *manage_load(const char *path)
{
    char *text = NULL;
    size_t len;

    EXPECT(file_read(AT_FDCWD, path, MANAGE_TEXT_MAX, &text, &len) == 0);
    return text ? text : xstrdup("");
}

/* Every option stands in the manual page, and in the part of the completion that begins there. */
static inline void expect_documented(const char *manual, const char *completion,
                                     const struct cli_syntax *const *all, size_t n)
{
    AUTO(free_p)
    char *page = manage_load(manual),
         *text = manage_load(SG_SOURCE_DIR "/completions/sandglass.bash");
    const char *part = strstr(text, completion);

    EXPECT(part != NULL);
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < all[k]->n_options; i++) {
            char word[64];

            snprintf(word, sizeof(word), "*--%s*", all[k]->options[i].name);
            EXPECT(strstr(page, word) != NULL);
            snprintf(word, sizeof(word), "--%s", all[k]->options[i].name);
            EXPECT(part && strstr(part, word) != NULL);
        }
    }
}
