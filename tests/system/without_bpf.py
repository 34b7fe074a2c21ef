"""without_bpf.py COMMAND...: runs a command as on a kernel that was built without bpf(2): it answers
ENOSYS, through a system-call filter."""
import ctypes
import errno
import os
import struct
import sys

BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS
NUMBER = 0
PR_SET_SECCOMP, MODE_FILTER = 22, 2

program = [
    (LOAD, 0, 0, NUMBER),
    (EQUAL, 1, 0, BPF),
    (RETURN, 0, 0, ALLOW),
    (RETURN, 0, 0, REFUSE),
]
code = b"".join(struct.pack("HBBI", *line) for line in program)
buffer = ctypes.create_string_buffer(code)
filter_ = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.c_char_p(filter_), 0, 0) != 0:
    sys.exit(f"cannot set the filter: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
