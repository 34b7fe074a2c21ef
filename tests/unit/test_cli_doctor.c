/* The checks of `sandglass doctor`, run for real: they answer in full and leave nothing behind. */
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include "lib/base/fd.h"
#include "cli/local/doctor.h"

TAP_MAIN

static const struct check_group *const groups[] = {
    &doctor_host,    &doctor_namespaces, &doctor_filesystems, &doctor_confinement,
    &doctor_cgroups, &doctor_runtimes,   &doctor_server,
};

TEST(every_check_has_a_value_and_a_fix_where_one_is_needed)
{
    size_t n = 0;

    for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
        for (size_t i = 0; i < groups[g]->n; i++, n++) {
            struct check_result r = {.about = groups[g]->checks[i].about};

            groups[g]->checks[i].probe(&r);
            if (!r.value[0] || (r.state == CHECK_OK) != (r.fix[0] == '\0'))
                printf("# %s: value '%s', fix '%s'\n", groups[g]->checks[i].name, r.value, r.fix);
            EXPECT(r.value[0] != '\0');
            EXPECT((r.state == CHECK_OK) == (r.fix[0] == '\0'));
            EXPECT(!strchr(r.value, '\n') && !strchr(r.fix, '\n'));
        }
    }
    EXPECT(n >= 30);
}

static char *read_mounts(void)
{
    char *text = NULL;
    size_t len;

    EXPECT(file_read(AT_FDCWD, "/proc/self/mountinfo", 1u << 20, &text, &len) == 0);
    return text ? text : xstrdup("");
}

static size_t count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    EXPECT(d != NULL);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

TEST(checks_leave_mounts_and_descriptors_as_they_were)
{
    /* A namespace of our own: what others mount meanwhile does not concern us. */
    EXPECT(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    AUTO(free_p) char *mounts_before = read_mounts();
    size_t fds_before = count_fds();

    for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
        for (size_t i = 0; i < groups[g]->n; i++) {
            struct check_result r = {.about = groups[g]->checks[i].about};

            groups[g]->checks[i].probe(&r);
        }
    }
    AUTO(free_p) char *mounts_after = read_mounts();
    EXPECT_STR(mounts_after, mounts_before);
    EXPECT(count_fds() == fds_before);
}

static int answer(void *arg)
{
    return *(int *)arg;
}

TEST(child_hands_its_answer_back)
{
    int none = 0, refused = -EPERM;

    EXPECT(probe_in_child(answer, &none) == 0);
    EXPECT(probe_in_child(answer, &refused) == -EPERM);
}

TEST(sysctls)
{
    EXPECT(probe_sysctl("kernel/pid_max") > 0);
    EXPECT(probe_sysctl("kernel/no_such_setting") == -1);
}
