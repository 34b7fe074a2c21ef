#!/bin/bash
# S3, S8: a limit that is reached is named, what was written before is kept, and neither the host nor
# a neighbour notices.
. "$(dirname "$0")/lib.sh"

limit_is()
{
    json "r['limit'] == '$1' and r['error_message']"
}

# ---- memory --------------------------------------------------------------------------------------

HOG='print("before", flush=True)
x = bytearray(300 << 20)
print("after")'
for user in $USERS; do
    sg run -u "$user" --memory 64M "$HOG"
    check "$user: out of memory: killed, output kept, limit told" \
        remarks 137 before "memory limit of 64 MiB reached: .*--memory"
    check "$user: ... in one line" one_line
    sg run --json -u "$user" --memory 64M "$HOG"
    check "$user: out of memory in JSON" all status_is 137 -- \
        json 'r["limit"] == "memory" and r["status"] == "execution_error" and r["exit_code"] == 137 and r["stdout"] == "before\n" and "64 MiB" in r["error_message"]'
    sg run --json -u "$user" --memory 64M -- sh -c 'python3 -c "x = bytearray(300 << 20)"; echo "child $?"; exit 6'
    check "$user: only a child dies of it: the program's own status, and the limit" all status_is 6 -- \
        json 'r["limit"] == "memory" and r["stdout"] == "child 137\n" and r["exit_code"] == 6'
    sg run -u "$user" --memory 512M "$HOG"
    check "$user: the same with more memory" gives 0 $'before\nafter'
    sg run --json -u "$user" --memory 64M --disk 512M 'f = open("/tmp/f", "wb")
print("before", flush=True)
while True:
    f.write(bytes(1 << 20))'
    check "$user: files are memory too" all limit_is memory -- json 'r["stdout"] == "before\n"'
    sg run --json -u "$user" --memory 64M --disk 512M 'f = open("/dev/shm/f", "wb")
while True:
    f.write(bytes(1 << 20))'
    check "$user: shared memory is memory too" limit_is memory
done

# ---- processes -----------------------------------------------------------------------------------

FORKS='import os, sys, time
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        n += 1
except BlockingIOError:
    print("refused after", n)
sys.exit(4)'
THREADS='import threading, time, sys
n = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
        n += 1
except RuntimeError:
    print("refused after", n)
sys.exit(4)'
for user in $USERS; do
    sg run -u "$user" --pids 20 "$FORKS"
    check "$user: too many processes: refused, told, own status kept" \
        remarks 4 "refused after 19" "limit of 20 processes reached.*--pids"
    sg run --json -u "$user" --pids 20 "$FORKS"
    check "$user: too many processes in JSON" all status_is 4 -- \
        json 'r["limit"] == "pids" and r["status"] == "execution_error" and "20" in r["error_message"] and r["stdout"] == "refused after 19\n"'
    sg run --json -u "$user" --pids 20 "$THREADS"
    check "$user: threads count as well" all limit_is pids -- json 'r["stdout"] == "refused after 19\n"'
    sg run -u "$user" --pids 1 -- echo alone
    check "$user: --pids 1 is enough for one" gives 0 alone
    sg run --json -u "$user" --pids 60 --timeout 2s -l bash 'echo before; b() { b | b & }; b; while :; do wait; sleep 0.1; done'
    check "$user: a fork bomb burns out and is named" \
        json 'r["stdout"] == "before\n" and r["limit"] in ("pids", "time") and r["exit_code"] != 0'
done
sg run --pids 100 "$FORKS"
check "--pids raises it" remarks 4 "refused after 99" "limit of 100 processes"

# ---- disk ----------------------------------------------------------------------------------------

for user in $USERS; do
    for dir in '' /tmp /var/tmp /dev/shm; do
        FILL="import os, sys
print('before', flush=True)
try:
    f = open(os.path.join('$dir' or os.environ['HOME'], 'f'), 'wb', buffering=0)
    while True:
        f.write(bytes(1 << 16))
