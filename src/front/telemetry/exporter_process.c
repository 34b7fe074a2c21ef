/* One loop over libcurl's transfers and the socket to the front. While EXPORTER_AT_ONCE posts are
 * under way the loop does not read the socket: further posts wait in it, and the front sees it fill
 * up.
 *
 * Of an answer only the status and Retry-After are kept; the rest is counted and dropped.
 * Connections are kept for the next post. */
#include <curl/curl.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/net/addr.h"
#include "lib/text/parse.h"
#include "wire/worker.h"
#include "front/telemetry/exporter.h"
#include "front/telemetry/exporter_wire.h"

#define CONNECT_MS    3000
#define ANSWER_MAX    (64u * 1024)
#define RETRY_MAX_S   86400
#define POLL_MS       1000
#define SEALS_NEEDED  (F_SEAL_SHRINK | F_SEAL_WRITE)
#define HEADER_MAX    (EXPORTER_NAME_MAX + HIDDEN_MAX + 4)
#define USER_AGENT    "sandglass/" SG_VERSION
#define CONTENT_TYPE  "Content-Type"
#define RETRY_AFTER   "retry-after:"
#define TEXTS_PER_ROW 2

struct job {
    uint64_t seq;
    CURL *curl; /* NULL: this slot is free */
    struct curl_slist *headers;
    void *body;
    size_t len;
    size_t got; /* bytes of the answer, with its headers */
    uint64_t retry_after_ms;
    bool judged, refused; /* refused: it is at an address inside */
};

struct process {
    int control;  /* to the warden; -1: there is none */
    int sock;     /* to the front; -1: there is none now */
    CURLM *multi; /* NULL: nothing was posted yet */
    unsigned active;
    struct job jobs[EXPORTER_AT_ONCE];
};

/* ---- the outcome of a post ------------------------------------------------------------------- */

static void tell(const struct process *p, uint64_t seq, int status, uint64_t retry_after_ms)
{
    struct exporter_told told = {
        .magic = EXPORTER_MAGIC, .status = status, .seq = seq, .retry_after_ms = retry_after_ms};

    /* If the front is gone, reading will find out. */
    while (send(p->sock, &told, sizeof(told), MSG_NOSIGNAL) < 0 &&
           (errno == EAGAIN || errno == EINTR)) {
        struct pollfd front = {.fd = p->sock, .events = POLLOUT};

        poll(&front, 1, -1);
    }
}

static int errno_of(CURLcode r)
{
    static const struct {
        CURLcode code;
        int error;
    } errors[] = {{CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT},
                  {CURLE_COULDNT_CONNECT, -ECONNREFUSED},
                  {CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH},
                  {CURLE_SEND_ERROR, -ECONNRESET},
                  {CURLE_RECV_ERROR, -ECONNRESET},
                  {CURLE_GOT_NOTHING, -ECONNRESET},
                  {CURLE_PARTIAL_FILE, -ECONNRESET},
                  {CURLE_PEER_FAILED_VERIFICATION, -EKEYREJECTED},
                  {CURLE_SSL_CONNECT_ERROR, -EKEYREJECTED},
                  {CURLE_URL_MALFORMAT, -EINVAL},
                  {CURLE_OUT_OF_MEMORY, -ENOMEM}};

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
        if (errors[i].code == r)
            return errors[i].error;
    return -EPROTO;
}

