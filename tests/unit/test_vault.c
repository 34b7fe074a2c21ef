#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "tap.h"
#include "lib/vault/vault.h"

/* ---- in memory ------------------------------------------------------------------------------- */

/* The flags of the mapping that an address is in, as /proc/self/smaps has them. */
static void flags_of(const void *p, char ret[512])
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[512];
    unsigned long from, to;
    bool here = false;

    ret[0] = 0;
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)p >= from && (uintptr_t)p < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(ret, 512, "%s", line + 8);
    }
    if (f)
        fclose(f);
}

static void expect_protected(const struct secret *s)
{
    char flags[512];

    flags_of(s->bytes, flags);
    EXPECT(strstr(flags, " lo ")); /* locked */
    EXPECT(strstr(flags, " dd ")); /* not dumped */
    EXPECT(strstr(flags, " dc ")); /* not copied by fork */
}

TEST(a_secret_is_locked_and_not_dumped)
{
    struct secret s = {0}, large = {0};
    char text[5000];

    memset(text, 'x', sizeof(text));
    EXPECT(secret_set(&s, "hunter2", 7) == 0);
    EXPECT(s.len == 7 && memcmp(s.bytes, "hunter2", 8) == 0);
    expect_protected(&s);
    EXPECT(secret_set(&large, text, sizeof(text)) == 0);
    EXPECT(large.len == sizeof(text) && large.bytes[sizeof(text)] == 0);
    expect_protected(&large);
    secret_done(&s);
    secret_done(&large);
    EXPECT(!s.bytes && s.len == 0);
    secret_done(&s);
}

