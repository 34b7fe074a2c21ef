#!/bin/bash
# `sandglass doctor`: what this kernel and host offer, what is missing, how to fix it.
. "$(dirname "$0")/lib.sh"

sg doctor
check "on a host that can: status 0, nothing on standard error" all status_is 0 -- err_is ''
for group in Host Namespaces "File systems" Processes "Control groups" Runtimes Server; do
    check "the table has the group $group" out_has "^$group$"
done
check "every other line is a check with its state, or a fix" \
    [ "$(grep -cvE '^(Host|Namespaces|File systems|Processes|Control groups|Runtimes|Server|Sandboxes can run here: [0-9]+ fine, [0-9]+ to improve\.|)$|^  (ok|warn) +[^ ].* [^ ]|^ +-> .' "$T/out")" -eq 0 ]
check "a warning is followed by what to do" \
    [ "$(grep -c '^  warn ' "$T/out")" -eq "$(grep -A1 '^  warn ' "$T/out" | grep -c '^ *-> ')" ]
check "the last line is the verdict" \
    sh -c 'tail -n 1 "$T/out" | grep -qE "^Sandboxes can run here: [0-9]+ fine, [0-9]+ to improve\.$"'
for name in root kernel user mount pid net egress ipc uts cgroup seccomp memory pids cpu freezer python3 node bash; do
    check "there is a check of $name" out_has "^  (ok|warn) +$name "
done
check "no colours when it is not a terminal" is_not grep -q $'\033' "$T/out"
cp "$T/out" "$T/table"

mkdir -p "$T/state"
echo 'front: the database is gone' >"$T/state/trouble"
run env SANDGLASS_STATE="$T/state" "$SG" doctor
check "a server that cannot start says why" \
    all status_is 0 -- out_has '^  warn +server +the server cannot start its front: the database is gone$'
rm "$T/state/trouble"
run env SANDGLASS_STATE="$T/state" "$SG" doctor
check "until it can" out_has "^  ok +server +no trouble reported in $T/state$"

sg doctor --json
check "--json: status 0, nothing on standard error" all status_is 0 -- err_is ''
check "--json: checks and summary" json 'list(r) == ["checks", "summary"]'
check "--json: the fields of a check" \
    json 'r["checks"] and all(list(c) == ["group", "name", "state", "value", "fix"] and c["state"] in ("ok", "warn", "missing") and type(c["value"]) is str and c["value"] for c in r["checks"])'
check "--json: what is not fine has a fix, what is fine has none" \
    json 'all((c["fix"] is None) == (c["state"] == "ok") for c in r["checks"])'
check "--json: the summary counts them" \
    json 'all(r["summary"][s] == sum(c["state"] == s for c in r["checks"]) for s in ("ok", "warn", "missing")) and r["summary"]["can_run"] is True and r["summary"]["missing"] == 0'
check "--json: as many checks as in the table" \
    json "len(r['checks']) == $(grep -cE '^  (ok|warn|missing) ' "$T/table")"

# ---- a host that cannot ----------------------------------------------------------------------------

run as_nobody "$SG" doctor
check "not root: status 1" all status_is 1 -- err_is ''
check "not root: it says so and what to do" \
    all out_has '^  missing +root +uid 65534$' -- out_has '^ +-> run sandglass as root: sudo sandglass doctor$'
check "not root: the verdict" out_has '^Sandboxes cannot run here: [0-9]+ missing, '
run as_nobody "$SG" doctor --json
check "not root: --json, status 1" all status_is 1 -- \
    json 'r["summary"]["can_run"] is False and r["summary"]["missing"] > 0'
run unshare -Ur "$SG" doctor
check "root of a user namespace is not enough" \
    all status_is 1 -- out_has '^  missing +root +root of a user namespace'
