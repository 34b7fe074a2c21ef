"""Cases of egress_path.sh: the way from a sandbox to the guard, with a front and a guard that the test
plays itself. `list` names them; a name runs one."""
import errno
import os
import select
import signal
import socket
import struct
import sys
import time

import egress_lib as wire
from egress_lib import Guard
from serve_lib import *

CASES = {}
OWN4, OWN6 = "192.0.0.8", "fd53:616e:6467::2"
LISTENER_PORT = 61053


def case(title):
    def add(function):
        CASES[function.__name__] = (title, function)
        return function
    return add


# Inside: prints what comes back from an address, or the name of the error and how long it took.
ASK = r'''
import errno, socket, sys, time
def ask(kind, address, port, text="x", source=None):
    began = time.monotonic()
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
        s.settimeout(10)
        if source:
            s.bind((source, 0))
        s.connect((address, port))
        s.send(text.encode())
        said = s.recv(500).decode()
    except OSError as e:
        said = errno.errorcode.get(e.errno, str(e))
    print(said, flush=True)
    return time.monotonic() - began
'''


def inside(channel, script, user="user"):
    """Lines that a Python program prints inside."""
    assert "'" not in ASK + script
    return channel.out(f"python3 -c '{ASK}{script}'", user=user).splitlines()


def ask(channel, kind, address, port, text="x", user="user"):
    return inside(channel, f'ask("{kind}", "{address}", {port}, "{text}")', user)[0]


class Place:
    """A server with front and guard, and a sandbox that has a way out."""

    def __init__(self, path, *options):
        self.server = Server("--egress-path", path, *options)

    def __enter__(self):
        self.orders = self.server.ready()
        self.guard = Guard.of(self.server)
        self.guard.take(wire.SETTINGS)
        self.guard.take(wire.FRONT)
        return self

    def __exit__(self, kind, *rest):
        try:
            self.guard.close()
        finally:
            self.server.__exit__(kind, *rest)

    def create(self, policy=b'{"any": "thing"}'):
        id_, channel = self.orders.create(policy=policy)
        return channel, self.guard.sandbox(id_)

    def next_guard(self):
        self.guard.close()
        self.guard = Guard.of(self.server)
        self.guard.take(wire.SETTINGS)
        self.guard.take(wire.FRONT)
        return self.guard


def each_path(title):
    """One case for each path."""
    def add(function):
        for name in wire.PATHS:
            def one(name=name):
                with Place(name) as p:
                    function(p, name)
            CASES[f"{function.__name__}_{name}"] = (f"{name}: {title}", one)
        return function
    return add


# ---- where things go -----------------------------------------------------------------------------------


@each_path("every connection comes with its destination, IPv4 and IPv6")
def connections(p, path):
    channel, sandbox = p.create()
    assert sandbox.path == wire.PATHS[path] and sandbox.document == b'{"any": "thing"}'
    with sandbox:
        for address in ("8.8.8.8", "10.1.2.3", "169.254.169.254", "2606:2800::1", "fe00::7"):
            for port in (1, 53, 443, 65535):
                for user in ("user", "root") if port == 443 else ("user",):
                    assert ask(channel, "tcp", address, port, user=user) == f"{address} {port} x"
        assert ask(channel, "tcp", "::ffff:9.9.9.9", 80) == "9.9.9.9 80 x"
    assert not sandbox.errors, sandbox.errors


@each_path("questions to any name server come, and the answer is from there")
def names(p, path):
    channel, sandbox = p.create()
    with sandbox:
        for address in ("192.0.2.53", "8.8.4.4", "2001:4860::8888"):
            said = ask(channel, "udp", address, 53, "question")
            assert said == ("dns question" if path == "redirect" else f"{address} 53 question"), said
        assert channel.out("cat /etc/resolv.conf").startswith("nameserver 192.0.2.53")
    assert not sandbox.errors, sandbox.errors


