"""Attacks on the network inside a sandbox, and on its neighbours. E28, E29."""
import unittest

import attack
from attack import NAMES, world

# One line for each attempt: its name and what came of it.
TAMPER = """
import ctypes, fcntl
libc = ctypes.CDLL(None, use_errno=True)

def written(path, text):
    with open(path, "w") as f:
        f.write(text)
    return "done"

def netlink(family, kind, body, flags=0x605):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family) as s:
        s.settimeout(2)
        s.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        answer = s.recv(4096)
        code = struct.unpack("=i", answer[16:20])[0] if struct.unpack("=H", answer[4:6])[0] == 2 else 0
        if code:
            raise OSError(-code, "")
        return "done"

def attribute(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)

def link(kind):
    return bytes(16) + attribute(3, b"mine\\0") + attribute(18, attribute(1, kind))

def route(table, family, length, kind, scope, target):
    return struct.pack("=BBBBBBBBI", family, length, 0, 0, table, 4, scope, kind, 0) + target

def ioctl(number, data):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, number, data)
    return "done"

def tun():
    with open("/dev/net/tun", "rb+", buffering=0) as f:
        fcntl.ioctl(f, 0x400454ca, struct.pack("16sH22x", b"mine", 1))
    return "done"

def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "done"

def option(level, name, value):
    with socket.socket(socket.AF_INET) as s:
        s.setsockopt(level, name, value)
    return "done"

show({name: attempt(*what) for name, what in {
    "link veth": (netlink, 0, 16, link(b"veth")), "link dummy": (netlink, 0, 16, link(b"dummy")),
    "link down": (netlink, 0, 16, struct.pack("=BxHiII", 0, 0, 1, 0, 1), 5),
    "address": (netlink, 0, 20, struct.pack("=BBBBI", 2, 32, 0, 0, 1) + attribute(2, bytes([10, 0, 0, 1]))),
    "route flush": (netlink, 0, 25, route(255, 2, 0, 2, 254, attribute(4, struct.pack("=I", 1))), 5),
    "route add": (netlink, 0, 24, route(254, 2, 0, 1, 0, attribute(4, struct.pack("=I", 1)))),
    "rule": (netlink, 0, 32, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 0, 0, 1, 0)),
    "nft": (netlink, 12, 0x0a00, struct.pack("=BBH", 2, 0, 0) + attribute(1, b"mine\\0")),
    "xfrm": (netlink, 6, 0x10, bytes(200)), "sock_diag": (netlink, 4, 21, bytes(60)),
    "ifdown": (ioctl, 0x8914, struct.pack("16sH14x", b"lo", 0)),
    "ifaddr": (ioctl, 0x8916, struct.pack("16sHH4s8x", b"lo", 2, 0, bytes([10, 0, 0, 1]))),
    "rename": (ioctl, 0x8923, struct.pack("16s16s", b"lo", b"eth0")),
    "ethtool": (ioctl, 0x8946, struct.pack("16sP16x", b"lo", 0)),
    "tun": (tun,), "unshare net": (call, 272, 0x40000000),
    "setns": (call, 308, os.open("/proc/self/ns/net", os.O_RDONLY), 0x40000000),
    "bpf": (call, 321, 5, 0, 0), "transparent": (option, 0, 19, 1), "mark": (option, 1, 36, 1),
    "bind device": (option, 1, 25, b"lo\\0"),
    "packet": (lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300).close() or "done",),
    **{f"sysctl {path}": (written, f"/proc/sys/net/{path}", value) for path, value in {
        "ipv4/ip_forward": "1", "ipv4/ip_nonlocal_bind": "1", "ipv4/conf/all/accept_local": "0",
        "ipv4/ip_local_port_range": "1 2",
        "ipv6/conf/all/disable_ipv6": "1", "ipv4/ping_group_range": "0 99999", "ipv4/conf/all/route_localnet": "1",
        "core/somaxconn": "1", "ipv4/ip_unprivileged_port_start": "0"}.items()},
}.items()})
"""
# What does no harm: binding to lo is where everything is anyway.
HARMLESS = {"bind device"}


def setUpModule():
    attack.begin()


