# case: C02
# title: stopping the agent
# users: user root
import time


def try_kill(pid, sig):
    try:
        os.kill(pid, sig)
        denied(f"signal {sig} to {pid}", "ignored")
    except OSError as e:
        denied(f"signal {sig} to {pid}", name_of(e))


for sig in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
    for _ in range(100):
        try_kill(1, sig)
S(424, S(434, 1, 0)[0], signal.SIGSTOP, 0, 0)  # pidfd_send_signal
for sig in range(1, 65):
    if sig != signal.SIGCONT:
        try_kill(1, sig)
time.sleep(0.2)
if status_of(1)["State"].startswith(("T", "t", "Z")):
    pwned(f"the agent's state is {status_of(1)['State']}")
done()
