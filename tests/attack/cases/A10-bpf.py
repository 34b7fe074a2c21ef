# case: A10
# title: bpf and filters on sockets
# users: user root
# options: --timeout 30s
# control: seccomp
import socket
import struct

SYS_BPF, SYS_SETSOCKOPT = 321, 54
array_map = ctypes.create_string_buffer(struct.pack("4I", 2, 4, 4, 1), 120)
refused("bpf(MAP_CREATE)", SYS_BPF, 0, array_map, 120)
refused("bpf(PROG_LOAD)", SYS_BPF, 5, ctypes.create_string_buffer(120), 120)

udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
insn = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xFFFFFFFF))  # ret -1
prog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(insn)))
for name, option in (
    ("SO_ATTACH_FILTER", 26),
    ("SO_ATTACH_BPF", 50),
    ("SO_ATTACH_REUSEPORT_CBPF", 51),
    ("SO_ATTACH_REUSEPORT_EBPF", 52),
):
    refused(f"setsockopt({name})", SYS_SETSOCKOPT, udp.fileno(), 1, option, prog, 16)
refused(
    "setsockopt(SO_ATTACH_BPF) under high bits",
    SYS_SETSOCKOPT,
    udp.fileno(),
    1 << 32 | 1,
    1 << 32 | 50,
    prog,
    16,
)
tcp = socket.socket()
refused("setsockopt(TCP_ULP)", SYS_SETSOCKOPT, tcp.fileno(), 6, 31, b"tls", 3)
refused("setsockopt(UDP_ENCAP)", SYS_SETSOCKOPT, udp.fileno(), 17, 100, struct.pack("i", 2), 4)
refused("setsockopt(IP_TRANSPARENT)", SYS_SETSOCKOPT, udp.fileno(), 0, 19, struct.pack("i", 1), 4)
refused("setsockopt(IPT_SO_SET_REPLACE)", SYS_SETSOCKOPT, udp.fileno(), 0, 64, b"", 0)
refused("setsockopt(IP_XFRM_POLICY)", SYS_SETSOCKOPT, udp.fileno(), 0, 17, b"", 0)
if not CONTROL:
    stress("--bad-ioctl", "1", "-t", "1")
done()
