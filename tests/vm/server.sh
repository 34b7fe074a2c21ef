#!/bin/bash
# Inside the virtual machine: the server, through HTTP and through the command line. What depends on
# the kernel: the freezer and the figures of control groups, layers whose ids are the host's.
. "$(dirname "$0")/../system/lib.sh"

"$PY" -B "$TOP/tests/vm/server.py" "$SG" "$T/state" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"
check "no group is left" [ -z "$(find /sys/fs/cgroup/sandglass -mindepth 1 -type d ! -path "*/sandglass/local*")" ]

finish
