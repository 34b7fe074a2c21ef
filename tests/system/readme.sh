#!/bin/bash
# README.md as its reader would try it: every command and example, and what is said to come of it. See readme.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

for modules in node e2e; do
    "$TOP/tools/npm-modules" $modules >"$T/npm" 2>&1 || sed 's/^/# /' "$T/npm"
done
"$PY" -B "$HERE/readme.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
