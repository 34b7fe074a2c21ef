"""Attacks around a policy that changes, and sandboxes that are paused, resumed, forked and copied. E25, E27."""
import time
import unittest

import attack
from attack import NAMES, until, world

BLOCKED = {"allow_internet_access": False}


def setUpModule():
    attack.begin()


class Change(attack.Case):
    def endless(self, sandbox, url=f"http://{world.A}/forever"):
        """A download that is under way."""
        before = attack.bed.now()
        sandbox.spawn(f"rm -f /tmp/ended; curl -ksS -m 100 -o /dev/null {url}; echo ended >/tmp/ended")
        self.assertTrue(until(lambda: before.requests(target="/forever")), "it has begun")

    def ended(self, sandbox, patience_s=5):
        return until(lambda: "ended" in sandbox.says("cat /tmp/ended 2>/dev/null; true"), patience_s)

    def change(self, sandbox, **fields):
        answer = sandbox.network(**fields)
        self.assertEqual(answer.status, 204, answer)

    def test_E25_open_to_block(self, user):
        sandbox = self.sandbox()
        self.endless(sandbox)
        self.change(sandbox, **BLOCKED)
        self.assertTrue(self.ended(sandbox), "the download is cut")
        until(lambda: not attack.outside())
        with self.nothing():
            self.assertNotEqual(sandbox.sh(f"curl -sS -m5 http://{world.A}/who", user=user)[0], 0)
            self.assertNotEqual(sandbox.sh("curl -sS -m5 http://a.test/who", user=user)[0], 0)

    def test_E25_open_to_a_list(self, user):
        sandbox = self.sandbox()
        self.endless(sandbox)
        self.change(sandbox, **NAMES)
        self.assertTrue(self.ended(sandbox))
        until(lambda: not attack.outside())
        with self.only(world.A, names=["a.test"]):
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user))
            self.assertNotIn('"who"', sandbox.sh(f"curl -sS -m5 http://{world.EVIL}/", user=user)[1])

    def test_E25_what_stays_allowed_goes_on(self, user):
        sandbox = self.sandbox()
        self.endless(sandbox)
        self.change(sandbox, allowOut=[f"{world.A}/32"], denyOut=["0.0.0.0/0"])
        self.assertFalse(self.ended(sandbox, 1), "the download goes on")
        self.change(sandbox, denyOut=[f"{world.A}/32"])
        self.assertTrue(self.ended(sandbox))

    def test_E25_names_and_inspected_ones(self, user):
        for rules in ({}, {"rules": {"a.test": [{"transform": {"headers": {"X-Rule": "1"}}}]}}):
            for url in ("http://a.test/forever", "https://a.test/forever"):
                sandbox = self.sandbox(network=NAMES | rules)
                self.endless(sandbox, url)
                self.change(sandbox, allowOut=["*.b.test"], denyOut=["0.0.0.0/0"])
                self.assertTrue(self.ended(sandbox), f"{rules} {url}")

    def test_E25_datagrams(self, user):
        sandbox = self.sandbox()
        sandbox.spawn(f"""exec python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("{world.A}", 9999))
while True:
    s.send(b"x")
    time.sleep(0.02)'""")
        self.assertTrue(until(lambda: self.before.reached(world.A)))
        self.change(sandbox, **BLOCKED)
        with self.nothing():
            time.sleep(0.2)

    def test_E25_block_to_open_and_back(self, user):
        sandbox = self.sandbox(**BLOCKED)
        for _ in range(3):
            self.change(sandbox)
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user))
            self.change(sandbox, **BLOCKED)
            until(lambda: not attack.outside())
            with self.nothing():
                self.assertNotEqual(sandbox.sh("curl -sS -m5 http://a.test/who", user=user)[0], 0)
                self.assertEqual(sandbox.sh(f"curl -sS -m5 http://{world.A}/who", user=user)[0], 7)

    def test_E25_many_changes_under_load(self, user):
        sandbox = self.sandbox()
        sandbox.spawn(f"for i in $(seq 400); do curl -s -m2 -o /dev/null http://{world.EVIL}/who; done")
        for _ in range(10):
            self.change(sandbox, **NAMES)
            self.change(sandbox)
        self.change(sandbox, **BLOCKED)
        until(lambda: not attack.outside())
        with self.nothing():
            sandbox.says("pkill curl; sleep 0.3; true")


