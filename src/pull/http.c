#include "pull/http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/net/addr.h"
#include "lib/text/parse.h"
#include "pull/fault.h"
#include "pull/request.h"

#define USER_AGENT   "sandglass/" SG_VERSION
#define HEAD_MAX     (64u << 10)
#define TROUBLE_MAX  (16u << 10)
#define BUFFER_BYTES (256L << 10)
#define RETRY_MAX_S  3600
#define SPEED_MIN    1024L /* bytes a second */

/* An exchange under way. */
struct exchange {
    struct http *http;
    const struct http_ask *ask;
    struct http_answer *answer;
    struct sg_error *e;
    size_t head; /* bytes of heads */
    bool begun;
    int r; /* of begin or take */
    bool head_too_long, trouble_too_long;
    const char *refused; /* why an address was not connected; NULL: none */
};

/* ---- the address that is really connected ---------------------------------------------------- */

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct exchange *x = arg;
    const struct request *q = x->http->request;
    struct net_addr a;
    const char *why;

    if (purpose != CURLSOCKTYPE_IPCXN || net_addr_from(&to->addr, &a) < 0)
        return CURL_SOCKET_BAD;
    why = net_addr_dial_refusal(&a);
    if (why && !q->proxy[0] && !url_vouched(x->ask->url, &q->vouchers)) {
        x->refused = why;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* ---- the head -------------------------------------------------------------------------------- */

/* libcurl keeps every line of a head, so their sum is bounded here. */
static size_t on_head(char *line UNUSED, size_t one UNUSED, size_t n, void *arg)
{
    struct exchange *x = arg;

    x->head += n;
    x->head_too_long |= x->head > HEAD_MAX;
    return x->head_too_long ? 0 : n;
}

/* The value of a header, or "". */
static const char *header(struct exchange *x, const char *name, size_t index)
{
    struct curl_header *h;

    return curl_easy_header(x->http->curl, name, index, CURLH_HEADER, -1, &h) == CURLHE_OK
               ? h->value
               : "";
}

static bool number(const char *text, size_t len, uint64_t *ret)
{
    char digits[24];

    if (len == 0 || len >= sizeof(digits))
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    return parse_u64("number", digits, 0, INT64_MAX, ret, NULL) == 0;
}

/* "bytes 100-199/200", or with "*" as length. */
static void take_range(const char *text, struct http_answer *a)
{
    const char *dash = strchr(text, '-'), *slash = strchr(text, '/');
    uint64_t whole;

    if (strncasecmp(text, "bytes ", 6) != 0 || !dash || !slash ||
        !number(text + 6, (size_t)(dash - text - 6), &a->from))
        a->from = UINT64_MAX; /* matches nothing that was asked for */
    else if (number(slash + 1, strlen(slash + 1), &whole))
        a->whole = whole;
}

static void take_type(const char *text, struct http_answer *a)
{
    size_t n = strcspn(text, "; \t");

    for (size_t i = 0; i < n && i + 1 < sizeof(a->type); i++)
        a->type[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
}

static void take_challenges(struct exchange *x, struct http_answer *a)
{
    size_t len = 0;

    for (size_t i = 0; i < 8 && header(x, "WWW-Authenticate", i)[0]; i++) {
        int n = snprintf(a->challenge + len, sizeof(a->challenge) - len, "%s%s", i ? ", " : "",
                         header(x, "WWW-Authenticate", i));

        if (n < 0 || (size_t)n >= sizeof(a->challenge) - len)
            break;
        len += (size_t)n;
    }
    a->challenge[len] = '\0';
}

/* Looks at the head once it is whole. */
static void take_head(struct exchange *x)
{
    struct http_answer *a = x->answer;
    const char *encoding = header(x, "Content-Encoding", 0), *after = header(x, "Retry-After", 0);
    uint64_t seconds;

    curl_easy_getinfo(x->http->curl, CURLINFO_RESPONSE_CODE, &a->status);
    take_type(header(x, "Content-Type", 0), a);
    a->encoded = encoding[0] && strcasecmp(encoding, "identity") != 0;
    a->has_length =
        number(header(x, "Content-Length", 0), strlen(header(x, "Content-Length", 0)), &a->length);
    if (a->status == 206)
        take_range(header(x, "Content-Range", 0), a);
    snprintf(a->location, sizeof(a->location), "%s", header(x, "Location", 0));
    take_challenges(x, a);
    if (number(after, strlen(after), &seconds))
        a->retry_after_ms = (seconds < RETRY_MAX_S ? seconds : RETRY_MAX_S) * 1000;
}

/* ---- the body -------------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t one UNUSED, size_t n, void *arg)
{
    struct exchange *x = arg;
    struct http_answer *a = x->answer;

    if (!x->begun) {
        x->begun = true;
        take_head(x);
        if (a->status == 200 || a->status == 206)
            x->r = x->ask->begin(x->ask->arg, a, x->e);
    }
    if (a->status != 200 && a->status != 206) {
        strbuf_add(&a->trouble, data, n);
        x->trouble_too_long = a->trouble.truncated;
    } else if (x->r == 0) {
        x->r = x->ask->take(x->ask->arg, data, n, x->e);
    }
    return x->r < 0 || x->trouble_too_long ? 0 : n;
}

static int on_progress(void *arg, curl_off_t a UNUSED, curl_off_t b UNUSED, curl_off_t c UNUSED,
                       curl_off_t d UNUSED)
{
    const struct exchange *x = arg;

    return *x->http->deadline->stop;
}

/* ---- one exchange ---------------------------------------------------------------------------- */

static bool add_line(struct curl_slist **list, const char *name, const char *value)
{
    struct strbuf line = strbuf_upto(strlen(name) + strlen(value));
    struct curl_slist *longer;

    strbuf_reserve(&line);
    strbuf_addf(&line, "%s%s", name, value);
    longer = curl_slist_append(*list, line.buf);
    strbuf_wipe(&line);
    if (longer)
        *list = longer;
    return longer != NULL;
}

static bool make_headers(const struct http_ask *ask, struct curl_slist **ret)
{
    bool good = add_line(ret, "Expect:", "");

    if (good && ask->accept)
        good = add_line(ret, "Accept: ", ask->accept);
    if (good && ask->authorization)
        good = add_line(ret, "Authorization: ", ask->authorization);
    for (size_t i = 0; good && ask->headers && ask->headers[i]; i++)
        good = add_line(ret, ask->headers[i], "");
    return good;
}

static bool set_certificates(CURL *c, const char *pem)
{
    struct curl_blob blob = {.data = (void *)(uintptr_t)pem, .len = pem ? strlen(pem) : 0};

    /* It takes the place of the bundle, not of the directory that the system keeps beside it. */
    return !pem || curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &blob) == CURLE_OK;
}

static bool set_rules(CURL *c, struct exchange *x)
{
    const struct request *q = x->http->request;

    return curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PROXY, q->proxy) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOPROXY, "") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HEADEROPT, CURLHEADER_SEPARATE) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, x) == CURLE_OK &&
           set_certificates(c, q->certificates);
}

