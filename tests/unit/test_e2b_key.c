/* sandglass key: on a state directory of its own, and held against its manual page. */
#include "manage_run.h"

#include "front/main/key.h"
#include "front/store/store.h"

TAP_MAIN

#define RUN(...) manage_run(key_main, (const char *const[]){"key", __VA_ARGS__, NULL})

TEST(create_prints_the_key_only)
{
    make_state();
    struct outcome o = RUN("create");
    EXPECT(o.status == 0);
    EXPECT(strlen(o.out) == STORE_KEY_LEN + 1 && strncmp(o.out, "e2b_", 4) == 0);
    EXPECT_STR(o.err, "");
    char file[96];
    struct stat st, dir;
    snprintf(file, sizeof(file), "%s/front", state);
    EXPECT(stat(file, &dir) == 0);
    snprintf(file, sizeof(file), "%s/front/server.db", state);
    EXPECT(stat(file, &st) == 0 && st.st_uid == dir.st_uid && (st.st_mode & 0777) == 0600);
    remove_state();
}

TEST(create_list_revoke)
{
    make_state();
    char key[STORE_KEY_LEN + 1];
    struct outcome o = RUN("create", "--tenant", "acme", "--name=ann's key");
    snprintf(key, sizeof(key), "%.*s", STORE_KEY_LEN, o.out);
    EXPECT(RUN("create", "--tenant", "beta").status == 0);
    o = RUN("list");
    EXPECT(o.status == 0 && strstr(o.out, "ann's key") && strstr(o.out, "beta"));
    EXPECT(strstr(o.out, "active") && !strstr(o.out, "revoked") && !strstr(o.out, key));
    o = RUN("list", "--tenant", "acme", "--json");
    EXPECT(strstr(o.out, "\"tenant\":\"acme\"") && !strstr(o.out, "beta"));
    EXPECT(strstr(o.out, "\"last_used\":null,\"revoked\":null"));
    EXPECT(!strstr(o.out, key));
    EXPECT(RUN("revoke", key).status == 0);
    o = RUN("list", "--tenant", "acme");
    EXPECT(strstr(o.out, "revoked") && !strstr(o.out, "active"));
    o = RUN("revoke", "nosuchkey");
    EXPECT(o.status == 1 && strstr(o.err, "no such key"));
    o = RUN("create", "--json");
    EXPECT(o.status == 0 && strstr(o.out, "\"key\":\"e2b_"));
    EXPECT(strstr(o.out, "\"sanitise\":null"));
    o = RUN("create", "--json", "--sanitise", "report-only");
    EXPECT(o.status == 0 && strstr(o.out, "\"sanitise\":\"report-only\""));
    EXPECT(strstr(RUN("list", "--json").out, "\"sanitise\":\"report-only\""));
    EXPECT(RUN("create", "--sanitise", "never").status == 2);
    remove_state();
}

TEST(an_operator_s_token)
{
    make_state();
    struct outcome o = RUN("create", "--admin", "--name", "ops");
    char token[STORE_TOKEN_MAX + 1];
    EXPECT(o.status == 0 && strncmp(o.out, "admin_e2b_", 10) == 0);
    EXPECT(strlen(o.out) == STORE_TOKEN_MAX + 1);
    snprintf(token, sizeof(token), "%.*s", STORE_TOKEN_MAX, o.out);
    EXPECT(RUN("create").status == 0);
    o = RUN("list");
    EXPECT(strstr(o.out, "ops") && strstr(o.out, "admin   active") && !strstr(o.out, token));
    o = RUN("list", "--json");
    EXPECT(strstr(o.out, "\"kind\":\"admin\",\"tenant\":null"));
    EXPECT(strstr(o.out, "\"kind\":\"key\",\"tenant\":\"default\""));
    EXPECT(!strstr(RUN("list", "--tenant", "default").out, "ops"));
    EXPECT(RUN("revoke", token).status == 0);
    EXPECT(strstr(RUN("list").out, "admin   revoked"));
    EXPECT(RUN("create", "--admin", "--tenant", "acme").status == 1);
    EXPECT(RUN("create", "--admin", "--sanitise", "off").status == 1);
    EXPECT(!strstr(RUN("list").out, "acme"));
    remove_state();
}

TEST(mistakes)
{
    make_state();
    EXPECT(RUN("create", "--tenant", "Not Valid").status == 1);
    EXPECT(RUN("create", "--name", "a\033[1mb").status == 1);
    EXPECT(RUN("create", "extra").status == 2);
    EXPECT(RUN("revoke").status == 2);
    EXPECT(RUN("revoke", "a", "b").status == 2);
    EXPECT(RUN("frob").status == 2);
    EXPECT(RUN("list", "--nope").status == 2);
    EXPECT(RUN("--help").status == 0);
    struct outcome o = RUN("list", "--state", "/nonexistent");
    EXPECT(o.status == 1 && strstr(o.err, "no server in '/nonexistent/front'"));
    remove_state();
    EXPECT(RUN("list").status == 1);
}

TEST(manual_and_completion_have_every_option)
{
    const struct cli_syntax *all[] = {&key_create_syntax, &key_list_syntax, &key_revoke_syntax};

    expect_documented(SG_SOURCE_DIR "/man/sandglass-key.1.scd", "_sandglass_key()", all,
                      ARRAY_SIZE(all));
}
