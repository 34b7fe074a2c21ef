#!/bin/bash
# --tty: a pseudo-terminal inside, of the size of the caller's, keys included.
. "$(dirname "$0")/lib.sh"

on_tty()
{
    run "$PY" "$HERE/pty_run.py" "$@"
}

shown()
{
    [ "$(tr -d '\r' <"$T/out")" = "$1" ]
}

for user in $USERS; do
    on_tty --size 33x101 -- "$SG" run -u "$user" --tty -- sh -c 'test -t 0 && test -t 1 && test -t 2 && stty size && tty'
    check "$user: --tty is a terminal of the caller's size" all status_is 0 -- shown $'33 101\n/dev/pts/0'
    on_tty -- "$SG" run -u "$user" -- sh -c 'test -t 0; echo $?; test -t 1; echo $?'
    check "$user: without --tty there is none" all status_is 0 -- shown $'1\n1'
    on_tty --type ready '\x03' -- "$SG" run -u "$user" --tty -- sh -c 'trap "echo interrupted; exit 7" INT; echo ready; sleep 60 & wait'
    check "$user: ^C goes to the program" all status_is 7 -- out_has interrupted
    on_tty --type 'name?' 'sandglass\r' -- "$SG" run -u "$user" --tty -- sh -c 'printf "name? "; read -r name; echo "hello $name"'
    check "$user: a dialogue" all status_is 0 -- out_has '^hello sandglass.?$'
    on_tty --type "$([ "$user" = root ] && echo '# ' || echo '$ ')" 'echo $((6 * 7)) $(id -un)\r' --type "42 $user" 'exit 5\r' -- "$SG" run -u "$user" -t -- bash --norc
    check "$user: an interactive shell" status_is 5
    on_tty --type ready '\x04' -- "$SG" run -u "$user" --tty -- sh -c 'echo ready; cat; echo end'
    check "$user: ^D is the end of input" all status_is 0 -- out_has '^end'
    on_tty --size 10x20 -- "$SG" run -u "$user" --tty 'import os; print(os.get_terminal_size()[:], os.isatty(0))'
    check "$user: for code too" all status_is 0 -- out_has '^\(20, 10\) True'
    on_tty -- "$SG" run -u "$user" --tty -- sh -c 'exit 42'
    check "$user: the exit status" status_is 42
done

TERM=vt220 on_tty -- "$SG" run --tty -- printenv TERM
check "TERM is passed on" shown vt220
TERM=vt220 on_tty -- "$SG" run --tty --env TERM=dumb -- printenv TERM
check "... unless --env says otherwise" shown dumb
on_tty -- "$SG" run --tty -- sh -c 'echo out; echo err >&2'
check "standard error is on the same stream" shown $'out\nerr'
SAME='a=$(stty -g); "$@"; b=$(stty -g); [ "$a" = "$b" ] && echo same'
on_tty -- sh -c "$SAME" sh "$SG" run --tty -- true
check "the caller's terminal is itself again afterwards" shown same
on_tty -- sh -c "$SAME" sh "$SG" run --tty --timeout 500ms -- sleep 60
check "... after a timeout too" all out_has 'time limit of 500 ms' -- out_has '^same'
on_tty -- sh -c "$SAME" sh "$SG" run --tty -- no-such-program
check "... after an error too" all out_has 'no-such-program' -- out_has '^same'
on_tty --type ready '\x1a' --type ready '\x03' -- "$SG" run --tty --timeout 3s -- sh -c 'trap "" TSTP; trap "exit 9" INT; echo ready; sleep 0.5; echo ready; sleep 60 & wait'
check "^Z does not stop the caller" status_is 9

# Without a terminal of one's own.
sg run --tty -- sh -c 'test -t 1 && stty size'
check "--tty without a terminal outside: 24 by 80" all status_is 0 -- shown "24 80"
run "$SG" run --tty -- sh -c 'read -r x; echo "got $x"' <<<"typed"
check "--tty with piped input" all status_is 0 -- out_has '^got typed'

# Colours: for people only.
on_tty -- "$SG" run -- no-such-program
check "an error on a terminal is coloured" grep -q $'\033\\[1;31msandglass:' "$T/out"
NO_COLOR=1 on_tty -- "$SG" run -- no-such-program
check "... not with NO_COLOR" all out_has 'sandglass: cannot run' -- is_not grep -q $'\033' "$T/out"
on_tty -- "$SG" doctor
check "doctor is coloured on a terminal" grep -q $'\033' "$T/out"

# sudo on a terminal.
on_tty --type '#' 'id -un; exit 3\r' -- "$SG" run --tty -- sudo -s
check "sudo -s on a terminal" all status_is 3 -- out_has 'root.?$'
on_tty --type ready '\x03' -- "$SG" run --tty -- sudo sh -c 'trap "echo interrupted; exit 7" INT; echo ready; sleep 60 & wait'
check "^C through sudo" all status_is 7 -- out_has interrupted

finish
