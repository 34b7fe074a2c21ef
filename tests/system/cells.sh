#!/bin/bash
# E1: code that is given to `sandglass run` behaves as a cell: tests/cells has it, and what must come of it.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/cells.py" "$SG" python javascript typescript bash >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every cell was run" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
