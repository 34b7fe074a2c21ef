"""C09: the deadline does not listen to the sandbox's clocks and signals."""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, script  # noqa: E402
from program import run  # noqa: E402

TIMEOUT_S = 2
TRICKS = {
    "stops everything it can": """
if os.fork() == 0:
    time.sleep(600)
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)""",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "sleeps for 30 years": "time.sleep(1e9)",
    "sets the clock back": "subprocess.run(['date', '-s', f'@{int(time.time())}'])\ntime.sleep(60)",
    "stops and continues its children": """
for i in range(20):
    if os.fork() == 0:
        while True: pass
children = [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]
while True:
    for pid in children:
        for sig in (signal.SIGSTOP, signal.SIGCONT):
            try: os.kill(pid, sig)
            except OSError: pass""",
    "ignores all signals": """
for sig in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(sig, signal.SIG_IGN)
while True: time.sleep(1)""",
    "closes its output": "os.closerange(0, 100)\ntime.sleep(600)",
}
HEAD = "import os, signal, subprocess, time\n"


def complaints(user, code):
    with script(HEAD + code) as f:
        r = run("--user", user, "--timeout", f"{TIMEOUT_S}s", "-f", f.name, timeout=60)
    return [] if r.status == 124 and r.seconds < TIMEOUT_S + 8 else [f"{user}: {r}"]


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for what, code in TRICKS.items():
        both = pool.map(complaints, ("user", "root"), (code, code))
        check(f"C09 a program that {what} ends in time", sum(both, []))
finish()
