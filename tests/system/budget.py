"""The machine's budget, on a real server that has little: the steps behind budget.sh."""
import glob
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time

from server_client import Client, Server, until

MIB = 1 << 20
BUDGET = 512 * MIB
PATIENCE_S = 60
TOKEN = "budget-test-token"
# Takes that much memory, says so and keeps it.
HOLD = "exec python3 -c 'import time; x = bytearray(b\"x\") * ({} << 20); open(\"/tmp/held\", \"w\"); time.sleep(600)'"
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print(f"# {str(detail)[:2000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


class Tenant:
    """Looks like a server to Client, with a key of its own."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        made = subprocess.run([server.program, "key", "create", "--tenant", name, "--state", server.state], text=True,
                              capture_output=True, check=True).stdout
        self.key = re.search(r"\be2b_\w+", made)[0]

    @property
    def port(self):
        return self.server.port


def metrics(server):
    status, text = Client(server).raw("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert status == 200, (status, text)
    found = {}
    for line in text.decode().splitlines():
        if line.startswith("sandglass_") and " " in line:
            name, value = line.rsplit(" ", 1)
            found[name[len("sandglass_"):]] = float(value)
    return found


def budget(server, what):
    return metrics(server)[f'memory_budget_bytes{{what="{what}"}}']


def settled(server):
    """What is used, when that has not changed for a while: it is looked at each second."""
    last = []

    def same():
        last.append(budget(server, "used"))
        return len(last) > 3 and max(last[-4:]) - min(last[-4:]) < MIB
    until(same, PATIENCE_S, 0.5)
    return last[-1]


def relief(server, what):
    return metrics(server).get(f'memory_relief_total{{what="{what}"}}', 0)


def create(tenant):
    """Status, the answer, its headers."""
    connection = http.client.HTTPConnection("127.0.0.1", tenant.port, timeout=PATIENCE_S)
    try:
        connection.request("POST", "/v2/sandboxes", json.dumps({"templateID": "base", "timeout": 300}),
                           {"X-API-Key": tenant.key, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), dict(answer.getheaders())
    finally:
        connection.close()


def kill(client, sandbox):
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")


def alive(client, sandbox):
    return client.run(sandbox, "echo here")[1] == "here\n"


def held(client, sandbox):
    return until(lambda: client.run(sandbox, "test -e /tmp/held && echo yes")[1] == "yes\n", PATIENCE_S, 0.1)


def log_of(client, sandbox):
    return client.api("GET", f"/v2/sandboxes/{sandbox['sandboxID']}/logs")[1]["logs"]


def told(client, sandbox, words):
    """The layer of the line in the sandbox's own log, when it is there; samples come each five seconds."""
    def found():
        return [line["fields"]["layer"] for line in log_of(client, sandbox) if words in line["message"]]
    return until(found, PATIENCE_S, 0.2)


def serve(program, state, *options):
    server = Server(program, state, "--metrics-token", TOKEN, "--sandbox-memory", "256M", "--sandbox-disk", "64M", "--worlds-disk", "0",
                    "--pool-max", "4", "--egress-e2b-default", "block", "--warm-kernels", "standard", *options)
    server.start()
    return server


def server_processes(server):
    """Pids of the server's own processes by name."""
    found = {"warden": server.process.pid}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            comm, fields = open(path, encoding="utf-8").read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if fields.split()[1] == str(server.process.pid) and comm in ("sandglass-front", "sg-guard", "sandglass-guard"):
            found[comm] = int(path.split("/")[2])
    return found


# ---- groups ----------------------------------------------------------------------------------------------


def host_pid(argument):
    def look():
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                if argument.encode() in open(path, "rb").read().split(b"\0")[1:]:
                    return int(path.split("/")[2])
            except OSError:
                pass
        return None
    return until(look, PATIENCE_S)


def group_of(pid, controller):
    for line in open(f"/proc/{pid}/cgroup", encoding="utf-8"):
        _, names, path = line.strip().split(":", 2)
        if controller in names.split(",") or (names == "" and not os.path.isdir(f"/sys/fs/cgroup/{controller}")):
            top = f"/sys/fs/cgroup/{controller}" if names else "/sys/fs/cgroup"
            return top, path
    raise AssertionError(f"no group of {controller} for {pid}")


def processor_time(group):
    for name, part in ("cpuacct.usage", 1e9), ("cpu.stat", 1e6):
        try:
            text = open(f"{group}/{name}", encoding="utf-8").read()
        except OSError:
            continue
        found = re.search(r"(?:usage_usec )?(\d+)", text)
        return int(found[1]) / part
    raise AssertionError(f"no processor time in {group}")


def groups(server, a, b):
    sandboxes = [(Client(a), Client(a).create()) for _ in range(4)] + [(Client(b), Client(b).create())]
    for i, (client, sandbox) in enumerate(sandboxes):
        client.spawn(sandbox, f"exec sleep 73310{i}")
    paths = [group_of(host_pid(f"73310{i}"), "memory")[1] for i in range(5)]
    check("groups are of a server, a tenant and a slot",
          all(re.fullmatch(r"/sandglass/s[0-9a-f]{16}/[a-z0-9]{20}/\d+", path) for path in paths), paths)
    places = [path.rsplit("/", 1)[0] for path in paths]
    check("the sandboxes of a tenant are in one place, those of another elsewhere, all of one server",
          len(set(places[:4])) == 1 and places[4] != places[0]
          and places[4].rsplit("/", 1)[0] == places[0].rsplit("/", 1)[0], places)
    top, _ = group_of(host_pid("733100"), "memory")
    limit = next(f for f in ("memory.limit_in_bytes", "memory.max") if os.path.exists(f"{top}{places[0]}/{f}"))
    check("the server's group has the budget as its limit",
          int(open(f"{top}{os.path.dirname(places[0])}/{limit}", encoding="utf-8").read()) == BUDGET)

    # Four busy ones against one: each tenant gets about the same.
    cpu, _ = group_of(host_pid("733100"), "cpuacct" if os.path.isdir("/sys/fs/cgroup/cpuacct") else "cpu")
    for client, sandbox in sandboxes:
        client.spawn(sandbox, "exec python3 -c 'while True: pass'")
        client.spawn(sandbox, "exec python3 -c 'while True: pass'")
    looks = []

    def shared():
        """By sandbox the one would get a quarter of what the four get. Others on this machine may disturb a look."""
        before = [processor_time(cpu + place) for place in (places[0], places[4])]
        time.sleep(2)
        looks.append([processor_time(cpu + place) - was for place, was in zip((places[0], places[4]), before)])
        return looks[-1][1] > 0.5 * looks[-1][0]
    check("processor time is shared by tenant, not by sandbox", until(shared, PATIENCE_S), looks)
    for client, sandbox in sandboxes:
        kill(client, sandbox)


# ---- shares ----------------------------------------------------------------------------------------------


def shares(server, a, b):
    check("the budget is as it was set", budget(server, "limit") == BUDGET)
    until(lambda: budget(server, "reserved") == 0, PATIENCE_S)
    client, sandbox = Client(a), Client(a).create()
    check("a new sandbox has 16 MiB reserved", budget(server, "reserved") == 16 * MIB, budget(server, "reserved"))
    before = settled(server)
    client.run(sandbox, "head -c 50M /dev/zero >/tmp/file")
    check("files in memory count", until(lambda: budget(server, "used") > before + 45 * MIB, PATIENCE_S),
          (before, budget(server, "used")))
    kill(client, sandbox)
    check("what was reserved is given back", until(lambda: budget(server, "reserved") == 0, PATIENCE_S))

    sandboxes = []
    for tenant in [a] * 60 + [b] * 60:
        status, answer, headers = create(tenant)
        if status == 201:
            sandboxes.append((tenant, answer))
        elif tenant == b:
            break
    check("a machine that is full lets no sandbox in: 503, and when to try again",
          status == 503 and headers.get("Retry-After") and "machine has no memory left" in answer["message"],
          (status, answer, headers))
    check("... and many fit before that", 5 <= len(sandboxes) <= BUDGET // (16 * MIB), len(sandboxes))
    check("creates that are refused are counted", relief(server, "create") >= 2)
    for tenant, sandbox in sandboxes:
        kill(Client(tenant), sandbox)
    status = until(lambda: create(b)[0] == 201, PATIENCE_S, 0.2)
    check("... and when they have ended there is room", status)
    for sandbox in Client(b).api("GET", "/v2/sandboxes")[1]:
        kill(Client(b), sandbox)


# ---- who is told what ------------------------------------------------------------------------------------


def eat(client, sandbox, mib):
    """In the background: it may be killed."""
    def run():
        try:
            client.run(sandbox, HOLD.format(mib))
        except (OSError, RuntimeError, ValueError, http.client.HTTPException):
            pass
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def killed(server, a, b):
    client, neighbour = Client(a), Client(b)
    bystander = neighbour.create()
    sandbox = client.create()
    eat(client, sandbox, 1000)
    check("a program that fills its own sandbox is told so",
          told(client, sandbox, "it ran out of memory") == ["sandbox"], log_of(client, sandbox)[-5:])
    kill(client, sandbox)

    # Together they want twice of what there is, none of them more than its own.
    before = server_processes(server)
    sandboxes = [client.create() for _ in range(5)]
    for sandbox in sandboxes:
        eat(client, sandbox, 200)
    full = "the machine ran out of memory, processes were killed"
    found = until(lambda: [one for one in (layers(client, sandbox, full) for sandbox in sandboxes) if one],
                  PATIENCE_S, 0.5)
    check("programs that die because the machine is full are told so, and it is the infrastructure's",
          found and found[0][0] == "infrastructure", [log_of(client, sandbox)[-3:] for sandbox in sandboxes])
    check("... and not that their own memory was full",
          not any(layers(client, sandbox, "it ran out of memory") for sandbox in sandboxes))
    check("front, guard and warden live on", server_processes(server) == before, (before, server_processes(server)))
    check("a neighbour's sandbox does too", alive(neighbour, bystander))
    check("it is counted as the infrastructure's",
          metrics(server).get('failures_total{layer="infrastructure",cause="machine_memory"}', 0) >= 1)
    for sandbox in sandboxes:
        kill(client, sandbox)
    kill(neighbour, bystander)


def layers(client, sandbox, words):
    return [line["fields"]["layer"] for line in log_of(client, sandbox) if words in line["message"]]


# ---- pressure --------------------------------------------------------------------------------------------


def with_kernel(client):
    """A sandbox with a checkpoint that has kernels; None while the tenant's zygote is loading. Before Linux 6.15 there
    are no checkpoints."""
    sandbox = client.create(templateID="code-interpreter-v1")
    headers = client.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"}
    client.raw("POST", "/execute", json.dumps({"code": "x = 41"}), headers)
    status, made = client.api("POST", f"/sandboxes/{sandbox['sandboxID']}/checkpoints", {})
    if status == 501 or made["checkpoint"]["kernels"]:
        return sandbox
    kill(client, sandbox)
    return None


def pressure(server, _, b):
    """With a tenant of whom nothing is known: of one that took much before, less would be let in."""
    a = Tenant(server, "c")
    Client(a).create()
    check("without pressure sandboxes wait ready",
          until(lambda: metrics(server)["memory_pressure"] == 0 and metrics(server)["pool_sandboxes"] > 0, PATIENCE_S, 0.2),
          metrics(server))
    client = Client(a)
    source = until(lambda: with_kernel(client), PATIENCE_S, 0.5)

    def list_of():
        return client.api("GET", f"/sandboxes/{source['sandboxID']}/checkpoints")[1]["checkpoints"]

    checkpoints = list_of()
    check("a checkpoint has kernels, where there are checkpoints", source and all(c["kernels"] for c in checkpoints), checkpoints)
    killed_before = metrics(server).get('failures_total{layer="infrastructure",cause="machine_memory"}', 0)
    sandboxes, status, seen = [], 0, set()
    for _ in range(30):  # each takes a slice of what is free, and keeps it
        free = BUDGET - budget(server, "used")
        status, answer, _ = create(a)
        if status != 201:
            break
        sandboxes.append(answer)
        client.spawn(answer, HOLD.format(max(1, min(180, int(free / MIB / 3)))))
        held(client, answer)
        time.sleep(0.6)  # it is looked at four times a second
        seen.add(metrics(server)["memory_pressure"])
    check("creates are refused in the end", status == 503, (status, len(sandboxes), seen))
    check("pools went first", until(lambda: metrics(server)["pool_sandboxes"] == 0 and relief(server, "pool") > 0, PATIENCE_S),
          metrics(server))
    check("then kernels of checkpoints", relief(server, "checkpoint") >= len(checkpoints)
          and until(lambda: not any(c["kernels"] for c in list_of()), PATIENCE_S), list_of())
    check("and nobody was killed for it",
          metrics(server).get('failures_total{layer="infrastructure",cause="machine_memory"}', 0) == killed_before)
    check("those that run still answer", alive(client, source))
    for sandbox in sandboxes:
        kill(client, sandbox)
    check("when memory is there again pressure ends, and sandboxes are made",
          until(lambda: metrics(server)["memory_pressure"] == 0 and create(b)[0] == 201, PATIENCE_S, 0.5), metrics(server))


# ---- a tenant's own limit --------------------------------------------------------------------------------


def of_a_tenant(program, state):
    server = serve(program, state, "--tenant-memory", "256M", "--warm-kernels", "none", "--pool-min", "0")
    try:
        a, b = Tenant(server, "a"), Tenant(server, "b")
        client = Client(a)
        sandboxes = [client.create(), client.create()]
        for sandbox in sandboxes:
            eat(client, sandbox, 180)
        words = "the sandboxes of its tenant ran out of memory"
        found = until(lambda: [one for one in (layers(client, sandbox, words) for sandbox in sandboxes) if one],
                      PATIENCE_S, 0.5)
        check("a tenant that fills what a tenant may have is told so", found and found[0][0] == "sandbox",
              [log_of(client, sandbox)[-3:] for sandbox in sandboxes])
        for _ in range(20):
            status, answer, _ = create(a)
            if status != 201:
                break
        check("no more sandboxes of it are let in: 429", status == 429 and "256 MiB" in answer["message"], (status, answer))
        check("... but those of others", create(b)[0] == 201)
    finally:
        server.stop()


# ---- the server in a group that is limited ------------------------------------------------------------------


def in_a_group(program, state):
    v1 = os.path.isdir("/sys/fs/cgroup/memory")
    group = f"/sys/fs/cgroup/{'memory/' if v1 else ''}budget-test-{os.getpid()}"
    os.mkdir(group)
    with open(f"{group}/{'memory.limit_in_bytes' if v1 else 'memory.max'}", "w", encoding="utf-8") as file:
        file.write(str(1536 * MIB))
    wrapper = f"{state}-program"
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho $$ >{group}/cgroup.procs\nexec {program} \"$@\"\n")
    os.chmod(wrapper, 0o755)
    server = serve(wrapper, state, "--warm-kernels", "none")
    try:
        check("what is there is what the server's own group has", budget(server, "limit") == 384 * MIB,
              budget(server, "limit"))
        client, sandboxes = Client(server), []
        for _ in range(8):
            status, sandbox, _ = create(server)
            if status == 201:
                sandboxes.append(sandbox)
                eat(client, sandbox, 200)
        pids = server_processes(server)
        check("sandboxes that fill it cost the server nothing",
              until(lambda: metrics(server).get('failures_total{layer="infrastructure",cause="machine_memory"}', 0) > 0,
                    PATIENCE_S, 0.5) and server_processes(server) == pids, (pids, server_processes(server)))
    finally:
        server.stop()
        until(lambda: not open(f"{group}/cgroup.procs", encoding="utf-8").read(), PATIENCE_S)
        os.rmdir(group)


def main():
    program, place = sys.argv[1], sys.argv[2]
    server = serve(program, f"{place}/state", "--machine-memory", str(BUDGET))
    try:
        a, b = Tenant(server, "a"), Tenant(server, "b")
        for step in groups, shares, killed, pressure:
            step(server, a, b)
    finally:
        server.stop()
    of_a_tenant(program, f"{place}/tenant")
    in_a_group(program, f"{place}/group")


main()
