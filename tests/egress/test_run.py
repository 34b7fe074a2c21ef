"""`sandglass run --network`, in the edge of a bed and without a server: it has a guard of its own while it lives."""
import json
import os
import subprocess
import unittest

import attack
from attack import lib, world

import program  # lib has set the path

WAIT_S = 60
NO_WAY = 7  # of curl: it could not connect


def setUpModule():
    global bed
    bed = attack.bed = unittest.enterModuleContext(lib.Bed())


class Run(unittest.TestCase):
    def setUp(self):
        attack.until(lambda: not attack.outside())
        self.before = bed.now()

    def run_(self, user, network, command, *options, env=None):
        """(status, output) of a command; network: None leaves it out."""
        network = [] if network is None else ["--approve", "--network", network]
        surroundings = {**os.environ, "SANDGLASS_EGRESS_DNS": world.DNS, "SANDGLASS_EGRESS_ROOTS": bed.root,
                        **(env or {})}
        with bed.edge():
            p = subprocess.run([program.SANDGLASS, "run", "-u", user, *network, *options, "--", "bash", "-c", command],
                               env=surroundings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT,
                               text=True, timeout=WAIT_S)
        return p.returncode, p.stdout

    def reached(self, *addresses):
        """Packets have gone there, and nowhere else; questions do not count."""
        self.assertEqual({key[0] for key in self.before.arrived()} - {world.DNS}, set(addresses))

    def test_blocked_if_nothing_is_said(self):
        for user in attack.USERS:
            for network in (None, "block"):
                status, out = self.run_(user, network, f"curl -sS -m5 http://{world.A}/")
                self.assertEqual(status, NO_WAY, out)
                status, out = self.run_(user, network,
                                        "getent hosts a.test || dig +tries=1 +time=1 @8.8.8.8 a.test; curl -sS -m5 "
                                        "http://a.test/")
                self.assertNotIn('"who"', out)
        self.reached()
        self.assertEqual(self.before.queries(), [])

    def test_allowed(self):
        for user in attack.USERS:
            status, out = self.run_(user, "allow",
                                    f"curl -sS -m10 http://a.test/who http://{world.B}/who 'http://[{world.SIX}]/who'")
            self.assertEqual([f'"who": "{w}"' in out for w in ("a", "b", "six")], [True] * 3, out)

    def test_allowed_is_not_inside(self):
        for user in attack.USERS:
            _, out = self.run_(user, "allow", "; ".join(f"curl -sS -m5 'http://{a}/'" for a in (
                "10.9.9.9", "169.254.169.254", world.EDGE4, f"[{world.EDGE6}]", "127.0.0.1", "metadata.rebind.test")))
            self.assertNotIn('"who"', out)
        self.reached()

    def test_a_list(self):
        names = "a.test,*.b.test,93.184.216.37"
        for user in attack.USERS:
            _, out = self.run_(user, names,
                               "curl -sS -m10 http://a.test/who http://x.b.test/who http://93.184.216.37/who; "
                               f"curl -sS -m5 http://evil.test/; curl -sS -m5 http://{world.EVIL}/; curl -sS -m5 "
                               f"http://b.test/; "
                               f"curl -sS -m5 -H 'Host: evil.test' http://a.test/")
            self.assertEqual([f'"who": "{w}"' in out for w in ("a", "b", "talk", "evil")], [True] * 3 + [False], out)
        self.reached(world.A, world.B, world.TALK)
        self.assertEqual({q["name"] for q in self.before.queries()}, {"a.test", "x.b.test"})

    def test_entries_that_deny(self):
        for user in attack.USERS:
            _, out = self.run_(user, f"!{world.EVIL},!*.b.test", "curl -sS -m10 http://a.test/who; "
                               f"curl -sS -m5 http://{world.EVIL}/who; curl -sS -m5 http://x.b.test/who")
            self.assertEqual([f'"who": "{w}"' in out for w in ("a", "b", "evil")], [True, False, False], out)
        self.assertNotIn(world.EVIL, {key[0] for key in self.before.arrived()})

    def test_ssh_by_name(self):
        for user in attack.USERS:
            status, out = self.run_(user, "ssh.test", "exec 3<>/dev/tcp/ssh.test/22; head -n1 <&3")
            self.assertEqual((status, out.strip()), (0, "SSH-2.0-bed"))

    def test_tls_is_passed_on(self):
        for user in attack.USERS:
            _, out = self.run_(user, "a.test", "curl -ksS -m10 https://a.test/who")
            self.assertIn('"tls": "TLSv1.3"', out)
            self.assertIn('"sni": "a.test"', out)

    def test_the_operators_word_is_stronger(self):
        for user in attack.USERS:
            _, out = self.run_(user, "allow",
                               f"curl -sS -m5 http://evil.test/; curl -sS -m5 http://{world.B}/; curl -sS -m10 "
                               f"http://a.test/who",
                               env={"SANDGLASS_EGRESS_DENY": f"evil.test,{world.B}"})
            self.assertEqual([f'"who": "{w}"' in out for w in ("a", "b", "evil")], [True, False, False], out)
        self.reached(world.A)

    def test_nothing_is_left(self):
        """Neither a guard nor a connection, however it ends."""
        for end in ("true", "exit 3", "kill -9 $$", "sleep 100"):
            self.run_("user", "allow", f"curl -s -m 30 -o /dev/null http://{world.A}/forever & sleep 0.3; {end}",
                      "--timeout", "2s")
            self.assertTrue(attack.until(lambda: not attack.outside()), end)
        pids = subprocess.run(["ip", "netns", "pids", bed.edge_name], capture_output=True, text=True,
                              check=True).stdout.split()
        self.assertEqual(pids, [])

    def test_it_says_so_in_its_result(self):
        p_status, out = self.run_("user", "a.test", "curl -s -m10 http://a.test/who", "--json")
        self.assertEqual(p_status, 0, out)
        self.assertIn('"who": "a"', json.loads(out)["stdout"])


if __name__ == "__main__":
    unittest.main()
