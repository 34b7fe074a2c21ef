"""The control socket: packets from the agent, results to it.

Plain reads and writes of the descriptor, no socket object: a packet is one system call, and a
zygote that is copied in the middle of its read goes on reading in the copy.

A result is several packets, which have to stay together: a lock keeps threads apart, a shield
(interrupt.py) keeps SIGINT out, and the process id keeps children out which a cell has forked.
"""

import _thread
import codecs
import fcntl
import os

from .interrupt import Shield
from .streams import Streams  # for bridges, which need both

__all__ = ["Control", "Streams", "encode", "to_json", "RESULT_MAX", "JSON_MAX"]

PACKET_IN = 128 * 1024 + 16
PACKET_OUT = 64 * 1024
RESULT_MAX = 32 * 1024 * 1024
JSON_MAX = 8 * 1024 * 1024
ERROR_MAX = 1024 * 1024
SIOCOUTQ = 0x5411
GUARD_FD = 230  # where the spare copy of the socket is kept: beyond what cells close by a range

JSON_FIELDS = frozenset(("json", "data", "chart", "extra"))


def _escape_in_json(error):
    """A lone surrogate inside JSON text, as the six characters that name it."""
    bad = error.object[error.start:error.end]
    return "".join(f"\\\\u{ord(c):04x}" for c in bad), error.end


codecs.register_error("sandglass.json", _escape_in_json)


def encode(text):
    """Text as UTF-8, whatever is in it: a surrogate becomes its escape."""
    return text.encode("utf-8", "backslashreplace")


