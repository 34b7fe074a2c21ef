"""The plain way to make kernels: this process forks itself.

Used where the host lets nobody trace (the way of twins, which the zygote need not know about). A
request is a packet with descriptors; the child does to itself, in this order, what makes it an
ordinary confined process of the sandbox, and goes on as a kernel. Any error ends the child.
"""

import ctypes
import os
import resource
import signal
import socket
import struct

HEAD = struct.Struct("=8s4I")
LIMIT = struct.Struct("=3Q")
FILTER_HEAD = struct.Struct("=2I")
INSN_BYTES = 8

# The order of the descriptors: namespaces, the kernel's own three, doors of control groups, our
# own pid namespace.
USER, MNT, PID, NET, IPC, UTS, CGROUP, CONTROL, STDOUT, STDERR, DOORS = range(11)
NEW = {NET: 0x40000000, USER: 0x10000000, MNT: 0x20000, IPC: 0x8000000, UTS: 0x4000000, CGROUP: 0x2000000}
NEW_PID = 0x20000000

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def prctl(option, value, more=0):
    call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(more), 0, 0)


def parse(packet):
    """uid, gid, number of doors, limits, filter."""
    _, uid, gid, n_doors, n_limits = HEAD.unpack_from(packet)
    at = HEAD.size
    limits = [LIMIT.unpack_from(packet, at + i * LIMIT.size) for i in range(n_limits)]
    at += n_limits * LIMIT.size
    length, _ = FILTER_HEAD.unpack_from(packet, at)
    at += FILTER_HEAD.size
    return uid, gid, n_doors, limits, packet[at : at + length * INSN_BYTES]


def drop_bounding():
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            return  # the kernel knows no more


def confine(packet, fds, keep):
    """In the child: from a copy of the zygote to a process of the sandbox."""
    uid, gid, n_doors, limits, instructions = parse(packet)
    for door in fds[DOORS : DOORS + n_doors]:
        os.write(door, b"0")
    for which, flag in NEW.items():
        call("setns", fds[which], flag)
    for name, soft, hard in limits:
        infinite = 2**64 - 1
        resource.setrlimit(name, [-1 if v == infinite else v for v in (soft, hard)])
    drop_bounding()
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    head = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    call("capset", head, (ctypes.c_uint32 * 6)())
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    os.setsid()
    os.umask(0o022)
    os.dup2(fds[STDOUT], 1)
    os.dup2(fds[STDERR], 2)
    os.dup2(fds[CONTROL], 3, inheritable=False)
    os.closerange(4, keep)
    os.closerange(keep + 1, 4096)
    os.chdir("/home/user")
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = Program(len(instructions) // INSN_BYTES, ctypes.addressof(buffer))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))
    prctl(PR_SET_DUMPABLE, 1)  # last: from now on others of the same user may write its memory


def fork(packet, fds):
    """0 in the child, which is confined; in the zygote, what to answer."""
    told, tell = os.pipe()
    call("setns", fds[PID], NEW_PID)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            confine(packet, fds, tell)
            os.close(tell)
        except BaseException as error:
            try:
                os.write(tell, str(error).encode())
            except OSError:
                pass
            os._exit(1)
        return 0
    call("setns", fds[-1], NEW_PID)
    os.close(tell)
    trouble = os.read(told, 200)
    os.close(told)
    return trouble or b"pid %d" % pid


def wait_to_be_copied():
    """Returns in a copy only."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps our children
    control = socket.socket(fileno=os.dup(3))
    while True:
        packet, fds, _, _ = socket.recv_fds(control, 65536, 64)
        if not packet:
            os._exit(0)
        try:
            answer = fork(packet, fds)
        except OSError as error:
            answer = str(error).encode()
        if answer == 0:
            control.detach()
            return
        for fd in fds:
            os.close(fd)
        control.send(answer)
