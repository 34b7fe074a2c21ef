/* The exporter, with its rights taken from it, against a server that misbehaves in every way: what
 * it says of each, and that it says it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "front/main/confine.h"
#include "tap.h"
#include "front/telemetry/exporter.h"
#include "front/telemetry/exporter_wire.h"

TAP_MAIN

#define REQUEST_MAX (EXPORTER_BODY_MAX + 16384)
#define LAST_MAX    4096

/* What the server has seen: shared with it. */
struct seen {
    unsigned connections, requests, followed;
    size_t last_len; /* of the body */
    unsigned last_sum;
    char last[LAST_MAX]; /* the head */
};

static struct {
    struct seen *seen;
    uint16_t port;
    struct exporter *exporter;
} rig;

/* ---- a server -------------------------------------------------------------------------------- */

static void say(int fd, const char *text)
{
    if (fd_write_all(fd, text, strlen(text)) < 0)
        _exit(0);
}

static _Noreturn void say_forever(int fd, const char *text)
{
    for (;;)
        say(fd, text);
}

/* One request, whole; false: there is none any more. */
static bool read_request(int fd, char *buf)
{
    size_t len = 0, body = 0, head = 0;
    ssize_t got;

    while (head == 0 || len < head + body) {
        got = read(fd, buf + len, REQUEST_MAX - len);
        if (got <= 0)
            return false;
        len += (size_t)got;
        buf[len] = '\0';
        char *end = head ? NULL : strstr(buf, "\r\n\r\n");
        if (end) {
            const char *length = strstr(buf, "Content-Length: ");

            *end = '\0';
            head = (size_t)(end - buf) + 4;
            body = length ? strtoul(length + 16, NULL, 10) : 0;
        }
    }
    rig.seen->requests++;
    rig.seen->last_len = body;
    rig.seen->last_sum = 0;
    for (size_t i = 0; i < body; i++)
        rig.seen->last_sum = rig.seen->last_sum * 31 + (unsigned char)buf[head + i];
    snprintf(rig.seen->last, LAST_MAX, "%s", buf);
    return true;
}

static void say_date(int fd)
{
    char text[128];
    time_t then = time(NULL) + 60;
    struct tm tm;

    gmtime_r(&then, &tm);
    strftime(text, sizeof(text),
             "HTTP/1.1 429 Slow\r\nRetry-After: %a, %d %b %Y %H:%M:%S GMT\r\n"
             "Content-Length: 0\r\n\r\n",
             &tm);
    say(fd, text);
}

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
    _exit(0);
}

