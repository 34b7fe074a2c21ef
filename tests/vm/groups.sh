#!/bin/bash
# Inside the virtual machine: the groups of a server and its tenants, who is killed first, what a sweep leaves.
. "$(dirname "$0")/../system/lib.sh"

"$PY" -B "$TOP/tests/vm/groups.py" "$SG" "$T/state" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
