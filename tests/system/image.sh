#!/bin/bash
# Worlds made of image layers, mounted, and compared with what GNU tar makes of the same layers: see image.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/image.py" "$(dirname "$SG")/../libexec/sandglass/sandglass-image" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
