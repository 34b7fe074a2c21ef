"""What sandboxes hold while they live, and leave when they have ended."""
import ctypes
import functools
import glob
import json
import os
import subprocess
import time

from . import programs

SANDBOXES = 1000
CYCLES = 2000
SLOTS = 16
SETTLE_S = 3
PATIENCE_S = 20
SLAB_PERCENT = 5

SYS_KCMP, KCMP_VM = 312, 1

SLOT_TABLE = "/run/sandglass/slots"


class Session:
    """A bench process that stops at checkpoints until it is told to go on."""

    def __init__(self, *arguments, program=programs.BENCH):
        self.process = subprocess.Popen([program, *map(str, arguments)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=programs.ENVIRONMENT)
        self.pid = self.process.pid

    def wait(self, name):
        line = self.process.stdout.readline()
        if not line or json.loads(line).get("checkpoint") != name:
            self.process.wait()
            raise RuntimeError(f"the bench process did not reach '{name}'")

    def resume(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self):
        """The figures it printed at last."""
        output, _ = self.process.communicate()
        if self.process.returncode != 0:
            raise RuntimeError(f"the bench process ended with {self.process.returncode}")
        return [json.loads(line) for line in output.splitlines()]


def meminfo():
    """/proc/meminfo in KiB."""
    with open("/proc/meminfo", encoding="ascii") as file:
        return {line.split(":")[0]: int(line.split()[1]) for line in file}


def family(pid):
    """A process and all that descend from it: agents, and the kernels of their sandboxes."""
    children = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has ended meanwhile
        children.setdefault(int(fields[1]), []).append(int(path.split("/")[2]))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def compare_memory(a, b):
    """Below, at or above 0: an order in which processes that share all memory are equal."""
    order = ctypes.CDLL(None, use_errno=True).syscall(SYS_KCMP, a, b, KCMP_VM, 0, 0)
    if order < 0:
        raise OSError(ctypes.get_errno(), f"compare the memory of {a} and {b}")
    return {0: 0, 1: -1}.get(order, 1)


def owners(pids):
    """One of those that share all memory, as the two processes of a kernel do."""
    found = []
    for pid in sorted(pids, key=functools.cmp_to_key(compare_memory)):
        if not found or compare_memory(found[-1], pid) != 0:
            found.append(pid)
    return found


def anonymous_kib(pid):
    """Memory of the family's own, a page that several share counted in shares."""
    total = 0
    for member in owners(family(pid)):
        with open(f"/proc/{member}/smaps_rollup", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss_Anon:"))
    return total


def memory(pid):
    time.sleep(SETTLE_S)
    return meminfo() | {"anon": anonymous_kib(pid)}


PARTS = {"anonymous": "anon", "slab": "Slab", "page tables": "PageTables",
         "kernel stacks": "KernelStack", "percpu": "Percpu", "files in memory": "Shmem"}
CROSS_CHECKS = {"MemAvailable": "MemAvailable", "MemFree": "MemFree"}


def idle(report):
    session = Session("hold", SANDBOXES)
    session.wait("empty")
    before = memory(session.pid)
    session.resume()
    session.wait("full")
    after = memory(session.pid)
    session.resume()
    samples = session.finish()
    report.save("idle", [{"before": before, "after": after}, *samples])

    each(report, f"{SANDBOXES} idle sandboxes", SANDBOXES, before, after, 1024)


def each(report, what, count, before, after, limit_kib):
    parts = {name: (after[key] - before[key]) / count for name, key in PARTS.items()}
    report.row(f"{what}, memory of each", sum(parts.values()), limit_kib, "KiB",
               ", ".join(f"{name} {value:.0f}" for name, value in parts.items()))
    for name, key in CROSS_CHECKS.items():
        report.row(f"{what}, {name} less by, each", (before[key] - after[key]) / count, unit="KiB")


def lines_of(command):
    return len(subprocess.run(command, capture_output=True, text=True,
                              check=True).stdout.splitlines())


def used_slots():
    try:
        with open(SLOT_TABLE, "rb") as file:
            return sum(1 for byte in file.read() if byte)
    except FileNotFoundError:
        return 0


def control_groups():
    return sum(len(dirs) for top in glob.glob("/sys/fs/cgroup/sandglass") +
               glob.glob("/sys/fs/cgroup/*/sandglass") for _, dirs, _ in os.walk(top))


def host_state(pid):
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as file:
        mounts = len(file.readlines())
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "mounts": mounts,
            "control groups": control_groups(),
            "network namespaces": lines_of(["lsns", "-n", "-t", "net"]),
            "id slots": used_slots(),
            "processes": len(family(pid)),
            "slab": meminfo()["Slab"]}


def growth(before, after):
    found = {key: after[key] - before[key] for key in before}
    found["slab"] = 100 * found["slab"] / before["slab"]
    return found


def settled_state(pid, before=None):
    """The kernel takes its time to give back what belonged to an ended sandbox."""
    time.sleep(SETTLE_S)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        state = host_state(pid)
        if before is None or time.monotonic() > deadline:
            return state
        grown = growth(before, state)
        slab = grown.pop("slab")
        if slab <= SLAB_PERCENT and all(value <= 0 for value in grown.values()):
            return state
        time.sleep(0.5)


def cycles(report):
    session = Session("cycles", CYCLES, SLOTS)
    states = {}
    for name, earlier in (("start", None), ("warm", None), ("cycled", "warm"),
                          ("closed", "start")):
        session.wait(name)
        states[name] = settled_state(session.pid, states.get(earlier))
        session.resume()
    session.finish()
    report.save("cycles", [{"checkpoint": name} | state for name, state in states.items()])

    opened = growth(states["warm"], states["cycled"])
    closed = growth(states["start"], states["closed"])
    for key in opened:
        report.row(f"{CYCLES} cycles: growth of {key}", max(opened[key], closed[key]),
                   SLAB_PERCENT if key == "slab" else 0, "%" if key == "slab" else "",
                   f"engine open {opened[key]:+.3g}, engine closed {closed[key]:+.3g}")
