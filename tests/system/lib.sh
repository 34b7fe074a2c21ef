# shellcheck shell=bash
# What every system test is made of. A test sources this file, runs the real program with `sg`, states
# what a user must see with `check`, and ends with `finish`, which also makes sure that the host is as
# it was before. Output is TAP, with the plan at the end.
#
#     sg run 'print(1+1)'
#     check "code given as an argument runs" gives 0 2

set -u

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
HERE=$TOP/tests/system
SG=$(realpath "${SANDGLASS:-$TOP/build/bin/sandglass}")
PY=/usr/bin/python3
T=$(mktemp -d /tmp/sandglass-test.XXXXXX)
USERS="user root"
TESTS=0
FAILED=0
STATUS=
export TOP HERE SG PY T USERS LC_ALL=C.UTF-8

chmod 755 "$T"
# Nothing of the caller's surroundings decides a test: neither its standard input nor its policy.
exec </dev/null
unset NO_COLOR
# On disk, each server would take the room for the disks of all its sandboxes at its start.
export SANDGLASS_WORLDS_DISK=0

# Copies the scripts to $REACHABLE, for programs that a user without rights is to run: a clone may be in a folder that
# is root's alone, as /root.
REACHABLE=$T/reachable
reachable()
{
    mkdir "$REACHABLE" && cp "$HERE"/*.py "$REACHABLE"
}

at_exit()
{
    local status=$?

    [ "$BASHPID" -eq $$ ] || return # a background job that a signal met before it ran its program
    # A test that ended before its plan is a broken one, never a short one.
    [ -e "$T/finished" ] || echo "Bail out! ${0##*/} ended early with status $status"
    rm -rf "$T"
}
trap at_exit EXIT

if [ ! -x "$SG" ]; then
    echo "Bail out! no program at $SG: build it first, or set SANDGLASS"
    exit 1
fi
"$PY" "$HERE/host_state.py" save "$T/before" $$ || exit 1

# ---- running -------------------------------------------------------------------------------------

# Runs a command and keeps what it wrote in $T/out and $T/err and its exit status in $STATUS.
run()
{
    "$@" >"$T/out" 2>"$T/err"
    STATUS=$?
}

sg()
{
    run "$SG" "$@"
}

# Starts a command in the background with the signals that a terminal would give it (the shell ignores
# some for background jobs). Its pid is in $PID; `join` gives its status.
start()
{
    env --default-signal=INT,QUIT "$@" >"$T/out" 2>"$T/err" &
    PID=$!
}

join()
{
    wait "$PID" 2>/dev/null
    STATUS=$?
}

# Waits, up to 20 s, until a command succeeds.
until_true()
{
    local i

    for ((i = 0; i < 400; i++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    return 1
}

# ---- stating -------------------------------------------------------------------------------------

show_last()
{
    echo "# exit status $STATUS"
    head -c 2000 "$T/out" 2>/dev/null | tr -d '\000' | sed 's/^/# stdout: /'
    [ -s "$T/out" ] && echo
    head -c 2000 "$T/err" 2>/dev/null | tr -d '\000' | sed 's/^/# stderr: /'
    [ -s "$T/err" ] && echo
}

# check NAME COMMAND...: the command must succeed.
check()
{
    local name=$1 told

    shift
    TESTS=$((TESTS + 1))
    if told=$("$@" 2>&1); then
        echo "ok $TESTS - $name"
        return 0
    fi
    FAILED=$((FAILED + 1))
    echo "not ok $TESTS - $name"
    [ -n "$told" ] && printf '%s\n' "$told" | head -40 | sed 's/^/# /'
    echo "# expected: $*" | head -5
    show_last
    return 1
}

# Takes over the checks of a program that prints TAP lines of its own, numbered anew.
take_steps()
{
    local line

    while IFS= read -r line; do
        case $line in
        ok\ * | "not ok "*)
            TESTS=$((TESTS + 1))
            [ "${line%% *}" = ok ] || FAILED=$((FAILED + 1))
            echo "${line%%ok *}ok $TESTS - ${line#* - }"
            ;;
        *) echo "# ${line#"# "}" ;;
        esac
    done <"$1"
}

finish()
{
    check "nothing is left behind" "$PY" "$HERE/host_state.py" check "$T/before" $$
    echo "1..$TESTS"
    : >"$T/finished"
    [ "$FAILED" -eq 0 ]
    exit
}

# Conditions on what was run last. Texts are compared without the last line feed.
status_is()
{
    [ "$STATUS" -eq "$1" ]
}

out_is()
{
    [ "$(tr -d '\000' <"$T/out")" = "$1" ]
}

err_is()
{
    [ "$(tr -d '\000' <"$T/err")" = "$1" ]
}

out_has()
{
    grep -qE -- "$1" "$T/out"
}

err_has()
{
    grep -qE -- "$1" "$T/err"
}

# The program's own status and output, and not a word from sandglass.
gives()
{
    status_is "$1" && out_is "$2" && err_is ''
}

# One line on what is wrong, with this status, and nothing on standard output.
refuses()
{
    status_is "$1" && out_is '' && one_line && err_has "^sandglass: .*($2)"
}

# Standard error is exactly one whole line of sandglass.
one_line()
{
    [ "$(wc -l <"$T/err")" -eq 1 ] && [ "$(grep -c '' "$T/err")" -eq 1 ] && err_has '^sandglass: '
}

# Status, output, and a last line of remark by sandglass.
remarks()
{
    status_is "$1" && out_is "$2" && tail -n 1 "$T/err" | grep -qE -- "^sandglass: .*($3)"
}

# A Python expression about the object `r` on standard output.
json()
{
    "$PY" - "$T/out" "$1" <<'PYTHON'
import json, sys

r = json.load(open(sys.argv[1]))
value = eval(sys.argv[2])
if not value:
    print(f"{sys.argv[2]} is {value!r} in {str(r)[:1500]}")
sys.exit(not value)
PYTHON
}

is_not()
{
    ! "$@"
}

# all CONDITION... -- CONDITION... -- ...: each is a command of its own.
all()
{
    local one=() word

    for word in "$@" --; do
        if [ "$word" = -- ]; then
            "${one[@]}" || { echo "not so: ${one[*]}"; return 1; }
            one=()
        else
            one+=("$word")
        fi
    done
}

# ---- looking at sandboxes from outside -----------------------------------------------------------

# Host pids of processes whose command line has exactly this argument, e.g. "sleep 12345"'s 12345.
host_pids()
{
    "$PY" - "$1" <<'PYTHON'
import os, sys

for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        argv = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        uid = os.stat(f"/proc/{pid}").st_uid
        inside = int(open(f"/proc/{pid}/status").read().split("\nUid:")[1].split()[0]) >= 0x10000000
    except (OSError, IndexError):
        continue
    if inside and sys.argv[1].encode() in argv[1:]:
        print(pid)
PYTHON
}

has_process()
{
    [ -n "$(host_pids "$1")" ]
}

has_no_process()
{
    [ -z "$(host_pids "$1")" ]
}

# As an ordinary user of the host.
as_nobody()
{
    setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"
}
