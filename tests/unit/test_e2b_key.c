/* sandglass key: on a state directory of its own, and held against its manual page. */
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "server/key.h"
#include "store/store.h"

TAP_MAIN

#define TEXT_MAX (1u << 20)
#define OWNER    4242u

struct outcome {
    int status;
    char out[8192], err[2048];
};

static char state[64];

static void read_pipe(int fd, char *ret, size_t cap)
{
    AUTO(free_p) char *text = NULL;
    size_t len = 0;

    if (fd_read_all(fd, cap - 1, &text, &len) == 0)
        snprintf(ret, cap, "%s", text);
    close(fd);
}

/* In a process of its own: it takes on another user. */
static struct outcome run(const char *const *args)
{
    char *argv[16] = {NULL};
    struct outcome o = {0};
    int out[2], err[2], argc = 0, status;

    argv[argc++] = xstrdup("key");
    for (; args[argc - 1]; argc++)
        argv[argc] = xstrdup(args[argc - 1]);
    fflush(stdout);
    EXPECT(pipe(out) == 0 && pipe(err) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        setenv("SANDGLASS_STATE", state, 1);
        _exit(key_main(argc, argv));
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

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void make_state(void)
{
    char front[96];

    snprintf(state, sizeof(state), "/tmp/test_key.XXXXXX");
    EXPECT(mkdtemp(state) != NULL);
    EXPECT(chmod(state, 0711) == 0);
    snprintf(front, sizeof(front), "%s/front", state);
    EXPECT(mkdir(front, 0700) == 0);
    /* As a server does it; without root all stays our own, which is as good here. */
    if (geteuid() == 0)
        EXPECT(chown(front, OWNER, OWNER) == 0);
}

static void remove_state(void)
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

TEST(create_prints_the_key_only)
{
    make_state();
    struct outcome o = RUN("create");
    EXPECT(o.status == 0);
    EXPECT(strlen(o.out) == STORE_KEY_LEN + 1 && strncmp(o.out, "e2b_", 4) == 0);
    EXPECT_STR(o.err, "");
    char file[96];
    struct stat st, dir;
    snprintf(file, sizeof(file), "%s/front", state);
    EXPECT(stat(file, &dir) == 0);
    snprintf(file, sizeof(file), "%s/front/server.db", state);
    EXPECT(stat(file, &st) == 0 && st.st_uid == dir.st_uid && (st.st_mode & 0777) == 0600);
    remove_state();
}

TEST(create_list_revoke)
{
    make_state();
    char key[STORE_KEY_LEN + 1];
    struct outcome o = RUN("create", "--tenant", "acme", "--name=ann's key");
    snprintf(key, sizeof(key), "%.*s", STORE_KEY_LEN, o.out);
    EXPECT(RUN("create", "--tenant", "beta").status == 0);
    o = RUN("list");
    EXPECT(o.status == 0 && strstr(o.out, "ann's key") && strstr(o.out, "beta"));
    EXPECT(strstr(o.out, "active") && !strstr(o.out, "revoked") && !strstr(o.out, key));
    o = RUN("list", "--tenant", "acme", "--json");
    EXPECT(strstr(o.out, "\"tenant\":\"acme\"") && !strstr(o.out, "beta"));
    EXPECT(strstr(o.out, "\"last_used\":null,\"revoked\":null"));
    EXPECT(!strstr(o.out, key));
    EXPECT(RUN("revoke", key).status == 0);
    o = RUN("list", "--tenant", "acme");
    EXPECT(strstr(o.out, "revoked") && !strstr(o.out, "active"));
    o = RUN("revoke", "nosuchkey");
    EXPECT(o.status == 1 && strstr(o.err, "no such key"));
    o = RUN("create", "--json");
    EXPECT(o.status == 0 && strstr(o.out, "\"key\":\"e2b_"));
    remove_state();
}

TEST(mistakes)
{
    make_state();
    EXPECT(RUN("create", "--tenant", "Not Valid").status == 1);
    EXPECT(RUN("create", "--name", "a\033[1mb").status == 1);
    EXPECT(RUN("create", "extra").status == 2);
    EXPECT(RUN("revoke").status == 2);
    EXPECT(RUN("revoke", "a", "b").status == 2);
    EXPECT(RUN("frob").status == 2);
    EXPECT(RUN("list", "--nope").status == 2);
    EXPECT(RUN("--help").status == 0);
    struct outcome o = RUN("list", "--state", "/nonexistent");
    EXPECT(o.status == 1 && strstr(o.err, "no server in '/nonexistent/front'"));
    remove_state();
    EXPECT(RUN("list").status == 1);
}

/* ---- the manual ------------------------------------------------------------------------------ */

static char *load(const char *path)
{
    char *text = NULL;
    size_t len;

    EXPECT(file_read(AT_FDCWD, path, TEXT_MAX, &text, &len) == 0);
    return text ? text : xstrdup("");
}

TEST(manual_and_completion_have_every_option)
{
    AUTO(free_p)
    char *page = load(SG_SOURCE_DIR "/man/sandglass-key.1.scd"),
         *completion = load(SG_SOURCE_DIR "/completions/sandglass.bash");
    const struct cli_syntax *all[] = {&key_create_syntax, &key_list_syntax, &key_revoke_syntax};
    const char *part = strstr(completion, "_sandglass_key()");

    EXPECT(part != NULL);
    for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
        for (size_t i = 0; i < all[k]->n_options; i++) {
            char word[64];

            snprintf(word, sizeof(word), "*--%s*", all[k]->options[i].name);
            EXPECT(strstr(page, word) != NULL);
            snprintf(word, sizeof(word), "--%s", all[k]->options[i].name);
            EXPECT(part && strstr(part, word) != NULL);
        }
    }
}
