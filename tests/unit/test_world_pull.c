/* What a process without rights says of an image that was pulled. */
#include <stdio.h>
#include <string.h>

#include "front/main/world_pull.h"
#include "tap.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct pulled answer;

static void answer_of(uint32_t n)
{
    memset(&answer, 0, sizeof(answer));
    answer.what = PULLED_END;
    answer.n = n;
    snprintf(answer.digest, PULL_DIGEST, "sha256:" HEX);
    for (uint32_t i = 0; i < n && i < IMAGE_BLOBS; i++) {
        snprintf(answer.layers[i].digest, PULL_DIGEST, "sha256:" HEX);
        snprintf(answer.layers[i].diff_id, PULL_DIGEST, "sha256:" HEX);
    }
}

TEST(answers_that_are_taken)
{
    answer_of(1);
    EXPECT(world_pulled_valid(&answer));
    answer_of(IMAGE_BLOBS);
    EXPECT(world_pulled_valid(&answer));
    answer_of(0);
    answer.code = -5;
    EXPECT(world_pulled_valid(&answer));
}

/* Root would open, unpack and remove these. */
TEST(names_that_are_no_digests)
{
    static const char *const bad[] = {
        "", "../../front/server.db", "/etc/shadow",
        "sha256:", "sha256:../../../../../../../../../../../../../../../../../../../../../../e"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        answer_of(3);
        snprintf(answer.layers[2].digest, PULL_DIGEST, "%s", bad[i]);
        EXPECT(!world_pulled_valid(&answer));
        answer_of(3);
        snprintf(answer.layers[1].diff_id, PULL_DIGEST, "%s", bad[i]);
        EXPECT(!world_pulled_valid(&answer));
    }
}

TEST(names_without_an_end)
{
    answer_of(1);
    answer.layers[0].digest[PULL_DIGEST - 1] = 'a';
    EXPECT(!world_pulled_valid(&answer));
}

TEST(too_many_layers)
{
    answer_of(IMAGE_BLOBS + 1);
    EXPECT(!world_pulled_valid(&answer));
    answer_of(1);
    answer.code = 1;
    EXPECT(!world_pulled_valid(&answer));
}

TAP_MAIN
