/* The store on a directory of its own: what is written is found again, by this connection, by
 * another, and by a later one. */
#include "store_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fd.h"

TAP_MAIN

TEST(tenant_is_made_once)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant a, b, c;
    struct sg_error e;
    uint32_t n;

    EXPECT(store_tenants_count(s, &n, &e) == 0 && n == 0);
    EXPECT(store_tenant_ensure(s, "acme", &a, &e) == 0);
    EXPECT(store_tenant_ensure(s, "acme", &b, &e) == 0);
    EXPECT(store_tenant_ensure(s, "other_1-x", &c, &e) == 0);
    EXPECT_STR(a.id, b.id);
    EXPECT(strcmp(a.id, c.id) != 0);
    EXPECT(id_valid(a.id));
    EXPECT(store_tenants_count(s, &n, &e) == 0 && n == 2);
    EXPECT(store_tenant_get(s, c.id, &b) == 0);
    EXPECT_STR(b.name, "other_1-x");
    EXPECT(store_tenant_get(s, "nobody", &b) == -ENOENT);
    store_close(s);
    s = open_ok(&p);
    EXPECT(store_tenant_ensure(s, "acme", &b, &e) == 0);
    EXPECT_STR(a.id, b.id);
    store_close(s);
    place_remove(&p);
}

TEST(tenant_names_are_checked)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant t;
    struct sg_error e;
    char longest[STORE_NAME_MAX + 2];
    static const char *const bad[] = {"", "Acme", "a b", "a/b", "a:b", "\xc3\xa4", "a'; --"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(store_tenant_ensure(s, bad[i], &t, &e) == -EINVAL && e.kind == SG_ERR_INVALID);
    memset(longest, 'a', sizeof(longest));
    longest[STORE_NAME_MAX + 1] = '\0';
    EXPECT(store_tenant_ensure(s, longest, &t, &e) == -EINVAL);
    longest[STORE_NAME_MAX] = '\0';
    EXPECT(store_tenant_ensure(s, longest, &t, &e) == 0);
    store_close(s);
    place_remove(&p);
}

TEST(key_opens_its_tenant_only)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    char a[STORE_KEY_LEN + 1], b[STORE_KEY_LEN + 1];
    struct store_key info;
    struct store_tenant t;

    make_key(s, "acme", a, &info);
    make_key(s, "beta", b, NULL);
    EXPECT(strlen(a) == STORE_KEY_LEN && strncmp(a, "e2b_", 4) == 0);
    EXPECT(strspn(a + 4, "0123456789abcdef") == 40);
    EXPECT(strcmp(a, b) != 0);
    EXPECT_STR(info.tenant_name, "acme");
    EXPECT_STR(info.name, "laptop");
    EXPECT(strncmp(info.hint, a, 8) == 0 && !strstr(a, info.hint));
    for (int again = 0; again < 3; again++) {
        EXPECT(store_key_check(s, a, &t) == 0);
        EXPECT_STR(t.name, "acme");
        EXPECT(store_key_check(s, b, &t) == 0);
        EXPECT_STR(t.name, "beta");
    }
    store_close(s);
    place_remove(&p);
}

TEST(what_is_no_key_opens_nothing)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    char key[STORE_KEY_LEN + 1], wrong[STORE_KEY_LEN + 8];
    struct store_tenant t;

    make_key(s, "acme", key, NULL);
    EXPECT(store_key_check(s, key, &t) == 0);
    EXPECT(store_key_check(s, "", &t) == -ENOENT);
    EXPECT(store_key_check(s, "e2b_", &t) == -ENOENT);
    for (size_t i = 0; i < STORE_KEY_LEN; i++) {
        snprintf(wrong, sizeof(wrong), "%s", key);
        wrong[i] = wrong[i] == 'f' ? 'e' : 'f';
        EXPECT(store_key_check(s, wrong, &t) == -ENOENT);
        wrong[i] = '\0';
        EXPECT(store_key_check(s, wrong, &t) == -ENOENT);
    }
    snprintf(wrong, sizeof(wrong), "%s0", key);
    EXPECT(store_key_check(s, wrong, &t) == -ENOENT);
    snprintf(wrong, sizeof(wrong), "E2B_%s", key + 4);
    EXPECT(store_key_check(s, wrong, &t) == -ENOENT);
    store_close(s);
    place_remove(&p);
}

