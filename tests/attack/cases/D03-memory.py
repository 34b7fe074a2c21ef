# case: D03
# title: memory
# users: user root
# options: --memory 128M --timeout 60s
# expect-limit: memory
# control: cgroup
# heavy: yes
import mmap

LIMIT, MOST = 128 << 20, 256 << 20


def grow():
    pages = mmap.mmap(-1, MOST)
    for at in range(0, MOST, 4096):
        pages[at] = 1
    return 0


status = in_child(grow)
if status == 0:
    pwned(f"{MOST >> 20} MiB under a limit of {LIMIT >> 20}")
elif status == -signal.SIGKILL:
    denied("too much memory", "killed")
else:
    sys.exit(f"the hungry process ended in an unforeseen way: {status}")
if not CONTROL:
    stress("--vm", "2", "--vm-bytes", "200M", "-t", "2")
done()
