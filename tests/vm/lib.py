"""What the steps of servers in the virtual machine share."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server_client import Client, Server, until  # noqa: E402, F401

PATIENCE_S = 60  # the machine is emulated
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok and detail != "":
        print("\n".join(f"# {line}" for line in str(detail).splitlines()))
    sys.stdout.flush()


def equal(what, got, wanted):
    check(what, got == wanted, f"got    {got!r}\nwanted {wanted!r}")


def host_pids(argument):
    """Pids on the host of processes with this argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended meanwhile
        if argument.encode() in argv[1:]:
            found.append(int(pid))
    return found


def sleeper(client, sandbox, argument):
    """Starts a process that does nothing; its pid on the host."""
    client.spawn(sandbox, f"exec sleep {argument}")
    return until(lambda: host_pids(argument), PATIENCE_S)[0]


def group_of(pid):
    text = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
    return pathlib.Path("/sys/fs/cgroup" + text.split("0::", 1)[1].strip())
