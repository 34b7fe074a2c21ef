"""What one tenant feels of another: its creates, cells and kills, while the other one attacks.

Each attack takes turns with a control, in which the attacker does nothing but keep the same processors busy: that much any
neighbour may do."""
import contextlib
import json
import os
import subprocess
import sys
import threading
import zlib

from . import programs, server
from .report import Times, by_case

sys.path.insert(0, str(programs.ROOT / "tests/attack/lib"))
os.environ.setdefault("SANDGLASS", str(programs.SANDGLASS))
import server as attacked  # noqa: E402

SECONDS, TURNS = 5, 3
FLOOR_MS = 5  # below this nobody minds
RATIO = 2
WHOLE_RATIO = 1.5  # create and kill together, beside the heaviest forks
BUSY = 100
UPLOADS, UPLOAD_MB = 24, 1500
OPEN_FILES, DEEP_FILES, DEPTH = 500, 200, 900
SYNCING = 4
LARGE_MB = 62  # of OPEN_FILES together, DEPTH directories deep

OPTIONS = ("--tenant-sandboxes", str(BUSY + 20), "--tenant-rate", "0", "--warm-kernels", "standard")

SPIN = "while True: pass\n"
OPEN_MANY = ("import os\nos.makedirs('many', exist_ok=True)\n"
             f"held = [open(f'many/{{i}}', 'w+') for i in range({OPEN_FILES})]\nlen(held)")
OPEN_DEEP = ("import os\nhome = os.getcwd()\n"
             f"for _ in range({DEPTH}):\n    os.makedirs('d', exist_ok=True)\n    os.chdir('d')\n"
             f"held = [open(str(i), 'w+') for i in range({DEEP_FILES})]\nos.chdir(home)\nlen(held)")
OPEN_LARGE = (OPEN_DEEP.replace(f"range({DEEP_FILES})", f"range({OPEN_FILES})") +
              f"\nfor file in held: file.write('x' * ({LARGE_MB} * 2**20 // {OPEN_FILES})), file.flush()\nlen(held)")
SYNC = """
import os, threading
def write(n):
    fd = os.open(f"FILE.{n}", os.O_RDWR | os.O_CREAT)
    while True:
        os.pwrite(fd, os.urandom(65536), 0)
        os.fsync(fd)
        with open(f"FILE.{n}.new", "w") as f:
            os.fsync(f.fileno())
        os.rename(f"FILE.{n}.new", f"FILE.{n}.old")
for n in range(4): threading.Thread(target=write, args=[n]).start()
"""
DENIED = """
import socket, threading
def knock():
    n = 0
    while True:
        s = socket.socket()
        s.settimeout(1)
        try:
            s.connect((f"203.0.113.{n % 250 + 1}", 80))
        except OSError:
            pass
        s.close()
        n += 1
for _ in range(16): threading.Thread(target=knock).start()
"""


def neighbours(report):
    server.build()
    with attacked.Site(*OPTIONS) as site:
        victim = Victim(site)
        victim.samples(3)  # the pool learns
        alone = victim.samples(SECONDS * TURNS)
        report.save("neighbours-alone", alone)
        for what, attack in ATTACKS.items():
            control, samples = [], []
            for _ in range(TURNS):
                with spinning(site, os.cpu_count()):
                    control += victim.samples(SECONDS)
                with attack(site):
                    samples += victim.samples(SECONDS)
            name = what.replace(",", "").replace(" ", "-")
            report.save(f"neighbours-{name}", samples)
            report.save(f"neighbours-{name}-control", control)
            judge(report, what, by_case(samples), by_case(control), by_case(alone))
            if what == LARGE:
                judge_whole(report, what, whole(samples), whole(control))


class Victim:
    def __init__(self, site):
        self.port, self.key = str(site.port), site.key_of("neighbour")

    def samples(self, seconds):
        run = subprocess.run([server.LOAD, self.port, self.key, "neighbour", str(seconds)], check=False,
                             stdout=subprocess.PIPE, text=True, env=programs.ENVIRONMENT)
        if run.returncode != 0:
            raise RuntimeError("the neighbour was refused: see the line above")
        return [json.loads(line) for line in run.stdout.splitlines()]


