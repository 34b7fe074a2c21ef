"""Attacks on an allow-list of names: which names match it, and what a connection that says a name can reach.
E09 to E12, E16, E17."""
import json
import unittest

import attack
from attack import NAMES, world

# Where a connection goes that says a name, over each protocol that says one; it was going to nobody.
SAY = """
names = json.loads(sys.argv[1])
raw = [name.encode("latin-1").decode("unicode_escape").encode("latin-1") for name in names]
request = b"GET /who HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n"
hosts = together(tcp, [("93.184.216.99", 80, request % name) for name in raw])
# a TLS server that gets a ClientHello answers with more than an alert
hellos = [hello(None, server_name(name)) + b"\\x15\\3\\3\\0\\2\\2\\0" for name in raw]
snis = together(tcp, [("93.184.216.99", 443, data) for data in hellos])
show({name: [json.loads(host.partition("\\r\\n\\r\\n")[2])["who"] if '"who"' in host else None, len(sni) > 100]
      for name, host, sni in zip(names, hosts, snis)})
"""
ALLOWED = {"a.test": "a", "A.TEST": "a", "a.test.": "a", "x.b.test": "b", "x.y.b.test": "b", "X.b.TeSt": "b",
           " a.test ": "a", "xn--bcher-kva.b.test": "b", "_x.b.test": "b", "0.b.test": "b"}
DENIED = ["xa.test", "b.test", "a.test..", ".a.test", "a..test", "b.test.evil.test", "a.test.evil.test", "www.a.test",
          "a.test\\0.evil.test", "a.test\\0", "evil.test\\0.b.test", "*.b.test", "*", "", ".", "test",
          "b\\xfccher.b.test",
          "a.test evil.test", "evil.test#a.test", "evil.test@a.test", "a.test@evil.test",
          "a.test/evil.test", "x" * 64 + ".b.test", ".".join(["x" * 50] * 5) + ".b.test", "-", "a.test-", "a_test",
          "198.41.0.4", "0x7f.1", "[::1]", "a.test,evil.test", "%61.test", "a%2etest"]


def setUpModule():
    attack.begin()


class Matcher(attack.Case):
    def test_E09_exactly_what_is_listed(self, user):
        sandbox = self.sandbox(network=NAMES)
        with self.only(world.A, world.B, names=[n.lower().strip(". ") for n in ALLOWED]):
            got = self.probe(sandbox, SAY, user, f"'{json.dumps([*ALLOWED, *DENIED])}'")
        self.assertEqual({n: who for n, (who, _) in got.items() if who}, ALLOWED)
        # A dot at the end is for HTTP to say, or not; spaces around a name are HTTP's.
        self.assertEqual({n for n, (_, tls) in got.items() if tls} | {"a.test."}, set(ALLOWED) - {" a.test "})

    def test_E09_dns_answers_the_same(self, user):
        sandbox = self.sandbox(network=NAMES)
        names = ["a.test", "A.tEsT", "x.b.test", "x.y.b.test", "xa.test", "b.test", "www.a.test", "evil.test",
                 "a.test.evil.test", "b.test.evil.test", "test", "*.b.test"]
        code = f"show({{name: resolve(name) for name in {names!r}}})"
        with self.only(names=["a.test", "x.b.test", "x.y.b.test"]):
            got = self.probe(sandbox, code, user)
        self.assertEqual({n for n, answer in got.items() if answer[0] == 0},
                         {"a.test", "A.tEsT", "x.b.test", "x.y.b.test"})
        self.assertEqual({answer[0] for answer in got.values()}, {0, 5})
        fakes = {a for _, addresses in got.values() for a in addresses}
        self.assertTrue(fakes and all(a.startswith(("198.18.", "198.19.")) for a in fakes), fakes)


