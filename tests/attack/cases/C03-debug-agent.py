# case: C03
# title: looking into the agent
# users: user root
# control: agent,caps,seccomp
# control-user: root
SYS_PTRACE, SYS_PRLIMIT64 = 101, 302
ATTACH, DETACH, SEIZE, INTERRUPT, WALL = 16, 17, 0x4206, 0x4207, 0x40000000

for name in (
    "mem",
    "maps",
    "smaps",
    "environ",
    "pagemap",
    "stack",
    "syscall",
    "auxv",
    "io",
    "mountinfo_x",
    "fdinfo",
    "map_files",
):
    path = f"/proc/1/{name}"
    try:
        if os.path.isdir(path):
            pwned(f"{path} can be listed") if os.listdir(path) is not None else None
        else:
            with open(path, "rb") as f:
                if f.read(1):
                    pwned(f"{path} can be read")
                else:
                    denied(path, "empty")
    except OSError as e:
        denied(path, name_of(e))


def trace():
    for what, request in (("PTRACE_ATTACH", ATTACH), ("PTRACE_SEIZE", SEIZE)):
        ret, why = S(SYS_PTRACE, request, 1, 0, 0)
        if ret == 0:
            pwned(what)
            # Only a tracee that has stopped can be let go; one that stays stopped brings no result.
            if request == SEIZE:
                S(SYS_PTRACE, INTERRUPT, 1, 0, 0)
            os.waitpid(1, WALL)
            S(SYS_PTRACE, DETACH, 1, 0, 0)
        else:
            denied(what, why)
    return 0


in_child(trace)
refused("process_vm_readv", 310, 1, 0, 0, 0, 0, 0)
refused("process_vm_writev", 311, 1, 0, 0, 0, 0, 0)
pidfd, _ = S(434, 1, 0)
refused("pidfd_getfd", 438, pidfd, 3, 0)
refused("kcmp", 312, 1, os.getpid(), 0, 0, 0)
refused("prlimit of the agent", SYS_PRLIMIT64, 1, 7, 0, ctypes.create_string_buffer(16))
refused("process_madvise", 440, pidfd, 0, 0, 0, 0)
done()
