"""Kernels of templates that are whole root file systems, on a real server: the steps behind template_kernels.sh.

A kernel that was copied has its parent outside of its sandbox, where it sees none: 0. The agent starts the others."""
import json
import os
import re
import subprocess
import sys

import world_root
from server_client import Client, Server, until

TOKEN = "metrics"
ZYGOTES_MAX = 4
number = 0
COPIED, COLD = "0\n", "1\n"
PARENT = "import os; print(os.getppid())"
# What the interpreter sees that a template's file loads, before anybody asked for a kernel.
WITNESS = """import builtins, os
builtins.seen = open('/proc/self/status').read()
builtins.processes = sorted(p for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid())
builtins.descriptors = sorted(os.listdir('/proc/self/fd'))
builtins.pid = os.getpid()
try:
    os.kill(1, 0); builtins.kills = 'may'
except OSError as error:
    builtins.kills = error.strerror
"""


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print(f"# {str(detail)[:2000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


class As(Client):
    def __init__(self, server, key=None):
        super().__init__(server, 60)
        self.key = key

    def api(self, method, path, body=None):
        if not self.key:
            return super().api(method, path, body)
        status, data = self.raw(method, path, json.dumps(body) if body is not None else None,
                                {"X-API-Key": self.key, "Content-Type": "application/json"})
        return status, json.loads(data) if data else None

    def post(self, sandbox, path, body):
        headers = self.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"}
        return self.raw("POST", path, json.dumps(body), headers)

    def cell(self, sandbox, code, **fields):
        """What the cell prints, or its error."""
        status, data = self.post(sandbox, "/execute", {"code": code} | fields)
        if status != 200:
            return data.decode()
        lines = [json.loads(line) for line in data.decode().splitlines() if line]
        return "".join(line.get("text") or line.get("name") or line.get("message") or "" for line in lines
                       if line.get("type", "error") in ("stdout", "error"))

    def why_cold(self, sandbox):
        """Of the contexts whose kernel is no copy."""
        status, data = self.raw("GET", "/contexts", None, self.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"})
        return [one.get("coldReason") for one in json.loads(data)] if status == 200 else status

    def context(self, sandbox):
        return json.loads(self.post(sandbox, "/contexts", {})[1])["id"]


def sandglass(server, *arguments):
    ran = subprocess.run([server.program, *arguments, "--state", server.state], text=True, capture_output=True, check=True, timeout=120)
    return ran.stdout


def log(server):
    return [json.loads(line) for line in sandglass(server, "logs", "--server", "--json").splitlines()]


def said(server, sandbox, text):
    """Whether the log has it about this sandbox."""
    def look():
        return [line for line in log(server) if text in line.get("message", "") and line.get("sandbox") == sandbox["sandboxID"]]
    return until(look, 5)


def figure(server, name):
    _, text = Client(server).raw("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    return int(re.search(rf"^sandglass_{name} (\d+)$", text.decode(), re.M)[1])


def zygotes(server):
    return figure(server, "template_zygotes")


def pooled(server):
    """How many sandboxes waited ready when they were asked for."""
    return figure(server, 'warden_sandboxes_total{what="pooled"}')


def build(client, name, *steps, start="small:one"):
    _, made = client.api("POST", "/v3/templates", {"name": name})
    ids = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    steps = [{"type": kind, "args": [text], "force": False} for kind, text in (("USER", "root"), *(("RUN", s) for s in steps), ("USER", "user"))]
    client.api("POST", f"/v2{ids}", {"fromTemplate": start, "steps": steps})
    status = until(lambda: (s := client.api("GET", f"{ids}/status?logsOffset=0")[1])["status"] in ("ready", "error") and s, 60)
    check(f"the template {name} is built", status["status"] == "ready", status)
    return {level: [entry["message"] for entry in status["logEntries"] if entry["level"] == level] for level in ("info", "warn")}


def copies(server, client):
    s = client.create(templateID="small:one")
    parent = client.cell(s, PARENT)
    check("a kernel in a template's own world is copied", parent == COPIED, parent != COPIED and log(server))
    check("of the world's own Python", client.cell(s, "print(open('/marker').read(), end='')") == "a file of the world\n")
    check("with one zygote", until(lambda: zygotes(server) == 1), zygotes(server))
    other = client.create(templateID="small:one")
    check("and so is one of the next sandbox, from the same", (client.cell(other, PARENT), zygotes(server)) == (COPIED, 1))
    check("two kernels draw different numbers", client.cell(s, "import random; print(random.random())") !=
          client.cell(other, "import random; print(random.random())"))
    check("threads work in it", client.cell(other, "import threading\nt = threading.Thread(target=print, args=('here',))\nt.start(); t.join()") == "here\n")
    return s


def forks(client, s):
    client.cell(s, "x = [7]; f = open('/home/user/f', 'w'); f.write('mine'); f.flush()")
    status, forked = client.api("POST", f"/sandboxes/{s['sandboxID']}/fork", {"count": 2})
    check("a sandbox there can be forked", status == 201 and all("sandbox" in one for one in forked), forked)
    for one in forked:
        check("and the variables are in the fork", client.cell(one["sandbox"], "x.append(8); print(x, open('/home/user/f').read())") == "[7, 8] mine\n")
    check("and its own are its own", client.cell(s, "print(x)") == "[7]\n")
    second = client.api("POST", f"/sandboxes/{forked[0]['sandbox']['sandboxID']}/fork", {"count": 1})[1]
    check("a fork can be forked", client.cell(second[0]["sandbox"], "print(x)") == "[7, 8]\n", second)


def rewinds(client, s):
    client.cell(s, "y = 1")
    status, made = client.api("POST", f"/sandboxes/{s['sandboxID']}/checkpoints", {"label": "one"})
    check("a checkpoint can be taken", status == 201, made)
    client.cell(s, "y = 2")
    status, told = client.api("POST", f"/sandboxes/{s['sandboxID']}/rewind", {"label": "one"})
    check("and a rewind brings the variables back", status == 200 and client.cell(s, "print(x, y)") == "[7] 1\n", told)


def has_no_rights(client):
    """A template's files decide what its interpreter runs, long before a kernel is copied from it."""
    build(client, "witness", "d=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))'); cat > $d/sitecustomize.py <<'END'\n" +
          WITNESS + "END")
    s = client.create(templateID="witness")
    check("a kernel is copied from an interpreter that ran the template's own code", client.cell(s, PARENT) == COPIED)
    status = dict(re.findall(r"^(\w+):\s*(.*)$", client.cell(s, "print(seen)"), re.M))
    none = "0" * 16
    check("which had no capability, and could not get any", [status.get(k) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] ==
          [none] * 5 and status.get("NoNewPrivs") == "1", status)
    check("under the filter of programs, on top of its twin's", status.get("Seccomp") == "2" and int(status.get("Seccomp_filters", 0)) >= 2, status)
    check("as the user, in a process namespace of a sandbox", status.get("Uid", "").split() == ["1000"] * 4 and
          client.cell(s, "print(pid, kills)") == "2 Operation not permitted\n", client.cell(s, "print(pid, kills)"))
    check("where nothing else ran but the agent", client.cell(s, "print(processes)") == "['1']\n", client.cell(s, "print(processes)"))
    check("with no descriptor that other programs do not have", client.cell(s, "print(descriptors)") == "['0', '1', '2', '3', '4']\n",
          client.cell(s, "print(descriptors)"))


def cold(server, client):
    s = client.create(templateID="small:one")
    check("at first it is copied", client.cell(s, PARENT) == COPIED)
    client.run(s, "sudo touch /usr/bin/new")
    check("a kernel in a sandbox whose /usr changed is not", client.cell(s, PARENT, context_id=client.context(s)) == COLD)
    check("and the log says why", said(server, s, "starts cold: the sandbox has written to /usr or to Python's packages"), log(server)[-5:])
    check("and so do its contexts, but for the one with a copy", sorted(client.why_cold(s), key=str) ==
          [None, None, "the sandbox has written to /usr or to Python's packages"], client.why_cold(s))
    logs = {}
    logs["threads"] = build(client, "threads", "d=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))'); "
          "printf 'import threading, time\\nthreading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\\n' > $d/sitecustomize.py")
    build(client, "noise", "d=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))'); "
          "printf 'import sys\\nif \"--zygote\" in sys.argv or \"--zygote\" in sys.orig_argv: sys.exit(\"no \\\\033 zygote\")\\n' > $d/sitecustomize.py")
    for name, reason in (("threads", "1 thing is in the way of a copy: thread"), ("noise", "its Python cannot be used: SystemExit: no ? zygote")):
        s = client.create(templateID=name)
        check(f"a template whose Python cannot be copied ({name}) has cold kernels", client.cell(s, "x = 1; " + PARENT) == COLD)
        check("and the log says why", said(server, s, f"starts cold: {reason}"), log(server)[-5:])
        check("as the context does", any((why or "").startswith(reason) for why in client.why_cold(s)), client.why_cold(s))
    logs["broken"] = build(client, "broken", "d=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))'); echo oh no > $d/types.py")
    logs["without"] = build(client, "without", "rm /usr/bin/python3*")
    warned, told = {name: log["warn"] for name, log in logs.items()}, logs["broken"]["info"]
    cannot = "[finalize] cells in Python cannot run: "
    check("what kernels cannot do is told when the template is built", warned["without"] == [cannot + "there is no /usr/bin/python3"] and
          warned["threads"] == ["[finalize] kernels start cold, and are not copied: /usr/bin/python3 starts threads"] and
          warned["broken"] == [cannot + "/usr/bin/python3 fails"] and "[finalize] [stderr]: SyntaxError: invalid syntax" in told, (warned, told))
    check("also by a build whose steps were all done before", build(client, "again", "rm /usr/bin/python3*")["warn"] == warned["without"])
    check("and nothing of one that can", build(client, "good", "true")["warn"] == [])
    s = client.create(templateID="without")
    text = client.cell(s, "1")
    check("without Python the cell says so", "unknown language 'python'" in text, text)


def limits(server, client, others):
    names = [f"many{n}" for n in range(ZYGOTES_MAX + 1)]
    for name in names:
        build(client, name, f"echo {name} > /var/name")
    for name in names:
        check(f"kernels of {name} are copied", client.cell(client.create(templateID=name), PARENT + "; print(open('/var/name').read())") ==
              f"{COPIED}{name}\n\n")
    check("a tenant has no more than its number of zygotes", zygotes(server) == ZYGOTES_MAX + others, zygotes(server))
    check("the one that made way is made anew", client.cell(client.create(templateID=names[0]), PARENT) == COPIED)
    check("in the place of the next", zygotes(server) == ZYGOTES_MAX + others, zygotes(server))


def pools(server, client):
    """Sandboxes of templates that were used of late wait ready."""
    build(client, "ready", "echo one > /var/which")
    client.cell(client.create(templateID="ready"), "1")
    # The plain template has its pool, and one is added for this template.
    check("a sandbox of a template that was used waits", until(lambda: figure(server, "pool_sandboxes") >= 3, 20), figure(server, "pool_sandboxes"))

    def from_pool():
        before = pooled(server)
        s = client.create(templateID="ready")
        return s if pooled(server) > before else None
    s = until(from_pool, 20, 0.2)
    check("and is handed out", s, pooled(server))
    check("with its files and a copied kernel", client.cell(s, PARENT + "; print(open('/var/which').read())") == f"{COPIED}one\n\n")
    build(client, "ready", "echo two > /var/which")
    check("after another build it is never handed out again", {client.cell(client.create(templateID="ready"), "print(open('/var/which').read())")
          for _ in range(4)} == {"two\n\n"})


def parent_on_host(marker):
    """The process whose child the kernel is that has this in its environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                comm, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            if comm == marker:
                return int(rest.split()[1])
        except OSError:
            continue
    return None


def tenants(server, client, folder):
    """The same image for two."""
    sandglass(server, "world", "import", "--tenant", "other", "--name", "small:one", f"{folder}/root.tar")
    key = json.loads(sandglass(server, "key", "create", "--tenant", "other", "--json"))["key"]
    before = zygotes(server)
    theirs, ours = As(server, key).create(templateID="small:one"), client.create(templateID="small:one")
    check("two tenants with the same image have copied kernels", As(server, key).cell(theirs, PARENT) == COPIED and client.cell(ours, PARENT) == COPIED)
    name = "import ctypes; ctypes.CDLL(None).prctl(15, b'{}', 0, 0, 0)"
    As(server, key).cell(theirs, name.format("sg-test-theirs"))
    client.cell(ours, name.format("sg-test-ours"))
    brokers = [parent_on_host("sg-test-theirs"), parent_on_host("sg-test-ours")]
    check("each from a zygote of its own", None not in brokers and brokers[0] != brokers[1] and zygotes(server) > before, (brokers, before))


def steps(server, folder):
    sandglass(server, "world", "import", "--name", "small:one", f"{folder}/root.tar")
    client = As(server)
    s = copies(server, client)
    forks(client, s)
    rewinds(client, s)
    has_no_rights(client)
    cold(server, client)
    tenants(server, client, folder)
    pools(server, client)
    limits(server, client, others=1)


def main():
    program, folder = sys.argv[1:3]
    world_root.make(f"{folder}/root.tar")
    server = Server(program, f"{folder}/state", "--metrics-token", TOKEN)
    server.start()
    try:
        steps(server, folder)
    finally:
        check("the server ends well", server.stop() == 0)


main()
