"""Bytes of a pipe as whole lines, without copying any of them more than a few times, and a queue of such for one that
several write to."""
import collections
import os
import threading
import time

CHUNK = 1 << 20
LINE_MAX = 64 << 20  # a longer one is passed on as it comes, and nobody looks into it


class Lines:
    """Pieces as they come from a descriptor: (bytes, whole). A whole piece is one or more lines with their ends, and
    begins at the start of one; pieces of a line that is too long, and what is left at the end, are not whole."""

    def __init__(self, fd, line_max=LINE_MAX):
        self._fd = fd
        self._max = line_max
        self._parts = []
        self._held = 0
        self._long = False
        self.idle_since = None  # when the read began that has not come back

    def _take(self):
        data = b"".join(self._parts)
        self._parts, self._held = [], 0
        return data

    def _hold(self, data):
        if data:
            self._parts.append(data)
            self._held += len(data)

    def _split(self, data):
        end = data.rfind(b"\n") + 1
        if self._long:  # up to its end
            first = data.find(b"\n") + 1
            if first == 0:
                yield data, False
                return
            yield data[:first], False
            self._long = False
            data, end = data[first:], end - first
        if end > 0:
            self._hold(data[:end])
            yield self._take(), True
        self._hold(data[end:] if end > 0 else data)
        if self._held > self._max:
            self._long = True
            yield self._take(), False

    def _read(self):
        self.idle_since = time.monotonic()
        data = os.read(self._fd, CHUNK)
        self.idle_since = None
        return data

    def close(self):
        os.close(self._fd)

    def __iter__(self):
        while data := self._read():
            yield from self._split(data)
        if self._held:
            yield self._take(), False


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


class Outbox:
    """What is to be written to a descriptor, by a thread of its own: whoever puts something in waits only if there is too
    much already. Lines of several writers do not mix: one that has begun a long line is alone until its end."""

    def __init__(self, fd):
        self._fd = fd
        self._queue = collections.deque()
        self._size = 0
        self._closing = self.dead = False
        self._change = threading.Condition()
        self._line = threading.RLock()  # held by who is in the middle of a line
        self._middle = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def put(self, data, bound):
        """Whole lines."""
        with self._line:
            self._add(data, bound)

    def put_part(self, data, bound):
        """A part of a line; the last has its end, or nothing follows. By one thread only."""
        if not self._middle:
            self._line.acquire()
            self._middle = True
        self._add(data, bound)
        if data.endswith(b"\n"):
            self._middle = False
            self._line.release()

    def _add(self, data, bound):
        with self._change:
            while self._size > bound and not self.dead:
                self._change.wait()
            if self.dead or self._closing:
                return
            self._queue.append(data)
            self._size += len(data)
            self._change.notify_all()

    def close(self):
        """Nothing more is taken. By who puts in parts, if one does."""
        with self._change:
            self._closing = True
            self._change.notify_all()
        if self._middle:
            self._middle = False
            self._line.release()

    def _next(self):
        with self._change:
            while not self._queue and not self._closing:
                self._change.wait()
            return self._queue.popleft() if self._queue else None

    def _run(self):
        try:
            while (data := self._next()) is not None:
                write_all(self._fd, data)
                with self._change:
                    self._size -= len(data)
                    self._change.notify_all()
        except OSError:  # nobody reads it any more
            with self._change:
                self.dead = True
                self._queue.clear()
                self._change.notify_all()
        os.close(self._fd)
