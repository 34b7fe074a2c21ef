"""What the attacks share: a bed and a server for each file, sandboxes that end with their test, and what was seen.

A test with a parameter `user` becomes two, one for each user of a sandbox. After each the guard must be the same
process as before and do its work: a sandbox that has nothing to do with the attack, the witness, asks it to.
"""
import concurrent.futures
import contextlib
import inspect
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import lib  # noqa: E402
from lib import world  # noqa: E402

import host  # noqa: E402  lib has set the path
from server_client import until  # noqa: E402

USERS = ("user", "root")
NAMES = {"allowOut": ["a.test", "*.b.test"], "denyOut": ["0.0.0.0/0"]}
WITNESS = world.REGISTRY  # where it goes; nothing else does, in attacks
QUIET = {"05", "06", "07", "0A"}  # states in /proc/net/tcp in which nothing is sent: all was said, or it listens
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F")

with open(f"{lib.HERE}/inside/probe.py") as _f:
    PROBE = _f.read()

bed = site = witness = None


def begin(*options):
    """For setUpModule."""
    global bed, site, witness
    bed = unittest.enterModuleContext(lib.Bed())
    site = unittest.enterModuleContext(lib.Site(bed, *options))
    witness = site.create()


def child(name):
    """The pid of the server's child with that name; None."""
    server = site.process.pid
    for thread in os.listdir(f"/proc/{server}/task"):
        with open(f"/proc/{server}/task/{thread}/children") as f:
            for pid in map(int, f.read().split()):
                if host.status(pid).get("Name") == name:
                    return pid
    return None


def guard():
    return child("sg-guard")


def told_no(answer):
    """Whether the guard has said in HTTP that it does not let this through."""
    return answer.startswith("HTTP/1.1 4") and "\r\n\r\nsandglass: " in answer


def outside():
    """Connections of the edge with the internet that may still send something."""
    found = []
    with bed.edge():
        for name in ("tcp", "tcp6"):
            with open(f"/proc/thread-self/net/{name}") as f:
                found += [line.split() for line in f.readlines()[1:]]
    return [line for line in found if line[3] not in QUIET and not line[2].startswith(LOOPBACK)]


def records(sandbox, **filters):
    """What is on record of a sandbox, the newest last."""
    options = [word for key, value in filters.items() for word in (f"--{key}", value)]
    status, out = site.command("audit", "query", "--state", site.state, "--json", "--limit", "1000",
                               "--sandbox", sandbox.id, *options)
    if status != 0:
        raise RuntimeError(f"sandglass audit: {out}")
    return [json.loads(line) for line in out.splitlines()]


class Case(unittest.TestCase):
    maxDiff = None

    def __init_subclass__(cls):
        for name, test in inspect.getmembers(cls, inspect.isfunction):
            if name.startswith("test") and "user" in inspect.signature(test).parameters:
                setattr(cls, name, None)
                for user in USERS:
                    setattr(cls, f"{name}_as_{user}", lambda self, test=test, user=user: test(self, user))

    def setUp(self):
        until(lambda: not outside())
        self.before, self.guard, self.looked = bed.now(), guard(), False
        self.assertTrue(self.guard, "there is a guard")

    def tearDown(self):
        self.assertEqual(site.trouble(), [])
        self.assertEqual(guard(), self.guard, "the guard is the same")
        if not self.looked:
            self.look()

    def look(self):
        """The guard has done all that came before, and does what it should."""
        said = witness.sh(f"curl -sS -m 20 http://{WITNESS}/who")
        self.assertIn('"who": "registry"', said[1], said)
        self.looked = True

    def sandbox(self, **fields):
        sandbox = site.create(**fields)
        self.addCleanup(sandbox.kill)
        return sandbox

    def sh(self, sandbox, command, user, status=0):
        got, out = sandbox.sh(command, user=user)
        self.assertEqual(got, status, f"{command}: {out}")
        return out

    def probe(self, sandbox, code, user, *args):
        """What a program inside shows: the last line that it prints, as JSON."""
        path = f"/tmp/probe-{user}.py"
        sandbox.put(path, (PROBE + "\n" + code).encode(), user=user)
        status, out = sandbox.sh(f"python3 {path} {' '.join(args)}", user=user)
        self.assertEqual(status, 0, out)
        return json.loads(out.splitlines()[-1])

    def both(self, function):
        """{user: what it gives}, for slow ones: both users at once."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return dict(zip(USERS, pool.map(function, USERS)))

    @contextlib.contextmanager
    def only(self, *addresses, names=()):
        """Packets go to these addresses alone, and questions are asked about these names alone."""
        before = bed.now()
        yield before
        self.look()
        elsewhere = [key for key in before.arrived() if key[0] not in (world.DNS, WITNESS, *addresses)]
        self.assertEqual(elsewhere, [])
        self.assertEqual({q["name"] for q in before.queries()} - set(names), set())

    def nothing(self):
        """Nothing leaves."""
        return self.only()

    def on_record(self, sandbox, count=1, **fields):
        """At least so many records that have these fields."""
        def found():
            lines = [r for r in records(sandbox) if fields.items() <= r.items()]
            return lines if len(lines) >= count else None

        lines = until(found)
        self.assertTrue(lines, f"{fields} is not on record: {records(sandbox)[-20:]}")
        return lines
