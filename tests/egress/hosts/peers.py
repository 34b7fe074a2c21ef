"""TCP and UDP for all hosts: listens, and has a thread for each connection."""
import contextlib
import selectors
import socket
import struct
import threading

BACKLOG = 512
TCPI_BYTES_RECEIVED = 128  # its place in struct tcp_info
CLOSE_WAIT, LAST_ACK, CLOSING = 8, 9, 11


class Peer:
    """A connection that has come. `sock` may be replaced by one with TLS."""

    def __init__(self, record, sock, address):
        self.record, self.sock = record, sock
        self.id = record.number()
        self.local, self.port = sock.getsockname()[:2]
        self.log("accept", source=address[0])

    def log(self, kind, **fields):
        self.record.line(kind, id=self.id, local=self.local, port=self.port, **fields)

    def received(self):
        """Bytes that came over the wire, TLS and all."""
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        ended = info[0] in (CLOSE_WAIT, LAST_ACK, CLOSING)  # the kernel counts the FIN
        return struct.unpack_from("=Q", info, TCPI_BYTES_RECEIVED)[0] - ended

    def reset(self):
        """Ends it with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _talk(handler, peer):
    received = 0
    try:
        handler(peer)
    except (OSError, EOFError, ValueError) as e:
        peer.log("trouble", error=f"{type(e).__name__}: {e}")
    finally:
        with contextlib.suppress(OSError):
            received = peer.received()
        peer.log("end", bytes=received)
        with contextlib.suppress(OSError):
            peer.sock.close()


def _family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class Listeners:
    """All sockets of a host, and one loop that waits for them."""

    def __init__(self, record):
        self.record, self.selector = record, selectors.DefaultSelector()

    def tcp(self, address, port, handler):
        s = socket.create_server((address, port), family=_family(address), backlog=BACKLOG)
        s.setblocking(False)
        self.selector.register(s, selectors.EVENT_READ, lambda: self._accept(s, handler))

    def udp(self, address, port, handler):
        """handler(data, answer): answer(bytes) sends back to where it came from."""
        s = socket.socket(_family(address), socket.SOCK_DGRAM)
        s.bind((address, port))
        s.setblocking(False)
        self.selector.register(s, selectors.EVENT_READ, lambda: self._receive(s, handler))

    def _accept(self, listener, handler):
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            sock, address = listener.accept()
            sock.setblocking(True)
            peer = Peer(self.record, sock, address)
            threading.Thread(target=_talk, args=(handler, peer), daemon=True).start()

    def _receive(self, sock, handler):
        with contextlib.suppress(BlockingIOError):
            data, source = sock.recvfrom(65536)
            local, port = sock.getsockname()[:2]
            self.record.line("datagram", local=local, port=port, source=source[0], bytes=len(data))
            handler(data, lambda answer: sock.sendto(answer, source))

    def serve(self):
        self.record.ready()
        while True:
            for key, _ in self.selector.select():
                key.data()
