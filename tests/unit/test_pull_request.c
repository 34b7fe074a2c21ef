/* The request: what it may have in it, and that a wrong one never shows a secret. */
#include "pull/request.h"
#include "tap.h"

static int ask(const char *text, struct request *q, struct sg_error *e)
{
    *e = (struct sg_error){0};
    return request_parse(text, strlen(text), q, e);
}

TEST(defaults)
{
    struct request q = {0};
    struct sg_error e;

    EXPECT(ask("{\"image\":\"debian:12\"}", &q, &e) == 0);
    EXPECT(q.from == REQUEST_REGISTRY && q.credentials.kind == CREDENTIALS_NONE);
    EXPECT_STR(q.reference.path, "library/debian");
    EXPECT(q.limits.layers > 0 && q.limits.seconds > 0 && q.n_have == 0 && q.vouchers.n == 0);
    EXPECT(!q.proxy[0] && !q.certificates);
    request_done(&q);
    EXPECT(ask("{\"from\":\"archive\"}", &q, &e) == 0 && !q.image);
    request_done(&q);
}

TEST(all_fields)
{
    struct request q = {0};
    struct sg_error e;
    struct digest d;

    EXPECT(ask("{\"image\":\"a\",\"architecture\":\"arm64\",\"proxy\":\"http://127.0.0.1:3128\","
               "\"credentials\":{\"type\":\"aws\",\"awsAccessKeyId\":\"k\",\"awsSecretAccessKey\":"
               "\"s\","
               "\"awsRegion\":\"eu-west-1\"},\"registries\":{\"localhost:5000\":\"http\"},"
               "\"have\":[\"sha256:"
               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"],"
               "\"limits\":{\"layerBytes\":5,\"attempts\":1}}",
               &q, &e) == 0);
    EXPECT(q.credentials.kind == CREDENTIALS_AWS && q.vouchers.v[0].plain);
    EXPECT(q.limits.layer_bytes == 5 && q.limits.attempts == 1);
    d = q.have[0];
    EXPECT(request_has(&q, &d));
    d.text[10] ^= 1;
    EXPECT(!request_has(&q, &d));
    request_done(&q);
    EXPECT(
        ask("{\"image\":\"a\",\"credentials\":{\"type\":\"gcp\",\"serviceAccountJson\":\"{\\n}\"}}",
            &q, &e) == 0);
    EXPECT_STR(q.credentials.name, "_json_key");
    request_done(&q);
}

static const char *const wrong[] = {
    "",
    "[]",
    "{}",
    "{\"image\":7}",
    "{\"image\":\"A\"}",
    "{\"image\":\"a\",\"images\":1}",
    "{\"image\":\"a\",\"from\":\"disk\"}",
    "{\"image\":\"a\",\"architecture\":\"mips\"}",
    "{\"image\":\"a\",\"credentials\":{\"type\":\"registry\",\"username\":\"u\"}}",
    "{\"image\":\"a\",\"credentials\":{\"type\":\"registry\",\"username\":\"u:x\",\"password\":"
    "\"s3cret\"}}",
    "{\"image\":\"a\",\"credentials\":{\"type\":\"registry\",\"username\":\"u\",\"password\":"
    "\"s3cret\\r\\nX: y\"}}",
    "{\"image\":\"a\",\"credentials\":{\"type\":\"s3cret\"}}",
    "{\"image\":\"a\",\"credentials\":{}}",
    "{\"image\":\"a\",\"credentials\":{\"type\":\"aws\",\"awsAccessKeyId\":\"k\","
    "\"awsSecretAccessKey\":\"s3cret\","
    "\"awsRegion\":\"evil.test/\"}}",
    "{\"image\":\"a\",\"credentials\":{\"type\":\"identity\",\"token\":\"\"}}",
    "{\"image\":\"a\",\"proxy\":\"socks5://a\"}",
    "{\"image\":\"a\",\"proxy\":\"http://u:s3cret@a\"}",
    "{\"image\":\"a\",\"registries\":{\"a/b\":\"http\"}}",
    "{\"image\":\"a\",\"registries\":{\"a\":\"ftp\"}}",
    "{\"image\":\"a\",\"have\":[\"x\"]}",
    "{\"image\":\"a\",\"have\":[7]}",
    "{\"image\":\"a\",\"limits\":{\"seconds\":0}}",
    "{\"image\":\"a\",\"limits\":{\"speed\":1}}",
};

TEST(wrong_requests_are_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct request q = {0};
        struct sg_error e;

        if (ask(wrong[i], &q, &e) == 0) {
            printf("# %s was taken\n", wrong[i]);
            tap_failures++;
            request_done(&q);
        }
        EXPECT(e.code == -EINVAL && e.message[0] && !strstr(e.message, "s3cret"));
    }
}

TAP_MAIN
