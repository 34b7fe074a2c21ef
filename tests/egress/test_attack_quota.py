"""Attacks on what is finite: bytes, connections, the guard's memory and time. E23, E24."""
import time
import unittest

import attack
from attack import host, world

BYTES, FLOWS = 8 << 20, 64
SLACK = 64 << 10
UPLOAD = f"head -c {3 * BYTES} /dev/zero | curl -sS -m 60 -o /dev/null -T - -H Expect: "


def setUpModule():
    attack.begin("--egress-bytes", str(BYTES), "--egress-flows", str(FLOWS), "--egress-flow-rate", "0")


class Bytes(attack.Case):
    def tearDown(self):
        attack.witness.kill()  # which has a quota as well
        attack.witness = attack.site.create()
        super().tearDown()

    def counted(self, seen, *addresses):
        """Bytes of all bodies and heads that have come to web servers there."""
        def ends():
            return [e for e in seen.lines("web", "end") if e["local"] in addresses]

        attack.until(lambda: len(ends()) >= len([r for r in seen.reached(*addresses)]))
        return sum(e["bytes"] for e in ends())

    def spent(self, sandbox, user):
        """Nothing more leaves."""
        with self.nothing():
            self.assertNotEqual(sandbox.sh(f"curl -sS -m10 http://{world.A}/who", user=user)[0], 0)
        self.on_record(sandbox, kind="quota", rule="bytes", verdict="deny")

    def test_E23_upload(self, user):
        sandbox = self.sandbox()
        self.assertNotEqual(sandbox.sh(f"{UPLOAD} http://{world.A}/upload", user=user)[0], 0)
        self.assertLessEqual(self.counted(self.before, world.A), BYTES + SLACK)
        self.spent(sandbox, user)

    def test_E23_download(self, user):
        sandbox = self.sandbox()
        out = sandbox.sh(f"curl -sS -m60 http://{world.A}/download/{3 * BYTES} | wc -c", user=user)[1]
        got = int(out.splitlines()[-1])
        self.assertLessEqual(got, BYTES + SLACK)
        self.assertGreater(got, BYTES // 8)
        self.spent(sandbox, user)

    def test_E23_many_connections_at_once(self, user):
        sandbox = self.sandbox()
        sandbox.sh(f"for i in 1 2 3 4 5 6 7 8; do {UPLOAD} http://{world.A}/upload & done; wait", user=user)
        self.assertLessEqual(self.counted(self.before, world.A), BYTES + 8 * SLACK)
        self.spent(sandbox, user)

    def test_E23_inspected(self, user):
        sandbox = self.sandbox(network={"allowOut": ["a.test"], "denyOut": ["0.0.0.0/0"],
                                        "rules": {"a.test": [{"transform": {"headers": {"X-Rule": "1"}}}]}})
        self.assertNotEqual(sandbox.sh(f"{UPLOAD} https://a.test/upload", user=user)[0], 0)
        self.assertLessEqual(self.counted(self.before, world.A), BYTES + 2 * SLACK)
        self.spent(sandbox, user)

    def test_E23_datagrams(self, user):
        sandbox = self.sandbox()
        code = f"""
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.connect(({world.A!r}, 9999))
    s.settimeout(0.5)
    for i in range({2 * BYTES} // 30000):
        s.send(bytes(30000))
        if attempt(s.recv, 65535) == "TIMEOUT" and attempt(s.recv, 65535) == "TIMEOUT":
            break
show(i)
"""
        sent = self.probe(sandbox, code, user) * 30000
        self.assertLessEqual(sent, BYTES + SLACK)
        self.spent(sandbox, user)


class Flood(attack.Case):
    FLOOD = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
def start(host, port):
    s = socket.socket(family(host))
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        s.connect((host, port))
    return s
"""

    def others_work(self, seconds=5):
        """Another sandbox does not notice."""
        sandbox = self.sandbox()
        began = time.monotonic()
        self.sh(sandbox, f"curl -sS -m20 -o /dev/null http://{world.A}/who http://{world.A}/who", "user")
        self.assertLess(time.monotonic() - began, seconds)

    def hold(self, sandbox, user, address, port):
        """1,500 connections, held by a program that does nothing with them; ended with the test."""
        code = self.FLOOD + f"""
held = [start({address!r}, {port}) for _ in range(1500)]
open("/tmp/held-{user}", "w").close()
time.sleep(100)
"""
        path = f"/tmp/flood-{user}.py"
        sandbox.put(path, (attack.PROBE + code).encode())
        sudo = "sudo " if user == "root" else ""
        sandbox.spawn(f"exec {sudo}python3 {path}")
        self.assertTrue(attack.until(lambda: sandbox.run(f"test -e /tmp/held-{user}")[0] == 0))

    def test_E24_idle_connections(self, user):
        sandbox = self.sandbox()
        fds, rss = host.fd_count(self.guard), host.rss_mib(self.guard)
        self.hold(sandbox, user, world.A, 80)
        self.others_work()
        self.assertTrue(attack.until(lambda: len(self.before.reached(world.A)) >= FLOWS))
        self.assertLess(host.fd_count(self.guard) - fds, 8 * FLOWS)
        self.assertLess(host.rss_mib(self.guard) - rss, 32)
        self.assertLessEqual(len(self.before.reached(world.A)), FLOWS + 2)  # two of the others
        self.on_record(sandbox, kind="quota", rule="connections at a time", verdict="deny")

    def test_E24_connections_that_are_dropped_at_once(self, user):
        sandbox = self.sandbox()
        rss = host.rss_mib(self.guard)
        code = self.FLOOD + f"""
for i in range(4000):
    start(({world.A!r}, {world.EVIL!r}, {world.SIX!r})[i % 3], 80).close()
show(True)
"""
        self.probe(sandbox, code, user)
        self.others_work()
        self.assertLess(host.rss_mib(self.guard) - rss, 32)
        attack.until(lambda: '"who"' in sandbox.sh(f"curl -sS -m5 http://{world.A}/who", user=user)[1])
        self.assertIn('"who": "a"', self.sh(sandbox, f"curl -sS -m20 http://{world.A}/who", user), "it may again")

    def test_E24_silent_ones_below_a_list_of_names(self, user):
        """Each is waited for, for a time: they may not be many."""
        sandbox = self.sandbox(network=attack.NAMES)
        fds = host.fd_count(self.guard)
        with self.nothing():
            self.hold(sandbox, user, world.EVIL, 443)
            self.assertLess(host.fd_count(self.guard) - fds, 8 * FLOWS)
        self.others_work()

    def test_E24_datagrams_to_everywhere(self, user):
        sandbox = self.sandbox()
        fds = host.fd_count(self.guard)
        code = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for i in range(20000):
        with contextlib.suppress(OSError):
            s.sendto(b"x", (f"93.184.{216 + i % 4}.{i % 250}", 1024 + i))
show(True)
"""
        self.probe(sandbox, code, user)
        self.others_work()
        self.assertLess(host.fd_count(self.guard) - fds, 8 * FLOWS)


if __name__ == "__main__":
    unittest.main()