static const struct {
    const char *path, *answer;
} plain[] = {
    {"/ok", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
    {"/chunked", "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
    {"/500", "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"},
    {"/503", "HTTP/1.1 503 Oh\r\nRetry-After:  7 \r\nContent-Length: 0\r\n\r\n"},
    {"/503x", "HTTP/1.1 503 Oh\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n"},
    {"/503y", "HTTP/1.1 503 Oh\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n"},
    {"/302", "HTTP/1.1 302 Go\r\nLocation: /followed\r\nContent-Length: 0\r\n\r\n"},
    {"/badlength", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"},
};

static void answer(int fd, const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        if (strcmp(path, plain[i].path) == 0) {
            say(fd, plain[i].answer);
            return;
        }
    if (strcmp(path, "/date") == 0)
        return say_date(fd);
    if (strcmp(path, "/followed") == 0)
        rig.seen->followed++;
    if (strcmp(path, "/reset") == 0)
        reset(fd);
    if (strcmp(path, "/silent") == 0)
        pause();
    if (strcmp(path, "/garbage") == 0)
        say(fd, "\xff\xfe no protocol at all\r\n\r\n");
    if (strcmp(path, "/noise") == 0)
        say_forever(fd, "\xff\xfe no protocol at all");
    if (strcmp(path, "/hundred") == 0)
        say_forever(fd, "HTTP/1.1 100 Continue\r\n\r\n");
    if (strcmp(path, "/endless") == 0) {
        say(fd, "HTTP/1.1 200 OK\r\n\r\n");
        say_forever(fd, "more and more and more and more ");
    }
    if (strcmp(path, "/heads") == 0) {
        say(fd, "HTTP/1.1 503 Oh\r\n");
        say_forever(fd, "X-More: and more and more and more\r\n");
    }
    _exit(0);
}

static _Noreturn void serve_one(int fd)
{
    char *buf = malloc(REQUEST_MAX + 1), path[64];

    rig.seen->connections++;
    while (read_request(fd, buf)) {
        if (sscanf(buf, "POST %63s HTTP/1.1", path) != 1)
            _exit(0);
        answer(fd, path);
    }
    _exit(0);
}

static _Noreturn void serve(int sock, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    while (getppid() == parent) {
        int fd = accept(sock, NULL, NULL);

        if (fd >= 0 && fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve_one(fd);
        }
        close_p(&fd);
    }
    _exit(0);
}

static int listen_here(uint16_t *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(sock, (struct sockaddr *)&a, len) < 0 || listen(sock, 64) < 0 ||
        getsockname(sock, (struct sockaddr *)&a, &len) < 0)
        exit(1);
    *ret_port = ntohs(a.sin_port);
    return sock;
}

/* ---- an exporter ----------------------------------------------------------------------------- */

static pid_t *exporter_pid; /* shared */

/* What it must not do, it cannot. */
static int confine(struct sg_error *e)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    int r = confine_exporter(e);

    if (r < 0)
        return r;
    *exporter_pid = getpid();
    AUTO(close_p) int sock = socket(AF_INET, SOCK_STREAM, 0);
    AUTO(close_p) int file = memfd_create("x", 0);
    bool good = sock >= 0 && bind(sock, (struct sockaddr *)&a, sizeof(a)) < 0 && errno == EPERM;
    good = good && socket(AF_PACKET, SOCK_RAW, 0) < 0 && socket(AF_INET, SOCK_RAW, 0) < 0;
    good = good && fork() < 0 && write(file, "x", 1) < 0;
    return good ? 0 : err_set(e, SG_ERR_INTERNAL, -EPERM, "it may do what it must not");
}

/* As the warden does it, but that there is none: it ends with its front. Returns our end. */
static int exporter_start(void)
{
    int pair[2];

    *exporter_pid = 0;
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(pair[1], 3);
        sys_close_range(4, UINT32_MAX, 0);
        signal(SIGPIPE, SIG_IGN);
        exporter_process(-1, 3, confine);
    }
    close(pair[1]);
    for (int i = 0; i < 5000 && *(volatile pid_t *)exporter_pid == 0; i++)
        usleep(1000);
    EXPECT(*exporter_pid != 0);
    return pair[0];
}

static struct exporter *exporter_made(void)
{
    struct exporter *h = exporter_new(uv_default_loop());

    exporter_set_socket(h, exporter_start());
    return h;
}

