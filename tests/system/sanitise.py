"""What sandboxes say on its way out of a real server: the steps behind sanitise.sh."""
import http.client
import json
import pathlib
import signal
import subprocess
import sys

from server_client import Client, Server, until

SAYS = "ann@example.com from 10.1.2.3"
MARKS = "[EMAIL] from [IP_ADDRESS]"
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print(f"# {detail}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def tool(client, code, **fields):
    return client.api("POST", "/v1/tools/run_code",
                      {"conversationId": "c", "pathId": "main", "code": code} | fields)


def said(client, code, **fields):
    status, answer = tool(client, code, **fields)
    return answer["stdout"] if status == 200 else (status, answer)


def manage(server, *words):
    return subprocess.run([server.program, *words, "--state", server.state], text=True,
                          capture_output=True, check=False)


def tools(client):
    status, answer = tool(client, f"import sys\nprint('{SAYS}')\nprint('{SAYS}', file=sys.stderr)\n'{SAYS}'")
    check("output is sanitised", status == 200 and answer["stdout"] == MARKS + "\n", answer)
    check("and what goes to standard error", answer["stderr"] == MARKS + "\n", answer)
    check("and the value of the cell", MARKS in answer["results"][0]["text"], answer)
    check("what was found is told", answer["sanitised"] == {"email": 3, "ip_address": 3}, answer)
    _, answer = tool(client, f"raise ValueError('{SAYS}')")
    check("errors are sanitised", MARKS in answer["error"]["value"]
          and "ann@" not in json.dumps(answer), answer)
    _, answer = tool(client, f"{{'mail': '{SAYS}', 'card': 4111111111111111}}")
    check("values stay values", "[EMAIL]" in json.dumps(answer["results"]), answer)
    _, answer = tool(client, "import sys, time\nfor c in 'ann@example.com\\n':\n"
                     "    sys.stdout.write(c); sys.stdout.flush()")
    check("also what is said letter by letter", "ann@example.com" not in answer["stdout"], answer)
    _, answer = tool(client, "print('nothing to find in 1.2.3 of 2024-03-12')")
    check("what is ordinary stays, and nothing is told", "sanitised" not in answer
          and answer["stdout"] == "nothing to find in 1.2.3 of 2024-03-12\n", answer)
    status, answer = client.api("POST", "/v1/execute", {"code": f"print('{SAYS}')"})
    check("a program without a context is sanitised", answer["stdout"] == MARKS + "\n"
          and answer["sanitised"] == {"email": 1, "ip_address": 1}, answer)
    answer = mcp(client, f"print('{SAYS}')")
    check("and what MCP hands on", MARKS.encode() in answer and b"ann@" not in answer, answer[:300])


def mcp(client, code):
    """What the tool answers over MCP."""
    connection = http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=60)
    headers = {"X-API-Key": client.server.key, "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream"}

    def ask(method, params):
        connection.request("POST", "/mcp", json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers)
        answer = connection.getresponse()
        return answer.headers, answer.read()

    told, _ = ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                 "clientInfo": {"name": "test", "version": "1"}})
    headers["Mcp-Session-Id"] = told["Mcp-Session-Id"]
    _, body = ask("tools/call", {"name": "run_code", "arguments": {
        "conversationId": "c", "pathId": "main", "code": code}})
    connection.close()
    return body


def calls(client):
    check("a call can ask for counting alone", said(client, f"print('{SAYS}')", sanitise="report-only")
          == SAYS + "\n")
    check("or for nothing", said(client, f"print('{SAYS}')", sanitise="off") == SAYS + "\n")
    status, answer = tool(client, "1", sanitise="sometimes")
    check("but for nothing else", status == 400 and "sanitise" in answer["message"], answer)


def raw_streams(client):
    sandbox = client.create()
    check("sandboxes of E2B's API are left alone", client.run(sandbox, f"echo {SAYS}")[1] == SAYS + "\n")
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")


def tenants(server, client):
    check("a tenant has a word", manage(server, "tenant", "set", "default", "--sanitise", "enforce",
                                        "--sanitise-always").returncode == 0)
    status, answer = tool(client, "1", sanitise="off")
    check("and can forbid to switch it off", status == 403 and "off" in answer["message"], answer)
    check("other words are its calls'", said(client, f"print('{SAYS}')", sanitise="report-only")
          == SAYS + "\n")
    sandbox = client.create()
    until(lambda: "[EMAIL]" in client.run(sandbox, f"echo {SAYS}")[1], 5, 0.1)
    check("its word counts for E2B's API too", client.run(sandbox, f"echo {SAYS}")[1] == MARKS + "\n")
    check("with what has no end of a line", client.run(sandbox, f"printf '{SAYS}'")[1] == MARKS)
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    manage(server, "tenant", "set", "default", "--sanitise", "default")
    key = manage(server, "key", "create", "--sanitise", "report-only").stdout.strip()
    own, server.key = server.key, key
    check("so has a key", said(client, f"print('{SAYS}')") == SAYS + "\n")
    server.key = own
    check("which is its own", said(client, f"print('{SAYS}')") == MARKS + "\n")


def patterns(server, client, file):
    check("patterns of the operator are used", said(client, "print('EMP-123456', 'ann@example.com')")
          == "[BADGE] [EMAIL]\n")
    file.write_text("project = Atlas\n")
    server.process.send_signal(signal.SIGHUP)
    check("and read again", until(lambda: said(client, "print('Atlas EMP-123456')")
                                  == "[PROJECT] EMP-123456\n"))
    file.write_text("project = (\n")
    server.process.send_signal(signal.SIGHUP)
    check("a mistake leaves them as they were",
          not until(lambda: said(client, "print('Atlas')") != "[PROJECT]\n", 1))


def record(client):
    def look():
        status, answer = client.api("GET", "/v1/audit?kind=sanitise&limit=100")
        return status == 200 and len(answer.get("records", [])) > 3 and answer["records"]
    records = until(look, 10, 0.1) or []
    details = {(r.get("verdict"), r.get("detail")) for r in records}
    check("what was found is on record", ("deny", "email=1 ip_address=1") in details, details)
    check("also what was only counted", ("report", "email=1 ip_address=1") in details, details)
    check("and never the content", "ann@" not in json.dumps(records), records[:2])


def refuses_to_start(program, state, file):
    run = subprocess.run([program, "serve", "--listen", "127.0.0.1:0", "--state", state,
                          "--sanitise-patterns", file], text=True, capture_output=True,
                         timeout=60, check=False)
    check("a server does not start with a mistake in them", run.returncode != 0
          and "sanitise_patterns: line 1" in run.stderr, (run.returncode, run.stderr[-300:]))


def main(program, state):
    file = pathlib.Path(state + ".patterns")
    file.write_text("# ours\nbadge = EMP-[0-9]{6}\n")
    server = Server(program, state, "--sanitise-patterns", str(file))
    server.start()
    client = Client(server, 60)
    try:
        tools(client)
        calls(client)
        raw_streams(client)
        tenants(server, client)
        record(client)
        patterns(server, client, file)
    finally:
        server.stop()
    refuses_to_start(program, state + ".other", str(file))


if __name__ == "__main__":
    main(*sys.argv[1:])
