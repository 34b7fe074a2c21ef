"""When a server is ready, and when it is not: the steps behind readiness.sh.

Nothing of the server is wrong: it is in a control group that allows it no more processes, so that it cannot make a
sandbox, until it is allowed them again."""
import http.client
import json
import os
import re
import subprocess
import sys

from server_client import Client, Server, until

PATIENCE_S = 60
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print(f"# {str(detail)[:2000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


class Group:
    """A control group with a limit of processes, in either version."""

    def __init__(self):
        v1 = os.path.isdir("/sys/fs/cgroup/pids")
        self.path = f"/sys/fs/cgroup/{'pids/' if v1 else ''}readiness-test-{os.getpid()}"
        if not v1:
            with open("/sys/fs/cgroup/cgroup.subtree_control", "w", encoding="utf-8") as file:
                file.write("+pids")
        os.mkdir(self.path)

    def allow(self, processes):
        with open(f"{self.path}/pids.max", "w", encoding="utf-8") as file:
            file.write(processes)

    def program(self, path, program):
        """A program that is the given one, in this group."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho $$ >{self.path}/cgroup.procs\nexec {program} \"$@\"\n")
        os.chmod(path, 0o755)
        return path

    def remove(self):
        until(lambda: not open(f"{self.path}/cgroup.procs", encoding="utf-8").read(), PATIENCE_S)
        os.rmdir(self.path)


def health(server, query):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", f"/health{query}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.getheader("Retry-After")
    finally:
        connection.close()


def becomes(server, status):
    """The answer when it has that status, else the last one; a second old answers are good."""
    last = []

    def look():
        last[:] = health(server, "?ready")
        return last[0] == status
    until(look, PATIENCE_S, 0.1)
    return last


def second_key(server):
    """Of a tenant who has nothing yet: a first sandbox takes processes of the server's own."""
    made = subprocess.run([server.program, "key", "create", "--tenant", "second", "--state", server.state], text=True,
                          capture_output=True, check=True).stdout
    return re.search(r"\be2b_\w+", made)[0]


def steps(server, group):
    check("a server that can make sandboxes is ready", becomes(server, 204)[0] == 204, health(server, "?ready"))
    client = Client(server)
    sandbox, key = client.create(), second_key(server)

    group.allow("0")
    status, data = client.raw("POST", "/v2/sandboxes", '{"templateID": "base"}',
                              {"X-API-Key": key, "Content-Type": "application/json"})
    check("one that cannot says so to who asks for one", status >= 500, (status, data))
    status, text, again = becomes(server, 503)
    check("... is not ready", status == 503, (status, text))
    message = json.loads(text)["message"] if text else ""
    check("... and says why, in one line",
          re.fullmatch(r"not ready: no sandbox can be handed out: .*Resource temporarily unavailable.*", message), message)
    check("... and when to ask again", again == "1", again)
    check("it lives all the same", health(server, "")[0] == 204, health(server, ""))
    check("sandboxes that it has answer", client.run(sandbox, "echo $((6*7))") == (0, "42\n"))

    group.allow("max")
    check("it is ready again when it can make them again", becomes(server, 204)[0] == 204, health(server, "?ready"))
    server.key = key
    check("... and makes them", client.run(client.create(), "echo $((6*7))") == (0, "42\n"))


def main():
    program, place = sys.argv[1], sys.argv[2]
    group = Group()
    server = Server(group.program(f"{place}/program", program), f"{place}/state", "--warm-kernels", "none")
    try:
        server.start()
        steps(server, group)
    finally:
        group.allow("max")
        check("it ends", server.stop() == 0)
        group.remove()


main()
