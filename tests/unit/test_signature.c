/* Signed addresses. The expected values are from an independent implementation. */
#include <string.h>

#include "front/envd/signature.h"
#include "tap.h"

#define TOKEN "t0k3n"

static const struct {
    struct signed_request request;
    const char *signature;
} known[] = {
    {{"/home/user/a.txt", "read", "", NULL}, "v1_ZkWBg4OtDs3Z6TarTbvQpErkmAyfAn9jx9FaaOcT03A"},
    {{"", "write", "root", "1700000000"}, "v1_GfrCbMvkQiw5KlI7vhrqryNjRXfiNhJWuNdUi6wqvow"},
};

TEST(known_values)
{
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        AUTO(signature_check_free_p)
        struct signature_check *c = signature_check_new(&known[i].request);
        char made[SIGNATURE_LEN + 1];

        signature_make(c, TOKEN, made);
        EXPECT_STR(made, known[i].signature);
        EXPECT(signature_shaped(made));
        EXPECT(signature_matches(c, TOKEN, known[i].signature));
        EXPECT(signature_matches(c, TOKEN, known[i].signature)); /* it can be asked again */
        EXPECT(!signature_matches(c, "t0k3m", known[i].signature));
        EXPECT(!signature_matches(c, "", known[i].signature));
    }
}

/* F07: every field counts. */
TEST(a_changed_field_does_not_match)
{
    static const struct signed_request others[] = {
        {"/home/user/b.txt", "read", "", NULL},     {"/home/user/a.txt", "write", "", NULL},
        {"/home/user/a.txt", "read", "root", NULL}, {"/home/user/a.txt", "read", "", "1700000000"},
        {"/home/user/a.txt:read", "", "", NULL},    {"", "read", "", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        AUTO(signature_check_free_p)
        struct signature_check *c = signature_check_new(&others[i]);
        EXPECT(c && !signature_matches(c, TOKEN, known[0].signature));
    }
}

TEST(shape)
{
    static const char *const bad[] = {
        "",
        "v1_",
        "v1_aaaa",
        "v2_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "v1_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=",
        "v1_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "v1_aaaaaaaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaaaaaaa",
        "v1_aaaaaaaaaaaaaaaaaaaaa-aaaaaaaaaaaaaaaaaaaaa",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(!signature_shaped(bad[i]));
    EXPECT(signature_shaped("v1_aaaaaaaaaaaaaaaaaaaaa/+aaaaaaaaaaaaaaaaaaaa"));
}

TEST(expiry)
{
    static const char *const bad[] = {"",    "-1",   "+1", "01",  "1.5",          " 1",
                                      "1e9", "0x10", "1 ", "1:2", "9999999999999"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct signed_request r = {"/a", "read", "", bad[i]};
        EXPECT(!signature_expiry_valid(bad[i]));
        EXPECT(!signature_check_new(&r));
    }
    EXPECT(signature_expiry_valid("0") && signature_expiry_valid("1700000000"));
    EXPECT(signature_expired("1699999999", 1700000000));
    EXPECT(!signature_expired("1700000000", 1700000000));
    EXPECT(!signature_expired("999999999999", 1700000000));
}

TAP_MAIN
