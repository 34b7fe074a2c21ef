"""A guard that the test plays itself: speaks src/wire/guard.h. It accepts what comes to the listeners
and answers with where it was meant to go."""
import collections
import os
import queue
import select
import socket
import struct
import threading
import time

from serve_lib import PATIENCE_S

MAGIC = 0x73676731
SETTINGS, FRONT, SANDBOX, POLICY, APPLIED, GONE, ASK_UDP, UDP, READY, BEAT = range(1, 11)
SK_LOOKUP, TPROXY, REDIRECT = 1, 2, 3
PATHS = {"sk_lookup": SK_LOOKUP, "tproxy": TPROXY, "redirect": REDIRECT}
SO_ORIGINAL_DST = 80
IP_ORIGDSTADDR, IPV6_ORIGDSTADDR, IPV6_PKTINFO = 20, 74, 50

MESSAGE = struct.Struct("=IIQQQiI21s21s6x128s128s256s")
Message = collections.namedtuple(
    "Message", "magic what seq life epoch code path id tenant local peer message fds")


def sockaddr(family, address, port):
    if family == socket.AF_INET:
        return struct.pack("=H", family) + struct.pack("!H4s", port, socket.inet_pton(family, address))
    return struct.pack("=H", family) + struct.pack("!HI16sI", port, 0, socket.inet_pton(family, address), 0)


def unpack_sockaddr(data):
    family = struct.unpack_from("=H", data)[0]
    if family == socket.AF_INET:
        port, address = struct.unpack_from("!H4s", data, 2)
        return socket.inet_ntop(family, address), port
    port, _, address = struct.unpack_from("!HI16s", data, 2)
    return plain(socket.inet_ntop(family, address)), port


def plain(address):
    return address[7:] if address.startswith("::ffff:") and "." in address else address


