"""C07: descriptors pushed at the agent, through the sudo door and through standard output."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import agents, check, fd_count, finish, poll, script, status  # noqa: E402
from program import start  # noqa: E402

FLOOD = r"""
import array, os, socket, stat, subprocess, time

null = os.open("/dev/null", os.O_RDONLY)
burden = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 253))]
print("START", flush=True)
open("/tmp/started", "w").close()
deadline, sent, kept = time.monotonic() + 4, 0, []
while time.monotonic() < deadline:
    for sink in (0, 1, 2):
        if stat.S_ISSOCK(os.fstat(sink).st_mode):
            try:
                socket.socket(fileno=os.dup(sink)).sendmsg([b"."], burden, socket.MSG_DONTWAIT)
                sent += 1
            except OSError:
                pass
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.setblocking(False)
    try:
        door.connect("\\0sandglass-sudo")
        for _ in range(4):
            door.sendmsg([b"USgs" + bytes(60)], burden)
            sent += 1
    except OSError:
        pass
    kept = (kept + [door])[-40:]
kept.clear()
time.sleep(3)
ok = subprocess.run(["sudo", "id", "-u"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
print("SENT", sent, "SUDO", ok.stdout.decode().strip(), flush=True)
"""

with script(FLOOD) as f:
    p = start("--timeout", "60s", "-f", f.name)
    mine = poll(lambda: agents(p.pid))
    worst, before = {}, {pid: fd_count(pid) for pid in [p.pid, *mine]}
    while p.poll() is None:
        for pid in [p.pid, *mine]:
            # children of the agent have its name until they become something else
            if status(pid).get("Name"):
                worst[pid] = max(worst.get(pid, 0), fd_count(pid))
        poll(lambda: p.poll() is not None, 0.05)
    out, err = (text.decode(errors="replace") for text in p.communicate())
check(
    "C07 the flood ends and sudo still works", [] if "SUDO 0" in out else [out[-500:], err[-500:]]
)
# The agent may hold some per session at the door, not one per descriptor sent.
grown = [
    f"{pid} grew from {before[pid]} to {n} descriptors"
    for pid, n in worst.items()
    if n > before[pid] + 200
]
check(
    "C07 nobody outside collects the descriptors",
    grown,
    f"at most {max(worst.values())}",
    out.strip()[-60:],
)
finish()
