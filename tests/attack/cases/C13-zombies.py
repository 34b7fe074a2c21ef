# case: C13
# title: storms of zombies and orphans
# users: user root
# options: --pids 64 --timeout 60s
# expect-limit: pids
import time


def alive():
    return len([p for p in os.listdir("/proc") if p.isdigit()])


before = alive()
zombies = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            os._exit(0)
        zombies += 1
except OSError as e:
    denied(f"zombie {zombies + 1}", name_of(e))
if zombies >= 64:
    pwned(f"{zombies} zombies under a limit of 64 processes")
reap_all()

orphans = 0
while orphans < 2000:
    try:
        pid = os.fork()
    except BlockingIOError:  # the agent has not reaped the earlier ones yet
        time.sleep(0.01)
        continue
    if pid == 0:
        try:
            os.fork()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    orphans += 1
deadline = time.monotonic() + 10
while alive() > before and time.monotonic() < deadline:
    time.sleep(0.05)
if alive() > before:
    pwned(f"{alive() - before} processes stay behind")
else:
    denied(f"{orphans} orphans", "all reaped")
done()
