"""A server's control groups of version 2, and whom the kernel kills first when there is no memory: the steps behind
groups.sh. Here root has CAP_SYS_RESOURCE, which many build machines take away."""
import glob
import json
import os
import pathlib
import re
import subprocess
import sys

from lib import PATIENCE_S, Client, Server, check, equal, group_of, host_pids, sleeper, until

MIB = 1 << 20
MACHINE, TENANT, SANDBOX, DISK = (n * MIB for n in (768, 384, 128, 64))
KERNELS = "code-interpreter-v1"


class Other:
    """A second tenant of a server: looks like one to Client."""

    def __init__(self, server):
        made = subprocess.run([server.program, "key", "create", "--tenant", "other", "--state", server.state],
                              text=True, capture_output=True, check=True).stdout
        self.key, self.port = re.search(r"\be2b_\w+", made)[0], server.port


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8").strip()


# ---- groups --------------------------------------------------------------------------------------------


def groups(server):
    clients = Client(server, PATIENCE_S), Client(Other(server), PATIENCE_S)
    sandboxes = [(client, client.create()) for client in (*clients, clients[0])]
    slots = [group_of(sleeper(client, sandbox, f"61610{i}")) for i, (client, sandbox) in enumerate(sandboxes)]
    check("groups are of a server, a tenant and a slot",
          all(re.fullmatch(r"/sys/fs/cgroup/sandglass/s[0-9a-f]{16}/[a-z0-9]{20}/\d+", str(s)) for s in slots), slots)
    one, other, same = (s.parent for s in slots)
    check("those of a tenant are together, those of another beside it", one == same != other
          and one.parent == other.parent, slots)
    equal("the machine's budget is the limit of the server's group", read(one.parent / "memory.max"), str(MACHINE))
    equal("each tenant has its own", [read(t / "memory.max") for t in (one, other)], [str(TENANT)] * 2)
    equal("... each sandbox its own, with its files", {read(s / "memory.max") for s in slots}, {str(SANDBOX + DISK)})
    equal("tenants have the same share of the processors", [read(t / "cpu.weight") for t in (one, other)],
          ["100", "100"])
    equal("... which are counted for each", [bool(re.search(r"usage_usec [1-9]", read(t / "cpu.stat")))
                                            for t in (one, other)], [True, True])
    for client, sandbox in sandboxes:
        client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    check("no group of a sandbox stays", until(lambda: not any(s.exists() for s in slots), PATIENCE_S), slots)


# ---- who is killed -------------------------------------------------------------------------------------


def cell(client, sandbox, code):
    """The value of a cell, as text."""
    headers = client.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"}
    status, data = client.raw("POST", "/execute", json.dumps({"code": code}), headers)
    results = [json.loads(line) for line in data.decode().splitlines() if status == 200]
    return next((r["text"] for r in results if r.get("type") == "result"), (status, data))


def below(server):
    """Pids of the server's own processes by name, and those of its domains."""
    found = {"warden": server.process.pid}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            name = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode().rsplit("/", 1)[-1]
            parent = int(re.search(r"PPid:\t(\d+)", read(f"/proc/{pid}/status"))[1])
        except (OSError, TypeError):
            continue
        if parent == server.process.pid and name.startswith("sandglass-"):
            found.setdefault(name, pid)
    return found


SCORE = "int(open('/proc/self/oom_score_adj').read())"


def with_copy(client):
    """A sandbox whose kernel is a copy of a warm one; None while that is loading."""
    sandbox = client.create(templateID=KERNELS)
    if cell(client, sandbox, SCORE) == "500":
        return sandbox
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    return None


def ranks(server):
    """Leaves a sandbox with a kernel that is a copy."""
    client = Client(server, PATIENCE_S)
    sandbox = until(lambda: with_copy(client), PATIENCE_S, 0.5)
    equal("a cell runs", cell(client, sandbox, "x = 41; x + 1"), "42")
    scores = {name: int(read(f"/proc/{pid}/oom_score_adj")) for name, pid in below(server).items()}
    last = ("warden", "sandglass-front", "sandglass-guard", "sandglass-holder")
    equal("the server and what all depends on go last", {name: scores.get(name) for name in last},
          dict.fromkeys(last, -900))
    equal("before them the broker, and agents",
          (scores.get("sandglass-broker"), client.run(sandbox, "cat /proc/1/oom_score_adj")[1]), (50, "100\n"))
    equal("before these kernels that are copies", cell(client, sandbox, SCORE), "500")
    equal("programs go first", client.run(sandbox, "cat /proc/self/oom_score_adj")[1], "1000\n")
    return sandbox


def kill_one():
    """As if there were no memory at all."""
    pathlib.Path("/proc/sysrq-trigger").write_text("f", encoding="utf-8")


def first_to_go(server, sandbox):
    client = Client(server, PATIENCE_S)
    sleeper(client, sandbox, "616200")
    before = below(server)
    kill_one()
    check("a machine without memory kills a program in a sandbox", until(lambda: not host_pids("616200"), PATIENCE_S))
    equal("... and no kernel", cell(client, sandbox, "x + 1"), "42")
    client.run(sandbox, "for i in 1 2 3; do sleep 616201 & done")
    for left in (2, 1, 0):
        kill_one()
        check("... and the next, and the next", until(lambda n=left: len(host_pids("616201")) == n, PATIENCE_S),
              host_pids("616201"))
    equal("... and nothing of the server", below(server), before)
    equal("kernel and sandbox go on", (cell(client, sandbox, "x + 1"), client.run(sandbox, "echo here")),
          ("42", (0, "here\n")))


# ---- what is left --------------------------------------------------------------------------------------


def swept(server):
    client = Client(server, PATIENCE_S)
    sandboxes = [client.create() for _ in range(3)]
    for sandbox in sandboxes:
        sleeper(client, sandbox, "616300")
    client.api("POST", f"/sandboxes/{sandboxes[0]['sandboxID']}/pause", {})
    front = server.front()
    server.kill()
    check("the front ends with the warden", until(lambda: not os.path.exists(f"/proc/{front}"), PATIENCE_S))
    check("groups of a server that was killed are left", glob.glob("/sys/fs/cgroup/sandglass/s*/*/*/"))
    done = subprocess.run([server.program, "doctor", "--sweep"], text=True, capture_output=True, check=False)
    equal("doctor --sweep", done.returncode, 0)
    equal("... leaves no group of it", glob.glob("/sys/fs/cgroup/sandglass/s*"), [])
    equal("... and no process, frozen or not", host_pids("616300"), [])


def main():
    program, state = sys.argv[1:]
    server = Server(program, state, "--machine-memory", str(MACHINE), "--tenant-memory", str(TENANT),
                    "--sandbox-memory", str(SANDBOX), "--sandbox-disk", str(DISK), "--warm-kernels", "standard")
    try:
        server.start(PATIENCE_S)
        groups(server)
        first_to_go(server, ranks(server))
        swept(server)
    except BaseException:
        server.process.kill()
        print(server.process.stderr.read(), file=sys.stderr)
        raise


main()
