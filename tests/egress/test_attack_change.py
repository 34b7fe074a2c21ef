"""Attacks around a policy that changes, and sandboxes that are paused, resumed, forked and copied. E25, E27."""
import time
import unittest

import attack
from attack import NAMES, until, world

BLOCKED = {"allow_internet_access": False}


def setUpModule():
    attack.begin()


class Change(attack.Case):
    def endless(self, box, url=f"http://{world.A}/forever"):
        """A download that is under way."""
        before = attack.bed.now()
        box.spawn(f"rm -f /tmp/ended; curl -ksS -m 100 -o /dev/null {url}; echo ended >/tmp/ended")
        self.assertTrue(until(lambda: before.requests(target="/forever")), "it has begun")

    def ended(self, box, patience_s=5):
        return until(lambda: "ended" in box.says("cat /tmp/ended 2>/dev/null; true"), patience_s)

    def change(self, box, **fields):
        answer = box.network(**fields)
        self.assertEqual(answer.status, 204, answer)

    def test_E25_open_to_block(self, user):
        box = self.box()
        self.endless(box)
        self.change(box, **BLOCKED)
        self.assertTrue(self.ended(box), "the download is cut")
        until(lambda: not attack.outside())
        with self.nothing():
            self.assertNotEqual(box.sh(f"curl -sS -m5 http://{world.A}/who", user=user)[0], 0)
            self.assertNotEqual(box.sh("curl -sS -m5 http://a.test/who", user=user)[0], 0)

    def test_E25_open_to_a_list(self, user):
        box = self.box()
        self.endless(box)
        self.change(box, **NAMES)
        self.assertTrue(self.ended(box))
        until(lambda: not attack.outside())
        with self.only(world.A, names=["a.test"]):
            self.assertIn('"who": "a"', self.sh(box, "curl -sS -m10 http://a.test/who", user))
            self.assertNotIn('"who"', box.sh(f"curl -sS -m5 http://{world.EVIL}/", user=user)[1])

    def test_E25_what_stays_allowed_goes_on(self, user):
        box = self.box()
        self.endless(box)
        self.change(box, allowOut=[f"{world.A}/32"], denyOut=["0.0.0.0/0"])
        self.assertFalse(self.ended(box, 1), "the download goes on")
        self.change(box, denyOut=[f"{world.A}/32"])
        self.assertTrue(self.ended(box))

    def test_E25_names_and_inspected_ones(self, user):
        for rules in ({}, {"rules": {"a.test": [{"transform": {"headers": {"X-Rule": "1"}}}]}}):
            for url in ("http://a.test/forever", "https://a.test/forever"):
                box = self.box(network=NAMES | rules)
                self.endless(box, url)
                self.change(box, allowOut=["*.b.test"], denyOut=["0.0.0.0/0"])
                self.assertTrue(self.ended(box), f"{rules} {url}")

    def test_E25_datagrams(self, user):
        box = self.box()
        box.spawn(f"""exec python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("{world.A}", 9999))
while True:
    s.send(b"x")
    time.sleep(0.02)'""")
        self.assertTrue(until(lambda: self.before.reached(world.A)))
        self.change(box, **BLOCKED)
        with self.nothing():
            time.sleep(0.2)

    def test_E25_block_to_open_and_back(self, user):
        box = self.box(**BLOCKED)
        for _ in range(3):
            self.change(box)
            self.assertIn('"who": "a"', self.sh(box, "curl -sS -m10 http://a.test/who", user))
            self.change(box, **BLOCKED)
            until(lambda: not attack.outside())
            with self.nothing():
                self.assertNotEqual(box.sh("curl -sS -m5 http://a.test/who", user=user)[0], 0)
                self.assertEqual(box.sh(f"curl -sS -m5 http://{world.A}/who", user=user)[0], 7)

    def test_E25_many_changes_under_load(self, user):
        box = self.box()
        box.spawn(f"for i in $(seq 400); do curl -s -m2 -o /dev/null http://{world.EVIL}/who; done")
        for _ in range(10):
            self.change(box, **NAMES)
            self.change(box)
        self.change(box, **BLOCKED)
        until(lambda: not attack.outside())
        with self.nothing():
            box.says("pkill curl; sleep 0.3; true")


