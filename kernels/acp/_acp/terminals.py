"""terminal/...: commands in this sandbox, whose output is kept until it is asked for."""
import codecs
import collections
import itertools
import os
import shutil
import signal
import subprocess
import threading

from .errors import absolute, internal, invalid, not_found, number, text

COUNT_MAX = 256
OUTPUT_MAX = 16 << 20  # kept of each, if the agent does not say less
CHUNK = 1 << 16
LAST_WORDS_S = 0.5     # for output that its children still write
TERM_S = 2             # from SIGTERM to SIGKILL


def signal_name(number_of_signal):
    try:
        return signal.Signals(number_of_signal).name
    except ValueError:  # most of the real-time ones have no name
        return f"SIG{number_of_signal}"


class Tail:
    """The last bytes of a stream."""

    def __init__(self, limit):
        self._limit = limit
        self._parts = collections.deque()
        self._size = 0
        self.cut = False

    def add(self, data):
        self._parts.append(data)
        self._size += len(data)
        while self._parts and self._size - len(self._parts[0]) >= self._limit:
            self._size -= len(self._parts.popleft())
            self.cut = True

    def text(self, final):
        """From the start of a character to the end of one."""
        data = b"".join(self._parts)
        if len(data) > self._limit:
            self.cut = True
            data = data[len(data) - self._limit:] if self._limit else b""
        if self.cut:
            start = next((i for i, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
            data = data[start:]
        return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final)


class Terminal:
    def __init__(self, argv, environment, cwd, limit):
        self._lock = threading.Lock()
        self._tail = Tail(limit)
        self._waiting = {}  # by the key of their requests
        self.status = None
        self._process = subprocess.Popen(argv, env=environment, cwd=cwd, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def _read(self):
        while data := os.read(self._process.stdout.fileno(), CHUNK):
            with self._lock:
                self._tail.add(data)

    def _watch(self):
        code = self._process.wait()
        self._reader.join(LAST_WORDS_S)
        status = {"exitCode": code if code >= 0 else None, "signal": signal_name(-code) if code < 0 else None}
        with self._lock:
            self.status = status
            waiting, self._waiting = self._waiting, {}
        for tell in waiting.values():
            tell(status)

    def output(self):
        with self._lock:
            text_now = self._tail.text(self.status is not None)
            return {"output": text_now, "truncated": self._tail.cut, "exitStatus": self.status}

    def wait(self, key, tell):
        with self._lock:
            if self.status is None:
                self._waiting[key] = tell
                return
        tell(self.status)

    def forget(self, key):
        with self._lock:
            return self._waiting.pop(key, None) is not None

    def _signal(self, number_of_signal):
        if self.status is None:
            try:
                os.killpg(self._process.pid, number_of_signal)
            except ProcessLookupError:
                pass

    def kill(self):
        self._signal(signal.SIGTERM)
        timer = threading.Timer(TERM_S, self._signal, (signal.SIGKILL,))
        timer.daemon = True
        timer.start()

    def end(self):
        self._signal(signal.SIGKILL)


def command_of(params):
    """A line of words in place of a program is meant for a shell."""
    command, args = text(params, "command"), params.get("args")
    args = [] if args is None else args
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise invalid("'args' must be an array of strings")
    if not command:
        raise invalid("'command' is empty")
    if not args and not shutil.which(command) and any(c.isspace() or c in "|&;<>$" for c in command):
        return ["/bin/sh", "-c", command]
    return [command, *args]


def environment_of(params):
    environment = dict(os.environ)
    for entry in params.get("env") or []:
        if not isinstance(entry, dict):
            raise invalid("'env' must be an array of objects with 'name' and 'value'")
        environment[text(entry, "name")] = text(entry, "value")
    return environment


class Terminals:
    def __init__(self):
        self._all = {}
        self._numbers = itertools.count(1)

    def _find(self, params):
        text(params, "sessionId")
        name = text(params, "terminalId")
        if name not in self._all:
            raise not_found(name)
        return name, self._all[name]

    def create(self, params):
        text(params, "sessionId")
        limit = number(params, "outputByteLimit")
        argv, environment = command_of(params), environment_of(params)
        cwd = None if params.get("cwd") is None else absolute(params, "cwd")
        if len(self._all) >= COUNT_MAX:
            raise internal(f"there are {COUNT_MAX} terminals: release some")
        try:
            terminal = Terminal(argv, environment, cwd, OUTPUT_MAX if limit is None else min(limit, OUTPUT_MAX))
        except (OSError, ValueError) as why:
            raise internal(f"cannot run '{argv[0]}': {getattr(why, 'strerror', None) or why}") from why
        name = f"term_{next(self._numbers)}"
        self._all[name] = terminal
        return {"terminalId": name}

    def output(self, params):
        return self._find(params)[1].output()

    def wait(self, params, key, tell):
        self._find(params)[1].wait(key, tell)

    def forget(self, key):
        return any([terminal.forget(key) for terminal in list(self._all.values())])

    def kill(self, params):
        self._find(params)[1].kill()
        return {}

    def release(self, params):
        name, terminal = self._find(params)
        del self._all[name]
        terminal.end()
        return {}

    def close(self):
        for terminal in self._all.values():
            terminal.end()
