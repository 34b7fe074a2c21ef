"""Attacks by bytes: what is no TLS and no HTTP, from inside and from servers; servers and proxies that hang, reset, lie
and never end. The guard outlives all of it and does not grow."""
import unittest

import attack
from attack import host, world

NAMES = {"allowOut": ["a.test", "*.b.test"], "denyOut": ["0.0.0.0/0"]}
RULES = NAMES | {"rules": {"a.test": [{"transform": {"headers": {"X-Rule": "1"}}}]}}
GROWTH_MIB = 24
# /bad/KIND of the bed
BAD = ("two-lengths", "length-and-chunks", "length", "negative-length", "huge-length", "chunk-size", "chunk-huge",
       "chunk-end",
       "coding", "fold", "bare-lf", "bare-cr", "nul", "space-colon", "no-status", "status", "version", "not-http",
       "switch",
       "short-body", "long-line")


def setUpModule():
    attack.begin()


class Case(attack.Case):
    def setUp(self):
        super().setUp()
        self.rss = host.rss_mib(self.guard)

    def tearDown(self):
        self.assertLess(host.rss_mib(self.guard) - self.rss, GROWTH_MIB, "the guard has grown")
        super().tearDown()


class FromInside(Case):
    HELLOS = """
good = hello("a.test")
def record(kind, data, version=b"\\3\\1"):
    return bytes([kind]) + version + struct.pack(">H", len(data)) + data
body = good[5:]
messages = {
    "empty record": record(22, b""), "many empty records": record(22, b"") * 3000, "alert first": record(21, b"\\2\\0"),
    "data first": record(23, b"x" * 100), "long record": b"\\x16\\3\\1\\xff\\xff" + bytes(70000),
    "cut": good[:100], "server hello": record(22, b"\\2" + body[1:]),
    "length over": record(22, body[:1] + b"\\xff\\xff\\xff" + body[4:]),
    "length under": record(22, body[:1] + b"\\0\\0\\5" + body[4:]),
    "ssl2": b"\\x80\\x2e\\1\\0\\2\\0\\x15\\0\\0\\0\\x10" + bytes(40),
    "version 9": record(22, body, b"\\3\\x09"), "extensions over": good[:-1],
    "two names": hello(None, server_name(b"a.test") + server_name(b"evil.test")),
    "name of no bytes": hello(None, server_name(b"")),
    "name list over": hello(None, extension(0, b"\\xff\\xff\\0\\0\\6a.test")),
    "two in one list": hello(None, extension(0, struct.pack(">H", 21) + b"\\0\\0\\6a.test" + b"\\0\\0\\x09evil.test")),
    "nul in name": hello(None, server_name(b"a.test\\0.evil.test")), "dot alone": hello(None, server_name(b".")),
    "another kind of name": hello(None, extension(0, b"\\0\\x09\\1\\0\\6a.test")),
    "noise": b"\\x16\\3\\1" + bytes(i * 73 % 251 for i in range(3000)),
    "session id over": good[:43] + b"\\xff" + good[44:],
    "then plain": good + b"GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n",
}
show(dict(zip(messages, map(len, together(tcp, [(sys.argv[1], 443, data) for data in messages.values()])))))
"""
    REQUESTS = [
        b"GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET "
        b"/evil HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhelloGET /evil "
        b"HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5, 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked, identity\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test\r\nX: \0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.test\r\nX\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test\r\n: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n\tz: w\r\n\r\n", b"GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: a.test\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: a.test\r\n\r\n", b"GET /\x7f\x01 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"Host: a.test\r\n\r\n",
        b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test\r\nX: y\nZ: w\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.test\r\nX: y\rZ: w\r\n\r\n",
    ]

    def test_malformed_tls(self, user):
        for policy in (NAMES, RULES):
            sandbox = self.sandbox(network=policy)
            with self.only(world.A, names=["a.test"]) as seen:
                got = self.probe(sandbox, "WAIT_S = 0.7\n" + self.HELLOS, user, world.EVIL)
            # What got through to the server at all is a whole hello for a.test.
            self.assertEqual({h["sni"] for h in seen.lines("web", "hello")} - {"a.test"}, set())
            self.assertEqual([n for n in ("two names", "two in one list", "nul in name",
                                          "server hello") if got[n] > 100], [])

    def test_malformed_http(self, user):
        for policy in (NAMES, RULES):
            sandbox = self.sandbox(network=policy)
            code = f"""
fake = resolve("a.test")[1][0]
show(together(tcp, [(host, 80, request) for request in {self.REQUESTS!r} for host in (fake, {world.EVIL!r})]))
"""
            with self.only(world.A, names=["a.test"]) as seen:
                for i, answer in enumerate(self.probe(sandbox, "WAIT_S = 1.5\n" + code, user)):
                    self.assertNotIn(" 200 ", answer, self.REQUESTS[i // 2][:200])
            self.assertEqual([r["head"] for r in seen.requests(local=world.A) if r["target"] != "/"], [],
                             "no second request")

    def test_malformed_http_inside_tls(self, user):
        sandbox = self.sandbox(network=RULES)
        code = f"""
fake, context = resolve("a.test")[1][0], ssl.create_default_context()
def say(request):
    with connect(fake, 443) as s, context.wrap_socket(s, server_hostname="a.test") as t:
        t.sendall(request)
        return rest(t)
show(together(say, [(request,) for request in {self.REQUESTS!r}]))
"""
        with self.only(world.A, names=["a.test"]) as seen:
            for i, answer in enumerate(self.probe(sandbox, "WAIT_S = 1.5\n" + code, user)):
                self.assertNotIn(" 200 ", answer, self.REQUESTS[i][:200])
        self.assertEqual([r["head"] for r in seen.requests(local=world.A) if r["target"] != "/"], [])

    def test_nobody_reads_and_nobody_writes(self, user):
        """Slow readers of endless answers, requests that never end: memory stays."""
        sandbox = self.sandbox(network=RULES)
        code = """
fake, context = resolve("a.test")[1][0], ssl.create_default_context()
held = []
for i in range(20):
    s = connect(fake, 443)
    t = context.wrap_socket(s, server_hostname="a.test")
    t.sendall(b"GET /forever HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\n")
    held.append(t)
    p = connect(fake, 80)
    p.sendall(b"GET /forever HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\n")
    held.append(p)
    h = connect(fake, 80)
    h.sendall(b"POST /echo HTTP/1.1\\r\\nHost: a.test\\r\\nContent-Length: 100000000\\r\\n\\r\\n" + b"x" * 10000)
    held.append(h)
time.sleep(1)
show(True)
"""
        self.probe(sandbox, code, user)
        self.assertLess(host.rss_mib(self.guard) - self.rss, GROWTH_MIB)

    def test_one_that_takes_all_it_can_get(self, user):
        """Endless answers that are read as fast as they come: others have their turn."""
        sandbox, other = self.sandbox(network=RULES), self.sandbox(network=RULES)
        sandbox.spawn("for s in http https http https; do curl -s -m 60 -o /dev/null $s://a.test/forever & done; wait")
        self.assertTrue(attack.until(lambda: len(self.before.requests(target="/forever")) == 4))
        self.sh(other, "for i in 1 2 3 4 5; do curl -sS -m3 -o /dev/null https://a.test/who; done", user)
        self.sh(other, "for i in 1 2 3 4 5; do curl -sS -m3 -o /dev/null http://a.test/who || exit 1; done", user)


class FromOutside(Case):
    def test_answers_that_are_none(self, user):
        """Inspected: nothing passes that two readers would read differently."""
        sandbox = self.sandbox(network=RULES)
        code = f"""
fake, context = resolve("a.test")[1][0], ssl.create_default_context()
show({{kind: [attempt(http, fake, 80, "a.test", f"/bad/{{kind}}"),
             attempt(https, fake, "a.test", None, 443, context, f"/bad/{{kind}}")]
      for kind in {BAD!r}}})
"""
        with self.only(world.A, names=["a.test"]):
            got = self.probe(sandbox, "WAIT_S = 4\n" + code, user)
        for kind, answers in got.items():
            for answer in answers:
                if kind in ("short-body", "chunk-end", "chunk-size", "chunk-huge"):  # the head was good
                    self.assertFalse(answer.endswith("0\r\n\r\n"), kind)
                else:
                    self.assertNotIn("hello", answer, kind)
                    self.assertTrue("HTTP/1.1 502" in answer or answer.isupper() or not answer, f"{kind}: {answer}")

    def test_answers_that_are_strange_and_whole(self, user):
        sandbox = self.sandbox(network=RULES)
        for url in ("http://a.test", "https://a.test"):
            self.assertEqual(self.sh(sandbox, f"curl -sS -m20 {url}/bad/slow-head", user), "hello")
            self.assertEqual(self.sh(sandbox, f"curl -sS -m20 {url}/bad/two-answers", user), "ok")
            self.assertEqual(self.sh(sandbox, f"curl -sS -m20 {url}/until-close/5", user), "xxxxx")
            status, out = sandbox.sh(f"curl -sS -m20 {url}/bad/hints", user=user)
            self.assertTrue((status, out) == (0, "hello") or "sandglass: " in out, out)

    # What curl says of each, all at once; 0 if the guard has an answer of its own.
    ENDS = {"reset": (0, 52, 56), "reset/half": (18, 56), "close": (0, 52, 56), "hang": (28,), "forever": (28,),
            "bad/endless-head": (0, 27, 28, 52, 56)}

    def test_servers_that_reset_hang_and_never_end(self, user):
        for policy, schemes in ((NAMES, "http"), (RULES, "http https")):
            sandbox = self.sandbox(network=policy)
            out = self.sh(sandbox, f"for p in {' '.join(self.ENDS)}; do for s in {schemes}; do (c=$(curl -s -m1.5 -o "
                               f"/dev/null -w "
                          "'%{http_code}' $s://a.test/$p); echo \"$p $? $c\") & done; done; wait", user)
            lines = [line.split() for line in out.splitlines()]
            self.assertEqual(len(lines), len(self.ENDS) * len(schemes.split()))
            for path, status, code in lines:
                self.assertIn(int(status), self.ENDS[path], f"{path} {schemes}")
                self.assertTrue(status != "0" or code == "502", f"{path}: {code}")
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user))

    def test_proxies_that_do_not_work(self, user):
        for port, kind in world.BROKEN_PROXIES.items():
            sandbox = self.sandbox(network={"egressProxy": {"address": f"{world.PROXY}:{port}", "username": "x",
                                                            "password": "y"}})
            with self.only(world.PROXY, names=["a.test"]):
                status, out = sandbox.sh("curl -sS -m2 http://a.test/who", user=user)
                self.assertNotIn('"who"', out, kind)

    def test_a_proxy_is_judged_like_all_others(self, user):
        """Addresses that are never dialled are not dialled as proxies either; nor reached through one."""
        for address in ("10.9.9.9:80", "169.254.169.254:80", "127.0.0.1:80", f"{world.EDGE4}:80",
                        "private.rebind.test:80", "host.rebind.test:80"):
            body = {"templateID": "base", "timeout": 60, "network": {"egressProxy": {"address": address}}}
            answer = attack.site.api("POST", "/v2/sandboxes", body)
            if answer.status == 400:
                continue
            sandbox = attack.lib.Sandbox(attack.site, answer.json())
            self.addCleanup(sandbox.kill)
            with self.only(names=["a.test", "private.rebind.test", "host.rebind.test"]):
                self.assertNotIn('"who"', sandbox.sh("curl -sS -m5 http://a.test/who", user=user)[1])
        good = {"address": f"proxy.test:{world.PROXY_PORT}", "username": world.PROXY_USER,
                "password": world.PROXY_PASSWORD}
        sandbox = self.sandbox(network={"egressProxy": good})
        self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user))
        with self.only(world.PROXY, names=["proxy.test"]):
            out = sandbox.sh("curl -sS -m5 http://10.9.9.9/; curl -sS -m5 http://169.254.169.254/", user=user)[1]
            self.assertNotIn('"who"', out)
        self.assertFalse([p for p in attack.bed.proxied() if p.startswith(("10.", "169."))])


if __name__ == "__main__":
    unittest.main()
