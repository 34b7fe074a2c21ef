#!/bin/bash
# `sandglass volume`: a volume as a tar and back, archives that are hostile or broken, and what the server says to both. See
# volumes.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/volumes.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