@each_path("other datagrams go both ways, from and to any address, or nowhere")
def datagrams(p, path):
    channel, sandbox = p.create()
    with sandbox:
        for address in ("8.8.8.8", "2606:2800::1"):
            said = inside(channel, f'''
import socket
s = socket.socket(socket.AF_INET6 if ":" in "{address}" else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
for port in (123, 4567, 123):
    s.sendto(b"%d" % port, ("{address}", port))
    try:
        data, peer = s.recvfrom(100)
        print(data.decode(), *peer[:2])
    except OSError as e:
        print(type(e).__name__, e.errno)
        break
    s.sendto(b"again", ("{address}", port))
    print(s.recv(100).decode())
''' if path != "redirect" else f'ask("udp", "{address}", 4567)')
            if path == "redirect":
                assert said == ["ECONNREFUSED"], said
            else:
                assert said == [line for port in (123, 4567, 123) for line in
                                (f"{address} {port} {port} {address} {port}", f"{address} {port} again")], said
        if path != "redirect":
            assert len(sandbox.reply_sockets) == 4, sandbox.reply_sockets
    assert not sandbox.errors, sandbox.errors


@each_path("its own servers are its own")
def own_servers(p, path):
    channel, sandbox = p.create()
    with sandbox:
        for address in ("127.0.0.1", "::1", OWN4, OWN6):
            said = inside(channel, f'''
import threading
family = socket.AF_INET6 if ":" in "{address}" else socket.AF_INET
for bound in ("{address}", "::" if family == socket.AF_INET6 else "0.0.0.0"):
    l = socket.create_server((bound, 0), family=family)
    u = socket.socket(family, socket.SOCK_DGRAM)
    u.bind((bound, 0))
    def serve():
        c, _ = l.accept()
        c.send(b"own " + c.recv(10))
        data, peer = u.recvfrom(10)
        u.sendto(b"own " + data, peer)
    threading.Thread(target=serve).start()
    ask("tcp", "{address}", l.getsockname()[1], "a")
    ask("udp", "{address}", u.getsockname()[1], "b")
''')
            assert said == ["own a", "own b"] * 2, (address, said)
        assert inside(channel, '''
l = socket.create_server(("0.0.0.0", 8080))
ask("tcp", "8.8.8.8", 8080)
''') == ["8.8.8.8 8080 x"], "a server of its own does not stand for others"
        assert [s for s in sandbox.seen if s[1] != "8.8.8.8"] == []
    assert not sandbox.errors, sandbox.errors


@each_path("the listeners cannot be had at the sandbox's own addresses")
def own_addresses(p, path):
    channel, sandbox = p.create()
    with sandbox:
        for address in ("127.0.0.1", "127.0.0.6", "127.0.2.1", "::1", OWN4, OWN6):
            for kind, port in (("tcp", LISTENER_PORT), ("tcp", 53), ("udp", 53), ("udp", LISTENER_PORT)):
                said = ask(channel, kind, address, port)
                if path != "redirect" or (kind, port) not in (("tcp", LISTENER_PORT), ("udp", 53)):
                    assert said == "ECONNREFUSED", (kind, address, port, said)
                elif kind == "tcp":  # the guard is told, and dials no such address
                    assert said == f"{address} {port} x", said
        # Where they are bound is an address like any other.
        assert ask(channel, "tcp", "192.0.2.1", LISTENER_PORT) == f"192.0.2.1 {LISTENER_PORT} x"


# ---- open and closed -----------------------------------------------------------------------------------


