"""Drives the warden process of a server without a real front: starts `sandglass serve` with
serve_puppet.py, speaks the orders of src/wire/warden.h, and the channel of a sandbox as far as
running a command takes."""
import atexit
import collections
import functools
import glob
import os
import queue
import random
import select
import shutil
import signal
import socket
import string
import struct
import subprocess
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SANDGLASS = os.environ.get("SG") or os.path.join(HERE, "../../build/bin/sandglass")
PATIENCE_S = 20

MAGIC = 0x73676F31
(CREATE, NOTE, DEADLINE, KILL, PAUSE, RESUME, STATS, SNAPSHOT, POLICY, CHECKPOINT, SAVE, REWIND,
 FORGET, DIFF, FIGURES, VOLUME_MAKE, VOLUME_REMOVE, VOLUME_OPEN, BUILDER, COPY, READINESS, NOW_READY, ALIVE, FAILED) = range(1, 25)
FILES_ONLY, DURABLE, WITH_KERNEL, NETWORK = 1, 2, 4, 8
EXPIRY_KILL, EXPIRY_PAUSE, EXPIRY_FILES = range(3)
(REPLY, LISTENER, SETTINGS, GUARD, TLS, SANDBOX, TOLD_CHECKPOINT, READY, ENDED, PAUSED, KERNELS_LOST,
 CHECKPOINT_GONE, COLD, DRAIN, BEAT, DBWORKER, EXPORTER, JOURNAL) = range(1, 19)
RUNNING, FROZEN, STORED = 1, 2, 3
END_KILLED, END_EXPIRED, END_DIED, END_FAILED = 1, 2, 3, 4

VOLUME = struct.Struct("=21sB256s")
VOLUMES_MAX = 8
ORDER = struct.Struct(f"=IIQIIQQQQII21s21s21s21sI256sI{VOLUME.size * VOLUMES_MAX}s256s4x")
ANSWER = struct.Struct("=IIQii256sIIII21s21s21sxQQ9Q5I4x")
Answer = collections.namedtuple(
    "Answer", "magic tell seq code kind message flags state end paused id tenant layer deadline started "
              "cpu used cache total oom tenant_oom machine_oom pids disk take files network kernels pooled fds")
PROCESSES = "front guard clerk herald spawner broker holder".split()
FAULTS = "exited killed stopped silent".split()
FIGURES_TOLD = struct.Struct(f"=4Qq5I4x3Q{len(PROCESSES) * len(FAULTS)}Q7QI4x")
Figures = collections.namedtuple(
    "Figures", "cpu resident descriptors most began pool zygotes running paused stored made pooled ended faults "
               "limit reserved used available pools kernels refused pressure")
TLS_HERE, METRICS_HERE = 1, 4


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def new_id():
    return "".join(random.choices(string.ascii_lowercase + string.digits, k=20))


def memfd(data):
    fd = os.memfd_create("text")
    os.write(fd, data)
    return fd


