"""The way out: what the guard adds to connections, bytes and requests, what it holds, how it decides.

Everything happens in network namespaces of a bed (tests/egress): the server and the guard are in its edge, the other
end is a C program (egress/host.c) in its internet."""
import concurrent.futures
import contextlib
import glob
import subprocess
import sys
import time

from . import programs
from .report import Times, by_case

sys.path.insert(0, str(programs.ROOT / "tests/egress"))
import lib  # noqa: E402
import world  # noqa: E402

HOST = programs.OUTPUT / "egress-host"
RELAY = programs.OUTPUT / "egress-relay"
DECIDE = programs.OUTPUT / "egress-decide"
NET, HTTPS = programs.INSIDE / "net", programs.INSIDE / "https"

PORT = 9100  # of the host: echo, bytes, HTTPS
RELAY_PORT = 9200
NAME = "a.test"
SECRET = "bench-0123456789abcdef"

TURNS, CONNECTIONS = 20, 50
REQUESTS = 50
BULK_TURNS, BULK_GB = 5, 2
SANDBOXES, FLOWS = 200, 20
SETTLE_S = 5
PATIENCE_S = 120
NAMES, DECISIONS = 10000, 200000

# Limits that are not what is measured.
OPTIONS = ("--tenant-sandboxes", str(SANDBOXES + 20), "--tenant-rate", "0", "--egress-flows", "128",
           "--egress-flow-rate", "0")
ALL = "0.0.0.0/0"
BY_ADDRESS = {"allowOut": [f"{world.A}/32"], "denyOut": [ALL]}
BY_NAME = {"allowOut": [NAME], "denyOut": [ALL]}
INSPECTED = BY_NAME | {"rules": {NAME: [{"transform": {"headers": {
    "Authorization": "Bearer ${e2b.secrets.bench}"}}}]}}


def build():
    subprocess.run(["musl-gcc", *programs.WARNINGS, "-static", "-s", programs.SOURCES / "inside/net.c",
                    "-o", NET], check=True)
    for source, output in (("inside/https.c", HTTPS), ("egress/host.c", HOST), ("egress/relay.c", RELAY)):
        subprocess.run(["gcc", *programs.WARNINGS, programs.SOURCES / source, "-o", output, "-lssl",
                        "-lcrypto", "-lpthread"], check=True)
    programs.link_inner(DECIDE, "egress/decide.c", libraries=("-ljansson", "-lcrypto"))


def egress(report):
    build()
    decisions(report)
    with Place() as place:
        connections(report, place)
        requests(report, place)
        bulk(report, place)
        flows(report, place)


# ---- where it happens


class Place(contextlib.ExitStack):
    """A bed with a server in its edge and the host in its internet."""

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.make(stack)
            self.push(stack.pop_all())
        return self

    def make(self, stack):
        self.bed = stack.enter_context(lib.Bed())
        # Nothing that is measured passes a filter.
        subprocess.run(["nsenter", f"--net=/run/netns/{self.bed.inet}", "nft", "delete", "table", "inet",
                        "bed"], check=True)
        tls = f"{self.bed.directory}/tls"
        self.host = self.start(stack, self.bed.inet, HOST, world.A, PORT, f"{tls}/a.pem", f"{tls}/host.key",
                               SECRET)
        self.site = stack.enter_context(lib.Site(self.bed, *OPTIONS))

    @staticmethod
    def start(stack, namespace, *command):
        """A program that says when it is ready, until the stack is unwound."""
        process = subprocess.Popen(["nsenter", f"--net=/run/netns/{namespace}", *map(str, command)],
                                   stdout=subprocess.PIPE, text=True)
        stack.callback(process.wait)
        stack.callback(process.kill)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"'{command[0].name}' does not start")
        return process

    def directly(self, *command, namespace=None):
        """The numbers that a program prints, outside of sandboxes."""
        run = subprocess.run(["nsenter", f"--net=/run/netns/{namespace or self.bed.edge_name}",
                              *map(str, command)], stdout=subprocess.PIPE, text=True, check=True,
                             env=programs.ENVIRONMENT | {"SSL_CERT_FILE": self.bed.root})
        return numbers(run.stdout)

    def sandbox(self, network, *binaries):
        sandbox = self.site.create(network=network)
        for binary in binaries:
            sandbox.put(binary.name, binary.read_bytes())
        return sandbox

    def guard(self):
        for path in glob.glob("/proc/[0-9]*/status"):
            with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
                fields = dict(line.split(":\t", 1) for line in file if ":\t" in line)
                if fields["Name"].startswith("sg-guard") \
                        and int(fields["PPid"]) == self.site.process.pid:
                    return path.split("/")[2]
        raise RuntimeError("there is no guard")


