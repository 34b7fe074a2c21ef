# case: A06
# title: classic mounts
# users: user root
# control: seccomp,caps
# control-user: root
SYS_MOUNT, SYS_UMOUNT2, SYS_PIVOT_ROOT = 165, 166, 155
RDONLY, REMOUNT, BIND, MOVE = 0x1, 0x20, 0x1000, 0x2000


def mount(what, source, target, kind, flags):
    ret, why = S(SYS_MOUNT, source, target, kind, flags, 0)
    if ret < 0:
        return denied(what, why)
    pwned(what)
    S(SYS_UMOUNT2, target, 2)


mount("mount a tmpfs", b"x", b"/mnt", b"tmpfs", 0)
mount("mount a /proc", b"x", b"/mnt", b"proc", 0)
mount("mount a sysfs", b"x", b"/mnt", b"sysfs", 0)
mount("mount an overlay", b"x", b"/mnt", b"overlay", 0)
mount("bind /", b"/", b"/mnt", None, BIND)
mount("remount / read-write", None, b"/", None, REMOUNT)
mount("remount /proc/sys read-write", None, b"/proc/sys", None, REMOUNT | BIND)
mount("move /proc", b"/proc", b"/mnt", None, MOVE)
refused("pivot_root", SYS_PIVOT_ROOT, b"/mnt", b"/mnt")
command("mount(8)", "mount", "-t", "tmpfs", "x", "/mnt")
done()
