"""K01: the light cases of cases/, from inside a kernel. It is a copy of a process that was started elsewhere, so
nothing that holds for programs of the agent holds for it by itself."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from case import all_cases  # noqa: E402
from host import check, finish, poll  # noqa: E402
from server import Site  # noqa: E402

# A case may replace or end what runs it, so this is said before.
WHERE = 'import os\nprint("KERNEL", "warm" if os.getppid() == 0 else "cold", flush=True)\n'


LONG = ("A27", "A28", "C05")
# Descriptors of a kernel are not those of a program: K02. The limits that B20 looks for are those of its options; in a
# server they are tested by tests/e2e/limits.test.mjs.
OTHERWISE = ("B14", "B20")


def suited(case):
    """As a user, without limits of its own, and not one that takes long."""
    return "user" in case.users and not (case.heavy or case.limits or case.may_die
                                         or case.id in LONG + OTHERWISE)


def judge(sandbox, case):
    made = sandbox.site.ask("POST", "/contexts", sandbox.headers(**{"E2b-Sandbox-Port": "49999"}), "{}")
    context = made.json()["id"]
    cell = sandbox.cell(WHERE + case.script(), context_id=context)
    sandbox.site.ask("DELETE", f"/contexts/{context}", sandbox.headers(**{"E2b-Sandbox-Port": "49999"}))
    lines = cell.out.splitlines()
    wrong = [line for line in lines if line.startswith("PWNED")]
    if lines[:1] != ["KERNEL warm"]:
        wrong.append(f"not in a copied kernel: {lines[:1]}")
    if f"DONE {case.id}" not in lines:
        wrong.append(f"the case did not come to its end: {cell}")
    return wrong


def attack(way):
    with Site("--kernel-fork", way) as site:
        sandbox = site.create()
        poll(lambda: site.create().cell("import os\nos.getppid()").text == "0")
        for case in filter(suited, all_cases()):
            check(f"K01 {case.id} {case.title}, from a kernel ({way})", judge(sandbox, case))
        check(f"K01 the sandbox goes on ({way})", sandbox.trouble())
        check(f"K01 the server goes on ({way})", site.trouble())


for way in ("auto", "plain"):
    attack(way)
finish()