@each_path("a policy opens and closes it; without one everything fails at once")
def open_and_close(p, path):
    id_, channel = p.orders.create()
    def blocked():
        said = inside(channel, '''
slow = 0
for address in ("8.8.8.8", "192.0.2.53", "2606:2800::1", "192.0.2.1"):
    for kind in ("tcp", "udp"):
        slow = max(slow, ask(kind, address, 53))
began = time.monotonic()
try:
    socket.getaddrinfo("example.com", 80)
except socket.gaierror:
    print("no name")
print("fast" if max(slow, time.monotonic() - began) < 1 else "slow")
''')
        assert said == ["ENETUNREACH"] * 8 + ["no name", "fast"], said
    blocked()
    assert p.guard.quiet()
    p.orders.answer(p.orders.ask_policy(id_, b"one"))
    with p.guard.sandbox(id_) as sandbox:
        assert sandbox.document == b"one"
        assert ask(channel, "tcp", "8.8.8.8", 80) == "8.8.8.8 80 x"
        stream = channel.start("/usr/bin/python3", "-c", '''
import socket
s = socket.create_connection(("8.8.8.8", 99))
s.send(b"hold\\n")
print(s.recv(100).decode(), end="", flush=True)
s.settimeout(10)
try:
    print("end", s.recv(10))
except OSError as e:
    print(type(e).__name__)
''')
        wait_for(lambda: sandbox.held, "the connection")
        p.orders.answer(p.orders.ask_policy(id_))
        assert p.guard.take(wire.GONE).life == sandbox.life
        for s in sandbox.held:  # as the guard does it
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        sandbox.held.clear()
        out = b""
        while True:
            who, kind, _, payload = channel.frame()
            if who == stream and kind == DATA:
                out += payload
            if who == stream and kind == END:
                break
        assert out == b"8.8.8.8 99 hold\nConnectionResetError\n", out
        blocked()
    p.orders.answer(p.orders.ask_policy(id_, b"two"))
    with p.guard.sandbox(id_) as again:
        assert again.document == b"two" and again.epoch > sandbox.epoch and again.life > sandbox.life
        assert ask(channel, "tcp", "2606:2800::1", 80) == "2606:2800::1 80 x"


@case("a connection that nobody took is ended when the way is closed")
def untaken():
    with Place("auto") as p:
        channel, sandbox = p.create()  # nobody serves it
        stream = channel.start("/usr/bin/python3", "-c", ASK + 'ask("tcp", "8.8.8.8", 80)')
        wait_for(lambda: select.select([sandbox.tcp], [], [], 0)[0], "the connection")
        p.orders.answer(p.orders.ask_policy(sandbox.id))
        while True:
            who, kind, _, payload = channel.frame()
            if who == stream and kind == DATA:
                assert payload == b"ECONNRESET\n", payload
                break
        sandbox.close()


@case("another policy is answered when the guard has confirmed it")
def confirmed():
    with Place("auto") as p:
        channel, sandbox = p.create(b"first")
        seq = p.orders.ask_policy(sandbox.id, b"second")
        m = p.guard.take(wire.POLICY)
        assert os.read(m.fds[0], 100) == b"second"
        assert (m.id, m.life) == (sandbox.id, sandbox.life) and m.epoch > sandbox.epoch
        assert not p.orders.receive(0.3), "answered before it was confirmed"
        p.guard.tell(wire.APPLIED, m)
        p.orders.answer(seq)
        # One that is refused changes nothing, and the words reach the front.
        seq = p.orders.ask_policy(sandbox.id, b"third")
        m = p.guard.take(wire.POLICY)
        p.guard.tell(wire.APPLIED, m, code=-errno.EINVAL, message="no such country")
        try:
            p.orders.answer(seq)
            assert False, "it was not refused"
        except Refused as e:
            assert e.errno == errno.EINVAL and "no such country" in str(e)
        # An old word about it is no word.
        seq = p.orders.ask_policy(sandbox.id, b"fourth")
        new = p.guard.take(wire.POLICY)
        p.guard.tell(wire.APPLIED, m)
        assert not p.orders.receive(0.3)
        p.guard.tell(wire.APPLIED, new)
        p.orders.answer(seq)
        sandbox.close()
        p.next_guard()
        with p.guard.sandbox(sandbox.id) as sandbox:
            assert sandbox.document == b"fourth"


