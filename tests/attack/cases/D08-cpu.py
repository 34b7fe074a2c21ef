# case: D08
# title: processor time
# users: user root
# options: --cpus 0.1 --pids 64 --timeout 60s
# control: cgroup
# heavy: yes
import time

SHARE, GROSS, PROCESSES, SECONDS = 0.1, 0.3, 16, 3.0

for what, fn in {
    "SCHED_FIFO": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "SCHED_RR": lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(99)),
    "nice -20": lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
    "the agent's priority": lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
}.items():
    attempt(what, fn)
deadline = ctypes.create_string_buffer(48)  # sched_attr: SCHED_DEADLINE
deadline[0], deadline[4] = 48, 6
if S(314, 0, deadline, 0)[0] == 0:
    pwned("SCHED_DEADLINE")
start, cpu_before = time.monotonic(), os.times()
children = []
for _ in range(PROCESSES):
    pid = os.fork()
    if pid == 0:
        while True:
            pass
    children.append(pid)
time.sleep(SECONDS)
for pid in children:
    os.kill(pid, signal.SIGKILL)
reap_all()
took, cpu = time.monotonic() - start, os.times()
used = (
    sum(
        getattr(cpu, k) - getattr(cpu_before, k)
        for k in ("user", "system", "children_user", "children_system")
    )
    / took
)
print(f"{used:.2f} cores used of {SHARE}")
if used > GROSS:
    pwned(f"{used:.2f} cores under a limit of {SHARE}")
done()
