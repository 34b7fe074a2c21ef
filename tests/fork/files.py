"""A file system in memory, with a process's view of it: what os and open() do, as far as the programs
of this test go. It is what a sandbox's files are held against, so it knows nothing of layers."""
import errno
import io
import os

LINKS_MAX = 40
FIRST_FD = 4  # 0 to 3 are a kernel's own
UMASK = 0o022


class Inode:
    def __init__(self, kind, mode):
        self.kind, self.mode, self.links = kind, mode, 1
        self.data = bytearray()  # of a file
        self.entries = {}        # of a directory
        self.target = ""         # of a link
        self.frozen = False      # it was there when a checkpoint was taken


class Entry:
    """A name of an inode. What is open remembers it, as it can be renamed, or removed."""

    def __init__(self, parent, name, inode):
        self.parent, self.name, self.inode, self.gone = parent, name, inode, False

    def path(self):
        if self.parent is None:
            return ""
        return f"{self.parent.path()}/{self.name}"


class Opening:
    def __init__(self, entry, flags):
        self.entry, self.inode, self.flags, self.at = entry, entry.inode, flags, 0
        self.locked = False

    @property
    def writes(self):
        return self.flags & os.O_ACCMODE != os.O_RDONLY


class Pipe:
    """Either end."""

    writes = locked = False

    def __init__(self, data):
        self.data = data


def fail(number, path=None):
    raise OSError(number, os.strerror(number), path)


