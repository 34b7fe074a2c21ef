#!/bin/bash
# sandglass agents, the verb: see agents.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$T/work"
"$PY" -B "$HERE/agents.py" "$SG" "$T/work" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
