/* Users and groups of the sandbox's own files: taken apart, and used by the agent. */
#include "agent_files.h"
#include "agent_root.h"
#include "inside/agent/accounts.h"

#define PASSWD                                          \
    "root:x:0:0:root:/root:/bin/bash\n"                 \
    "postgres:x:105:110::/var/lib/postgresql:/bin/sh\n" \
    "far:x:70000:4000000000::/home/far:/bin/sh\n"       \
    "bare:x:300:300:::\n"

/* "NAME UID GID HOME SHELL", or "none". */
static const char *look(const char *text, const char *name, uint32_t uid)
{
    static char told[1024];
    AUTO(free_p) char *copy = xstrdup(text);
    struct agent_user u;

    if (!accounts_find_user(copy, name, uid, &u))
        return "none";
    snprintf(told, sizeof(told), "%s %u %u %s %s", u.name, u.uid, u.gid, u.home, u.shell);
    return told;
}

static const char *group(const char *text, const char *name, uint32_t gid)
{
    static char told[64];
    AUTO(free_p) char *copy = xstrdup(text);
    struct agent_user u;

    if (!accounts_find_group(copy, name, gid, &u))
        return "none";
    snprintf(told, sizeof(told), "%s %u", u.name, u.gid);
    return told;
}

TEST(entries)
{
    EXPECT_STR(look(PASSWD, "postgres", 0), "postgres 105 110 /var/lib/postgresql /bin/sh");
    EXPECT_STR(look(PASSWD, NULL, 105), "postgres 105 110 /var/lib/postgresql /bin/sh");
    EXPECT_STR(look(PASSWD, "bare", 0), "bare 300 300 / /bin/sh");
    EXPECT_STR(look(PASSWD, "far", 0), "far 65534 65534 /home/far /bin/sh");
    EXPECT_STR(look(PASSWD, "none", 0), "none");
    EXPECT_STR(look(PASSWD, "", 0), "none");
    EXPECT_STR(look("", "x", 0), "none");
    EXPECT_STR(look("x:x:1:2::/h:/s", "x", 0), "x 1 2 /h /s");
    EXPECT_STR(look("x:x:65535:65535::/h:/s", "x", 0), "x 65534 65534 /h /s");
    EXPECT_STR(group("adm:x:4:syslog,user\nfar:x:99999:\n", "adm", 0), "adm 4");
    EXPECT_STR(group("adm:x:4:syslog,user\nfar:x:99999:\n", "far", 0), "far 65534");
    EXPECT_STR(group("adm:x:4", NULL, 4), "adm 4");
    EXPECT_STR(group("adm:x", "adm", 0), "none");
}

TEST(entries_that_are_none)
{
    static const char *const bad[] = {"x:x:1:2::/h",
                                      "x",
                                      ":::::::",
                                      "x:x:-1:2::/h:/s",
                                      "x:x:1:2a::/h:/s",
                                      "x:x::2::/h:/s",
                                      "x:x: 1:2::/h:/s",
                                      "x:x:99999999999999999999:2::/h:/s",
                                      "x:x:4294967296:0::/h:/s",
                                      "\n\n\n",
                                      "::::::\n:",
                                      "x\033:x:1:2::/h:/s"};
    char name[200], line[1200];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        EXPECT_STR(look(bad[i], "x", 0), "none");
        EXPECT_STR(look(bad[i], NULL, 1), "none");
    }
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    snprintf(line, sizeof(line), "%s:x:1:2::/h:/s", name);
    EXPECT_STR(look(line, name, 0), "none");
    /* a home that cannot be one is not taken */
    snprintf(line, sizeof(line), "x:x:1:2::/%s%s:relative", name, name);
    EXPECT_STR(look(line, "x", 0), "x 1 2 / /bin/sh");
    EXPECT_STR(look("x:x:1:2::/a\tb:/s", "x", 0), "x 1 2 / /s");
}

static const char *owners(struct agent_host *h, const char *user, const char *path)
{
    static char told[160];
    struct call c;

    CALL(h, &c, OP_FILE_STAT, "ss", user, path);
    struct wire_reader r = wire_reader_of(c.result.buf, c.result.len);
    const char *owner, *its_group;

    EXPECT(c.status == 0);
    wire_get_str(&r, OPS_PATH_MAX);
    const char *at = wire_get_str(&r, OPS_PATH_MAX);
    for (int i = 0; i < 4; i++)
        wire_get_u32(&r);
    owner = wire_get_str(&r, OPS_NAME_MAX);
    its_group = wire_get_str(&r, OPS_NAME_MAX);
    snprintf(told, sizeof(told), "%s %s %s", at, owner, its_group);
    call_done(&c);
    return told;
}

