"""H05: branches of one kernel that ran share nothing that must be their own, though all of its memory came
along: random numbers, ids, names, keys, TLS, tokens.

What goes on in each as it would have gone on in the source: a generator that a cell has made itself."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from cells import draw, everywhere, fork, repeats, warm_kernel  # noqa: E402
from host import check, finish  # noqa: E402
from server import Sandbox, Site  # noqa: E402

BRANCHES = 64

# Everything has been used, so that what it keeps for the next time is in memory.
USE = r"""
import multiprocessing.synchronize, random, secrets, ssl, tempfile, uuid
import numpy
early_tls = ssl.create_default_context()
for _ in range(3):
    random.random(), uuid.uuid1(), uuid.uuid4(), secrets.token_hex(), ssl.RAND_bytes(8), tempfile.mktemp()
    numpy.random.random(), numpy.random.default_rng().random()
random.seed(1)
numpy.random.seed(1)
mine, theirs = random.Random(7), numpy.random.default_rng(7)
mine.random(), theirs.random();
"""
OWN = "import json\njson.dumps([mine.random(), float(theirs.random())])"


def about_branches(site, name, sandboxes, source):
    drawn = everywhere(sandboxes, draw)
    check(f"H05 {name}: what is random is each one's own", repeats(drawn))
    check(f"H05 {name}: ids and tokens too",
          [f"{len(set(values))} of {len(values)} {what}" for what, values in (
              ("ids", [b.id for b in sandboxes + [source]]), ("tokens", [b.token for b in sandboxes + [source]]))
           if len(set(values)) != len(values)])
    seen = {cell.text for cell in everywhere(sandboxes[:8], lambda b: b.cell(OWN))}
    check(f"H05 {name}: a generator of the cell's own goes on as it was", [] if len(seen) == 1 else [str(seen)])
    usual = draw(source)["fds"]
    check(f"H05 {name}: one thread, and no descriptor more than the source",
          [f"{d['threads']} threads, {d['fds']}" for d in drawn if d["threads"] != 1 or d["fds"] != usual][:3])


def attack():
    with Site("--tenant-sandboxes", "200", "--sandbox-memory", "256M", "--pool-min", "8") as site:
        sandbox = warm_kernel(site)
        cell = sandbox.cell(USE)
        if cell.error:
            raise RuntimeError(f"the cell failed: {cell}")
        a, sandboxes = fork(site, sandbox, count=BRANCHES)
        if len(sandboxes) != BRANCHES:
            check(f"H05 {BRANCHES} branches of one kernel", [str(a)])
            return
        about_branches(site, f"{BRANCHES} branches of one kernel", sandboxes, sandbox)
        for one in sandboxes:
            one.kill()
        made = site.api("POST", f"/sandboxes/{sandbox.id}/snapshots", {}).json()
        sandboxes = everywhere(range(16), lambda _: site.create(templateID=made["snapshotID"]))
        check("H05 control: they are warm",
              [] if made["state"] == "warm" and sandboxes[0].cell("mine").text else [str(made)])
        about_branches(site, "16 sandboxes of a warm snapshot", sandboxes, sandbox)
        site.api("POST", f"/sandboxes/{sandbox.id}/checkpoints", {"label": "a"})
        drawn = []
        for _ in range(4):
            back = site.api("POST", f"/sandboxes/{sandbox.id}/rewind", {"label": "a"})
            if back.status != 200:
                check("H05 a rewind", [str(back)])
            drawn.append(draw(Sandbox(site, sandbox.made)))
        # It is the same sandbox: what is the sandbox's stays.
        check("H05 who goes back does not draw the same again",
              [w for w in repeats(drawn) if not w.startswith(("boot_id", "machine-id"))])
        check("H05 the server goes on", site.trouble())


attack()
finish()
