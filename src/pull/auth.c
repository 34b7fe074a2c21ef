#include "pull/auth.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/json/values.h"
#include "lib/text/base64.h"
#include "pull/challenge.h"
#include "pull/fault.h"
#include "pull/request.h"
#include "pull/sigv4.h"

#define HEADER_MAX     (128u << 10)
#define ANSWER_MAX     (64u << 10)
#define TOKEN_MAX      (32u << 10)
#define CLIENT_ID      "sandglass"
#define FORM_TYPE      "Content-Type: application/x-www-form-urlencoded"
#define ECR_TYPE       "application/x-amz-json-1.1"
#define ECR_TARGET     "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
#define ECR_BODY       "{}"
#define ECR_HEADER_MAX 512

void auth_init(struct auth *a, struct http *h)
{
    *a = (struct auth){
        .http = h, .header = strbuf_upto(HEADER_MAX), .basic = strbuf_upto(HEADER_MAX)};
    strbuf_reserve(&a->header);
    strbuf_reserve(&a->basic);
}

void auth_done(struct auth *a)
{
    if (!a->http)
        return;
    strbuf_wipe(&a->header);
    strbuf_wipe(&a->basic);
    a->http = NULL;
}

const char *auth_header(const struct auth *a)
{
    return a->header.len ? a->header.buf : NULL;
}

/* ---- one question, whose answer is a secret -------------------------------------------------- */

struct question {
    struct http *http;
    struct http_ask ask;
    struct strbuf answer;
    const char *what;
};

static int begin_answer(void *arg, const struct http_answer *a UNUSED, struct sg_error *e UNUSED)
{
    struct question *q = arg;

    strbuf_reset(&q->answer);
    return 0;
}

static int take_answer(void *arg, const void *data, size_t len, struct sg_error *e)
{
    struct question *q = arg;

    strbuf_add(&q->answer, data, len);
    return q->answer.truncated ? fault_limit(e, "%s of %s has more than %u KiB", q->what,
                                             q->ask.url->origin, ANSWER_MAX >> 10)
                               : 0;
}

static int ask_once(void *arg, struct attempt *ret, struct sg_error *e)
{
    AUTO(http_answer_done) struct http_answer a = {0};
    struct question *q = arg;
    int r = http_exchange(q->http, &q->ask, &a, &ret->again, e);

    if (r < 0 || a.status == 200)
        return r;
    return retry_status(&a, q->what, q->ask.url->origin, ret, e);
}

/* Asks and reads an object; the text that it was made of is wiped. */
static int ask_json(struct http *h, const struct http_ask *ask, const char *what, json_t **ret,
                    struct sg_error *e)
{
    struct question q = {.http = h, .ask = *ask, .what = what, .answer = strbuf_upto(ANSWER_MAX)};
    int r;

    strbuf_reserve(&q.answer);
    q.ask.begin = begin_answer;
    q.ask.take = take_answer;
    q.ask.arg = &q;
    r = retry(h, ask_once, &q, e);
    if (r == 0) {
        *ret = json_loadb(q.answer.buf, q.answer.len, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(*ret)) {
            json_decref(*ret);
            r = fault_corrupt(e, "%s of %s is not a JSON object", what, ask->url->origin);
        }
    }
    strbuf_wipe(&q.answer);
    return r;
}

/* A token goes into a header: no blanks, nothing but ASCII. */
static bool valid_token(const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if (text[i] <= 0x20 || text[i] >= 0x7f)
            return false;
    return n > 0 && n <= TOKEN_MAX;
}

/* ---- user and password ----------------------------------------------------------------------- */

static void set_basic(struct auth *a, const struct credentials *c)
{
    struct strbuf plain = strbuf_upto(HEADER_MAX / 2);

    strbuf_reserve(&plain);
    strbuf_addf(&plain, "%s:%s", c->name, c->secret);
    strbuf_reset(&a->basic);
    strbuf_addstr(&a->basic, "Basic ");
    base64_encode(&a->basic, plain.buf, plain.len);
    strbuf_wipe(&plain);
}

/* The value of Authorization for the request below. */
static void sign_ecr(const struct credentials *c, const char *host, const char *stamp, time_t now,
                     struct strbuf *out)
{
    const struct sigv4_header headers[] = {{"content-type", ECR_TYPE},
                                           {"host", host},
                                           {"x-amz-date", stamp},
                                           {"x-amz-target", ECR_TARGET}};

    sigv4_sign(&(struct sigv4){.method = "POST",
                               .path = "/",
                               .query = "",
                               .headers = headers,
                               .n_headers = ARRAY_SIZE(headers),
                               .body = ECR_BODY,
                               .body_len = strlen(ECR_BODY),
                               .key_id = c->name,
                               .secret = c->secret,
                               .region = c->region,
                               .service = "ecr",
                               .time = now},
               out);
}