static void wipe_headers(struct curl_slist *headers)
{
    for (struct curl_slist *h = headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(headers);
}

static void job_done(struct job *j)
{
    if (j->curl)
        curl_easy_cleanup(j->curl);
    wipe_headers(j->headers);
    if (j->body)
        munmap(j->body, j->len);
    *j = (struct job){0};
}

/* Reports the outcome. Once the target has sent a status, that is its answer, however the transfer
 * ends. */
static void finish(struct process *p, struct job *j, CURLcode r)
{
    long status = 0;

    curl_easy_getinfo(j->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(p->multi, j->curl);
    p->active--;
    if (j->refused && status == 0)
        status = -EACCES;
    else if (status < 200 || status > 999)
        status = errno_of(r);
    tell(p, j->seq, (int)status, j->retry_after_ms);
    job_done(j);
}

static void finish_ready(struct process *p)
{
    int left;

    for (CURLMsg *m; (m = curl_multi_info_read(p->multi, &left));) {
        CURLcode r = m->data.result;
        struct job *j = NULL;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &j);
        finish(p, j, r);
    }
}

/* ---- an answer ------------------------------------------------------------------------------- */

/* Returns fewer bytes than came if the answer is too long: then curl ends the transfer. */
static size_t on_bytes(char *data UNUSED, size_t one UNUSED, size_t n, void *arg)
{
    struct job *j = arg;

    j->got += n;
    return j->got > ANSWER_MAX ? 0 : n;
}

/* Reads a Retry-After: a number of seconds, or a date. */
static uint64_t retry_after_ms(const char *text)
{
    uint64_t seconds;

    if (parse_u64("Retry-After", text, 0, RETRY_MAX_S, &seconds, NULL) == 0)
        return seconds * 1000;
    time_t when = curl_getdate(text, NULL), now = time(NULL);
    return when > now && when - now <= RETRY_MAX_S ? (uint64_t)(when - now) * 1000 : 0;
}

static size_t on_header(char *line, size_t one, size_t n, void *arg)
{
    struct job *j = arg;
    const size_t prefix = sizeof(RETRY_AFTER) - 1;
    char value[64];

    if (n > prefix && n - prefix < sizeof(value) && strncasecmp(line, RETRY_AFTER, prefix) == 0) {
        size_t from = prefix, to = n;

        while (from < to && (line[from] == ' ' || line[from] == '\t'))
            from++;
        while (to > from && (unsigned char)line[to - 1] <= ' ')
            to--;
        memcpy(value, line + from, to - from);
        value[to - from] = '\0';
        j->retry_after_ms = retry_after_ms(value);
    }
    return on_bytes(line, one, n, arg);
}

/* ---- a post ---------------------------------------------------------------------------------- */

/* The address that is really connected: what a name leads to may change after each look. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct job *j = arg;
    struct net_addr a;

    if (purpose != CURLSOCKTYPE_IPCXN || net_addr_from(&to->addr, &a) < 0)
        return CURL_SOCKET_BAD;
    if (net_addr_dial_refusal(&a)) {
        j->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* A connection that another post has left open was not judged. */
static bool set_judged(struct job *j)
{
    CURL *c = j->curl;

    return !j->judged || (curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
                          curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L) == CURLE_OK &&
                          curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
                          curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, j) == CURLE_OK);
}

static bool add_header(struct job *j, const char *name, const char *value)
{
    char line[HEADER_MAX];
    int n = snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *longer = n < (int)sizeof(line) ? curl_slist_append(j->headers, line) : NULL;

    if (longer)
        j->headers = longer;
    explicit_bzero(line, sizeof(line));
    return longer != NULL;
}

/* texts: in the order of exporter_wire.h. */
static bool set_headers(struct job *j, const char *const *texts, size_t n)
{
    bool good = add_header(j, CONTENT_TYPE, texts[1]);

    /* Without this, curl may wait for an answer before it sends the body. */
    struct curl_slist *longer = curl_slist_append(j->headers, "Expect:");
    good &= longer != NULL;
    j->headers = longer ? longer : j->headers;
    for (size_t i = EXPORTER_TEXTS_MIN; good && i + 1 < n; i += TEXTS_PER_ROW)
        good = add_header(j, texts[i], texts[i + 1]);
    return good;
}

static bool set_options(struct job *j, const char *url)
{
    CURL *c = j->curl;

    return curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)EXPORTER_TIMEOUT_MS) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_USERAGENT, USER_AGENT) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)j->len) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_POSTFIELDS, j->body ? j->body : "") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HTTPHEADER, j->headers) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEDATA, j) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HEADERDATA, j) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PRIVATE, j) == CURLE_OK && set_judged(j);
}

/* Starts libcurl at the first post: OpenSSL takes long to start, and a server that posts nothing
 * should not pay for it. */
static bool curl_ready(struct process *p)
{
    if (p->multi)
        return true;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(p->multi = curl_multi_init()))
        return false;
    curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS, (long)EXPORTER_AT_ONCE);
    return true;
}

static struct job *free_job(struct process *p)
{
    struct job *j = p->jobs;

    while (j->curl)
        j++;
    return j;
}

static void begin(struct process *p, const struct exporter_ask *ask, const char *const *texts,
                  void *body)
{
    struct job *j = free_job(p);

    *j = (struct job){.seq = ask->seq, .body = body, .len = ask->len, .judged = ask->judged};
    if (curl_ready(p) && (j->curl = curl_easy_init()) && set_headers(j, texts, ask->n_texts) &&
        set_options(j, texts[0]) && curl_multi_add_handle(p->multi, j->curl) == CURLM_OK) {
        p->active++;
        return;
    }
    tell(p, ask->seq, -EINVAL, 0);
    job_done(j);
}

