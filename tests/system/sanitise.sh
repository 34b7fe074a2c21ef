#!/bin/bash
# What sandboxes say, sanitised by a server: settings, tenants, keys, calls, patterns, the record. See
# sanitise.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/sanitise.py" "$SG" "$T/state" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