def wait_for(condition, what, patience=PATIENCE_S):
    """The first true value of condition()."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"this did not come in {patience} s: {what}")


class Refused(Exception):
    def __init__(self, answer):
        super().__init__(f"{os.strerror(-answer.code)}: {answer.message}")
        self.errno = -answer.code


class Orders:
    """One front's end of the orders."""

    def __init__(self, sock):
        self.sock, self.seq = sock, 0
        self.replies, self.tells = {}, []
        self.mute = False  # a front that hangs
        self.came = queue.Queue()
        self.sock.setblocking(True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Whatever the test does meanwhile, it is alive."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, 4096, 4)
                if len(data) == ANSWER.size and struct.unpack_from("=II", data)[1] == BEAT:
                    if not self.mute:
                        self.sock.send(self.packed(ALIVE))
                    continue
            except OSError:
                return
            self.came.put((data, fds))
            if not data:
                return

    def receive(self, timeout=PATIENCE_S):
        """Takes one message; False if none comes."""
        try:
            data, fds = self.came.get(timeout=max(0, timeout))
        except queue.Empty:
            return False
        assert len(data) == ANSWER.size, f"a message of {len(data)} bytes"
        fields = [f.split(b"\0")[0].decode() if isinstance(f, bytes) else f
                  for f in ANSWER.unpack(data)]
        a = Answer(*fields, fds)
        assert a.magic == MAGIC
        if a.tell == REPLY:
            self.replies[a.seq] = a
        else:
            self.tells.append(a)
        return True

    def send(self, op, id_="", tenant="", layer="", flags=0, deadline=0, expiry=EXPIRY_KILL,
             memory=0, disk=0, cpus=0, pids=0, fd=None, second=None, volumes=()):
        """volumes: (id, readonly, target)"""
        self.seq += 1
        data = self.packed(op, self.seq, flags, expiry, deadline, memory, disk, 0, cpus, pids,
                           id_.encode(), tenant.encode(), layer.encode(), volumes=volumes)
        socket.send_fds(self.sock, [data], [f for f in (fd, second) if f is not None])
        return self.seq

    @staticmethod
    def packed(op, *fields, message=b"", volumes=()):
        mounts = b"".join(VOLUME.pack(id_.encode(), readonly, target.encode()) for id_, readonly, target in volumes)
        return ORDER.pack(MAGIC, op, *(fields or (0,) * 9 + (b"",) * 3), b"", 0, b"", len(volumes), mounts, message)

    def answer(self, seq):
        end = time.monotonic() + PATIENCE_S
        while seq not in self.replies:
            assert time.monotonic() < end and self.receive(), f"no answer to order {seq}"
        a = self.replies.pop(seq)
        if a.code < 0:
            raise Refused(a)
        return a

    def order(self, *args, **kwargs):
        return self.answer(self.send(*args, **kwargs))

    def refused(self, *args, **kwargs):
        """The errno of an order that must be refused."""
        try:
            self.order(*args, **kwargs)
        except Refused as e:
            return e.errno
        raise AssertionError("the order was not refused")

    def tell(self, kind, id_=None, patience=PATIENCE_S):
        """Waits for something that is told unasked."""
        end = time.monotonic() + patience
        while True:
            for a in self.tells:
                if a.tell == kind and id_ in (None, a.id):
                    self.tells.remove(a)
                    return a
            assert time.monotonic() < end and self.receive(max(0, end - time.monotonic())), \
                f"told nothing of kind {kind}, only {[t.tell for t in self.tells]}"

    def create(self, id_=None, note=b"{}", **kwargs):
        """A running sandbox: (id, channel)."""
        id_ = id_ or new_id()
        return id_, Channel(self.created(self.ask_create(id_, note, **kwargs)))

    def ask_create(self, id_, note=b"{}", tenant="t" * 20, policy=None, flags=0, **kwargs):
        """With a policy it has a way out."""
        fds = {"fd": memfd(note)}
        if policy is not None:
            fds["second"] = memfd(policy)
            flags |= NETWORK
        try:
            return self.send(CREATE, id_, tenant, flags=flags, **fds, **kwargs)
        finally:
            for fd in fds.values():
                os.close(fd)

    def ask_policy(self, id_, policy=None):
        """Another policy; None: nothing goes out."""
        if policy is None:
            return self.send(POLICY, id_)
        fd = memfd(policy)
        try:
            return self.send(POLICY, id_, flags=NETWORK, fd=fd)
        finally:
            os.close(fd)

    def figures(self):
        fd, = self.order(FIGURES).fds
        try:
            told = FIGURES_TOLD.unpack(os.pread(fd, FIGURES_TOLD.size + 1, 0))
            names = [(p, f) for p in PROCESSES for f in FAULTS]
            return Figures(*told[:13], dict(zip(names, told[13:])), *told[-8:])
        finally:
            os.close(fd)

    def created(self, seq):
        a = self.answer(seq)
        assert len(a.fds) == 1 and a.state == RUNNING, a
        return a.fds[0]


@functools.cache
def puppet():
    """The path of a copy that a user without rights can reach: a clone may be in a folder of root's."""
    folder = tempfile.mkdtemp(prefix="sandglass-puppet.")
    atexit.register(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    return shutil.copy(os.path.join(HERE, "serve_puppet.py"), folder)


class Server:
    def __init__(self, *options, state=None, patience=PATIENCE_S, env=None):
        self.top = state or tempfile.mkdtemp(prefix="sandglass-serve.", dir=os.environ.get("T"))
        self.state = os.path.join(self.top, "state")
        self.puppet = None
        self.log = open(os.path.join(self.top, "log"), "ab+")
        self.process = subprocess.Popen(
            [SANDGLASS, "serve", "--config", self.config(),
             "--listen", "127.0.0.1:0", "--state", self.state, "--front-program", puppet(),
             "--guard-program", puppet(), *options],
            stdout=self.log, stderr=self.log, env={"SANDGLASS_WORLDS_DISK": "0"} | (os.environ if env is None else env))
        self.patience = patience

    def config(self):
        path = os.path.join(self.top, "conf")
        if not os.path.exists(path):
            open(path, "w").close()
            os.chmod(path, 0o644)
        return path

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        said = self.said()[-3000:]
        self.end(signal.SIGTERM if kind is None else signal.SIGKILL)
        self.log.close()
        if kind:
            print(said)

    def said(self):
        with open(os.path.join(self.top, "log"), errors="replace") as f:
            return f.read()

    def descriptors(self):
        """What the warden has open."""
        links = []
        for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
            try:
                links.append(os.readlink(f"/proc/{self.process.pid}/fd/{fd}"))
            except OSError:
                pass
        return links

    def become(self, which):
        """Takes the place of the front or guard that has just been started: (puppet, pid, socket)."""
        def connect():
            assert self.process.poll() is None, "the server has ended: " + self.said()
            for path in glob.glob(os.path.join(self.state, which, "puppet.*[0-9]")):
                s = socket.socket(socket.AF_UNIX)
                try:
                    s.connect(path)
                    return s, int(path.rsplit(".", 1)[1])
                except OSError:
                    s.close()
            return None
        puppet, pid = wait_for(connect, f"a {which}", self.patience)
        _, fds, _, _ = socket.recv_fds(puppet, 1, 1)
        return puppet, pid, socket.socket(fileno=fds[0])

    def front(self):
        """Becomes the front, up to its greeting."""
        self.puppet, self.front_pid, sock = self.become("front")
        self.orders = Orders(sock)
        return self.orders

    def ready(self):
        o = self.front()
        o.tell(READY)
        o.send(NOW_READY)
        return o

    def kill_front(self):
        os.kill(self.front_pid, signal.SIGKILL)

    def end(self, how=signal.SIGTERM):
        """Ends it; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            if self.puppet and how != signal.SIGKILL:
                self.puppet.close()  # finishes at once
            self.process.wait(PATIENCE_S)
        if self.puppet:
            self.puppet.close()
        return self.process.returncode


# ---- the channel of a sandbox -----------------------------------------------------------------------

FRAME = struct.Struct("<IIBBH")
OPEN, DATA, EOF, CONTROL, EVENT, END, CANCEL, CREDIT = range(1, 9)
PROCESS_START, PROCESS_LIST = 1, 2
PROC_DETACH = 4


def wire_str(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<I", len(b)) + b + b"\0"


class Channel:
    def __init__(self, fd):
        self.sock = socket.socket(fileno=fd)
        self.sock.settimeout(PATIENCE_S)
        self.stream = 0

    def close(self):
        self.sock.close()

    def exactly(self, n):
        data = b""
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            if not more:
                raise EOFError("the channel was closed")
            data += more
        return data

    def frame(self):
        length, stream, kind, sub, _ = FRAME.unpack(self.exactly(FRAME.size))
        return stream, kind, sub, self.exactly(length)

    def put(self, stream, kind, sub, payload=b""):
        self.sock.sendall(FRAME.pack(len(payload), stream, kind, sub, 0) + payload)

    def open(self, op, request):
        self.stream += 1
        self.put(self.stream, OPEN, op, struct.pack("<I", len(request)) + request)
        return self.stream

    def start(self, *argv, user="root", flags=0, cwd="/"):
        request = wire_str(user) + wire_str(cwd) + struct.pack("<IIIQ", flags, 0, 0, 0)
        request += wire_str("") + wire_str("")
        request += struct.pack("<I", len(argv)) + b"".join(map(wire_str, argv))
        return self.open(PROCESS_START, request + struct.pack("<I", 0))

    def started(self, stream):
        """Waits until it runs; its pid inside."""
        while True:
            who, kind, sub, payload = self.frame()
            if who == stream and kind == EVENT:
                return struct.unpack_from("<I", payload)[0]
            assert kind != END, payload

    def run(self, script, user="root"):
        """(exit status, output) of a shell script; standard error comes with it."""
        stream = self.start("/bin/bash", "-c", script, user=user)
        out = b""
        while True:
            who, kind, sub, payload = self.frame()
            if who != stream:
                continue
            if kind == DATA:
                out += payload
                self.put(stream, CREDIT, 0, struct.pack("<I", len(payload)))
            elif kind == END:
                status, length = struct.unpack_from("<II", payload)
                if status:
                    raise OSError(status, payload[8:8 + length].decode())
                how, code = struct.unpack_from("<II", payload, 9 + length)
                return (code if how == 0 else 128 + code), out.decode(errors="replace")

    def out(self, script, user="root"):
        status, text = self.run(script, user)
        assert status == 0, f"status {status} of {script!r}: {text}"
        return text.strip()
