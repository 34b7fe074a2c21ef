# case: B05
# title: sysrq and sysfs cannot be written
# users: user root
# Opening for writing is the whole attempt: nothing is ever written.
for path in (
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/sys/power/state",
    "/sys/power/disk",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/cpu/cpu1/online",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/proc/irq/default_smp_affinity",
    "/proc/bus/pci/00/00.0",
    "/proc/fs/ext4",
    "/proc/mtrr",
    "/proc/self/oom_adj_x",
):
    attempt(f"open {path} for writing", opens, path, os.O_WRONLY)
for line in open("/proc/self/mountinfo"):
    kind = line.split(" - ")[1].split()[0]
    if kind in (
        "sysfs",
        "debugfs",
        "tracefs",
        "securityfs",
        "efivarfs",
        "bpf",
        "configfs",
        "pstore",
    ):
        pwned(f"a {kind} is mounted: {line.strip()}")
done()
