#!/bin/bash
# The way from a sandbox to the guard, with a front and a guard that the test plays itself: see egress_path.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

while read -r name title; do
    check "$title" "$PY" "$HERE/egress_path.py" "$name"
done < <("$PY" "$HERE/egress_path.py" list)

finish
