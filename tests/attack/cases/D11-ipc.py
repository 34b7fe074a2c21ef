# case: D11
# title: System V and POSIX IPC
# users: user root
# options: --memory 64M --timeout 60s
# expect-limit: memory
# control: rlimits,cgroup
# may-die: yes
# heavy: yes
import struct

SHMGET, SHMCTL, MSGGET, SEMGET, MQ_OPEN, IPC_RMID = 29, 31, 68, 64, 240, 0
CREATE = 0o1600
MEMORY, MOST = 64 << 20, 128 << 20
QUEUE_BYTES, QUEUES_FIT = 4 * 2048, 8  # RLIMIT_MSGQUEUE is 64 KiB


def queues():
    attributes = ctypes.create_string_buffer(struct.pack("8q", 0, 4, 2048, 0, 0, 0, 0, 0))
    n = 0
    while n < 3 * QUEUES_FIT:
        fd, why = S(MQ_OPEN, f"attack-{n}".encode(), 0o102, 0o600, attributes)
        if fd < 0:
            denied(f"queue {n + 1}", why)
            break
        n += 1
    return n


made = in_child(queues)
if made > QUEUES_FIT:
    pwned(f"{made} message queues of {QUEUE_BYTES} bytes")
elif made == 0:
    sys.exit("message queues do not work at all")

ret, why = S(SHMGET, 0, 100 << 30, CREATE)
print("shmget of 100 GiB:", ret, why)  # an address range at most: filling it is what counts


def shared():
    key, why = S(SHMGET, 0, MOST, CREATE)
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(key, None, 0)
    S(SHMCTL, key, IPC_RMID, 0)  # goes away with the process
    ctypes.memset(at, 1, MOST)
    pwned(f"{MOST >> 20} MiB of shared memory under a limit of {MEMORY >> 20}")


status = in_child(shared)
if status not in (0, -signal.SIGKILL):
    sys.exit(f"the hungry process ended in an unforeseen way: {status}")
denied("shared memory", f"status {status}")

# Last, because these outlive who made them: when they have filled the memory, everybody dies.
if not CONTROL:
    for what, nr, args in (("msgget", MSGGET, (0, CREATE)), ("semget", SEMGET, (0, 250, CREATE))):
        n = 0
        while n < 40000 and S(nr, *args)[0] >= 0:
            n += 1
            if n % 1000 == 0:
                print(what, n, flush=True)
done()
