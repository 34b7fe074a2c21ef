# case: B04
# title: files that tell about the kernel and the host
# users: user root
# control: proc-mask
NAMES = """kcore kmsg keys timer_list timer_stats sched_debug interrupts slabinfo iomem ioports
config.gz vmallocinfo kpagecount kpageflags kpagecgroup pagetypeinfo modules fb
latency_stats""".split()

for name in NAMES:
    try:
        with open(f"/proc/{name}", "rb") as f:
            if f.read(64):
                pwned(f"/proc/{name} can be read")
            else:
                denied(f"/proc/{name}", "empty")
    except OSError as e:
        denied(f"/proc/{name}", name_of(e))
try:
    if re.search(r"^0*[1-9a-f]", open("/proc/kallsyms").read(100000), re.M):
        pwned("/proc/kallsyms shows addresses")
except OSError as e:
    denied("/proc/kallsyms", name_of(e))
for path in (
    "/proc/scsi",
    "/proc/acpi",
    "/proc/asound",
    "/proc/driver",
    "/sys/kernel",
    "/sys/firmware",
    "/sys/class",
    "/sys/block",
    "/sys/bus",
    "/sys/module",
    "/boot",
    "/proc/dynamic_debug",
):
    try:
        if os.listdir(path):
            pwned(f"{path} can be listed")
    except OSError as e:
        denied(path, name_of(e))
done()
