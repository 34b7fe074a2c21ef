# case: B07
# title: device nodes
# users: user root
# Nodes are only opened for reading, and nothing is read.
import stat

for name, kind, major, minor in (
    ("mem", stat.S_IFCHR, 1, 1),
    ("kmsg", stat.S_IFCHR, 1, 11),
    ("null", stat.S_IFCHR, 1, 3),
    ("disk", stat.S_IFBLK, 254, 0),
    ("sda", stat.S_IFBLK, 8, 0),
    ("loop", stat.S_IFBLK, 7, 0),
    ("kvm", stat.S_IFCHR, 10, 232),
    ("fuse", stat.S_IFCHR, 10, 229),
    ("tun", stat.S_IFCHR, 10, 200),
    ("whiteout", stat.S_IFCHR, 0, 0),
):
    for top in ("/tmp", "/dev/shm", os.path.expanduser("~")):
        path = f"{top}/node-{name}"
        try:
            os.mknod(path, kind | 0o666, os.makedev(major, minor))
        except OSError as e:
            denied(f"mknod {path}", name_of(e))
            continue
        pwned(f"mknod {path} {major}:{minor}")
        attempt(f"open {path}", opens, path, os.O_RDONLY)
        os.unlink(path)
for name in (
    "vda",
    "vda1",
    "sda",
    "kvm",
    "fuse",
    "loop-control",
    "loop0",
    "net/tun",
    "vsock",
    "kmsg",
    "mem",
    "ttyS0",
    "console",
    "vhost-vsock",
    "vhost-net",
    "userfaultfd",
    "rtc0",
    "uinput",
    "mapper/control",
    "dri/card0",
    "hwrng",
    "cpu_dma_latency",
    "autofs",
    "btrfs-control",
):
    attempt(f"open /dev/{name}", opens, f"/dev/{name}", os.O_RDONLY)
FEW = {
    "null",
    "zero",
    "full",
    "random",
    "urandom",
    "tty",
    "fd",
    "stdin",
    "stdout",
    "stderr",
    "ptmx",
    "pts",
    "shm",
    "mqueue",
}
for name in set(os.listdir("/dev")) - FEW:
    pwned(f"/dev/{name} exists")
done()