TEST(a_child_does_not_have_it)
{
    struct secret s = {0};
    int status = -1, fds[2];

    EXPECT(secret_set(&s, "hunter2", 7) == 0 && pipe2(fds, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(write(fds[1], s.bytes, 7) == -1 && errno == EFAULT ? 0 : 1);
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(fds[0]);
    close(fds[1]);
    secret_done(&s);
}

TEST(it_is_wiped_when_freed)
{
    struct secret kept = {0}, s = {0};

    /* The other one keeps the page there, to be looked at. */
    EXPECT(secret_set(&kept, "a", 1) == 0 && secret_set(&s, "hunter2", 7) == 0);
    const uint8_t *p = s.bytes;
    EXPECT(p - kept.bytes < 4096 && kept.bytes - p < 4096);
    secret_done(&s);
    for (size_t i = 0; i < 8; i++)
        EXPECT(p[i] == 0);
    EXPECT(kept.bytes[0] == 'a');
    secret_done(&kept);
}

TEST(setting_it_again_replaces_it)
{
    struct secret s = {0};

    EXPECT(secret_set(&s, "one", 3) == 0 && secret_set(&s, "twelve", 6) == 0);
    EXPECT(s.len == 6 && memcmp(s.bytes, "twelve", 7) == 0);
    EXPECT(secret_set(&s, NULL, 0) == 0 && s.len == 0 && s.bytes && s.bytes[0] == 0);
    secret_done(&s);
}

TEST(many_do_not_mix)
{
    static struct secret all[300];
    char text[600];

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        memset(text, (int)('a' + i % 26), sizeof(text));
        EXPECT(secret_set(&all[i], text, i * 2) == 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i += 3)
        secret_done(&all[i]);
    for (size_t i = 0; i < ARRAY_SIZE(all); i += 3)
        EXPECT(secret_set(&all[i], "again", 5) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        memset(text, (int)('a' + i % 26), sizeof(text));
        EXPECT(i % 3 == 0 ? memcmp(all[i].bytes, "again", 6) == 0
                          : all[i].len == i * 2 && memcmp(all[i].bytes, text, i * 2) == 0);
        secret_done(&all[i]);
    }
}

TEST(too_large_a_secret_is_refused)
{
    struct secret s = {0};
    AUTO(free_p) char *text = xcalloc(1, VAULT_SECRET_MAX + 1);

    EXPECT(secret_set(&s, text, VAULT_SECRET_MAX + 1) == -E2BIG && !s.bytes);
    EXPECT(secret_set(&s, text, VAULT_SECRET_MAX) == 0);
    secret_done(&s);
}

/* For a process without privilege; root may lock what it likes. */
TEST(no_more_memory_to_lock_is_an_error)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct rlimit none = {0};
        struct secret s = {0};
        AUTO(free_p) char *text = xcalloc(1, 8192);
        setrlimit(RLIMIT_MEMLOCK, &none);
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            errno = 0; /* it has none already */
        _exit(secret_set(&s, text, 8192) == -ENOMEM && secret_set(&s, "a", 1) == -ENOMEM && !s.bytes
                  ? 0
                  : 1);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(a_hardened_process_leaves_no_core)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct rlimit l = {1, 1};
        vault_harden_process();
        _exit(getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_cur == 0 && l.rlim_max == 0 &&
                      prctl(PR_GET_DUMPABLE) == 0
                  ? 0
                  : 1);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- at rest --------------------------------------------------------------------------------- */

static int temporary_dir(char path[64])
{
    snprintf(path, 64, "/tmp/sg-vault-XXXXXX");
    EXPECT(mkdtemp(path));
    return open(path, O_DIRECTORY | O_CLOEXEC);
}

static void seal(const struct vault_key *k, const char *purpose, const char *value,
                 struct strbuf *out)
{
    uint8_t public_key[VAULT_PUBLIC_LEN];

    vault_key_public(k, public_key);
    EXPECT(vault_seal(public_key, purpose, value, strlen(value), out, NULL) == 0);
}

TEST(what_was_sealed_opens)
{
    struct vault_key *k = vault_key_new();
    AUTO(strbuf_done) struct strbuf a = {0}, b = {0};
    struct secret s = {0};

    strbuf_init(&a, VAULT_SEALED_MAX);
    strbuf_init(&b, VAULT_SEALED_MAX);
    seal(k, "tenant/name", "hunter2", &a);
    seal(k, "tenant/name", "hunter2", &b);
    EXPECT(strcmp(a.buf, b.buf) != 0); /* nobody can tell that they are the same */
    EXPECT(!strstr(a.buf, "hunter2"));
    EXPECT(vault_open(k, "tenant/name", a.buf, &s, NULL) == 0);
    EXPECT(s.len == 7 && memcmp(s.bytes, "hunter2", 8) == 0);
    EXPECT(vault_open(k, "tenant/name", b.buf, &s, NULL) == 0 && s.len == 7);
    secret_done(&s);
    vault_key_free(k);
}

TEST(lengths)
{
    struct vault_key *k = vault_key_new();
    uint8_t public_key[VAULT_PUBLIC_LEN];
    AUTO(free_p) char *text = xcalloc(1, VAULT_SECRET_MAX + 1);
    const size_t lengths[] = {0, 1, 255, 256, 4095, 4096, VAULT_SECRET_MAX};
    struct sg_error e = {0};

    vault_key_public(k, public_key);
    memset(text, 'k', VAULT_SECRET_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        struct secret s = {0};
        strbuf_init(&out, VAULT_SEALED_MAX);
        EXPECT(vault_seal(public_key, "p", text, lengths[i], &out, NULL) == 0);
        EXPECT(vault_open(k, "p", out.buf, &s, NULL) == 0 && s.len == lengths[i]);
        EXPECT(s.bytes && memcmp(s.bytes, text, s.len) == 0 && s.bytes[s.len] == 0);
        secret_done(&s);
    }
    AUTO(strbuf_done) struct strbuf out = {0};
    strbuf_init(&out, VAULT_SEALED_MAX);
    EXPECT(vault_seal(public_key, "p", text, VAULT_SECRET_MAX + 1, &out, &e) == -E2BIG);
    EXPECT(!strstr(e.message, "kkk"));
    strbuf_init(&out, 10);
    EXPECT(vault_seal(public_key, "p", text, 10, &out, &e) == -ENOSPC);
    vault_key_free(k);
}

TEST(another_key_purpose_or_text_does_not_open)
{
    struct vault_key *k = vault_key_new(), *other = vault_key_new();
    AUTO(strbuf_done) struct strbuf a = {0};
    struct secret s = {0};
    struct sg_error e = {0};

    strbuf_init(&a, VAULT_SEALED_MAX);
    seal(k, "tenant/name", "hunter2", &a);
    EXPECT(vault_open(other, "tenant/name", a.buf, &s, &e) == -EBADMSG);
    EXPECT(strstr(e.message, "tenant/name"));
    EXPECT(vault_open(k, "tenant/other", a.buf, &s, NULL) == -EBADMSG);
    EXPECT(vault_open(k, "tenant/nam", a.buf, &s, NULL) == -EBADMSG);
    EXPECT(vault_open(k, "", a.buf, &s, NULL) == -EBADMSG);
    EXPECT(vault_open(k, "tenant/name", "", &s, NULL) == -EBADMSG);
    EXPECT(vault_open(k, "tenant/name", "not base64!", &s, NULL) == -EBADMSG);
    for (size_t i = 0; i + 2 < a.len; i++) {
        char was = a.buf[i];
        a.buf[i] = was == 'A' ? 'B' : 'A';
        EXPECT(vault_open(k, "tenant/name", a.buf, &s, NULL) == -EBADMSG);
        a.buf[i] = 0;
        EXPECT(vault_open(k, "tenant/name", a.buf, &s, NULL) == -EBADMSG);
        a.buf[i] = was;
    }
    EXPECT(!s.bytes);
    vault_key_free(k);
    vault_key_free(other);
    vault_key_free(NULL);
}

TEST(a_text_that_is_too_long_does_not_open)
{
    struct vault_key *k = vault_key_new();
    AUTO(free_p) char *text = xcalloc(1, VAULT_SEALED_MAX * 2);
    struct secret s = {0};

    memset(text, 'A', VAULT_SEALED_MAX * 2 - 1);
    EXPECT(vault_open(k, "p", text, &s, NULL) == -EBADMSG);
    text[VAULT_SEALED_MAX] = 0;
    EXPECT(vault_open(k, "p", text, &s, NULL) == -EBADMSG && !s.bytes);
    vault_key_free(k);
}

/* X25519 with a point of low order gives zero, whoever has the other key. */
TEST(a_public_key_that_leads_nowhere_is_refused)
{
    const uint8_t zero[VAULT_PUBLIC_LEN] = {0};
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, VAULT_SEALED_MAX);
    EXPECT(vault_seal(zero, "p", "hunter2", 7, &out, NULL) == -EBADMSG && out.len == 0);
}

TEST(the_key_is_kept_in_a_file)
{
    char path[64];
    AUTO(close_p) int dir = temporary_dir(path);
    struct vault_key *a = NULL, *b = NULL;
    uint8_t one[VAULT_PUBLIC_LEN], two[VAULT_PUBLIC_LEN];
    struct stat st;

    EXPECT(vault_key_open(dir, "vault.key", &a, NULL) == 0);
    EXPECT(vault_key_open(dir, "vault.key", &b, NULL) == 0);
    EXPECT(fstatat(dir, "vault.key", &st, 0) == 0 && (st.st_mode & 07777) == 0600);
    vault_key_public(a, one);
    vault_key_public(b, two);
    EXPECT(memcmp(one, two, sizeof(one)) == 0);
    vault_key_free(a);
    vault_key_free(b);
    EXPECT(unlinkat(dir, "vault.key", 0) == 0);
    EXPECT(rmdir(path) == 0); /* and nothing else was left */
}

TEST(a_key_file_that_is_wrong_is_refused)
{
    char path[64];
    AUTO(close_p) int dir = temporary_dir(path);
    struct vault_key *k = NULL;
    struct sg_error e = {0};

    EXPECT(vault_key_open(dir, "vault.key", &k, NULL) == 0);
    vault_key_free(steal_ptr(&k));
    EXPECT(fchmodat(dir, "vault.key", 0640, 0) == 0);
    EXPECT(vault_key_open(dir, "vault.key", &k, &e) == -EPERM && strstr(e.message, "chmod 600"));
    EXPECT(fchmodat(dir, "vault.key", 0600, 0) == 0);
    EXPECT(file_write(dir, "vault.key", "0123456789012345678901234567890123456789") == 0);
    EXPECT(vault_key_open(dir, "vault.key", &k, &e) == -EUCLEAN && strstr(e.message, "damaged"));
    EXPECT(unlinkat(dir, "vault.key", 0) == 0 && symlinkat("/etc/passwd", dir, "vault.key") == 0);
    EXPECT(vault_key_open(dir, "vault.key", &k, &e) < 0);
    EXPECT(unlinkat(dir, "vault.key", 0) == 0 && mkdirat(dir, "vault.key", 0700) == 0);
    EXPECT(vault_key_open(dir, "vault.key", &k, &e) < 0 && !k);
    EXPECT(unlinkat(dir, "vault.key", AT_REMOVEDIR) == 0);
    EXPECT(vault_key_open(-1, "vault.key", &k, &e) < 0 && !k);
    EXPECT(rmdir(path) == 0);
}

TEST(what_is_derived_depends_on_key_and_label)
{
    struct vault_key *k = vault_key_new(), *other = vault_key_new();
    uint8_t a[48], b[48], c[48], d[48];

    vault_key_derive(k, "ca", a, sizeof(a));
    vault_key_derive(k, "ca", b, sizeof(b));
    vault_key_derive(k, "cb", c, sizeof(c));
    vault_key_derive(other, "ca", d, sizeof(d));
    EXPECT(memcmp(a, b, sizeof(a)) == 0);
    EXPECT(memcmp(a, c, sizeof(a)) != 0);
    EXPECT(memcmp(a, d, sizeof(a)) != 0);
    vault_key_free(k);
    vault_key_free(other);
}

TAP_MAIN