class Pause(attack.Case):
    def pause(self, box, **fields):
        self.assertEqual(attack.site.api("POST", f"/sandboxes/{box.id}/pause", fields).status, 204)

    def resume(self, box):
        answer = attack.site.api("POST", f"/sandboxes/{box.id}/connect", {"timeout": 300})
        self.assertIn(answer.status, (200, 201), answer)
        return attack.lib.Box(attack.site, answer.json())

    def holds(self, box, user):
        """The list of names is in force."""
        with self.only(world.A, names=["a.test"]):
            self.assertIn('"who": "a"', self.sh(box, "curl -sS -m10 http://a.test/who", user))
            for url in (f"http://{world.EVIL}/", "http://evil.test/", f"http://[{world.EVIL6}]/"):
                self.assertNotIn('"who"', box.sh(f"curl -sS -m5 '{url}'", user=user)[1])

    def test_E27_the_policy_comes_back_with_memory(self, user):
        box = self.box(network=NAMES)
        box.spawn("rm -f /tmp/ended; curl -sS -m 100 -o /dev/null http://a.test/forever; echo ended >/tmp/ended")
        self.assertTrue(until(lambda: self.before.requests(target="/forever")))
        self.pause(box)
        answer = box.network(**BLOCKED)
        self.assertEqual(answer.status, 409, answer)
        box = self.resume(box)
        self.holds(box, user)
        self.assertEqual(box.network(allowOut=["*.b.test"], denyOut=["0.0.0.0/0"]).status, 204)
        self.assertTrue(until(lambda: "ended" in box.says("cat /tmp/ended; true")), "the old connection is dead")
        self.assertTrue(until(lambda: not attack.outside()))

    def test_E27_the_policy_comes_back_with_files_only(self, user):
        box = self.box(network=NAMES)
        self.holds(box, user)
        self.pause(box, memory=False)
        self.holds(self.resume(box), user)

    def test_E27_block_comes_back(self, user):
        for fields in ({}, {"memory": False}):
            box = self.box(**BLOCKED)
            self.pause(box, **fields)
            box = self.resume(box)
            with self.nothing():
                self.assertEqual(box.sh(f"curl -sS -m5 http://{world.A}/", user=user)[0], 7)

    def test_E27_what_was_changed_comes_back(self, user):
        for fields in ({}, {"memory": False}):
            box = self.box()
            self.assertEqual(box.network(**NAMES).status, 204)
            self.pause(box, **fields)
            self.holds(self.resume(box), user)

    def test_E27_programs_that_try_all_the_time(self, user):
        """Not one of their packets leaves around a pause."""
        box = self.box(network=NAMES)
        box.spawn(f"while :; do curl -s -m1 -o /dev/null http://{world.EVIL}/; curl -s -m1 -o /dev/null "
                  f"http://evil.test/; done")
        with self.nothing():
            for _ in range(3):
                self.pause(box)
                box = self.resume(box)
                box.says("true")

    def test_E27_forks_have_the_policy(self, user):
        box = self.box(network=NAMES)
        answer = attack.site.api("POST", f"/sandboxes/{box.id}/fork", {"count": 2, "timeout": 300})
        self.assertEqual(answer.status, 201, answer)
        for made in answer.json():
            fork = attack.lib.Box(attack.site, made["sandbox"])
            self.addCleanup(fork.kill)
            self.holds(fork, user)
            self.assertEqual(fork.network(**BLOCKED).status, 204)
        self.holds(box, user)

    def test_E27_copies_of_snapshots_have_their_own(self, user):
        """A snapshot holds files: who makes a sandbox of it says what it may reach."""
        box = self.box(network=NAMES | {"rules": {"a.test": [{"transform": {"headers": {"X-Rule": "1"}}}]}})
        answer = attack.site.api("POST", f"/sandboxes/{box.id}/snapshots", {})
        self.assertEqual(answer.status, 201, answer)
        snapshot = answer.json()["snapshotID"]
        copy = self.box(templateID=snapshot, network=NAMES)
        self.holds(copy, user)
        blocked = self.box(templateID=snapshot, **BLOCKED)
        with self.nothing():
            self.assertNotEqual(blocked.sh("curl -sS -m5 http://a.test/", user=user)[0], 0)


if __name__ == "__main__":
    unittest.main()