static bool set_time(CURL *c, struct exchange *x)
{
    const struct limits *l = &x->http->request->limits;
    int left = clock_poll_ms(x->http->deadline->ns);

    return curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(left > 0 ? left : 1)) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)l->connect_seconds * 1000) ==
               CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, SPEED_MIN) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)l->stall_seconds) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_XFERINFODATA, x) == CURLE_OK;
}

static bool set_ask(CURL *c, struct exchange *x, const struct curl_slist *headers)
{
    const struct http_ask *ask = x->ask;
    char range[32];

    snprintf(range, sizeof(range), "%llu-", (unsigned long long)ask->from);
    return curl_easy_setopt(c, CURLOPT_CURLU, ask->url->curl) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_USERAGENT, USER_AGENT) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_BUFFERSIZE, BUFFER_BYTES) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_head) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HEADERDATA, x) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEDATA, x) == CURLE_OK &&
           (ask->from == 0 || curl_easy_setopt(c, CURLOPT_RANGE, range) == CURLE_OK) &&
           (!ask->body || (curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE,
                                            (curl_off_t)ask->body_len) == CURLE_OK &&
                           curl_easy_setopt(c, CURLOPT_POSTFIELDS, ask->body) == CURLE_OK));
}

/* What libcurl's result means. 0: there is an answer. */
static int judge(struct exchange *x, CURLcode code, bool *again)
{
    const char *where = x->ask->url->origin;
    const struct limits *l = &x->http->request->limits;
    long proxy = 0;
    int r;

    if (x->r < 0)
        return x->r;
    if (code == CURLE_OK || x->trouble_too_long)
        return 0;
    if ((r = deadline_check(x->http->deadline, x->e)) < 0)
        return r;
    if (x->refused && code == CURLE_COULDNT_CONNECT)
        return fault_forbidden(x->e, "%s is at an %s: the operator must allow it as a registry",
                               where, x->refused);
    if (x->head_too_long)
        return fault_corrupt(x->e, "%s answered with a head of more than %u KiB", where,
                             HEAD_MAX >> 10);
    curl_easy_getinfo(x->http->curl, CURLINFO_HTTP_CONNECTCODE, &proxy);
    if (proxy >= 400)
        return fault_denied(x->e, "the proxy does not let us reach %s: it answered %ld", where,
                            proxy);
    *again = true;
    switch ((int)code) {
    case CURLE_OPERATION_TIMEDOUT:
        return fault_timeout(x->e,
                             "%s did not answer in time: it has %u s to connect, and must then "
                             "send 1 KiB/s over %u s",
                             where, l->connect_seconds, l->stall_seconds);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
        *again = false;
        return fault_certificate(x->e, "the certificate of %s cannot be trusted", where);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        *again = x->http->answered;
        return fault_network(x->e, "%s cannot be reached: %s", where, curl_easy_strerror(code));
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SSL_CONNECT_ERROR:
        return fault_network(x->e, "the connection to %s broke: %s", where,
                             curl_easy_strerror(code));
    default:
        *again = false;
        return fault_network(x->e, "%s: %s", where, curl_easy_strerror(code));
    }
}