TEST(revocation_is_seen_at_once_by_others)
{
    struct place p = place_make();
    struct store *front = open_ok(&p), *tool = open_ok(&p);
    char a[STORE_KEY_LEN + 1], b[STORE_KEY_LEN + 1], c[STORE_KEY_LEN + 1];
    struct store_key info;
    struct store_tenant t;
    struct sg_error e;

    make_key(front, "acme", a, &info);
    make_key(front, "acme", b, NULL);
    EXPECT(store_key_check(front, a, &t) == 0);
    EXPECT(store_key_check(front, b, &t) == 0);
    make_key(tool, "acme", c, NULL);
    EXPECT(store_key_check(front, c, &t) == 0);
    EXPECT(store_key_revoke(tool, info.id, &e) == 0);
    EXPECT(store_key_check(front, a, &t) == -ENOENT);
    EXPECT(store_key_check(front, b, &t) == 0);
    EXPECT(store_key_revoke(tool, b, &e) == 0);
    EXPECT(store_key_check(front, b, &t) == -ENOENT);
    EXPECT(store_key_revoke(front, c, &e) == 0);
    EXPECT(store_key_check(front, c, &t) == -ENOENT);
    EXPECT(store_key_check(tool, c, &t) == -ENOENT);
    store_close(front);
    store_close(tool);
    place_remove(&p);
}

TEST(revoking_twice_is_harmless_and_a_stranger_is_told)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    char key[STORE_KEY_LEN + 1];
    struct store_key info;
    struct sg_error e;

    make_key(s, "acme", key, &info);
    EXPECT(store_key_revoke(s, info.id, &e) == 0);
    EXPECT(store_key_revoke(s, key, &e) == 0);
    key[10] = key[10] == 'a' ? 'b' : 'a';
    EXPECT(store_key_revoke(s, key, &e) == -ENOENT && e.kind == SG_ERR_NOT_FOUND);
    EXPECT(!strstr(e.message, key));
    EXPECT(store_key_revoke(s, "", &e) == -ENOENT);
    EXPECT(store_key_revoke(s, "%", &e) == -ENOENT);
    store_close(s);
    place_remove(&p);
}

struct seen {
    unsigned n, revoked, used;
    char first[ID_LEN + 1];
};

static bool count_key(const struct store_key *k, void *arg)
{
    struct seen *seen = arg;

    if (seen->n++ == 0)
        snprintf(seen->first, sizeof(seen->first), "%s", k->id);
    seen->revoked += k->revoked_ms > 0;
    seen->used += k->used_ms > 0;
    return true;
}

TEST(keys_are_listed_with_their_state)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    char a[STORE_KEY_LEN + 1], b[STORE_KEY_LEN + 1], c[STORE_KEY_LEN + 1];
    struct store_key info, other;
    struct store_tenant t;
    struct seen all = {0}, acme = {0};
    struct sg_error e;

    make_key(s, "acme", a, &info);
    make_key(s, "acme", b, NULL);
    make_key(s, "beta", c, &other);
    EXPECT(store_key_check(s, a, &t) == 0);
    EXPECT(store_key_revoke(s, other.id, &e) == 0);
    EXPECT(store_keys_each(s, NULL, count_key, &all, &e) == 0);
    EXPECT(all.n == 3 && all.revoked == 1 && all.used == 1);
    EXPECT(store_keys_each(s, info.tenant, count_key, &acme, &e) == 0);
    EXPECT(acme.n == 2 && acme.revoked == 0);
    store_close(s);
    place_remove(&p);
}

