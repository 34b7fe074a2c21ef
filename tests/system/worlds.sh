#!/bin/bash
# Worlds: templates that are whole root file systems. See worlds.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/worlds.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

sg world
check "an action is needed" refuses 2 "no action given: name one of import, pull, ls, rm, du, gc"
sg world import --state "$T/nowhere" --name x "$T/steps"
check "a server that is not there" refuses 1 "there is no server in '$T/nowhere'"
sg world import "$T/steps"
check "a template needs a name" refuses 1 "no name given"

finish
