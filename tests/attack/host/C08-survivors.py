"""C08: processes that hide from their time limit."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, marked, poll, script  # noqa: E402
from program import run  # noqa: E402

MARK = f"survivor-{os.urandom(6).hex()}"
HIDE = """
import os, signal, subprocess, time

LOOP = "trap '' TERM HUP INT QUIT; while :; do date >> /tmp/x; sleep 0.2; done"
for i in range(25):
    subprocess.Popen(["setsid", "nohup", "sh", "-c", LOOP, "MARK"], stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
for i in range(25):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for sig in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(sig, signal.SIG_IGN)
            os.closerange(0, 100)
            os.execvp("sh", ["sh", "-c", LOOP, "MARK"])
        os._exit(0)
print("HIDDEN", flush=True)
""".replace(
    "MARK", MARK
)
TIMEOUT_S = 2

for user in ("user", "root"):
    with script(HIDE + "time.sleep(600)\n") as f:
        r = run("--user", user, "--timeout", f"{TIMEOUT_S}s", "-f", f.name)
    wrong = [] if r.status == 124 and "HIDDEN" in r.out else [r]
    if r.seconds > TIMEOUT_S + 8:
        wrong.append(f"it took {r.seconds:.1f} s")
    if not poll(lambda: not marked(MARK), 2):
        wrong.append(f"still there: {marked(MARK)}")
    check(f"C08 nobody survives the time limit ({user})", wrong, f"{r.seconds:.1f} s")
    with script(HIDE) as f:
        r = run("--user", user, "--timeout", "30s", "-f", f.name)
    wrong = [] if r.status == 0 and r.seconds < 25 else [r]
    if not poll(lambda: not marked(MARK), 2):
        wrong.append(f"still there: {marked(MARK)}")
    check(f"C08 nobody survives the end of the program ({user})", wrong, f"{r.seconds:.1f} s")
finish()
