#include "pull/request.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/fields.h"
#include "pull/fault.h"

#define GIB             (1ull << 30)
#define BYTES_MAX       (1024 * GIB)
#define SECRET_MAX      (64u << 10)
#define CERTIFICATE_MAX (1u << 20)
#define REGISTRIES_MAX  64
#define HAVE_MAX        4096
#define DAY_S           86400
#define GCP_USER        "_json_key" /* the password is then the account's JSON */

#if defined(__x86_64__)
#define MACHINE "amd64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#endif

static const char *secret_text(struct fields *in, const char *name)
{
    const char *text = field_text(in, name, SECRET_MAX, NULL);

    if (!text || !text[0])
        field_must(in, name, "a text");
    return text;
}

/* A control character could begin a header of its own. */
static const char *secret_line(struct fields *in, const char *name)
{
    const char *text = secret_text(in, name);

    for (const char *p = text; p && *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            field_must(in, name, "one line without control characters");
    return text;
}

static bool valid_region(const char *text)
{
    return strlen(text) <= 40 && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

static void read_credentials(struct fields *in, struct credentials *c)
{
    static const char *const types[] = {"registry", "identity", "aws", "gcp"};
    struct fields of = field_object(in, "credentials");

    if (!of.object)
        return;
    switch (field_word(&of, "type", types, ARRAY_SIZE(types), ARRAY_SIZE(types),
                       "registry, identity, aws or gcp")) {
    case 0:
        *c = (struct credentials){.kind = CREDENTIALS_PASSWORD,
                                  .name = secret_line(&of, "username"),
                                  .secret = secret_line(&of, "password")};
        if (c->name && strchr(c->name, ':'))
            field_must(&of, "username", "without a colon");
        break;
    case 1:
        *c =
            (struct credentials){.kind = CREDENTIALS_IDENTITY, .secret = secret_line(&of, "token")};
        break;
    case 2:
        *c = (struct credentials){.kind = CREDENTIALS_AWS,
                                  .name = secret_line(&of, "awsAccessKeyId"),
                                  .secret = secret_line(&of, "awsSecretAccessKey"),
                                  .region = secret_line(&of, "awsRegion")};
        if (c->region && !valid_region(c->region))
            field_must(&of, "awsRegion", "a region such as eu-west-1");
        break;
    case 3: /* sent in base64 only: it may have lines */
        *c = (struct credentials){.kind = CREDENTIALS_PASSWORD,
                                  .name = GCP_USER,
                                  .secret = secret_text(&of, "serviceAccountJson")};
        break;
    default:
        field_must(&of, "type", "registry, identity, aws or gcp");
    }
}

static void read_registries(struct fields *in, struct vouchers *ret)
{
    struct fields of = field_object(in, "registries");
    size_t n = json_object_size(of.object);
    json_t *object = (json_t *)(uintptr_t)of.object, *value;
    const char *host;

    if (n > REGISTRIES_MAX) {
        field_wrong(in, "'registries' has more than %d entries", REGISTRIES_MAX);
        return;
    }
    ret->as = "registry";
    ret->v = xcalloc(n + 1, sizeof(*ret->v));
    json_object_foreach(object, host, value)
    {
        struct vouched *v = &ret->v[ret->n++];
        const char *scheme = json_string_value(value);

        if (!reference_host_valid(host, strlen(host)) || !scheme ||
            (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
            field_wrong(in,
                        "'registries' must have hosts, such as localhost:5000, with http or https");
            return;
        }
        memcpy(v->host, host, strlen(host) + 1);
        v->plain = strcmp(scheme, "http") == 0;
    }
}

static void read_have(struct fields *in, struct request *q)
{
    json_t *have = field_array(in, "have", HAVE_MAX), *value;
    size_t i;

    q->have = xcalloc(json_array_size(have) + 1, sizeof(*q->have));
    json_array_foreach(have, i, value)
    {
        if (!digest_parse(json_string_value(value) ? json_string_value(value) : "",
                          json_string_length(value), &q->have[q->n_have]))
            field_must(in, "have", "a list of digests");
        q->n_have++;
    }
}

static void read_known(struct fields *in, struct digest *ret)
{
    const char *text = field_text(in, "known", DIGEST_TEXT_MAX, "");

    if (text[0] && !digest_parse(text, strlen(text), ret))
        field_must(in, "known", "a digest");
}

/* "docker.io" is another name of the host that is asked. */
static bool names_registry(const char *listed, const char *host)
{
    char text[REFERENCE_NAME_MAX + 1];
    struct reference r = {.host = ""};

    snprintf(text, sizeof(text), "%s/x", listed ? listed : "");
    return reference_parse(text, &r, NULL) == 0 && strcmp(r.host, host) == 0;
}

int request_check_registry(const struct request *q, struct sg_error *e)
{
    json_t *host;
    size_t i;

    if (!q->only)
        return 0;
    json_array_foreach(q->only, i, host)
    {
        if (names_registry(json_string_value(host), q->reference.host))
            return 0;
    }
    return fault_forbidden(e,
                           "this server fetches no images from %s: its operator can allow it "
                           "(build_registries)",
                           q->reference.host);
}

static void read_limits(struct fields *in, struct limits *l)
{
    struct fields of = field_object(in, "limits");

    l->layer_bytes = field_count(&of, "layerBytes", 1, BYTES_MAX, 16 * GIB);
    l->total_bytes = field_count(&of, "totalBytes", 1, BYTES_MAX, 32 * GIB);
    l->layers = (uint32_t)field_count(&of, "layers", 1, 1000, 256);
    l->seconds = (uint32_t)field_count(&of, "seconds", 1, DAY_S, 3600);
    l->connect_seconds = (uint32_t)field_count(&of, "connectSeconds", 1, 600, 15);
    l->stall_seconds = (uint32_t)field_count(&of, "stallSeconds", 1, 600, 30);
    l->attempts = (uint32_t)field_count(&of, "attempts", 1, 20, 6);
    fields_known(&of, "layerBytes", "totalBytes", "layers", "seconds", "connectSeconds",
                 "stallSeconds", "attempts");
}

/* A proxy is named by the operator: who it is and what it reaches is not judged here. */
static void check_proxy(struct fields *in, const char *proxy)
{
    const char *host = proxy + strlen("http://");

    if (proxy[0] && (strncmp(proxy, "http://", strlen("http://")) != 0 ||
                     !reference_host_valid(host, strlen(host))))
        field_must(in, "proxy", "http://HOST:PORT");
}

static int read_fields(struct request *q, struct sg_error *e)
{
    static const char *const sources[] = {"registry", "layout", "archive"};
    static const char *const machines[] = {"amd64", "arm64"};
    struct fields in = {.object = q->json, .prefix = "request: ", .e = e};

    q->from = (enum request_from)field_word(&in, "from", sources, ARRAY_SIZE(sources),
                                            REQUEST_REGISTRY, "registry, layout or archive");
    q->image = field_text(&in, "image", 4096, NULL);
    q->architecture = field_text(&in, "architecture", 16, MACHINE);
    field_word(&in, "architecture", machines, ARRAY_SIZE(machines), 0, "amd64 or arm64");
    read_credentials(&in, &q->credentials);
    read_registries(&in, &q->vouchers);
    q->proxy = field_text(&in, "proxy", 300, "");
    check_proxy(&in, q->proxy);
    q->certificates = field_text(&in, "certificates", CERTIFICATE_MAX, NULL);
    q->only = field_array(&in, "only", REGISTRIES_MAX);
    read_known(&in, &q->known);
    q->sync = field_flag(&in, "sync", true);
    read_have(&in, q);
    read_limits(&in, &q->limits);
    fields_known(&in, "from", "image", "architecture", "credentials", "registries", "proxy",
                 "certificates", "only", "known", "sync", "have", "limits");
    if (q->from == REQUEST_REGISTRY)
        fields_check(&in, reference_parse(q->image ? q->image : "", &q->reference, e));
    return in.r;
}

int request_parse(const char *text, size_t len, struct request *ret, struct sg_error *e)
{
    struct request q = {.json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL)};
    int r = json_is_object(q.json) ? read_fields(&q, e)
                                   : fault_invalid(e, "request: must be one JSON object");

    if (r < 0)
        request_done(&q);
    else
        *ret = q;
    return r;
}

void request_done(struct request *q)
{
    free(q->vouchers.v);
    free(q->have);
    json_decref(q->json);
    *q = (struct request){0};
}

bool request_has(const struct request *q, const struct digest *layer)
{
    for (size_t i = 0; i < q->n_have; i++)
        if (digest_equal(&q->have[i], layer))
            return true;
    return false;
}
