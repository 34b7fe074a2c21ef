/* The note of a sandbox: what one front writes, the next one reads. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "front/core/spec.h"
#include "wire/warden.h"
#include "tap.h"

static void fill(struct sandbox_spec *s)
{
    sandbox_spec_init(s);
    id_random(s->tenant);
    memcpy(s->template_id, "base", 5);
    s->metadata = json_pack("{s:s}", "a \"b\"", "c\n\xc3\xa9");
    s->envs = json_pack("{s:s,s:s}", "PATH", "/x", "EMPTY", "");
    s->network = json_pack("{s:[s],s:b}", "denyOut", "0.0.0.0/0", "allowPublicTraffic", 0);
    s->allow_internet = 0;
    token_random(s->envd_token);
    s->auto_pause = true;
    s->auto_pause_memory = false;
    s->timeout_ms = 86400000;
    s->created_ms = 1700000000123;
    s->started_ms = 1700000000456;
    s->limits = (struct sg_limits){.memory_bytes = 1ull << 40, .disk_bytes = 5, .pids = 77};
}

TEST(round_trip)
{
    struct sandbox_spec a, b;
    struct sg_error e = {0};
    int fd;

    fill(&a);
    fd = sandbox_spec_save(&a, &e);
    EXPECT(fd >= 0);
    EXPECT(write(fd, "x", 1) < 0);
    EXPECT(sandbox_spec_load(fd, &b, &e) == 0);
    EXPECT(strcmp(a.tenant, b.tenant) == 0 && strcmp(a.template_id, b.template_id) == 0);
    EXPECT(json_equal(a.metadata, b.metadata) && json_equal(a.envs, b.envs) &&
           json_equal(a.network, b.network));
    EXPECT(strcmp(a.envd_token, b.envd_token) == 0 && b.traffic_token[0] == '\0');
    EXPECT(b.auto_pause && !b.auto_pause_memory && !b.auto_resume && b.allow_internet == 0);
    EXPECT(b.timeout_ms == a.timeout_ms && b.created_ms == a.created_ms &&
           b.started_ms == a.started_ms);
    EXPECT(memcmp(&a.limits, &b.limits, sizeof(a.limits)) == 0);
    sandbox_spec_done(&b);
    EXPECT(sandbox_spec_load(fd, &b, &e) == 0);
    sandbox_spec_done(&a);
    sandbox_spec_done(&b);
    close(fd);
}

TEST(too_large)
{
    struct sandbox_spec s;
    struct sg_error e = {0};
    char *big = calloc(1, ORDER_NOTE_MAX + 2);

    fill(&s);
    memset(big, 'x', ORDER_NOTE_MAX + 1);
    json_object_set_new(s.envs, "BIG", json_string(big));
    EXPECT(sandbox_spec_save(&s, &e) == -E2BIG && e.kind == SG_ERR_INVALID);
    sandbox_spec_done(&s);
    free(big);
}

TEST(damaged)
{
    static const char *const texts[] = {"", "{", "[]", "{\"tenant\":7}", "{\"tenant\":\"x\"}"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct sandbox_spec s;
        int fd = memfd_create("note", MFD_CLOEXEC);
        EXPECT(write(fd, texts[i], strlen(texts[i])) == (ssize_t)strlen(texts[i]) &&
               sandbox_spec_load(fd, &s, NULL) < 0);
        close(fd);
    }
}

TEST(tokens)
{
    char a[SPEC_TOKEN_LEN + 1], b[SPEC_TOKEN_LEN + 1];

    token_random(a);
    token_random(b);
    EXPECT(strlen(a) == SPEC_TOKEN_LEN && strspn(a, "0123456789abcdef") == SPEC_TOKEN_LEN);
    EXPECT(!token_equal(a, b) && token_equal(a, a));
    EXPECT(!token_equal(a, "") && !token_equal("", a));
}

TAP_MAIN
