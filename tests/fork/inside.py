"""What programs call, and how they say what there is. A sandbox's first cell is this file; model.py has
a counterpart for each function, and takes `plain` from here."""
import errno
import fcntl
import importlib
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib

try:
    import numpy
except ImportError:
    numpy = None

ROOTS = ("/home/user/p", "/dev/shm/p", "/tmp/p")
SHORT = 64
PATIENCE_S = 10
said = []


def short(data):
    """Bytes, or of many how many and a sum."""
    return data.decode("latin-1") if len(data) <= SHORT else [len(data), zlib.crc32(data)]


def plain(v):
    """A value as JSON has it."""
    if v is None or isinstance(v, (bool, int, float)):
        return v
    if isinstance(v, str):
        return ["str", short(v.encode())]
    if type(v).__name__ == "mmap":
        return ["mmap", short(v[:])]
    if isinstance(v, bytes):
        return ["bytes", short(v)]
    if hasattr(v, "tolist"):
        return ["array", short(repr(v.tolist()).encode())]
    if isinstance(v, (list, tuple)):
        return [type(v).__name__, [plain(x) for x in v]]
    if isinstance(v, (set, frozenset)):
        return ["set", [plain(x) for x in sorted(v)]]
    if isinstance(v, dict):
        return ["dict", [[plain(k), plain(x)] for k, x in v.items()]]
    if type(v).__name__ == "Thing":
        return ["Thing", plain(vars(v))]
    return type(v).__name__


def out(value):
    said.append(plain(value))


def fails(call):
    try:
        out(call())
    except OSError as error:
        said.append(errno.errorcode[error.errno])


class Thing:
    """A value with values."""


def array(n, k):
    return numpy.arange(n, dtype="int64") * k if numpy else List(i * k for i in range(n))


class List(list):
    """Where there is no numpy."""

    def tolist(self):
        return list(self)

    def __iadd__(self, k):
        self[:] = [x + k for x in self]
        return self


def load(folder, name):
    """Imports a module that a program has written."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    try:
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def shared(size):
    return mmap.mmap(-1, size)


def mapped(path, access):
    """access: mmap's ACCESS_..., by its last word."""
    with open(path, "rb" if access != "WRITE" else "r+b") as file:
        return mmap.mmap(file.fileno(), 0, access=getattr(mmap, "ACCESS_" + access))


def move(old, new):
    shutil.move(old, new)


def lock(fd):
    fcntl.flock(fd, fcntl.LOCK_EX)


def unlock(fd):
    fcntl.flock(fd, fcntl.LOCK_UN)


class Worker:
    """A thread that does nothing until it is told to end."""

    def __init__(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.over.wait, daemon=True)
        self.thread.start()

    def end(self):
        self.over.set()
        self.thread.join()
        patiently(lambda: len(os.listdir("/proc/self/task")) == 1)


class Child:
    """A process that does nothing, with a file open for writing or none."""

    def __init__(self, path=None):
        with open(path or os.devnull, "ab") as output:
            self.process = subprocess.Popen(["/usr/bin/sleep", "86400"], stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.DEVNULL)
        self.mark = started(self.process.pid)

    def runs(self):
        return started(self.process.pid) == self.mark

    def end(self):
        if self.runs():
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        else:
            self.process.returncode = 0  # it is none of ours: nothing is waited for


def started(pid):
    """When a process that sleeps began, or None: its number may be another's."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)
        return fields[1].split()[19] if fields[1].split()[0] != "Z" else None
    except OSError:
        return None


def patiently(is_so):
    end = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < end:
        time.sleep(0.001)


def mine(first):
    """Variables that programs have made: a letter, then a number."""
    return {k: v for k, v in globals().items() if k[0] == first and k[1:].isdigit()}


def begin():
    """As if nothing had been done here."""
    for name in [n for letter in "vfpctm" for n in mine(letter)]:
        value = globals().pop(name)
        if name[0] in "ct":
            value.end()
        elif hasattr(value, "close"):
            value.close()
    os.chdir("/")
    os.closerange(4, 200)
    for name in [n for n in os.environ if n.startswith("PROP_")]:
        del os.environ[name]
    for root in ROOTS:
        shutil.rmtree(root, ignore_errors=True)
        os.mkdir(root)
    os.chdir(ROOTS[0])
    said.clear()


def look(path, files, links):
    """All that is below a directory."""
    with os.scandir(path) as entries:
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            mode = info.st_mode & 0o7777
            if entry.is_symlink():
                files[entry.path] = ["l", os.readlink(entry.path)]
            elif entry.is_dir():
                files[entry.path] = ["d", mode]
                look(entry.path, files, links)
            else:
                with open(entry.path, "rb", 0) as file:
                    files[entry.path] = ["f", mode, short(file.read())]
                links.setdefault((info.st_dev, info.st_ino), []).append(entry.path)


def position(fd):
    try:
        return [fd, os.lseek(fd, 0, os.SEEK_CUR)]
    except OSError as error:
        return [fd, errno.errorcode[error.errno]]


def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False


def report():
    files, links = {}, {}
    for root in ROOTS:
        look(root, files, links)
    print(json.dumps({
        "said": said,
        "values": {k: plain(v) for k, v in mine("v").items()},
        "maps": {k: plain(v) for k, v in mine("m").items()},
        "open": {k: position(v if isinstance(v, int) else v.fileno()) for k, v in mine("f").items()},
        "pipes": {k: [is_open(end) for end in v] for k, v in mine("p").items()},
        "children": {k: v.runs() for k, v in mine("c").items()},
        "threads": sorted(mine("t")),
        "cwd": os.getcwd(),
        "environment": {k: v for k, v in os.environ.items() if k.startswith("PROP_")},
        "files": files,
        "same": sorted(sorted(paths) for paths in links.values() if len(paths) > 1),
    }))
    said.clear()
