"""What sandboxes could leave on the host: `save` notes it before a test, `check` compares afterwards.

Other sandboxes may live on the machine meanwhile. What belongs to a living owner is theirs: the
owner of a sandbox holds the table of id ranges open and has its slots locked there. A leftover is
what has no such owner, or one that the test itself started and forgot. Ending takes a moment, so
`check` waits a while before it complains; `check-now` does not."""
import fcntl
import glob
import json
import os
import struct
import sys
import time

TABLE = "/run/sandglass/slots"
GROUPS = "/sys/fs/cgroup/"  # a server that has no sandboxes has no slots, but its groups
TEMPLATES = "/var/lib/sandglass"
FIRST_ID, LAST_ID = 0x10000000, 0xEFFFFFFF
PATIENCE_S = 15
FLOCK = "hhqqi"


def slots():
    """(locked, stale): numbers of slots with an owner, and of those left by one."""
    locked, stale = set(), set()
    try:
        fd = os.open(TABLE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return locked, stale
    for slot, byte in enumerate(os.pread(fd, 65536, 0)):
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, slot, 1, 0)
        held = struct.unpack(FLOCK, fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))[0]
        if held != fcntl.F_UNLCK:
            locked.add(slot)
        elif byte:
            stale.add(slot)
    os.close(fd)
    return locked, stale


class Process:
    def __init__(self, pid):
        base = f"/proc/{pid}"
        status = dict(line.split(":\t", 1) for line in open(f"{base}/status") if ":\t" in line)
        stat = open(f"{base}/stat").read().rsplit(")", 1)[1].split()
        self.pid, self.parent = pid, int(status["PPid"])
        self.name, self.uid = status["Name"].strip(), int(status["Uid"].split()[0])
        self.dead = stat[0] in "ZX"
        self.key = f"{pid}:{stat[19]}"
        self.fds = []
        try:
            for fd in os.listdir(f"{base}/fd"):
                self.fds.append(os.readlink(f"{base}/fd/{fd}"))
            self.net = os.readlink(f"{base}/ns/net")
        except OSError:
            self.net = None


def processes():
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found[int(name)] = Process(int(name))
            except (OSError, KeyError, IndexError):
                pass  # it has ended meanwhile
    return found


def chain(all_, pid):
    while pid in all_:
        yield all_[pid]
        pid = all_[pid].parent


def owned_elsewhere(all_, p, script):
    """Whether an owner that this test did not start is responsible for p."""
    up = list(chain(all_, p.pid))
    owns = any(TABLE in q.fds or any("/sandglass/s" in fd and fd.startswith(GROUPS) for fd in q.fds) for q in up)
    return owns and all(q.pid != script for q in up)


def in_use(place):
    """Whoever uses a place of groups has a lock on it, in the hierarchy of memory."""
    for top in "/sys/fs/cgroup/memory/sandglass", "/sys/fs/cgroup/sandglass":
        try:
            fd = os.open(f"{top}/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
    return False


def left_groups(locked):
    """Groups are sandglass/SERVER/TENANT/SLOT; those of `local` stay for the next run."""
    for top in glob.glob("/sys/fs/cgroup/*/sandglass/") + glob.glob("/sys/fs/cgroup/sandglass/"):
        for path, _, _ in os.walk(top):
            place = os.path.relpath(path, top)
            name, depth = os.path.basename(path), place.count("/")
            if name.isdigit() and depth in (0, 2):
                if int(name) not in locked:
                    yield path
            elif place != "." and place not in ("local", "local/runs") and not in_use(place):
                if not (depth == 0 and any(in_use(f"{place}/{t}") for t in os.listdir(path))):
                    yield path


def leftovers(script):
    all_ = processes()
    locked, stale = slots()
    left = set()
    for p in all_.values():
        inside = p.name.startswith("sg-") or FIRST_ID <= p.uid <= LAST_ID
        if inside and not owned_elsewhere(all_, p, script):
            left.add(f"process {p.key} {p.name}{' (zombie)' if p.dead else ''} of uid {p.uid}")
        spaces = {n for n in p.fds + [p.net] if n and n.startswith("net:[")}
        if not owned_elsewhere(all_, p, script):
            left.update(f"network namespace {n}" for n in spaces)
    left.update(f"stale slot {n}" for n in stale)
    left.update(f"control group {path}" for path in left_groups(locked))
    for line in open("/proc/self/mountinfo"):
        if line.split()[4] != "/run/netns":  # the first `ip netns add` on a machine leaves it
            left.add("mount " + " ".join(line.split()[2:]))
    for path in glob.glob("/run/sandglass/*") + glob.glob(TEMPLATES + "/template-new-*"):
        left.add(f"file {path}")
    left -= {f"file {TABLE}", "file /run/sandglass/mounts"}  # the latter is empty
    return left


def main():
    verb, path, script = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if verb == "save":
        json.dump(sorted(leftovers(script)), open(path, "w"))
        return 0
    before = set(json.load(open(path)))
    deadline = time.monotonic() + (PATIENCE_S if verb == "check" else 0)
    found = leftovers(script) - before
    while found and time.monotonic() < deadline:
        time.sleep(0.1)
        # Only what stays counts: others come and go.
        found &= leftovers(script) - before
    for item in sorted(found):
        print(item)
    return bool(found)


sys.exit(main())
