"""Many sandboxes, one after the other, of many tenants, with few descriptors to have: the steps behind
descriptors.sh, and a row of the benchmark.

    descriptors.py SANDGLASS STATE CYCLES TENANTS NOFILE     prints TAP lines
"""
import collections
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_client import Client, Server, until  # noqa: E402

THREADS = 4
BACK_S = 60


class Tight(Server):
    """A server that may have so many descriptors, and cannot raise that."""

    def __init__(self, program, state, nofile, *options):
        super().__init__(program, state, *options)
        self.nofile = nofile

    def command(self):
        return ["prlimit", f"--nofile={self.nofile}:{self.nofile}", "setpriv", "--bounding-set=-sys_resource",
                self.program]

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def groups():
    """Control groups of sandboxes."""
    tops = [*pathlib.Path("/sys/fs/cgroup").glob("sandglass"), *pathlib.Path("/sys/fs/cgroup").glob("*/sandglass")]
    return sum(len(below) for top in tops for _, below, _ in os.walk(top))


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return sum(1 for _ in file)


def measure(server):
    return {"descriptors": server.open_files(), "groups": groups(), "mounts": mounts()}


def key_of(server, tenant):
    made = subprocess.run([server.program, "key", "create", "--tenant", tenant, "--state", server.state],
                          capture_output=True, text=True, timeout=60, check=True)
    return made.stdout.strip()


class Cycles(threading.Thread):
    """Creates and kills, over one connection, for one tenant after the other."""

    def __init__(self, server, keys, n):
        super().__init__()
        self.server, self.keys, self.n = server, keys, n
        self.statuses, self.refusals, self.highest = collections.Counter(), [], 0

    def ask(self, connection, key, method, path, body=None):
        connection.request(method, path, body=json.dumps(body) if body else None,
                           headers={"X-API-Key": key, "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        for i in range(self.n):
            key = self.keys[i % len(self.keys)]
            status, said = self.ask(connection, key, "POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60})
            self.statuses[status] += 1
            if status != 201:
                self.refusals.append(said.decode())
                continue
            self.ask(connection, key, "DELETE", f"/sandboxes/{json.loads(said)['sandboxID']}")
            if i % 50 == 0:
                self.highest = max(self.highest, self.server.open_files())
        connection.close()


def cycles(server, n, tenants):
    """Statuses of creates, the first refusals, and how many descriptors were open at most."""
    keys = [key_of(server, f"tenant{i}") for i in range(tenants)]
    threads = [Cycles(server, keys[i::THREADS], n // THREADS) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = sum((thread.statuses for thread in threads), collections.Counter())
    refusals = [text for thread in threads for text in thread.refusals]
    return dict(statuses), refusals[:3], max(thread.highest for thread in threads)


def back_to(server, start):
    """What there is when it is no more than at the start, or after a while."""
    until(lambda: all(measure(server)[k] <= start[k] for k in start), BACK_S, 0.2)
    return measure(server)


# ---- the test ----------------------------------------------------------------------------------------

number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print(f"# {detail}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def one_after_the_other(program, state, n, tenants, nofile):
    """Each tenant's slots together would keep more than all of that, and so would their pools."""
    server = Tight(program, state, nofile, "--tenant-rate", "0", "--tenant-idle", "1s", "--pool-min", "0",
                   "--warm-kernels", "none")
    server.start()
    client = Client(server)
    client.api("DELETE", f"/sandboxes/{client.create()['sandboxID']}")  # opens what stays open
    time.sleep(2)
    until(lambda: server.open_files() < 40)
    start = {"descriptors": server.open_files()}
    statuses, refusals, highest = cycles(server, n, tenants)
    check("creates and kills of many tenants: none is refused", statuses == {201: n}, f"{statuses} {refusals}")
    check("descriptors to spare were there all the time", highest < nofile, highest)
    end = back_to(server, start)
    check("descriptors are back to what they were", all(end[k] <= start[k] for k in start), f"{start} {end}")
    check("it ends", server.stop() == 0)


def metrics(client):
    """{(name, process): value} of what is told about descriptors."""
    status, text = client.raw("GET", "/metrics", headers={"Authorization": "Bearer secret"})
    if status != 200:
        return {}
    found = re.findall(r'^sandglass_process_(open_fds|max_fds){process="(\w+)"} (\d+)$', text.decode(), re.M)
    return {(name, process): int(value) for name, process, value in found}


def until_refused(client):
    """Sandboxes, as many as there can be, and the refusal."""
    sandboxes = []
    while True:
        status, answer = client.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300})
        if status != 201:
            return sandboxes, status, answer["message"]
        sandboxes.append(answer)


def warden_is_full(server, client):
    sandboxes, status, message = until_refused(client)
    check("when descriptors run out creating is 503, and says why",
          status == 503 and re.search(r"\d+ of \d+ descriptors.*LimitNOFILE", message), f"{status} {message}")
    told = metrics(client)
    check("the metrics tell how many there are, of all three processes",
          all(("max_fds", p) in told and told["open_fds", p] > 5 for p in ("warden", "front", "guard")) and
          told["max_fds", "warden"] == server.nofile and told["open_fds", "warden"] > server.nofile * 3 // 4, told)
    path = f"/sandboxes/{sandboxes[0]['sandboxID']}"
    check("a sandbox works", client.run(sandboxes[0], "echo $((6*7))") == (0, "42\n"))
    check("it is paused", client.api("POST", path + "/pause", {"memory": True})[0] == 204)
    status, answer = client.api("POST", path + "/resume", {"timeout": 300})
    check("it resumes, or that is 503", status in (201, 503), answer)
    for sandbox in sandboxes:
        client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    again = until(lambda: client.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300})[0] == 201)
    check("when others are gone there is room again", again)


def listed(client):
    """The status; None if the connection was refused, as the last ones are."""
    try:
        return client.api("GET", "/v2/sandboxes")[0]
    except (OSError, http.client.HTTPException):
        return None


def front_is_full(server, client):
    """Connections that ask nothing, more than there are descriptors."""
    held = []
    for _ in range(server.nofile * 2):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        held.append(connection)
    answers = set()
    check("idle connections make room for others", until(lambda: answers.add(listed(client)) or 200 in answers), answers)
    check("meanwhile there is 503, or no answer at all", answers <= {200, 503, None}, answers)
    check("the metrics are told", ("open_fds", "front") in metrics(client))
    for connection in held:
        connection.close()
    check("afterwards all is well", until(lambda: client.api("GET", "/v2/sandboxes")[0] == 200))


def main():
    program, state, *counts = sys.argv[1:]
    one_after_the_other(program, state, *(int(n) for n in counts))
    server = Tight(program, state + "-full", 384, "--tenant-rate", "0", "--warm-kernels", "none", "--pool-min", "1",
                   "--metrics-token", "secret")
    server.start()
    warden_is_full(server, Client(server))
    front_is_full(server, Client(server))
    check("it ends", server.stop() == 0)


if __name__ == "__main__":
    main()