int http_exchange(struct http *h, const struct http_ask *ask, struct http_answer *ret,
                  bool *ret_again, struct sg_error *e)
{
    struct exchange x = {.http = h, .ask = ask, .answer = ret, .e = e};
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    int r = deadline_check(h->deadline, e);

    *ret_again = false;
    strbuf_init(&ret->trouble, TROUBLE_MAX);
    if (r < 0)
        return r;
    curl_easy_reset(h->curl);
    if (make_headers(ask, &headers) && set_rules(h->curl, &x) && set_time(h->curl, &x) &&
        set_ask(h->curl, &x, headers))
        code = curl_easy_perform(h->curl);
    r = judge(&x, code, ret_again);
    if (r == 0 && !x.begun)
        take_head(&x);
    h->answered |= r == 0;
    curl_slist_free_all(headers);
    return r;
}

void http_answer_done(struct http_answer *a)
{
    strbuf_done(&a->trouble);
}

int http_init(struct http *h, const struct request *q, const struct deadline *d, struct sg_error *e)
{
    *h = (struct http){.request = q, .deadline = d};
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(h->curl = curl_easy_init()))
        return err_code(e, -ENOMEM, "start libcurl");
    return 0;
}

void http_done(struct http *h)
{
    if (h->curl)
        curl_easy_cleanup(h->curl);
    h->curl = NULL;
}