def inside(sandbox, program, *arguments):
    """The numbers that a program prints in a sandbox."""
    words = " ".join(map(str, arguments))
    status, output = sandbox.sh(f"chmod +x {program.name}; ./{program.name} {words}")
    if status != 0:
        raise RuntimeError(f"'{program.name} {words}' in a sandbox: {status} {output[-300:]}")
    return numbers(output)


def numbers(text):
    return [float(line) for line in text.splitlines()]


def in_turns(turns, contenders):
    """{name: all that it said}, every other turn backwards."""
    found = {name: [] for name in contenders}
    for i in range(turns):
        for name in list(contenders)[::-1 if i % 2 else 1]:
            found[name] += contenders[name]()
    return found


def save(report, name, found):
    report.save(name, [{"case": case, "us": us} for case, values in found.items() for us in values])


def added(report, measure, ours, theirs, limit):
    report.row(measure, ours.p50 - theirs.p50, limit, "ms", f"{ours} against {theirs}")


# ---- the measures


def connections(report, place):
    """Where the name decides, a request is sent: to where the name was found to be before, which is an address that
    stands for it, and to its real address, where the guard has nothing to go by but the request."""
    by_address, by_name = place.sandbox(BY_ADDRESS, NET), place.sandbox(BY_NAME, NET)
    byte, request = ("connect", world.A, PORT, CONNECTIONS), ("connect", world.A, PORT, CONNECTIONS, NAME)
    found = in_turns(TURNS, {
        "direct": lambda: place.directly(NET, *byte),
        "by address": lambda: inside(by_address, NET, *byte),
        "direct, request": lambda: place.directly(NET, *request),
        "by name": lambda: inside(by_name, NET, "connect", NAME, PORT, CONNECTIONS, NAME),
        "by name in the request": lambda: inside(by_name, NET, *request)})
    save(report, "egress-connect", found)
    times = {name: Times(values) for name, values in found.items()}
    for name, direct, limit in (("by address", "direct", 0.15), ("by name", "direct, request", 0.4),
                                ("by name in the request", "direct, request", 0.4)):
        added(report, f"guard, {name}: connect + first byte, more than directly, p50", times[name],
              times[direct], limit)
    by_address.kill()
    by_name.kill()


def requests(report, place):
    """One kept connection in each turn. The secret is in the header, so that answers are searched for it too."""
    a = place.site.api("POST", "/secrets", {"name": "bench", "value": SECRET})
    if a.status != 201:
        raise RuntimeError(f"no secret: {a}")
    sandbox = place.sandbox(INSPECTED, HTTPS)
    found = in_turns(TURNS, {
        "direct": lambda: place.directly(HTTPS, NAME, PORT + 2, REQUESTS, "no", world.A),
        "inspected": lambda: inside(sandbox, HTTPS, NAME, PORT + 2, REQUESTS, "yes")})
    save(report, "egress-https", found)
    added(report, "guard, HTTPS request with a header put in: more than directly, p50",
          Times(found["inspected"]), Times(found["direct"]), 1)
    sandbox.kill()


