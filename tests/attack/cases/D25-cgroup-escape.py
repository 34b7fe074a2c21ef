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
TOP = "/sys/fs/cgroup"
for path in (TOP, *(f"{TOP}/{name}" for name in ("memory", "cpu", "cpuacct", "pids", "unified"))):
    for name in ("cgroup.procs", "tasks", "memory.max", "memory.limit_in_bytes", "pids.max"):
        attempt(f"open {path}/{name} for writing", opens, f"{path}/{name}", os.O_WRONLY)
    attempt(f"chmod {path}", os.chmod, path, 0o777)
    attempt(f"chown {path}", os.chown, path, os.getuid(), os.getgid())
    attempt(f"make a group in {path}", os.mkdir, f"{path}/own")
for line in open("/proc/self/mountinfo"):
    root, point, flags = line.split()[3:6]
    if not line.split(" - ")[1].startswith("cgroup"):
        continue
    # v1: only the mount of cgroup2, which is covered, is of a group that is not the sandbox's own.
    if not point.startswith(TOP) or "ro" not in flags.split(",") or "sandglass" in root:
        pwned(f"a cgroup file system is mounted: {line.strip()}")
    for flag in (0, 2, 8):
        ret, why = S(SYS_UMOUNT2, point.encode(), flag)
        if ret == 0:
            pwned(f"umount {point}")
        else:
            denied(f"umount {point}", why)
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
