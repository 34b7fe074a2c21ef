#!/bin/bash
# A server with few descriptors to have: many tenants, one after the other; and what happens when there are none.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/descriptors.py" "$SG" "$T/state" 600 40 1024 >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