static void users_start(struct agent_host *h)
{
    host_start_rooted(h, "one");
    shell_says(h, "root",
               "printf '" PASSWD "odd:x:1000:1000::/nowhere:/bin/false\n' > /etc/passwd; "
               "printf 'postgres:x:110:\nadm:x:4:\n' > /etc/group; "
               "mkdir -p /var/lib/postgresql /home/far; chown 105:110 /var/lib/postgresql");
}

TEST(programs_and_files)
{
    struct agent_host h;

    users_start(&h);
    EXPECT_STR(shell_says(&h, "postgres", "id -u; id -g; id -G; pwd; echo $HOME $USER $SHELL"),
               "105\n110\n110\n/var/lib/postgresql\n/var/lib/postgresql postgres /bin/sh\n");
    EXPECT_STR(shell_says(&h, "postgres", "grep -E 'CapEff|NoNewPrivs' /proc/self/status"),
               "CapEff:\t0000000000000000\nNoNewPrivs:\t1\n");
    EXPECT_STR(shell_says(&h, "105", "id -u; echo $USER"), "105\npostgres\n");
    EXPECT_STR(shell_says(&h, "4711", "id -u; id -g; pwd"), "4711\n0\n/\n");
    EXPECT_STR(shell_says(&h, "0", "id -u; echo $HOME"), "0\n/root\n");
    EXPECT_STR(shell_says(&h, "4294967295", "id -u"), "65534\n");
    EXPECT_STR(shell_says(&h, "far", "id -u; id -g"), "65534\n65534\n");
    EXPECT(put(&h, "postgres", "conf/x", 0600, FILE_PARENTS, "text") == 0);
    EXPECT_STR(owners(&h, "postgres", "conf/x"), "/var/lib/postgresql/conf/x postgres postgres");
    EXPECT(put(&h, "user", "/var/lib/postgresql/y", 0600, 0, "") == EACCES);
    EXPECT(put(&h, "postgres", "/root/y", 0600, 0, "") == EACCES);
    host_stop(&h);
}

/* What root inside writes decides nothing about "user" and "root", and about others what it says at
 * that time. */
TEST(files_that_change)
{
    static const char *const spoils[] = {"rm /etc/passwd", "ln -sf /proc/self/environ /etc/passwd",
                                         "rm /etc/passwd; mkfifo /etc/passwd",
                                         "rm /etc/passwd; mkdir /etc/passwd",
                                         "rmdir /etc/passwd; ln -s passwd /etc/passwd"};
    struct agent_host h;

    users_start(&h);
    EXPECT_STR(owners(&h, "root", "/var/lib/postgresql"), "/var/lib/postgresql postgres postgres");
    shell_says(&h, "root",
               "printf 'user:x:7:7::/x:/bin/sh\nroot:x:9:9::/x:/bin/sh\nme:x:105:4::/:\n' > "
               "/etc/passwd");
    EXPECT_STR(shell_says(&h, "user", "id -u; pwd"), "1000\n/home/user\n");
    EXPECT_STR(shell_says(&h, "root", "id -u; pwd"), "0\n/root\n");
    EXPECT_STR(shell_says(&h, "me", "id -u; id -g"), "105\n4\n");
    EXPECT_STR(owners(&h, "root", "/var/lib/postgresql"), "/var/lib/postgresql me postgres");
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "postgres", "/", 0, 0) == EUSERS);
    for (size_t i = 0; i < ARRAY_SIZE(spoils); i++) {
        shell_says(&h, "root", spoils[i]);
        EXPECT(simple(&h, OP_FILE_STAT, "ss", "me", "/", 0, 0) == EUSERS);
        EXPECT(simple(&h, OP_FILE_STAT, "ss", "user", "/", 0, 0) == 0);
        EXPECT_STR(owners(&h, "root", "/var/lib/postgresql"), "/var/lib/postgresql 105 postgres");
    }
    host_stop(&h);
}

/* Entries count up to a size, and half of one is none. */
TEST(large_files)
{
    struct agent_host h;

    users_start(&h);
    shell_says(&h, "root",
               "printf 'early:x:11:11::/:/bin/sh\n' > /etc/passwd; "
               "i=0; while [ $i -lt 4096 ]; do printf '%0128d\n' $i; i=$((i+1)); done >> "
               "/etc/passwd; printf 'late:x:12:12::/:/bin/sh\n' >> /etc/passwd");
    EXPECT_STR(shell_says(&h, "early", "id -u"), "11\n");
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "late", "/", 0, 0) == EUSERS);
    host_stop(&h);
}

TAP_MAIN
