"""Attacks on the record: what sandboxes write into it, and who changes it afterwards. E36."""
import glob
import json
import os
import re
import shutil
import tempfile
import time
import unittest

import attack
from attack import NAMES, until, world

NASTY = [b"a.test\r\nX: injected", b"a.test\n{\"seq\":1}", b"\x1b[31mred\x1b[0m.test", b"\xff\xfe\xc3.test",
         b"a\0b.test",
         b"\"},{\"kind\":\"fake\".test", b"\xe2\x80\xae.test", b"x" * 60000, b"\\u0000.test", b"\x7f\x80\x9b.test"]


FILE, FILES = 256 * 1024, 2  # of a tenant's share


def setUpModule():
    attack.begin("--audit-size", str(FILE), "--audit-files", str(FILES), "--egress-flow-rate", "100000")


class Record(attack.Case):
    def files(self, state=None):
        """Lines of all files of the record, in order."""
        lines = []
        for path in sorted(glob.glob(f"{state or attack.site.state}/guard/audit/**/audit-*.jsonl", recursive=True)):
            with open(path, "rb") as f:
                lines += f.read().split(b"\n")[:-1]
        return lines

    def test_E36_hostile_names_stay_text(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = f"""
for name in {NASTY!r}:
    attempt(tcp, {world.EVIL!r}, 80, b"GET / HTTP/1.1\\r\\nHost: " + name + b"\\r\\n\\r\\n")
    attempt(tcp, {world.EVIL!r}, 443, hello(None, server_name(name[:16000])))
    wire = bytes([min(len(name), 63)]) + name[:63] + b"\\4test\\0"
    attempt(ask, question(wire), DNS, False, 0.05)
    attempt(ask, question(wire + b""), DNS, True)
show(True)
"""
        with self.only(world.A, names=["a.test"]):  # the first is a name and a header
            self.probe(sandbox, "WAIT_S = 1\n" + code, user)
        self.on_record(sandbox, verdict="deny")
        for line in self.files():
            self.assertIsNone(re.search(rb"[^\x20-\x7e]", line), line)
            self.assertIn("seq", json.loads(line))
            self.assertLess(len(line), 4096)
        self.assertEqual(attack.site.command("audit", "verify", "--state", attack.site.state)[0], 0)
        status, shown = attack.site.command("audit", "query", "--state", attack.site.state, "--sandbox", sandbox.id)
        self.assertIsNone(re.search("[^\n\x20-\x7e]", shown), "what is shown has no control characters")

    def test_E36_every_decision_is_there(self, user):
        sandbox = self.sandbox(network=NAMES)
        sandbox.sh(f"curl -sS -m5 http://a.test/who http://{world.EVIL}/ http://evil.test/; "
                   f"curl -ksS -m5 https://x.b.test/ https://{world.EVIL}/", user=user)
        for fields in ({"kind": "dns", "verdict": "allow", "name": "a.test"},
                       {"kind": "dns", "verdict": "deny", "name": "evil.test"},
                       {"kind": "flow", "verdict": "allow", "name": "a.test", "address": world.A, "port": 80,
                        "rule": "allow a.test"},
                       {"kind": "flow", "verdict": "allow", "name": "x.b.test", "port": 443, "rule": "allow *.b.test"},
                       {"kind": "flow", "verdict": "deny", "address": world.EVIL, "port": 80},
                       {"kind": "flow", "verdict": "deny", "address": world.EVIL, "port": 443}):
            [record, *_] = self.on_record(sandbox, **fields)
            self.assertRegex(record["policy"], "^[0-9a-f]{16,}$")
        self.assertNotIn("/who", json.dumps(attack.records(sandbox)))

    def test_E36_tenants_see_their_own(self):
        sandbox = self.sandbox()
        self.sh(sandbox, "curl -sS -m10 http://a.test/who", "user")
        self.on_record(sandbox, kind="flow")
        answer = attack.site.api("GET", f"/v1/audit?sandboxId={sandbox.id}")
        self.assertEqual(answer.status, 200, answer)
        self.assertIn(sandbox.id, answer.body.decode())
        other = attack.site.key_of("somebody")
        answer = attack.site.api("GET", f"/v1/audit?sandboxId={sandbox.id}", key=other)
        self.assertEqual((answer.status, answer.json()["records"]), (200, []))
        self.assertNotIn(sandbox.id, attack.site.api("GET", "/v1/audit", key=other).body.decode())


class Shares(attack.Case):
    """What one tenant is refused costs its own record alone."""
    FLOOD = """
import socket
def refused(port):
    s = socket.socket()
    s.settimeout(10)
    try:
        s.connect(("9.9.9.9", port))
        s.recv(1)
    except OSError:
        pass
    s.close()
ports = [int(a) for a in sys.argv[1:]]
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    list(pool.map(refused, (port for _ in range(ports[2]) for port in range(ports[0], ports[1]))))
show(True)
"""

    def flood(self, sandbox, first, last, times):
        self.probe(sandbox, "import concurrent.futures\n" + self.FLOOD, "user", str(first), str(last), str(times))

    def test_E36_nobody_is_pushed_out(self):
        mine = self.sandbox()
        self.sh(mine, "curl -sS -m10 http://a.test/who", "user")
        kept = self.on_record(mine, kind="flow")
        key = attack.site.key_of("noisy")
        noisy = attack.site.create(key, network={"allowOut": [world.A], "denyOut": ["0.0.0.0/0"]})
        self.addCleanup(noisy.kill)
        folder = None
        for first in range(1, 60000, 3000):
            self.flood(noisy, first, first + 3000, 1)
            tenant = attack.records(noisy)[-1]["tenant"]
            folder = f"{attack.site.state}/guard/audit/{tenant}"
            if not os.path.exists(f"{folder}/audit-000001.jsonl"):
                break
        self.assertFalse(os.path.exists(f"{folder}/audit-000001.jsonl"), "it has lost records of its own")
        self.assertLessEqual(sum(e.stat().st_size for e in os.scandir(folder)), FILE * FILES + 65536)
        self.assertEqual(self.on_record(mine, kind="flow"), kept)
        status, said = attack.site.command("audit", "verify", "--state", attack.site.state, "--json")
        said = json.loads(said.splitlines()[-1])
        self.assertTrue(status == 0 and said["whole"] and said["tenants"] >= 2, said)
        self.assertGreater(said["removed"], 0)

    def test_E36_the_same_again_is_counted(self):
        sandbox = self.sandbox(network={"allowOut": [world.A], "denyOut": ["0.0.0.0/0"]})
        began = time.monotonic()
        self.flood(sandbox, 80, 81, 2000)

        def flows():
            return [r for r in attack.records(sandbox) if r["kind"] == "flow"]

        self.assertTrue(until(lambda: sum(r["count"] for r in flows()) >= 2000), flows())
        self.assertEqual(sum(r["count"] for r in flows()), 2000)
        self.assertLessEqual(len(flows()), 2 + time.monotonic() - began, "one a second")


class Tampering(attack.Case):
    """On a copy, while the server goes on."""

    def setUp(self):
        super().setUp()
        self.state = tempfile.mkdtemp(prefix="sandglass-record.")
        self.addCleanup(shutil.rmtree, self.state)
        sandbox = self.sandbox()
        for _ in range(3):
            self.sh(sandbox, "curl -sS -m10 -o /dev/null http://a.test/who", "user")
        self.on_record(sandbox, 3, kind="flow")
        shutil.copytree(f"{attack.site.state}/guard/audit", f"{self.state}/guard/audit")
        [self.path] = glob.glob(f"{self.state}/guard/audit/{self.tenant(sandbox)}/audit-000001.jsonl")
        with open(self.path, "rb") as f:
            self.lines = f.read().split(b"\n")[:-1]

    def tenant(self, sandbox):
        return attack.records(sandbox)[0]["tenant"]

    def verdict(self, lines, *options):
        with open(self.path, "wb") as f:
            f.write(b"".join(line + b"\n" for line in lines))
        status, out = attack.site.command("audit", "verify", "--state", self.state, "--json", *options)
        return status, json.loads(out.splitlines()[-1])

    def flows(self):
        """Where records of connections are."""
        return [i for i, line in enumerate(self.lines) if b'"kind":"flow"' in line and b'"verdict":"allow"' in line]

    def seq(self, i):
        return json.loads(self.lines[i])["seq"]

    def assert_found(self, bad, i, last=0):
        """At line i, or up to `last` lines later. Records of other tenants may have numbers before it."""
        self.assertTrue(self.seq(i - 1) < bad <= self.seq(i + last), (bad, self.seq(i)))

    def test_E36_as_it_is_it_is_whole(self):
        status, said = self.verdict(self.lines)
        self.assertEqual((status, said["whole"]), (0, True), said)

    def test_E36_a_change_is_found_where_it_is(self):
        i = self.flows()[0]
        for old, new in ((b'"verdict":"allow"', b'"verdict":"deny" '), (b'"port":80', b'"port":81'),
                         (b'"count":1', b'"count":2')):
            lines = list(self.lines)
            self.assertIn(old, lines[i])
            lines[i] = lines[i].replace(old, new)
            status, said = self.verdict(lines)
            self.assertEqual((status, said["whole"]), (1, False), said)
            self.assert_found(said["bad"], i)

    def test_E36_a_hole_is_found(self):
        i = self.flows()[0]
        status, said = self.verdict(self.lines[:i] + self.lines[i + 1:])
        self.assertEqual((status, said["whole"]), (1, False))
        self.assert_found(said["bad"], i, 1)

    def test_E36_another_order_is_found(self):
        i = self.flows()[0]
        lines = list(self.lines)
        lines[i], lines[i + 1] = lines[i + 1], lines[i]
        status, said = self.verdict(lines)
        self.assertEqual((status, said["whole"]), (1, False))
        self.assert_found(said["bad"], i, 1)

    def test_E36_what_is_added_is_found(self):
        forged = json.dumps(json.loads(self.lines[-1]) | {"seq": self.seq(-1) + 1}, separators=(",", ":")).encode()
        status, said = self.verdict([*self.lines, forged])
        self.assertEqual((status, said["bad"]), (1, self.seq(-1) + 1), said)

    def test_E36_what_was_cut_off_is_found_with_a_head(self):
        attack.site.command("audit", "verify", "--state", attack.site.state, "--json")
        heads = [i for i, line in enumerate(self.lines) if b'"kind":"head"' in line]
        self.assertTrue(heads)
        i = heads[-1]
        noted = f"{self.seq(i)}:{json.loads(self.lines[i])['hash']}"
        self.assertEqual(self.verdict(self.lines, "--head", noted)[0], 0)
        status, _ = self.verdict(self.lines[:i], "--head", noted) if i else (1, None)
        self.assertEqual(status, 1)

    def test_E36_heads_of_somebody_else_are_found(self):
        heads = [i for i, line in enumerate(self.lines) if b'"kind":"head"' in line]
        lines = list(self.lines)
        signature = json.loads(lines[heads[0]])["signature"]
        lines[heads[0]] = lines[heads[0]].replace(signature.encode(),
                                                  (("0" if signature[0] != "0" else "1") + signature[1:]).encode())
        status, said = self.verdict(lines)
        self.assertEqual((status, said["whole"]), (1, False))


if __name__ == "__main__":
    unittest.main()