class Files:
    """The methods are called as in os, and fail with the same numbers."""

    O_RDONLY, O_WRONLY, O_RDWR = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
    O_CREAT, O_EXCL, O_TRUNC, O_APPEND = os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND
    SEEK_SET, SEEK_CUR, SEEK_END = os.SEEK_SET, os.SEEK_CUR, os.SEEK_END

    def __init__(self):
        self.top = Entry(None, "", Inode("d", 0o755))
        self.cwd = self.top
        self.fds = {}
        self.environ = {}

    # ---- names ---------------------------------------------------------------------------------

    def look_up(self, path, follow=True, depth=0):
        """(directory, last name, its entry or None)"""
        at = self.top if path.startswith("/") else self.cwd
        names = [n for n in path.split("/") if n and n != "."]
        if not names:
            return at.parent or at, at.name, at
        for i, name in enumerate(names):
            if at.inode.kind != "d":
                fail(errno.ENOTDIR, path)
            if name == "..":
                at = at.parent or at
                continue
            last = i == len(names) - 1
            found = at.inode.entries.get(name)
            if found is not None and found.inode.kind == "l" and (follow or not last):
                if depth == LINKS_MAX:
                    fail(errno.ELOOP, path)
                target, here = found.inode.target, self.cwd
                self.cwd = at
                try:
                    rest = "/".join([target, *names[i + 1:]])
                    return self.look_up(rest, follow, depth + 1)
                finally:
                    self.cwd = here
            if last:
                return at, name, found
            if found is None:
                fail(errno.ENOENT, path)
            at = found
        return at.parent or at, at.name, at

    def there(self, path, follow=True):
        entry = self.look_up(path, follow)[2]
        return entry if entry is not None else fail(errno.ENOENT, path)

    def add(self, directory, name, inode):
        entry = directory.inode.entries[name] = Entry(directory, name, inode)
        return entry

    def take(self, entry):
        del entry.parent.inode.entries[entry.name]
        entry.gone = True
        entry.inode.links -= 1

    def new(self, path, inode):
        directory, name, there = self.look_up(path, follow=False)
        if there is not None:
            fail(errno.EEXIST, path)
        return self.add(directory, name, inode)

    def mkdir(self, path):
        self.new(path, Inode("d", 0o777 & ~UMASK))

    def symlink(self, target, path):
        self.new(path, Inode("l", 0o777)).inode.target = target

    def link(self, old, new):
        inode = self.there(old, follow=False).inode
        if inode.kind == "d":
            fail(errno.EPERM, old)
        self.new(new, inode)
        inode.links += 1

    def unlink(self, path):
        entry = self.there(path, follow=False)
        if entry.inode.kind == "d":
            fail(errno.EISDIR, path)
        self.take(entry)

    def rmdir(self, path):
        entry = self.there(path, follow=False)
        if entry.inode.kind != "d":
            fail(errno.ENOTDIR, path)
        if entry.inode.entries:
            fail(errno.ENOTEMPTY, path)
        self.take(entry)

    def rename(self, old, new):
        entry = self.there(old, follow=False)
        directory, name, there = self.look_up(new, follow=False)
        if there is not None:
            if there.inode is entry.inode:
                return
            if f"{entry.path()}/".startswith(f"{there.path()}/"):
                fail(errno.ENOTEMPTY, new)
            if there.inode.kind == "d" != entry.inode.kind:
                fail(errno.EISDIR, new)
            if entry.inode.kind == "d" != there.inode.kind:
                fail(errno.ENOTDIR, new)
            if there.inode.entries:
                fail(errno.ENOTEMPTY, new)
            self.take(there)
        del entry.parent.inode.entries[entry.name]
        entry.parent, entry.name = directory, name
        directory.inode.entries[name] = entry

    def chmod(self, path, mode):
        self.there(path).inode.mode = mode

    def truncate(self, path, size):
        resize(self.there(path).inode.data, size)

    def chdir(self, path):
        entry = self.there(path)
        if entry.inode.kind != "d":
            fail(errno.ENOTDIR, path)
        self.cwd = entry

    def getcwd(self):
        return self.cwd.path() or "/"

    # ---- descriptors ---------------------------------------------------------------------------

    def free_fd(self, what):
        fd = FIRST_FD
        while fd in self.fds:
            fd += 1
        self.fds[fd] = what
        return fd

    def of(self, fd):
        return self.fds.get(fd) or fail(errno.EBADF)

    def open(self, path, flags, mode=0o777):
        directory, name, entry = self.look_up(path)
        if entry is None:
            if not flags & os.O_CREAT:
                fail(errno.ENOENT, path)
            entry = self.add(directory, name, Inode("f", mode & ~UMASK))
        elif flags & os.O_EXCL:
            fail(errno.EEXIST, path)
        opening = Opening(entry, flags)
        if entry.inode.kind == "d" and opening.writes:
            fail(errno.EISDIR, path)
        if flags & os.O_TRUNC:
            entry.inode.data.clear()
        return self.free_fd(opening)

    def close(self, fd):
        self.of(fd)
        del self.fds[fd]

    def dup(self, fd):
        return self.free_fd(self.of(fd))

    def pipe(self):
        data = bytearray()
        return self.free_fd(Pipe(data)), self.free_fd(Pipe(data))

    def read(self, fd, size):
        what = self.of(fd)
        if isinstance(what, Pipe):
            data = bytes(what.data[:size])
            del what.data[:size]
            return data
        data = bytes(what.inode.data[what.at:what.at + size])
        what.at += len(data)
        return data

    def write(self, fd, data):
        what = self.of(fd)
        if isinstance(what, Pipe):
            what.data += data
            return len(data)
        if not what.writes:
            fail(errno.EBADF)
        content = what.inode.data
        if what.flags & os.O_APPEND:
            what.at = len(content)
        if data:
            resize(content, max(len(content), what.at))
            content[what.at:what.at + len(data)] = data
            what.at += len(data)
        return len(data)

    def lseek(self, fd, offset, whence):
        what = self.of(fd)
        if isinstance(what, Pipe):
            fail(errno.ESPIPE)
        base = {os.SEEK_SET: 0, os.SEEK_CUR: what.at, os.SEEK_END: len(what.inode.data)}[whence]
        what.at = base + offset
        return what.at

    def ftruncate(self, fd, size):
        resize(self.of(fd).inode.data, size)

    # ---- open() --------------------------------------------------------------------------------

    def open_file(self, path, mode="r", buffering=512, encoding=None, newline=None):
        """With the interpreter's own buffers, as a kernel has them."""
        raw = Raw(self, path, mode.replace("b", ""))
        if buffering == 0:
            return raw
        kind = io.BufferedRandom if "+" in mode else \
            io.BufferedReader if "r" in mode else io.BufferedWriter
        buffered = kind(raw, buffering)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, newline=newline)


def resize(data, size):
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


class Raw(io.RawIOBase):
    """FileIO over such files."""

    FLAGS = {"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
             "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND, "r+": os.O_RDWR}

    def __init__(self, files, path, mode):
        super().__init__()
        self.files, self.mode = files, mode
        self.fd = files.open(path, self.FLAGS[mode], 0o666)
        if mode == "a":
            files.lseek(self.fd, 0, os.SEEK_END)

    def close(self):
        if not self.closed:
            super().close()
            self.files.fds.pop(self.fd, None)

    def fileno(self):
        return self.fd

    def readable(self):
        return self.mode in ("r", "r+")

    def writable(self):
        return self.mode != "r"

    def seekable(self):
        return True

    def readinto(self, room):
        data = self.files.read(self.fd, len(room))
        room[:len(data)] = data
        return len(data)

    def write(self, data):
        return self.files.write(self.fd, bytes(data))

    def seek(self, offset, whence=os.SEEK_SET):
        return self.files.lseek(self.fd, offset, whence)

    def tell(self):
        return self.files.lseek(self.fd, 0, os.SEEK_CUR)

    def truncate(self, size=None):
        size = self.tell() if size is None else size
        self.files.ftruncate(self.fd, size)
        return size
