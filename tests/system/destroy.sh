#!/bin/bash
# S4: a sandbox always ends: with its program, with its caller, by signals, and takes all of its
# processes with it.
. "$(dirname "$0")/lib.sh"

gone()
{
    "$PY" "$HERE/host_state.py" check "$T/before" $$
}

# ---- the program ends ------------------------------------------------------------------------------

for user in $USERS; do
    sg run -u "$user" -- sh -c 'setsid sleep 424260 >/dev/null 2>&1 & echo parent'
    check "$user: a child in the background" all gives 0 parent -- has_no_process 424260
    sg run -u "$user" 'import os, sys, time
print("parent", flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3): os.close(fd)
        os.execvp("sleep", ["sleep", "424261"])
    os._exit(0)
time.sleep(0.2)'
    check "$user: a daemon" all gives 0 parent -- has_no_process 424261
    sg run -u "$user" -- sh -c 'setsid sleep 424262 & echo parent; exit 3'
    check "$user: a child that keeps standard output open does not hold up the end" \
        all gives 3 parent -- has_no_process 424262
    sg run -u "$user" -l bash 'for i in $(seq 50); do (trap "" TERM HUP INT; exec sleep 424263) & done; exec 1>&- 2>&-; disown -a'
    check "$user: fifty deaf children" all status_is 0 -- has_no_process 424263
    check "$user: nothing is left after all that" gone
done
sg run 'raise SystemExit(9)'
check "after a failure nothing is left" all status_is 9 -- gone
sg run --timeout 500ms -- sleep 60
check "after a timeout nothing is left" all status_is 124 -- gone
sg run -- no-such-program
check "after a set-up error nothing is left" all status_is 125 -- gone
sg run --memory 16M 'x = bytearray(1 << 30)'
check "after out of memory nothing is left" all status_is 137 -- gone

# ---- the caller is told to end -----------------------------------------------------------------------

for user in $USERS; do
    for pair in TERM:143 INT:130 HUP:129 QUIT:131; do
        start "$SG" run -u "$user" -- sh -c 'echo started; trap "" TERM INT HUP QUIT; setsid sleep 424264 & sleep 424264'
        until_true has_process 424264
        until_true grep -q started "$T/out"
        kill "-${pair%:*}" "$PID"
        join
        check "$user: SIG${pair%:*}: status ${pair#*:}, output kept" gives "${pair#*:}" started
        check "$user: SIG${pair%:*}: the program has ended" has_no_process 424264
        check "$user: SIG${pair%:*}: nothing is left" gone
    done
done
start "$SG" run --json -- sh -c 'echo started; sleep 424266'
until_true has_process 424266
kill -TERM "$PID"
join
check "with --json, SIGTERM still gives one result" all status_is 143 -- err_is '' -- \
    json 'r["exit_code"] == 143 and r["error_message"]'
for moment in 0.01 0.015 0.02 0.03; do
    start "$SG" run -- sleep 424267
    sleep "$moment"
    kill -TERM "$PID"
    join
    check "a signal after $moment s, while it starts" all status_is 143 -- has_no_process 424267
done

# No chance to tidy up: the processes end all the same, and the rest is swept later.
for user in $USERS; do
    start "$SG" run -u "$user" -- sh -c 'setsid sleep 424265 & sleep 424265'
    until_true has_process 424265
    kill -KILL "$PID"
    join
    check "$user: SIGKILL: status 137" status_is 137
    check "$user: SIGKILL: the program ends by itself" until_true has_no_process 424265
done
# The table of id ranges: a run that takes the ranges of the killed ones sweeps them.
swept()
{
    "$SG" run -- true && "$PY" "$HERE/host_state.py" check-now "$T/before" $$
}
check "a later run sweeps what SIGKILL left" until_true swept

# ---- the caller is gone ------------------------------------------------------------------------------

run "$PY" "$HERE/pty_run.py" --hang-up-at started -- "$SG" run -- sh -c 'echo started; trap "" HUP; sleep 424268'
check "a closed terminal: status 129" status_is 129
check "... the program has ended" has_no_process 424268
run "$PY" "$HERE/pty_run.py" --hang-up-at started -- "$SG" run --tty -- sh -c 'trap "" HUP; echo started; sleep 424269'
check "a closed terminal with --tty: the program has ended" has_no_process 424269
check "a closed terminal leaves nothing" gone

# Its caller is killed: the pipe to it breaks with the next output.
"$SG" run -- sh -c 'while :; do echo tick; sleep 0.1; done' 2>"$T/err" | head -n 2 >"$T/out"
STATUS=${PIPESTATUS[0]}
check "nobody reads any more: it ends" gives 141 $'tick\ntick'
check "... and leaves nothing" gone

finish
