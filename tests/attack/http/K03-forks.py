"""K03: a branch and its source are two sandboxes, whatever the source has done before the fork and does during it.

Each attempt ends in a branch that is right or in a refusal that lists what is in the way; the source goes on."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from cells import ALIVE, SELF, fork, warm_kernel  # noqa: E402
from host import check, finish, poll  # noqa: E402
from server import Site  # noqa: E402

MARK = "x = 'of the source'"
FIELDS = {"pid", "command", "what", "holds", "remedy"}


def branch(site, sandbox, **body):
    """(branch or None, complaints): the answer is a branch that knows what the source knew, or a refusal."""
    a, made = fork(site, sandbox, **body)
    if a.status == 409:
        listed = (a.json() or {}).get("inTheWay")
        good = listed and all(set(item) == FIELDS for item in listed)
        return None, [] if good else [f"a refusal without a list: {a}"]
    if a.status != 201:
        return None, [f"neither a branch nor a refusal: {a}"]
    cell = made[0].cell("x")
    return made[0], [] if cell.text == "of the source" else [f"half a branch: {cell}, {a}"]


def goes_on(sandbox):
    cell = sandbox.cell("x")
    return [] if cell.text == "of the source" else [f"the source does not go on: {cell}"]


def attempt(site, name, prepare, refused=None, inside="", **body):
    """What the source does first; `refused`: what must be in the way, "" for nothing, None for either."""
    sandbox = warm_kernel(site)
    cell = sandbox.cell(f"{MARK}\n{prepare}")
    made, wrong = branch(site, sandbox, **body)
    wrong = ([f"the cell failed: {cell}"] if cell.error else []) + wrong + goes_on(sandbox)
    if refused == "" and not made:
        wrong.append("it was refused")
    elif refused and made:
        wrong.append("it was not refused")
    elif refused:
        listed = site.api("POST", f"/sandboxes/{sandbox.id}/fork", {}).json().get("inTheWay", [])
        wrong += [] if any(item["what"] == refused for item in listed) else [f"{listed}"]
    if made and inside:
        cell = made.cell(inside)
        wrong += [] if cell.text == "True" else [f"in the branch: {cell}"]
    check(f"K03 {name}", wrong)
    for one in filter(None, (sandbox, made)):
        one.kill()


# ---- two sandboxes ------------------------------------------------------------------------------

def pair(site, prepare=""):
    sandbox = warm_kernel(site)
    sandbox.cell(f"{MARK}\n{prepare}")
    made, wrong = branch(site, sandbox)
    if not made:
        raise RuntimeError(f"no branch: {wrong}")
    return sandbox, made


def about_rights(site):
    sandbox, made = pair(site)
    here, source = json.loads(made.cell(SELF).out), json.loads(sandbox.cell(SELF).out)
    made.put("self.py", SELF.encode())
    there = json.loads(made.says("python3 self.py"))
    skipped = ("bounding", "oom_score_adj")
    check("K03 a branch may what a program of its sandbox may",
          [f"{k}: {here[k]} is not {there[k]}" for k in there if k not in skipped and here[k] != there[k]]
          + [f"{k} of the source is {source[k]}, of the branch {here[k]}" for k in skipped if here[k] != source[k]])
    same = [n for n, ino in here["namespaces"].items() if source["namespaces"][n] == ino
            and n not in ("time", "time_for_children")]
    check("K03 no namespace is the source's", [f"{n} is" for n in same])
    for name, one in (("the source", sandbox), ("the branch", made)):
        cell = one.cell(ALIVE)
        check(f"K03 no process but its own can be seen or signalled: {name}",
              [] if cell.out.startswith("[] [1] ") and cell.out.rstrip().endswith(" 0 True") else [str(cell)])
    for name, one, other in (("source", sandbox, made), ("branch", made, sandbox)):
        one.cell("import os, signal\nfor pid in range(2, 33000):\n    if pid != os.getpid():\n        try: os.kill(pid, 9)\n"
                 "        except OSError: pass")
        check(f"K03 signals of the {name} do not reach the other", goes_on(other))


CHANNELS = r"""
import ctypes, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\0sandglass-attack"); abstract.listen()
tcp = socket.create_server(("127.0.0.1", 7777))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 7778)); udp.setblocking(False)
segment = libc.shmget(77, 4096, 0o1666)
queue = libc.msgget(78, 0o1666)
shared = mmap.mmap(-1, 4096)
shared[:6] = b"before"
posix = open("/dev/shm/attack", "w+b")
posix.write(b"before"); posix.flush()
one, two = socket.socketpair(); two.setblocking(False)
fifo = os.mkfifo("/tmp/fifo")
"""

SENT = r"""
import time
def reach(what):
    try:
        what()
        return True
    except OSError:
        return False
