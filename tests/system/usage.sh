#!/bin/bash
# What sandboxes use, counted for the tenant, the day and the context: see usage.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/usage.py" "$SG" "$T/state" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
