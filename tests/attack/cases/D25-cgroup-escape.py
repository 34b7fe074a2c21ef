# case: D25
# title: leaving the control group
# users: user root
# control: seccomp,caps
# control-user: root
SYS_MOUNT, SYS_UMOUNT2, SYS_UNSHARE = 165, 166, 272

for line in open("/proc/self/cgroup"):
    number, controllers, path = line.strip().split(":", 2)
    # Only controllers that limit something are the sandbox's own group.
    if path != "/" and ".." in path or "sandglass" in path:
        pwned(f"the host's groups show: {line.strip()}")
    else:
        denied(f"group of {controllers or 'v2'}", path)
for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified", "/cgroup"):
    for name in ("cgroup.procs", "tasks", "memory.max", "pids.max"):
        attempt(f"open {path}/{name} for writing", opens, f"{path}/{name}", os.O_WRONLY)
for line in open("/proc/self/mountinfo"):
    if line.split(" - ")[1].startswith("cgroup"):
        pwned(f"a cgroup file system is mounted: {line.split()[4]}")
if in_child(lambda: 0 if S(SYS_UNSHARE, CLONE_NEW["NEWCGROUP"])[0] == 0 else 1) == 0:
    pwned("a new cgroup namespace")
at = b"/mnt"
for kind, data in ((b"cgroup", b"memory"), (b"cgroup", b"pids"), (b"cgroup2", None)):
    ret, why = S(SYS_MOUNT, b"x", at, kind, 0, data)
    if ret == 0:
        pwned(f"mount {kind.decode()}")
        S(SYS_UMOUNT2, at, 2)
    else:
        denied(f"mount {kind.decode()}", why)
done()
