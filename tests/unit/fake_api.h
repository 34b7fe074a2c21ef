/* A control plane that answers what a test wants, in a process of its own, and remembers what it
 * was asked; and verbs that are run against it. */
#pragma once

#include <arpa/inet.h>
#include <locale.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "cli/client/client.h"
#include "tap.h"

#define FAKE_LOG_MAX     (64u * 1024)
#define FAKE_REQUEST_MAX (64u * 1024)
#define FAKE_ARGS_MAX    16

struct fake_answer {
    const char *request; /* "POST /sandboxes/i1/fork"; NULL ends the list */
    int status;
    const char *body;
};

struct fake_api {
    pid_t pid;
    char *log; /* "METHOD path body\n" for each request, shared with the process */
};

static inline void fake_must(bool ok, const char *what)
{
    if (ok)
        return;
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

/* A whole request: its line and its body. */
static inline void fake_read(int fd, char *request, size_t cap)
{
    size_t len = 0, want = SIZE_MAX;
    char *end = NULL;

    while (len < want && len + 1 < cap) {
        ssize_t n = read(fd, request + len, cap - 1 - len);

        if (n <= 0)
            break;
        request[len += (size_t)n] = '\0';
        if (!end && (end = strstr(request, "\r\n\r\n"))) {
            const char *length = strcasestr(request, "content-length:");

            want = (size_t)(end + 4 - request) + (length ? strtoul(length + 15, NULL, 10) : 0);
        }
    }
    char *body = end ? xstrdup(end + 4) : xstrdup("");
    char *line = strstr(request, " HTTP/");
    snprintf(line ? line : request, cap - (size_t)(line ? line - request : 0), " %s", body);
    free(body);
}

static inline void fake_serve(int listener, const struct fake_answer *answers, char *log)
{
    static char request[FAKE_REQUEST_MAX];

    for (;;) {
        int fd = accept(listener, NULL, NULL);
        const struct fake_answer *a = answers;
        size_t used = strlen(log);

        fake_read(fd, request, sizeof(request));
        snprintf(log + used, FAKE_LOG_MAX - used, "%s\n", request);
        while (a->request && (strncmp(request, a->request, strlen(a->request)) != 0 ||
                              request[strlen(a->request)] != ' '))
            a++;
        const char *body = a->request ? a->body : "{\"code\":404,\"message\":\"not here\"}";
        dprintf(fd, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                a->request ? a->status : 404, strlen(body), body);
        close(fd);
    }
}

static inline struct fake_api fake_open(const struct fake_answer *answers)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(addr);
    struct fake_api f = {0};
    char url[64];

    fake_must(fd >= 0 && bind(fd, (const struct sockaddr *)&addr, len) == 0 &&
                  listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&addr, &len) == 0,
              "listen");
    f.log = mmap(NULL, FAKE_LOG_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fake_must(f.log != MAP_FAILED, "mmap");
    fflush(stdout);
    f.pid = fork();
    if (f.pid == 0)
        fake_serve(fd, answers, f.log);
    close(fd);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(addr.sin_port));
    setenv("E2B_API_URL", url, 1);
    setenv("E2B_API_KEY", "e2b_0", 1);
    setlocale(LC_CTYPE, "C.UTF-8");
    return f;
}

static inline void fake_close(struct fake_api *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    munmap(f->log, FAKE_LOG_MAX);
}

/* Runs a verb whose command line is split at its blanks; what it writes to both streams is the
 * caller's. */
static inline int fake_run(const struct client_verb *verb, const char *line, char **ret_out,
                           char **ret_err)
{
    AUTO(free_p) char *text = xstrdup(line);
    char *argv[FAKE_ARGS_MAX + 1] = {NULL}, name[16];
    int saved[] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    int files[] = {memfd_create("out", 0), memfd_create("err", 0)};
    int argc = 1;

    snprintf(name, sizeof(name), "%s", verb->name);
    argv[0] = name;
    for (char *p = text, *word; (word = strsep(&p, " ")) && argc < FAKE_ARGS_MAX;)
        if (*word)
            argv[argc++] = word;
    fflush(stdout);
    dup2(files[0], STDOUT_FILENO);
    dup2(files[1], STDERR_FILENO);
    int status = client_main(verb, argc, argv);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        size_t len;

        dup2(saved[i], i == 0 ? STDOUT_FILENO : STDERR_FILENO);
        lseek(files[i], 0, SEEK_SET);
        fake_must(fd_read_all(files[i], 1u << 20, i == 0 ? ret_out : ret_err, &len) == 0, "read");
        close(saved[i]);
        close(files[i]);
    }
    return status;
}
