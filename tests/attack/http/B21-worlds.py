"""B21: a hostile template, and root inside against the files of a world that other sandboxes have too.

The template is a small Debian with traps in it. Then root in one sandbox writes to the world's files through every door it
has; another sandbox, which began before, and a new one must see them as they were, and so must the host."""
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [f"{HERE}/../lib", f"{HERE}/../../system"]
import world_root  # noqa: E402
from host import check, finish  # noqa: E402
from oracle import sha256  # noqa: E402
from program import SANDGLASS  # noqa: E402
from server import Site  # noqa: E402

CAP_SETUID = bytes.fromhex("0100000280000000000000000000000000000000").decode("latin1")  # in the effective set, for all
TEXT = b"genuine\n" * 4096
TOPS, N_DOORS = ("/usr/bin", "/usr/share", "/opt"), 19
MARKED = [f"{top}/marked{n}" for top in TOPS for n in range(N_DOORS)]  # a file of its own for each door

TRAPS = r"""
import os, stat
def told(what, fn):
    try:
        print("PWNED" if fn() else "held", what)
    except OSError as e:
        print("held", what, e.strerror)
def gains(path):
    pid, end = os.fork(), 126
    if pid == 0:
        try:
            os.execv(path, [path, "-c", "import os, sys; s = open('/proc/self/status').read(); "
                            "sys.exit(42 if os.geteuid() == 0 or int(s.split('CapEff:')[1].split()[0], 16) else 43)"])
        finally:
            os._exit(end)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in (42, 43):
        print("PWNED", path, "did not run:", status)
    return status == 42
told("a program that is setuid", lambda: gains("/usr/bin/suid"))
told("a program with a capability", lambda: gains("/usr/bin/capable"))
told("a setuid program outside /usr", lambda: gains("/opt/suid"))
told("a device", lambda: stat.S_ISCHR(os.stat("/opt/mem").st_mode) or stat.S_ISBLK(os.stat("/opt/mem").st_mode))
told("/proc of the world", lambda: os.path.exists("/proc/trap"))
told("/dev of the world", lambda: os.path.exists("/dev/trap"))
told("/sys of the world", lambda: os.path.exists("/sys/trap"))
told("a link in the way of the home", lambda: os.path.realpath("/home/user") != "/home/user")
print("DONE")
"""

DOORS = r"""
import ctypes, fcntl, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
work = []
def door(name):
    return lambda fn: work.append((name, fn))
@door("append")
def _(p):
    with open(p, "a") as f: f.write("changed")
@door("write in place")
def _(p):
    fd = os.open(p, os.O_RDWR); os.pwrite(fd, b"changed", 0); os.close(fd)
@door("direct write")
def _(p):
    fd = os.open(p, os.O_RDWR | os.O_DIRECT); m = mmap.mmap(-1, 4096); m[:7] = b"changed"; os.pwritev(fd, [m], 0); os.close(fd)
@door("shared map")
def _(p):
    fd = os.open(p, os.O_RDWR); m = mmap.mmap(fd, 4096); m[:7] = b"changed"; m.flush(); os.close(fd)
@door("map of a descriptor for reading")
def _(p):
    fd = os.open(p, os.O_RDONLY); mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[:7] = b"changed"
@door("private map through /proc/self/mem")
def _(p):
    fd = os.open(p, os.O_RDONLY); m = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(m))
    with open("/proc/self/mem", "r+b", buffering=0) as f: f.seek(at); f.write(b"changed")
@door("a descriptor for reading, opened again")
def _(p):
    fd = os.open(p, os.O_RDONLY); again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR); os.pwrite(again, b"changed", 0)
@door("an early descriptor, opened again")
def _(p):
    again = os.open("/proc/EARLY/fd/" + FDS[p], os.O_RDWR); os.pwrite(again, b"changed", 0)
@door("the root of an early process")
def _(p):
    fd = os.open("/proc/EARLY/root" + p, os.O_RDWR); os.pwrite(fd, b"changed", 0)
@door("the root of pid 1")
def _(p):
    fd = os.open(f"/proc/1/root{p}", os.O_RDWR); os.pwrite(fd, b"changed", 0)
@door("splice into a pipe that is then written to")
def _(p):
    fd = os.open(p, os.O_RDONLY); r, w = os.pipe(); fcntl.fcntl(w, 1031, 1 << 20); os.write(w, b"x" * 65536); os.read(r, 65536)
    os.splice(fd, w, 1, offset_src=0); os.write(w, b"changed")
@door("truncate")
def _(p): os.truncate(p, 10)
@door("a hole")
def _(p):
    fd = os.open(p, os.O_RDWR)
    if libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4096)) < 0: raise OSError(ctypes.get_errno(), "fallocate")
@door("mode, owner, times, attributes")
def _(p): os.chmod(p, 0o6777); os.chown(p, 1000, 1000); os.utime(p, (1, 1)); os.setxattr(p, "user.x", b"y")
@door("a hard link")
def _(p):
    os.link(p, p + "-link"); fd = os.open(p + "-link", os.O_RDWR); os.pwrite(fd, b"changed", 0)
@door("another file in its place")
def _(p):
    open(p + "-new", "w").write("changed"); os.rename(p + "-new", p)
@door("removal")
def _(p): os.unlink(p)
@door("a mount that can be written to")
def _(p):
    if libc.mount(None, os.path.dirname(p).encode(), None, 32 | 4096, None) < 0: raise OSError(ctypes.get_errno(), "mount")
@door("flags of the file")
def _(p):
    fd = os.open(p, os.O_RDONLY); fcntl.ioctl(fd, 0x40086602, (0x10).to_bytes(8, "little"))
did = 0
for n, (name, fn) in enumerate(work):
    for top in TOPS:
        p = f"{top}/marked{n}"
        try:
            fn(p); did += 1
        except Exception as e:
            print("denied", name, p, type(e).__name__, e)
print("DONE", len(work), did, sum(not os.path.exists(p) or open(p, "rb").read(7) != b"genuine" for p in FDS))
"""

