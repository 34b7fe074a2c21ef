/* sandglass tenant: on a state directory of its own, and held against its manual page. */
#include "manage_run.h"

#include "front/main/key.h"
#include "front/main/tenant.h"
#include "front/store/store.h"

TAP_MAIN

#define RUN(...) manage_run(tenant_main, (const char *const[]){"tenant", __VA_ARGS__, NULL})
#define KEY(...) manage_run(key_main, (const char *const[]){"key", __VA_ARGS__, NULL})

TEST(list_says_who_there_is)
{
    make_state();
    struct outcome o = RUN("list");
    EXPECT(o.status == 0 && strstr(o.err, "no tenants"));
    o = RUN("list", "--json");
    EXPECT_STR(o.out, "[]\n");
    EXPECT(KEY("create", "--tenant", "beta").status == 0);
    EXPECT(KEY("create", "--tenant", "acme").status == 0);
    o = RUN("list");
    EXPECT(o.status == 0 && strstr(o.out, "NAME") && strstr(o.out, "\nacme "));
    EXPECT(strstr(o.out, "acme") < strstr(o.out, "beta"));
    o = RUN("list", "--json");
    EXPECT(strstr(o.out, "\"name\":\"acme\",\"max_sandboxes\":null,\"max_paused\":null,"
                         "\"max_paused_memory\":null,\"max_contexts\":null"));
    EXPECT(strstr(o.out, "\"code_max\":null,\"memory\":null,"));
    remove_state();
}

TEST(set_and_reset)
{
    make_state();
    EXPECT(KEY("create", "--tenant", "acme").status == 0);
    EXPECT(KEY("create", "--tenant", "beta").status == 0);
    struct outcome o = RUN("set", "acme", "--max-sandboxes", "30", "--max-contexts=20",
                           "--max-conversation-contexts", "7", "--execution-timeout", "90s",
                           "--execution-timeout-max", "20m", "--code-max", "200K", "--memory", "2G",
                           "--max-paused", "40", "--max-paused-memory", "1G");
    EXPECT(o.status == 0);
    EXPECT_STR(o.out, "");
    EXPECT_STR(o.err, "");
    o = RUN("list", "--json");
    EXPECT(strstr(o.out, "\"name\":\"acme\",\"max_sandboxes\":30,\"max_paused\":40,"
                         "\"max_paused_memory\":1073741824,\"max_contexts\":20,"
                         "\"max_conversation_contexts\":7,\"execution_timeout_ms\":90000,"
                         "\"execution_timeout_max_ms\":1200000,\"code_max\":204800,"
                         "\"memory\":2147483648,"));
    EXPECT(strstr(o.out, "\"name\":\"beta\",\"max_sandboxes\":null"));
    o = RUN("list");
    EXPECT(strstr(o.out, " 20 ") && strstr(o.out, "200 KiB") && strstr(o.out, "2 GiB"));
    /* What is not named stays. */
    EXPECT(RUN("set", "--max-contexts", "default", "--memory", "0", "acme").status == 0);
    o = RUN("list", "--json");
    EXPECT(strstr(o.out, "\"max_paused_memory\":1073741824,\"max_contexts\":null,"
                         "\"max_conversation_contexts\":7"));
    EXPECT(strstr(o.out, "\"code_max\":204800,\"memory\":null,"));
    /* The last word counts. */
    EXPECT(RUN("set", "acme", "--max-contexts", "9", "--max-contexts", "default").status == 0);
    EXPECT(strstr(RUN("list", "--json").out, "\"max_contexts\":null"));
    remove_state();
}

TEST(how_it_is_sanitised)
{
    make_state();
    EXPECT(KEY("create", "--tenant", "acme").status == 0);
    EXPECT(strstr(RUN("list", "--json").out, "\"sanitise\":null,\"sanitise_always\":false}"));
    EXPECT(RUN("set", "acme", "--sanitise", "report-only", "--sanitise-always").status == 0);
    struct outcome o = RUN("list", "--json");
    EXPECT(strstr(o.out, "\"max_contexts\":null"));
    EXPECT(strstr(o.out, "\"sanitise\":\"report-only\",\"sanitise_always\":true}"));
    EXPECT(strstr(RUN("list").out, "report-only  always"));
    EXPECT(RUN("set", "acme", "--sanitise=off", "--max-contexts", "5").status == 0);
    o = RUN("list", "--json");
    EXPECT(strstr(o.out, "\"max_contexts\":5"));
    EXPECT(strstr(o.out, "\"sanitise\":\"off\",\"sanitise_always\":false}"));
    EXPECT(RUN("set", "acme", "--sanitise", "default").status == 0);
    EXPECT(strstr(RUN("list", "--json").out, "\"sanitise\":null"));
    o = RUN("set", "acme", "--sanitise", "on");
    EXPECT(o.status == 2 && strstr(o.err, "use enforce, report-only or off"));
    o = RUN("set", "acme", "--sanitise-always");
    EXPECT(o.status == 1 && strstr(o.err, "goes with --sanitise"));
    EXPECT(RUN("set", "nobody", "--sanitise", "off").status == 1);
    remove_state();
}

TEST(mistakes)
{
    make_state();
    EXPECT(KEY("create", "--tenant", "acme").status == 0);
    struct outcome o = RUN("set", "nobody", "--max-contexts", "5");
    EXPECT(o.status == 1 && strstr(o.err, "no tenant 'nobody'"));
    o = RUN("set", "acme");
    EXPECT(o.status == 1 && strstr(o.err, "nothing to set"));
    o = RUN("set");
    EXPECT(o.status == 2 && strstr(o.err, "no tenant given"));
    o = RUN("set", "acme", "--max-contexts", "-1");
    EXPECT(o.status == 2 && strstr(o.err, "--max-contexts"));
    EXPECT(RUN("set", "acme", "--max-contexts", "1000000").status == 2);
    EXPECT(RUN("set", "acme", "--max-contexts", "").status == 2);
    EXPECT(RUN("set", "acme", "--memory", "1K").status == 2);
    EXPECT(RUN("set", "acme", "--execution-timeout", "year").status == 2);
    EXPECT(RUN("set", "acme", "beta", "--max-contexts", "5").status == 2);
    EXPECT(RUN("list", "acme").status == 2);
    o = RUN("lst");
    EXPECT(o.status == 2 && strstr(o.err, "did you mean 'list'?"));
    EXPECT(manage_run(tenant_main, (const char *const[]){"tenant", NULL}).status == 2);
    o = RUN("--help");
    EXPECT(o.status == 0 && strstr(o.out, "list|set") && strstr(o.out, "--max-contexts N"));
    o = RUN("list", "--state", "/nonexistent");
    EXPECT(o.status == 1 && strstr(o.err, "no server in '/nonexistent/front'"));
    EXPECT(strstr(RUN("list", "--json").out, "\"max_contexts\":null"));
    remove_state();
}

TEST(manual_and_completion_have_every_option)
{
    const struct cli_syntax *all[] = {&tenant_list_syntax, &tenant_set_syntax};

    expect_documented(SG_SOURCE_DIR "/man/sandglass-tenant.1.scd", "_sandglass_tenant()", all,
                      ARRAY_SIZE(all));
}
