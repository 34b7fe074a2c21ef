# case: A16
# title: netlink protocols
# users: user root
# control: seccomp
for protocol in range(1, 32):
    for kind in (2, 3):
        refused(f"socket(AF_NETLINK, {kind}, {protocol})", 41, 16, kind, protocol,
                ok=("EPROTONOSUPPORT" if protocol == 9 else "EPERM",))
refused("NETLINK_NETFILTER under high bits", 41, 1 << 32 | 16, 3, 1 << 32 | 12, ok=("EPERM",))
ret, why = S(41, 16, 3, 0)
if ret < 0:
    sys.exit(f"NETLINK_ROUTE does not work: {why}")
done()