run setpriv --bounding-set=-sys_admin "$SG" doctor
check "root without capabilities is not enough" all status_is 1 -- out_has '^  missing +root .*CAP_SYS_ADMIN'
run unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"' sh "$SG" doctor
check "no user namespaces: missing" all status_is 1 -- out_has '^  missing +user '
run "$PY" "$HERE/without_userns.py" "$SG" doctor
check "a kernel without user namespaces: missing" all status_is 1 -- out_has '^  missing '
run "$PY" "$HERE/without_bpf.py" "$SG" doctor
check "without BPF: another way out, and why" all status_is 0 -- out_has '^  warn +egress +by tproxy' -- \
    out_has '-> .*sk_lookup: make a BPF map of sockets: Function not implemented'
run unshare -m sh -c 'umount -R -l /sys/fs/cgroup && exec "$@"' sh "$SG" doctor
check "no control groups: missing, and how to mount them" \
    all status_is 1 -- out_has '^  missing +mode +not mounted' -- out_has '-> mount -t cgroup2'
run unshare -m sh -c 'mount -t tmpfs -o size=1m t /run && exec "$@"' sh "$SG" doctor
check "little space: a warning, and it can still run" \
    all status_is 0 -- out_has '^  warn +state directory .*/run' -- out_has '-> remove unneeded files'
run unshare -m sh -c 'mount -t tmpfs -o ro t /var/lib && exec "$@"' sh "$SG" doctor
check "a read-only template directory: missing" all status_is 1 -- out_has '^  missing +template directory .*read-only'
run unshare -m sh -c 'mount --bind /dev/null /usr/bin/esbuild && exec "$@"' sh "$SG" doctor
check "a runtime that is not there: a warning with the package" \
    all status_is 0 -- out_has '^  warn +esbuild +no /usr/bin/esbuild' -- out_has '-> apt-get install esbuild'

# ---- what crashed runs left --------------------------------------------------------------------------

start "$SG" run -- sleep 424270
until_true has_process 424270
kill -KILL "$PID"
join
until_true has_no_process 424270
sg doctor
check "a killed run: a warning, and what to do" \
    all status_is 0 -- out_has '^  warn +left-overs ' -- out_has '-> .*sandglass doctor --sweep'
sg doctor --sweep
check "--sweep removes what it left" all status_is 0 -- out_has '^  ok +left-overs +nothing left'
check "... all of it" "$PY" "$HERE/host_state.py" check "$T/before" $$

# A server has groups of its own, even without a sandbox.
groups()
{
    find /sys/fs/cgroup -path '*/sandglass/s*' -prune 2>/dev/null | sort
}
has_more_groups()
{
    [ "$(groups)" != "$before" ]
}
before=$(groups)
start "$SG" serve --listen 127.0.0.1:0 --state "$T/state"
until_true has_more_groups
kill -KILL "$PID"
join
sg doctor
check "a killed server: its groups are told of" \
    all status_is 0 -- out_has '^  warn +left-overs +.* [1-9][0-9]* control groups left'
sg doctor --sweep
check "--sweep removes them" all status_is 0 -- out_has '^  ok +left-overs +nothing left' -- is_not has_more_groups

sg doctor --sweep --json
check "--sweep with --json" all status_is 0 -- json 'r["summary"]["can_run"]'
run as_nobody "$SG" doctor --sweep
check "--sweep needs root" all status_is 1 -- one_line

sg doctor --syscalls
check "--syscalls: the policy as text, one call a line" \
    all status_is 0 -- err_is '' -- out_has '^read\b' -- out_has '^openat\b' -- [ "$(wc -l <"$T/out")" -gt 100 ]
run as_nobody "$SG" doctor --syscalls
check "--syscalls needs no root" all status_is 0 -- out_has '^read\b'

# ---- usage -----------------------------------------------------------------------------------------

sg doctor --yaml
check "an unknown option" refuses 2 "unknown option '--yaml'"
sg doctor now
check "an argument" refuses 2 "unexpected argument 'now'"
"$SG" doctor >/dev/full 2>"$T/err"
STATUS=$?
: >"$T/out"
check "output that cannot be written" all is_not status_is 0 -- one_line

finish
