#!/bin/bash
# What a server tells at its next start of what a stop, a crash or the death of its HTTP process has ended; and what it
# forgets in time. See restart.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/restart.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