EARLY = ("import os, time\n"
         f"print(os.getpid(), *[os.open(p, os.O_RDONLY) for p in {MARKED!r}], flush=True)\ntime.sleep(600)\n")


def template(folder):
    """The root with its traps: those that a world may have, since a sandbox must hold them."""
    path = f"{folder}/root.tar"
    world_root.make(path)
    python = os.path.realpath(shutil.which("python3", path="/usr/bin"))
    with tarfile.open(path, "a", format=tarfile.PAX_FORMAT) as tar:
        def put(name, data=None, mode=0o755, kind=tarfile.REGTYPE, link="", xattrs=None, device=(0, 0)):
            info = tarfile.TarInfo(name)
            info.mode, info.type, info.linkname, info.mtime = mode, kind, link, 1_700_000_000
            info.devmajor, info.devminor = device
            info.pax_headers = {f"SCHILY.xattr.{k}": v for k, v in (xattrs or {}).items()}
            if isinstance(data, str):
                info.size = os.path.getsize(data)
                with open(data, "rb") as file:
                    tar.addfile(info, file)
                return
            info.size = len(data or b"")
            with tempfile.TemporaryFile() as file:
                file.write(data or b"")
                file.seek(0)
                tar.addfile(info, file)
        put("usr/bin/suid", python, mode=0o6755)
        put("opt", kind=tarfile.DIRTYPE)
        put("opt/suid", python, mode=0o6755)
        put("usr/bin/capable", python, xattrs={"security.capability": CAP_SETUID})
        put("opt/mem", kind=tarfile.CHRTYPE, mode=0o666, device=(1, 1))
        for name in ("proc/trap", "dev/trap", "sys/trap"):
            put(name, b"x")
        for name in MARKED:
            put(name[1:], TEXT)
    return path


def as_root(sandbox, code):
    sandbox.put("/home/user/attack.py", code)
    return sandbox.says("sudo python3 /home/user/attack.py 2>&1")


def seen(sandbox):
    return sandbox.says("for t in /usr/bin /usr/share /opt; do sha256sum $t/marked*; stat -c '%n %a %u %h %s %Y' $t/marked*; done")


def stored(site, world):
    folder = f"{site.state}/worlds/{world}"
    return {name: sha256(f"{folder}/{name}") for name in sorted(os.listdir(folder))}


def doors(site, world):
    before_disk, early, first = stored(site, world), site.create(templateID="trapped"), site.create(templateID="trapped")
    before = seen(early)
    first.put("/home/user/early.py", EARLY)
    first.says("(python3 early.py > opened 2>&1 &) ; while ! [ -s opened ]; do sleep 0.1; done")  # opens below the cover of /usr
    opened = first.says("cat opened").split()
    code = DOORS.replace("TOPS", repr(TOPS)).replace("EARLY", opened[0]).replace("FDS", repr(dict(zip(MARKED, opened[1:]))))
    told = as_root(first, code)
    lines = told.splitlines()
    check("B21 control: root's writes change what its own sandbox sees",
          [] if "DONE" in told and [int(n) >= least for n, least in zip(lines[-1].split()[1:], (N_DOORS, 30, 20))] == [True] * 3 else [told],
          lines[-1])
    check("B21 doors: a sandbox that ran meanwhile sees the world as it was", [] if seen(early) == before else [seen(early)],
          *(line for line in lines if line.startswith("denied")))
    check("B21 doors: so does a new one", [] if seen(site.create(templateID="trapped")) == before else ["it does not"])
    check("B21 doors: so does the host", [] if stored(site, world) == before_disk else [f"{before_disk} {stored(site, world)}"])


def traps(site):
    sandbox = site.create(templateID="trapped")
    sandbox.put("traps.py", TRAPS)
    told = sandbox.says("python3 traps.py 2>&1")
    check("B21 traps: nothing that a world has gives its user more",
          [line for line in told.splitlines() if line.startswith("PWNED")] or [] if "DONE" in told else [told],
          *told.splitlines())
    told = sandbox.says("sudo python3 traps.py 2>&1")
    check("B21 control: a program that gained something would be seen", [] if "PWNED a program that is setuid" in told else [told])
    check("B21 traps: the sandbox is a whole one", sandbox.trouble())


with Site() as the_site, tempfile.TemporaryDirectory(prefix="sandglass-attack-", dir="/var/tmp") as the_folder:
    made = subprocess.run([SANDGLASS, "world", "import", "--state", the_site.state, "--name", "trapped", template(the_folder)],
                          capture_output=True, text=True, check=False)
    check("B21 the template is taken, and so must be held", [] if made.returncode == 0 else [made.stderr])
    if made.returncode == 0:
        traps(the_site)
        doors(the_site, os.listdir(f"{the_site.state}/worlds")[0])
    check("B21 the server goes on", the_site.trouble())
finish()
