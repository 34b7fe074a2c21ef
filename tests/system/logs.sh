#!/bin/bash
# What a server writes down: that every error answer has its line, whose doing it was, that no secret is in it, how
# much there may be, and `sandglass logs --server`. See logs.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/logs.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

sg logs --server --state "$T/nowhere"
check "a server that is not there" refuses 1 "there is no log in '$T/nowhere/log'"
sg logs --request abc k3j00000000000000000
check "--request is about a server" refuses 2 "go with --server"
sg logs --server k3j00000000000000000
check "--server takes no sandbox" refuses 2 "use --sandbox"
sg logs --server --layer kernel
check "a layer that there is not" refuses 2 "--layer 'kernel' is not code, agent, sandbox, infrastructure or client"
sg logs --server --lines 0
check "no line at all" refuses 2 "--lines"

finish
