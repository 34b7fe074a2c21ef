#!/bin/bash
# What the processes of a server have given up: every one has a system-call filter, the root process also capabilities. Which
# calls each filter refuses is tests/unit/test_seccomp.c's.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$SG" serve --state "$T/state" --listen 127.0.0.1:0 --warm-kernels standard >"$T/serve.out" 2>"$T/serve.err" &
SERVER=$!
trap 'kill -KILL $SERVER 2>/dev/null; at_exit' EXIT
until_true grep -q 'export E2B_API_KEY=' "$T/serve.out" || { cat "$T/serve.err"; exit 1; }
eval "$(grep -E '^ *export ' "$T/serve.out")"

# A checkpoint of a Python kernel leaves a stopped copy of it; JavaScript's kernel comes from the agent.
cell()
{
    curl -s -m 30 -H "X-API-Key: $E2B_API_KEY" -H 'Content-Type: application/json' \
        -d "{\"conversationId\":\"c\",\"pathId\":\"p\",\"language\":\"$1\",\"code\":\"$2\",\"messageId\":\"$3\"}" \
        "$E2B_API_URL/v1/tools/run_code"
}
has_checkpoint()
{
    cell python 'x = 1' "m$RANDOM" | grep -q '"checkpointId"'
}
check 'a cell leaves a checkpoint' until_true has_checkpoint
cell javascript 'console.log(1)' last >"$T/javascript"
check 'a cell of another language runs' grep -q '"success":true' "$T/javascript"

family()
{
    local child

    echo "$1"
    # shellcheck disable=SC2013 # one line of words
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        family "$child"
    done
}
field()
{
    sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status" 2>/dev/null
}
unfiltered()
{
    local pid

    for pid in $(family $SERVER); do
        case $(field "$pid" Seccomp) in
        2 | '') ;; # it may have ended since
        *) echo "$pid $(cat "/proc/$pid/comm")" ;;
        esac
    done
}
names=$(for pid in $(family $SERVER); do cat "/proc/$pid/comm"; done 2>/dev/null | sort -u | tr '\n' ' ')
for name in sandglass sandglass-front sg-guard sg-holder sg-spawner sg-agent sg-broker python3; do
    check "there is a $name" test "${names/$name /}" != "$names"
done
check 'every process has a filter' test "$(unfiltered)" = ''
check 'the root process gains nothing by exec' test "$(field $SERVER NoNewPrivs)" = 1

# Of the capabilities, by number: 16 modules, 17 raw I/O, 22 boot, 25 time, 31 file capabilities; 21 is CAP_SYS_ADMIN, which mounts
# need.
caps=$((16#$(field $SERVER CapEff)))
bound=$((16#$(field $SERVER CapBnd)))
for cap in 16 17 22 25 31; do
    check "the root process has not capability $cap, and cannot get it" test $(((caps | bound) >> cap & 1)) = 0
done
check 'it has what mounts need' test $((caps >> 21 & 1)) = 1

kill -TERM $SERVER
wait $SERVER
check 'the server ends in good order' test $? = 0
finish
