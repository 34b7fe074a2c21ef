#!/bin/bash
# The machine's memory: who may have how much, what is let go of when it is short, who is told what. See budget.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/budget.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

sg serve --state "$T/x" --machine-memory 1M
check "a budget that is too small" refuses 2 "machine_memory and tenant_memory are 0, or 64M at least"

finish