static void rig_start(void)
{
    pid_t parent = getpid();

    if (rig.exporter)
        return;
    rig.seen =
        mmap(NULL, sizeof(*rig.seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    exporter_pid = mmap(NULL, sizeof(*exporter_pid), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int sock = listen_here(&rig.port);
    if (fork() == 0)
        serve(sock, parent);
    close(sock);
    signal(SIGPIPE, SIG_IGN);
    rig.exporter = exporter_made();
}

struct told {
    int n, status;
    uint64_t retry_after_ms;
};

static void on_done(void *arg, int status, uint64_t retry_after_ms)
{
    struct told *t = arg;

    t->n++;
    t->status = status;
    t->retry_after_ms = retry_after_ms;
}

static int post_to(struct exporter *h, const char *url, const void *body, size_t len,
                   struct told *t)
{
    struct exporter_post post = {.url = url,
                                 .content_type = "application/json",
                                 .body = body,
                                 .len = len,
                                 .done = on_done,
                                 .arg = t};

    *t = (struct told){0};
    return exporter_post(h, &post);
}

static int post(const char *path, struct told *t)
{
    char url[128];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", rig.port, path);
    return post_to(rig.exporter, url, "{}", 2, t);
}

static void stop_waiting(uv_timer_t *timer)
{
    (void)timer;
}

/* Until these have an answer, or 20 s. */
static void wait_told(const struct told *t, size_t n)
{
    uint64_t deadline = clock_ns() + 20000000000ull;
    uv_timer_t tick;
    size_t have = 0;

    uv_timer_init(uv_default_loop(), &tick);
    uv_timer_start(&tick, stop_waiting, 20, 20);
    while (have < n && clock_ns() < deadline) {
        uv_run(uv_default_loop(), UV_RUN_ONCE);
        have = 0;
        for (size_t i = 0; i < n; i++)
            have += t[i].n > 0;
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(uv_default_loop(), UV_RUN_NOWAIT);
    for (size_t i = 0; i < n; i++)
        EXPECT(t[i].n == 1);
}

/* A target that a tenant has named must not be inside, though a connection to it is open. */
TEST(what_is_judged_does_not_go_inside)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    struct told t;

    rig_start();
    EXPECT(post("/ok", &t) == 0);
    wait_told(&t, 1);
    EXPECT(t.status == 200);
    unsigned connections = rig.seen->connections, requests = rig.seen->requests;
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        char url[128];
        struct exporter_post judged = {.url = url,
                                       .content_type = "application/json",
                                       .body = "{}",
                                       .len = 2,
                                       .judged = true,
                                       .done = on_done,
                                       .arg = &t};

        snprintf(url, sizeof(url), "http://%s:%u/ok", hosts[i], rig.port);
        t = (struct told){0};
        EXPECT(exporter_post(rig.exporter, &judged) == 0);
        wait_told(&t, 1);
        EXPECT(t.status == -EACCES);
    }
    EXPECT(rig.seen->connections == connections && rig.seen->requests == requests);
}

/* ---- what comes of a post -------------------------------------------------------------------- */

TEST(every_answer_has_its_word)
{
    static const struct {
        const char *path;
        int status;
        uint64_t retry_after_ms;
    } table[] = {
        {"/ok", 200, 0},        {"/chunked", 202, 0},       {"/500", 500, 0},
        {"/503", 503, 7000},    {"/503x", 503, 0},          {"/503y", 503, 0},
        {"/302", 302, 0},       {"/badlength", 200, 0},     {"/garbage", -EPROTO, 0},
        {"/noise", -EPROTO, 0}, {"/hundred", -EPROTO, 0},   {"/endless", 200, 0},
        {"/heads", 503, 0},     {"/reset", -ECONNRESET, 0}, {"/closes", -ECONNRESET, 0},
    };
    struct told told[ARRAY_SIZE(table)];

    rig_start();
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        EXPECT(post(table[i].path, &told[i]) == 0 && told[i].n == 0);
    wait_told(told, ARRAY_SIZE(table));
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (told[i].status != table[i].status)
            printf("# %s: %d, not %d\n", table[i].path, told[i].status, table[i].status);
        EXPECT(told[i].status == table[i].status);
        EXPECT(told[i].retry_after_ms == table[i].retry_after_ms);
    }
    EXPECT(rig.seen->followed == 0);
}

TEST(a_date_to_wait_for)
{
    struct told told;

    rig_start();
    EXPECT(post("/date", &told) == 0);
    wait_told(&told, 1);
    EXPECT(told.status == 429 && told.retry_after_ms > 50000 && told.retry_after_ms <= 60000);
}

TEST(nobody_is_there)
{
    struct told told;
    char url[64];
    uint16_t port;

    rig_start();
    close(listen_here(&port));
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
    EXPECT(post_to(rig.exporter, url, "", 0, &told) == 0);
    wait_told(&told, 1);
    EXPECT(told.status == -ECONNREFUSED);
}

/* A certificate for this address that nobody has signed but its owner. */
static SSL_CTX *own_certificate(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);

    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"127.0.0.1", -1, -1,
                               0);
    X509_set_issuer_name(cert, name);
    if (X509_sign(cert, key, EVP_sha256()) == 0 || SSL_CTX_use_certificate(ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey(ctx, key) != 1)
        exit(1);
    return ctx;
}

static _Noreturn void serve_tls(int sock)
{
    SSL *ssl = SSL_new(own_certificate());
    char buf[64];

    SSL_set_fd(ssl, accept(sock, NULL, NULL));
    if (SSL_accept(ssl) == 1 && SSL_read(ssl, buf, sizeof(buf)) > 0)
        rig.seen->followed++;
    _exit(0);
}

TEST(a_certificate_that_nobody_signed)
{
    struct told told;
    char url[64];
    uint16_t port;

    rig_start();
    int sock = listen_here(&port);
    unsigned before = rig.seen->followed;
    pid_t pid = fork();
    if (pid == 0)
        serve_tls(sock);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/ok", port);
    EXPECT(post_to(rig.exporter, url, "secret", 6, &told) == 0);
    wait_told(&told, 1);
    EXPECT(told.status == -EKEYREJECTED && rig.seen->followed == before);
    waitpid(pid, NULL, 0);
    close(sock);
}

