/* The id table, on the real /run/sandglass. Needs root, as everything that makes sandboxes does. */
#include "tap.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "warden/host/cgroup.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/slots.h"
#include "warden/host/slots_count.h"

TAP_MAIN

#define SERVER     "sunittest"
#define TENANT     "0tenant"
#define FAR_BEHIND 8000

/* The path of a group in the hierarchy of processes, whichever version that is. */
static const char *group_path(const char *below)
{
    static char path[160];
    const char *top =
        access("/sys/fs/cgroup/pids", F_OK) == 0 ? "/sys/fs/cgroup/pids" : "/sys/fs/cgroup";

    snprintf(path, sizeof(path), "%s/sandglass/%s", top, below);
    return path;
}

static bool overlap(const struct slots *a, const struct slots *b)
{
    return a->first < b->first + b->count && b->first < a->first + a->count;
}

TEST(runs_are_disjoint)
{
    struct slots a, b, c;
    struct sg_error e = {0};

    EXPECT(slots_take(&a, 3, &e) == 0);
    EXPECT(slots_take(&b, 1, &e) == 0);
    EXPECT(slots_take(&c, 70, &e) == 0);
    EXPECT(!overlap(&a, &b) && !overlap(&b, &c) && !overlap(&a, &c));
    slots_release(&a);
    slots_release(&b);
    slots_release(&c);
}

