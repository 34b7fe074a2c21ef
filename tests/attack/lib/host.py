"""What the scripts of host/ share. Each prints `ok - NAME` or `not ok - NAME`, then comments."""
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import program  # noqa: E402  the path of this folder is set by whoever imports us

failed = False


def check(name, wrong, *notes):
    """`wrong` is a list of complaints, or something false if there is none."""
    global failed
    failed |= bool(wrong)
    print(f"{'not ok' if wrong else 'ok'} - {name}")
    for item in [*(wrong or []), *notes]:
        for line in str(item).splitlines():
            print("#", line)
    sys.stdout.flush()


def finish():
    sys.exit(1 if failed else 0)


def script(text):
    """A file with code for `sandglass run -f`. Removed with the object."""
    f = tempfile.NamedTemporaryFile("w", prefix="sandglass-attack-", suffix=".py")
    f.write(text)
    f.flush()
    return f


def expect(r, status, *words):
    """Complaints about a result that does not have this status and these words in its output."""
    if r.status == status and all(word in r.out + r.err for word in words):
        return []
    return [f"expected status {status}{' and ' + repr(words) if words else ''}: {r}"]


def poll(condition, seconds=15.0):
    """Waits until condition() is true; what it said last."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(0.05)


def status(pid):
    try:
        lines = open(f"/proc/{pid}/status").read().splitlines()
    except OSError:
        return {}
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def marked(text):
    """Processes of sandboxes with this text in their command line."""
    found = []
    for pid in pids():
        try:
            command = open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            continue
        uid = status(pid).get("Uid", "0").split()[0]
        if text.encode() in command and int(uid) >= 0x10000000:
            found.append(pid)
    return found


def children(pid):
    return [p for p in pids() if status(p).get("PPid", "") == str(pid)]


def agents(pid):
    """The agents that a process has made."""
    return [p for p in children(pid) if status(p).get("Name") == "sg-agent"]


def rss_mib(pid):
    return int(status(pid).get("VmRSS", "0 kB").split()[0]) / 1024


def fd_count(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def findings(layers):
    """What the calling script finds when run with `findings`, without these layers."""
    env = {
        **os.environ,
        "SANDGLASS_LIBRARY": program.CONTROL_LIBRARY,
        "SANDGLASS_CONTROL_OMIT": layers,
    }
    p = subprocess.run(
        [sys.executable, sys.argv[0], "findings"], env=env, capture_output=True, text=True
    )
    return [line for line in p.stdout.splitlines() if line.startswith("PWNED")], p.stdout + p.stderr


def check_control(name, layers):
    found, said = findings(layers)
    check(
        f"{name} control without {layers} is noticed",
        [] if found else ["nothing was noticed", said],
    )
