"""What a sandbox must have. A model runs the same programs as a kernel does, with files of files.py in
place of the system's. To copy one, what it has run is run again: so copies share nothing, and have
generators and buffers as they were."""
import os
import types

import inside
from files import Files, Opening, Pipe

COPIED = "copied"  # in a history: from here on it is another sandbox's
FROZEN = "frozen"  # a checkpoint was taken

codes = {}


def compiled(text):
    if text not in codes:
        if len(codes) > 20000:
            codes.clear()
        codes[text] = compile(text, "cell", "exec")
    return codes[text]


class Array(list):
    def tolist(self):
        return list(self)

    def __iadd__(self, k):
        self[:] = [x + k for x in self]
        return self


class mmap(bytearray):
    """Memory; of a file the bytes that it had."""

    files = fd = opening = None  # opening: that it writes through
    may_change = True  # without the file changing

    def close(self):
        if self.files:
            self.files.close(self.fd)
        self.files = self.opening = None


def place(entry):
    """How the kernel names it."""
    return entry.path() + (" (deleted)" if entry.gone else "")


class Part:
    """Something beside the kernel: a thread, or a process with perhaps a file open."""

    def __init__(self, entry=None):
        self.entry, self.lives = entry, True

    def runs(self):
        return self.lives

    def end(self):
        self.lives = False


class Model:
    def __init__(self):
        self.history, self.files, self.said = [], Files(), []
        top = self.files
        for path in ("/home", "/home/user", "/dev", "/dev/shm", "/tmp", *inside.ROOTS):
            top.mkdir(path)
        top.chdir(inside.ROOTS[0])
        self.names = {"os": top, "open": top.open_file, "out": self.out, "fails": self.fails,
                      "Thing": inside.Thing, "array": self.array, "load": self.load,
                      "shared": self.shared, "mapped": self.mapped, "lock": self.lock,
                      "unlock": self.unlock, "move": self.move, "Worker": Part, "Child": self.child}

    # ---- history -------------------------------------------------------------------------------

    def run(self, text):
        self.history.append(text)
        exec(compiled(text), self.names)

    def freeze(self):
        self.history.append(FROZEN)
        for _, entry in self.walk():
            entry.inode.frozen = True

    def copy(self):
        """As a branch has it."""
        return Model.of([*self.history, COPIED])

    @staticmethod
    def of(history):
        m = Model()
        for text in history:
            if text == COPIED:
                m.become_copy()
            elif text == FROZEN:
                m.freeze()
            else:
                m.run(text)
        m.said.clear()
        return m

    def become_copy(self):
        """What a branch has not: pipes, processes."""
        self.history.append(COPIED)
        for fd in self.dropped():
            del self.files.fds[fd]
        for child in self.mine("c").values():
            child.lives = False

    # ---- what programs call --------------------------------------------------------------------

    def out(self, value):
        self.said.append(inside.plain(value))

    def fails(self, call):
        try:
            self.out(call())
        except OSError as error:
            self.said.append(inside.errno.errorcode[error.errno])

    @staticmethod
    def array(n, k):
        return Array(i * k for i in range(n))

    def load(self, folder, name):
        module = types.ModuleType(name)
        source = bytes(self.files.there(f"{folder}/{name}.py").inode.data).decode()
        exec(compile(source, name, "exec"), vars(module))
        return module

    @staticmethod
    def shared(size):
        return mmap(bytes(size))

    def mapped(self, path, access):
        opening = Opening(self.files.there(path), os.O_RDWR if access == "WRITE" else os.O_RDONLY)
        memory = mmap(opening.inode.data)
        first = self.files.free_fd(opening)  # the mapping has a duplicate of it
        memory.files, memory.fd = self.files, self.files.dup(first)
        self.files.close(first)
        memory.may_change = access == "COPY"
        if access == "WRITE":
            memory.opening = opening
        return memory

    def lock(self, fd):
        self.files.of(fd).locked = True

    def unlock(self, fd):
        self.files.of(fd).locked = False

    def move(self, old, new):
        """Perhaps by copying: then all in it is new."""
        self.files.rename(old, new)
        self.files.there(new).inode.frozen = False

    def child(self, path=None):
        if path is None:
            return Part()
        fd = self.files.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        entry = self.files.of(fd).entry
        self.files.close(fd)
        return Part(entry)

    # ---- what there is -------------------------------------------------------------------------

    def mine(self, first):
        return {k: v for k, v in self.names.items() if k[0] == first and k[1:].isdigit()}

    def walk(self):
        """(path, entry) of everything that programs have made."""
        todo = [(root, self.files.there(root)) for root in inside.ROOTS]
        while todo:
            path, entry = todo.pop()
            for name, below in entry.inode.entries.items():
                yield f"{path}/{name}", below
                if below.inode.kind == "d":
                    todo.append((f"{path}/{name}", below))

    def dropped(self):
        """Descriptors that do not come along."""
        return sorted(fd for fd, what in self.files.fds.items() if isinstance(what, Pipe))

    def in_the_way(self):
        """{(what, holds)} of a checkpoint. With other threads nothing else is looked at in a kernel."""
        found = {("file", place(c.entry)) for c in self.mine("c").values() if c.lives and c.entry}
        if self.mine("t"):
            return found | {("thread", "threads")}
        for what in self.files.fds.values():
            if isinstance(what, Pipe):
                continue
            if what.locked:
                found.add(("lock", place(what.entry)))
            elif what.entry.gone or what.writes and not what.inode.mode & 0o200:
                found.add(("file", place(what.entry)))
        for memory in self.mine("m").values():
            if memory.opening:
                found.add(("mapping", place(memory.opening.entry)))
        return found

    def describe(self):
        files, links = {}, {}
        for path, entry in self.walk():
            inode = entry.inode
            if inode.kind == "l":
                files[path] = ["l", inode.target]
            elif inode.kind == "d":
                files[path] = ["d", inode.mode]
            else:
                files[path] = ["f", inode.mode, inside.short(bytes(inode.data))]
                links.setdefault(id(inode), []).append(path)
        said, self.said[:] = list(self.said), []
        return {"said": said,
                "values": {k: inside.plain(v) for k, v in self.mine("v").items()},
                "maps": {k: inside.plain(v) for k, v in self.mine("m").items()},
                "open": {k: self.position(v if isinstance(v, int) else v.fileno())
                         for k, v in self.mine("f").items()},
                "pipes": {k: [end in self.files.fds for end in v]
                          for k, v in self.mine("p").items()},
                "children": {k: v.runs() for k, v in self.mine("c").items()},
                "threads": sorted(self.mine("t")),
                "cwd": self.files.getcwd(),
                "environment": dict(self.files.environ),
                "files": files,
                "same": sorted(sorted(paths) for paths in links.values() if len(paths) > 1)}

    def position(self, fd):
        try:
            return [fd, self.files.lseek(fd, 0, os.SEEK_CUR)]
        except OSError as error:
            return [fd, inside.errno.errorcode[error.errno]]
