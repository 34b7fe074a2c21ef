"""K02: a copied kernel is confined as a program that the agent starts, belongs to its sandbox, and reaches
neither what it was copied from nor the other copies."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
import host  # noqa: E402
from cells import ALIVE, SELF, warm_kernel  # noqa: E402
from host import children, finish, pids, poll, status  # noqa: E402
from server import Site  # noqa: E402

FIRST_SANDBOX_ID = 0x10000000
WAYS = ("auto", "plain")  # of copying
way = WAYS[0]


def check(name, wrong):
    host.check(f"{name} ({way})", wrong)


def about_rights(site):
    sandbox = warm_kernel(site)
    here = json.loads(sandbox.cell(SELF).out)
    sandbox.put("self.py", SELF.encode())
    there = json.loads(sandbox.says("python3 self.py"))
    # The agent's programs may ask for capabilities that a copy has not even in its bounding set.
    bounding = int(here.pop("bounding"), 16), int(there.pop("bounding"), 16)
    # When memory runs out, programs die before kernels, and those before the agent.
    victims = int(here.pop("oom_score_adj")), int(there.pop("oom_score_adj"))
    check("K02 it may what a program of the agent may",
          [f"{k}: {here[k]} is not {there[k]}" for k in there if here[k] != there[k]]
          + ([f"bounding sets {bounding}"] if bounding[0] & ~bounding[1] else [])
          + ([f"oom_score_adj {victims}"] if victims != (500, 1000) else []))
    zero = [k for k in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(here[k], 16)]
    check("K02 no capabilities, no new privileges, a filter",
          [f"{k} is {here[k]}" for k in zero]
          + [f"{k} is {here[k]}" for k, v in (("NoNewPrivs", "1"), ("Seccomp", "2")) if here[k] != v])


def about_descriptors(site):
    """0 to 3, and what the kernel keeps to put them back; programs have the first three alone."""
    sandbox = warm_kernel(site)
    code = ("import os\nfor fd in sorted(map(int, os.listdir('/proc/self/fd'))):\n"
            "    try: print(fd, os.readlink(f'/proc/self/fd/{fd}').split(':')[0])\n    except OSError: pass")
    opened = [line.split() for line in sandbox.cell(code).out.splitlines()]
    kinds = {"0": "/dev/null", "1": "pipe", "2": "pipe", "3": "socket"}
    wrong = [line for line in opened if line[1] != kinds.get(line[0], line[1])
             or line[1] not in kinds.values()]
    check("K02 nothing is open but what a kernel has", [f"{wrong} of {opened}"] if wrong or len(opened) > 8 else [])
    seen = sandbox.cell("import subprocess\nsubprocess.run(['ls', '/proc/self/fd'], close_fds=False)").out.split()
    check("K02 programs of a cell have standard streams alone",
          [] if seen[:3] == ["0", "1", "2"] and len(seen) == 4 else [str(seen)])


def about_processes(site):
    sandbox, twin = warm_kernel(site), warm_kernel(site)
    for name, one in (("one", sandbox), ("its twin", twin)):
        cell = one.cell(ALIVE)
        check(f"K02 no process but its own can be seen or signalled: {name}",
              [] if cell.out.startswith("[] [1] ") and cell.out.rstrip().endswith(" 0 True") else [str(cell)])
    twin.cell("x = 'untouched'")
    sandbox.cell("import os, signal\nfor pid in range(2, 33000):\n    if pid != os.getpid():\n"
                 "        try: os.kill(pid, 9)\n        except OSError: pass")
    sandbox.cell("os.kill(-1, 15)")
    cell = twin.cell("x")
    check("K02 a twin does not feel the signals of the other",
          [] if cell.text == "untouched" and not cell.err else [str(cell)])


def about_memory(site):
    sandbox, twin = warm_kernel(site), warm_kernel(site)
    twin.cell("x = 'untouched'")
    cell = sandbox.cell("y = []\nwhile True:\n    y.append(bytearray(b'x') * (8 << 20))")
    check("K02 memory beyond the sandbox's is refused, or the kernel ends, and that is said",
          [] if cell.error and cell.error.startswith(("MemoryError", "UnexpectedEndOfExecution")) else [str(cell)])
    check("K02 ... and it has another", [] if poll(lambda: sandbox.cell("y = 0\n1 + 1").text == "2") else ["no"])
    cell = twin.cell("x")
    check("K02 ... the twin's memory is not touched",
          [] if cell.text == "untouched" and not cell.err else [str(cell)])
    check("K02 ... and kernels are still copied", [] if warm_kernel(site) else ["no"])


def about_bombs(site):
    sandbox = warm_kernel(site)
    sandbox.cell("import os, time\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(600)\n"
                 "except OSError: pass")
    site.ask("POST", f"/contexts/{default_of(sandbox)}/restart", sandbox.headers(**{"E2b-Sandbox-Port": "49999"}))
    check("K02 a fork bomb of a cell stays in its sandbox, and goes with its kernel",
          [] if poll(lambda: sandbox.cell("1 + 1").text == "2") else ["the context does not recover"])
    check("K02 ... which can be used", sandbox.trouble())


def default_of(sandbox):
    listed = sandbox.site.ask("GET", "/contexts", sandbox.headers(**{"E2b-Sandbox-Port": "49999"})).json()
    return next(c["id"] for c in listed if c["language"] == "python")


def inside(pid):
    return int(status(pid).get("Uid", "0").split()[0]) >= FIRST_SANDBOX_ID


def read(path):
    with open(path) as f:
        return f.read()


def about_host(site):
    """As the host sees it: in the agent's group and namespaces, and buried when it ends."""
    sandbox = warm_kernel(site)
    mark = f"mark{os.urandom(6).hex()}"
    sandbox.cell(f"open('/proc/self/comm', 'w').write('{mark[:14]}');")
    found = [pid for pid in pids() if status(pid).get("Name") == mark[:14]]
    if len(found) != 1 or not inside(found[0]):
        check("K02 the host finds it among the sandboxes", [f"found {found}"])
        return
    pid = found[0]
    space = os.readlink(f"/proc/{pid}/ns/pid")
    agents = [p for p in pids() if status(p).get("Name") == "sg-agent" and same_space(p, space)]
    check("K02 it is charged to its own sandbox",
          [] if len(agents) == 1 and read(f"/proc/{pid}/cgroup") == read(f"/proc/{agents[0]}/cgroup")
          else [f"agents {agents}, {read(f'/proc/{pid}/cgroup')}"])
    sandbox.kill()
    gone = poll(lambda: not os.path.exists(f"/proc/{pid}"))
    check("K02 it ends with its sandbox, and is buried", [] if gone else [f"{pid} is still there"])


def same_space(pid, space):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == space
    except OSError:
        return False


def tree(pid):
    below = [p for child in children(pid) for p in tree(child)]
    return [pid, *below]


def about_dead_kernels(site):
    sandbox = warm_kernel(site)
    for _ in range(20):
        sandbox.cell("import os\nos._exit(0)")
    def dead():
        return [p for p in tree(site.process.pid) if status(p).get("State", "").startswith("Z")]
    check("K02 kernels that end leave no dead processes",
          [] if poll(lambda: not dead()) else [f"dead: {[status(p).get('Name') for p in dead()]}"])


def attack():
    with Site("--sandbox-memory", "256M", "--sandbox-pids", "64", "--kernel-fork", way) as site:
        about_rights(site)
        about_descriptors(site)
        about_processes(site)
        about_memory(site)
        about_bombs(site)
        about_host(site)
        about_dead_kernels(site)
        check("K02 the server goes on", site.trouble())


for way in WAYS:
    attack()
finish()
