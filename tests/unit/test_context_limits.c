/* What a tenant may use: its own limits, or the server's. */
#include "tap.h"

#include "front/contexts/context.h"

TAP_MAIN

static struct front front;

static struct context_limits limits_of(const struct store_tenant *t)
{
    struct context_limits l;

    settings_init(&front.settings);
    context_limits(&front, t, &l);
    return l;
}

TEST(without_limits_of_its_own_the_settings_count)
{
    struct context_limits l = limits_of(&(struct store_tenant){.name = "acme"});

    EXPECT(l.tenant == 10 && l.conversation == 5);
    EXPECT(l.execution_ms == 60000 && l.execution_max_ms == 600000);
    EXPECT(l.code_max == 100 * 1024);
}

TEST(each_limit_of_its_own_counts)
{
    struct context_limits l = limits_of(&(struct store_tenant){.max_contexts = 50,
                                                               .max_conversation_contexts = 20,
                                                               .execution_timeout_ms = 5000,
                                                               .execution_timeout_max_ms = 7000,
                                                               .code_max = 2048});

    EXPECT(l.tenant == 50 && l.conversation == 20);
    EXPECT(l.execution_ms == 5000 && l.execution_max_ms == 7000 && l.code_max == 2048);
}

TEST(the_usual_time_is_never_longer_than_the_longest)
{
    struct context_limits l = limits_of(&(struct store_tenant){.execution_timeout_max_ms = 7000});

    EXPECT(l.execution_ms == 7000 && l.execution_max_ms == 7000);
    l = limits_of(&(struct store_tenant){.execution_timeout_ms = 3600000});
    EXPECT(l.execution_ms == 600000);
}
