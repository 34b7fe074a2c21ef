# case: A18
# title: AF_VSOCK, which reaches the hypervisor from any network namespace
# users: user root
# control: seccomp
for kind in (1, 2, 5):
    refused(f"socket(AF_VSOCK, {kind})", 41, 40, kind, 0, ok=("EPERM",))
attempt("open /dev/vsock", opens, "/dev/vsock", os.O_RDWR)
done()