TEST(another_process_gets_other_slots)
{
    struct slots mine;
    struct sg_error e = {0};
    int status, p[2];

    EXPECT(slots_take(&mine, 2, &e) == 0 && pipe(p) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct slots theirs;
        _exit(slots_take(&theirs, 2, NULL) == 0 && !overlap(&mine, &theirs) ? 0 : 1);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    slots_release(&mine);
    slots_sweep_all(NULL); /* the child's, who did not release them */
}

TEST(a_freed_slot_is_taken_again)
{
    struct slots a, b;
    struct sg_error e = {0};

    EXPECT(slots_take(&a, 1, &e) == 0);
    uint32_t first = a.first;
    slots_release(&a);
    EXPECT(slots_take(&b, 1, &e) == 0);
    EXPECT(b.first <= first);
    slots_release(&b);
}

TEST(ids_do_not_reach_special_values)
{
    EXPECT(slot_first_id(0) == SLOTS_FIRST_ID);
    EXPECT(slot_first_id(SLOTS_MAX - 1) + SLOT_IDS - 1 < 0xf0000000u);
}

/* Killed, and nobody else reaps it: orphans of this test come to us. */
static bool was_killed(pid_t pid)
{
    int status = 0;

    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* A process that takes a slot, puts a sleeper into its control group and dies with it. */
static pid_t crash_with_sleeper(uint32_t *ret_slot)
{
    int p[2], q[2];
    pid_t sleeper = -1;

    EXPECT(pipe(p) == 0 && pipe(q) == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct slots s;
        struct cgroup_place *place;
        struct cgroup *cg;
        if (slots_take(&s, 1, NULL) < 0 || cgroup_place_open(SERVER, TENANT, &place, NULL) < 0 ||
            cgroup_create(place, s.first, &cg, NULL) < 0)
            _exit(1);
        pid_t child = fork();
        if (child == 0) {
            struct cgroup_doors doors;
            if (cg->ops->open_doors(cg, &doors, NULL) < 0)
                _exit(1);
            for (size_t i = 0; i < doors.n; i++)
                if (write(doors.fds[i], "0", 1) != 1)
                    _exit(1);
            close(s.fd); /* a sandbox's processes hold no lock */
            EXPECT(write(q[1], "r", 1) == 1);
            for (;;)
                pause();
        }
        char ready;
        EXPECT(read(q[0], &ready, 1) == 1);
        EXPECT(write(p[1], &s.first, sizeof(s.first)) > 0 &&
               write(p[1], &child, sizeof(child)) > 0);
        raise(SIGKILL);
    }
    EXPECT(read(p[0], ret_slot, sizeof(*ret_slot)) == sizeof(*ret_slot));
    EXPECT(read(p[0], &sleeper, sizeof(sleeper)) == sizeof(sleeper));
    waitpid(pid, NULL, 0);
    return sleeper;
}

TEST(a_crash_leaves_a_stale_slot_that_is_swept)
{
    uint32_t used, stale, slot = 0;
    struct sg_error e = {0};
    char path[64];
    bool was_counted = false;

    /* Servers of other tests sweep too when they start, and may be faster. */
    for (int i = 0; i < 20 && !was_counted; i++) {
        pid_t sleeper = crash_with_sleeper(&slot);
        bool runs = kill(sleeper, 0) == 0;
        snprintf(path, sizeof(path), SERVER "/" TENANT "/%u", slot);
        bool was_there = access(group_path(path), F_OK) == 0;
        EXPECT(slots_count(&used, &stale, &e) == 0);
        bool counted = stale >= 1;
        int swept = slots_sweep_all(&e);
        EXPECT(swept >= 0);
        EXPECT(was_killed(sleeper));
        EXPECT(access(group_path(path), F_OK) < 0);
        EXPECT(access(group_path(SERVER), F_OK) < 0); /* its place goes with it */
        was_counted = runs && was_there && counted && swept >= 1;
    }
    EXPECT(was_counted);
}

/* As versions before had them, of a run that crashed; the table may say nothing of it. Others take
 * the first slots that are free: this one is far behind, so that nobody takes it meanwhile. */
TEST(groups_of_the_old_layout_are_swept)
{
    struct slots s;
    uint32_t used, stale, slot;
    struct sg_error e = {0};
    char name[32];
    pid_t sleeper;

    EXPECT(slots_take(&s, FAR_BEHIND, &e) == 0);
    slot = s.first + FAR_BEHIND - 1;
    snprintf(name, sizeof(name), "%u", slot);
    EXPECT(mkdir(group_path(""), 0755) == 0 || errno == EEXIST);
    EXPECT(mkdir(group_path(name), 0755) == 0);
    sleeper = fork();
    if (sleeper == 0)
        for (close(s.fd);;)
            pause();
    snprintf(name, sizeof(name), "%u/cgroup.procs", slot);
    FILE *f = fopen(group_path(name), "we");
    EXPECT(f && fprintf(f, "%d", (int)sleeper) > 0 && fclose(f) == 0);
    snprintf(name, sizeof(name), "%u", slot);
    EXPECT(slots_count(&used, &stale, &e) == 0 && used >= 1);
    EXPECT(slots_sweep_all(&e) >= 0);
    EXPECT(kill(sleeper, 0) == 0 && access(group_path(name), F_OK) == 0); /* it is in use */
    slots_release(&s);
    EXPECT(slots_sweep_all(&e) >= 0);
    EXPECT(was_killed(sleeper));
    EXPECT(access(group_path(name), F_OK) < 0);
}

/* A place is kept while anybody uses it, and goes with the last. */
TEST(a_place_in_use_is_not_swept)
{
    struct cgroup_place *a = NULL, *b = NULL, *server = NULL;
    struct sg_error e = {0};

    EXPECT(cgroup_place_open(SERVER, NULL, &server, &e) == 0);
    EXPECT(cgroup_place_open(SERVER, TENANT, &a, &e) == 0);
    EXPECT(cgroup_place_open(SERVER, TENANT, &b, &e) == 0);
    EXPECT(slots_sweep_all(&e) >= 0);
    EXPECT(faccessat(cgroup_place_dir(a), "cgroup.procs", F_OK, 0) == 0);
    cgroup_place_close(a);
    EXPECT(faccessat(cgroup_place_dir(b), "cgroup.procs", F_OK, 0) == 0);
    cgroup_place_close(b);
    uint32_t before = cgroup_sweep_places(false);
    EXPECT(faccessat(cgroup_place_dir(server), TENANT, F_OK, 0) < 0);
    EXPECT(faccessat(cgroup_place_dir(server), "cgroup.procs", F_OK, 0) == 0);
    cgroup_place_close(server);
    EXPECT(cgroup_sweep_places(false) <= before);
}

static void make_place_and_die(void)
{
    struct cgroup_place *p;

    _exit(cgroup_place_open(SERVER, TENANT, &p, NULL) == 0 ? 0 : 1);
}

TEST(a_place_that_a_crash_left_is_counted_and_swept)
{
    struct sg_error e = {0};
    int status;
    pid_t pid = fork();

    if (pid == 0)
        make_place_and_die();
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    EXPECT(cgroup_sweep_places(false) >= 2);
    EXPECT(slots_sweep_all(&e) >= 0);
    EXPECT(cgroup_sweep_places(false) == 0);
}

TEST(names_from_outside_are_refused)
{
    static const char *const bad[] = {
        "", "..", "a/b", "A", "with space", "0digit-first", "a234567890123456789012345"};
    struct cgroup_place *p = NULL;
    struct sg_error e = {0};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        EXPECT(cgroup_place_open(bad[i], NULL, &p, &e) == -EINVAL);
        EXPECT(cgroup_place_open(SERVER, bad[i], &p, &e) == -EINVAL);
    }
    EXPECT(cgroup_place_open("7", NULL, &p, &e) == -EINVAL);
}

TEST(taking_a_stale_slot_sweeps_it_first)
{
    uint32_t slot = 0, n = 0;
    struct slots taken[64];
    struct sg_error e = {0};
    pid_t sleeper = crash_with_sleeper(&slot);

    /* First fit: taking one by one comes to it, whatever others hold. */
    do
        EXPECT(slots_take(&taken[n], 1, &e) == 0);
    while (taken[n++].first < slot && n < ARRAY_SIZE(taken));
    EXPECT(taken[n - 1].first == slot);
    EXPECT(was_killed(sleeper));
    while (n > 0)
        slots_release(&taken[--n]);
}

TEST(a_lost_slot_is_not_given_back)
{
    struct slots s;
    uint32_t used, stale;
    struct sg_error e = {0};

    EXPECT(slots_take(&s, 2, &e) == 0);
    slots_lose(&s, s.first + 1);
    slots_release(&s);
    EXPECT(slots_count(&used, &stale, &e) == 0 && stale == 1);
    EXPECT(slots_sweep_all(&e) == 1);
}

TEST(too_many_is_a_clear_error)
{
    struct slots s;
    struct sg_error e = {0};

    EXPECT(slots_take(&s, SLOTS_MAX + 1, &e) < 0);
    EXPECT(e.kind == SG_ERR_LIMIT && strstr(e.message, "end some sandboxes"));
}