TEST(what_arrives)
{
    struct hidden token, plain_value;
    struct told told;
    char url[64], *body = malloc(EXPORTER_BODY_MAX + 1);
    unsigned sum = 0;

    rig_start();
    for (size_t i = 0; i < EXPORTER_BODY_MAX; i++) {
        body[i] = (char)(i * 7 + i / 251);
        sum = sum * 31 + (unsigned char)body[i];
    }
    hidden_wipe(&token);
    hidden_wipe(&plain_value);
    hidden_set(&token, "Bearer sesame", 13);
    hidden_set(&plain_value, "4", 1);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/ok", rig.port);
    struct exporter_post p = {.url = url,
                              .content_type = "application/x-protobuf",
                              .headers = {{"Authorization", &token}, {"x-version", &plain_value}},
                              .body = body,
                              .len = EXPORTER_BODY_MAX,
                              .done = on_done,
                              .arg = &told};
    told.n = 0;
    EXPECT(exporter_post(rig.exporter, &p) == 0);
    memset(body, 0, EXPORTER_BODY_MAX); /* it has been copied */
    wait_told(&told, 1);
    EXPECT(told.status == 200);
    EXPECT(rig.seen->last_len == EXPORTER_BODY_MAX && rig.seen->last_sum == sum);
    EXPECT(strstr(rig.seen->last, "Content-Type: application/x-protobuf"));
    EXPECT(strstr(rig.seen->last, "Authorization: Bearer sesame"));
    EXPECT(strstr(rig.seen->last, "x-version: 4"));
    EXPECT(strstr(rig.seen->last, "User-Agent: sandglass/"));
    EXPECT(!strstr(rig.seen->last, "Expect:"));
    /* What cannot be sent is said at once. */
    p.len++;
    EXPECT(exporter_post(rig.exporter, &p) == -E2BIG);
    p.len = 0;
    hidden_set(&token, "a\r\nX-Evil: 1", 12);
    EXPECT(exporter_post(rig.exporter, &p) == -EINVAL);
    hidden_set(&token, "a", 1);
    p.url = "ftp://127.0.0.1/";
    EXPECT(exporter_post(rig.exporter, &p) == -EINVAL);
    p.url = "http://127.0.0.1/\n";
    EXPECT(exporter_post(rig.exporter, &p) == -EINVAL);
    free(body);
}

TEST(connections_are_kept)
{
    struct told told;

    rig_start();
    EXPECT(post("/ok", &told) == 0);
    wait_told(&told, 1);
    unsigned before = rig.seen->connections;
    for (int i = 0; i < 20; i++) {
        EXPECT(post("/ok", &told) == 0);
        wait_told(&told, 1);
        EXPECT(told.status == 200);
    }
    EXPECT(rig.seen->connections == before);
}

/* ---- too much, and the end ------------------------------------------------------------------- */

TEST(who_is_silent_is_given_up)
{
    enum { SILENT = EXPORTER_AT_ONCE - 1, MORE = EXPORTER_AT_ONCE + 2 };
    struct told told[MORE], nowhere;
    uint64_t begin = clock_ns();

    rig_start();
    for (int i = 0; i < MORE; i++)
        EXPECT(post(i < SILENT ? "/silent" : "/ok", &told[i]) == 0);
    EXPECT(post_to(rig.exporter, "http://no-such-host.invalid/", "", 0, &nowhere) == 0);
    wait_told(told, MORE);
    wait_told(&nowhere, 1);
    for (int i = 0; i < MORE; i++)
        EXPECT(told[i].status == (i < SILENT ? -ETIMEDOUT : 200));
    uint64_t ms = (clock_ns() - begin) / 1000000;
    EXPECT(ms >= EXPORTER_TIMEOUT_MS && ms < EXPORTER_TIMEOUT_MS + 5000);
    /* As the host's resolver has it: it says so, or does not answer itself. */
    EXPECT(nowhere.status == -EHOSTUNREACH || nowhere.status == -ETIMEDOUT);
}

TEST(too_many_and_then_none)
{
    static struct told told[EXPORTER_POSTS_MAX + 1];
    struct exporter *h;
    char url[64];
    size_t n = 0;
    int r = 0;

    rig_start();
    h = exporter_made();
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/silent", rig.port);
    while (n <= EXPORTER_POSTS_MAX && (r = post_to(h, url, "{}", 2, &told[n])) == 0)
        n++;
    EXPECT(r == -EAGAIN && n >= 2 * EXPORTER_AT_ONCE && n <= EXPORTER_POSTS_MAX);
    kill(*exporter_pid, SIGKILL);
    wait_told(told, n);
    EXPECT(told[0].status == -EPIPE && told[n - 1].status == -EPIPE);
    EXPECT(post_to(h, url, "{}", 2, &told[0]) == -EAGAIN);
    /* The next one takes what comes. */
    exporter_set_socket(h, exporter_start());
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/ok", rig.port);
    EXPECT(post_to(h, url, "{}", 2, &told[0]) == 0);
    wait_told(told, 1);
    EXPECT(told[0].status == 200);
}
