/* WWW-Authenticate: which proof a registry wants, of all that it may write there. */
#include <string.h>

#include "pull/challenge.h"
#include "tap.h"

static struct challenge read_challenge(const char *text)
{
    struct challenge c;

    challenge_parse(text, strlen(text), &c);
    return c;
}

TEST(one_challenge)
{
    struct challenge c =
        read_challenge("Bearer realm=\"https://auth.docker.io/token\","
                       "service=\"registry.docker.io\",scope=\"repository:a:pull\"");

    EXPECT(c.scheme == CHALLENGE_BEARER);
    EXPECT_STR(c.realm, "https://auth.docker.io/token");
    EXPECT_STR(c.service, "registry.docker.io");
    c = read_challenge("Basic realm=\"Registry Realm\"");
    EXPECT(c.scheme == CHALLENGE_BASIC);
    c = read_challenge("bAsIc");
    EXPECT(c.scheme == CHALLENGE_BASIC);
    c = read_challenge(" ,, bearer  Realm = \"x\" ,SERVICE=y ");
    EXPECT(c.scheme == CHALLENGE_BEARER);
    EXPECT_STR(c.realm, "x");
    EXPECT_STR(c.service, "y");
    c = read_challenge("Bearer realm=\"x\",error=\"insufficient_scope\"");
    EXPECT_STR(c.error, "insufficient_scope");
}

TEST(several_challenges)
{
    struct challenge c =
        read_challenge("Negotiate, Basic realm=\"a\", Bearer realm=\"b\",service=\"c\"");

    EXPECT(c.scheme == CHALLENGE_BEARER);
    EXPECT_STR(c.realm, "b");
    c = read_challenge("Bearer realm=\"b\", Basic realm=\"a\"");
    EXPECT(c.scheme == CHALLENGE_BEARER);
    EXPECT_STR(c.realm, "b");
    c = read_challenge("Digest qop=\"auth, Bearer realm=\\\"x\\\"\", Basic realm=y");
    EXPECT(c.scheme == CHALLENGE_BASIC);
}

TEST(what_is_of_no_use)
{
    char text[3000];

    EXPECT(read_challenge("").scheme == CHALLENGE_NONE);
    EXPECT(read_challenge("\"").scheme == CHALLENGE_NONE);
    EXPECT(read_challenge("NTLM TlRMTVNTUAAC==").scheme == CHALLENGE_NONE);
    EXPECT(read_challenge("Bearer service=\"x\"").scheme == CHALLENGE_NONE);
    EXPECT(read_challenge("Bearer realm=\"x").scheme == CHALLENGE_NONE);
    EXPECT(read_challenge("Bearer realm=\"x\ny\"").scheme == CHALLENGE_NONE);
    EXPECT_STR(read_challenge("Bearer realm=\"a\",realm=\"b\"").realm, "a");
    memset(text, 'x', sizeof(text));
    snprintf(text, sizeof(text), "Bearer realm=\"");
    text[strlen(text)] = 'x';
    snprintf(text + sizeof(text) - 2, 2, "\"");
    EXPECT(read_challenge(text).scheme == CHALLENGE_NONE);
}

TAP_MAIN
