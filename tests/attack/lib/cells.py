"""Cells that several cases run, and copies of sandboxes to run them in."""
import concurrent.futures
import json

from server import Sandbox

# What a process may, and where it is.
SELF = r"""
import ctypes, json, os
same = "Uid Gid Groups CapInh CapPrm CapEff CapAmb NoNewPrivs Seccomp Umask SigBlk Speculation_Store_Bypass".split()
status = dict(l.split(":\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\t" in l)
prctl = ctypes.CDLL(None).prctl
print(json.dumps({
    **{name: status.get(name, "").strip() for name in same},
    "limits": open("/proc/self/limits").read().splitlines(),
    "namespaces": {n: os.readlink(f"/proc/self/ns/{n}") for n in sorted(os.listdir("/proc/self/ns"))},
    "mounts": open("/proc/self/mountinfo").read(),
    "cgroup": open("/proc/self/cgroup").read(),
    "oom_score_adj": open("/proc/self/oom_score_adj").read().strip(),
    "personality": open("/proc/self/personality").read().strip() if os.access("/proc/self/personality", os.R_OK) else "",
    "keepcaps": prctl(7), "bounding": status["CapBnd"].strip(),
    "root": os.readlink("/proc/self/root"), "scheduler": os.sched_getscheduler(0), "nice": os.nice(0),
    "affinity": sorted(os.sched_getaffinity(0)),
}))
"""

ALIVE = r"""
import os
alive = []
for pid in range(1, 33000):
    try:
        os.kill(pid, 0)
        alive.append(pid)
    except ProcessLookupError:
        pass
    except PermissionError:
        alive.append(pid)
seen = sorted(int(p) for p in os.listdir("/proc") if p.isdigit())
threads = {int(t) for p in seen for t in os.listdir(f"/proc/{p}/task")}
print(sorted(set(alive) - threads), seen[:1], len(seen), os.getppid(), os.getsid(0) == os.getpid())
"""

# What is random, drawn in a cell. A context of TLS that is there already is used.
DRAW = r"""
import json, os, random, secrets, ssl, sys, tempfile, uuid
import multiprocessing.process

def hello():
    # A ClientHello is what a TLS client says first, with 32 random bytes in it, and a random session id.
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = globals().get("early_tls") or ssl.create_default_context()
    o = tls.wrap_bio(inward, outward, server_hostname="a.example")
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    said = outward.read()
    return said[11:43].hex(), said[44:76].hex()

def read(path):
    # What is not there cannot be the same.
    if not os.path.exists(path):
        return os.urandom(16).hex()
    with open(path) as f:
        return f.read().strip()

first, session = hello()
own = {
    "random.random": random.random(),
    "random.getrandbits": random.getrandbits(64),
    "a new random.Random": random.Random().random(),
    "uuid4": str(uuid.uuid4()),
    "uuid1": str(uuid.uuid1()),
    "its node": uuid.getnode(),
    "a temporary name": tempfile.mktemp(),
    "another": os.path.basename(tempfile.mkdtemp()),
    "os.urandom": os.urandom(16).hex(),
    "/dev/urandom": open("/dev/urandom", "rb").read(32).hex(),
    "secrets": secrets.token_hex(16),
    "OpenSSL": ssl.RAND_bytes(16).hex(),
    "a TLS hello": first,
    "its session": session,
    "the second": hello()[0],
    "multiprocessing's key": bytes(multiprocessing.process.current_process().authkey).hex(),
    "machine-id": read("/etc/machine-id"),
    "boot_id": read("/proc/sys/kernel/random/boot_id"),
}
if "numpy" in sys.modules:
    import numpy
    own["numpy.random"] = numpy.random.random()
    own["numpy's generator"] = numpy.random.default_rng().random()
fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))
print(json.dumps({
    "own": own,
    "fds": fds,
    "links": [os.readlink(f"/proc/self/fd/{fd}") for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")],
    "warm": os.getppid() == 0,
    "hash": hash("seed"),
    "address": id(None),
    "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
    "environment": sorted(os.environ),
    "threads": len(os.listdir("/proc/self/task")),
}))
"""


def warm_kernel(site, **fields):
    """A sandbox whose default kernel is a copy."""
    for _ in range(100):
        sandbox = site.create(**fields)
        if sandbox.cell("import os\nos.getppid()").text == "0":
            return sandbox
        sandbox.kill()
    raise RuntimeError("no kernel is a copy")


def fork(site, sandbox, **body):
    """The answer, and the copies if there are any."""
    a = site.api("POST", f"/sandboxes/{sandbox.id}/fork", {"timeout": 300, **body})
    return a, [Sandbox(site, one["sandbox"]) for one in a.json()] if a.status == 201 else []


def everywhere(sandboxes, work):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, sandboxes))


def draw(sandbox):
    cell = sandbox.cell(DRAW)
    if cell.error or cell.err:
        raise RuntimeError(f"the cell failed: {cell}")
    return json.loads(cell.out)


def repeats(drawn):
    """Complaints about values that two have."""
    wrong = []
    for name in drawn[0]["own"]:
        seen = {}
        for number, d in enumerate(drawn):
            seen.setdefault(d["own"][name], []).append(number)
        wrong += [f"{name}: {value!r} is that of {numbers}" for value, numbers in seen.items()
                  if len(numbers) > 1][:3]
    for name in ("a TLS hello",):
        wrong += [f"both TLS hellos of {n} are the same" for n, d in enumerate(drawn)
                  if d["own"][name] == d["own"]["the second"]]
    return wrong