def _finite(value):
    """The same value with what JSON cannot say replaced: NaN by null, an object by its str()."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


def to_json(value):
    """JSON as UTF-8. Raises ValueError, TypeError or RecursionError for what has no JSON."""
    from json import dumps

    try:
        text = dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError):
        text = dumps(
            _finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str
        )
    return text.encode("utf-8", "sandglass.json")


def _left_out(key, size, limit):
    return f"<{key} of {size} bytes left out: the limit is {limit}>"


def _cost(data):
    """What a field takes of a result's size, the heads of its packets included."""
    return len(data) + 256 * (1 + len(data) // PACKET_OUT)


def _cut(text):
    """An error's text has no limit of its own, and nobody reads a megabyte of it."""
    if len(text) <= ERROR_MAX:
        return text
    left = f"\n<{len(text) - ERROR_MAX} characters left out>\n"
    return text[: ERROR_MAX // 2] + left + text[-(ERROR_MAX // 2):]


def prepare(kind, fields):
    """The fields as [(type, key, bytes)], within the limits. `text` comes first, and says what
    was left out; an error has no such field, so its fields are cut."""
    if kind == "e":
        return [(b"T", key.encode(), encode(_cut(value))) for key, value in fields.items()]
    text = fields.get("text")
    if len(fields) == 1 and text is not None and len(text) < PACKET_OUT:
        return ((b"T", b"text", encode(text)),)
    ready, notes, room = [], [], RESULT_MAX - PACKET_OUT
    for key, value in fields.items():
        if value is None or key == "text":
            continue
        is_json = key in JSON_FIELDS
        try:
            data = to_json(value) if is_json else encode(value)
        except Exception as e:
            notes.append(f"<{key} left out: {type(e).__name__}>")
            continue
        limit = JSON_MAX if is_json else RESULT_MAX
        if len(data) > limit or _cost(data) > room:
            notes.append(_left_out(key, len(data), limit))
            continue
        room -= _cost(data)
        ready.append((b"J" if is_json else b"T", key.encode(), data))
    if text is not None or notes:
        data = encode(text or "")
        if _cost(data) > room:
            notes.insert(0, _left_out("text", len(data), RESULT_MAX))
            data = b""
        lines = [data] if data else []
        ready.insert(0, (b"T", b"text", b"\n".join(lines + [encode(n) for n in notes])))
    return ready


class Control:
    """The kernel's end of the control socket."""

    def __init__(self, fd=3):
        self.fd = fd
        self.out = fd
        self.streams = None  # those that have to stay in order with results
        self.pid = os.getpid()
        self.shield = Shield()
        self._identity = None
        self._lock = _thread.allocate_lock()
        self._buffer = bytearray(PACKET_IN)
        self._view = memoryview(self._buffer)
        self._cell_open = False
        os.set_inheritable(fd, False)

    def keep_order_with(self, streams):
        """What is written to the streams after a result comes after it."""
        self.streams = streams
        streams.results_unread = self.unread

    def guard(self):
        """From now on survive a cell that closes the descriptor, by a copy with a high number,
        which is also the one that results are sent through: a cell may have a file under the other
        number by then. Not done by a zygote, which has nothing open but 0 to 3. A copy of a
        kernel that ran may have it already."""
        self.pid = os.getpid()
        os.set_inheritable(self.fd, False)
        self._identity = self._of(self.fd)
        if self.out == self.fd or self._of(self.out) != self._identity:
            self.out = self._copy(self.fd)

    def restore(self):
        """After a cell: have the socket under its own number again if the cell closed it, and the
        copy. If the number is something else now, that is the cell's: we read from the copy."""
        if self._of(self.fd) != self._identity:
            if self._of(self.out) != self._identity:
                os._exit(1)  # closed for good
            if self._of(self.fd) is None:
                os.dup2(self.out, self.fd, False)
            else:
                self.fd = self._copy(self.out)
        elif self._of(self.out) != self._identity:
            self.out = self._copy(self.fd)

    @staticmethod
    def _of(fd):
        try:
            found = os.fstat(fd)
        except OSError:
            return None
        return found.st_ino, found.st_dev

    @staticmethod
    def _copy(fd):
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, GUARD_FD)
        except OSError:  # a low limit of open files: any number then
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)

    def recv(self):
        """The next packet: (type, payload). ('', b'') when the agent is gone."""
        buffer = self._buffer
        try:
            n = os.readv(self.fd, (buffer,))
        except OSError:
            n = 0
        if n == 0:
            return "", b""
        if buffer[0] == 88:  # 'X': results are welcome from here to finished()
            self._cell_open = True
        return chr(buffer[0]), self._view[1:n].tobytes()

    def unread(self):
        """Whether the agent has still to read something that was sent."""
        try:
            return any(fcntl.ioctl(self.out, SIOCOUTQ, bytes(4)))
        except OSError:
            return False

    def send_result(self, kind, fields):
        """Sends one result: kind 'm', 'd' or 'e'; fields by name, None is no field. Nothing is
        sent outside of a cell (a thread that was left running), or by a child of the kernel."""
        if not self.is_here():
            return False
        packets = prepare(kind, fields)
        with self.shield, self._lock:
            if not self._cell_open:
                return False
            self._write(b"R" + kind.encode())
            for tag, key, data in packets:
                head = tag + key + b"\0"
                if len(head) + len(data) <= PACKET_OUT:
                    self._write(head + data)
                else:
                    self._send_pieces(head, data)
            self._write(b"r")
        if self.streams is not None:
            self.streams.result_sent = True
        return True

    def _send_pieces(self, head, data):
        """One field in several packets, none of which ends inside a character."""
        view = memoryview(data)
        start, room = 0, PACKET_OUT - len(head)
        while start < len(data):
            end = min(start + room, len(data))
            while end < len(data) and data[end] & 0xC0 == 0x80 and end > start + room - 4:
                end -= 1
            self._write(head + view[start:end])
            start = end

    def is_here(self):
        """False in a child which a cell has forked."""
        return self.pid == os.getpid()

    def finished(self, number, status=0):
        """The cell is over. Its status is a shell's."""
        if not self.is_here():
            os._exit(0)
        with self.shield, self._lock:
            self._cell_open = False
            self._write(b"F" + number.to_bytes(4, "little") + (bytes((status,)) if status else b""))

    def ready(self):
        """Ready for the first cell."""
        self._write(b"Q")

    def rested(self):
        """No pool of a library's has threads any more, as far as that can be."""
        with self._lock:
            self._write(b"P")

    def _write(self, packet):
        try:
            os.write(self.out, packet)
        except OSError as error:
            if error.errno != 9:  # EBADF
                os._exit(0)  # the agent is gone
            self.restore()
            os.write(self.out, packet)
