# case: D01
# title: fork bomb
# users: user root
# options: --pids 64 --timeout 30s
# expect-limit: pids
# control: cgroup,rlimits
# heavy: yes
# A bomb with a counter: without the limit it stops at 200 processes.
import time

LIMIT, MOST = 64, 200
children = []
while len(children) < MOST:
    try:
        pid = os.fork()
    except OSError as e:
        denied(f"process {len(children) + 1}", name_of(e))
        break
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    children.append(pid)
if len(children) >= LIMIT:
    pwned(f"{len(children)} processes under a limit of {LIMIT}")
for pid in children:
    os.kill(pid, signal.SIGKILL)
reap_all()
# The real thing, for as long as the limit is known to hold.
if not CONTROL:
    subprocess.run(
        ["timeout", "-s", "KILL", "3", "bash", "-c", ":(){ :|:& };:; sleep 2"],
        stderr=subprocess.DEVNULL,
    )
    for _ in range(20):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) not in (1, os.getpid()):
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass
        time.sleep(0.02)
done()
