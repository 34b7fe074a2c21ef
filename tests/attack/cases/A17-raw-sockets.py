# case: A17
# title: raw, packet, XDP, SCTP and MPTCP sockets
# users: user root
# control: seccomp
for name, args in {
    "AF_PACKET raw": (17, 3, 0x0300),
    "AF_PACKET datagrams": (17, 2, 0x0300),
    "AF_XDP": (44, 3, 0),
    "ICMP": (2, 3, 1),
    "raw IP": (2, 3, 255),
    "ICMPv6": (10, 3, 58),
    "ping": (2, 2, 1),
    "MPTCP": (2, 1, 262),
    "SCTP": (2, 1, 132),
    "SCTP packets": (2, 5, 132),
    "DCCP": (2, 6, 33),
    "UDP-Lite": (2, 2, 136),
    "L2TP": (2, 2, 115),
    "SMC": (43, 1, 0),
    "TIPC": (30, 1, 0),
    "Bluetooth": (31, 3, 1),
    "CAN": (29, 3, 1),
    "RxRPC": (33, 2, 2),
    "Qualcomm IPC": (42, 2, 0),
    "PF_KEY": (15, 3, 2),
    "NFC": (39, 5, 0),
    "PPPoX": (24, 2, 0),
    "KCM": (41, 2, 0),
    "raw under a high bit": (1 << 32 | 2, 1 << 32 | 3, 1),
}.items():
    refused(name, 41, *args, ok=("EPERM",))
refused("socketpair(AF_TIPC)", 53, 30, 1, 0, ctypes.create_string_buffer(8), ok=("EPERM",))
done()
