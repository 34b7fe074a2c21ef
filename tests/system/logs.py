"""The log of a real server: the steps behind logs.sh."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys

from server_client import ENVD_PORT, Client, Server, shell, until

NOBODY = "k3j00000000000000000"
SECRETS = {"metrics_token": "metrics-hunter2-metrics", "webhook_secret": "webhook-hunter2-webhook",
           "langfuse_secret_key": "sk-lf-hunter2-langfuse", "otlp_headers": "authorization=otlp-hunter2-otlp"}
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print(f"# {str(detail)[:2000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def logs(server, *options):
    ran = subprocess.run([server.program, "logs", "--server", "--state", server.state, *options], text=True,
                         capture_output=True, check=False, timeout=30)
    return ran.stdout # nothing, of a server that has not begun


def lines(server, *options):
    return [json.loads(line) for line in logs(server, "--json", *options).splitlines()]


def pid_of(server, name):
    """Of the process that a server has started under that name."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                comm, fields = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if comm == name and fields.split()[0] != "Z" and int(fields.split()[1]) == server.process.pid:
            return int(pid)
    return None


# ---- every error answer -----------------------------------------------------------------------------------


def say(server, text):
    """What comes back for bytes that may be no request: (status, headers, body)."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        s.sendall(text)
        answer = http.client.HTTPResponse(s)
        answer.begin()
        return answer.status, dict(answer.getheaders()), answer.read()


def ask(server, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def bad_requests(server, sandbox):
    """(what, layer, status of the line, how to get it). Bodies of E2B's routes tell no id: the header does."""
    key = {"X-API-Key": server.key}
    accept = key | {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    inside = {"E2b-Sandbox-Id": sandbox["sandboxID"], "X-Access-Token": sandbox["envdAccessToken"]}
    envd = inside | {"E2b-Sandbox-Port": str(ENVD_PORT), "Connect-Protocol-Version": "1"}
    unary = envd | {"Content-Type": "application/json"}
    body = json.dumps(shell("true") | {"process": {"cmd": "/no/such/program"}}).encode()
    stream = (b"\0" + len(body).to_bytes(4, "big") + body, envd | {"Content-Type": "application/connect+json"})
    long = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40000 + b"\r\n\r\n"
    chunks = (b"POST /sandboxes HTTP/1.1\r\nHost: a\r\nX-API-Key: " + server.key.encode()
              + b"\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")
    web = inside | {"E2b-Sandbox-Port": "8765"}

    def call(method, path, headers=None, data=None):
        return lambda: ask(server, method, path, data, headers)

    return [
        ("bytes that are no request", "client", 400, lambda: say(server, b"GARBAGE\r\n\r\n")),
        ("a head that is too long", "client", 431, lambda: say(server, long)),
        ("a body that is not framed as it says", "client", 400, lambda: say(server, chunks)),
        ("no key", "client", 401, call("GET", "/v2/sandboxes?token=hunter2-in-a-query")),
        ("a wrong key", "client", 401, call("GET", "/sandboxes", {"X-API-Key": "e2b_" + "0" * 40})),
        ("a route that there is not", "client", 404, call("GET", "/nowhere", key)),
        ("a body that is no JSON", "client", 400, call("POST", "/sandboxes", key, '{"envVars": {"A": "hunter2-in-a-body')),
        ("a sandbox that there is not", "client", 404, call("GET", f"/sandboxes/{NOBODY}", key)),
        ("a template that there is not", "client", None, call("POST", "/sandboxes", key, '{"templateID":"none-such"}')),
        ("/v1: a field that is missing", "client", 400, call("POST", "/v1/tools/run_code", key, "{}")),
        ("/v1: a context that there is not", "client", 404, call("GET", f"/v1/contexts/{NOBODY}", key)),
        ("MCP: an answer that nobody can give", "client", 406, call("POST", "/mcp", key | {"Accept": "image/png"}, "{}")),
        ("MCP: a method that there is not", "client", None, call(
            "POST", "/mcp", accept, '{"jsonrpc":"2.0","id":1,"method":"none/such"}')),
        ("data: a sandbox that there is not", "sandbox", 502, call("GET", "/", {"E2b-Sandbox-Id": NOBODY})),
        ("data: a port that is none", "client", 400, call("GET", "/", {"E2b-Sandbox-Id": NOBODY, "E2b-Sandbox-Port": "x"})),
        ("data: a signature that is wrong", "client", 401, call("GET", "/files?path=a&signature=hunter2-sign")),
        ("envd: a wrong token", "client", 401, call("POST", "/process.Process/List", unary | {"X-Access-Token": "no"}, "{}")),
        ("envd: a process that there is not", "client", 404, call(
            "POST", "/process.Process/SendSignal", unary, '{"process":{"pid":99999},"signal":"SIGNAL_SIGKILL"}')),
        ("envd: a program that there is not, streamed", "client", None, call("POST", "/process.Process/Start", stream[1], stream[0])),
        ("how old command lines build", "client", 400, call("POST", "/templates", key, "{}")),
        ("envd: a file that there is not", "client", 404, call("GET", "/files?path=/no/such", envd)),
        ("interpreter: a cell that is none", "client", 422, call(
            "POST", "/execute", inside | {"E2b-Sandbox-Port": "49999", "Content-Type": "application/json"}, "[]")),
        ("a port where nothing listens", "code", 502, call("GET", "/", inside | {"E2b-Sandbox-Port": "8764"})),
        ("what a program inside refuses", "code", 404, call("GET", "/none", web)),
    ]


def answers(server, sandbox):
    seen = []
    for what, layer, status, get in bad_requests(server, sandbox):
        got, headers, body = get()
        id_ = headers.get("X-Request-Id", "")
        found = until(lambda id_=id_: lines(server, "--request", id_)) if id_ else []
        fine = (got >= 400 or b"error" in body) and re.fullmatch("[a-z0-9]{20}", id_) and len(found) == 1
        if fine and body.startswith(b'{"code":') and b'"message"' in body and got != 200 and not headers.get(
                "Content-Type", "").startswith("application/connect"):
            told = json.loads(body)
            ours = what.startswith(("/v1:", "MCP:"))
            fine = told.get("requestId", None if ours else id_) == id_ or isinstance(told["code"], str)
        fine = fine and found[0]["layer"] == layer and found[0]["message"] and found[0]["level"] == "info"
        fine = fine and (status is None or found[0]["status"] == status)
        check(f"its line is found: {what}", fine, (got, id_, body[:300], found))
        seen.append(id_)
    none = subprocess.run([server.program, "logs", "--server", "--state", server.state, "--request", "nosuch"],
                          text=True, capture_output=True, check=False, timeout=30)
    check("a request without lines is told of", none.returncode == 0 and not none.stdout
          and "no lines of request 'nosuch'" in none.stderr, none)
    check("each has an id of its own", len(set(seen)) == len(seen), seen)
    found = lines(server, "--layer", "client", "--level", "info")
    check("a line about a request tells what was asked, by whom, and how long it took",
          any(line.get("method") == "GET" and line.get("path") == "/v2/sandboxes" and line["ms"] > 0
              and line["peer"] == "127.0.0.1" for line in found), found)
    traced = ask(server, "GET", "/nowhere", headers={
        "X-API-Key": server.key, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
    found = until(lambda: lines(server, "--request", traced[1]["X-Request-Id"]))
    check("and the trace that it belongs to", found and found[0]["trace"] == "4bf92f3577b34da6a3ce929d0e0e4736", found)


# ---- whose doing it was -----------------------------------------------------------------------------------


def entries(client, sandbox):
    return client.api("GET", f"/sandboxes/{sandbox['sandboxID']}/logs")[1]["logEntries"]


def layers(server, client, sandbox):
    client.run(sandbox, "exit 1")
    found = until(lambda: [e for e in entries(client, sandbox) if "exit status 1" in e["message"]])
    check("a program that fails is code", found and found[0]["fields"]["layer"] == "code"
          and found[0]["fields"]["source"] == "sandbox", found)
    made = [e for e in entries(client, sandbox) if "created" in e["message"]]
    check("what we do to a sandbox is sandbox", made and made[0]["fields"]["layer"] == "sandbox"
          and made[0]["fields"]["source"] == "server", made)
    shown = subprocess.run([server.program, "logs", sandbox["sandboxID"], "--layer", "code", "--url",
                            f"http://127.0.0.1:{server.port}"], env={"E2B_API_KEY": server.key}, text=True,
                           capture_output=True, check=False).stdout
    check("sandglass logs shows a layer alone", "exit status 1" in shown and "layer=code" in shown
          and "created from" not in shown, shown)

    found = until(lambda: lines(server, "--sandbox", sandbox["sandboxID"], "--layer", "sandbox", "--level", "info"))
    check("memory that is full is sandbox", found and "ran out of memory" in found[0]["message"]
          and found[0]["tenant"], found)
    check("and in the sandbox's own log", any(e["fields"]["layer"] == "sandbox" and "ran out of memory" in e["message"]
                                              for e in entries(client, sandbox)), entries(client, sandbox)[-5:])

    os.kill(pid_of(server, "sg-guard"), signal.SIGKILL)
    found = until(lambda: [line for line in lines(server, "--layer", "infrastructure")
                           if "guard 1 has ended unexpectedly" in line["message"]])
    check("a guard that dies is infrastructure", found and found[0]["level"] == "warn", found)
    while (pid := pid_of(server, "sg-agent")) is not None:
        os.kill(pid, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        if client.api("GET", f"/sandboxes/{sandbox['sandboxID']}")[0] == 404:
            break
    found = lines(server, "--layer", "agent", "--sandbox", sandbox["sandboxID"])
    check("a sandbox whose first process dies is agent", found and "ended: its first process died" in found[0]["message"], found)


# ---- secrets ----------------------------------------------------------------------------------------------


def secrets(server, client, sandbox):
    """Things that a server knows and must not say."""
    kept = SECRETS | {"otlp_headers": "otlp-hunter2-otlp", "key": server.key, "token": sandbox["envdAccessToken"],
                      "traffic": sandbox.get("trafficAccessToken") or server.key}
    kept["tenant's"] = "tenant-hunter2-secret"
    client.api("PUT", "/v1/secrets/logs-test", {"value": kept["tenant's"], "hosts": ["example.test"]})
    client.api("POST", "/v1/tools/run_code", {"conversationId": "c", "pathId": "p", "code": "1 / 0"})
    ask(server, "GET", "/metrics", headers={"Authorization": "Bearer " + kept["metrics_token"] + "-wrong"})
    ask(server, "GET", "/metrics", headers={"Authorization": "Bearer " + kept["metrics_token"]})
    server.process.send_signal(signal.SIGHUP)
    until(lambda: "the settings were reloaded" in logs(server))
    return kept


def untold(server, kept, said):
    with open(f"{server.state}/log/server.log", encoding="utf-8") as file:
        text = file.read() + said
    for what, value in kept.items():
        check(f"not in the log: {what}", value not in text, [x for x in text.splitlines() if value in x][:2])
    check("nor what came in a query or a body", "hunter2" not in text,
          [x for x in text.splitlines() if "hunter2" in x][:3])
    check("though it says a lot", "\"level\":\"debug\"" in text and len(text) > 10000, len(text))


def password(program, top):
    server = Server(program, f"{top}/state3", "--store", "postgresql://joe:pg-hunter2-pg@127.0.0.1:1/none", "--log-level", "debug")
    server.process = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--state", server.state, *server.options],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    trouble = until(lambda: [line for line in lines(server) if "ostgre" in line["message"] or "database" in line["message"]])
    server.end()
    said = server.process.stdout.read()
    server.process.wait(30)
    server.process.stdout.close()
    check("a database that is not there is told of, without its password", trouble and "hunter2" not in said + logs(server), said)


# ---- how much ---------------------------------------------------------------------------------------------


def flood(server, n):
    """So many requests that fail, over one connection; their ids."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    ids = []
    for _ in range(n):
        connection.request("GET", "/nowhere")
        answer = connection.getresponse()
        answer.read()
        ids.append(answer.headers["X-Request-Id"])
    connection.close()
    return ids


def followed(program, top):
    """A log that is put aside while somebody follows it."""
    server = Server(program, f"{top}/state2", "--log-size", "20K", "--log-rate", "0")
    server.start()
    aside = f"{server.state}/log/server.log.1"
    with open(f"{top}/followed", "w+", encoding="utf-8") as out, subprocess.Popen(
            [program, "logs", "--server", "-f", "-n", "1", "--json", "--state", server.state], stdout=out) as follower:
        ids = []
        until(lambda: os.path.getsize(f"{top}/followed") > 0)
        for _ in range(2):
            before = os.stat(aside).st_ino if os.path.exists(aside) else 0
            ids += flood(server, 120)
            until(lambda before=before: os.path.exists(aside) and os.stat(aside).st_ino != before)
        ids += flood(server, 5)

        def shown():
            out.seek(0)
            return [json.loads(line).get("request") for line in out.read().splitlines()]

        until(lambda: ids[-1] in shown())
        follower.terminate()
        check("logs -f shows what comes, over the file's being emptied, each once and in order",
              [id_ for id_ in shown() if id_] == ids, (len(shown()), len(ids)))
    sizes = os.path.getsize(f"{server.state}/log/server.log"), os.path.getsize(aside)
    check("the file does not grow without end", all(size < 60 * 1024 for size in sizes), sizes)
    modes = [oct(os.stat(f"{server.state}/log{name}").st_mode & 0o777) for name in ("", "/server.log", "/server.log.1")]
    check("and is root's alone", modes == ["0o700", "0o600", "0o600"], modes)
    both = [line.get("request") for line in lines(server)]
    check("logs shows both files, the older first", both[-5:] == ids[-5:] and len(both) > 100, both[-8:])
    check("-n is about the last", [line.get("request") for line in lines(server, "-n", "3")] == ids[-3:])
    check("--since leaves out what is older", lines(server, "--since", "2099-01-01T00:00:00Z") == []
          and len(lines(server, "--since", "1h")) == len(both))
    shown = logs(server, "-n", "1").rstrip("\n")
    check("for people there is a line with columns, without colours in a file", re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  INFO   client          .*  request=" + ids[-1] + ".*", shown), shown)
    server.stop()


def limited(program, top):
    server = Server(program, f"{top}/state4", "--log-rate", "5")
    server.start()
    flood(server, 200)
    found = lines(server)
    held = [line for line in found if "suppressed" in line["message"]]
    check("a flood is cut off, and that is told", len(found) < 60 and held and held[0]["level"] == "warn", len(found))
    server.stop()
    server = Server(program, f"{top}/state5", "--log-size", "0", "--log", "text")
    server.start()
    flood(server, 1)
    server.end()
    said = server.process.stderr.read()
    server.ended()
    check("without a size there is no file", not os.path.exists(f"{server.state}/log"))
    check("as text it is logfmt", re.search(
        r'^time=\S+Z level=info layer=client request=[a-z0-9]{20} method=GET path=/nowhere peer=127\.0\.0\.1 '
        r'status=401 ms=[\d.]+ msg="Invalid API key: .*"$', said, re.M), said)


def main():
    program, top = sys.argv[1:]
    config = f"{top}/conf"
    with open(config, "w", encoding="utf-8") as file:
        file.write("".join(f"{name} = {value}\n" for name, value in SECRETS.items())
                   + "otlp_endpoint = http://127.0.0.1:1\nlangfuse_host = http://127.0.0.1:1\n"
                   "langfuse_public_key = pk-lf-1\nwebhook_url = http://127.0.0.1:1/hook\n")
    os.chmod(config, 0o600)
    server = Server(program, f"{top}/state", "--config", config, "--log-level", "debug", "--sandbox-memory", "256M",
                    "--sandbox-disk", "64M")
    server.start()
    client = Client(server)
    sandbox = client.create(secure=True)
    client.spawn(sandbox, "python3 -m http.server 8765 --directory /tmp")
    headers = {"E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "8765"}
    until(lambda: client.raw("GET", "/", headers=headers)[0] == 200)
    client.run(sandbox, "python3 -c 'x = bytes([1]) * (1 << 30)'") # what comes of it is looked at later
    answers(server, sandbox)
    layers(server, client, sandbox)
    kept = secrets(server, client, sandbox)
    server.end()
    said = server.process.stderr.read()
    server.ended()
    untold(server, kept, said)
    password(program, top)
    followed(program, top)
    limited(program, top)


main()
