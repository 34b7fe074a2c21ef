"""C05: two sandboxes of one engine do not meet: sockets, shared memory, names, processes."""
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from engine import Engine  # noqa: E402
from host import check, check_control, finish  # noqa: E402

OPEN = r"""
import ctypes, os, socket, time

abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0sandglass-attack-meet")
abstract.listen()
tcp = socket.create_server(("127.0.0.1", 7777))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 7777))
ctypes.CDLL(None).shmget(0x5a6d, 4096, 0o1666)
ctypes.CDLL(None).msgget(0x5a6d, 0o1666)
for path in ("/dev/shm/meet", "/tmp/meet", "/var/tmp/meet"):
    open(path, "w").write("here")
open("/tmp/ready", "w").close()
time.sleep(4)
"""
LOOK = r"""
import ctypes, os, socket

s = socket.socket(socket.AF_UNIX)
if s.connect_ex("\0sandglass-attack-meet") == 0:
    print("PWNED a neighbour's abstract socket")
s = socket.socket()
s.settimeout(1)
if s.connect_ex(("127.0.0.1", 7777)) == 0:
    print("PWNED a neighbour's TCP port")
if "meet" in open("/proc/net/unix").read():
    print("PWNED a neighbour's sockets are listed")
for name, call in (("shared memory", "shmget"), ("message queue", "msgget")):
    args = (0x5a6d, 4096, 0) if call == "shmget" else (0x5a6d, 0)
    if getattr(ctypes.CDLL(None), call)(*args) >= 0:
        print("PWNED a neighbour's", name)
for path in ("/dev/shm/meet", "/tmp/meet", "/var/tmp/meet"):
    if os.path.exists(path):
        print("PWNED a neighbour's", path)
if len([p for p in os.listdir("/proc") if p.isdigit()]) > 3:
    print("PWNED processes:", [p for p in os.listdir("/proc") if p.isdigit()])
print("DONE")
"""


def meet():
    with Engine() as engine:
        first, second = engine.sandbox(), engine.sandbox()
        owner = threading.Thread(target=first.exec, args=("/usr/bin/python3", "-c", OPEN))
        owner.start()
        # A handle is for one thread at a time: the first tells by a file that it was ready.
        threading.Event().wait(1.5)
        r = second.exec("/usr/bin/python3", "-c", LOOK)
        owner.join()
        ready = first.exec("test", "-e", "/tmp/ready").status == 0
        first.close()
        second.close()
    found = [line for line in r.out.splitlines() if line.startswith("PWNED")]
    if not ready or "DONE" not in r.out:
        found.append(f"the attempt itself failed: {r.out} {r.err} {r.message}")
    return found


if sys.argv[1:] == ["findings"]:
    print("\n".join(meet()))
    sys.exit(0)
check("C05 sandboxes of one engine do not meet", meet())
check_control("C05", "netns")
finish()
