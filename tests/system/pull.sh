#!/bin/bash
# Images that are fetched: from a real registry (Debian's docker-registry), from files that a real program wrote (skopeo),
# and from one that lies in every way it can. See pull.py and pull_hostile.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/pull.py" "$(dirname "$SG")/../libexec/sandglass/sandglass-pull" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

finish
