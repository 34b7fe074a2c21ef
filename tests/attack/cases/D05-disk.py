# case: D05
# title: disk space
# users: user root
# options: --disk 32M --timeout 60s
# expect-limit: disk
# control: disk
# heavy: yes
DISK, MOST = 32 << 20, 64 << 20
home = os.path.expanduser("~")
written = 0
try:
    for i in range(MOST >> 22):
        with open(f"{home}/f{i}", "wb", buffering=0) as f:
            written += f.write(bytes(4 << 20))
except OSError as e:
    denied(f"writing after {written >> 20} MiB", name_of(e))
if written > DISK:
    pwned(f"{written >> 20} MiB written under a limit of {DISK >> 20}")
if not CONTROL:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    fd = os.open(f"{home}/big", os.O_RDWR | os.O_CREAT)
    attempt("fallocate 1 TiB", os.posix_fallocate, fd, 0, 1 << 40)
    attempt("a hole of 1 TiB", os.ftruncate, fd, 1 << 40)
    attempt("a byte at 1 TiB", os.pwrite, fd, b"x", 1 << 40)
    command("dd", "dd", "if=/dev/zero", f"of={home}/dd", "bs=1M", "count=64")
done()
