# case: D07
# title: open files
# users: user root
# options: --pids 128 --timeout 60s
# control: rlimits
# heavy: yes
import resource

LIMIT, MOST, PROCESSES = 4096, 4200, 16


def hoard():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    fds = 0
    try:
        while fds < MOST:
            os.open("/dev/null", os.O_RDONLY)
            fds += 1
    except OSError as e:
        return denied(f"descriptor {fds + 1}", name_of(e))
    return 1


for i in range(1 if CONTROL else PROCESSES):
    if in_child(hoard) == 1:
        pwned(f"more than {LIMIT} descriptors in one process")
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
    pwned("the hard limit can be raised")
except (ValueError, OSError) as e:
    denied("raising the limit", e)
used, _, most = map(int, open("/proc/sys/fs/file-nr").read().split())
if used > most // 2:
    pwned(f"{used} of the host's {most} open files are taken")
done()
