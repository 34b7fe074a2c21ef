"""Attacks on a sandbox that may reach nothing: E01, E02 and the rest of what a program can try there."""
import unittest

import attack
from attack import world

TCP = """
show([attempt(tcp, host, port) for host in sys.argv[1:] for port in (80, 443, 53, 853, 22)])
"""
OTHERS = """
def make(*args):
    socket.socket(*args).close()
    return "made"

show({
    "udp": [attempt(udp, host, port) for host in ("93.184.216.34", "2606:2800::1") for port in (9999, 443, 53)],
    "made": [what for what, args in {
        "icmp": (socket.AF_INET, socket.SOCK_RAW, 1), "icmp6": (socket.AF_INET6, socket.SOCK_RAW, 58),
        "ping": (socket.AF_INET, socket.SOCK_DGRAM, 1), "ping6": (socket.AF_INET6, socket.SOCK_DGRAM, 58),
        "sctp": (socket.AF_INET, socket.SOCK_STREAM, 132), "dccp": (socket.AF_INET, 6, 33),
        "udplite": (socket.AF_INET, socket.SOCK_DGRAM, 136), "mptcp": (socket.AF_INET, socket.SOCK_STREAM, 262),
        "raw": (socket.AF_INET, socket.SOCK_RAW, 255), "packet": (socket.AF_PACKET, socket.SOCK_RAW, 0x300),
        "vsock": (socket.AF_VSOCK, socket.SOCK_STREAM, 0)}.items() if attempt(make, *args) == "made"],
})
"""
NO_WAY = "ENETUNREACH"


def setUpModule():
    attack.begin()


class Block(attack.Case):
    def blocked(self):
        return self.sandbox(allow_internet_access=False)

    def test_E01_tcp_fails_at_once(self, user):
        sandbox = self.blocked()
        with self.nothing():
            got = self.probe(sandbox, TCP, user, world.A, world.EVIL, world.SIX, "10.9.9.9", "169.254.169.254",
                             "fd00::9")
            self.assertEqual(set(got), {NO_WAY})
            self.sh(sandbox, f"curl -sm3 http://{world.A}/", user, 7)
            out = self.sh(sandbox, f"exec 3<>/dev/tcp/{world.A}/80", user, 1)
            self.assertIn("unreachable", out)

    def test_E02_names_are_not_asked_for(self, user):
        sandbox = self.blocked()
        with self.nothing():
            self.sh(sandbox, "getent hosts a.test", user, 2)
            for server in ("", "@8.8.8.8", "@192.0.2.53 +tcp", f"@{world.DNS}", "@2606:2800::1"):
                status, out = sandbox.sh(f"dig +short +tries=1 +time=2 {server} a.test", user=user)
                self.assertNotIn(world.A, out)
                self.assertNotEqual(status, 0, out)
            self.sh(sandbox, "curl -sm3 https://a.test/", user, 6)

    def test_E03_nothing_but_tcp_and_udp(self, user):
        sandbox = self.blocked()
        with self.nothing():
            got = self.probe(sandbox, OTHERS, user)
        self.assertEqual(set(got["udp"]), {NO_WAY})
        self.assertEqual(set(got["made"]) - {"udplite", "mptcp"}, set())

    def test_E01_its_own_loopback_works(self, user):
        out = self.sh(self.blocked(), "python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 & "
                      "curl -sS --retry 20 --retry-connrefused --retry-delay 0 -o /dev/null -w '%{http_code}' "
                      "http://127.0.0.1:8123/; kill $!", user)
        self.assertIn("200", out)

    def test_E01_deny_all_is_the_same(self, user):
        sandbox = self.sandbox(network={"denyOut": ["0.0.0.0/0"]})
        with self.nothing():
            self.assertEqual(set(self.probe(sandbox, TCP, user, world.A, world.SIX)), {NO_WAY})


if __name__ == "__main__":
    unittest.main()
