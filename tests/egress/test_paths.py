"""The ways from a sandbox to the guard on hosts without sk_lookup: the same policies, the same answers."""
import unittest

from lib import Bed, Site, world

LISTED = {"allowOut": ["a.test", "ssh.test", "six.test"], "denyOut": ["0.0.0.0/0"]}
DATAGRAM = """python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect(('%s', 7))
s.send(b'hello'); print(s.recv(100).decode())"
"""
OWN_SERVER = """python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &
until curl -s -m2 http://127.0.0.1:8000/; do sleep 0.05; done; kill %1"""


class Path:
    """What holds on every path."""

    path = None

    @classmethod
    def setUpClass(cls):
        cls.bed = cls.enterClassContext(Bed())
        cls.site = cls.enterClassContext(Site(cls.bed, "--egress-path", cls.path))
        cls.open = cls.site.create()
        cls.listed = cls.site.create(network=LISTED)

    def test_reaches_by_address_and_name(self):
        for sandbox in (self.open, self.listed):
            self.assertIn('"who": "a"', sandbox.sh("curl -sS -m5 http://a.test/who")[1])
            self.assertIn('"sni": "a.test"', sandbox.sh("curl -sSk -m5 https://a.test/who")[1])
            self.assertIn('"who": "six"', sandbox.sh("curl -sS -m5 http://six.test/who")[1])

    def test_denied_stays_inside(self):
        before = self.bed.now()
        self.assertNotEqual(self.listed.sh("curl -sS -m5 http://evil.test/")[0], 0)
        self.assertIn("not allowed", self.listed.sh(f"curl -sS -m5 http://{world.EVIL}/")[1])
        self.assertNotEqual(self.open.sh("curl -sS -m5 http://169.254.169.254/")[0], 0)
        self.assertEqual(before.packets(world.EVIL, "169.254.169.254"), 0)

    def test_dns_over_tcp_to_any_server(self):
        self.assertEqual(self.open.sh("dig +tcp +short a.test @9.9.9.9")[1].strip(), world.A)

    def test_guard_is_not_on_loopback(self):
        self.assertIn(self.open.sh("curl -sS -m3 http://127.0.0.1:61053/")[0], (7, 55, 56))  # refused, or reset, before or after the request was written

    def test_own_servers_work(self):
        self.assertIn("DOCTYPE", self.open.sh(OWN_SERVER)[1])


class Tproxy(Path, unittest.TestCase):
    path = "tproxy"

    def test_datagrams(self):
        self.assertEqual(self.open.sh(DATAGRAM % world.TALK)[1].strip(), "hello")


class Redirect(Path, unittest.TestCase):
    path = "redirect"

    def test_no_datagrams_but_dns(self):
        before = self.bed.now()
        self.assertNotEqual(self.open.sh(DATAGRAM % world.TALK)[0], 0)
        self.assertEqual(before.packets(world.TALK, protocol="udp"), 0)
        self.assertEqual(self.open.sh("dig +short a.test")[1].strip(), world.A)


if __name__ == "__main__":
    unittest.main()
