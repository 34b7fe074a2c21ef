#!/usr/bin/python3
# case: A01
# title: the whole kernel surface
# users: user root
# options: --timeout 30s
# standalone: yes
# control: seccomp
"""Tries every way into the kernel that a sandbox must not have, with arguments that do nothing even
where the way is open. A call counts as reached when the answer is not the filter's (EPERM, ENOSYS).
Runs by itself as well: `sandglass run -f tests/attack/probe.py`. The exit status is the number of
findings."""
import ctypes
import errno
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CLOEXEC = 0o2000000
AT_FDCWD = -100
findings = 0


def finding(what):
    global findings
    findings += 1
    print("PWNED A01", what)


def call(nr, *args):
    ctypes.set_errno(0)
    ret = LIBC.syscall(
        ctypes.c_long(nr), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    )
    return ret, errno.errorcode.get(ctypes.get_errno(), "?") if ret < 0 else ""


# Each of these fails by itself, or gives back what is closed again below.
FORBIDDEN = {
    # big or risky parts of the kernel
    "bpf": (321, 0, 0, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "userfaultfd": (323, 1),
    "io_uring_setup": (425, 1, 0),
    "io_uring_enter": (426, -1, 0, 0, 0, 0, 0),
    "io_uring_register": (427, -1, 0, 0, 0),
    "add_key": (248, 0, 0, 0, 0, 0),
    "request_key": (249, 0, 0, 0, 0),
    "keyctl": (250, 0, -3, 0),
    "fanotify_init": (300, 0, 0),
    "lsm_set_self_attr": (460, 0, 0, 0, 0),
    "remap_file_pages": (216, 0, 0, 0, 0, 0),
    "modify_ldt": (154, 0, 0, 0),
    "io_setup": (206, 0, 0),
    "lookup_dcookie": (212, 0, 0, 0),
    "nfsservctl": (180, 0, 0, 0),
    "uselib": (134, 0),
    "ustat": (136, 0, 0),
    "sysfs": (139, 3),
    "file_setattr": (469, -1, b"", 0, 0, 0),
    "setxattrat": (463, -1, b"", 0, b"", 0, 0),
    "removexattrat": (466, -1, b"", 0, b""),
    "x32 getpid": (0x40000000 + 39,),
    # mounts and namespaces
    "mount": (165, 0, 0, 0, 0, 0),
    "umount2": (166, 0, 0),
    "pivot_root": (155, 0, 0),
    "fsopen": (430, b"tmpfs", 0),
    "fsconfig": (431, -1, 0, 0, 0, 0),
    "fsmount": (432, -1, 0, 0),
    "fspick": (433, AT_FDCWD, b"/", 0),
    "open_tree": (428, -1, b"x", 1),
    "open_tree_attr": (467, -1, b"x", 1, 0, 0),
    "move_mount": (429, -1, b"", -1, b"", 0),
    "mount_setattr": (442, -1, b"", 0x1000, 0, 0),
    "statmount": (457, 0, 0, 0, 0),
    "listmount": (458, 0, 0, 0, 0),
    "setns": (308, -1, 0),
    "clone3": (435, 0, 0),
    "open_by_handle_at": (304, -1, 0, 0),
    "name_to_handle_at": (303, -1, 0, 0, 0, 0),
    # other processes, memory
    "process_vm_readv": (310, 0, 0, 0, 0, 0, 1),
    "process_vm_writev": (311, 0, 0, 0, 0, 0, 1),
    "process_madvise": (440, -1, 0, 0, 0, 0),
    "process_mrelease": (448, -1, 0),
    "kcmp": (312, 0, 0, 99, 0, 0),
    "pidfd_getfd": (438, -1, 0, 0),
    "memfd_secret": (447, CLOEXEC),
    "cachestat": (451, -1, 0, 0, 0),
    "move_pages": (279, 0, 0, 0, 0, 0, 0),
    "migrate_pages": (256, 0, 0, 0, 0),
    "mbind": (237, 0, 0, 0, 0, 0, 0),
    "set_mempolicy": (238, 99, 0, 0),
    "set_mempolicy_home_node": (450, 0, 0, 0, 0),
    # the machine
    "kexec_load": (246, 0, 0, 0, 0),
    "kexec_file_load": (320, -1, -1, 0, 0, 0),
    "init_module": (175, 0, 0, 0),
    "finit_module": (313, -1, 0, 0),
    "delete_module": (176, 0, 0),
    "reboot": (169, 0, 0, 0, 0),
    "swapon": (167, 0, 0),
    "swapoff": (168, 0),
    "acct": (163, b"/nonexistent"),
    "quotactl": (179, 0, 0, 0, 0),
    "quotactl_fd": (443, -1, 0, 0, 0),
    "iopl": (172, 0),
    "ioperm": (173, 0, 0, 0),
    "settimeofday": (164, 0, 0),
    "clock_settime": (227, 0, 0),
    "clock_adjtime": (305, 0, 0),
    "syslog": (103, 10, 0, 0),
    "vhangup": (153,),
    "sethostname": (170, 0, -1),
    "setdomainname": (171, 0, -1),
}
GIVES_FD = {"userfaultfd", "memfd_secret", "fsopen", "fspick", "open_tree", "fanotify_init"}

UNSHARE = {
    "user": 0x10000000,
    "mnt": 0x20000,
    "net": 0x40000000,
    "pid": 0x20000000,
    "ipc": 0x8000000,
    "uts": 0x4000000,
    "cgroup": 0x2000000,
    "time": 0x80,
}

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
SOCKETS = {
    (AF_UNIX, STREAM),
    (AF_UNIX, DGRAM),
    (AF_UNIX, SEQPACKET),
    (AF_INET, STREAM),
    (AF_INET, DGRAM),
    (AF_INET6, STREAM),
    (AF_INET6, DGRAM),
    (AF_NETLINK, DGRAM),
    (AF_NETLINK, RAW),
}

FILES = {
    os.O_RDONLY: [
        "/dev/mem",
        "/dev/kmem",
        "/dev/port",
        "/dev/kmsg",
        "/dev/vda",
        "/dev/sda",
        "/proc/kcore",
        "/proc/kmsg",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/interrupts",
        "/proc/config.gz",
        "/proc/scsi",
        "/proc/acpi",
        "/proc/kallsyms",
        "/proc/iomem",
        "/sys/firmware",
        "/sys/kernel",
        "/sys/kernel/debug",
    ],
    os.O_WRONLY: [
        "/dev/console",
        "/dev/ttyS0",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/memory/cgroup.procs",
    ],
    os.O_RDWR: [
        "/dev/kvm",
        "/dev/fuse",
        "/dev/loop-control",
        "/dev/net/tun",
        "/dev/vsock",
        "/dev/vhost-vsock",
        "/dev/vhost-net",
        "/dev/userfaultfd",
        "/dev/uinput",
    ],
}


def probe_calls():
    for name, (nr, *args) in FORBIDDEN.items():
        ret, why = call(nr, *args)
        if ret < 0 and why in ("EPERM", "ENOSYS"):
            print("denied", name, why)
            continue
        finding(f"{name} was reached: {ret} {why}")
        if ret > 2 and name in GIVES_FD:
            os.close(ret)


def probe_namespaces():
    for name, flag in UNSHARE.items():
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:  # one namespace could open the way to the next: each has its own process
            os._exit(0 if call(272, flag)[0] == 0 else 1)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
            finding(f"a new {name} namespace")
        else:
            print("denied unshare", name)


def probe_sockets():
    for family in range(48):
        for kind in (STREAM, DGRAM, RAW, 4, SEQPACKET, 10):
            ret, _ = call(41, family, kind | CLOEXEC, 0)
            if ret < 0:
                continue
            os.close(ret)
            if (family, kind) not in SOCKETS:
                finding(f"a socket of family {family}, type {kind}")
    for protocol in range(1, 32):
        ret, _ = call(41, AF_NETLINK, RAW | CLOEXEC, protocol)
        if ret >= 0:
            os.close(ret)
            finding(f"a netlink socket of protocol {protocol}")


def probe_files():
    for flags, paths in FILES.items():
        for path in paths:
            try:
                os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
            except OSError as e:
                print("denied", path, errno.errorcode[e.errno])
            else:
                finding(f"{path} could be opened")


def probe_status():
    lines = open("/proc/self/status").read().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    for key, want in (
        ("Seccomp", "2"),
        ("NoNewPrivs", "1"),
        ("CapInh", "0" * 16),
        ("CapAmb", "0" * 16),
    ):
        if status[key] != want:
            finding(f"{key} is {status[key]}, not {want}")
    # chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service, sys_chroot
    most = sum(1 << c for c in (0, 1, 3, 4, 5, 6, 7, 10, 18))
    for key in ("CapEff", "CapPrm", "CapBnd"):
        if int(status[key], 16) & ~most:
            finding(f"{key} is {status[key]}")
    if os.geteuid() != 0 and int(status["CapPrm"], 16):
        finding(f"an ordinary user has the capabilities {status['CapPrm']}")


for probe in (probe_calls, probe_namespaces, probe_sockets, probe_files, probe_status):
    probe()
print("DONE A01")
sys.exit(min(findings, 250))
