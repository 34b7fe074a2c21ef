"""Real clients inside sandboxes: with an open network, with an allow-list of names, and inspected, where they have
nothing but what the sandbox comes with. Each must get what it would get without a guard."""
import hashlib
import unittest

import attack
from attack import world

ALLOWED = ["a.test", "x.b.test", "git.test", "npm.test", "pypi.test", "ssh.test"]
LISTED = {"allowOut": ALLOWED, "denyOut": ["0.0.0.0/0"]}
RULE = [{"transform": {"headers": {"X-Rule": "seen"}}}]
RULES = LISTED | {"rules": {name: RULE for name in ALLOWED if name != "ssh.test"}}

FETCH = """
fetch("https://a.test/echo", {method: "POST", body: "hello"}).then(async (r) => console.log(r.status, await r.text()))
"""
REQUESTS = """
import requests
with requests.Session() as s:
    for _ in range(3):
        r = s.post("https://a.test/echo", data=b"x" * 100000)
        r.raise_for_status()
    print(len(r.content), requests.get("https://a.test/zipped").json()["who"])
"""
URLLIB = """
import json, urllib.request
print(json.load(urllib.request.urlopen("https://a.test/who", timeout=20))["who"])
"""
WEBSOCKET = """
import socket, ssl
def talk(s):
    s.sendall(b"GET /websocket HTTP/1.1\\r\\nHost: a.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
              b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n")
    f = s.makefile("rb")
    head = f.readline()
    while f.readline().strip():
        pass
    for word in (b"hello", b"again"):
        s.sendall(b"\\x81\\x85\\0\\0\\0\\0" + word)
        print(head.split()[1].decode(), f.read(7)[2:].decode())
plain = socket.create_connection(("a.test", 80), 20)
talk(plain)
talk(ssl.create_default_context().wrap_socket(socket.create_connection(("a.test", 443), 20), server_hostname="a.test"))
"""


def setUpModule():
    attack.begin()


class Clients:
    """Run in three surroundings."""
    network, rule = {}, None

    @classmethod
    def setUpClass(cls):
        cls.sandbox_ = attack.site.create(network=cls.network)
        cls.first = "" if cls.rule else cls.sandbox_.trust() + "; "
        cls.addClassCleanup(cls.sandbox_.kill)

    def run_(self, command, user, status=0):
        out = self.sh(self.sandbox_, f"cd $(mktemp -d) && {self.first}{command}", user, status)
        if self.rule and "https:" in command:
            requests = [r for r in self.before.requests() if r["local"] != attack.WITNESS or r["tls"]]
            self.assertTrue(requests, "somebody was asked")
            self.assertEqual([r["target"] for r in requests if ["x-rule", "seen"] not in
                              [[n.lower(), v] for n, v in r["headers"]]], [], "each went through the guard's hands")
        return out

    def python(self, code, user):
        self.sandbox_.put(f"/tmp/client-{user}.py", code.encode())
        return self.run_(f"python3 /tmp/client-{user}.py", user)

    def test_curl(self, user):
        out = self.run_("curl -sS -m 20 https://a.test/who https://x.b.test/who http://a.test/who", user)
        self.assertEqual([w in out for w in ('"who": "a"', '"who": "b"', '"tls": null')], [True] * 3)
        out = self.run_("curl -sS -m 20 https://a.test/download/3000001 | sha256sum; "
                        "head -c 2000000 /dev/zero | curl -sS -m 20 -T - https://a.test/upload", user)
        self.assertIn(hashlib.sha256((bytes(range(256)) * 12000)[:3000001]).hexdigest(), out)
        self.assertIn(hashlib.sha256(bytes(2000000)).hexdigest(), out)

    def test_git(self, user):
        out = self.run_("git clone -q https://git.test/git/hello.git && cd hello && cat hello.txt && git log "
                        "--oneline | wc -l", user)
        self.assertTrue(out.strip(), "there is something in it")

    def test_pip(self, user):
        out = self.run_("python3 -m pip install -q --disable-pip-version-check --no-cache-dir --target here "
                        "--index-url https://pypi.test/simple bedpkg && PYTHONPATH=here python3 -c 'import bedpkg; "
                        "print(bedpkg.SAYS)'", user)
        self.assertIn("hello from the test bed", out)

    def test_npm(self, user):
        out = self.run_("npm install --silent --no-fund --no-audit --fetch-retries 0 --cache c --registry "
                        "https://npm.test bedpkg && "
                        "node -p 'require(\"bedpkg\").says'", user)
        self.assertIn("hello from the test bed", out)

    def test_node_fetch(self, user):
        self.assertIn("200 hello", self.run_(f"node -e '{FETCH.strip()}'", user))

    def test_python_requests(self, user):
        self.assertEqual(self.python(REQUESTS, user).split(), ["100000", "a"])

    def test_python_urllib(self, user):
        self.assertEqual(self.python(URLLIB, user), "a\n")

    def test_openssl(self, user):
        out = self.run_("printf 'GET /who HTTP/1.0\\r\\nHost: a.test\\r\\n\\r\\n' | timeout 20 openssl s_client "
                        "-quiet -verify_return_error "
                        "-verify_hostname a.test -connect a.test:443 -servername a.test 2>&1 | tail -n 1", user)
        self.assertIn('"who": "a"', out)

    def test_dig(self, user):
        self.assertRegex(self.run_("dig +short a.test", user), r"^[0-9.]+\n$")
        self.assertEqual(self.run_("dig +short TXT a.test", user), '"v=a"\n')
        self.assertIn("REFUSED" if self.network else "NXDOMAIN", self.run_("dig nowhere.test", user))

    def test_ssh(self, user):
        """The server speaks first; by name, to whichever address stands for it."""
        out = self.run_("timeout 20 bash -c 'exec 3<>/dev/tcp/ssh.test/22; head -n1 <&3'", user)
        self.assertEqual(out.strip(), "SSH-2.0-bed")
        out = self.run_("timeout 1 ssh -v -o BatchMode=yes -o StrictHostKeyChecking=no git@ssh.test true 2>&1; true",
                        user)
        self.assertIn("remote software version bed", out)

    def test_websocket(self, user):
        self.assertEqual(self.python(WEBSOCKET, user).splitlines(), ["101 hello", "101 again"] * 2)


class Open(Clients, attack.Case):
    def test_echo_over_udp(self, user):
        out = self.run_("exec 3<>/dev/udp/talk.test/7; echo hello >&3; timeout 5 head -n1 <&3", user)
        self.assertEqual(out, "hello\n")

    def test_six(self, user):
        self.assertIn('"who": "six"', self.run_("curl -sS -m 20 http://six.test/who", user))


class Listed(Clients, attack.Case):
    network = LISTED

    def test_others_are_refused_with_a_reason(self, user):
        self.assertIn("not allowed for this sandbox",
                      self.sh(self.sandbox_, f"curl -sS -m 10 http://{world.EVIL}/", user))
        self.sh(self.sandbox_, "curl -sS -m 10 https://evil.test/", user, 6)


class Inspected(Clients, attack.Case):
    network, rule = RULES, "X-Rule"


if __name__ == "__main__":
    unittest.main()