except OSError as e:
    print(e.strerror)
sys.exit(5)"
        sg run -u "$user" --disk 8M "$FILL"
        check "$user: disk full in ${dir:-the home directory}: told, own status kept" \
            remarks 5 $'before\nNo space left on device' "disk limit of 8 MiB reached.*--disk"
    done
    sg run --json -u "$user" --disk 8M "$FILL"
    check "$user: disk full in JSON" all status_is 5 -- \
        json 'r["limit"] == "disk" and r["status"] == "execution_error" and "8 MiB" in r["error_message"] and r["resource_usage"]["disk_bytes"] <= 8 << 20'
    sg run --json -u "$user" --disk 8M -- sh -c 'dd if=/dev/zero of=a bs=1M count=5 && dd if=/dev/zero of=/tmp/b bs=1M count=5'
    check "$user: all places share one limit" all limit_is disk -- json '"No space left" in r["stderr"]'
    sg run --json -u "$user" --disk 8M 'import os
n = 0
try:
    while True:
        os.close(os.open(f"/tmp/{n}", os.O_CREAT | os.O_WRONLY)); n += 1
except OSError as e:
    print(e.strerror, 3000 < n <= 4096)'
    check "$user: too many files" all status_is 0 -- \
        json 'r["limit"] == "disk" and r["stdout"] == "No space left on device True\n" and r["status"] == "success"'
    sg run --json -u "$user" --disk 8M -- dd if=/dev/zero of=big bs=1M seek=100 count=1
    check "$user: one file larger than the disk" all limit_is disk -- json 'r["exit_code"] != 0'
    sg run -u "$user" --disk 64M -- sh -c 'dd if=/dev/zero of=a bs=1M count=40 2>/dev/null && stat -c %s a'
    check "$user: --disk raises it" gives 0 41943040
done
sg run --json -u root --disk 8M -- dd if=/dev/zero of=/usr/local/bin/big bs=1M count=100
check "/usr/local shares the limit" limit_is disk

# ---- output --------------------------------------------------------------------------------------

TALKS='import sys
for i in range(1000):
    print(f"{i:07d}", flush=True)
sys.stderr.write("e" * 500)
sys.exit(3)'
for user in $USERS; do
    sg run -u "$user" --output-limit 1K "$TALKS"
    check "$user: output cut: own status, a remark" all status_is 3 -- err_has "^e{500}"
    check "$user: ... told" err_has "sandglass: output limit of 1 KiB reached: .*--output-limit"
    check "$user: ... exactly the first bytes are kept" \
        [ "$(wc -c <"$T/out") $(tail -n 1 "$T/out")" = "1024 0000127" ]
    sg run --json -u "$user" --output-limit 1K "$TALKS"
    check "$user: output cut in JSON" all status_is 3 -- \
        json 'r["limit"] == "output" and len(r["stdout"]) == 1024 and r["stderr"] == "e" * 500 and r["resource_usage"]["stdout_bytes"] == 8000 and "1 KiB" in r["error_message"]'
    sg run --json -u "$user" --output-limit 10 -- sh -c 'head -c 30000000 /dev/zero >&2; echo done'
    check "$user: each stream has its own; a flood goes on to its end" all status_is 0 -- \
        json 'r["limit"] == "output" and r["stdout"] == "done\n" and len(r["stderr"]) == 10 and r["resource_usage"]["stderr_bytes"] == 30000000 and r["status"] == "success"'
done
sg run -- head -c 20000000 /dev/zero
check "8 MiB are kept by default" all status_is 0 -- [ "$(wc -c <"$T/out")" -eq 8388608 ]
sg run --output-limit 20M -- head -c 20000000 /dev/zero
check "--output-limit raises it" all status_is 0 -- err_is '' -- [ "$(wc -c <"$T/out")" -eq 20000000 ]
sg run --output-limit 5 -- printf 12345
check "output of exactly the limit is not cut" gives 0 12345
sg run --json --timeout 2s -- yes
check "an endless flood ends with its time" all status_is 124 -- \
    json 'r["limit"] == "time" and len(r["stdout"]) == 8 << 20 and r["resource_usage"]["stdout_bytes"] > 8 << 20'

