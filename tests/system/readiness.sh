#!/bin/bash
# Whether a sandbox can be had, as a load balancer asks: ready, not ready and why, ready again. See readiness.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/readiness.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
