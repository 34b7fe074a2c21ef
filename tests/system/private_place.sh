#!/bin/bash
# Programs that their users cannot reach: a clone below a folder of mode 700, as /root and many homes are,
# and files of mode 700, as umask 077 makes them. And programs that cannot be started at all.
. "$(dirname "$0")/lib.sh"

P=$T/private
mkdir -m 700 "$P"
cp -r "$(dirname "$SG")" "$(dirname "$SG")/../libexec" "$P/"
SG=$P/bin/sandglass
: >"$T/conf"
# A question for a name that is not allowed: the guard says no by itself.
ASK='import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect(("192.0.2.53", 53))
s.send(b"id\1\0\0\1\0\0\0\0\0\0\1b\4test\0\0\1\0\1")
print(s.recv(512)[:2])'

for mode in 755 700; do
    find "$P" -type f -exec chmod "$mode" {} +
    "$PY" -B "$HERE/private_place.py" "$SG" "$T/state-$mode" >"$T/steps" 2>"$T/trouble"
    RESULT=$?
    take_steps "$T/steps"
    check "mode $mode: every step was taken" test "$RESULT" -eq 0
    [ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"
    for user in $USERS; do
        sg run --approve -u "$user" --network a.test "$ASK"
        check "mode $mode, $user: a run with a network has a guard, which answers" gives 0 "b'id'"
    done
done

# ---- what cannot be started ------------------------------------------------------------------------

serve()
{
    run timeout 20 "$SG" serve --config "$T/conf" --listen 127.0.0.1:0 --state "$T/state" --log-level error "$@"
}

printf '\177ELF and no more' >"$P/broken"
chmod 755 "$P/broken"
serve --front-program "$P/broken"
check "a front that is no program: which, and why, once" \
    refuses 78 "program '$P/broken' of the front cannot be started: Exec format error"
cp /bin/false "$P/plain"
chmod 644 "$P/plain"
serve --front-program "$P/plain"
check "one that may not be executed" refuses 78 "program '$P/plain'.*Permission denied"
serve --front-program "$P/missing"
check "one that is not there" refuses 78 "program '$P/missing'.*install all of it.*No such file"

start "$SG" serve --config "$T/conf" --listen 127.0.0.1:0 --state "$T/state" --guard-program "$P/broken"
until_true grep -q 'Serving on' "$T/out"
check "without a guard it serves" grep -q 'Serving on' "$T/out"
sleep 1 # in which it is tried again
kill -TERM "$PID"
join
check "and says once why there is none" \
    [ "$(grep -c "sandboxes have no network for now: .*'$P/broken' of the guard cannot be started" "$T/err") $(grep -c "$P/broken" "$T/err")" = "1 1" ]

finish