class Pause(attack.Case):
    def pause(self, sandbox, **fields):
        self.assertEqual(attack.site.api("POST", f"/sandboxes/{sandbox.id}/pause", fields).status, 204)

    def resume(self, sandbox):
        answer = attack.site.api("POST", f"/sandboxes/{sandbox.id}/connect", {"timeout": 300})
        self.assertIn(answer.status, (200, 201), answer)
        return attack.lib.Sandbox(attack.site, answer.json())

    def holds(self, sandbox, user):
        """The list of names is in force."""
        with self.only(world.A, names=["a.test"]):
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user))
            for url in (f"http://{world.EVIL}/", "http://evil.test/", f"http://[{world.EVIL6}]/"):
                self.assertNotIn('"who"', sandbox.sh(f"curl -sS -m5 '{url}'", user=user)[1])

    def test_E27_the_policy_comes_back_with_memory(self, user):
        sandbox = self.sandbox(network=NAMES)
        sandbox.spawn("rm -f /tmp/ended; curl -sS -m 100 -o /dev/null http://a.test/forever; echo ended >/tmp/ended")
        self.assertTrue(until(lambda: self.before.requests(target="/forever")))
        self.pause(sandbox)
        answer = sandbox.network(**BLOCKED)
        self.assertEqual(answer.status, 409, answer)
        sandbox = self.resume(sandbox)
        self.holds(sandbox, user)
        self.assertEqual(sandbox.network(allowOut=["*.b.test"], denyOut=["0.0.0.0/0"]).status, 204)
        self.assertTrue(until(lambda: "ended" in sandbox.says("cat /tmp/ended; true")), "the old connection is dead")
        self.assertTrue(until(lambda: not attack.outside()))

    def test_E27_the_policy_comes_back_with_files_only(self, user):
        sandbox = self.sandbox(network=NAMES)
        self.holds(sandbox, user)
        self.pause(sandbox, memory=False)
        self.holds(self.resume(sandbox), user)

    def test_E27_block_comes_back(self, user):
        for fields in ({}, {"memory": False}):
            sandbox = self.sandbox(**BLOCKED)
            self.pause(sandbox, **fields)
            sandbox = self.resume(sandbox)
            with self.nothing():
                self.assertEqual(sandbox.sh(f"curl -sS -m5 http://{world.A}/", user=user)[0], 7)

    def test_E27_what_was_changed_comes_back(self, user):
        for fields in ({}, {"memory": False}):
            sandbox = self.sandbox()
            self.assertEqual(sandbox.network(**NAMES).status, 204)
            self.pause(sandbox, **fields)
            self.holds(self.resume(sandbox), user)

    def test_E27_programs_that_try_all_the_time(self, user):
        """Not one of their packets leaves around a pause."""
        sandbox = self.sandbox(network=NAMES)
        sandbox.spawn(f"while :; do curl -s -m1 -o /dev/null http://{world.EVIL}/; curl -s -m1 -o /dev/null "
                      f"http://evil.test/; done")
        with self.nothing():
            for _ in range(3):
                self.pause(sandbox)
                sandbox = self.resume(sandbox)
                sandbox.says("true")

    def test_E27_forks_have_the_policy(self, user):
        sandbox = self.sandbox(network=NAMES)
        answer = attack.site.api("POST", f"/sandboxes/{sandbox.id}/fork", {"count": 2, "timeout": 300})
        self.assertEqual(answer.status, 201, answer)
        for made in answer.json():
            fork = attack.lib.Sandbox(attack.site, made["sandbox"])
            self.addCleanup(fork.kill)
            self.holds(fork, user)
            self.assertEqual(fork.network(**BLOCKED).status, 204)
        self.holds(sandbox, user)

    def test_E27_copies_of_snapshots_have_their_own(self, user):
        """A snapshot holds files: who makes a sandbox of it says what it may reach."""
        sandbox = self.sandbox(network=NAMES | {"rules": {"a.test": [{"transform": {"headers": {"X-Rule": "1"}}}]}})
        answer = attack.site.api("POST", f"/sandboxes/{sandbox.id}/snapshots", {})
        self.assertEqual(answer.status, 201, answer)
        snapshot = answer.json()["snapshotID"]
        copy = self.sandbox(templateID=snapshot, network=NAMES)
        self.holds(copy, user)
        blocked = self.sandbox(templateID=snapshot, **BLOCKED)
        with self.nothing():
            self.assertNotEqual(blocked.sh("curl -sS -m5 http://a.test/", user=user)[0], 0)


if __name__ == "__main__":
    unittest.main()