# ---- time ----------------------------------------------------------------------------------------

for user in $USERS; do
    sg run -u "$user" --timeout 600ms 'import time; print("before", flush=True); time.sleep(60)'
    check "$user: timeout: 124, output kept, told" remarks 124 before "time limit of 600 ms reached.*--timeout"
    check "$user: ... in one line" one_line
    sg run -u "$user" --timeout 600ms -l bash 'trap "" TERM INT HUP QUIT; echo before; while :; do :; done'
    check "$user: no signal handler holds it up" remarks 124 before "time limit"
    sg run -u "$user" --timeout 600ms -- sh -c 'echo before; kill -STOP $$'
    check "$user: nor does stopping" remarks 124 before "time limit"
    sg run -u "$user" --timeout 600ms -- sh -c 'setsid sleep 424241 & echo before; sleep 60'
    check "$user: background processes end with it" all remarks 124 before "time limit" -- has_no_process 424241
done
run "$SG" run --timeout 600ms -- cat < <(sleep 30)
check "waiting for input ends too" remarks 124 '' "time limit"
"$SG" run --timeout 1s -- yes 2>"$T/err" | { sleep 3; cat >/dev/null; }
STATUS=${PIPESTATUS[0]}
: >"$T/out"
check "a reader that does not read cannot hold it up" all err_has "time limit|^$" -- status_is 124

# ---- processor -----------------------------------------------------------------------------------

sg run --cpus 0.2 'import time
end = time.monotonic() + 1.5
while time.monotonic() < end:
    pass
print(time.process_time() < 0.8)'
check "--cpus slows down" gives 0 True

# ---- the neighbour and the host ------------------------------------------------------------------

# While everything is attacked at once, a neighbour does its own work inside small limits of its own.
NEIGHBOUR='import hashlib, os, subprocess
h = b""
for i in range(150):
    h = hashlib.sha256(h + bytes(200000)).digest()
    open("/tmp/n", "wb").write(h)
    if i % 15 == 0:
        assert subprocess.run(["true"]).returncode == 0
print(h.hex())'
sg run "$NEIGHBOUR"
alone=$(cat "$T/out")
check "the neighbour alone" all status_is 0 -- out_has '^[0-9a-f]{64}$'
bombs=()
for user in $USERS; do
    for bomb in ':() { : | : & }; :; sleep 60' \
        'python3 -c "
x = []
while True: x.append(bytearray(1 << 20))"; sleep 60' \
        'dd if=/dev/zero of=/tmp/f bs=1M; sleep 60' \
        'yes'; do
        "$SG" run -u "$user" --timeout 4s --memory 64M --disk 32M --pids 64 -l bash "$bomb" >/dev/null 2>&1 &
        bombs+=($!)
    done
done
sg run --memory 64M --disk 8M --pids 16 "$NEIGHBOUR"
check "eight bombs around it: the neighbour's result is the same" gives 0 "$alone"
check "the host starts processes and writes files as before" \
    sh -c 'for i in 1 2 3 4 5 6 7 8; do /bin/true || exit 1; done; head -c 1000000 /dev/zero > "$T/host" && rm "$T/host"'
sg run --json 'print("late")'
check "a new sandbox starts as before" json 'r["stdout"] == "late\n" and r["limit"] is None'
ended=0
for pid in "${bombs[@]}"; do
    wait "$pid"
    case $? in 124 | 137 | 1) ended=$((ended + 1)) ;; esac
done
check "every bomb ended by its limit" [ "$ended" -eq 8 ]

finish
