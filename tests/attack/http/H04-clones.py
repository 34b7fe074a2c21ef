"""H04: sandboxes that come from one thing, a warm kernel or a snapshot, share nothing that must be
their own: random numbers, ids, names, secrets, descriptors.

What they do share: where a kernel's memory lies and the seed of its hashes, which were decided before it
was copied; and the name of the host, which is `sandbox` everywhere."""
import concurrent.futures
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import host  # noqa: E402
from host import finish, poll  # noqa: E402
from server import Site  # noqa: E402

KERNELS = 64
COPIES = 50
how = ""  # the server's kernels are made


def check(name, wrong, *notes):
    host.check(f"{name} ({how})", wrong, *notes)


# The first cell of each kernel.
DRAW = r"""
import json, os, random, secrets, ssl, sys, tempfile, uuid
import multiprocessing.process

def hello():
    # A ClientHello is what a TLS client says first, with 32 random bytes in it.
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = ssl.create_default_context().wrap_bio(inward, outward, server_hostname="a.example")
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outward.read()[11:43].hex()

def read(path):
    # What is not there cannot be the same.
    if not os.path.exists(path):
        return os.urandom(16).hex()
    with open(path) as f:
        return f.read().strip()

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
    "a TLS hello": hello(),
    "the second": hello(),
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

# Looks for a word in all its memory. It is never put together: what searches would find itself.
SEARCH = r"""
import re
first, second = re.compile(b"{first}"), b"{second}"
found = []
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.read().splitlines():
        span, rights, rest = line.split(" ", 2)
        if rights[0] != "r" or rest.endswith(("[vvar]", "[vsyscall]")):
            continue
        start, end = (int(x, 16) for x in span.split("-"))
        memory.seek(start)
        try:
            data = memory.read(end - start)
        except OSError:
            continue
        found += [hex(start + hit.start()) for hit in first.finditer(data)
                  if data.startswith(second, hit.end())]
print(found)
"""


def everywhere(boxes, work):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, boxes))


def draw(box):
    cell = box.cell(DRAW)
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


def descriptors(drawn):
    """Nothing is open but 0 to 3 and what lists them; none is a file of somebody else."""
    wrong = []
    for d in drawn:
        extra = [fd for fd in d["fds"] if fd > 3]
        # One for the listing, and those by which the kernel puts 0 to 3 back.
        kinds = {link.split(":")[0] for link in d["links"]} - {"/dev/null", "pipe", "socket"}
        kinds = {k for k in kinds if not k.startswith("/proc/")}
        if kinds or d["fds"][:4] != [0, 1, 2, 3] or len(extra) > 6:
            wrong.append(f"open: {d['fds']} {d['links']}")
    return wrong[:3]


def secret_of(site, marked):
    """A life with a secret in it, before the others, in each way that it can have one."""
    first, second = marked
    box = site.create(envVars={"SECRET": first + second}, metadata={"note": first + second})
    cell = box.cell(f"import os\nkept = [os.environ['SECRET'] * 3]\nname_{first}{second} = 1\nprint(kept)")
    if first + second not in cell.out:
        raise RuntimeError(f"the secret is not where it belongs: {cell}")
    box.cell("os.environ['SECRET']", env_vars={"CALL": first + second})
    return box


def about_kernels(site, marked):
    boxes = everywhere(range(KERNELS), lambda _: site.create(envVars={"MINE": os.urandom(8).hex()}))
    drawn = everywhere(boxes, draw)
    check("H04 control: the kernels are copies of one",
          [] if sum(d["warm"] for d in drawn) > KERNELS * 3 // 4
          and len({d["hash"] for d in drawn if d["warm"]}) == 1
          else [f"{sum(d['warm'] for d in drawn)} of {KERNELS} are, "
                f"{len({d['hash'] for d in drawn})} seeds"],
          f"addresses repeat, as documented: {len({d['address'] for d in drawn})} of {KERNELS}")
    check(f"H04 {KERNELS} kernels of one zygote: what is random is each one's own", repeats(drawn))
    check("H04 no descriptor but its own", descriptors(drawn))
    check("H04 one thread, and no process but its own",
          [d for d in drawn if d["threads"] != 1 or len(d["processes"]) > 3 or d["processes"][0] != 1][:3])
    names = set(drawn[0]["environment"])
    check("H04 no variable of somebody else",
          [d["environment"] for d in drawn if set(d["environment"]) != names or "SECRET" in names][:3])
    search = SEARCH.format(first=marked[0], second=marked[1])
    found = everywhere(boxes[::8], lambda box: box.cell(search))
    check("H04 no memory of an earlier sandbox", [str(c) for c in found if c.out.strip() != "[]"])
    for box in boxes:
        box.kill()


def about_search(owner, marked):
    cell = owner.cell(SEARCH.format(first=marked[0], second=marked[1]))
    check("H04 control: the search finds the secret where it is",
          [] if cell.out.startswith("['0x") else [str(cell)])


def about_snapshots(site):
    origin = site.create()
    origin.cell("import random, uuid\nrandom.seed(5)\nx = uuid.uuid4()")
    made = site.api("POST", f"/sandboxes/{origin.id}/snapshots", {})
    snapshot = (made.json() or {}).get("snapshotID")
    if made.status not in (200, 201) or not snapshot:
        check("H04 a snapshot can be made", [str(made)])
        return
    boxes = everywhere(range(COPIES), lambda _: site.create(templateID=snapshot))
    check(f"H04 {COPIES} sandboxes of one snapshot: what is random is each one's own",
          repeats(everywhere(boxes, draw)))
    keys = everywhere(boxes[:8], lambda b: b.says("ls /etc/ssh/ssh_host_* 2>/dev/null | wc -l"))
    check("H04 no host keys come along", [k for k in keys if k.strip() != "0"])


OPTIONS = ("--tenant-sandboxes", "200", "--pool-min", "8", "--sandbox-memory", "256M")


def warm(site):
    return poll(lambda: site.create().cell("import os\nos.getppid()").text == "0", 30)


def about_copies():
    with Site(*OPTIONS, "--kernel-fork", how) as site:
        marked = ("CANARY" + os.urandom(6).hex(), os.urandom(6).hex())
        warm(site)
        owner = secret_of(site, marked)
        about_search(owner, marked)
        about_kernels(site, marked)
        owner.kill()
        if how == "auto":
            about_snapshots(site)
        check("H04 the server goes on", site.trouble())


def about_science():
    with Site(*OPTIONS, "--warm-kernels", "science") as site:
        warm(site)
        drawn = everywhere(everywhere(range(16), lambda _: site.create()), draw)
        loaded = [d for d in drawn if d["warm"] and "numpy.random" in d["own"]]
        check("H04 numpy too: what is random is each one's own",
              repeats(loaded) if len(loaded) > 8 else [f"{len(loaded)} of {len(drawn)} have it"])


for how in ("auto", "plain"):
    about_copies()
how = "science"
about_science()
finish()