class Tampering(attack.Case):
    def test_E29_the_network_cannot_be_changed(self, user):
        for policy in ({"allow_internet_access": False}, {"network": NAMES}, {}):
            sandbox = self.sandbox(**policy)
            with self.nothing():
                got = self.probe(sandbox, TAMPER, user)
                self.assertEqual({n for n, what in got.items() if what == "done"} - HARMLESS, set())
                if policy:
                    out = sandbox.sh(f"curl -sS -m5 http://{world.EVIL}/; curl -sS -m5 'http://[{world.EVIL6}]/'",
                                     user=user)[1]
                    self.assertNotIn('"who"', out)
        self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user))

    def test_E29_with_the_tools_for_it(self, user):
        sandbox = self.sandbox(network=NAMES)
        with self.only(world.A, names=["a.test"]):
            out = sandbox.sh("ip link add x type veth; ip link set lo down; ip route flush table all; "
                             "ip -6 route flush table all; "
                             "ip rule flush; ip addr add 10.0.0.1/8 dev lo; nft flush ruleset; nft add table inet x; "
                             "iptables -F; ethtool -K lo tso off; sysctl -w net.ipv4.ip_forward=1; unshare -n true; "
                             "ip netns add x; tc qdisc add dev lo root netem loss 100%; ss -K; true", user=user)[1]
            self.assertIn('"who": "a"', self.sh(sandbox, "curl -sS -m10 http://a.test/who", user), out)
            self.assertNotIn('"who"', sandbox.sh(f"curl -sS -m5 http://{world.EVIL}/", user=user)[1])

    def test_E29_other_resolvers_change_nothing(self, user):
        sandbox = self.sandbox(network=NAMES)
        if user == "root":
            self.sh(sandbox, f"printf 'nameserver {world.EVIL}\\nnameserver 8.8.8.8\\n' >/etc/resolv.conf", user)
        with self.only(world.A, names=["a.test"]):
            out = self.sh(sandbox, "HOSTALIASES=/dev/null RES_OPTIONS='attempts:1' curl -sS -m10 http://a.test/who",
                          user)
            self.assertIn('"who": "a"', out)
            self.assertNotIn('"who"', sandbox.sh("curl -sS -m5 http://evil.test/", user=user)[1])

    def test_E29_own_servers_on_all_addresses(self, user):
        """Listening on an address that the guard would answer at brings nobody's connections."""
        sandbox = self.sandbox(network=NAMES)
        code = f"""
import threading
came = []
def serve(s):
    with contextlib.suppress(OSError):
        while True:
            came.append(s.accept()[1])
bound = []
for host in ("0.0.0.0", "::", {world.EVIL!r}, "192.0.2.53", "192.0.2.1", "198.18.0.1"):
    for port in (80, 53, 8080, 443):
        s = socket.socket(family(host))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            s.bind((host, port))
            s.listen()
            threading.Thread(target=serve, args=(s,), daemon=True).start()
            bound.append((host, port))
answer = attempt(http, resolve("a.test", stream=True)[1][0], 80, "a.test")
show([answer, resolve("evil.test"), attempt(http, {world.EVIL!r}, 80, "evil.test")])
"""
        with self.only(world.A, names=["a.test"]):
            self.probe(sandbox, code, user)


class Neighbours(attack.Case):
    LISTEN = """
import threading
for host in ("0.0.0.0", "::"):
    s = socket.socket(family(host))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if host == "::":
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((host, 7777))
    s.listen()
u = socket.socket(socket.AF_UNIX)
u.bind("\\0neighbour-socket")
u.listen()
open("/dev/shm/neighbour", "w").write("x")
import ctypes
ctypes.CDLL(None).shmget(0x5347, 4096, 0o1666)
print("ready", flush=True)
time.sleep(100)
"""

    def test_E28_neighbours_are_not_there(self, user):
        policy = {"allowPublicTraffic": False}
        other, sandbox = self.sandbox(network=policy), self.sandbox()
        other.put("/tmp/listen.py", (attack.PROBE + self.LISTEN).encode())
        other.spawn("exec python3 /tmp/listen.py >/tmp/said")
        self.assertTrue(attack.until(lambda: "ready" in other.says("cat /tmp/said; true")))
        code = f"""
import ctypes
def unix():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\\0neighbour-socket")
    return "reached"
hosts = ("127.0.0.1", "::1", "192.0.2.1", "100::1", "0.0.0.0", "198.18.0.1", "10.0.0.1",
         {world.EDGE4!r}, {world.EDGE6!r})
show({{"tcp": [attempt(tcp, host, 7777) for host in hosts],
      "unix": attempt(unix), "listed": [l for l in open("/proc/net/unix") if "neighbour" in l],
      "shm": os.path.exists("/dev/shm/neighbour"), "sysv": ctypes.CDLL(None).shmget(0x5347, 4096, 0o666),
      "sockets": [l for l in open("/proc/net/tcp") if ":1E61" in l]}})
"""
        with self.nothing():
            got = self.probe(sandbox, code, user)
        self.assertEqual(set(got["tcp"]) - {"ECONNREFUSED", "ECONNRESET", "", "ENETUNREACH"}, set())
        self.assertEqual({k: v for k, v in got.items() if k != "tcp"},
                         {"unix": "ECONNREFUSED", "listed": [], "shm": False, "sysv": -1, "sockets": []})

    def test_E28_nor_over_the_server(self, user):
        """A neighbour's port through the server: not from inside at all, and from outside with the token only."""
        other, sandbox = self.sandbox(network={"allowPublicTraffic": False}), self.sandbox()
        token = other.made["trafficAccessToken"]
        with self.nothing():
            out = sandbox.sh(f"curl -sS -m5 -H 'E2b-Sandbox-Id: {other.id}' -H 'E2b-Sandbox-Port: 49983' "
                             f"-H 'E2B-Traffic-Access-Token: {token}' http://{world.EDGE4}:{attack.site.port}/health",
                             user=user)
            self.assertNotEqual(out[0], 0, out)
        ask = {"E2b-Sandbox-Id": other.id, "E2b-Sandbox-Port": "7777"}
        self.assertEqual(attack.site.ask("GET", "/", ask).status, 403)
        self.assertEqual(attack.site.ask("GET", "/", ask | {"E2B-Traffic-Access-Token": token}).status, 502)


if __name__ == "__main__":
    unittest.main()
