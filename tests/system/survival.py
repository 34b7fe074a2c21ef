"""What lives on when a part of the server is killed: the steps behind survival.sh."""
import http.client
import os
import random
import signal
import sys
import threading
import time

from server_client import Client, Server, until

REFUSED = (OSError, http.client.HTTPException)
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print(f"# {detail}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def patiently(call, patience_s=15):
    """A caller that tries again, as one does while a server restarts."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return call()
        except REFUSED:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class Load(threading.Thread):
    """Makes sandboxes, uses and kills them until told to stop. A broken connection is what a killed
    front looks like; a wrong answer is not."""

    def __init__(self, server):
        super().__init__()
        self.client, self.wrong, self.rounds, self.ending = Client(server), [], 0, False

    def run(self):
        while not self.ending:
            try:
                sandbox = self.client.create(metadata={"from": "load"})
                status, output = self.client.run(sandbox, "echo $((6*7))")
                if (status, output) not in ((0, "42\n"), (None, ""), (None, "42\n")):
                    self.wrong.append(f"{status} {output!r}")
                self.client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
                self.rounds += 1
            except REFUSED:
                time.sleep(0.01)
            except (RuntimeError, ValueError, KeyError, TypeError) as error:
                if "502" not in str(error):
                    self.wrong.append(str(error))


def kill_front(server):
    pid = until(server.front)
    os.kill(pid, signal.SIGKILL)
    return until(lambda: server.front() not in (None, pid))


def front_dies(server):
    client = Client(server)
    sandbox = client.create(envVars={"COLOUR": "green"}, metadata={"who": "kept"})
    client.run(sandbox, "echo before > /home/user/file")
    counter = client.spawn(sandbox, "while :; do echo x >> /home/user/ticks; sleep 0.05; done")
    ending = client.spawn(sandbox, "sleep 2; exit 7")
    short = client.create(timeout=4)
    paused = client.create()
    client.run(paused, "echo kept > /tmp/f; sleep 1000 & disown")
    client.api("POST", f"/sandboxes/{paused['sandboxID']}/pause", {})
    made_at = time.monotonic()

    load = [Load(server) for _ in range(3)]
    for thread in load:
        thread.start()
    restarted = True
    for _ in range(4):
        time.sleep(random.uniform(0.1, 0.4))
        restarted = kill_front(server) and restarted
    check("a front that is killed is replaced", restarted)
    before = patiently(lambda: client.run(sandbox, "wc -l < /home/user/ticks"))
    for thread in load:
        thread.ending = True
    for thread in load:
        thread.join()
    check("requests that met a front were answered correctly", not any(t.wrong for t in load),
          str([t.wrong[:3] for t in load]))
    check("work went on between the kills", sum(t.rounds for t in load) > 0)

    status, info = patiently(lambda: client.api("GET", f"/sandboxes/{sandbox['sandboxID']}"))
    check("the sandbox is still listed with its metadata",
          status == 200 and info["metadata"] == {"who": "kept"}, str(info))
    status, again = patiently(
        lambda: client.api("POST", f"/v2/sandboxes/{sandbox['sandboxID']}/connect", {"timeout": 300}))
    check("connect gives the same token", status == 200
          and again["envdAccessToken"] == sandbox["envdAccessToken"], str(again))
    check("files are still there", client.run(sandbox, "cat /home/user/file") == (0, "before\n"))
    check("variables given at creation are still there",
          client.run(sandbox, "echo $COLOUR") == (0, "green\n"))
    _, listed = client.unary(sandbox, "process.Process/List", {})
    pids = {p["pid"]: p for p in listed.get("processes", [])}
    check("a running command is still listed, with its arguments",
          counter in pids and "ticks" in pids[counter]["config"]["args"][2], str(listed))
    after = client.run(sandbox, "sleep 0.2; wc -l < /home/user/ticks")
    check("it kept running", int(after[1]) > int(before[1]), f"{before} {after}")

    messages, error = client.stream(sandbox, "process.Process/Connect", {"process": {"pid": ending}})
    end = messages[-1]["event"].get("end", {}) if messages else {}
    check("a command that ended meanwhile still tells its status",
          error is None and end.get("exitCode") == 7, f"{messages} {error}")
    gone = until(lambda: client.api("GET", f"/sandboxes/{short['sandboxID']}")[0] == 404, 10)
    check("a deadline held", gone and time.monotonic() - made_at >= 3)

    status, _ = client.api("GET", f"/sandboxes/{paused['sandboxID']}")
    status2, _ = client.api("POST", f"/v2/sandboxes/{paused['sandboxID']}/connect", {"timeout": 60})
    check("a paused sandbox can be resumed", (status, status2) == (200, 201), f"{status} {status2}")
    check("with its processes and files",
          client.run(paused, "pgrep -f 'sleep 1000' >/dev/null && cat /tmp/f") == (0, "kept\n"))

    _, left = client.api("GET", "/v2/sandboxes?metadata=from%3Dload")
    for one in left:  # those whose caller was cut off before it could kill them
        client.api("DELETE", f"/sandboxes/{one['sandboxID']}")
    for one in (sandbox, paused):
        client.api("DELETE", f"/sandboxes/{one['sandboxID']}")
    _, left = client.api("GET", "/v2/sandboxes")
    check("nothing is left over", left == [], str(left))


def warden_dies(server):
    client = Client(server)
    sandboxes = [client.create() for _ in range(5)]
    for sandbox in sandboxes:
        client.spawn(sandbox, "sleep 1000")
    front = server.front()
    server.kill()
    check("the front ends with the warden", until(lambda: not os.path.exists(f"/proc/{front}")))
    begin = time.monotonic()
    server.start()
    check("a new server starts on the same state, key and port", time.monotonic() - begin < 15)
    status, left = Client(server).api("GET", "/v2/sandboxes")
    check("no sandbox of the old one is left", (status, left) == (200, []), f"{status} {left}")
    sandbox = client.create()
    check("new ones work", client.run(sandbox, "echo ok") == (0, "ok\n"))


def drains(server):
    client, ended = Client(server), {}
    sandbox = client.create()
    waiting = threading.Thread(
        target=lambda: ended.update(result=client.run(sandbox, "echo on; sleep 1.5; echo done")))
    waiting.start()
    until(lambda: client.unary(sandbox, "process.Process/List", {})[1].get("processes"))
    server.end()

    def told(method, path, body=None):
        try:
            return client.api(method, path, body)[0]
        except REFUSED:
            return None

    check("a server that is told to end is not ready any more", until(lambda: told("GET", "/health?ready") == 503))
    check("and takes no new work", told("POST", "/v2/sandboxes", {"templateID": "base"}) == 503)
    waiting.join()
    check("and finishes what is under way", ended.get("result") == (0, "on\ndone\n"), str(ended))
    check("SIGTERM ends it with status 0", server.ended() == 0)


def main():
    server = Server(sys.argv[1], sys.argv[2])
    server.start()
    front_dies(server)
    warden_dies(server)
    drains(server)
    print(f"# steps {number}")


main()