def judge(report, what, during, control, alone):
    for case, times in during.items():
        p99, beside, none = (t.quantile(0.99) for t in (times, control[case], alone[case]))
        report.row(f"beside {what}: a neighbour's {case}, p99", p99, max(FLOOR_MS, RATIO * beside), "ms",
                   f"{times}; p99 beside one that spins {beside:.2f}, alone {none:.2f}")


def whole(samples):
    """A sandbox's create and its kill in one figure: the client does one after the other."""
    times = {case: [s["us"] for s in samples if s.get("case") == case] for case in ("create", "kill")}
    return Times([sum(both) for both in zip(times["create"], times["kill"])])


def judge_whole(report, what, during, control):
    beside = control.quantile(0.99)
    report.row(f"beside {what}: a neighbour's create + kill, p99", during.quantile(0.99), WHOLE_RATIO * beside, "ms",
               f"{during}; p99 beside one that spins {beside:.2f}")


# ---- attacks: each goes on for as long as its context is entered


@contextlib.contextmanager
def spinning(site, sandboxes):
    made = [site.create() for _ in range(sandboxes)]
    for sandbox in made:
        sandbox.python(SPIN)
    try:
        yield
    finally:
        for sandbox in made:
            sandbox.kill()


@contextlib.contextmanager
def repeating(count, act):
    """Threads that do the same over and over; what the server answers does not matter. They stand for a client on another
    machine, so they get only the processor time that nobody else wants."""
    stop = threading.Event()

    def go():
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while not stop.is_set():
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                act()

    threads = [threading.Thread(target=go) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def packed(head, megabytes):
    packer = zlib.compressobj(wbits=31)
    zeros = bytes(1000 * 1000)
    return packer.compress(head) + b"".join(packer.compress(zeros) for _ in range(megabytes)) + packer.flush()


@contextlib.contextmanager
def uploads(site):
    """Zeros behind the last part of a form, packed to a thousandth."""
    sandbox = site.create()
    body = packed(b"--B--\r\n", UPLOAD_MB)
    headers = sandbox.headers(**{"Content-Type": "multipart/form-data; boundary=B", "Content-Encoding": "gzip"})
    with repeating(UPLOADS, lambda: site.ask("POST", "/files", headers, body)):
        yield
    sandbox.kill()


def forks_of(code, count):
    @contextlib.contextmanager
    def attack(site):
        sandbox = site.create()
        if sandbox.cell(code).text != str(count):
            raise RuntimeError("the files to fork with cannot be opened")

        def fork():
            answer = site.api("POST", f"/sandboxes/{sandbox.id}/fork", {"count": 1, "timeout": 60})
            for one in answer.json() if answer.status == 201 else []:
                site.api("DELETE", f"/sandboxes/{one['sandbox']['sandboxID']}")

        with repeating(1, fork):
            yield
        sandbox.kill()
    return attack


@contextlib.contextmanager
def refused(site):
    """Connections that the policy refuses, each of which the record must tell of."""
    sandbox = site.create(network={"denyOut": ["0.0.0.0/0"]})
    sandbox.python(DENIED)
    yield
    sandbox.kill()


@contextlib.contextmanager
def syncing(site):
    """Writes to a volume, each of which waits for the disk."""
    if site.api("GET", "/volumes").json() == []:
        site.api("POST", "/volumes", {"name": "synced"})
    made = [site.create(volumeMounts=[{"name": "synced", "path": "/mnt"}]) for _ in range(SYNCING)]
    for n, sandbox in enumerate(made):
        sandbox.python(SYNC.replace("FILE", f"/mnt/{n}"))
    yield
    for sandbox in made:
        sandbox.kill()


LARGE = f"forks with {OPEN_FILES} files, {LARGE_MB} MiB in all, {DEPTH} directories deep"
ATTACKS = {
    f"{UPLOADS} uploads of {UPLOAD_MB} MB of packed zeros": uploads,
    f"forks with {OPEN_FILES} open files": forks_of(OPEN_MANY, OPEN_FILES),
    f"forks with {DEEP_FILES} files {DEPTH} directories deep": forks_of(OPEN_DEEP, DEEP_FILES),
    LARGE: forks_of(OPEN_LARGE, OPEN_FILES),
    f"{BUSY} busy sandboxes of one tenant": lambda site: spinning(site, BUSY),
    "connections that are refused": refused,
    f"{SYNCING} sandboxes that sync what they write": syncing,
}