class Guard:
    def __init__(self, sock, puppet=None, pid=0):
        self.sock, self.puppet, self.pid = sock, puppet, pid
        self.messages = []
        self.lock = threading.Lock()  # a sandbox's thread takes messages too
        self.came = queue.Queue()
        self.sock.setblocking(True)
        threading.Thread(target=self.read, daemon=True).start()

    @classmethod
    def of(cls, server):
        """Takes the place of the one that a server has just started."""
        puppet, pid, sock = server.become("guard")
        return cls(sock, puppet, pid)

    def close(self):
        self.sock.close()
        self.puppet.close()

    def read(self):
        """Whatever the test does meanwhile, it is alive."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, 4096, 4)
                if len(data) == MESSAGE.size and struct.unpack_from("=II", data)[1] == BEAT:
                    self.sock.send(data)
                    continue
            except OSError:
                return
            self.came.put((data, fds))
            if not data:
                return

    def receive(self, timeout=PATIENCE_S):
        try:
            data, fds = self.came.get(timeout=max(0, timeout))
        except queue.Empty:
            return False
        if not data:
            raise EOFError("the warden is gone")
        assert len(data) == MESSAGE.size, f"a message of {len(data)} bytes"
        f = list(MESSAGE.unpack(data))
        assert f[0] == MAGIC
        for n in (7, 8, 11):
            f[n] = f[n].split(b"\0")[0].decode()
        self.messages.append(Message(*f, fds))
        return True

    def take(self, *what, id_=None, patience=PATIENCE_S):
        """Waits for a message of one of these kinds."""
        end = time.monotonic() + patience
        while True:
            with self.lock:
                for m in self.messages:
                    if m.what in what and id_ in (None, m.id):
                        self.messages.remove(m)
                        return m
                if self.receive(0.02):
                    continue
            assert time.monotonic() < end, f"no message {what}, only {[m.what for m in self.messages]}"

    def quiet(self, seconds=0.2):
        """Nothing comes for a while."""
        return not self.receive(seconds)

    def tell(self, what, to, code=0, message="", seq=0, local=b"", peer=b""):
        self.sock.send(MESSAGE.pack(MAGIC, what, seq, to.life, to.epoch, code, 0, to.id.encode(), b"",
                                    local, peer, message.encode()))

    def sandbox(self, id_):
        return Sandbox(self, self.take(SANDBOX, id_=id_))


class Sandbox:
    """A sandbox's listeners, answered by a thread until it is closed. TCP: one line in, and "ADDRESS
    PORT line" out; a line "hold" keeps the connection. UDP: the same from that very address."""

    def __init__(self, guard, m):
        self.guard, self.message = guard, m
        self.life, self.epoch, self.id, self.path = m.life, m.epoch, m.id, m.path
        self.tcp = socket.socket(fileno=m.fds[0])
        self.udp = socket.socket(fileno=m.fds[1])
        self.document = os.read(m.fds[2], 1 << 20)
        os.close(m.fds[2])
        self.held, self.seen, self.errors, self.reply_sockets = [], [], [], {}
        self.stop_read, self.stop_write = os.pipe()
        self.thread = None

    def serve(self):
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()
        return self

    def close(self):
        if self.thread:
            os.write(self.stop_write, b"x")
            self.thread.join()
        for s in [self.tcp, self.udp, *self.held, *self.reply_sockets.values()]:
            s.close()
        os.close(self.stop_read)
        os.close(self.stop_write)

    def __enter__(self):
        return self.serve()

    def __exit__(self, *_):
        self.close()

    def loop(self):
        while True:
            ready = select.select([self.stop_read, self.tcp, self.udp, *self.reply_sockets.values()],
                                  [], [])[0]
            if self.stop_read in ready:
                return
            try:
                if self.tcp in ready:
                    self.accept()
                if self.udp in ready:
                    self.datagram()
                for s in list(self.reply_sockets.values()):
                    if s in ready:
                        self.reply(s, s.recv(2000), s.getsockname())
            except OSError as e:
                self.errors.append(e)

    def target(self, connection):
        if self.path != REDIRECT:
            address, port = connection.getsockname()[:2]
            return plain(address), port
        v4 = "." in plain(connection.getpeername()[0])
        level = socket.SOL_IP if v4 else socket.IPPROTO_IPV6
        return unpack_sockaddr(connection.getsockopt(level, SO_ORIGINAL_DST, 28))

    def accept(self):
        connection, _ = self.tcp.accept()
        connection.settimeout(PATIENCE_S)
        target = self.target(connection)
        self.seen.append(("tcp", *target))
        line = connection.recv(100)
        connection.send(b"%s %d " % (target[0].encode(), target[1]) + line)
        if line.startswith(b"hold"):
            self.held.append(connection)
        else:
            connection.close()

    def datagram(self):
        data, ancillary, _, peer = self.udp.recvmsg(2000, 500)
        found = {kind: value for _, kind, value in ancillary}
        to = unpack_sockaddr(found[IP_ORIGDSTADDR] if IP_ORIGDSTADDR in found else found[IPV6_ORIGDSTADDR])
        self.seen.append(("udp", *to))
        if self.path == REDIRECT or to[1] == 53:
            # redirect: where it was sent to is not known, and 127.0.0.1 answers.
            source = to[0] if ":" in to[0] else "::ffff:" + to[0]
            info = struct.pack("=16si", socket.inet_pton(socket.AF_INET6, source), 0)
            head = b"dns " if self.path == REDIRECT else b"%s %d " % (to[0].encode(), to[1])
            self.udp.sendmsg([head + data], [(socket.IPPROTO_IPV6, IPV6_PKTINFO, info)], 0, peer)
        else:
            self.reply(self.udp_socket(to, (plain(peer[0]), peer[1])), data, to)

    def reply(self, s, data, to):
        s.send(b"%s %d " % (to[0].encode(), to[1]) + data)

    def udp_socket(self, local, peer):
        """Asks the warden for one, as the guard does for each new pair of addresses."""
        if (local, peer) not in self.reply_sockets:
            m = self.ask_udp(local, peer)
            assert m.code == 0, os.strerror(-m.code)
            self.reply_sockets[local, peer] = socket.socket(fileno=m.fds[0])
        return self.reply_sockets[local, peer]

    def ask_udp(self, local, peer, life=None):
        family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
        to = self if life is None else self.message._replace(life=life)
        self.guard.tell(ASK_UDP, to, seq=77, local=sockaddr(family, *local), peer=sockaddr(family, *peer))
        m = self.guard.take(UDP)
        assert m.seq == 77
        return m
