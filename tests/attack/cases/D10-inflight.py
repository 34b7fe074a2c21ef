# case: D10
# title: descriptors in flight
# users: user root
# options: --memory 256M --timeout 60s
# control: rlimits
# heavy: yes
import array
import resource
import socket

LIMIT, MOST = 4096, 12000
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
null = os.open("/dev/null", os.O_RDONLY)
burden = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 253))]
keep, flying, full = [], 0, False
while flying < MOST and not full:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.setblocking(False)
    keep.append((a, b))
    try:
        while flying < MOST:
            a.sendmsg([b"x"], burden)
            flying += 253
    except BlockingIOError:
        pass
    except OSError as e:
        denied(f"{flying} descriptors in flight", name_of(e))
        full = True
if flying > LIMIT + 2 * 253:
    pwned(f"{flying} descriptors in flight under a limit of {LIMIT}")
keep.clear()

# Sockets inside each other: only the garbage collector of the kernel can free them.
if not CONTROL:
    for _ in range(20000):
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            a.sendmsg(
                [b"x"],
                [
                    (
                        socket.SOL_SOCKET,
                        socket.SCM_RIGHTS,
                        array.array("i", [a.fileno(), b.fileno()]),
                    )
                ],
            )
        except OSError as e:
            denied("cycles", name_of(e))
            break
        a.close()
        b.close()
done()