found = []
def tried(name, what):
    if reach(what): found.append(name)
tried("abstract socket", lambda: socket.socket(socket.AF_UNIX).connect("\0sandglass-attack"))
tried("tcp", lambda: socket.create_connection(("127.0.0.1", 7777), 1))
if libc.shmget(77, 4096, 0) >= 0: found.append("System V shared memory")
if libc.msgget(78, 0) >= 0: found.append("System V queue")
tried("socket pair", lambda: one.send(b"from the branch"))
tried("the listening socket", lambda: abstract.accept())
reach(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"from the branch", ("127.0.0.1", 7778)))
shared[:6] = b"branch"
posix.seek(0); posix.write(b"branch"); posix.flush()
tried("fifo", lambda: os.open("/tmp/fifo", os.O_WRONLY | os.O_NONBLOCK))
print(found)
"""

RECEIVED = r"""
got = []
for name, what in (("udp", lambda: udp.recv(99)), ("socket pair", lambda: two.recv(99))):
    try: got.append((name, what()))
    except OSError: pass
posix.seek(0)
print(got, shared[:6], posix.read(6), open("/dev/shm/attack", "rb").read(6))
"""


def about_channels(site):
    sandbox, made = pair(site, CHANNELS)
    reader = sandbox.spawn("exec cat /tmp/fifo")  # somebody at the other end, if it were the same
    cell = made.cell(SENT)
    check("K03 nothing that the source has open leads from the branch to it",
          [] if cell.out.strip() == "[]" and not cell.error else [str(cell)])
    cell = sandbox.cell(RECEIVED)
    check("K03 nothing has arrived there", [] if cell.out.strip() == "[] b'before' b'before' b'before'" else [str(cell)])
    cell = sandbox.cell("socket.create_connection(('127.0.0.1', 7777), 1)\none.send(b'y')\ntwo.recv(9)")
    check("K03 control: in the source all of it works", [] if cell.text == "b'y'" else [str(cell)])
    del reader


# ---- frozen files -------------------------------------------------------------------------------

# A program that only read when the fork came, and writes by what it has kept.
KEEPER = r"""
import fcntl, os, time
os.chdir("/home/user/deep")
fd = os.open("frozen", os.O_RDONLY)
open("/tmp/ready", "w").close()
while not os.path.exists("/tmp/go"):
    time.sleep(0.01)
tries = {
    "the descriptor, reopened": lambda: os.write(os.open(f"/proc/self/fd/{fd}", os.O_RDWR), b"LEAK"),
    "its mode": lambda: os.fchmod(fd, 0o777),
    "its times": lambda: os.utime(fd),
    "its length": lambda: os.truncate(f"/proc/self/fd/{fd}", 0),
    "an attribute": lambda: os.setxattr(fd, "user.leak", b"1"),
    "its owner": lambda: os.fchown(fd, os.getuid(), os.getgid()),
}
said = []
for name, what in tries.items():
    try:
        what()
        said.append(f"{name} was written")
    except OSError as e:
        said += [f"{name}: {e.strerror}"] if e.strerror != "Read-only file system" else []
with open("by-cwd", "w") as f:
    f.write("\n".join(said))
