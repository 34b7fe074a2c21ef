"""D22: sockets and ports. What one sandbox takes is nobody else's."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, script  # noqa: E402
from program import run, start  # noqa: E402

HOARD = r"""
import os, resource, socket, time

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
listening = 0
for child in range(6):
    r, w = os.pipe()
    if os.fork() == 0:
        held = []
        try:
            for port in range(1024 + child * 4500, 1024 + (child + 1) * 4500):
                held.append(socket.create_server(("127.0.0.1", port), backlog=1))
        except OSError:
            pass
        os.write(w, str(len(held)).encode())
        time.sleep(5)
        os._exit(0)
    listening += int(os.read(r, 32))
connected, held = 0, []
try:
    while connected < 30000:
        held.append(socket.create_connection(("127.0.0.1", 1024 + connected % 4000), timeout=0.2))
        connected += 1
except OSError as e:
    print("STOPPED", e)
print("LISTENING", listening, "CONNECTED", connected, flush=True)
time.sleep(3)
"""
USE = r"""
import socket, threading
for port in (80, 1024, 1025, 8080, 5000):
    server = socket.create_server(("127.0.0.1", port))
    client = socket.create_connection(("127.0.0.1", port))
    peer, _ = server.accept()
    client.sendall(b"hello")
    assert peer.recv(5) == b"hello"
print("WORKS")
"""

before = int(open("/proc/sys/fs/file-nr").read().split()[0])
with script(HOARD) as f, script(USE) as g:
    hog = start("--user", "root", "--memory", "512M", "--timeout", "60s", "-f", f.name, text=True)
    line = hog.stdout.readline()
    while line and "LISTENING" not in line:
        line = hog.stdout.readline()
    r = run("-f", g.name)
    r_root = run("--user", "root", "-f", g.name)
    used, _, most = map(int, open("/proc/sys/fs/file-nr").read().split())
    hog.communicate(timeout=60)
check("D22 the hog got what its limits allow", [] if "LISTENING" in line else [line], line.strip())
check("D22 a neighbour has all its ports", [x for x in (r, r_root) if "WORKS" not in x.out])
check(
    "D22 the host's table of open files is far from full",
    [f"{used} of {most}"] if used > most // 2 else [],
    f"{before} before, {used} during, of {most}",
)
finish()
