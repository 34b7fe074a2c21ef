"""A zygote plays the life of a kernel some times before it idles: birth, a few cells, and waking up
as a copy.

Python changes code as it runs: it counts calls, then replaces instructions by faster ones. Each
change of a page is paid for by every copy, in time and in memory. After a rehearsal of the very
functions that a copy is going to run there is little left to change.
"""

import _socket
import os
import sys

from . import copies
from . import hygiene
from .session import Session

TIMES = 40
PACKETS = (b"GSANDGLASS=1", b"VSANDGLASS=2", b"D/", b"X\1\0\0\0001+1", b"X\2\0\0\0x = 1\nx", b"Y")
LAST = {b"X": b"F", b"Y": b"Q"}  # what the answer ends with


def rehearse(make_kernel):
    """make_kernel(fd) makes a kernel that has its control socket there."""
    agent, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    uuid = sys.modules.get("uuid")
    copies.note_handlers()
    time_safe = getattr(uuid, "_generate_time_safe", None)
    for _ in range(TIMES):
        kernel = make_kernel(theirs.fileno())
        kernel.session = Session(kernel.control)
        hygiene.refresh()
        kernel.take_over()
        for packet in PACKETS:
            agent.send(packet)
            kernel.step()
            last = LAST.get(packet[:1])
            while last is not None and agent.recv(1 << 16)[:1] != last:
                pass
        for fd in (kernel.control.out, *kernel.streams.spares):
            os.close(fd)
    agent.close()
    theirs.close()
    if uuid is not None:
        uuid._generate_time_safe = time_safe  # only copies of kernels that ran do without
