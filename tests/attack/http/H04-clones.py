"""H04: sandboxes that come from one thing, a warm kernel or a snapshot, share nothing that must be
their own: random numbers, ids, names, secrets, descriptors.

What they do share: where a kernel's memory lies and the seed of its hashes, which were decided before it
was copied; and the name of the host, which is `sandbox` everywhere."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import host  # noqa: E402
from cells import draw, everywhere, repeats  # noqa: E402
from host import finish, poll  # noqa: E402
from server import Site  # noqa: E402

KERNELS = 64
COPIES = 50
how = ""  # the server's kernels are made


def check(name, wrong, *notes):
    host.check(f"{name} ({how})", wrong, *notes)


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
    sandbox = site.create(envVars={"SECRET": first + second}, metadata={"note": first + second})
    cell = sandbox.cell(f"import os\nkept = [os.environ['SECRET'] * 3]\nname_{first}{second} = 1\nprint(kept)")
    if first + second not in cell.out:
        raise RuntimeError(f"the secret is not where it belongs: {cell}")
    sandbox.cell("os.environ['SECRET']", env_vars={"CALL": first + second})
    return sandbox


def about_kernels(site, marked):
    sandboxes = everywhere(range(KERNELS), lambda _: site.create(envVars={"MINE": os.urandom(8).hex()}))
    drawn = everywhere(sandboxes, draw)
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
    found = everywhere(sandboxes[::8], lambda sandbox: sandbox.cell(search))
    check("H04 no memory of an earlier sandbox", [str(c) for c in found if c.out.strip() != "[]"])
    for sandbox in sandboxes:
        sandbox.kill()


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
    sandboxes = everywhere(range(COPIES), lambda _: site.create(templateID=snapshot))
    check(f"H04 {COPIES} sandboxes of one snapshot: what is random is each one's own",
          repeats(everywhere(sandboxes, draw)))
    keys = everywhere(sandboxes[:8], lambda b: b.says("ls /etc/ssh/ssh_host_* 2>/dev/null | wc -l"))
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
