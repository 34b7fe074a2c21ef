"""The interpreter's process: started with the descriptors it needs, waited for together with the
things that can happen to a cell.

It has a process group of its own, with the programs that it starts: SIGINT is meant for a cell,
and we know when one runs. The session is ours, by which the agent ends everything.
"""
import os
import select
import signal
import sys
import time

from .loop import CannotRun

# Python ignores or handles these; programs must not.
RESET = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
SETTLE_SECONDS = 1
LOOK_SECONDS = 0.0005
SIGINT_BIT = 1 << signal.SIGINT - 1


def find_program(*names):
    folders = f"{os.environ.get('PATH', '')}:{FALLBACK_PATH}".split(":")
    for name in names:
        for folder in folders:
            path = os.path.join(folder, name)
            if os.path.isabs(path) and os.access(path, os.X_OK) and os.path.isfile(path):
                return path
    raise CannotRun(f"{names[0]} is not installed in this sandbox")


class Child:
    """A process. Descriptors given by number are its own under the same number."""

    def __init__(self, bridge, argv, moves, environment=None):
        """`moves`: (ours, the child's) descriptors, made in this order."""
        self._bridge = bridge
        actions = [(os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in moves]
        try:
            self.pid = os.posix_spawn(argv[0], argv, environment or os.environb,
                                      file_actions=actions, setpgroup=0, setsigdef=RESET,
                                      setsigmask=())
        except OSError as e:
            raise CannotRun(f"{argv[0]} cannot be started: {e.strerror}") from e
        self.pidfd = os.pidfd_open(self.pid)
        self._deaf = set()  # threads that always block SIGINT
        self._poll = select.poll()
        self._poll.register(self.pidfd, select.POLLIN)
        self._poll.register(bridge.interrupts.fd, select.POLLIN)
        self._poll.register(bridge.control.fd, 0)

    def watch(self, fd):
        self._poll.register(fd, select.POLLIN)

    def unwatch(self, fd):
        self._poll.unregister(fd)

    def wait(self, timeout=None):
        """The descriptors that have something to say. Ends us when the agent has gone."""
        ready = {fd for fd, _ in self._poll.poll(None if timeout is None else timeout * 1000)}
        if self._bridge.control.fd in ready:
            self.kill()
            sys.exit(0)
        return ready

    def interrupt(self):
        """SIGINT to the process, and to the programs that it has started."""
        try:
            os.killpg(self.pid, signal.SIGINT)
        except ProcessLookupError:
            pass

    def settle(self, seconds=SETTLE_SECONDS):
        """Waits until all interrupts that were sent have arrived: one that is late would end the next cell.

        Mostly the main thread gets a signal, before it goes on. But while it starts a program it blocks
        signals. Then another thread gets the signal, of a numeric library say, and may have to wait for
        its turn. While a handler runs, its thread blocks the signal."""
        deadline = time.monotonic() + seconds
        while True:
            pending, blocking = self._look()
            if not pending and blocking <= self._deaf:
                return
            if time.monotonic() > deadline:
                self._deaf |= blocking  # a handler takes microseconds: these block it for other reasons
                return
            time.sleep(LOOK_SECONDS)

    def _look(self):
        """Whether an interrupt is pending, and the threads that block it."""
        pending, blocking = False, set()
        for thread in list_threads(self.pid):
            masks = read_masks(f"/proc/{self.pid}/task/{thread}/status")
            pending |= any(masks.get(name, 0) & SIGINT_BIT for name in ("SigPnd", "ShdPnd"))
            if masks.get("SigBlk", 0) & SIGINT_BIT:
                blocking.add(thread)
        return pending, blocking

    def kill(self):
        signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self):
        """How it ended: exit status, or the negative number of the signal."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        return os.waitstatus_to_exitcode(status)


def list_threads(pid):
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def read_masks(path):
    """The signal masks of a thread; none, if it has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            fields = {name: value for name, _, value in (line.partition(":\t") for line in file)}
    except (FileNotFoundError, ProcessLookupError):
        return {}
    if fields.get("State", "Z").startswith("Z"):
        return {}
    return {name: int(fields[name], 16) for name in ("SigPnd", "ShdPnd", "SigBlk")}


def describe_end(status):
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def write_all(fd, data):
    """To a pipe that the child reads. If it has ended, whoever waits for it sees that."""
    try:
        while data:
            data = data[os.write(fd, data):]
    except BrokenPipeError:
        pass
