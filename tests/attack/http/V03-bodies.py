"""V03: bodies that cost far more than they bring: deep, heavy, endless, slow, and kept for long."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Mcp, Paths, RUN_ANALYSIS, RUN_CODE, grown  # noqa: E402
from host import check, finish, poll, rss_mib  # noqa: E402
from server import Site, answered  # noqa: E402

MIB = 1 << 20
MANY, SMALL = 24, "{}," * 350_000  # a tree of these takes a hundred times their bytes
PLACE = '"conversationId":"c","pathId":"p"'
BODIES = {
    "deep": '{%s,"code":"1","x":' % PLACE + "[" * 100_000,
    "deep parameters": '{%s,"analysisType":"custom","code":"1","parameters":' % PLACE
                       + "[" * 2000 + "]" * 2000 + "}",
    "many small values": '{%s,"analysisType":"custom","code":"1","parameters":[%s{}]}' % (PLACE, SMALL),
    "a key twice": '{%s,"code":"1","code":"2"}' % PLACE,
    "a name twice": '{%s,"conversationId":"d","code":"1"}' % PLACE,
    "a key twice, deep": '{%s,"analysisType":"custom","code":"1","parameters":{"a":1,"a":2}}' % PLACE,
    "NaN": '{%s,"code":"1","timeoutSeconds":NaN}' % PLACE,
    "1e999": '{%s,"code":"1","timeoutSeconds":1e999}' % PLACE,
    "a negative time": '{%s,"code":"1","timeoutSeconds":-1}' % PLACE,
    "a ttl of years": '{%s,"ttlSeconds":99999999}' % PLACE,
    "a ttl beyond 64 bits": '{%s,"ttlSeconds":99999999999999999999}' % PLACE,
    "an unknown field": '{%s,"code":"1","sandboxId":"x"}' % PLACE,
    "NUL in code": '{%s,"code":"a\\u0000b"}' % PLACE,
    "code over the limit": '{%s,"code":"%s"}' % (PLACE, "#" * 103_000),
    "no code": '{%s,"code":""}' % PLACE,
    "code as a list": '{%s,"code":["1"]}' % PLACE,
    "an unknown language": '{%s,"code":"1","language":"../bin/sh"}' % PLACE,
    "a variable with =": '{%s,"code":"1","envs":{"A=B":"x"}}' % PLACE,
    "a variable that is long": '{%s,"code":"1","envs":{"A":"%s"}}' % (PLACE, "x" * (200 << 10)),
    "parameters over the limit": '{%s,"analysisType":"custom","code":"1","parameters":"%s"}'
                                 % (PLACE, "x" * (MIB + 10)),
    "an array": "[]", "cut": '{"code":', "nothing": "",
}


def refused(site, paths):
    wrong = []
    for what, body in BODIES.items():
        for target in (RUN_CODE, RUN_ANALYSIS, "/v1/execute"):
            wrong += answered(f"{what} to {target}", paths.ask("POST", target, body), 4)
        wrong += answered(f"{what} to PUT", paths.ask("PUT", "/v1/contexts", body), 4)
    m = Mcp(site)
    for what, text in (("deep", "[" * 2000 + "]" * 2000), ("deep objects", '{"a":' * 500 + "1" + "}" * 500),
                       ("many small values", "[" + "{}," * 2_600_000 + "{}]")):
        body = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%s}}' % text
        wrong += answered(f"{what} by MCP", m.post(body), 4)
    return wrong


def endless(site, paths):
    """More than a body may have, said so or not, and one that never comes."""
    wrong = []
    head = (f"POST {RUN_CODE} HTTP/1.1\r\nHost: h\r\nX-API-Key: {site.key}\r\n"
            "Content-Type: application/json\r\n")
    for more in ("Content-Length: 104857600\r\n", "Content-Length: 4611686018427387904\r\n"):
        got = site.say((head + more + "\r\n").encode() + b" " * 4 * MIB, timeout=15)
        wrong += [] if got.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 400 ")) else [f"{more}: {got[:80]}"]
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    got = site.say((head + "Transfer-Encoding: chunked\r\n\r\n").encode() + chunk * 100, timeout=15)
    return wrong + ([] if got.startswith(b"HTTP/1.1 413 ") else [f"100 MiB in chunks: {got[:80]}"])


def half_sent(site, paths, before):
    """As much as is allowed, but for the end: together they may not take what the server has."""
    body = b'{"code":"1","stdin":"' + b"x" * (15 * MIB)
    head = (f"POST /v1/execute HTTP/1.1\r\nHost: h\r\nX-API-Key: {site.key}\r\n"
            f"Content-Length: {len(body) + 100}\r\n\r\n").encode()
    clients = []
    for _ in range(MANY):
        s = site.connect(10)
        try:
            s.sendall(head + body)
        except OSError:
            pass  # cut off: there were too many
        clients.append(s)
    wrong = grown(site, before, 300, f"{MANY} bodies of 15 MiB that are not whole")
    for s in clients:
        s.close()
    return wrong + paths.trouble()


def kept(site, paths, before):
    """Code that runs for long does not keep the rest of its request."""
    junk = "[" + "1," * 240_000 + "1]"
    clients = [paths.post(RUN_ANALYSIS, json.dumps({
        "conversationId": "kept", "pathId": str(i % 4), "analysisType": "custom",
        "code": "import time\ntime.sleep(8)", "parameters": "JUNK"}).replace('"JUNK"', junk).encode())
        for i in range(MANY)]
    mcp = Mcp(site, conversation="kept")
    body = json.dumps(mcp.message("tools/call", {
        "name": "run_code", "arguments": {"code": "import time\ntime.sleep(8)", "pathId": "0"},
        "_meta": {"junk": "JUNK"}})).replace('"JUNK"', '"' + "x" * 7 * MIB + '"').encode()
    for _ in range(MANY):
        s = site.connect()
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: h\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in mcp.headers().items()).encode()
            + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        clients.append(s)
    time.sleep(1.5)  # until all of them are read
    wrong = grown(site, before, 96, f"{len(clients)} calls that wait")
    for s in clients:
        s.close()
    return wrong


def slow(site, paths):
    """Bytes that come one by one, to all of the routes with a body."""
    clients = []
    for target in (RUN_CODE, "/mcp", "/v1/execute", "/v1/contexts/branch"):
        s = site.connect()
        s.sendall(f"POST {target} HTTP/1.1\r\nHost: h\r\nX-API-Key: {site.key}\r\n"
                  "Content-Length: 100000\r\n\r\n{".encode())
        clients.append(s)
    wrong = paths.trouble()
    for s in clients:
        s.close()
    return wrong


with Site("--conversation-contexts", "10") as site:
    paths = Paths(site)
    wrong = paths.trouble()
    before = rss_mib(site.front())
    check("V03 what is no request is refused", wrong + refused(site, paths)
          + grown(site, before, 48, "after requests that were refused"))
    check("V03 endless bodies are refused", endless(site, paths)
          + grown(site, before, 48, "after endless bodies"))
    check("V03 bodies that do not end share what there is for them", half_sent(site, paths, before))
    poll(lambda: not grown(site, before, 48, ""))
    check("V03 code that runs does not keep its request", kept(site, paths, before))
    check("V03 slow bodies hold nobody up", slow(site, paths))
    check("V03 the memory comes back",
          [] if poll(lambda: not grown(site, before, 64, ""), 5) else grown(site, before, 64, "afterwards"))
    check("V03 the server goes on", site.trouble() + paths.trouble())
finish()
