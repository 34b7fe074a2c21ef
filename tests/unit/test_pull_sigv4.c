/* Signatures for AWS: the requests and signatures that AWS published to check others by. */
#include "pull/sigv4.h"
#include "tap.h"

#define KEY_ID "AKIDEXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define WHEN   1440938160 /* 2015-08-30 12:36:00 */
#define STAMP  "20150830T123600Z"
#define DATE                \
    {                       \
        "x-amz-date", STAMP \
    }
#define EXAMPLE                         \
    {                                   \
        "host", "example.amazonaws.com" \
    }
#define HEAD(service, names)                                             \
    "AWS4-HMAC-SHA256 Credential=" KEY_ID "/20150830/us-east-1/" service \
    "/aws4_request, SignedHeaders=" names ", Signature="

static const struct sigv4_header plain[] = {EXAMPLE, DATE};
static const struct sigv4_header sorted[] = {EXAMPLE, {"my-header1", "value1"}, DATE};
static const struct sigv4_header form[] = {
    {"content-type", "application/x-www-form-urlencoded"}, EXAMPLE, DATE};
static const struct sigv4_header iam[] = {
    {"content-type", "application/x-www-form-urlencoded; charset=utf-8"},
    {"host", "iam.amazonaws.com"},
    DATE};

static const struct {
    const char *method, *query, *body, *service;
    const struct sigv4_header *headers;
    size_t n;
    const char *signature;
} published[] = {
    {"GET", "", "", "service", plain, 2,
     HEAD("service",
          "host;x-amz-date") "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"GET", "Param1=value1&Param2=value2", "", "service", plain, 2,
     HEAD("service",
          "host;x-amz-date") "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"POST", "", "", "service", plain, 2,
     HEAD("service",
          "host;x-amz-date") "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"POST", "", "", "service", sorted, 3,
     HEAD("service", "host;my-header1;x-amz-date") "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461"
                                                   "ec8f8916fdf18852c"},
    {"POST", "", "Param1=value1", "service", form, 3,
     HEAD("service", "content-type;host;x-amz-date") "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1"
                                                     "da7b9d196a0fe09473a"},
    {"GET", "Action=ListUsers&Version=2010-05-08", "", "iam", iam, 3,
     HEAD("iam", "content-type;host;x-amz-date") "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e"
                                                 "06b5924a6f2b5d7"},
};

TEST(signatures_are_those_that_aws_published)
{
    for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
        AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);

        sigv4_sign(&(struct sigv4){.method = published[i].method,
                                   .path = "/",
                                   .query = published[i].query,
                                   .headers = published[i].headers,
                                   .n_headers = published[i].n,
                                   .body = published[i].body,
                                   .body_len = strlen(published[i].body),
                                   .key_id = KEY_ID,
                                   .secret = SECRET,
                                   .region = "us-east-1",
                                   .service = published[i].service,
                                   .time = WHEN},
                   &out);
        EXPECT_STR(out.buf, published[i].signature);
    }
}

TEST(time)
{
    char stamp[SIGV4_TIME_LEN];

    sigv4_time(WHEN, stamp);
    EXPECT_STR(stamp, STAMP);
}

TAP_MAIN
