"""Random programs, a few statements at a time. Each is chosen by what the model has at that point, and
run there, so that a program does what it says: reads what is open, removes what is there.

Not tried, because a file system of layers does it differently and docs/fork.md says so: changing a file
with several names (hard links) after a checkpoint, and seeing changes of a file through a mapping of it."""
import os

import inside
from files import Opening

NAMES = "abcdefgh"
FILE_MODES = (0o600, 0o640, 0o644, 0o755)
DIRECTORY_MODES = (0o700, 0o711, 0o755, 0o750)
MANY = 60
VARIABLES_MAX = 12
WORDS = ("ash", "birch", "cedar", "elm", "fir", "larch", "oak", "yew")
FLAGS = ("os.O_RDONLY", "os.O_WRONLY | os.O_CREAT", "os.O_RDWR | os.O_CREAT",
         "os.O_RDWR | os.O_CREAT | os.O_TRUNC", "os.O_WRONLY | os.O_CREAT | os.O_APPEND", "os.O_RDWR")
MODES = ("rb", "wb", "ab", "r+b", "r", "w", "a", "r+")


class Program:
    def __init__(self, random, model):
        self.random, self.model, self.lines = random, model, []

    def cell(self, most):
        """Its text; the model has run it."""
        for _ in range(self.random.randint(1, most)):
            self.statement()
        return self.text()

    def text(self):
        text, self.lines = "\n".join(self.lines), []
        return text

    def statement(self):
        while True:
            kind = self.random.choices(KINDS, WEIGHTS)[0]
            line = kind(self)
            if line is not None:
                self.do(line)
                return

    def do(self, line):
        self.lines.append(line)
        self.model.run(line)

    # ---- choices -------------------------------------------------------------------------------

    def pick(self, things):
        things = list(things)
        return self.random.choice(things) if things else None

    def fresh(self, letter):
        """A variable's name that is free; None: there are enough."""
        there = self.model.mine(letter)
        if len(there) >= VARIABLES_MAX:
            return None
        return next(f"{letter}{i}" for i in range(100) if f"{letter}{i}" not in there)

    def value(self, *kinds):
        """The name of a variable of one of these types."""
        return self.pick(k for k, v in self.model.mine("v").items() if type(v) in kinds)

    def named(self, kind):
        return self.pick(k for k, v in self.model.mine("v").items() if type(v).__name__ == kind)

    def data(self):
        """An expression of bytes."""
        if self.random.random() < 0.12:
            return f"bytes(range({self.random.randint(1, 256)})) * {self.random.randint(100, 500)}"
        return repr(f"{self.pick(WORDS)} {self.random.randint(0, 999)}\n".encode())

    def directories(self):
        return [*inside.ROOTS,
                *(p for p, e in self.model.walk() if e.inode.kind == "d")]

    def paths(self, kind="f"):
        """What is there and may be changed: names of what is mapped begin with r."""
        return [p for p, e in self.model.walk()
                if e.inode.kind == kind and not e.name.startswith("r")]

    def entry(self, path):
        return self.model.files.there(path, follow=False)

    def openings(self, entry):
        return [o for o in self.model.files.fds.values()
                if isinstance(o, Opening) and o.entry is entry]

    def single(self, path):
        """Not several names, and a checkpoint: a change would show under one of them only."""
        inode = self.entry(path).inode
        return inode.links == 1 or not inode.frozen

    def changeable(self, path):
        return self.entry(path).inode.mode & 0o200 and self.single(path)

    def changeable_file(self):
        return self.pick(p for p in self.paths() if self.changeable(p))

    def free_path(self):
        directory = self.pick(self.directories())
        path = f"{directory}/{self.pick(NAMES)}"
        return path if self.model.files.look_up(path, follow=False)[2] is None else None

    def as_program_says(self, path):
        """Sometimes relative to the working directory."""
        here = self.model.files.getcwd()
        relative = path.startswith(here + "/") and self.random.random() < 0.5
        return repr(path[len(here) + 1:] if relative else path)

    def beside(self, path):
        """A name in the same root: the roots are mounted apart."""
        root = next(r for r in inside.ROOTS if path.startswith(r + "/"))
        directory = self.pick(d for d in self.directories()
                              if d.startswith(root) and not (d + "/").startswith(path + "/"))
        return f"{directory}/{self.pick(NAMES)}"

    # ---- values --------------------------------------------------------------------------------

    def new_value(self):
        name, r = self.fresh("v"), self.random
        if name is None:
            return f"del {self.pick(self.model.mine('v'))}"
        return f"{name} = " + r.choice((
            str(r.randint(-10**12, 10**12)), repr(self.pick(WORDS)), self.data(),
            repr([r.randint(0, 9) for _ in range(r.randint(0, 6))]),
            repr({self.pick(WORDS): r.randint(0, 9) for _ in range(3)}),
            repr({r.randint(0, 99) for _ in range(4)}),
            f"{self.pick(WORDS)!r} * {r.randint(1, 30000)}",
            f"array({r.choice((8, 300, 4000))}, {r.randint(1, 9)})", "Thing()",
            f"(i * i for i in range({r.randint(0, 9)}, {r.randint(10, 40)}))",
            f"(lambda box: lambda k: (box.append(k), sum(box))[1])([{r.randint(0, 9)}])"))

    def change_value(self):
        name, n = self.pick(self.model.mine("v")), self.random.randint(0, 99)
        if name is None:
            return None
        kind = type(self.model.names[name]).__name__
        return {"int": f"{name} += {n}", "str": f"{name} = {name}[{n}:] + {self.pick(WORDS)!r}",
                "bytes": f"{name} = {self.data()} + {name}[:{n}]",
                "list": f"{name}.append({n})", "dict": f"{name}[{n}] = {self.pick(WORDS)!r}",
                "set": f"{name} ^= {{{n}, {n + 1}}}", "Array": f"{name} += {n}",
                "Thing": f"{name}.{self.pick(WORDS)} = {n}",
                "generator": f"out(next({name}, None))", "function": f"out({name}({n}))",
                "module": f"{name}.count += {n}; out({name}.twice({n}))"}.get(kind)

    def change_array(self):
        name = self.named("Array")
        return name and f"{name}[{self.random.randint(0, 7)}] = {self.random.randint(0, 99)}"

    def same_value(self):
        name, other = self.fresh("v"), self.value(list, dict)
        return other and name and f"{name} = {other}"

    def compare_values(self):
        name, other = self.value(list), self.value(list)
        return name and f"out({name} is {other})"

    def nest(self):
        name, other = self.value(list), self.value(int, str, bytes, dict)
        return name and other and f"{name}.append({other})"

    def module(self):
        name, folder = self.fresh("v"), self.pick(self.directories())
        if name is None:
            return None
        text = f"count = {self.random.randint(0, 9)}\ndef twice(n): return 2 * n + count\n"
        path = f"{folder}/x{name}.py"
        if self.model.files.look_up(path)[2] is not None:
            return None
        return (f"with open({path!r}, 'wb') as g_: g_.write({text.encode()!r})\n"
                f"{name} = load({folder!r}, {'x' + name!r})")

    def environment(self):
        key = f"PROP_{self.pick(WORDS).upper()}"
        if key in self.model.files.environ and self.random.random() < 0.4:
            return f"del os.environ[{key!r}]"
        return f"os.environ[{key!r}] = '{self.random.randint(0, 999)}'"

    # ---- files ---------------------------------------------------------------------------------

    def write(self):
        path = self.free_path()
        if path is None or self.random.random() < 0.4:
            path = self.changeable_file()
        return path and (f"with open({self.as_program_says(path)}, 'wb') as g_: "
                         f"g_.write({self.data()})")

    def append(self):
        path = self.changeable_file()
        return path and (f"with open({self.as_program_says(path)}, 'ab') as g_: "
                         f"g_.write({self.data()})")

    def change_middle(self):
        path = self.changeable_file()
        return path and (f"with open({self.as_program_says(path)}, 'r+b') as g_: "
                         f"g_.seek({self.random.randint(0, 40)}); g_.write({self.data()})")

    def truncate(self):
        path = self.changeable_file()
        return path and f"os.truncate({self.as_program_says(path)}, {self.random.randint(0, 200)})"

    def chmod(self):
        path = self.changeable_file()
        if self.random.random() < 0.3:
            path = self.pick(self.paths("d"))
            return path and f"os.chmod({path!r}, {self.pick(DIRECTORY_MODES)})"
        return path and f"os.chmod({self.as_program_says(path)}, {self.pick(FILE_MODES)})"

    def mkdir(self):
        path = self.free_path()
        return path and f"os.mkdir({self.as_program_says(path)})"

    def many(self):
        path = self.free_path()
        return path and (f"os.mkdir({path!r})\nfor i in range({MANY}):\n"
                         f"    with open({path!r} + f'/x{{i}}', 'wb') as g_: g_.write(b'%d' % i)")

    def fewer(self):
        path = self.pick(p for p in self.paths("d") if len(self.entry(p).inode.entries) >= MANY)
        if path is None or any(self.openings(e) or e.inode.kind == "d"
                               for e in self.entry(path).inode.entries.values()):
            return None
        names = [n for n in self.entry(path).inode.entries if self.random.random() < 0.6]
        return f"for n_ in {names!r}: os.unlink({path!r} + '/' + n_)"

    def rmdir(self):
        path = self.pick(p for p in self.paths("d")
                         if self.entry(p) is not self.model.files.cwd)
        if path is None:
            return None
        return f"fails(lambda: os.rmdir({path!r}))"

    def symlink(self):
        path, target = self.free_path(), self.pick(self.paths() or ["nowhere"])
        return path and f"os.symlink({self.random.choice((target, self.pick(NAMES)))!r}, {path!r})"

    def link(self):
        path = self.pick(p for p in self.paths() if self.single(p) and not any(
            o.writes for o in self.model.files.fds.values()
            if isinstance(o, Opening) and o.inode is self.entry(p).inode))
        if path is None:
            return None
        new = self.beside(path)
        return f"fails(lambda: os.link({self.as_program_says(path)}, {new!r}))"

    def may_go(self, entry):
        """What is open, rarely: it is in the way of a copy then."""
        mapped = {v.fd for v in self.model.mine("m").values()}
        fds = {fd for fd, o in self.model.files.fds.items() if o in self.openings(entry)}
        return not fds or not fds & mapped and self.random.random() < 0.2

    def unlink(self):
        path = self.pick(self.paths(self.pick("ffl")))
        if path is None or not self.may_go(self.entry(path)):
            return None
        return f"os.unlink({self.as_program_says(path)})"

    def rename(self):
        path = self.pick(p for p in self.paths(self.pick("fffl")) if self.single(p))
        if path is None:
            return None
        new = self.beside(path)
        there = self.model.files.look_up(new, follow=False)[2]
        if there is not None and not self.may_go(there):
            return None
        return f"fails(lambda: os.rename({self.as_program_says(path)}, {new!r}))"

    def rename_directory(self):
        path = self.pick(p for p in self.paths("d"))
        new = path and self.beside(path)
        if new is None or self.model.files.look_up(new, follow=False)[2] is not None:
            return None
        if not self.entry(path).inode.frozen:
            return f"os.rename({path!r}, {new!r})"
        below = [e for p, e in self.model.walk() if (p + "/").startswith(path + "/")]
        used = {self.model.files.cwd, *(c.entry for c in self.model.mine("c").values())}
        if any(self.openings(e) or e in used or e.inode.kind == "f" and e.inode.links > 1
               for e in below):
            return None
        return f"move({path!r}, {new!r})"

    def chdir(self):
        return f"os.chdir({self.as_program_says(self.pick(self.directories()))})"

    def mistake(self):
        file, folder = self.pick(self.paths()), self.pick(self.paths("d"))
        tries = ["open('/tmp/p/none/none', 'rb', 0)", "os.chdir('/tmp/p/nowhere')"]
        if file:
            tries += [f"os.mkdir({file!r})", f"os.mkdir({file + '/a'!r})", f"os.chdir({file!r})",
                      f"os.open({file!r}, os.O_CREAT | os.O_EXCL | os.O_RDWR)"]
        if folder:
            tries += [f"os.open({folder!r}, os.O_WRONLY)", f"os.unlink({folder!r})"]
        return f"fails(lambda: {self.pick(tries)})"

    # ---- what stays open -----------------------------------------------------------------------

    def to_open(self, flags):
        """A path for it."""
        if "CREAT" in flags and self.random.random() < 0.4:
            return self.free_path()
        if flags == "os.O_RDONLY":
            return self.pick(self.paths())
        return self.pick(p for p in self.paths()
                         if self.changeable(p) and self.entry(p).inode.links == 1)

    def open_number(self):
        flags, name = self.pick(FLAGS), self.fresh("f")
        path = self.to_open(flags)
        return path and name and f"{name} = os.open({self.as_program_says(path)}, {flags}, 0o644)"

    def open_file(self):
        mode, name = self.pick(MODES), self.fresh("f")
        path = self.to_open({"r": "os.O_RDONLY", "w": "CREAT", "a": "CREAT"}.get(
            mode.replace("b", ""), ""))
        if not path or not name:
            return None
        text = "" if "b" in mode else ", 'latin-1', newline='\\n'"
        return f"{name} = open({self.as_program_says(path)}, {mode!r}, 512{text})"

    def numbers(self):
        return {k: self.model.files.fds[v] for k, v in self.model.mine("f").items()
                if isinstance(v, int) and isinstance(self.model.files.fds.get(v), Opening)}

    def use_number(self):
        open_now, n = self.numbers(), self.random.randint(0, 30)
        name = self.pick(open_now)
        if name is None:
            return None
        uses = [f"out(os.lseek({name}, {n}, os.SEEK_SET))", f"out(os.lseek({name}, 0, os.SEEK_END))"]
        flags = open_now[name].flags & os.O_ACCMODE
        if flags != os.O_WRONLY:
            uses += [f"out(os.read({name}, {n * n}))"] * 3
        if flags != os.O_RDONLY:
            uses += [f"out(os.write({name}, {self.data()}))"] * 3
            uses += [f"os.ftruncate({name}, {n})"]
        return self.pick(uses)

    def duplicate(self):
        name, other = self.fresh("f"), self.pick(self.numbers())
        return other and name and f"{name} = os.dup({other})"

    def use_file(self):
        name = self.pick(k for k, v in self.model.mine("f").items() if not isinstance(v, int))
        if name is None:
            return None
        file, n = self.model.names[name], self.random.randint(0, 40)
        text = hasattr(file, "encoding")
        uses = [f"{name}.flush()"] if file.writable() else []
        if file.readable():
            uses += [f"out({name}.read({n}))", f"out({name}.readline())"]
        if file.writable():
            data = f"({self.data()}).decode('latin-1')" if text else self.data()
            uses += [f"{name}.write({data})"] * 3
        if not text:
            uses.append(f"out({name}.seek({n}))")
        return self.pick(uses)

    def close(self):
        name = self.pick(self.model.mine("f"))
        return name and self.closing(name)

    def closing(self, name):
        if isinstance(self.model.names[name], int):
            return f"fails(lambda: os.close({name}))\ndel {name}"
        return f"{name}.close()\ndel {name}"

    def pipe(self):
        name = self.fresh("p")
        return name and f"{name} = os.pipe()\nout(os.write({name}[1], {self.pick(WORDS).encode()!r}))"

    def shared_memory(self):
        name = self.fresh("m")
        return name and f"{name} = shared({self.random.choice((100, 5000, 200000))})"

    def use_memory(self):
        name = self.pick(k for k, v in self.model.mine("m").items() if v.may_change)
        if name is None:
            return None
        size = len(self.model.names[name])
        word = self.pick(WORDS).encode()[:size]
        at = self.random.randint(0, size - len(word))
        return f"{name}[{at}:{at + len(word)}] = {word!r}"

    def mapping(self, access):
        """Of a file that nobody changes: of one that became shorter the memory would be gone."""
        name, path = self.fresh("m"), f"{self.pick(inside.ROOTS)}/r{self.random.randint(0, 9)}"
        if name is None or self.model.files.look_up(path)[2] is not None:
            return None
        return (f"with open({path!r}, 'wb') as g_: g_.write({self.data()})\n"
                f"{name} = mapped({path!r}, {access!r})")

    def file_memory(self):
        return self.mapping(self.pick(("COPY", "READ")))

    def child(self):
        name = self.fresh("c")
        return name and f"{name} = Child()"

    # ---- what is in the way of a copy ----------------------------------------------------------

    def hindrance(self):
        path = self.changeable_file()
        thread, child, number = (self.fresh(k) for k in "tcf")
        choices = [self.mapping("WRITE")]
        if not self.model.mine("t"):
            choices.append(f"{thread} = Worker()")
        if path and child and self.entry(path).inode.links == 1 and not self.openings(self.entry(path)):
            choices.append(f"{child} = Child({path!r})")
            if number:
                opened = f"{number} = os.open({path!r}, os.O_RDWR)"
                choices += [f"{opened}\nlock({number})", f"{opened}\nos.unlink({path!r})",
                            f"{opened}\nos.chmod({path!r}, 0o400)"]
        return self.pick(choices)

    def clear(self):
        """Takes away what is in the way; its text."""
        for name, value in {**self.model.mine("t"), **self.model.mine("c")}.items():
            if name[0] == "t" or value.entry:
                self.do(f"{name}.end()\ndel {name}")
        for name in [k for k, v in self.model.mine("m").items() if v.opening]:
            self.do(f"{name}.close()\ndel {name}")
        for name in [k for k, v in self.model.mine("f").items() if self.hinders(v)]:
            self.do(self.closing(name))
        return self.text()

    def hinders(self, file):
        what = self.model.files.fds.get(file if isinstance(file, int) else file.fileno())
        return isinstance(what, Opening) and (
            what.locked or what.entry.gone or what.writes and not what.inode.mode & 0o200)

    # ---- the end -------------------------------------------------------------------------------

    def drain(self):
        """All that was still to come: the rest of files and generators, and what is in buffers."""
        for name in sorted(self.model.mine("v")):
            if type(self.model.names[name]).__name__ == "generator":
                self.do(f"out(list({name}))")
        for name, ends in sorted(self.model.mine("p").items()):
            what = self.model.files.fds.get(ends[0])
            if getattr(what, "data", None):
                self.do(f"out(os.read({name}[0], 1000))")
        for name in sorted(self.model.mine("f")):
            file = self.model.names[name]
            if not isinstance(file, int) and file.readable():
                self.do(f"out({name}.read())")
            elif name in self.numbers() and not self.numbers()[name].flags & os.O_WRONLY:
                self.do(f"out(os.read({name}, 200000))")
            self.do(self.closing(name))
        return self.text()


KINDS, WEIGHTS = zip(*{
    Program.new_value: 10, Program.change_value: 12, Program.change_array: 2, Program.same_value: 2,
    Program.compare_values: 1, Program.nest: 2, Program.module: 2, Program.environment: 3,
    Program.write: 10, Program.append: 5, Program.change_middle: 4, Program.truncate: 3,
    Program.chmod: 3, Program.mkdir: 6, Program.many: 1, Program.fewer: 2, Program.rmdir: 2,
    Program.symlink: 3, Program.link: 3, Program.unlink: 5, Program.rename: 6,
    Program.rename_directory: 4, Program.chdir: 3, Program.mistake: 2,
    Program.open_number: 6, Program.open_file: 7, Program.use_number: 9, Program.duplicate: 3,
    Program.use_file: 12, Program.close: 3, Program.pipe: 1, Program.shared_memory: 2,
    Program.use_memory: 4, Program.file_memory: 3, Program.child: 1,
    Program.hindrance: 3}.items())
