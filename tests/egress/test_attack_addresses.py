"""Attacks on a sandbox that may reach the internet: what is not the internet stays out of reach. E03 to E08."""
import contextlib
import socket
import threading
import unittest

import attack
from attack import world

REACH = """
request = "GET /who HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
targets = [(host, port) for host in sys.argv[2:] for port in map(int, sys.argv[1].split(","))]
answers = together(tcp, [(*target, request.encode()) for target in targets])
show({f"{host} {port}": answer for (host, port), answer in zip(targets, answers)})
"""
DATAGRAMS = """
show(datagrams([(host, port) for host in sys.argv[2:] for port in map(int, sys.argv[1].split(","))]))
"""
PATIENT = DATAGRAMS.replace("]))", "], wait=5))")  # the first packet in IPv6 takes its time
# Refused by the guard, by the kernel, or never accepted by anybody.
REFUSED = {"ECONNRESET", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EINVAL", "EACCES", "EPERM", "EADDRNOTAVAIL",
           "", "TIMEOUT"}
HEALTH = {49983, 49999}  # the sandbox's own, which say on its loopback that it is well
EVERY = "0.0.0.0", "255.255.255.255", "224.0.0.1", "239.255.255.250", "240.0.0.1", "127.0.0.2"
EVERY6 = "::", "ff02::1%lo", "ff05::1", "fe80::1%lo", "fec0::1", "::ffff:10.9.9.9"


def setUpModule():
    attack.begin()


@contextlib.contextmanager
def listener():
    """A service of the machine that the guard runs on, at all its addresses: its port, and who has come."""
    came = []
    with contextlib.ExitStack() as stack:
        with attack.bed.edge():
            six = stack.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True))

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, address = six.accept()
                    came.append(address)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhost")
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield six.getsockname()[1], came
        six.shutdown(socket.SHUT_RDWR)


class Addresses(attack.Case):
    def refused(self, sandbox, user, ports, *addresses, code=REACH):
        got = self.probe(sandbox, code, user, ports, *addresses)
        self.assertEqual({k: v for k, v in got.items() if v not in REFUSED and not attack.told_no(v)}, {})

    def test_E03_only_what_is_allowed_and_no_quic(self, user):
        sandbox, names = self.sandbox(), self.sandbox(network=attack.NAMES)
        got = self.probe(sandbox, PATIENT, user, "9999", world.A, world.SIX)
        self.assertEqual(list(got.values()), ["hello"] * 2, "an open one may")
        with self.nothing():
            self.refused(sandbox, user, "443,853", world.EVIL, world.EVIL6, code=DATAGRAMS)
            self.refused(names, user, "9999,443,53,123", world.A, world.EVIL, world.SIX, world.EVIL6, code=DATAGRAMS)
        self.on_record(sandbox, address=world.EVIL, port=443, verdict="deny", rule="QUIC")
        self.on_record(names, address=world.EVIL, port=9999, verdict="deny", protocol="udp")

    def test_E04_other_families_and_scopes(self, user):
        sandbox, names = self.sandbox(), self.sandbox(network=attack.NAMES)
        got = self.probe(sandbox, REACH, user, "80", world.SIX)
        self.assertIn('"who": "six"', got[f"{world.SIX} 80"])
        with self.nothing():
            self.refused(names, user, "80,443,9999", world.SIX, world.EVIL6)
            for one in (sandbox, names):
                self.refused(one, user, "80,9999", *EVERY, *EVERY6)
                self.refused(one, user, "9999,5353,1900", *EVERY, *EVERY6, code=DATAGRAMS)

    def test_E05_metadata(self, user):
        sandbox = self.sandbox()
        with self.only(names=["metadata.rebind.test", "metadata.google.internal"]):
            self.refused(sandbox, user, "80,443,8080", *world.METADATA)
            self.refused(sandbox, user, "53,80,9999", *world.METADATA[:1], code=DATAGRAMS)
            for name in ("metadata.google.internal", "metadata.rebind.test"):
                self.assertNotEqual(sandbox.sh(f"curl -sS -m10 http://{name}/", user=user)[0], 0)
        for address in world.METADATA:
            [record, *_] = self.on_record(sandbox, address=address, port=80, verdict="deny")
            self.assertRegex(record["rule"], "internal|metadata|link-local|carrier")

    def test_E06_private_networks(self, user):
        allowed = ["10.0.0.0/8", "192.168.0.1", "fd00::/8", "169.254.169.254", "0.0.0.0/0"]
        sandbox = self.sandbox(network={"allowOut": allowed})
        with self.nothing():
            self.refused(sandbox, user, "80,443", *world.INTERNAL, "0.0.0.0", "0.0.0.1", "240.0.0.1", "192.0.2.7",
                         "198.51.100.7", "192.88.99.1", "2001:db8::1", "100::7")
            self.refused(sandbox, user, "7,9999", *world.INTERNAL[:4], code=DATAGRAMS)
        self.on_record(sandbox, address="10.9.9.9", port=80, verdict="deny")

    def test_E07_services_of_the_host(self, user):
        sandbox = self.sandbox()
        with listener() as (port, came), self.nothing():
            ports = f"{port},{attack.site.port}"
            self.refused(sandbox, user, ports, "127.0.0.1", "::1", world.EDGE4, world.EDGE6, "0.0.0.0", "::",
                         "::ffff:127.0.0.1", f"::ffff:{world.EDGE4}", "127.0.0.53", "127.255.255.255")
            self.assertEqual(came, [])
        self.on_record(sandbox, address=world.EDGE4, port=port, verdict="deny", rule="address of this machine")
        self.on_record(sandbox, address=world.EDGE6, port=port, verdict="deny", rule="address of this machine")

    def test_E07_the_guards_own_sockets(self, user):
        sandbox = self.sandbox()
        with self.nothing():
            self.refused(sandbox, user, "80,53,1,65535", "192.0.2.1", "100::1")
            self.refused(sandbox, user, "53", "127.0.0.1", "::1")
            self.refused(sandbox, user, "80", "192.0.2.53")
            self.refused(sandbox, user, "9999", "192.0.2.1", "100::1", "192.0.2.53", "127.0.0.1", code=DATAGRAMS)
            listening = self.sh(sandbox, "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6", user)
            ports = {int(line.split()[1].split(":")[1],
                         16) for line in listening.splitlines() if ":" in line.split()[0]}
            self.refused(sandbox, user, ",".join(map(str, ports or {1})), "192.0.2.1", "100::1", "::1", "192.0.2.53", world.EDGE4)
            self.refused(sandbox, user, ",".join(map(str, ports - HEALTH or {1})), "127.0.0.1")

    def test_E08_other_spellings(self, user):
        sandbox = self.sandbox()
        urls = ["2130706433", "0177.0.0.1", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "[::127.0.0.1]",
                "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[::ffff:0:127.0.0.1]",
                "0x2d435902", "45.67.22786", "[64:ff9b::2d43:5902]", "[2002:2d43:5902::1]", "0", "[::]",
                "168364297", "[::ffff:a09:909]", "[64:ff9b::a09:909]", "[2002:a09:909::1]", "0xa9.0xfe.0xa9.0xfe"]
        with listener() as (port, came), self.nothing():
            script = "; ".join(f"curl -gsS -m10 -o /dev/null 'http://{url}:{p}/' && echo 'reached {url}:{p}'"
                               for url in urls for p in (port, 80))
            out = sandbox.sh(script, user=user)[1]
            self.assertNotIn("reached", out)
            self.assertEqual(came, [])


if __name__ == "__main__":
    unittest.main()