TEST(key_itself_is_nowhere_on_disk)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    char key[STORE_KEY_LEN + 1], path[128];
    struct store_tenant t;

    make_key(s, "acme", key, NULL);
    EXPECT(store_key_check(s, key, &t) == 0);
    for (int i = 0; i < 2; i++) {
        AUTO(free_p) char *text = NULL;
        size_t len;

        snprintf(path, sizeof(path), "%s%s", p.file, i ? "-wal" : "");
        EXPECT(file_read(AT_FDCWD, path, 1u << 20, &text, &len) == 0);
        EXPECT(text && !memmem(text, len, key + 12, 16));
    }
    store_close(s);
    place_remove(&p);
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

TEST(files_are_private)
{
    struct place p = place_make();
    mode_t old = umask(0);
    struct store *s = open_ok(&p);
    char key[STORE_KEY_LEN + 1], path[128];

    make_key(s, "acme", key, NULL);
    EXPECT(mode_of(p.file) == 0600);
    snprintf(path, sizeof(path), "%s-wal", p.file);
    EXPECT(mode_of(path) == 0600);
    snprintf(path, sizeof(path), "%s-shm", p.file);
    EXPECT(mode_of(path) == 0600);
    store_close(s);
    EXPECT(chmod(p.file, 0644) == 0);
    s = open_ok(&p);
    EXPECT(mode_of(p.file) == 0600);
    store_close(s);
    umask(old);
    place_remove(&p);
}

static void write_file(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    EXPECT(fd >= 0 && fd_write_all(fd, data, len) == 0);
    close(fd);
}

TEST(what_is_no_database_is_refused)
{
    struct place p = place_make();
    struct store *s = NULL;
    struct sg_error e;
    char noise[8192];

    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)(i * 7 + 3);
    write_file(p.file, noise, sizeof(noise));
    EXPECT(store_open(p.dir, &s, &e) == -EUCLEAN && strstr(e.message, "is not a database"));
    EXPECT(strstr(e.message, p.file) != NULL);
    unlink(p.file);
    EXPECT(symlink("/dev/null", p.file) == 0);
    EXPECT(store_open(p.dir, &s, &e) == -EINVAL);
    unlink(p.file);
    EXPECT(store_open("/nonexistent/x", &s, &e) == -ENOENT);
    place_remove(&p);
}

TEST(foreign_and_later_databases_are_refused)
{
    struct place p = place_make();
    struct store *s = NULL;
    struct sg_error e;

    run_sql(&p, "CREATE TABLE recipes (x)");
    EXPECT(store_open(p.dir, &s, &e) == -EUCLEAN && strstr(e.message, "another program"));
    unlink(p.file);
    s = open_ok(&p);
    store_close(s);
    run_sql(&p, "PRAGMA user_version = 99");
    EXPECT(store_open(p.dir, &s, &e) == -EPROTO && strstr(e.message, "later version"));
    place_remove(&p);
}

TEST(damaged_database_is_refused)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    char key[STORE_KEY_LEN + 1], zeros[4096] = {1, 2, 3};
    struct sg_error e;

    for (int i = 0; i < 20; i++)
        make_key(s, "acme", key, NULL);
    store_close(s);
    int fd = open(p.file, O_WRONLY | O_CLOEXEC);
    EXPECT(pwrite(fd, zeros, sizeof(zeros), sizeof(zeros)) == (ssize_t)sizeof(zeros));
    close(fd);
    EXPECT(store_open(p.dir, &s, &e) == -EUCLEAN && strstr(e.message, "damaged"));
    place_remove(&p);
}

static struct store_snapshot snapshot(const char *tenant, const char *name, const char *tag)
{
    struct store_snapshot s = {.created_ms = 1000, .bytes = 4096};

    id_random(s.id);
    snprintf(s.tenant, sizeof(s.tenant), "%s", tenant);
    snprintf(s.name, sizeof(s.name), "%s", name);
    snprintf(s.tag, sizeof(s.tag), "%s", tag);
    snprintf(s.sandbox_id, sizeof(s.sandbox_id), "sandbox0000000000000");
    snprintf(s.base_template, sizeof(s.base_template), "base");
    return s;
}

