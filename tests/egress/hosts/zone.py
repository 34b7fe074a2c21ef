"""What the DNS server knows. Names say what they do: those of class Trick are answered wrongly, late or
never (tricks.py); the others have records."""
import itertools
import socket
import struct

import world

A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, HTTPS = 1, 2, 5, 6, 12, 15, 16, 28, 33, 65
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)
TTL = 60


class Trick:
    def __init__(self, how):
        self.how = how


class Code:
    """No records: this answer code."""

    def __init__(self, code):
        self.code = code


class Turns:
    """Another answer each time: what was checked is not what is used."""

    def __init__(self, *answers):
        self._answers = itertools.cycle(answers)

    def next(self):
        return next(self._answers)


def wire_name(name):
    return b"".join(bytes([len(x)]) + x.encode() for x in name.split(".") if x) + b"\0"


def v4(*addresses):
    return {A: [socket.inet_aton(a) for a in addresses]}


def v6(*addresses):
    return {AAAA: [socket.inet_pton(socket.AF_INET6, a) for a in addresses]}


def alias(name):
    return {CNAME: [name]}


def text(*strings):
    return {TXT: [bytes([len(s)]) + s.encode() for s in strings]}


def parameter(key, value):
    return struct.pack(">HH", key, len(value)) + value


def service():
    """An HTTPS record with all that a guard must take out: hints for addresses, and a key for ECH."""
    return {HTTPS: [struct.pack(">H", 1) + b"\0" + parameter(1, b"\2h2\x08http/1.1") +
                    parameter(4, socket.inet_aton(world.EVIL)) + parameter(5, b"\0\x0aech-config") +
                    parameter(6, socket.inet_pton(socket.AF_INET6, world.EVIL6))]}


NAMES = {
    "a.test": v4(world.A) | text("v=a") | {MX: [struct.pack(">H", 10) + wire_name("mail.a.test")]},
    "www.a.test": v4(world.A),
    "b.test": v4(world.B),
    "evil.test": v4(world.EVIL) | v6(world.EVIL6) | text("stolen"),
    "six.test": v6(world.SIX),
    "dual.test": v4(world.A) | v6(world.SIX),
    "pypi.test": v4(world.REGISTRY),
    "npm.test": v4(world.REGISTRY),
    "git.test": v4(world.REGISTRY),
    "ssh.test": v4(world.TALK),
    "talk.test": v4(world.TALK),
    "proxy.test": v4(world.PROXY),
    "expired.test": v4(world.A),
    "wrong.test": v4(world.A),
    "stranger.test": v4(world.A),
    "self.test": v4(world.A),
    "https.test": v4(world.A) | service(),
    "many.test": v4(*(f"93.184.216.{i}" for i in range(34, 38)), *(f"93.184.217.{i}" for i in range(40))),
    "dead.test": v4("93.184.216.99"),  # nobody is there
    # aliases
    "alias.test": alias("a.test"),
    "alias2.test": alias("alias.test"),
    "alias-evil.test": alias("evil.test"),
    "alias-inside.test": alias("private.rebind.test"),
    "alias-loop.test": alias("alias-loop2.test"),
    "alias-loop2.test": alias("alias-loop.test"),
    "alias-away.test": alias("nowhere.invalid"),
    # names that point inside
    "loopback.rebind.test": v4("127.0.0.1"),
    "loopback6.rebind.test": v6("::1"),
    "zero.rebind.test": v4("0.0.0.0"),
    "private.rebind.test": v4("10.9.9.9"),
    "metadata.rebind.test": v4("169.254.169.254"),
    "mapped.rebind.test": v6("::ffff:10.9.9.9"),
    "nat64.rebind.test": v6("64:ff9b::a09:909"),
    "6to4.rebind.test": v6("2002:a09:909::1"),
    "unique.rebind.test": v6("fd00::9"),
    "host.rebind.test": v4(world.EDGE4) | v6(world.EDGE6),
    "mixed.rebind.test": v4("10.9.9.9", world.A),
    "turns.rebind.test": Turns(v4(world.A), v4("10.9.9.9")),
    "turns2.rebind.test": Turns(v4("10.9.9.9"), v4(world.A)),
    "turns-evil.rebind.test": Turns(v4(world.A), v4(world.EVIL)),
    # no answers
    "nothing.test": {},
    "refused.test": Code(REFUSED),
    "servfail.test": Code(SERVFAIL),
    # late, cut, malformed, not what was asked: tricks.py
    **{f"{how}.trick.test": Trick(how) for how in (
        "slow", "never", "cut", "cut-never", "wrong-id", "wrong-name", "wrong-type", "no-question",
        "extra", "loop", "short", "count", "length", "label", "empty", "noise", "query", "twice",
        "late-lie", "flood")},
}
BELOW = {"b.test": v4(world.B), "evil.test": v4(world.EVIL) | text("stolen")}  # *.b.test, *.evil.test


def find(name):
    """What is known of a name in lower case; None: there is no such name."""
    if name in NAMES:
        known = NAMES[name]
        return known.next() if isinstance(known, Turns) else known
    for domain, known in BELOW.items():
        if name.endswith("." + domain):
            return known
    return None
