#!/bin/bash
# Twenty at once: all get their own sandbox and their own result, and all of it goes away again.
. "$(dirname "$0")/lib.sh"

N=20
mkdir "$T/gate"
PROGRAM='import os, sys, time
i = int(sys.argv[1].split("-")[1])
open("/tmp/own", "w").write(str(i))
while not os.path.exists("/gate/open"):
    time.sleep(0.05)
print(i * i, open("/tmp/own").read(), len(os.listdir("/tmp")), os.uname().nodename, sys.stdin.read().strip())
sys.exit(i)'

# The first host id of the sandbox of each program "once-N", one a line; fails until all are there.
first_ids()
{
    local i

    for ((i = 0; i < N; i++)); do
        has_process "once-$i" || return
        echo $(($(awk '/^Uid:/ { print $2 }' "/proc/$(host_pids "once-$i")/status") / 65536 * 65536))
    done >"$T/ids"
}

for user in $USERS; do
    rm -f "$T/gate/open"
    pids=()
    for ((i = 0; i < N; i++)); do
        "$SG" run -u "$user" --memory 128M --hostname "sandbox-$i" -v "$T/gate:/gate" -- \
            python3 -c "$PROGRAM" "once-$i" <<<"line $i" >"$T/out.$i" 2>"$T/err.$i" &
        pids+=($!)
    done
    check "$user: $N run at the same time" until_true first_ids
    check "$user: each in a range of ids of its own" \
        [ "$(sort -un "$T/ids" | wc -l) $(awk '$1 < 268435456' "$T/ids" | wc -l)" = "$N 0" ]
    touch "$T/gate/open"
    right=0
    for ((i = 0; i < N; i++)); do
        wait "${pids[i]}"
        if [ "$? $(cat "$T/out.$i" "$T/err.$i")" = "$i $((i * i)) $i 1 sandbox-$i line $i" ]; then
            right=$((right + 1))
        else
            echo "# $i: $(cat "$T/out.$i" "$T/err.$i")"
        fi
    done
    check "$user: $N right results" [ "$right" -eq $N ]
done

# All kinds of ends at once.
pids=()
for ((i = 0; i < 3; i++)); do
    for program in 'print(1)' 'raise SystemExit(3)' 'import time; time.sleep(60)' 'x = bytearray(1 << 30)'; do
        "$SG" run --timeout 3s --memory 64M "$program" >/dev/null 2>&1 &
        pids+=($!)
    done
    "$SG" run -- no-such-program >/dev/null 2>&1 &
    pids+=($!)
    "$SG" run -v /etc:/x -- true >/dev/null 2>&1 &
    pids+=($!)
done
ends=
for pid in "${pids[@]}"; do
    wait "$pid"
    ends+="$? "
done
check "good and bad ends at once do not mix" [ "$ends" = "$(printf '0 3 124 137 125 125 %.0s' 1 2 3)" ]

# One after the other as fast as it goes: nothing fails, nothing grows.
failed=0
for ((i = 0; i < 150; i++)); do
    "$SG" run -- true >/dev/null 2>>"$T/err.many" || failed=$((failed + 1))
done
check "150 runs in a row, none fails" all [ "$failed" -eq 0 ] -- [ ! -s "$T/err.many" ]

finish
