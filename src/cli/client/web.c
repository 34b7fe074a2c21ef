#include "cli/client/web.h"

#include "cli/client/interrupt.h"

#define AGENT              "sandglass/" SG_VERSION
#define CONNECT_TIMEOUT_MS 10000
#define RECEIVE_BUFFER     (256 * 1024)
#define SEND_BUFFER        (512 * 1024)

void web_add_header(struct curl_slist **list, const char *name, const char *value)
{
    AUTO(free_p) char *line = NULL;

    if (asprintf(&line, "%s: %s", name, value) < 0)
        line = xstrdup("");
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (!longer)
        abort();
    *list = longer;
}

void web_headers_done(struct curl_slist **list)
{
    curl_slist_free_all(*list);
    *list = NULL;
}

/* Called by libcurl often enough during a transfer, and once a second while nothing moves. */
static int stop_if_interrupted(void *arg UNUSED, curl_off_t a UNUSED, curl_off_t b UNUSED,
                               curl_off_t c UNUSED, curl_off_t d UNUSED)
{
    return interrupt_signal() != 0;
}

static bool is_local(const char *url)
{
    static const char *const hosts[] = {"127.", "localhost", "[::1]"};
    const char *host = strstr(url, "://");

    for (size_t i = 0; host && i < ARRAY_SIZE(hosts); i++)
        if (strncmp(host + 3, hosts[i], strlen(hosts[i])) == 0)
            return true;
    return false;
}

/* For libcurl a body means POST and no body means GET; the method only changes the name in the
 * request line. */
static void prepare_body(CURL *easy, const struct web_request *q)
{
    if (q->body) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, q->body->buf);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body->len);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, q->method);
}

void web_prepare(CURL *easy, const struct web_request *q)
{
    const char *authorities = getenv("SSL_CERT_FILE");

    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, q->url);
    /* No redirects: they would carry keys to another place. api.c decides which ones are
     * followed. */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, AGENT);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)RECEIVE_BUFFER);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)SEND_BUFFER);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, q->headers);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, stop_if_interrupted);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    if (is_local(q->url))
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (authorities && *authorities)
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
    prepare_body(easy, q);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Shows only scheme, host and port: a path or a password does not belong in messages. */
static void show_origin(const char *url, char *buf, size_t cap)
{
    const char *host = strstr(url, "://"), *at;

    host = host ? host + 3 : url;
    size_t len = strcspn(host, "/?#");
    at = memrchr(host, '@', len);
    if (at) {
        len -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    snprintf(buf, cap, "%.*s%.*s", (int)(strncmp(url, "https", 5) == 0 ? 8 : 7),
             strncmp(url, "https", 5) == 0 ? "https://" : "http://", (int)(len < 128 ? len : 128),
             host);
}

static bool is_connected(CURL *easy)
{
    curl_off_t when = 0;

    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &when);
    return when > 0;
}

int web_result(CURL *easy, CURLcode code, const char *url, struct sg_error *e)
{
    char origin[160];

    if (code == CURLE_OK)
        return 0;
    show_origin(url, origin, sizeof(origin));
    if (code == CURLE_ABORTED_BY_CALLBACK && interrupt_signal())
        return err_set(e, SG_ERR_INTERNAL, -EINTR, "interrupted");
    if (code == CURLE_OPERATION_TIMEDOUT && is_connected(easy))
        return err_set(e, SG_ERR_LIMIT, -ETIMEDOUT, "the server at %s took too long to answer",
                       origin);
    if (is_connected(easy))
        return err_set(e, SG_ERR_GONE, -EHOSTUNREACH, "the connection to %s broke: %s", origin,
                       curl_easy_strerror(code));
    return err_set(e, SG_ERR_NOT_FOUND, -EHOSTUNREACH, "cannot reach the server at %s: %s (%s)",
                   origin, curl_easy_strerror(code),
                   code == CURLE_PEER_FAILED_VERIFICATION
                       ? "SSL_CERT_FILE names certificates to trust"
                       : "E2B_API_URL and --url say where it is");
}

int web_perform(CURL *easy, const char *url, struct sg_error *e)
{
    return web_result(easy, curl_easy_perform(easy), url, e);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
    struct web_reply *r = arg;

    strbuf_add(&r->body, data, size * n);
    return r->body.truncated ? 0 : size * n;
}

void web_take_header(const char *line, size_t len, const char *name, char *ret, size_t cap)
{
    size_t skip = strlen(name);

    if (len <= skip || strncasecmp(line, name, skip) != 0)
        return;
    while (skip < len && line[skip] == ' ')
        skip++;
    while (len > skip && strchr("\r\n ", line[len - 1]))
        len--;
    if (len - skip < cap)
        snprintf(ret, cap, "%.*s", (int)(len - skip), line + skip);
}

static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
    struct web_reply *r = arg;

    web_take_header(data, size * n, "x-next-token:", r->next_token, sizeof(r->next_token));
    return size * n;
}

void web_prepare_call(CURL *easy, const struct web_request *q, struct web_reply *reply)
{
    *reply = (struct web_reply){0};
    strbuf_init(&reply->body, WEB_REPLY_MAX);
    web_prepare(easy, q);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(WEB_CALL_TIMEOUT_MS + q->more_ms));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, reply);
}

int web_call(CURL *easy, const struct web_request *q, struct web_reply *ret, struct sg_error *e)
{
    struct web_reply reply;

    web_prepare_call(easy, q, &reply);
    int r = web_perform(easy, q->url, e);
    if (r < 0) {
        if (reply.body.truncated)
            r = err_set(e, SG_ERR_LIMIT, -EFBIG, "the server's answer is larger than 32 MiB");
        web_reply_done(&reply);
        return r;
    }
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply.status);
    *ret = reply;
    return 0;
}

void web_reply_done(struct web_reply *r)
{
    strbuf_done(&r->body);
}
