#!/bin/bash
# The warden process of a server, with a front that the test plays itself: see serve_warden.py.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

while read -r name title; do
    check "$title" "$PY" "$HERE/serve_warden.py" "$name"
done < <("$PY" "$HERE/serve_warden.py" list)

# ---- the command line ----------------------------------------------------------------------------

serve()
{
    run timeout 20 "$SG" serve --state "$T/state" --front-program /bin/false "$@"
}

serve --listen 0.0.0.0:0
check "other machines are let in with TLS only" refuses 125 'reached from other machines.*--insecure'
serve --listen '[::]:0'
check "nor over IPv6" refuses 125 'reached from other machines'
serve --listen nonsense
check "a bad address" refuses 2 "--listen 'nonsense' is not an address"
serve --sandbox-memory 1
check "a bad size" refuses 2 "--sandbox-memory '1' is out of range"
serve --tls-cert /etc/passwd
check "a certificate needs its key" refuses 2 'tls_key is missing'
serve --pool-min 9 --pool-max 3
check "a pool that is larger than it may be" refuses 2 'pool_min 9'
serve --config "$T/missing"
check "a configuration that is not there" refuses 125 "cannot open configuration '$T/missing'"
printf 'pool_min = 1\nno_such_thing = 1\n' >"$T/conf"
serve --config "$T/conf"
check "an unknown setting is named with its line" refuses 2 "$T/conf:2: unknown setting 'no_such_thing'"
chmod 666 "$T/conf"
serve --config "$T/conf"
check "a configuration that others can write" refuses 125 'chmod go-w'
SANDGLASS_POOL_MAX=x serve
check "the environment is read, and named" refuses 2 "SANDGLASS_POOL_MAX 'x'"
serve --front-user root
check "the front is never root" refuses 125 "front_user 'root' is root"
serve --front-user nobody-of-this-name
check "a user that does not exist" refuses 125 'no such user'
serve --guard-user root
check "nor is the guard" refuses 125 "guard_user 'root' is root"
serve --egress-roots "$T/missing"
check "certificates that are not there" refuses 125 "cannot read egress_roots '$T/missing'"
serve --nonsense
check "an unknown option" refuses 2 "unknown option '--nonsense'"
# Where sandboxes cannot be made: one line with what to do, and a status that systemd does not restart.
run timeout 20 "$PY" "$HERE/without_userns.py" "$SG" serve --state "$T/state" --listen 127.0.0.1:0 --log-level error
check "without user namespaces it does not start" refuses 78 "no sandbox can be made on this host: .*'sandglass doctor'"
# shellcheck disable=SC2016 # the other shell's own parameters
run timeout 20 unshare -m sh -c 'umount -R -l /sys/fs/cgroup; exec "$@"' sh "$SG" serve --state "$T/state" \
    --listen 127.0.0.1:0 --log-level error
check "nor without control groups" refuses 78 'no sandbox can be made on this host: .*mount cgroup2'
mkdir "$T/root"
# shellcheck disable=SC2016
run timeout 20 unshare -m sh -c '
    cd "$1/root" && shift || exit
    for place in /*; do
        if [ -L "$place" ]; then cp -P "$place" .; elif [ -d "$place" ]; then mkdir ".$place" && mount --rbind "$place" ".$place"; fi
    done
    exec chroot . "$@"' sh "$T" "$SG" serve --state "$T/state" --listen 127.0.0.1:0 --log-level error
check "nor in a chroot" refuses 78 'no sandbox can be made on this host: this is a chroot'

sg serve --help
check "help lists the settings" all status_is 0 -- out_has '--sandbox-memory SIZE' -- out_has '--tls-cert FILE'
run as_nobody "$SG" serve --state "$T/other"
check "without root it says so" refuses 125 'needs root'

finish
