# What the cases share. The runner puts it in front of each of them, inside the sandbox, together
# with the line CASE = "...". Every attempt ends in one line: PWNED if the attack works, else why it
# does not.
import ctypes
import errno
import os
import re
import shutil
import signal
import subprocess
import sys

# Nothing below may ever run on a host: some cases kill all that they can see.
if open("/proc/1/comm").read().strip() != "sg-agent":
    sys.exit("refused: this is not the inside of a sandbox")

CONTROL = "ATTACK_CONTROL" in os.environ  # a layer is missing: keep to what shows it
LONG = "ATTACK_LONG" in os.environ
ROOT = os.geteuid() == 0
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEW = {
    "NEWNS": 0x20000,
    "NEWCGROUP": 0x2000000,
    "NEWUTS": 0x4000000,
    "NEWIPC": 0x8000000,
    "NEWUSER": 0x10000000,
    "NEWPID": 0x20000000,
    "NEWNET": 0x40000000,
}
FILTERED = ("EPERM", "ENOSYS")


def pwned(what):
    print("PWNED", CASE, what, flush=True)


def denied(what, why):
    print("denied", what, why, flush=True)


def done():
    print("DONE", CASE, flush=True)


def name_of(e):
    number = e.errno if isinstance(e, OSError) else e
    return errno.errorcode.get(number, str(number))


def S(nr, *args):
    """A raw system call: its result, and the name of the error if it failed."""
    ctypes.set_errno(0)
    ret = LIBC.syscall(
        ctypes.c_long(nr), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    )
    return ret, name_of(ctypes.get_errno()) if ret < 0 else ""


def refused(what, nr, *args, ok=FILTERED):
    """The call must not get past the filter: any other error comes from the code behind it."""
    ret, why = S(nr, *args)
    if ret < 0 and why in ok:
        denied(what, why)
        return True
    pwned(f"{what} was reached: {ret} {why}")
    return False


def attempt(what, fn, *args):
    """fn must raise OSError. What it returns otherwise is handed on."""
    try:
        ret = fn(*args)
    except OSError as e:
        return denied(what, name_of(e))
    pwned(what)
    return ret


def command(what, *argv, timeout=10):
    """The command must not succeed."""
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    if p.returncode == 0:
        pwned(f"{what}: '{' '.join(argv)}' worked")
    else:
        denied(what, p.stderr.decode(errors="replace").strip()[-120:] or f"status {p.returncode}")


def opens(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))


def in_child(fn):
    """Runs fn in a process of its own: its exit status, or minus the signal that ended it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = fn() or 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def volunteer(mib=16):
    """When memory runs out the kernel looks for the largest process: what is kept makes it this
    one. Needed where memory is taken that belongs to no process, such as the content of pipes."""
    return b"x" * (mib << 20)


def reap_all():
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def status_of(pid):
    lines = open(f"/proc/{pid}/status").read().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def tool(name):
    path = shutil.which(name)
    if path is None:
        sys.exit(f"{name} is not installed on this host")
    return path


def stress(*args, timeout=60):
    """Runs stress-ng: {stressor: operations}, and what it said."""
    p = subprocess.run(
        [tool("stress-ng"), "--metrics-brief", "--oomable", "--no-rand-seed", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout,
    )
    said = p.stdout.decode(errors="replace")
    found = re.findall(r"metrc: \[\d+\] ([\w-]+)\s+(\d+) ", said)
    return {name: int(n) for name, n in found}, said