TEST(snapshots_are_found_by_id_and_name)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant a, b;
    struct store_snapshot got;
    struct sg_error e;
    char replaced[ID_LEN + 1], ref[64];

    EXPECT(store_tenant_ensure(s, "acme", &a, &e) == 0);
    EXPECT(store_tenant_ensure(s, "beta", &b, &e) == 0);
    struct store_snapshot one = snapshot(a.id, "ready", ""), two = snapshot(a.id, "ready", "v2"),
                          bare = snapshot(a.id, "", "");
    EXPECT(store_snapshot_add(s, &one, replaced, &e) == 0);
    EXPECT_STR(replaced, "");
    EXPECT(store_snapshot_add(s, &two, replaced, &e) == 0);
    EXPECT_STR(replaced, "");
    EXPECT(store_snapshot_add(s, &bare, replaced, &e) == 0);
    EXPECT(store_snapshot_get(s, a.id, "ready", &got, &e) == 0);
    EXPECT_STR(got.id, one.id);
    EXPECT_STR(got.tag, "default");
    EXPECT(got.bytes == 4096 && got.created_ms == 1000);
    EXPECT(store_snapshot_get(s, a.id, "ready:default", &got, &e) == 0);
    EXPECT(store_snapshot_get(s, a.id, "ready:v2", &got, &e) == 0);
    EXPECT_STR(got.id, two.id);
    EXPECT(store_snapshot_get(s, a.id, bare.id, &got, &e) == 0);
    snprintf(ref, sizeof(ref), "%s:default", bare.id);
    EXPECT(store_snapshot_get(s, a.id, ref, &got, &e) == 0);
    EXPECT_STR(got.id, bare.id);
    snprintf(ref, sizeof(ref), "%s:v9", bare.id);
    EXPECT(store_snapshot_get(s, a.id, ref, &got, &e) == -ENOENT);
    EXPECT(store_snapshot_get(s, a.id, "", &got, &e) == -ENOENT);
    EXPECT(store_snapshot_get(s, a.id, ":default", &got, &e) == -ENOENT);
    EXPECT(store_snapshot_get(s, a.id, "ready:v3", &got, &e) == -ENOENT);
    EXPECT(store_snapshot_get(s, b.id, "ready", &got, &e) == -ENOENT);
    EXPECT(store_snapshot_get(s, b.id, one.id, &got, &e) == -ENOENT);
    store_close(s);
    place_remove(&p);
}

TEST(name_belongs_to_the_newest_snapshot)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant a, b;
    struct store_snapshot got;
    struct sg_error e;
    char replaced[ID_LEN + 1];

    EXPECT(store_tenant_ensure(s, "acme", &a, &e) == 0);
    EXPECT(store_tenant_ensure(s, "beta", &b, &e) == 0);
    struct store_snapshot one = snapshot(a.id, "ready", ""), two = snapshot(a.id, "ready", ""),
                          other = snapshot(b.id, "ready", "");
    EXPECT(store_snapshot_add(s, &one, replaced, &e) == 0);
    EXPECT(store_snapshot_add(s, &other, replaced, &e) == 0);
    EXPECT_STR(replaced, "");
    EXPECT(store_snapshot_add(s, &two, replaced, &e) == 0);
    EXPECT_STR(replaced, one.id);
    EXPECT(store_snapshot_get(s, a.id, "ready", &got, &e) == 0);
    EXPECT_STR(got.id, two.id);
    EXPECT(store_snapshot_get(s, a.id, one.id, &got, &e) == -ENOENT);
    EXPECT(store_snapshot_get(s, b.id, "ready", &got, &e) == 0);
    EXPECT_STR(got.id, other.id);
    two.name[0] = '\0';
    EXPECT(store_snapshot_add(s, &two, replaced, &e) < 0);
    store_close(s);
    place_remove(&p);
}

struct page {
    unsigned n, max;
    int64_t last;
};

static bool take_page(const struct store_snapshot *snap, void *arg)
{
    struct page *page = arg;

    EXPECT(snap->seq < page->last);
    page->last = snap->seq;
    return ++page->n < page->max;
}

