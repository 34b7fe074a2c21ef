#!/bin/bash
# `sandglass backup` of a server that runs, `sandglass restore` on another, a backup that was damaged, and a server
# whose database is gone. See backup.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

"$PY" -B "$HERE/backup.py" "$SG" "$T" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

sg backup
check "a backup needs a name" refuses 2 "name that of the backup"
sg backup --state "$T/nowhere" "$T/b"
check "a server that is not there" refuses 1 "open the state directory '$T/nowhere'"
sg restore --state "$T/x" "$T"
check "a directory that is no backup" refuses 1 "is not a backup"

finish