@case("a guard that does not confirm is not waited for, and the next gets the policy")
def unconfirmed():
    with Place("auto") as p:
        channel, sandbox = p.create(b"first")
        began = time.monotonic()
        try:
            p.orders.answer(p.orders.ask_policy(sandbox.id, b"second"))
            assert False, "it was answered"
        except Refused as e:
            assert e.errno == errno.EAGAIN and 1.5 < time.monotonic() - began < 10
        # Two at once: the first is overtaken.
        one, two = p.orders.ask_policy(sandbox.id, b"third"), p.orders.ask_policy(sandbox.id, b"fourth")
        try:
            p.orders.answer(one)
            assert False, "it was answered"
        except Refused as e:
            assert e.errno == errno.ECANCELED
        os.kill(p.guard.pid, signal.SIGKILL)
        try:
            p.orders.answer(two)
            assert False, "it was answered"
        except Refused as e:
            assert e.errno == errno.EAGAIN
        sandbox.close()
        p.next_guard()
        sandbox = p.guard.sandbox(sandbox.id)
        assert sandbox.document == b"fourth"
        sandbox.close()


@case("bad policies are refused")
def bad_policies():
    with Place("auto") as p:
        id_ = new_id()
        note, large = memfd(b"{}"), memfd(b"x" * (1024 * 1024 + 1))
        pipe, _ = os.pipe()
        assert p.orders.refused(CREATE, id_, "t" * 20, flags=NETWORK, fd=note) == errno.EMFILE
        assert p.orders.refused(CREATE, id_, "t" * 20, flags=NETWORK, fd=note, second=large) == errno.EFBIG
        assert p.orders.refused(CREATE, id_, "t" * 20, flags=NETWORK, fd=note, second=pipe) == errno.EBADF
        id_, channel = p.orders.create()
        assert p.orders.refused(POLICY, id_, flags=NETWORK) == errno.EMFILE
        assert p.orders.refused(POLICY, id_, flags=NETWORK, fd=large) == errno.EFBIG
        assert p.orders.refused(POLICY, new_id(), flags=NETWORK, fd=note) == errno.ENOENT
        assert p.guard.quiet()


# ---- lives ---------------------------------------------------------------------------------------------


