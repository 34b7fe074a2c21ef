#!/bin/bash
# E3, E4: what may run by itself is a policy; the rest needs approval, and a refusal names its rule.
. "$(dirname "$0")/lib.sh"

mkdir "$T/root-a" "$T/root-a/dir" "$T/root-b" "$T/root-ab"
echo a >"$T/root-a/dir/f"
echo b >"$T/root-b/f"
chown -R 4321:4322 "$T/root-a"

# A policy file with these lines.
policy()
{
    printf '%s\n' "$@" >"$T/policy"
    chmod 600 "$T/policy"
}

# ---- the default ---------------------------------------------------------------------------------

if [ -e /etc/sandglass/policy ]; then
    echo "Bail out! /etc/sandglass/policy exists: these tests are about a host without one"
    exit 1
fi
for user in $USERS; do
    sg run -u "$user" 'print("isolated")'
    check "$user: isolated code runs by itself" gives 0 isolated
    sg run -u "$user" -v "$T/root-b:/data" -- cat /data/f
    check "$user: so does a read-only mount" gives 0 b
    sg run -u "$user" -v "$T/root-a:/data:rw" -- touch /data/x
    check "$user: a writable mount does not: rule writable-mounts" \
        refuses 125 "refused by policy rule 'writable-mounts'.*$T/root-a.*--approve"
    sg run -u "$user" --network allow 'print(1)'
    check "$user: the network does not: rule network" refuses 125 "refused by policy rule 'network'.*--approve"
    sg run -u "$user" -v /etc:/data -- ls /data
    check "$user: a mount outside the roots does not: rule mount-roots" refuses 125 "refused by policy rule 'mount-roots'.*/etc"
done
sg run --approve 'print("approved")'
check "--approve changes nothing where nothing is asked" gives 0 approved
sg run --approve -v "$T/root-a:/data:rw" -- sh -c 'touch /data/x && ls /data'
check "--approve allows a writable mount" gives 0 $'dir\nx'
sg run --approve --network allow 'print(1)'
check "--approve allows the network" gives 0 1
sg run --network 198.51.100.7 'print(1)'
check "a list is a network too" refuses 125 "refused by policy rule 'network'"
sg run --network block 'print(1)'
check "--network block is the default" gives 0 1
sg run --json -v "$T/root-a:/data:rw" -- true
check "a refusal in JSON" all status_is 125 -- \
    json 'r["status"] == "setup_error" and "writable-mounts" in r["error_message"]'
sg run --network maybe 'print(1)'
check "--network knows two words and lists" refuses 2 "--network 'maybe' is not 'block', 'allow' or a list"

# ---- a policy of one's own -----------------------------------------------------------------------

policy '# comment' '' '  allow writable-mounts  '
sg run --policy "$T/policy" -v "$T/root-a:/data:rw" -- sh -c 'rm /data/x && ls /data'
check "allow writable-mounts: no approval needed" gives 0 dir
sg run --policy "$T/policy" --network allow 'print(1)'
check "... for that rule only" refuses 125 "rule 'network'"
sg run --policy "$T/policy" -v "$T/root-b:/data" -- cat /data/f
check "... the built-in roots still hold" gives 0 b
sg run --policy "$T/policy" -v /etc:/data -- true
check "... and no others" refuses 125 "rule 'mount-roots'"

policy 'allow network'
sg run --policy "$T/policy" --network allow 'print(1)'
check "allow network: no approval needed" gives 0 1
sg run --policy "$T/policy" -v "$T/root-a:/data:rw" -- true
check "... and writable mounts need approval" refuses 125 "rule 'writable-mounts'"

policy "mount-root $T/root-a"
sg run --policy "$T/policy" -v "$T/root-a/dir:/data" -- cat /data/f
check "mount-root: below it" gives 0 a
sg run --policy "$T/policy" -v "$T/root-a:/data" -- cat /data/dir/f
check "mount-root: itself" gives 0 a
sg run --policy "$T/policy" -v "$T/root-b:/data" -- cat /data/f
check "mount-root: the built-in roots no longer apply" refuses 125 "rule 'mount-roots'.*$T/root-b"
sg run --policy "$T/policy" --approve -v "$T/root-b:/data" -- cat /data/f
check "mount-root: no approval opens others" refuses 125 "rule 'mount-roots'"
sg run --policy "$T/policy" -v "$T/root-ab:/data" -- true
check "mount-root: a name that only begins alike" refuses 125 "rule 'mount-roots'"
policy "mount-root $T/root-a" "mount-root $T/root-b/"
sg run --policy "$T/policy" -v "$T/root-a/dir:/1" -v "$T/root-b:/2" -- cat /1/f /2/f
check "mount-root: several, with a slash at the end" gives 0 $'a\nb'
policy 'mount-root /'
sg run --policy "$T/policy" -v /etc/hostname:/data -- sh -c 'test -s /data && echo seen'
check "mount-root /: everything" gives 0 seen
ln -s "$T/root-a" "$T/root-link"
policy "mount-root $T/root-link"
sg run --policy "$T/policy" -v "$T/root-link/dir:/data" -- cat /data/f
check "mount-root: a link counts for what it leads to" gives 0 a
policy ''
sg run --policy "$T/policy" 'print("empty")'
check "an empty policy is the default" gives 0 empty

# ---- mistakes ------------------------------------------------------------------------------------

sg run --policy "$T/no-policy" 'print(1)'
check "a policy that is not there" refuses 2 "policy '$T/no-policy': No such file"
sg run --policy "$T/root-b" 'print(1)'
check "a directory" refuses 2 "policy '$T/root-b' is a directory"
sg run --policy '' 'print(1)'
check "an empty name" refuses 2 "--policy"
for line in "allow everything" "mount-root relative" "permit network" "allow" "mount-root"; do
    policy '# first line' "$line"
    sg run --policy "$T/policy" 'print(1)'
    check "a mistake is told with its line: $line" refuses 2 "$T/policy:2: "
done
policy 'allow network'
chmod 666 "$T/policy"
sg run --policy "$T/policy" 'print(1)'
check "a policy that others may write is not trusted" refuses 2 "policy '$T/policy' can be written by others.*chmod"
chmod 600 "$T/policy"
chown 4321 "$T/policy"
sg run --policy "$T/policy" 'print(1)'
check "a policy that others own is not trusted" refuses 2 "policy '$T/policy' belongs to uid 4321.*chown"
chown 0 "$T/policy"
printf 'allow network\0' >"$T/policy"
sg run --policy "$T/policy" 'print(1)'
check "a NUL byte" refuses 2 "NUL byte"

# The policy of the host, in a mount namespace that has one.
mkdir -p "$T/etc/sandglass"
echo 'allow writable-mounts' >"$T/etc/sandglass/policy"
chmod 644 "$T/etc/sandglass/policy"
with_host_policy()
{
    unshare -m sh -c 'mount -t tmpfs t /mnt && mkdir /mnt/u /mnt/w &&
        mount -t overlay o -o lowerdir="$0":/etc,upperdir=/mnt/u,workdir=/mnt/w /etc && exec "$@"' "$T/etc" "$@"
}
run with_host_policy "$SG" run -v "$T/root-a:/data:rw" -- sh -c 'touch /data/y && ls /data'
check "/etc/sandglass/policy is the policy of the host" gives 0 $'dir\ny'
echo 'nonsense' >"$T/etc/sandglass/policy"
run with_host_policy "$SG" run 'print(1)'
check "... and a mistake in it stops everything" refuses 2 "/etc/sandglass/policy:1: unknown rule 'nonsense'"

finish
