"""A server that is started again, sandboxes that are replaced: the steps behind restart.sh."""
import http.server
import json
import os
import signal
import sys
import threading

from server_client import Client, Server, until

number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print(f"# {str(detail)[:2000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


class Hook(http.server.ThreadingHTTPServer):
    """Takes webhooks."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.server.events.append(json.loads(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.events = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Talk(Client):
    """A caller who has contexts."""

    def obtain(self, conversation, path="main", **fields):
        status, answer = self.api("PUT", "/v1/contexts", {"conversationId": conversation, "pathId": path,
                                                          "template": "base"} | fields)
        if status not in (200, 201):
            raise RuntimeError(f"obtain: {status} {answer}")
        return answer

    def row(self, context):
        return self.api("GET", f"/v1/contexts/{context['id']}")[1]

    def ends(self, sandbox):
        """Why a sandbox ended: every time that it was told."""
        events = self.api("GET", f"/v1/events?limit=1000&types=sandbox.ended&sandboxId={sandbox}")[1]["events"]
        return [e["reason"] for e in events if e["type"] == "sandbox.ended"]


def told_once(client, hook, sandbox, reason, conversation=None):
    """By the list and by the webhook: with its reason, and not twice."""
    listed = until(lambda: client.ends(sandbox))
    until(lambda: [e for e in hook.events if e["type"] == "sandbox.ended" and e["sandboxId"] == sandbox])
    posted = [e for e in hook.events if e["type"] == "sandbox.ended" and e["sandboxId"] == sandbox]
    check(f"a sandbox that was {reason} is told to have ended, once", listed == [reason], listed)
    check(f"and posted: {reason}", {e["id"] for e in posted} == {posted[0]["id"]} if posted else False, posted)
    if conversation:
        check("with its conversation", bool(posted) and posted[0].get("conversationId") == conversation
              and posted[0].get("pathId") == "main", posted)


def restarts(program, folder):
    hook = Hook()
    server = Server(program, f"{folder}/state", "--webhook-url", f"http://127.0.0.1:{hook.server_port}/")
    server.start()
    client = Talk(server)

    made = client.obtain("c1")
    plain = client.create()
    check("a server that is stopped ends well", server.stop() == 0)
    server.start()
    told_once(client, hook, made["sandbox"]["sandboxID"], "stopped", "c1")
    told_once(client, hook, plain["sandboxID"], "stopped")
    row = client.row(made["context"])
    check("its context is there, without a sandbox", row["sandboxStatus"] == "ready" and not row["sandboxId"], row)

    again = client.obtain("c1")
    check("the next call makes another", again["replaced"] and again["context"]["id"] == made["context"]["id"], again)
    until(lambda: server.is_written(again["sandbox"]["sandboxID"]))
    server.kill()
    server.start()
    told_once(client, hook, again["sandbox"]["sandboxID"], "crashed", "c1")
    row = client.row(made["context"])
    check("and a crash leaves no row with a dead sandbox", row["sandboxStatus"] == "ready" and not row["sandboxId"], row)
    check("what was told is not told again", client.ends(plain["sandboxID"]) == ["stopped"])
    return server, client, hook


def front_restarts(server, client, hook):
    kept, expires, killed = client.obtain("c2"), client.create(timeout=3), client.create()
    mark = f"{os.getpid()}7654"
    client.spawn(expires, f"sleep {mark}")
    until(lambda: server.is_written(expires["sandboxID"]))
    front = server.front()
    os.kill(front, signal.SIGSTOP)
    expired = until(lambda: not is_running(mark), 20)
    try:
        os.kill(front, signal.SIGKILL)
    except ProcessLookupError:
        pass  # the server was faster
    until(lambda: server.front() not in (None, front))
    check("a sandbox may expire while the HTTP process stands still", expired)
    until(lambda: answers(client))
    told_once(client, hook, expires["sandboxID"], "expired")
    check("those that live are told nothing of", client.ends(kept["sandbox"]["sandboxID"]) == []
          and client.ends(killed["sandboxID"]) == [])
    check("and are there", client.row(kept["context"])["sandboxId"] == kept["sandbox"]["sandboxID"])
    client.api("DELETE", f"/sandboxes/{killed['sandboxID']}")
    told_once(client, hook, killed["sandboxID"], "killed")


def is_running(mark):
    """Whether a process of this machine has that among its arguments."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    return True
        except OSError:
            continue
    return False


def answers(client):
    try:
        return client.raw("GET", "/health")[0] == 204
    except OSError:
        return False


KEPT = {"metadata": {"userId": "ann"}, "envs": {"COLOUR": "hunter2-green"},
        "network": {"allowOut": ["allowed.example"]}}


def run(client, conversation, code, **fields):
    status, answer = client.api("POST", "/v1/tools/run_code", {"conversationId": conversation, "pathId": "main",
                                                               "language": "bash", "code": code} | fields)
    if status != 200:
        raise RuntimeError(f"run_code: {status} {answer}")
    return answer


def described(client, answer):
    return client.api("GET", f"/sandboxes/{answer['sandboxId']}")[1]


def on_disk(server, text):
    """Whether a text is anywhere in the files of the server."""
    for folder, _, names in os.walk(server.state):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                if text.encode() in file.read():
                    return os.path.join(folder, name)
    return None


def changes(server, client):
    """A network that is set later is the context's too."""
    made = client.obtain("changed", **(KEPT | {"network": "open"}))
    rules = {"allowOut": ["later.example"], "denyOut": ["0.0.0.0/0"]}
    status, answer = client.api("PUT", f"/sandboxes/{made['sandbox']['sandboxID']}/network", rules)
    check("the network of a context's sandbox is changed", status == 204, answer)
    client.api("DELETE", f"/sandboxes/{made['sandbox']['sandboxID']}")
    again = run(client, "changed", "echo $COLOUR")
    now = described(client, again)
    check("its replacement has the changed one", again["replaced"] and "keptLost" not in again
          and {k: now["network"].get(k) for k in rules} == rules, now)
    check("and the rest as before", again["stdout"] == "hunter2-green\n" and now["metadata"] == KEPT["metadata"], again)
    server.kill()
    server.start()
    now = described(client, run(client, "changed", "true"))
    check("after a crash too", {k: now["network"].get(k) for k in rules} == rules, now)


def keeps(server, client):
    made = client.obtain("kept", **KEPT)
    first = described(client, run(client, "kept", "true"))
    client.api("DELETE", f"/sandboxes/{made['sandbox']['sandboxID']}")
    again = run(client, "kept", "echo $COLOUR")
    check("a replaced sandbox has the context's variables", again["replaced"] and again["stdout"] == "hunter2-green\n", again)
    now = described(client, again)
    check("its metadata and network", (now["metadata"], now.get("network")) == (first["metadata"], first.get("network"))
          and now["metadata"] == KEPT["metadata"] and now["network"]["allowOut"] == ["allowed.example"], now)
    check("nothing of it can be read on disk", on_disk(server, "hunter2-green") is None, on_disk(server, "hunter2-green"))
    server.kill()
    server.start()
    again = run(client, "kept", "echo $COLOUR")
    check("after a crash too", again["replaced"] and again["stdout"] == "hunter2-green\n", again)
    check("with metadata and network", described(client, again).get("network") == first.get("network")
          and described(client, again)["metadata"] == KEPT["metadata"])

    client.api("DELETE", f"/sandboxes/{again['sandboxId']}")
    status, made = client.api("PUT", "/v1/contexts", {"conversationId": "kept", "pathId": "main",
                                                      "envs": {"COLOUR": "blue"}})
    check("what a call says itself counts", status == 201 and made["replaced"]
          and run(client, "kept", "echo $COLOUR")["stdout"] == "blue\n", made)
    check("the rest stays", described(client, {"sandboxId": made["sandbox"]["sandboxID"]})["metadata"] == KEPT["metadata"])
    client.api("DELETE", f"/sandboxes/{made['sandbox']['sandboxID']}")
    check("and is kept from then on", run(client, "kept", "echo $COLOUR")["stdout"] == "blue\n")

    changes(server, client)

    check("the server ends", server.stop() == 0)
    os.rename(f"{server.state}/front/contexts.key", f"{server.state}/contexts.key")
    server.start()
    again = run(client, "kept", "echo [$COLOUR]")
    check("without its key a sandbox is made all the same, and reaches nothing", again["replaced"]
          and again["stdout"] == "[]\n" and "allowOut" not in (described(client, again).get("network") or {}), again)
    check("and the answer says so", again.get("keptLost") is True, again)
    client.api("DELETE", f"/sandboxes/{again['sandboxId']}")
    status, made = client.api("PUT", "/v1/contexts", {"conversationId": "kept", "pathId": "main", "envs": {"COLOUR": "red"}})
    check("also of a call that names a part", status == 201 and made["replaced"] and made["keptLost"], made)
    client.api("DELETE", f"/sandboxes/{made['sandbox']['sandboxID']}")
    again = run(client, "kept", "echo $COLOUR")
    check("what that one named is kept under the key that is there", again["replaced"] and "keptLost" not in again
          and again["stdout"] == "red\n", again)


def forgets(program, folder):
    server = Server(program, f"{folder}/forgetful", "--context-keep", "1s", "--reap-every", "200ms")
    server.start()
    client = Talk(server)
    lives, ends = client.obtain("lives"), client.obtain("ends")
    client.api("DELETE", f"/v1/contexts/{ends['context']['id']}")
    gone = until(lambda: client.api("GET", f"/v1/contexts/{ends['context']['id']}")[0] == 404, 20)
    check("a context that ended is forgotten after context_keep", gone)
    paths = until(lambda: client.api("GET", "/v1/paths?conversationId=ends")[1]["paths"] == [], 20)
    check("and its paths with it", paths)
    _, there = client.api("GET", "/v1/paths?conversationId=lives")
    check("one that lives is not", client.row(lives["context"])["sandboxStatus"] == "ready"
          and [p["pathId"] for p in there["paths"]] == ["main"], there)
    check("it ends well", server.stop() == 0)


def main():
    server, client, hook = restarts(sys.argv[1], sys.argv[2])
    front_restarts(server, client, hook)
    keeps(server, client)
    check("the server ends", server.stop() == 0)
    forgets(sys.argv[1], sys.argv[2])
    print(f"# steps {number}")


main()