@each_path("what comes while the guard is dead is served by the next")
def guard_killed(p, path):
    channel, sandbox = p.create()
    sandbox.close()
    os.kill(p.guard.pid, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{p.guard.pid}"), "the guard's end")
    stream = channel.start("/usr/bin/python3", "-c", ASK + 'ask("tcp", "8.8.8.8", 80)')
    channel.started(stream)
    first = sandbox
    p.next_guard()
    with p.guard.sandbox(sandbox.id) as sandbox:
        assert (sandbox.life, sandbox.epoch, sandbox.document) == (first.life, first.epoch, first.document)
        while True:
            who, kind, _, payload = channel.frame()
            if who == stream and kind == DATA:
                assert payload == b"8.8.8.8 80 x\n", payload
                break
        assert ask(channel, "udp", "8.8.8.8", 53, "after").endswith("after")


@case("a guard that keeps dying does not end the server, and nothing goes out")
def guard_dies():
    with Server("--guard-program", "/bin/false") as s:
        o = s.ready()
        id_, channel = o.create(policy=b"x")
        wait_for(lambda: s.said().count("has ended unexpectedly") >= 10, "ten deaths")
        stream = channel.start("/usr/bin/python3", "-c", ASK + 'ask("tcp", "8.8.8.8", 80)')
        time.sleep(0.5)
        assert o.refused(POLICY, id_, flags=NETWORK, fd=memfd(b"y")) == errno.EAGAIN
        o.answer(o.ask_policy(id_))
        o.order(KILL, id_)
    with Server("--guard-program", "/nowhere/guard") as s:
        o = s.ready()
        id_, channel = o.create(policy=b"x")
        assert channel.out("echo lives") == "lives" and "'/nowhere/guard'" in s.said()


@case("front and guard get a socket to each other, whichever is new")
def meeting():
    with Server() as s:
        o = s.ready()
        guard = Guard.of(s)
        def meet():
            fds = [guard.take(wire.FRONT).fds[0], o.tell(GUARD).fds[0]]
            a, b = (socket.socket(fileno=fd) for fd in fds)
            a.send(b"front")
            assert b.recv(10) == b"front"
            assert a.type & socket.SOCK_SEQPACKET == socket.SOCK_SEQPACKET
        # Those of the greeting, in either order of starting.
        meet()
        s.kill_front()
        o = s.ready()
        meet()
        os.kill(guard.pid, signal.SIGKILL)
        guard.close()
        guard = Guard.of(s)
        meet()
        guard.close()


@case("the guard gets the settings and what they name, and again after SIGHUP")
def settings():
    top = os.environ["T"]
    roots, patterns = os.path.join(top, "roots.pem"), os.path.join(top, "patterns")
    for path, text in ((roots, "-----BEGIN CERTIFICATE-----\nx\n"), (patterns, "badge = B-[0-9]+\n")):
        with open(path, "w") as f:
            f.write(text)
    with Server("--egress-roots", roots, "--sanitise-patterns", patterns) as s:
        o = s.ready()
        guard = Guard.of(s)
        texts = [os.read(fd, 65536).decode() for fd in guard.take(wire.SETTINGS).fds]
        assert f"egress_roots = {roots}\n" in texts[0]
        assert texts[1:] == ["-----BEGIN CERTIFICATE-----\nx\n", "badge = B-[0-9]+\n"], texts
        assert [os.read(fd, 100) for fd in o.tell(SETTINGS).fds][1] == b"badge = B-[0-9]+\n"
        with open(patterns, "a") as f:
            f.write("more = M\n")
        s.process.send_signal(signal.SIGHUP)
        assert os.read(guard.take(wire.SETTINGS).fds[2], 100) == b"badge = B-[0-9]+\nmore = M\n"
        assert os.read(o.tell(SETTINGS).fds[1], 100).endswith(b"more = M\n")
        os.unlink(patterns)
        s.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "stay in force: cannot read sanitise_patterns" in s.said(), "the remark")
        guard.close()


@case("the guard has a user of its own and no rights")
def guard_rights():
    with Place("auto") as p:
        pid = p.guard.pid
        status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status"))
        uids = set(status["Uid"].split())
        assert len(uids) == 1 and uids != {"0"} and status["Groups"].strip() == ""
        front = dict(line.split(":\t", 1) for line in open(f"/proc/{p.server.front_pid}/status"))
        assert uids != set(front["Uid"].split())
        for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[caps], 16) == 0, (caps, status[caps])
        assert status["NoNewPrivs"].strip() == "1"
        assert open(f"/proc/{pid}/environ", "rb").read() == b""
        assert os.readlink(f"/proc/{pid}/cwd") == p.server.state + "/guard"
        st = os.stat(p.server.state + "/guard")
        assert st.st_mode & 0o7777 == 0o700 and {str(st.st_uid)} == uids


@case("one that is stored and booted again gets its way out again")
def stored():
    with Place("auto", "--pool-min", "0", "--pool-max", "0") as p:
        channel, sandbox = p.create(b"kept")
        p.orders.order(PAUSE, sandbox.id, flags=FILES_ONLY)
        assert p.guard.take(wire.GONE).life == sandbox.life
        sandbox.close()
        a = p.orders.order(RESUME, sandbox.id)
        with p.guard.sandbox(sandbox.id) as again:
            assert again.life > sandbox.life and again.document == b"kept"
            assert ask(Channel(a.fds[0]), "tcp", "8.8.8.8", 80) == "8.8.8.8 80 x"
        p.orders.order(PAUSE, sandbox.id, flags=FILES_ONLY)
        p.guard.take(wire.GONE)
        p.orders.answer(p.orders.ask_policy(sandbox.id, b"other"))
        a = p.orders.order(RESUME, sandbox.id)
        with p.guard.sandbox(sandbox.id) as again:
            assert again.document == b"other" and again.epoch > sandbox.epoch


