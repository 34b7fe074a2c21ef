#!/bin/bash
# Whose doing it is that a sandbox ends: one that ends because the server lost what it hangs on, or because the machine was full,
# is the infrastructure's in logs, events, answers and counters. See blame.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/blame.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
