# case: A28
# title: stress-ng, whatever might work with privilege
# users: user root
# options: --timeout 90s --pids 256 --memory 512M --disk 64M
# options-long: --timeout 60m --pids 512 --memory 512M --disk 64M
# heavy: yes
# Left out by name: stressors whose aim is to take the machine down or its memory away. They show
# nothing that A14 does not, and a mistake would cost the host.
NEVER = "reboot,cpu-online,memhotplug,swap,watchdog,physpage,smi"
# With operations to their name these have done what a sandbox must not let them.
IMPOSSIBLE = {
    "bind-mount",
    "ramfs",
    "loop",
    "tun",
    "quota",
    "fanotify",
    "userfaultfd",
    "io-uring",
    "af-alg",
    "rawsock",
    "rawpkt",
    "rawudp",
    "netlink-proc",
    "netlink-task",
    "handle",
    "secretmem",
    "umount",
    "icmp-flood",
    "sctp",
    "dccp",
    "kvm",
    "uprobe",
}
# These count what they try as well as what they do: the other oracles judge them.
NOISY = {
    "key",
    "clone",
    "unshare",
    "mlockmany",
    "sysfs",
    "procfs",
    "chroot",
    "vm-splice",
    "personality",
    "mknod",
    "kcmp",
    "ptrace",
    "numa",
    "idle-page",
    "cap",
    "set",
    "klog",
    "x86syscall",
    "dev",
}


def run(*args, timeout):
    operations, said = stress(*args, timeout=timeout)
    for name, n in sorted(operations.items()):
        if n and name in IMPOSSIBLE:
            pwned(f"{name}: {n} operations")
    return operations, said


if LONG:
    for kind in ("os", "vm", "filesystem", "network", "pipe", "scheduler", "security"):
        run("--class", kind, "--seq", "1", "-t", "3", "-x", NEVER, timeout=3000)
else:
    args = [part for name in sorted(IMPOSSIBLE | NOISY) for part in (f"--{name}", "1")]
    operations, said = run(*args, "-t", "3", timeout=60)
    print({name: n for name, n in sorted(operations.items()) if n})
    if sum(map(bool, operations.values())) < 5:
        sys.exit(f"stress-ng did not run: {said[-800:]}")
done()