/* ---- the front ------------------------------------------------------------------------------- */

/* Maps the body. Its seals guarantee that it cannot change or shrink while curl reads it. */
static bool map_body(int fd, uint64_t len, void **ret)
{
    int seals = fcntl(fd, F_GET_SEALS);
    off_t size = lseek(fd, 0, SEEK_END);

    if (seals < 0 || (seals & SEALS_NEEDED) != SEALS_NEEDED || len > EXPORTER_BODY_MAX ||
        size != (off_t)len)
        return false;
    if (len == 0)
        return *ret = NULL, true;
    *ret = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
    return *ret != MAP_FAILED;
}

/* Finds n texts. False: the packet does not have exactly n. */
static bool split(const char *at, const char *end, const char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

        if (!nul)
            return false;
        texts[i] = at;
        at = nul + 1;
    }
    return at == end;
}

static void take_packet(struct process *p, const char *packet, size_t len, int fd)
{
    const char *texts[EXPORTER_TEXTS_MIN + TEXTS_PER_ROW * EXPORTER_HEADERS];
    struct exporter_ask ask;
    void *body = NULL;

    if (len < sizeof(ask))
        _exit(1);
    memcpy(&ask, packet, sizeof(ask));
    if (ask.magic != EXPORTER_MAGIC || ask.n_texts < EXPORTER_TEXTS_MIN ||
        ask.n_texts > ARRAY_SIZE(texts) || ask.n_texts % 2 ||
        !split(packet + sizeof(ask), packet + len, texts, ask.n_texts) ||
        !map_body(fd, ask.len, &body))
        _exit(1);
    begin(p, &ask, texts, body);
}

/* Drops the posts of a front that is gone: nobody waits for their outcome. */
static void forget_front(struct process *p)
{
    if (p->control < 0)
        _exit(0);
    close_p(&p->sock);
    p->sock = -1;
    for (size_t i = 0; i < EXPORTER_AT_ONCE; i++)
        if (p->jobs[i].curl) {
            curl_multi_remove_handle(p->multi, p->jobs[i].curl);
            job_done(&p->jobs[i]);
            p->active--;
        }
}

static void take_word(struct process *p)
{
    int front = p->control >= 0 ? worker_take(p->control) : -1;

    if (front < 0)
        return;
    if (p->sock >= 0)
        forget_front(p);
    p->sock = front;
}

/* Takes one post from the socket. False: none is waiting. */
static bool take_post(struct process *p)
{
    static char packet[EXPORTER_PACKET_MAX];
    AUTO(ipc_fds_close) struct ipc_fds body = {.max = 1};
    ssize_t got = ipc_recv(p->sock, packet, sizeof(packet), &body);

    if (got == -EAGAIN)
        return false;
    if (got == 0) {
        forget_front(p);
        return false;
    }
    if (got < 0 || body.n != 1)
        _exit(1);
    take_packet(p, packet, (size_t)got, body.at[0]);
    explicit_bzero(packet, (size_t)got);
    return true;
}

static void serve_once(struct process *p)
{
    struct pollfd alone[] = {{.fd = p->control, .events = POLLIN},
                             {.fd = p->sock, .events = POLLIN}};
    struct curl_waitfd also[2];
    unsigned n = 0;
    int running;

    if (p->control >= 0)
        also[n++] = (struct curl_waitfd){.fd = p->control, .events = CURL_WAIT_POLLIN};
    if (p->sock >= 0 && p->active < EXPORTER_AT_ONCE)
        also[n++] = (struct curl_waitfd){.fd = p->sock, .events = CURL_WAIT_POLLIN};
    if (p->active > 0)
        curl_multi_poll(p->multi, also, n, POLL_MS, NULL);
    else
        poll(alone, ARRAY_SIZE(alone), -1);
    take_word(p);
    while (p->sock >= 0 && p->active < EXPORTER_AT_ONCE && take_post(p))
        ;
    if (p->multi) {
        curl_multi_perform(p->multi, &running);
        finish_ready(p);
    }
}

_Noreturn void exporter_process(int control, int front, int (*confine)(struct sg_error *e))
{
    static struct process p;
    struct sg_error e = {0};

    if (confine && confine(&e) < 0) {
        worker_say(control, WORKER_FAILED, e.message);
        _exit(1);
    }
    p.control = control;
    p.sock = front;
    if (front >= 0 && fd_set_nonblock(front, true) < 0)
        _exit(1);
    worker_say(control, WORKER_READY, NULL);
    for (;;)
        serve_once(&p);
}
