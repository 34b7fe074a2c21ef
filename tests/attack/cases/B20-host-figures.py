# case: B20
# title: the host's memory, processors, load, groups and swap in /proc and /sys
# users: user root
# options: --timeout 20s --memory 300M --cpus 1
# control: proc-mask
def number(path, pattern):
    found = re.search(pattern, open(path).read(), re.M)
    return int(found[1]) if found else 0


total = number("/proc/meminfo", r"^MemTotal: +(\d+)")
if total != 300 * 1024:
    pwned(f"/proc/meminfo has another total: {total} kB")
cpus = {
    "/proc/stat": r"^cpu\d",
    "/proc/cpuinfo": r"^processor",
}
for path, line in cpus.items():
    if len(re.findall(line, open(path).read(), re.M)) != 1:
        pwned(f"{path} has other processors")
work = [int(n) for n in open("/proc/stat").readline().split()[1:]]
if work[0] + work[2] > 100 * 60:
    pwned(f"/proc/stat has the work of others: {work}")
for path in ("/proc/swaps", "/sys/fs/cgroup/memory.swap.max", "/sys/fs/cgroup/memory.swap.current"):
    if os.path.exists(path) and len(open(path).readlines()) > 1:
        pwned(f"{path} is the host's")
load = float(open("/proc/loadavg").read().split()[0])
if load > 1:
    pwned(f"/proc/loadavg is the host's: {load}")
if re.search(r"^\w+\t[^0]", open("/proc/cgroups").read(), re.M):
    pwned("/proc/cgroups is the host's")

# Nothing of other groups: no name, no directory, and no file that counts for more than the sandbox.
for path in ("/proc/self/mountinfo", "/proc/self/cgroup", "/proc/mounts"):
    if re.search(r"sandglass/|/s[0-9a-f]{16}|\.\./", open(path).read()):
        pwned(f"{path} names a group of the host")
for top, dirs, files in os.walk("/sys/fs/cgroup"):
    for name in dirs:
        if top != "/sys/fs/cgroup" or name not in ("memory", "cpu", "cpuacct", "pids"):
            pwned(f"another group shows: {top}/{name}")
    for name in files:
        if name in ("release_agent", "devices.list", "cpuset.cpus"):
            pwned(f"{top}/{name} is not the sandbox's")
    for name in set(files) & {"memory.max", "memory.limit_in_bytes"}:
        if int(open(f"{top}/{name}").read()) != 300 << 20:
            pwned(f"{top}/{name} is another limit")
    for name in set(files) & {"cgroup.procs", "tasks"}:
        if len(open(f"{top}/{name}").readlines()) > 20:
            pwned(f"{top}/{name} lists others")
done()
