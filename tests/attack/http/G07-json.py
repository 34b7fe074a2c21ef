"""G07: bodies that are too large, too deep or no JSON, and numbers that are none."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, rss_mib  # noqa: E402
from server import Site, answered  # noqa: E402

BODIES = {
    "deep arrays": "[" * 100000,
    "deep objects": '{"a":' * 100000 + "1" + "}" * 100000,
    "deep metadata": '{"templateID":"base","metadata":' + '{"a":' * 500 + "1" + "}" * 500 + "}",
    "an array": "[]",
    "a string": '"base"',
    "null": "null",
    "cut": '{"templateID":"base"',
    "trailing": '{"templateID":"base"} x',
    "two objects": '{"templateID":"base"}{"templateID":"base"}',
    "duplicate keys": '{"templateID":"base","templateID":"base"}',
    "lone surrogate": '{"templateID":"\\ud800"}',
    "lone surrogate in metadata": '{"templateID":"base","metadata":{"a":"\\udfff"}}',
    "bad UTF-8": b'{"templateID":"base","metadata":{"a":"\xff"}}',
    "overlong UTF-8": b'{"templateID":"base","metadata":{"a":"\xc0\x80"}}',
    "NUL": b'{"templateID":"ba\x00se"}',
    "escaped NUL": '{"templateID":"base","envVars":{"A":"x\\u0000y"}}',
    "comment": '{"templateID":"base"/**/}',
    "single quotes": "{'templateID':'base'}",
    "NaN": '{"templateID":"base","timeout":NaN}',
    "1e999": '{"templateID":"base","timeout":1e999}',
    "a huge number": '{"templateID":"base","timeout":' + "9" * 5000 + "}",
    "template is a number": '{"templateID":1}',
    "metadata is a list": '{"templateID":"base","metadata":[]}',
    "metadata of numbers": '{"templateID":"base","metadata":{"a":1}}',
    "envVars with =": '{"templateID":"base","envVars":{"A=B":"x"}}',
    "envVars without a name": '{"templateID":"base","envVars":{"":"x"}}',
}
TIMEOUTS = ("-1", "0", "2147483648", "9223372036854775807", "9223372036854775808",
            "18446744073709551616", "1.5", '"9"', "true", "[]", "{}", "-0.0", "1e400", "null")
MIB = 1 << 20


def bodies(site):
    wrong = []
    for path in ("/v2/sandboxes", "/sandboxes"):
        for what, body in BODIES.items():
            wrong += answered(f"{what} to {path}", site.api("POST", path, body), 4)
    return wrong


def timeouts(site, sandbox):
    wrong = []
    for value in TIMEOUTS:
        a = site.api("POST", "/v2/sandboxes", f'{{"templateID":"base","timeout":{value}}}')
        if value == "null":  # as if it were not there
            wrong += answered("create with null", a, 201, 4)
        else:
            wrong += answered(f"create with {value}", a, 4)
        if value not in ("0", "-0.0", "null"):
            a = site.api("POST", f"/sandboxes/{sandbox.id}/timeout", f'{{"timeout":{value}}}')
            wrong += answered(f"timeout {value}", a, 4)
    return wrong


def large(site):
    wrong, before = [], rss_mib(site.front())
    for length in (8 * MIB, 2 << 30, 1 << 62):
        head = (f"POST /v2/sandboxes HTTP/1.1\r\nHost: h\r\nX-API-Key: {site.key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n")
        got = site.say(head.encode() + b" " * 4 * MIB, timeout=15)
        if not got.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 400 ")):
            wrong.append(f"a body of {length}: {got[:100]}")
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    head = (f"POST /v2/sandboxes HTTP/1.1\r\nHost: h\r\nX-API-Key: {site.key}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    got = site.say(head.encode() + chunk * 64, timeout=15)
    if not got.startswith(b"HTTP/1.1 413 "):
        wrong.append(f"an endless body: {got[:100]}")
    for _ in range(20):
        site.api("POST", "/v2/sandboxes", BODIES["deep objects"])
    grown = rss_mib(site.front()) - before
    return wrong + ([f"the front has grown by {grown:.0f} MiB"] if grown > 24 else [])


def queries(site):
    wrong = []
    for query in ("limit=0", "limit=-1", "limit=101", "limit=x", "limit=1e3", "limit=" + "9" * 50,
                  "nextToken=x", "state=nonsense", "nextToken=" + "A" * 4000):
        a = site.api("GET", f"/v2/sandboxes?{query}")
        wrong += answered(query[:30], a, 400)
    for query in ("start=-1", "start=x", "end=" + "9" * 40):
        wrong += answered(query, site.api("GET", f"/sandboxes/{sandbox.id}/metrics?{query}"), 4)
    return wrong


with Site() as site:
    sandbox = site.create()
    check("G07 what is no request is refused", bodies(site))
    check("G07 timeouts that are none are refused", timeouts(site, sandbox))
    check("G07 large bodies are refused, in little memory", large(site))
    check("G07 queries that are none are refused", queries(site))
    check("G07 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
