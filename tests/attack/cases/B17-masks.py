# case: B17
# title: taking the masks off
# users: user root
# control: seccomp,caps
# control-user: root
SYS_MOUNT, SYS_UMOUNT2, MOVE = 165, 166, 0x2000
MASKS = (
    "/proc/kcore",
    "/proc/keys",
    "/proc/interrupts",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/scsi",
    "/proc/bus",
    "/proc/meminfo",
    "/sys/fs/cgroup",
    "/sys/limits",
    "/sys",
    "/dev/null",
    "/dev",
    "/usr",
)

before = open("/proc/self/mountinfo").read()
for path in MASKS:
    for flag in (0, 2, 8):
        ret, why = S(SYS_UMOUNT2, path.encode(), flag)
        if ret == 0:
            pwned(f"umount {path}")
        else:
            denied(f"umount {path}", why)
    ret, why = S(SYS_MOUNT, path.encode(), b"/mnt", None, MOVE, 0)
    if ret == 0:
        pwned(f"move {path}")
if not CONTROL:
    for path in ("/proc/kcore", "/proc/interrupts", "/proc/sys", "/proc/scsi", "/proc/meminfo", "/sys", "/dev", "/usr"):
        attempt(f"rename {path}", os.rename, path, f"{path}-away")
        attempt(f"rmdir {path}", os.rmdir, path)
        attempt(f"unlink {path}", os.unlink, path)
    if open("/proc/self/mountinfo").read() != before:
        pwned("the mounts have changed")
done()
