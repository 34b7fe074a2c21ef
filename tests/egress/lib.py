"""Egress, for tests: a bed (an internet in network namespaces), a server in its edge, sandboxes of that server.

    with Bed() as bed, Site(bed) as site:
        sandbox = site.create(network={"allowOut": ["a.test"], "denyOut": ["0.0.0.0/0"]})
        before = bed.now()
        sandbox.sh("curl -m5 http://evil.test/", user="root")
        before.reached(world.EVIL), before.packets(world.EVIL), before.queries("evil.test")   # [], 0, []

The test itself stays where it is: only sockets and programs made inside `bed.edge()` are in the edge. Beds have names
of their own, so several tests run at once; a bed goes when its test ends, however that ends.
"""
import base64
import contextlib
import ctypes
import itertools
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
for folder in ("hosts", "../attack/lib", "../system"):
    sys.path.insert(0, os.path.realpath(f"{HERE}/{folder}"))

import server  # noqa: E402
import server_client  # noqa: E402
import world  # noqa: E402

PATIENCE_S = 60
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Variables by which clients are told of another root.
TRUST = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
         "npm_config_cafile")

_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count(1)


def _setns(file):
    if _libc.setns(file.fileno(), 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), file.name)


@contextlib.contextmanager
def inside(namespace):
    """What this thread makes meanwhile, sockets and programs, is in that network namespace. Other threads stay."""
    with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{namespace}") as there:
        _setns(there)
        try:
            yield
        finally:
            _setns(before)


# ---- the bed ----------------------------------------------------------------------------------------------


class Seen:
    """What the hosts have seen since some moment."""

    def __init__(self, bed, offsets, counts):
        self.bed, self.offsets, self.counts = bed, offsets, counts

    def lines(self, host=None, kind=None, **fields):
        """Lines of the hosts' records that have these fields."""
        found = []
        for path in self.bed.logs():
            with open(path, "rb") as f:
                f.seek(self.offsets.get(path, 0))
                found += [json.loads(line) for line in f.read().splitlines()]
        wanted = {k: v for k, v in {"host": host, "kind": kind, **fields}.items() if v is not None}
        return sorted((line for line in found if wanted.items() <= line.items()), key=lambda x: x["time"])

    def reached(self, *addresses):
        """Connections and datagrams that have come to one of these addresses, as far as somebody listens."""
        return [line for line in self.lines()
                if line["kind"] in ("accept", "datagram") and line["local"] in addresses]

    def requests(self, **fields):
        return self.lines("web", "request", **fields)

    def queries(self, name=None):
        """Questions for a name or names below it; for any without one."""
        return [q for q in self.lines("dns", "query")
                if name is None or f".{q['name']}".endswith(f".{name}")]

    def packets(self, *addresses, port=None, protocol=None):
        """How many packets have come to one of these addresses, whether somebody listens or not; to any other than
        the DNS server's if none is given."""
        return sum(n - self.counts.get(key, 0) for key, n in self.bed.counters().items()
                   if (key[0] in addresses if addresses else key[0] != world.DNS)
                   and port in (None, key[2]) and protocol in (None, key[1]))

    def arrived(self):
        """The (address, protocol, port) that packets have come to."""
        return sorted(key for key, n in self.bed.counters().items() if n > self.counts.get(key, 0))


