#include "tap.h"

#include "engine/sandbox.h"

TAP_MAIN

static struct sg_error e;

TEST(isolated_code_runs_by_itself)
{
    struct sg_options o = SG_OPTIONS_INIT;

    EXPECT(policy_check(&o, &e) == 0);
}

TEST(read_only_mounts_run_by_themselves)
{
    struct sg_mount m = {.source = "/srv/x", .target = "/mnt/x"};
    struct sg_options o = {.size = sizeof(o), .mounts = &m, .n_mounts = 1};

    EXPECT(policy_check(&o, &e) == 0);
}

TEST(writable_mounts_need_approval_and_the_rule_is_named)
{
    struct sg_mount m = {.source = "/srv/x", .target = "/mnt/x", .writable = true};
    struct sg_options o = {.size = sizeof(o), .mounts = &m, .n_mounts = 1};
    struct sg_policy p = {.allow_writable_mounts = true};

    EXPECT(policy_check(&o, &e) == -EACCES && e.kind == SG_ERR_DENIED);
    EXPECT(strstr(e.message, "'writable-mounts'") && strstr(e.message, "/srv/x"));
    o.approved = true;
    EXPECT(policy_check(&o, &e) == 0);
    o.approved = false;
    o.policy = &p;
    EXPECT(policy_check(&o, &e) == 0);
}

TEST(network_needs_approval)
{
    static const char *const list[] = {"a.test", "192.0.2.0/24", NULL};
    struct sg_options o = {.size = sizeof(o), .network = SG_NETWORK_ALLOW};
    struct sg_policy p = {.allow_network = true};

    EXPECT(policy_check(&o, &e) == -EACCES && strstr(e.message, "'network'"));
    o.network = SG_NETWORK_LIST;
    o.network_allow = list;
    EXPECT(policy_check(&o, &e) == -EACCES && strstr(e.message, "'network'"));
    o.approved = true;
    EXPECT(policy_check(&o, &e) == 0);
    o.approved = false;
    o.policy = &p;
    EXPECT(policy_check(&o, &e) == 0);
}

TEST(network_lists_are_checked)
{
    static const char *const none[] = {NULL}, *const bad[] = {"a.test", "a b", NULL};
    struct sg_options o = {.size = sizeof(o), .network = SG_NETWORK_LIST, .approved = true};

    EXPECT(policy_check(&o, &e) == -EINVAL);
    o.network_allow = none;
    EXPECT(policy_check(&o, &e) == -EINVAL);
    o.network_allow = bad;
    EXPECT(policy_check(&o, &e) == -EINVAL && strstr(e.message, "network_allow: 'a b'"));
    o.network = SG_NETWORK_ALLOW;
    o.network_allow = NULL;
    o.network_deny = bad;
    EXPECT(policy_check(&o, &e) == -EINVAL && strstr(e.message, "network_deny: 'a b'"));
}

TEST(mount_targets_must_be_plain_absolute_paths)
{
    static const char *const bad[] = {"x", "", "/", "/a/../b", "/a/..", "//", "/./a"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_mount m = {.source = "/srv/x", .target = bad[i]};
        struct sg_options o = {.size = sizeof(o), .mounts = &m, .n_mounts = 1};
        bool refused = policy_check(&o, &e) == -EINVAL;
        if (!refused)
            printf("# '%s' is accepted\n", bad[i]);
        EXPECT(refused);
    }
}

TEST(the_default_roots_are_a_short_list)
{
    struct sg_options o = SG_OPTIONS_INIT;
    const char *const *roots = policy_mount_roots(&o);

    for (; *roots; roots++)
        EXPECT(strcmp(*roots, "/") != 0 && strcmp(*roots, "/etc") != 0 &&
               strcmp(*roots, "/root") != 0);
}