TEST(snapshots_are_listed_newest_first_in_pages)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant a;
    struct sg_error e;
    char replaced[ID_LEN + 1], ids[7][ID_LEN + 1];

    EXPECT(store_tenant_ensure(s, "acme", &a, &e) == 0);
    for (int i = 0; i < 7; i++) {
        struct store_snapshot snap = snapshot(a.id, "", "");

        memcpy(ids[i], snap.id, sizeof(ids[i]));
        EXPECT(store_snapshot_add(s, &snap, replaced, &e) == 0);
    }
    struct page page = {.max = 3, .last = STORE_NEWEST};
    EXPECT(store_snapshots_each(s, a.id, page.last, take_page, &page, &e) == 0 && page.n == 3);
    /* The one that the next page begins after is gone: the page is the same. */
    EXPECT(store_snapshot_remove(s, a.id, ids[4], &e) == 0);
    page = (struct page){.max = 100, .last = page.last};
    EXPECT(store_snapshots_each(s, a.id, page.last, take_page, &page, &e) == 0 && page.n == 4);
    EXPECT(store_snapshot_remove(s, a.id, ids[4], &e) == -ENOENT);
    EXPECT(store_snapshot_remove(s, "nobody", ids[0], &e) == -ENOENT);
    store_close(s);
    place_remove(&p);
}

struct loose {
    size_t n;
    char last[ID_LEN + 1];
};

static void count_snapshot(const char *id, void *arg)
{
    struct loose *l = arg;

    l->n++;
    memcpy(l->last, id, sizeof(l->last));
}

static struct loose loose_of(struct store *s)
{
    struct loose l = {0};
    struct sg_error e;

    EXPECT(store_loose_snapshots_each(s, count_snapshot, &l, &e) == 0);
    return l;
}

TEST(a_snapshot_without_a_name_can_still_be_found)
{
    struct place p = place_make();
    struct store *s = open_ok(&p);
    struct store_tenant a;
    struct sg_error e;
    char replaced[ID_LEN + 1];

    EXPECT(store_tenant_ensure(s, "acme", &a, &e) == 0);
    struct store_snapshot one = snapshot(a.id, "n", ""), two = snapshot(a.id, "n", "");
    EXPECT(store_snapshot_loose(s, one.id, &e) == 0);
    store_close(s); /* a front was killed: the next one finds it */
    s = open_ok(&p);
    EXPECT_STR(loose_of(s).last, one.id);
    EXPECT(store_snapshot_add(s, &one, replaced, &e) == 0);
    EXPECT(loose_of(s).n == 0);
    EXPECT(store_snapshot_add(s, &two, replaced, &e) == 0); /* takes the name */
    EXPECT_STR(loose_of(s).last, one.id);
    EXPECT(store_snapshot_remove(s, a.id, two.id, &e) == 0);
    EXPECT(loose_of(s).n == 2);
    store_snapshot_gone(s, one.id);
    EXPECT(loose_of(s).n == 1);
    EXPECT_STR(loose_of(s).last, two.id);
    store_close(s);
    place_remove(&p);
}

#define WRITERS     4
#define KEYS_OF_ONE 25

TEST(processes_write_at_the_same_time)
{
    struct place p = place_make();
    pid_t pids[WRITERS];
    struct seen seen = {0};
    struct sg_error e;

    fflush(stdout);
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct store *s = open_ok(&p);
            char key[STORE_KEY_LEN + 1];
            struct store_tenant t;

            for (int k = 0; k < KEYS_OF_ONE; k++) {
                make_key(s, "acme", key, NULL);
                EXPECT(store_key_check(s, key, &t) == 0);
            }
            store_close(s);
            _exit(tap_failures != 0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;

        EXPECT(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
    struct store *s = open_ok(&p);
    EXPECT(store_keys_each(s, NULL, count_key, &seen, &e) == 0);
    EXPECT(seen.n == WRITERS * KEYS_OF_ONE);
    store_close(s);
    place_remove(&p);
}