/* Asks AWS for what ECR takes as Basic. */
static int ask_ecr(struct auth *a, const struct credentials *c, struct sg_error *e)
{
    AUTO(url_done) struct url url = {0};
    AUTO(strbuf_done) struct strbuf signature = strbuf_upto(HEADER_MAX);
    char host[ECR_HEADER_MAX], text[ECR_HEADER_MAX + 16], date[64], stamp[SIGV4_TIME_LEN];
    const char *const headers[] = {"Content-Type: " ECR_TYPE, date, "X-Amz-Target: " ECR_TARGET,
                                   NULL};
    time_t now = (time_t)(clock_wall_ms() / 1000);
    json_t *json = NULL;
    const char *token;
    int r;

    snprintf(host, sizeof(host), "api.ecr.%s.amazonaws.com%s", c->region,
             strncmp(c->region, "cn-", 3) == 0 ? ".cn" : "");
    snprintf(text, sizeof(text), "https://%s/", host);
    sigv4_time(now, stamp);
    snprintf(date, sizeof(date), "X-Amz-Date: %s", stamp);
    sign_ecr(c, host, stamp, now, &signature);
    r = url_parse(text, &url, e);
    if (r == 0)
        r = ask_json(a->http,
                     &(struct http_ask){.url = &url,
                                        .authorization = signature.buf,
                                        .headers = headers,
                                        .body = ECR_BODY,
                                        .body_len = strlen(ECR_BODY)},
                     "the registry's token", &json, e);
    if (r < 0)
        return r;
    token = jr_text(json_array_get(json_object_get(json, "authorizationData"), 0),
                    "authorizationToken");
    if (valid_token(token)) {
        strbuf_reset(&a->basic);
        strbuf_addf(&a->basic, "Basic %s", token);
    } else {
        r = fault_corrupt(e, "%s answered without a token", url.origin);
    }
    json_decref(json);
    return r;
}

/* Makes a->basic, if the credentials are of a kind that has one. */
static int make_basic(struct auth *a, struct sg_error *e)
{
    const struct credentials *c = &a->http->request->credentials;

    if (c->kind == CREDENTIALS_AWS)
        return ask_ecr(a, c, e);
    if (c->kind == CREDENTIALS_PASSWORD)
        set_basic(a, c);
    return 0;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void add_form(struct strbuf *form, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, 0);

    strbuf_addf(form, "%s%s=%s", form->len ? "&" : "", name, escaped ? escaped : "");
    curl_free(escaped);
}

/* Gives the identity token for one of the repository. */
static int ask_oauth(struct auth *a, const struct url *realm, const char *service,
                     const char *scope, json_t **ret, struct sg_error *e)
{
    static const char *const headers[] = {FORM_TYPE, NULL};
    struct strbuf form = strbuf_upto(4 * HEADER_MAX);
    int r;

    strbuf_reserve(&form);
    add_form(&form, "grant_type", "refresh_token");
    add_form(&form, "client_id", CLIENT_ID);
    add_form(&form, "service", service);
    add_form(&form, "scope", scope);
    add_form(&form, "refresh_token", a->http->request->credentials.secret);
    r = ask_json(a->http,
                 &(struct http_ask){
                     .url = realm, .headers = headers, .body = form.buf, .body_len = form.len},
                 "a token", ret, e);
    strbuf_wipe(&form);
    return r;
}

static int ask_token(struct auth *a, const struct url *registry, const struct challenge *c,
                     const char *repository, struct sg_error *e)
{
    AUTO(url_done) struct url realm = {0};
    char scope[512];
    json_t *json = NULL;
    const char *token;
    int r = url_follow(registry, c->realm, &a->http->request->vouchers, &realm, e);

    snprintf(scope, sizeof(scope), "repository:%s:pull", repository);
    if (r == 0 && a->http->request->credentials.kind == CREDENTIALS_IDENTITY) {
        r = ask_oauth(a, &realm, c->service, scope, &json, e);
    } else if (r == 0) {
        if ((c->service[0] && url_add_query(&realm, "service", c->service) < 0) ||
            url_add_query(&realm, "scope", scope) < 0)
            r = fault_corrupt(e, "%s wants a token of an address that cannot be read",
                              registry->origin);
        else
            r = ask_json(a->http,
                         &(struct http_ask){.url = &realm,
                                            .authorization = a->basic.len ? a->basic.buf : NULL},
                         "a token", &json, e);
    }
    if (r < 0)
        return r;
    token = jr_text_or(json, "token", jr_text(json, "access_token"));
    strbuf_reset(&a->header);
    if (valid_token(token))
        strbuf_addf(&a->header, "Bearer %s", token);
    else
        r = fault_corrupt(e, "%s answered without a token", realm.origin);
    json_decref(json);
    return r;
}

int auth_answer(struct auth *a, const struct url *registry, const char *challenge,
                const char *repository, struct sg_error *e)
{
    struct challenge c;
    int r = 0;

    challenge_parse(challenge, strlen(challenge), &c);
    if (c.scheme == CHALLENGE_NONE)
        return fault_unsupported(e, "%s wants a proof of a kind that is not known",
                                 registry->origin);
    if (!a->basic.len)
        r = make_basic(a, e);
    if (r == 0 && c.scheme == CHALLENGE_BEARER)
        return ask_token(a, registry, &c, repository, e);
    if (r == 0 && !a->basic.len)
        return fault_denied(e, "%s wants a user and a password", registry->origin);
    if (r == 0) {
        strbuf_reset(&a->header);
        strbuf_add(&a->header, a->basic.buf, a->basic.len);
    }
    return r;
}
