"""Sandboxes that end, and who is blamed: the steps behind blame.sh."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading

from server_client import ENVD_PORT, Client, Server, shell, until

PATIENCE_S = 60
TOKEN = "blame-test-token"
HOLDER = "the holder of its tenant was killed"
# Memory of no process: the kernel finds nobody else to kill than those who have least to do with it.
FILL = """exec python3 -c '
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
while True:
    part = libc.shmget(0, 1 << 20, 0o1600)
    ctypes.memset(libc.shmat(part, None, 0), 1, 1 << 20)
'"""
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print(f"# {str(detail)[:3000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


# ---- what a server tells ----------------------------------------------------------------------------------


def serve(program, state, *options):
    server = Server(program, state, "--metrics-token", TOKEN, "--log-level", "info", "--egress-e2b-default", "block",
                    "--drain-timeout", "1s", *options)
    server.start()
    threading.Thread(target=server.process.stderr.read, daemon=True).start()
    return server


def children(server, name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                comm, fields = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if comm == name and fields.split()[0] != "Z" and int(fields.split()[1]) == server.process.pid:
            found.append(int(pid))
    return found


def log(server, *options):
    ran = subprocess.run([server.program, "logs", "--server", "--state", server.state, "--json", *options], text=True,
                         capture_output=True, check=False, timeout=30)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def metrics(server):
    _, text = Client(server).raw("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    return dict(re.findall(r"^sandglass_(\S+) (\S+)$", text.decode(), re.M))


def ended(server, why):
    return float(metrics(server).get(f'sandbox_ended_total{{why="{why}"}}', 0))


def end_of(client, sandbox):
    """The event that tells of its end."""
    def look():
        _, page = client.api("GET", f"/v1/events?limit=100&types=sandbox.ended&sandboxId={sandbox['sandboxID']}")
        return next((event for event in page["events"] if event["type"] == "sandbox.ended"), None)
    return until(look, PATIENCE_S, 0.1) or {}


def own_log(client, sandbox):
    _, answer = client.api("GET", f"/v2/sandboxes/{sandbox['sandboxID']}/logs")
    return [(line["fields"]["layer"], line["message"]) for line in answer.get("logs", [])]


def health(client, sandbox):
    status, data = client.raw("GET", "/health", headers={"E2b-Sandbox-Id": sandbox["sandboxID"]})
    return status, json.loads(data) if data else {}


# ---- what is under way when the holder is killed ----------------------------------------------------------------


class Calls:
    """Calls to a sandbox that end when it does, each in a thread; what they got."""

    def __init__(self):
        self.got, self._threads = {}, []

    def begin(self, name, call, *arguments):
        def work():
            try:
                self.got[name] = call(*arguments)
            except (OSError, http.client.HTTPException, RuntimeError) as error:
                self.got[name] = error
        thread = threading.Thread(target=work)
        thread.start()
        self._threads.append(thread)

    def join(self):
        for thread in self._threads:
            thread.join(PATIENCE_S)


def sleeps(client, sandbox, name):
    """`sleep` with a number of its own runs in the sandbox."""
    return until(lambda: client.run(sandbox, f"pgrep -f 'sleep [6]{name}' >/dev/null && echo yes")[1] == "yes\n",
                 PATIENCE_S, 0.1)


def upload(server, sandbox):
    """A file of which half is sent: status and answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as s:
        head = ("POST /files?path=/home/user/half&username=user HTTP/1.1\r\nHost: x\r\n"
                f"E2b-Sandbox-Id: {sandbox['sandboxID']}\r\nE2b-Sandbox-Port: {ENVD_PORT}\r\n"
                f"X-Access-Token: {sandbox['envdAccessToken']}\r\n"
                "Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n")
        s.sendall(head.encode() + b"x" * 50000)
        answer = http.client.HTTPResponse(s)
        answer.begin()
        return answer.status, json.loads(answer.read())


def cell(client, sandbox, code):
    headers = client.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"}
    status, data = client.raw("POST", "/execute", json.dumps({"code": code}), headers)
    return status, data.decode()


def program(server, *words):
    """What the command line says."""
    env = {**os.environ, "E2B_API_KEY": server.key, "E2B_API_URL": f"http://127.0.0.1:{server.port}",
           "E2B_SANDBOX_URL": f"http://127.0.0.1:{server.port}"}
    ran = subprocess.run([server.program, *words], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                         stdin=subprocess.DEVNULL)
    return ran.returncode, ran.stderr


def blames_us(line):
    return line["layer"] == "infrastructure"


def holder_killed(server):
    client = Client(server, PATIENCE_S)
    sandbox = client.create(templateID="code-interpreter-v1")
    asleep = client.create()
    client.api("POST", f"/sandboxes/{asleep['sandboxID']}/pause", {})
    _, agent = client.api("POST", "/v1/agents", {"command": ["cat"], "sandboxId": sandbox["sandboxID"]})
    calls = Calls()
    calls.begin("command", client.run, sandbox, "sleep 6001")
    calls.begin("cell", cell, client, sandbox, "import subprocess; subprocess.run(['sleep', '6002'])")
    calls.begin("upload", upload, server, sandbox)
    calls.begin("exec", program, server, "exec", sandbox["sandboxID"], "--", "sleep", "6003")
    calls.begin("tool", client.api, "POST", "/v1/tools/run_code",
                {"conversationId": "c", "pathId": "p", "code": "import subprocess; subprocess.run(['sleep', '6004'])"})
    check("commands and cells are under way", all(sleeps(client, sandbox, f"00{n}") for n in (1, 2, 3)) and until(
        lambda: client.run(sandbox, "test -s /home/user/half; echo $?")[1] == "0\n" or True))
    tool = until(lambda: client.api("GET", "/v1/contexts")[1]["contexts"], PATIENCE_S)[0]
    until(lambda: "sleep" in str(program(server, "exec", tool["sandboxId"], "--", "pgrep", "-f", "sleep 6004")), 5)
    for pid in children(server, "sg-holder"):
        os.kill(pid, signal.SIGKILL)
    calls.join()
    return client, sandbox, asleep, agent, tool, calls.got


def answers(server, client, sandbox, got):
    check("a command under way is cut off, as its stream had begun", isinstance(got["command"], http.client.HTTPException),
          got["command"])
    check("so is a cell", isinstance(got["cell"], http.client.HTTPException) or "502" in str(got["cell"]), got["cell"])
    status, answer = got["upload"]
    check("an upload under way is told why", status == 502 and HOLDER in answer["message"]
          and answer.get("layer") == "infrastructure" and answer.get("reason") == "failed", got["upload"])
    check("`sandglass exec` says why", got["exec"][0] != 0 and HOLDER in got["exec"][1], got["exec"])
    status, answer = got["tool"]
    check("a tool call says why", HOLDER in json.dumps(answer), got["tool"])


def later(server, client, sandbox):
    status, answer = health(client, sandbox)
    check("a later call to a port is told why", status == 502 and answer["message"].startswith("The sandbox was not found")
          and HOLDER in answer["message"] and answer.get("layer") == "infrastructure", answer)
    status, answer = client.api("GET", f"/sandboxes/{sandbox['sandboxID']}")
    check("a later call of the API is told why", status == 404 and HOLDER in answer["message"], answer)
    status, answer = client.api("POST", f"/sandboxes/{sandbox['sandboxID']}/timeout", {"timeout": 10})
    check("... whichever it is", status == 404 and HOLDER in answer["message"], answer)
    code, said = program(server, "exec", sandbox["sandboxID"], "--", "true")
    check("`sandglass exec` on it says why", code != 0 and HOLDER in said, said)


def told(server, client, sandbox, what="a sandbox"):
    """Event, logs, counters: one cause, one layer."""
    event = end_of(client, sandbox)
    check(f"{what}: the event has the reason, and why", event.get("reason") == "failed" and HOLDER in event.get("detail", ""), event)
    with contextlib.closing(sqlite3.connect(f"file:{server.state}/front/server.db?mode=ro", uri=True)) as db:
        def row():
            return db.execute("SELECT json FROM event WHERE json LIKE ? AND json LIKE '%sandbox.ended%'",
                              (f"%{sandbox['sandboxID']}%",)).fetchone()
        found = until(row, PATIENCE_S, 0.1)
    check(f"{what}: so has its row in the store", found and '"failed"' in found[0] and HOLDER in found[0], found)
    lines = [line for line in log(server, "--sandbox", sandbox["sandboxID"])
             if "ended" in line["message"] or line.get("status")]
    check(f"{what}: the server's log blames the infrastructure, and nobody else",
          any(HOLDER in line["message"] for line in lines) and all(map(blames_us, lines)), lines)


def told_inside(client, sandbox, what="a sandbox"):
    lines = [line for line in own_log(client, sandbox) if "ended" in line[1]]
    check(f"{what}: its own log does too", any(HOLDER in text for _, text in lines)
          and all(layer == "infrastructure" for layer, text in lines if "Sandbox ended" in text), lines)


def holder(server):
    before = ended(server, "failed")
    client, sandbox, asleep, agent, tool, got = holder_killed(server)
    check("the holder's end is said", until(lambda: any("the holder of a tenant was killed" in line["message"]
                                                      for line in log(server, "--layer", "infrastructure"))))
    answers(server, client, sandbox, got)
    later(server, client, sandbox)
    told(server, client, sandbox)
    told_inside(client, sandbox)
    told(server, client, asleep, "a paused one")
    later(server, client, asleep)
    status, found = client.api("GET", f"/v1/agents/{agent['agentId']}")
    check("an agent that was hosted there is not blamed", status == 200 and found["fault"] == "infrastructure"
          and HOLDER in found["reason"], found)
    check("the counters have it", until(lambda: ended(server, "failed") == before + 3, PATIENCE_S), metrics(server))
    wrong = {name: value for name, value in metrics(server).items()
             if re.match(r'failures_total\{layer="(sandbox|agent|code)"', name) and float(value) > 0}
    check("... and nothing against sandbox, agent or code", not wrong, wrong)
    check("the tenant goes on with another", client.run(client.create(), "echo new") == (0, "new\n"))
    _, rows = client.api("GET", "/v1/contexts")
    check("a context's row has no sandbox", all(row.get("sandboxId") != tool["sandboxId"] or row["sandboxStatus"] != "ready"
                                                for row in rows["contexts"]), rows)


def without_front(server):
    """The front is stopped when the holder is killed, and killed before it hears of it."""
    client = Client(server, PATIENCE_S)
    sandbox = client.create()
    until(lambda: server.is_written(sandbox["sandboxID"]))
    front = server.front()
    os.kill(front, signal.SIGSTOP)
    for pid in children(server, "sg-holder"):
        os.kill(pid, signal.SIGKILL)
    until(lambda: any(HOLDER in line["message"] for line in log(server, "--sandbox", sandbox["sandboxID"])), PATIENCE_S)
    os.kill(front, signal.SIGKILL)
    until(lambda: server.front() not in (None, front))
    until(lambda: health(client, sandbox)[0])
    told(server, client, sandbox, "told by the next front")
    later(server, client, sandbox)


# ---- the kernel kills the first process of a sandbox ----------------------------------------------------------


def fill(client, sandbox):
    """Until it is gone: with nobody else left to kill, its first process is, as soon as it needs memory for a file."""
    client.run(sandbox, FILL)
    headers = client.data_headers(sandbox, "application/octet-stream")
    def gone():
        with contextlib.suppress(OSError, http.client.HTTPException):
            client.raw("POST", "/files?path=/home/user/large&username=user", b"x" * (32 << 20), headers)
        return health(client, sandbox)[0] == 502
    return until(gone, PATIENCE_S, 0.2)


def full(server, reason, layer, words):
    client = Client(server, PATIENCE_S)
    sandbox = client.create()
    check(f"{reason}: it ends", fill(client, sandbox))
    event = end_of(client, sandbox)
    check(f"{reason}: the event says so", event.get("reason") == reason and event.get("detail") == words, event)
    _, answer = health(client, sandbox)
    check(f"{reason}: so does the answer to who comes later",
          (answer.get("reason"), answer.get("detail"), answer.get("layer")) == (reason, words, layer), answer)
    found = [line for line in log(server, "--sandbox", sandbox["sandboxID"]) if line["message"] == f"ended: {words}"]
    check(f"{reason}: the server's log blames {layer}", [line["layer"] for line in found] == [layer],
          log(server, "--sandbox", sandbox["sandboxID"]))
    found = [line for line in own_log(client, sandbox) if line[1] == f"Sandbox ended: {words}"]
    check(f"{reason}: so does its own", [line[0] for line in found] == [layer], own_log(client, sandbox))
    check(f"{reason}: it is counted", until(lambda: ended(server, reason) >= 1), metrics(server))


def memory(binary, place):
    small = ("--sandbox-memory", "128M", "--sandbox-disk", "64M")
    large = ("--sandbox-memory", "1G", "--sandbox-disk", "64M")
    cases = {"memory": (small, "sandbox", "it ran out of memory"),
             "tenant": ((*large, "--tenant-memory", "256M"), "sandbox", "the sandboxes of its tenant ran out of memory"),
             "machine": ((*large, "--machine-memory", str(256 << 20)), "infrastructure", "the machine ran out of memory")}
    for reason, (options, layer, words) in cases.items():
        server = serve(binary, f"{place}/{reason}", "--warm-kernels", "none", "--pool-min", "0", *options)
        try:
            full(server, reason, layer, words)
        finally:
            server.stop()


EAT = "python3 -c 'x = bytearray(b\"x\") * ({} << 20)'"
LIMIT_REACHED = r"killed: the sandbox reached its memory limit of \d+ MiB"


def why_ended(client, sandbox, command):
    """The error of the command's end."""
    messages, error = client.stream(sandbox, "process.Process/Start", shell(command))
    ends = [message["event"]["end"] for message in messages if "end" in message["event"]]
    return ends[0].get("error", "") if ends else str(error)


def tried(attempt):
    """With cgroup v1 the limit is not named if the server looked at the group in the very moment of the end, which it does every
    few seconds."""
    for _ in range(5):
        said = attempt()
        if re.search(LIMIT_REACHED, said):
            break
    return said


def group_of(pid):
    """The directory of its memory's control group."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        for line in file:
            _, names, path = line.strip().split(":", 2)
            if "memory" in names.split(","):
                return f"/sys/fs/cgroup/memory{path}"
    return f"/sys/fs/cgroup{path}"


def elsewhere(binary, place):
    """Memory that is short above all that the server limits, as on a machine that others fill, and in a sandbox whose own
    memory was full once: here, a limit that it does not know of."""
    server = serve(binary, f"{place}/elsewhere", "--warm-kernels", "none", "--pool-min", "0", "--pool-max", "0",
                   "--sandbox-memory", "128M", "--sandbox-disk", "64M")
    try:
        client = Client(server, PATIENCE_S)
        sandbox = client.create()
        eat = f"exec {EAT}"

        def layers(words):
            return [layer for layer, text in own_log(client, sandbox) if words in text]
        client.run(sandbox, eat.format(512))
        check("a sandbox whose own memory is full is told so", until(lambda: layers("it ran out of memory") == ["sandbox"], PATIENCE_S),
              own_log(client, sandbox))
        above = os.path.dirname(group_of(children(server, "sg-agent")[0]))
        name = next(name for name in ("memory.limit_in_bytes", "memory.max") if os.path.exists(f"{above}/{name}"))
        with open(f"{above}/{name}", "w", encoding="ascii") as file:
            file.write(str(96 << 20))
        said = why_ended(client, sandbox, eat.format(150))
        check("a command that dies of memory elsewhere does not end with that word", said == "signal: killed", said)
        check("a program that is killed for want of memory elsewhere is the infrastructure's",
              until(lambda: layers("the machine ran out of memory") == ["infrastructure"], PATIENCE_S),
              own_log(client, sandbox))
        check("... and not the sandbox's once more", layers("it ran out of memory") == ["sandbox"],
              own_log(client, sandbox))
    finally:
        server.stop()


def limit_named(binary, place):
    """The end of a command or cell that the sandbox's memory limit caused says so, and no other end does."""
    server = serve(binary, f"{place}/limit", "--sandbox-memory", "256M", "--sandbox-disk", "64M")
    try:
        client = Client(server, PATIENCE_S)
        sandbox = client.create(templateID="code-interpreter-v1")
        said = tried(lambda: why_ended(client, sandbox, f"exec {EAT.format(1024)}"))
        check("a command that dies of the sandbox's limit ends with that word", re.fullmatch(LIMIT_REACHED, said), said)
        said = tried(lambda: why_ended(client, sandbox, f"{EAT.format(1024)}; exit $?"))
        check("a program that a shell ran dies of the limit: with the shell's status",
              re.fullmatch(f"exit status 137: a program was {LIMIT_REACHED}", said), said)
        said = why_ended(client, sandbox, "kill -KILL $$")
        check("one that is killed later does not end with that word", said == "signal: killed", said)
        said = tried(lambda: "{} {}".format(*program(server, "exec", sandbox["sandboxID"], "bash", "-c", f"exec {EAT.format(1024)}")))
        check("the command line says it", re.match(f"137 sandglass: {LIMIT_REACHED}\n$", said), said)
        # The kernel is a copy of a warm one: nothing else is known of its end.
        said = tried(lambda: cell(client, sandbox, "x = bytearray(b'x') * (1 << 30)")[1])
        check("a cell that dies of the limit says so", re.search(f'"the kernel was {LIMIT_REACHED}:', said), said)
        _, said = cell(client, sandbox, "import os; os._exit(3)")
        check("one whose kernel ends otherwise does not", "UnexpectedEndOfExecution" in said and "limit" not in said, said)
    finally:
        server.stop()


def main():
    binary, place = sys.argv[1], sys.argv[2]
    server = serve(binary, f"{place}/state")
    try:
        holder(server)
        without_front(server)
    finally:
        server.stop()
    memory(binary, place)
    elsewhere(binary, place)
    limit_named(binary, place)


main()