class Bed:
    def __init__(self):
        self.name = f"sg{os.getpid()}-{next(_numbers)}"
        self.inet, self.edge_name = f"{self.name}-inet", f"{self.name}-edge"
        self.directory = self._bed("directory").strip()
        self.root = f"{self.directory}/tls/root.pem"

    def _bed(self, command, *args):
        return subprocess.run([f"{HERE}/bed", command, self.name, *args], check=True, stdout=subprocess.PIPE,
                              text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S).stdout

    def __enter__(self):
        self._bed("up", str(os.getpid()))
        return self

    def __exit__(self, *_):
        self._bed("down")

    def edge(self):
        return inside(self.edge_name)

    def environment(self):
        """Of clients in the edge: nothing of this machine's, and the bed's root is trusted."""
        return {"PATH": PATH, "HOME": self.directory, "LANG": "C.UTF-8", **{name: self.root for name in TRUST}}

    def sh(self, command, timeout=PATIENCE_S):
        """(status, output) of a shell command in the edge, with the bed's names."""
        p = subprocess.run([f"{HERE}/bed", "run", self.name, "bash", "-c", command], env=self.environment(),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return p.returncode, p.stdout.decode(errors="replace")

    def logs(self):
        return [entry.path for entry in os.scandir(f"{self.directory}/logs")]

    def proxied(self):
        """What the SOCKS5 proxy says that it has connected to: NAME:PORT."""
        with open(f"{self.directory}/out/proxy", errors="replace") as f:
            return [line.split("connected to ", 1)[1].strip() for line in f if "connected to " in line]

    def counters(self):
        """(address, protocol, port or 0) -> packets that came over the wire."""
        counters = {}
        with inside(self.inet):
            p = subprocess.run(["nft", "-j", "list", "table", "inet", "bed"], check=True, stdout=subprocess.PIPE)
        for item in json.loads(p.stdout)["nftables"]:
            for element in item.get("set", {}).get("elem", ()):
                address, protocol, *port = element["elem"]["val"]["concat"]
                counters[address, protocol, port[0] if port else 0] = element["elem"]["counter"]["packets"]
        return counters

    def now(self):
        """From here on: a Seen that knows only of what comes later."""
        return Seen(self, {path: os.path.getsize(path) for path in self.logs()}, self.counters())

    def ever(self):
        return Seen(self, {}, {})


# ---- a server in the edge ---------------------------------------------------------------------------------


class Client(server_client.Client):
    """Requests are sent inside the edge, where the server listens."""

    def raw(self, *args, **kwargs):
        with self.server.bed.edge():
            return super().raw(*args, **kwargs)

    def spawn(self, *args, **kwargs):
        with self.server.bed.edge():
            return super().spawn(*args, **kwargs)


class UserClient(Client):
    """Starts programs as a certain user of the sandbox."""

    def __init__(self, site, user, timeout_s=PATIENCE_S):
        super().__init__(site, timeout_s)
        self.user = user

    def data_headers(self, sandbox, content_type):
        credentials = base64.b64encode(f"{self.user}:".encode()).decode()
        return super().data_headers(sandbox, content_type) | {"Authorization": f"Basic {credentials}"}


class Site(server.Site):
    """`sandglass serve` in the edge, with a fresh state directory and a key. Names are resolved by the bed's DNS
    server, and the bed's root is one of those that the guard trusts."""

    def __init__(self, bed, *options, env=None):
        self.bed = bed
        super().__init__("--egress-dns", world.DNS, "--egress-roots", bed.root, *options, env=env)

    def __enter__(self):
        with self.bed.edge():
            super().__enter__()
        self.client = Client(self, PATIENCE_S)
        return self

    def connect(self, *args, **kwargs):
        with self.bed.edge():
            return super().connect(*args, **kwargs)

    def ask(self, *args, **kwargs):
        with self.bed.edge():
            return super().ask(*args, **kwargs)

    def create(self, key=None, **fields):
        """A sandbox; network, allow_internet_access and the rest as in E2B's request."""
        return Sandbox(self, super().create(key, **fields).made)

    def command(self, *args, **kwargs):
        """(status, output) of `sandglass ARGS` in the edge."""
        with self.bed.edge():
            p = subprocess.run([server.program.SANDGLASS, *args], stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
        return p.returncode, p.stdout


class Sandbox(server.Sandbox):
    def sh(self, command, user="user"):
        """(status, output) of a shell command as that user; standard error comes with it."""
        return UserClient(self.site, user).run(self.made, "{ " + command + "\n} 2>&1")

    def network(self, **fields):
        """Another policy while it runs."""
        return self.site.api("PUT", f"/sandboxes/{self.id}/network", fields)

    def trust(self):
        """Puts the bed's root inside; a line of shell that makes clients use it."""
        path = "/tmp/bed-root.pem"
        with open(self.site.bed.root, "rb") as f:
            self.put(path, f.read())
        return "export " + " ".join(f"{name}={path}" for name in TRUST)