@case("one that is paused keeps its way, and can be given another policy")
def paused():
    with Place("auto") as p:
        channel, sandbox = p.create(b"first")
        p.orders.order(PAUSE, sandbox.id)
        seq = p.orders.ask_policy(sandbox.id, b"second")
        m = p.guard.take(wire.POLICY)
        p.guard.tell(wire.APPLIED, m)
        p.orders.answer(seq)
        p.orders.order(RESUME, sandbox.id)
        with sandbox:
            assert ask(channel, "tcp", "8.8.8.8", 80) == "8.8.8.8 80 x"


@case("a guard gets sockets in sandboxes that it was told of, and no others")
def asks():
    with Place("auto") as p:
        channel, sandbox = p.create()
        here = (OWN4, 4000)
        assert sandbox.ask_udp(("8.8.8.8", 5), here).code == 0
        for local in ("127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", OWN4, "::ffff:127.0.0.1"):
            peer = here if ":" not in local else ("::ffff:" + OWN4, 4000)
            assert sandbox.ask_udp((local, 5), peer).code == -errno.EINVAL, local
        for local in ("::1", "::", "ff02::1", OWN6):
            assert sandbox.ask_udp((local, 5), (OWN6, 4000)).code == -errno.EINVAL, local
        assert sandbox.ask_udp(("8.8.8.8", 0), here).code == -errno.EINVAL
        assert sandbox.ask_udp(("8.8.8.8", 5), here, life=sandbox.life + 1).code == -errno.ENOENT
        p.orders.order(KILL, sandbox.id)
        assert p.guard.take(wire.GONE).life == sandbox.life
        assert sandbox.ask_udp(("8.8.8.8", 5), here).code == -errno.ENOENT
        # What is no message at all ends it.
        p.guard.sock.send(b"nonsense")
        wait_for(lambda: not os.path.exists(f"/proc/{p.guard.pid}"), "its end")
        sandbox.close()


@case("nothing is left of a sandbox that had a way out")
def leaks():
    def descriptors(p):
        """Those that could keep a network namespace."""
        return sum(link.startswith(("socket:", "net:", "anon_inode:bpf")) for link in p.server.descriptors())
    with Place("auto", "--pool-min", "0", "--pool-max", "0") as p:
        def one():
            channel, sandbox = p.create()
            with sandbox:
                assert ask(channel, "tcp", "8.8.8.8", 80) == "8.8.8.8 80 x"
                assert ask(channel, "udp", "8.8.8.8", 99) == "8.8.8.8 99 x"
            p.orders.order(KILL, sandbox.id)
            p.guard.take(wire.GONE)
            channel.close()
        for _ in range(3):
            one()
        before = descriptors(p)
        for _ in range(10):
            one()
        wait_for(lambda: descriptors(p) <= before, f"{before} descriptors, and not {descriptors(p)}")


@case("sandboxes of the pool have their way prepared, and it is closed")
def pool():
    with Place("auto", "--pool-min", "2", "--pool-max", "2", "--warm-kernels", "none") as p:
        p.orders.create()
        wait_for(lambda: sum("bpf_link" in link for link in p.server.descriptors()) >= 2, "two that are prepared")
        id_, channel = p.orders.create()
        assert ask(channel, "tcp", "8.8.8.8", 80) == "ENETUNREACH"
        channel, sandbox = p.create()
        with sandbox:
            assert ask(channel, "tcp", "8.8.8.8", 80) == "8.8.8.8 80 x"


def main():
    if sys.argv[1] == "list":
        for name, (title, _) in CASES.items():
            print(name, title)
        return
    CASES[sys.argv[1]][1]()


main()