@contextlib.contextmanager
def plain_relay(place):
    """A namespace with nothing but lo, as a sandbox has it, and the relay out of it."""
    name = f"{place.bed.name}-bare"
    subprocess.run(["ip", "netns", "add", name], check=True)
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=True)
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        place.start(stack, place.bed.edge_name, RELAY, f"/run/netns/{name}", RELAY_PORT, world.A, PORT + 1)
        yield name


def bulk(report, place):
    sandbox = place.sandbox(BY_ADDRESS, NET)
    size = BULK_GB * 10**9
    with plain_relay(place) as bare:
        for verb in ("download", "upload"):
            found = in_turns(BULK_TURNS, {
                "guard": lambda: inside(sandbox, NET, verb, world.A, PORT + 1, size),
                "plain": lambda: place.directly(NET, verb, "127.0.0.1", RELAY_PORT, size, namespace=bare)})
            save(report, f"egress-{verb}", found)
            ours, theirs = (Times(values).p50 / BULK_GB for values in found.values())
            rates = f"{1000 / ours:.2f} GB/s, plain splice {1000 / theirs:.2f} GB/s"
            # The bar is one or the other.
            if ours <= 500:
                report.row(f"guard, {verb} of {BULK_GB} GB: ms a GB", ours, 500, "ms", rates)
            else:
                report.row(f"guard, {verb} of {BULK_GB} GB, plain splice = 1", ours / theirs, 1 / 0.6, "x",
                           rates)
    sandbox.kill()


def established(process, port):
    """Connections to a port, in the namespace of a process."""
    with open(f"/proc/{process.pid}/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file][1:]
    return sum(1 for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01")


def until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} after {PATIENCE_S} s")
        time.sleep(0.1)


def memory_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        fields = {line.split()[0]: int(line.split()[1]) / 1024 for line in file if line.endswith(" kB\n")}
    return fields["Rss:"], fields["Pss_Anon:"]


def flows(report, place):
    guard = place.guard()
    before = memory_mib(guard)[0]
    with concurrent.futures.ThreadPoolExecutor(SANDBOXES) as pool:
        sandboxes = [place.sandbox(BY_ADDRESS, NET) for _ in range(SANDBOXES)]
        running = [pool.submit(inside, sandbox, NET, "flows", world.A, PORT, FLOWS, "finish") for sandbox in sandboxes]
        try:
            until(lambda: established(place.host, PORT) >= SANDBOXES * FLOWS, "not all flows are open")
            time.sleep(SETTLE_S)
            rss, anonymous = memory_mib(guard)
        finally:
            for sandbox in sandboxes:
                sandbox.put("finish", b"")
        alive = sum(int(job.result()[0]) for job in running)
    if place.guard() != guard:
        raise RuntimeError("another guard has taken over")
    what = f"{SANDBOXES * FLOWS} flows of {SANDBOXES} sandboxes"
    report.save("egress-flows", [{"case": "flows", "before_mib": before, "rss_mib": rss,
                                  "anonymous_mib": anonymous, "alive": alive}])
    report.row(f"{what}: memory of the guard", rss, 96, "MiB",
               f"its own {anonymous:.1f}, before {before:.1f}")
    report.row(f"{what}: flows lost", SANDBOXES * FLOWS - alive, 0)


def decisions(report):
    samples = programs.bench(NAMES, DECISIONS, program=(DECIDE,))
    report.save("egress-decide", samples)
    times = by_case(samples)
    parse = times.pop("parse")
    worst = max(times.values(), key=lambda t: t.p50)
    report.row(f"policy with {NAMES} names: a decision, the slowest sort", worst.p50 * 1000, 5, "us",
               ", ".join(f"{name} {t.p50 * 1000:.2f}" for name, t in times.items()))
    report.row(f"policy with {NAMES} names: reading it", parse.p50, None, "ms")
