# case: C01
# title: killing everything in sight
# users: user root
# The result of this run reaches the host through the agent: that it arrives is the proof.
import time

for _ in range(5):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
for sig in (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGPIPE,
    signal.SIGKILL,
):
    try:
        os.kill(1, sig)
        denied(f"signal {sig} to the agent", "ignored")
    except OSError as e:
        denied(f"signal {sig} to the agent", name_of(e))
os.kill(-1, signal.SIGKILL)  # every process that we may signal, but not ourselves and not pid 1
reap_all()
if open("/proc/1/comm").read().strip() != "sg-agent":
    pwned("the agent is gone")
done()
