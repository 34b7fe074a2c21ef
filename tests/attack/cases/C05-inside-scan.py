# case: C05
# title: control channels that can be reached from inside
# users: user root
# options: --timeout 60s
import socket

DOOR = "\0sandglass-sudo"


def scan(family, address):
    found = []
    for port in range(1, 65536):
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(0.5)
        # A socket can meet itself when the port is the one that it was just given.
        if s.connect_ex((address, port)) == 0 and s.getsockname() != s.getpeername():
            found.append(port)
        s.close()
    return found


for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    ports = scan(family, address)
    if ports:
        pwned(f"something listens on {address}: {ports}")
    else:
        denied(f"{address} ports 1-65535", "all closed")
for name in ("tcp", "tcp6", "udp", "udp6", "raw", "packet", "netlink_x"):
    try:
        lines = open(f"/proc/net/{name}").read().splitlines()[1:]
    except OSError:
        continue
    listening = [line for line in lines if name.startswith("udp") or line.split()[3] == "0A"]
    if listening:
        pwned(f"/proc/net/{name} shows {listening}")

# Sockets by name: the door for sudo, and no other. Abstract ones belong to the network namespace.
for line in open("/proc/net/unix").read().splitlines()[1:]:
    parts = line.split()
    path = parts[7] if len(parts) > 7 else ""
    if path and path != DOOR.replace("\0", "@"):
        pwned(f"a unix socket {path} can be reached")
interfaces = [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]]
if interfaces != ["lo"]:
    pwned(f"interfaces: {interfaces}")
try:
    socket.create_connection(("192.0.2.1", 80), timeout=1)
    pwned("a connection to the outside")
except OSError as e:
    denied("connect 192.0.2.1:80", name_of(e) if e.errno else e)

# The door itself must survive what is no request.
for junk in (b"", b"\0", b"\xff" * 64, b"USgs" + b"\xff" * 4000, os.urandom(65536)):
    for _ in range(10):
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        door.settimeout(10)
        door.connect(DOOR)
        try:
            door.send(junk)
            answer = door.recv(4096)
        except OSError as e:
            answer = name_of(e).encode()
        door.close()
    denied(f"{len(junk)} bytes of junk at the door", answer[:60])
if subprocess.run(["sudo", "true"], stdin=subprocess.DEVNULL, timeout=20).returncode != 0:
    sys.exit("sudo does not work any more")
done()
