/* What the provider says of a host on which it can make no sandbox. */
#include <errno.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "warden/providers/provider.h"

struct answer {
    int r;
    struct sg_error e;
};

static void be_nobody(void)
{
    if (geteuid() == 0 && syscall(SYS_setresuid, 65534, 65534, 65534) < 0)
        _exit(1);
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    if (geteuid() == 0 && syscall(SYS_capset, &head, none) < 0)
        _exit(1);
}

/* Asks in a child that has become less. */
static struct answer probe_after(void (*change)(void))
{
    struct answer *a =
        mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct answer told;
    int status = -1;
    pid_t pid;

    EXPECT(a != MAP_FAILED);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        change();
        a->r = providers[0]->probe(&a->e);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    EXPECT(status == 0);
    told = *a;
    munmap(a, sizeof(*a));
    return told;
}

TEST(who_is_not_root_is_told_so)
{
    struct answer a = probe_after(be_nobody);

    EXPECT(a.r == -EPERM && a.e.kind == SG_ERR_DENIED);
    EXPECT(strstr(a.e.message, "needs root: run it with sudo"));
}

TEST(root_without_capabilities_is_told_which_one)
{
    bool root = geteuid() == 0;
    struct answer a = probe_after(drop_capabilities);

    EXPECT(a.r == -EPERM);
    EXPECT(strstr(a.e.message, root ? "CAP_SYS_ADMIN" : "needs root"));
}

TEST(a_provider_has_the_whole_core)
{
    for (const struct provider_ops *const *p = providers; *p; p++) {
        const struct provider_ops *o = *p;

        EXPECT(o->name && o->probe && o->open && o->close && o->limit_memory && o->memory);
        EXPECT(o->ooms && o->idle && o->trim && o->begin && o->fd && o->begun && o->finish);
        EXPECT(o->line && o->started && o->connect && o->line_take && o->stats && o->usage);
        EXPECT(o->pause && o->paused && o->process && o->was_killed && o->end);
        EXPECT(o->end_deadline && o->ended);
        EXPECT(!o->fork || (o->kernels && o->files));
    }
}

TAP_MAIN
