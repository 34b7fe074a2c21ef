# case: A05
# title: entering other namespaces
# users: user root
# control: seccomp
SYS_SETNS, SYS_PIDFD_OPEN = 308, 434
KINDS = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")

refused("setns(-1)", SYS_SETNS, -1, 0)
for kind in KINDS:
    try:
        fd = os.open(f"/proc/1/ns/{kind}", os.O_RDONLY)
    except OSError as e:
        denied(f"open /proc/1/ns/{kind}", name_of(e))
        continue
    refused(f"setns into the {kind} namespace of pid 1", SYS_SETNS, fd, 0)
    os.close(fd)
pidfd, why = S(SYS_PIDFD_OPEN, 1, 0)
if pidfd >= 0:
    refused("setns by pidfd", SYS_SETNS, pidfd, sum(CLONE_NEW.values()))
command("nsenter", "nsenter", "-t", "1", "-a", "true")

# Whatever can be seen is the sandbox's own.
for pid in filter(str.isdigit, os.listdir("/proc")):
    for kind in KINDS:
        try:
            if os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"):
                pwned(f"process {pid} is in another {kind} namespace")
        except OSError:
            pass
done()
