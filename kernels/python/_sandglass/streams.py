"""sys.stdout and sys.stderr: every write goes to the descriptor at once, in order between the two.

The agent reads two pipes, and cannot see which was written first. So whoever writes to one waits
until the other is empty. That also orders what programs and C libraries wrote, since it is the
pipe that is looked at and not what went through here. The same goes for results, which take a
third way, the control socket: what is written after one waits until it has been read.
"""

import fcntl
import io
import os
import stat
import sys
import time

FIONREAD = 0x541B
WAIT_MAX = 0.020
REST = 0.25  # after waiting in vain, how long not to wait: somebody else writes all the time
GUARD_FD = 220


class _Raw(io.RawIOBase):
    """One descriptor. write() writes everything."""

    def __init__(self, streams, fd, name):
        self._streams = streams
        self._fd = fd
        self._other = 3 - fd
        self._count = bytearray(4)
        self.name = name
        self.mode = "wb"

    def fileno(self):
        return self._fd

    def writable(self):
        return True

    def isatty(self):
        return os.isatty(self._fd)

    def close(self):
        """Closing sys.stdout is common in code that was written as a script. The next cell
        needs it."""

    def write(self, data):
        if self._streams.ordered:
            if self._streams.result_sent:
                self._streams.wait_for_results()
            count = self._count
            try:
                fcntl.ioctl(self._other, FIONREAD, count)
            except OSError:
                pass
            else:
                if count != b"\0\0\0\0":
                    self._streams.wait(self._other)
        try:
            n = os.write(self._fd, data)
        except OSError as e:
            n = self._recover(e)
        size = len(data) if type(data) is bytes else memoryview(data).nbytes
        if n < size:
            self._rest(memoryview(data).cast("B"), n)
        return size

    def _rest(self, view, done):
        while done < len(view):
            try:
                done += os.write(self._fd, view[done:])
            except OSError as e:
                self._recover(e)

    def _recover(self, error):
        """A descriptor that was made non-blocking by another program, or closed by the cell."""
        if isinstance(error, BlockingIOError):
            import select

            select.select((), (self._fd,), ())
        elif error.errno != 9 or not self._streams.restore():  # EBADF
            raise error
        return 0


def _works(stream):
    try:
        return callable(stream.write) and not getattr(stream, "closed", False)
    except BaseException:  # detached, or somebody's own
        return False


class Streams:
    """Both streams, and descriptors 0 to 2 under them."""

    def __init__(self, ordered=None):
        self.ordered = ordered
        self.result_sent = False  # and perhaps not read yet
        self.results_unread = None  # tells whether that is so
        self._rest_until = 0.0
        self.spares = ()
        self.stdout = self._make(1, "<stdout>")
        self.stderr = self._make(2, "<stderr>")

    def _make(self, fd, name):
        text = io.TextIOWrapper(
            _Raw(self, fd, name),
            encoding="utf-8",
            errors="backslashreplace",
            newline="\n",
            write_through=True,
        )
        text.mode = "w"
        return text

    def guard(self):
        """Now that 0 to 2 are the kernel's own: keep copies, and see whether order matters. A copy
        of a kernel that ran may have them already."""
        if self.ordered is None:
            self.ordered = all(stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in (1, 2))
        before = self.spares or (-1, -1, -1)
        self.spares = tuple(
            spare if self._is_same(spare, fd) else self._copy(fd) for fd, spare in enumerate(before)
        )

    @staticmethod
    def _is_same(one, other):
        try:
            return os.path.samestat(os.fstat(one), os.fstat(other))
        except OSError:
            return False

    @staticmethod
    def _copy(fd):
        for least in (GUARD_FD, 10):
            try:
                return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
            except OSError:
                pass
        return -1

    def install(self):
        """Makes them the interpreter's streams."""
        sys.stdout = sys.__stdout__ = self.stdout
        sys.stderr = sys.__stderr__ = self.stderr

    def wait(self, fd):
        """Waits until the pipe is empty, 20 ms at most."""
        now = time.monotonic()
        if now < self._rest_until:
            return
        end, pause, count = now + WAIT_MAX, 0.00002, bytearray(4)
        while time.monotonic() < end:
            time.sleep(pause)
            try:
                fcntl.ioctl(fd, FIONREAD, count)
            except OSError:
                return
            if count == b"\0\0\0\0":
                return
            pause = min(pause * 2, 0.001)
        self._rest_until = time.monotonic() + REST

    def wait_for_results(self):
        """Waits until the agent has read the results that were sent, 20 ms at most."""
        self.result_sent = False
        now, pause = time.monotonic(), 0.00002
        if now < self._rest_until:
            return
        end = now + WAIT_MAX
        while self.results_unread():
            if time.monotonic() >= end:
                self._rest_until = end + REST
                return
            time.sleep(pause)
            pause = min(pause * 2, 0.001)

    def drain(self):
        """Before a program is started: what was written so far must not come after its output."""
        if not self.ordered:
            return
        if self.result_sent:
            self.wait_for_results()
        count = bytearray(4)
        for fd in (1, 2):
            try:
                fcntl.ioctl(fd, FIONREAD, count)
            except OSError:
                continue
            if count != b"\0\0\0\0":
                self.wait(fd)

    def settle(self):
        """After a cell: replace what it broke, and have descriptors 0 to 2 again. A stream that
        the cell put in the place of ours stays, as long as it can be written to."""
        self.restore()
        if not _works(getattr(sys, "stdout", None)):
            self.stdout = sys.stdout = sys.__stdout__ = self._make(1, "<stdout>")
        if not _works(getattr(sys, "stderr", None)):
            self.stderr = sys.stderr = sys.__stderr__ = self._make(2, "<stderr>")

    def restore(self):
        """Puts back what is closed of 0 to 2. Returns whether anything was."""
        restored = False
        for fd, spare in enumerate(self.spares):
            try:
                os.get_inheritable(fd)
            except OSError:
                try:
                    os.dup2(spare, fd)
                    restored = True
                except OSError:  # the spare is gone too
                    pass
        return restored