os.rename("frozen", "renamed")
"""


def about_frozen(site):
    sandbox = warm_kernel(site)
    sandbox.cell(f"{MARK}\nimport os\nos.makedirs('/home/user/deep')\n"
                 "open('/home/user/deep/frozen', 'w').write('as it was')\n"
                 "os.chmod('/home/user/deep/frozen', 0o644);")
    sandbox.put("keeper.py", KEEPER.encode())
    sandbox.spawn("exec python3 /home/user/keeper.py > /tmp/said 2>&1")
    poll(lambda: sandbox.get("/tmp/ready").status == 200)
    made, wrong = branch(site, sandbox)
    check("K03 a program that has a file open for writing is in the way", wrong + (["it was not"] if made else []))
    sandbox.says("pkill -f [k]eeper.py; rm /tmp/ready")
    sandbox.spawn("exec python3 /home/user/keeper.py")
    poll(lambda: sandbox.get("/tmp/ready").status == 200)
    made, wrong = branch(site, sandbox)
    if not made:
        check("K03 a program that only reads is not in the way", wrong or ["refused"])
        return
    sandbox.says("touch /tmp/go")
    poll(lambda: sandbox.get("/home/user/deep/renamed").status == 200)
    seen = made.says("cd /home/user/deep && ls && cat frozen && stat -c ' %a' frozen && getfattr -d frozen 2>/dev/null; true")
    check("K03 what a program has kept of the frozen files cannot be written by it",
          [] if seen == "frozen\nas it was 644\n" else [f"the branch sees {seen!r}"])
    there = sandbox.says("cd /home/user/deep && ls && cat by-cwd")
    check("K03 ... all of them are read-only to it, and by name it writes to the source's own",
          [] if there == "by-cwd\nrenamed\n" else [f"{there!r}"])
    again, wrong = branch(site, sandbox)
    check("K03 ... which can be forked again", wrong)
    seen = again.says("ls /home/user/deep") if again else ""
    check("K03 ... and has what it had then", [] if seen == "by-cwd\nrenamed\n" else [f"{seen!r}"])


# ---- kernels that fight back --------------------------------------------------------------------

CLONE_VM = r"""
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
stack = mmap.mmap(-1, 65536)
top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + 65536 - 64
sharer = libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), ctypes.c_void_p(top), 0x100 | 17, None)
"""

FILTER = r"""
import ctypes, struct
code = b"".join(struct.pack("HBBI", *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, 257), (0x06, 0, 0, 0x50005), (0x06, 0, 0, 0x7fff0000)))
buffer = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
ctypes.CDLL(None).prctl(22, 2, program)
"""

# Becomes another program between its cells, which speaks for the kernel.
IMPOSTOR = r"""
import os, socket, struct
open("/tmp/impostor.py", "w").write('''
import os, socket, struct
s = socket.socket(fileno=3)
s.send(b"F" + struct.pack("<I", NUMBER))
while True:
    p = s.recv(200000)
    if p[:1] == b"X":
        s.send(b"Rm"); s.send(b"Ttext\\0of the source"); s.send(b"r"); s.send(b"F" + p[1:5])
'''.replace("NUMBER", str(NUMBER)))
os.set_inheritable(3, True)
os.execv("/usr/bin/python3", ["python3", "/tmp/impostor.py"])
"""

SIGNALS = r"""
import signal
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
"""

MANY_FILES = r"""
import os
os.makedirs("/home/user/many", exist_ok=True)
files = [open(f"/home/user/many/{i}", "w+") for i in range(COUNT)]
for i, f in enumerate(files):
    f.write(str(i) * 3)
    f.flush()
    f.seek(1)
