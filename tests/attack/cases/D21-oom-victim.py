# case: D21
# title: who dies when memory runs out
# users: user root
# options: --memory 96M --pids 200 --timeout 60s
# expect-limit: memory
# may-die: yes
# heavy: yes
# The killer must always find a process of the program, never the agent, which brings us the result.
import mmap
import time

if int(open("/proc/self/oom_score_adj").read()) < 1000:
    pwned("a program is not the first to die")
try:
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("-1000")
    pwned("a program can hide from the killer")
except OSError as e:
    denied("oom_score_adj -1000", name_of(e))


def hungry(mib, rest_s):
    pages = mmap.mmap(-1, mib << 20)
    for at in range(0, mib << 20, 4096):
        pages[at] = 1
        if at % (1 << 20) == 0:
            time.sleep(0.02)
    time.sleep(rest_s)


def crowd(number, mib):
    """How many of so many processes were killed."""
    pids = []
    for _ in range(number):
        pid = os.fork()
        if pid == 0:
            hungry(mib, 1)
            os._exit(0)
        pids.append(pid)
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return ended.count(-signal.SIGKILL)


def mapped():
    """Pages of files."""
    kept = []
    for i in range(16):
        fd = os.memfd_create(f"f{i}")
        os.ftruncate(fd, 8 << 20)
        kept.append(mmap.mmap(fd, 8 << 20))
        kept[-1].write(b"x" * (8 << 20))


killed = crowd(6, 40)
if killed:
    denied("6 processes of 40 MiB", f"{killed} were killed")
else:
    pwned("240 MiB under a limit of 96")
if in_child(mapped) == 0:
    pwned("128 MiB of mapped files under a limit of 96")
else:
    denied("128 MiB of mapped files", "killed")
if open("/proc/1/comm").read().strip() != "sg-agent":
    pwned("the agent is gone")

# Last, because now the largest process may be this one: many that are small.
print("60 small ones:", crowd(60, 4), "were killed")
done()
