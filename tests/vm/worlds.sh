#!/bin/bash
# Inside the virtual machine: worlds, disks and volumes, on a kernel that needs other mounts for them.
. "$(dirname "$0")/../system/lib.sh"

"$PY" -B "$TOP/tests/vm/worlds.py" "$SG" "$T/state" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