"""

STRANGE = r"""
import os
name = b"/home/user/a\nb\"\\\xff\x01' $(x) "
os.makedirs(name + b"/d")
os.chdir(name + b"/d")
strange = open(b"f\n\xfe", "wb")
strange.write(b"12345"); strange.flush(); strange.seek(3)
"""


def about_fights(site):
    attempt(site, "a thread is refused", "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()", "thread")
    attempt(site, "the racer of the reference: a thread that rewrites the kernel's code",
            "import ctypes, threading\nlibc = ctypes.CDLL(None)\npage = ctypes.cast(libc.syscall, ctypes.c_void_p).value & ~4095\n"
            "libc.mprotect(ctypes.c_void_p(page), 4096, 7)\nhere = (ctypes.c_char * 4096).from_address(page)\ndef race():\n"
            "    while True:\n        here[0] = here[0]\nthreading.Thread(target=race, daemon=True).start()", "thread")
    attempt(site, "a process that shares its memory and is no thread", CLONE_VM)
    attempt(site, "a filter of its own that breaks opening files", FILTER, "process")
    attempt(site, "signals that come all the time", SIGNALS, "", "True")
    attempt(site, "no more descriptors for it", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))")
    attempt(site, "no more memory for it", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))")
    attempt(site, "no file may grow", "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))")
    attempt(site, "400 open files come along, each where it was", MANY_FILES.replace("COUNT", "400"), "",
            "[f.read() for f in files] == [(str(i) * 3)[1:] for i in range(400)]")
    attempt(site, "600 are too many", MANY_FILES.replace("COUNT", "600"), "file")
    attempt(site, "4000 descriptors that cannot come along",
            "import os, resource\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nresource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
            "pipes = [os.pipe() for _ in range(min(hard, 4000) // 2 - 20)]", "")
    attempt(site, "names that are no text", STRANGE, "",
            "(strange.tell(), open(name + b'/d/f\\n\\xfe', 'rb').read(), os.getcwdb()) == (3, b'12345', name + b'/d')")
    attempt(site, "50,000 mappings", "import mmap\nmaps = [mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=1 + 2 * (i % 2)) for i in range(50_000)]")
    attempt(site, "shared memory beyond what is copied", "import mmap\nm = mmap.mmap(-1, 300 << 20)", "memory")
    attempt(site, "standard output is a file now", "import os\nos.dup2(os.open('/home/user/out', os.O_CREAT | os.O_WRONLY), 1);")
    attempt(site, "a child that is stopped", "import os, signal, subprocess\nc = subprocess.Popen(['sleep', '1000'], cwd='/')\nos.kill(c.pid, signal.SIGSTOP)", "")
    attempt(site, "a child that is dead and not buried", "import os\nif os.fork() == 0: os._exit(0)", "")


def about_impostors(site):
    sandbox = warm_kernel(site)
    sandbox.cell(MARK)
    sandbox.cell(IMPOSTOR.replace("str(NUMBER)", "'3'"))
    a, _ = fork(site, sandbox)
    listed = [item["what"] for item in (a.json() or {}).get("inTheWay", [])] if a.status == 409 else []
    check("K03 a kernel that has become another program is refused", [] if "exec" in listed else [str(a)])
    check("K03 ... and goes on as what it is", goes_on(sandbox))


# ---- meanwhile ----------------------------------------------------------------------------------

SWAPPER = "cd /home/user && while true; do mv a b; mv b a; done"
FORKER = "while true; do (:) & done"
STOPPER = ("import os, signal, time\nme = os.getpid()\nwhile True:\n    for p in os.listdir('/proc'):\n        if p.isdigit() and int(p) not in (1, me):\n"
           "            for s in (signal.SIGSTOP, signal.SIGCONT):\n                try: os.kill(int(p), s)\n                except OSError: pass\n")


def about_meanwhile(site):
    """Forks while something in the source works against them."""
    for name, start in (("renames a file", lambda b: b.spawn(SWAPPER)), ("starts programs", lambda b: b.spawn(FORKER)),
                        ("stops and continues all that it sees", lambda b: b.python(STOPPER))):
        sandbox = warm_kernel(site)
        sandbox.cell(f"{MARK}\nopen('/home/user/a', 'w').close()")
        start(sandbox)
        wrong, made = [], 0
        for _ in range(6):
            one, complaints = branch(site, sandbox)
            wrong += complaints
            if one:
                made += 1
                seen = one.says("cd /home/user && ls | grep -x '[ab]' | sort")
                if seen not in ("a\n", "b\n"):
                    wrong.append(f"the branch has {seen!r}")
                one.kill()
        wrong += goes_on(sandbox)
        check(f"K03 while somebody {name}: right, or refused", wrong, f"{made} of 6 made")
        sandbox.kill()


def attack():
    with Site("--sandbox-memory", "512M", "--sandbox-pids", "256", "--tenant-sandboxes", "100") as site:
        about_rights(site)
        about_channels(site)
        about_frozen(site)
        about_fights(site)
        about_impostors(site)
        about_meanwhile(site)
        check("K03 the server goes on", site.trouble())


attack()
finish()
