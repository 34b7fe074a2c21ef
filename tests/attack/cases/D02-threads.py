# case: D02
# title: thread bomb
# users: user root
# options: --pids 64 --timeout 30s
# expect-limit: pids
# control: cgroup,rlimits
# heavy: yes
import threading

LIMIT, MOST = 64, 200
stop = threading.Event()
threading.stack_size(64 * 1024)
threads = []
try:
    while len(threads) < MOST:
        thread = threading.Thread(target=stop.wait)
        thread.start()
        threads.append(thread)
except RuntimeError as e:
    denied(f"thread {len(threads) + 1}", e)
if len(threads) >= LIMIT:
    pwned(f"{len(threads)} threads under a limit of {LIMIT}")
stop.set()
for thread in threads:
    thread.join()
done()