class Spoofs(attack.Case):
    def test_E10_a_name_goes_to_where_it_is(self, user):
        sandbox = self.sandbox(network=NAMES)
        with self.only(world.A, names=["a.test"]) as seen:
            out = self.sh(sandbox, f"echo | timeout 20 openssl s_client -connect {world.EVIL}:443 "
                          "-servername a.test 2>&1", user)
            self.assertIn("CN = a.test", out)
        self.assertEqual({r["local"] for r in seen.reached(world.A, world.EVIL)}, {world.A})

    def test_E10_nor_to_where_the_sandbox_says(self, user):
        sandbox = self.sandbox(network=NAMES)
        with self.only(world.A, names=["a.test"]):
            out = self.sh(sandbox, f"curl -ksS -m10 --resolve a.test:443:{world.EVIL} https://a.test/who; "
                          f"curl -ksS -m10 --connect-to a.test:80:{world.EVIL}:80 http://a.test/who", user)
            self.assertEqual(out.count('"who": "a"'), 2)
        if user == "root":
            with self.only(world.A, names=["a.test"]):
                out = self.sh(sandbox, f"echo '{world.EVIL} a.test' >>/etc/hosts && curl -ksS -m10 https://a.test/who",
                              user)
                self.assertIn('"who": "a"', out)

    def test_E11_host_on_any_port(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = f"show([attempt(http, {world.EVIL!r}, *to) for to in ((80, 'a.test'), (8080, 'a.test:8080'))])"
        with self.only(world.A, names=["a.test"]):
            for answer in self.probe(sandbox, code, user):
                self.assertIn('"who": "a"', answer)

    def test_E11_two_readers_would_differ(self, user):
        sandbox = self.sandbox(network=NAMES)
        heads = [b"GET /who HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nHost: evil.test\r\nHost: a.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nHost: a.test\r\nhOST: a.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nHost: a.test:80@evil.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nHost: a.test evil.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nHost : a.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\n Host: a.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nX: y\r\n Host: evil.test\r\nHost: a.test\r\n\r\n",
                 b"GET http://evil.test/who HTTP/1.1\r\nHost: a.test\r\n\r\n",
                 b"GET http://a.test/who HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                 b"GET http://evil.test@a.test/who HTTP/1.1\r\nHost: a.test\r\n\r\n",
                 b"GET http://a.test@evil.test/who HTTP/1.1\r\nHost: a.test\r\n\r\n",
                 b"GET //evil.test/who HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                 b"GET /who HTTP/1.1\nHost: a.test\n\n",
                 b"GET /who HTTP/1.1\r\nHost: evil.test\rHost: a.test\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nHost: a.test\0\r\n\r\n",
                 b"GET /who HTTP/1.1\r\n\r\n", b"GET /who\r\n\r\n", b"GET /who HTTP/1.0\r\n\r\n",
                 b"GET /who HTTP/2.0\r\nHost: a.test\r\n\r\n",
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        code = f"show([attempt(tcp, {world.EVIL!r}, 80, head) for head in {heads!r}])"
        with self.only(names=["a.test"]) as seen:
            got = self.probe(sandbox, code, user)
            self.assertEqual([(h, g) for h, g in zip(heads, got) if "who" in g], [])
        self.assertEqual([r for r in seen.requests() if r["who"] != "registry"], [])

    def test_E12_no_name_in_tls(self, user):
        sandbox = self.sandbox(network=NAMES)
        with self.nothing():
            for host in (world.EVIL, world.A):
                out = sandbox.sh(f"echo | timeout 20 openssl s_client -connect {host}:443 -noservername 2>&1",
                                 user=user)[1]
                self.assertNotIn("BEGIN CERTIFICATE", out)
            status, _ = sandbox.sh(f"curl -ksS -m10 https://{world.A}/", user=user)
            self.assertNotEqual(status, 0)
        listed = self.sandbox(network={"allowOut": ["a.test", world.A], "denyOut": ["0.0.0.0/0"]})
        self.assertIn('"who": "a"', self.sh(listed, f"curl -ksS -m10 https://{world.A}/who", user))

    def test_E12_encrypted_hello(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = f"""
ech = extension(0xfe0d, b"\\0\\0\\1\\0\\1\\7" + struct.pack(">H", 32) + bytes(32) + struct.pack(">H", 128) + bytes(128))
fake = resolve("a.test")[1][0]
show([len(attempt(tcp, host, 443, hello("a.test", extra) + b"\\x15\\3\\3\\0\\2\\2\\0")) > 100
      for host in ({world.EVIL!r}, fake) for extra in (b"", ech)])
"""
        with self.only(world.A, names=["a.test"]):
            # an address that stands for the name has said it: browsers send such an extension always
            self.assertEqual(self.probe(sandbox, code, user), [True, False, True, True])
        self.on_record(sandbox, verdict="deny", rule="encrypted ClientHello")

    def test_E12_names_in_pieces(self, user):
        """A ClientHello over many records and segments is still read whole."""
        sandbox = self.sandbox(network=NAMES)
        code = f"""
def pieces(name):
    whole = hello(name)[5:]
    parts = [whole[i:i + 7] for i in range(0, len(whole), 7)]
    return b"".join(b"\\x16\\3\\1" + struct.pack(">H", len(p)) + p for p in parts) + b"\\x15\\3\\3\\0\\2\\2\\0"
show([len(attempt(tcp, {world.EVIL!r}, 443, pieces(name), 0.0003)) > 100 for name in ("a.test", "evil.test")])
"""
        with self.only(world.A, names=["a.test"]):
            self.assertEqual(self.probe(sandbox, code, user), [True, False])


class Fronting(attack.Case):
    """Names that are not allowed, at the address of one that is."""

    def test_E10_another_name_at_the_same_address(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = """
fake = resolve("a.test")[1][0]
show([attempt(https, fake, "www.a.test"), attempt(https, fake, "evil.test"), attempt(http, fake, 80, "www.a.test"),
      attempt(http, fake, 80, "evil.test"), attempt(https, fake, "a.test"), attempt(http, fake, 80, "a.test")])
"""
        with self.only(world.A, names=["a.test"]) as seen:
            *others, tls, plain = self.probe(sandbox, code, user)
            self.assertIn('"who": "a"', tls)
            self.assertIn('"who": "a"', plain)
            self.assertEqual([o for o in others if '"who"' in o], [])
        self.assertEqual({h["sni"] for h in seen.lines("web", "hello")} - {None}, {"a.test"})
        self.assertEqual({dict(r["headers"])["Host"] for r in seen.requests(local=world.A)}, {"a.test"})

    def test_E10_one_that_is_allowed_goes_to_its_own(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = """
fake = resolve("a.test")[1][0]
show([attempt(https, fake, "x.b.test"), attempt(http, fake, 80, "x.b.test")])
"""
        with self.only(world.B, world.A, names=["a.test", "x.b.test"]):
            for answer in self.probe(sandbox, code, user):
                self.assertNotIn('"who": "a"', answer)

    def test_E10_another_name_said_late_or_slowly(self):
        """Who waits until nobody looks any more is still looked at; so is who hides a name behind a long beginning."""
        sandboxes = {user: self.sandbox(network=NAMES) for user in attack.USERS}
        code = """
fake = resolve("a.test")[1][0]
END = b"\\x15\\3\\3\\0\\2\\2\\0"
request = b"GET /who HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n"
long = b"GET /who HTTP/1.1\\r\\nX: " + b"x" * 20000 + b"\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n"
padded = lambda name: hello(None, extension(21, bytes(17000)) + server_name(name)) + END
plain = lambda name: hello(name.decode()) + END

def late(port, data, at, wait):
    \"\"\"The first bytes, a pause, the others.\"\"\"
    with connect(fake, port) as s:
        s.sendall(data[:at])
        time.sleep(wait)
        with contextlib.suppress(ConnectionError):
            s.sendall(data[at:])
        return rest(s)

attempts = [(port, make(name), at, wait) for name in (b"evil.test", b"www.a.test")
            for port, make in ((80, request.__mod__), (80, long.__mod__), (443, plain), (443, padded))
            for at, wait in ((0, 0), (0, 0.6), (0, 3.5), (1, 0.6), (20, 0.6), (20, 3.5))]
show(together(late, attempts))
"""
        with self.only(world.A, names=["a.test"]) as seen:
            self.both(lambda user: self.probe(sandboxes[user], code, user))
        self.assertEqual({h["sni"] for h in seen.lines("web", "hello")} - {None}, set())
        self.assertEqual([r["head"][-60:] for r in seen.requests(local=world.A)], [])

    def test_E11_the_second_request(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = f"""
fake = resolve("a.test")[1][0]
first = b"GET /who HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\n"
second = b"GET /who HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n"
show([attempt(tcp, host, 80, first + second % name) for host in ({world.EVIL!r}, fake)
      for name in (b"a.test", b"evil.test", b"www.a.test", b"x.b.test")])
"""
        with self.only(world.A, names=["a.test"]) as seen:
            got = self.probe(sandbox, code, user)
        for i, answer in enumerate(got):
            self.assertEqual(answer.count('"who": "a"'), 1 if i % 4 else 2, answer)
            if i % 4:
                self.assertIn("HTTP/1.1 421 ", answer)
        self.assertEqual({dict(r["headers"])["Host"] for r in seen.requests(local=world.A)}, {"a.test"})
        self.on_record(sandbox, kind="request", verdict="deny", name="a.test")


class Tunnels(attack.Case):
    def test_E16_through_hosts_that_are_allowed(self, user):
        sandbox = self.sandbox(network=NAMES)
        heads = [b"CONNECT evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
                 b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
                 b"GET /who HTTP/1.1\r\nHost: a.test\r\nConnection: close, Upgrade, HTTP2-Settings\r\nUpgrade: "
                 b"h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
                 b"TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"\5\1\0", b"\4\1\0\x50\xc6\x29\0\4x\0",
                 b"SSH-2.0-x\r\n", b"\0\0\0\x08\x04\xd2\x16\x2f", b"EHLO a.test\r\n"]
        code = f"""
fake = resolve("a.test")[1][0]
show([attempt(tcp, host, 80, head) for host in ({world.EVIL!r}, fake) for head in {heads[:4]!r}] +
     [attempt(tcp, {world.EVIL!r}, 80, head) for head in {heads[4:]!r}])
"""
        with self.only(world.A, names=["a.test"]) as seen:
            got = self.probe(sandbox, code, user)
        for i, answer in enumerate(got):
            self.assertFalse("HTTP/1.1 101" in answer or "got it" in answer, answer)
            self.assertIs("HTTP/1.1 200" in answer, i in (2, 6), answer)  # what does not get HTTP/2 goes on without
        self.assertEqual({r["method"] for r in seen.requests()} - {"GET"}, set())
        self.assertEqual([r for r in seen.requests() if dict(r["headers"]).get("Upgrade")], [])
        self.on_record(sandbox, verdict="deny", protocol="http", rule="CONNECT through a name that is allowed")

    def test_E16_curl_and_its_proxies(self, user):
        sandbox = self.sandbox(network=NAMES)
        with self.only(world.A, names=["a.test"]):
            out = self.sh(sandbox, "for p in http://a.test:80 http://a.test:8080 socks5h://a.test:80 "
                               "socks4a://a.test:8080; do "
                          "for s in http https; do curl -ksS -m1.5 -x $p $s://evil.test/ & done; done; wait", user)
            self.assertNotIn('"who": "evil"', out)

    def test_E16_a_websocket_is_no_tunnel_elsewhere(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = """
head = ("GET /websocket HTTP/1.1\\r\\nHost: {}\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n")
frames = b"\\x81\\x85\\0\\0\\0\\0hello\\x88\\x80\\0\\0\\0\\0"
def talk(host, name):
    with connect(host, 80) as s:
        s.sendall(head.format(name).encode())
        got = b""
        while b"\\r\\n\\r\\n" not in got:
            got += exactly(s, 1)
        s.sendall(frames)
        return rest(s, got)
show([attempt(talk, "198.41.0.4", name) for name in ("a.test", "evil.test")])
"""
        with self.only(world.A, names=["a.test"]):
            good, bad = self.probe(sandbox, code, user)
        self.assertIn("101 Switching", good)
        self.assertIn("hello", good)
        self.assertNotIn("101 Switching", bad)


class Rebinding(attack.Case):
    INSIDE = ("loopback", "loopback6", "zero", "private", "metadata", "mapped", "nat64", "6to4", "unique", "host")

    def test_E17_names_that_point_inside(self, user):
        names = [f"{n}.rebind.test" for n in self.INSIDE] + ["alias-inside.test"]
        policies = ({"allowOut": ["*.rebind.test", "alias-inside.test"], "denyOut": ["0.0.0.0/0"]}, {})
        asks = f"show([[resolve(name), resolve(name, 28)] for name in {names!r}])"
        says = f"""
show([attempt(f, "198.41.0.4", *more) for name in {names!r} for f, more in ((http, (80, name)), (https, (name,)))])
"""
        for policy in policies:
            sandbox = self.sandbox(network=policy)
            with self.only(names=[*names, "private.rebind.test"]):
                if policy:
                    self.assertNotIn('"who"', "".join(self.probe(sandbox, says, user)))
                for name, (four, six) in zip(names, self.probe(sandbox, asks, user)):
                    self.assertEqual([a for a in four[1] + six[1] if not a.startswith("198.1")], [], name)
                script = " ".join(names)
                out = sandbox.sh(f"for n in {script}; do curl -ksS -m5 http://$n/; curl -ksS -m5 https://$n/; "
                                 "timeout 5 bash -c \"exec 3<>/dev/tcp/$n/22; head -c 3 <&3\"; done", user=user)[1]
                self.assertNotIn('"who"', out)

    def test_E17_names_that_take_turns(self, user):
        names = [f"{n}.rebind.test" for n in ("turns", "turns2", "mixed", "turns-evil")]
        sandbox = self.sandbox(network={"allowOut": ["*.rebind.test"], "denyOut": ["0.0.0.0/0"]})
        with self.only(world.A, world.EVIL, names=names):
            out = sandbox.sh(f"for i in 1 2 3; do for n in {' '.join(names)}; do curl -sS -m5 http://$n/who; done; "
                             "done", user=user)[1]
        self.assertNotIn("internal", out)

    def test_E17_aliases(self, user):
        """Who is allowed is the name that was asked for; what it is an alias of is its owner's affair."""
        sandbox = self.sandbox(network={"allowOut": ["alias.test", "alias2.test", "alias-loop.test", "alias-away.test"],
                                        "denyOut": ["0.0.0.0/0"]})
        with self.only(world.A, names=["alias.test", "alias2.test", "alias-loop.test", "alias-away.test"]):
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://alias2.test/who", user))
            for name in ("alias-loop.test", "alias-away.test", "alias-evil.test", "a.test"):
                self.assertNotIn('"who"', sandbox.sh(f"curl -sS -m10 http://{name}/who", user=user)[1])


if __name__ == "__main__":
    unittest.main()
