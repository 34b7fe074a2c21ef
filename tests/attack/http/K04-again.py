"""K04: the attacks of groups A and C once more, from a branch and from its source, while forks are made.

Each runs in a cell, so in a kernel that is a copy of one that ran, or that copies are made of."""
import contextlib
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import case  # noqa: E402
from cells import everywhere, fork, warm_kernel  # noqa: E402
from host import check, finish  # noqa: E402
from server import Site  # noqa: E402

# C02 stops all that it can, its own cell among it. C05 expects that there is no network.
LEFT_OUT = {"C02", "C05"}


def chosen():
    return [c for c in case.all_cases() if c.id[0] in "AC" and not c.heavy and not c.standalone
            and "user" in c.users and not c.limits and c.id not in LEFT_OUT]


def judge(sandbox, one):
    cell = sandbox.cell(one.script())
    wrong = [line for line in cell.out.splitlines() if line.startswith("PWNED")]
    if f"DONE {one.id}" not in cell.out.splitlines():
        wrong.append(f"the case did not come to its end: {cell}")
    return [f"{one.id}: {w}" for w in wrong]


@contextlib.contextmanager
def forking(site, source):
    """Forks all the time. Yields how many came to something, and how many were refused."""
    over, made = threading.Event(), [0, 0]

    def loop():
        while not over.is_set():
            a, copies = fork(site, source, waitMs=100)
            made[a.status != 201] += 1
            for copy in copies:
                copy.kill()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield made
    finally:
        over.set()
        thread.join()


def attack():
    cases = chosen()
    with Site("--sandbox-memory", "512M", "--sandbox-pids", "256", "--tenant-sandboxes", "200") as site:
        source = warm_kernel(site)
        source.cell("x = 'of the source'")
        a, sandboxes = fork(site, source, count=len(cases) + 1)
        if not sandboxes:
            check("K04 branches can be made", [str(a)])
            return
        with forking(site, source) as made:
            wrong = everywhere(zip(sandboxes, cases), lambda both: judge(*both))
            check(f"K04 {len(cases)} attacks of groups A and C, each from a branch", sum(wrong, []),
                  " ".join(c.id for c in cases))
            check("K04 neither its source nor another branch notices",
                  [str(c) for c in (b.cell("x") for b in (source, sandboxes[-1])) if c.text != "of the source"])
            check("K04 the same from the source, one after the other", [w for c in cases for w in judge(source, c)])
        check("K04 forks were made all the time", [] if made[0] > 3 else [str(made)],
              f"{made[0]} made, {made[1]} refused")
        check("K04 the server goes on", site.trouble())


attack()
finish()
