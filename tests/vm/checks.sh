#!/bin/bash
# Inside the virtual machine: what depends on the kernel and on the version of control groups. The
# rest is the same everywhere and tested on the host.
. "$(dirname "$0")/../system/lib.sh"

GROUP=/sys/fs/cgroup/sandglass/local/runs
echo "# Linux $(uname -r), $(awk '$3 ~ /^cgroup/ { print $3 " on " $2 }' /proc/mounts)"

# The control group of the sandbox in which a "sleep $1" runs.
group_of()
{
    local pid

    pid=$(host_pids "$1" | head -n 1)
    [ -n "$pid" ] && echo "/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$pid/cgroup")"
}

# Starts a sandbox that sleeps, with the given options; its group is in $SANDBOX.
start_sleeper()
{
    local number=$1

    shift
    start "$SG" run "$@" -- sleep "$number"
    until_true has_process "$number"
    SANDBOX=$(group_of "$number")
}

limit_is()
{
    json "r['limit'] == '$1' and r['error_message']"
}

no_groups()
{
    [ -z "$(find "$GROUP" -mindepth 1 -type d)" ]
}

# ---- the host is fit -----------------------------------------------------------------------------

sg doctor
sed 's/^/# /' "$T/out"
check "doctor: sandboxes can run here" all status_is 0 -- out_has "^Sandboxes can run here" -- err_is ''
check "doctor: control groups of version 2" out_has "ok +mode +version 2, /sys/fs/cgroup"

# ---- programs run --------------------------------------------------------------------------------

sg run -- true
if ! check "a sandbox can be made" gives 0 ''; then
    dmesg | tail -n 5 | sed 's/^/# /'
    exit 1 # the rest would only wait for it
fi
for user in $USERS; do
    sg run -u "$user" 'print(1+1)'
    check "$user: a program runs" gives 0 2
    sg run -u "$user" 'raise SystemExit(42)'
    check "$user: its exit status" gives 42 ''
done
sg run -- id
check "user: ids" gives 0 "uid=1000(user) gid=1000(user) groups=1000(user)"
sg run -u root -- id
check "root: ids" gives 0 "uid=0(root) gid=0(root) groups=0(root)"
sg run -- sudo id -u
check "sudo" gives 0 0

# ---- files: before Linux 6.3 a tmpfs has no id maps, so the scratch disk has the host's ids -----------

for place in /home/user /tmp /var/tmp /dev/shm; do
    sg run -- sh -c "mkdir $place/d && echo text >$place/d/f && stat -c %u:%g $place/d/f && rm -r $place/d && ls $place"
    check "user: makes and removes files in $place" gives 0 1000:1000
done
for place in /home/user /tmp /root /etc /usr/local/bin /var/lib /dev/shm; do
    sg run -u root -- sh -c "mkdir $place/d && echo text >$place/d/f && stat -c %u:%g $place/d/f &&
        chown 1000:100 $place/d/f && chmod 4711 $place/d/f && stat -c %u:%g:%a $place/d/f && rm -r $place/d"
    check "root: makes, gives away and removes files in $place" gives 0 $'0:0\n1000:100:4711'
done
for place in / /etc /usr/bin /root; do
    sg run -- sh -c "echo text >$place/f"
    check "user: may not write in $place" all is_not status_is 0 -- err_has "Permission denied|Read-only file system"
done
sg run -- sh -c 'stat -c %u:%g ~ ~/.bashrc; echo "# more" >>~/.bashrc && tail -n 1 ~/.bashrc && stat -c %u:%g ~/.bashrc && rm ~/.bashrc && ls -A ~'
check "user: changes and removes a file that was there" gives 0 $'1000:1000\n1000:1000\n# more\n1000:1000\n.profile'
sg run -u root -- sh -c 'stat -c %u:%g /etc/hosts; echo "# more" >>/etc/hosts; tail -n 1 /etc/hosts; stat -c %u:%g /etc/hosts; rm /etc/hosts /etc/shells; ls /etc/hosts /etc/shells'
check "root: changes and removes files that were there" all status_is 2 -- out_is $'0:0\n# more\n0:0' -- \
    err_has "/etc/hosts.*No such file" -- err_has "/etc/shells.*No such file"
sg run -u root -- sh -c 'mv /etc/pam.d /etc/renamed && ls -d /etc/renamed/su'
check "root: renames a directory that was there" gives 0 /etc/renamed/su
sg run -u root -- sh -c 'rm -rf /usr/bin/env /usr/lib/python3*; chmod 777 /usr/bin'
check "root: the host's programs stay" all test -x /usr/bin/env -- test -d /usr/lib/python3.11 -- \
    [ "$(stat -c %u:%a /usr/bin)" = 0:755 ]

# ---- files of the host -----------------------------------------------------------------------------

mkdir /srv/data
echo words >/srv/data/f
chown -R 1234:1235 /srv/data
for user in $USERS; do
    sg run -u "$user" --mount /srv/data:/data -- sh -c 'cat /data/f; echo x >/data/f'
    check "$user: a mount of the host is read-only" all is_not status_is 0 -- out_is words -- err_has "Read-only"
done
sg run --approve --mount /srv/data:/data:rw -- sh -c 'echo new >/data/g && stat -c %u:%g /data/f /data/g'
check "user: a writable one has the user's ids inside" gives 0 $'1000:1000\n1000:1000'
check "... and the owner's outside" [ "$(stat -c %u:%g /srv/data/g)" = 1234:1235 ]
mount -t tmpfs memory /mnt
sg run --mount /mnt:/data -- stat -c %F /data
if [ "$STATUS" -eq 0 ]; then # since Linux 6.3
    check "a mount of a host's tmpfs" gives 0 directory
else
    check "a mount of a host's tmpfs is refused, and told why" refuses 125 "'/mnt'"
fi
umount /mnt

# ---- limits: control groups of version 2 -------------------------------------------------------------

start_sleeper 424301 --memory 96M --cpus 0.5 --pids 33
check "one group for each sandbox, below $GROUP" [ "${SANDBOX%/*}" = "$GROUP" ]
check "memory.max" [ "$(cat "$SANDBOX/memory.max")" = $((96 << 20)) ]
check "cpu.max" [ "$(cat "$SANDBOX/cpu.max")" = "50000 100000" ]
check "pids.max: the agent is one more" [ "$(cat "$SANDBOX/pids.max")" = 34 ]
check "all processes of the sandbox are in it" [ "$(wc -l <"$SANDBOX/cgroup.procs")" -eq 2 ]

# Devices: the host's root, once it is in the group, gets at the allowed ones only.
in_group()
{
    (echo "$BASHPID" >"$SANDBOX/cgroup.procs" && "$@")
}
reads()
{
    head -c 1 "$1" >/dev/null
}
is_forbidden_in_group()
{
    in_group "$@" 2>&1 | grep "Operation not permitted"
}
check "a disk can be read by the host's root" reads /dev/vda
check "... not in the group of a sandbox" is_forbidden_in_group reads /dev/vda
check "... nor the kernel's log" is_forbidden_in_group reads /dev/kmsg
check "... nor can a node be made" is_forbidden_in_group mknod "$T/disk" b 254 0
for device in zero full random urandom; do
    check "... but /dev/$device can" in_group reads "/dev/$device"
done
kill -TERM "$PID"
join
check "nothing is left of it" until_true no_groups

HOG='print("before", flush=True)
x = bytearray(300 << 20)
print("after")'
for user in $USERS; do
    sg run --json -u "$user" --memory 64M "$HOG"
    check "$user: out of memory" all status_is 137 -- limit_is memory -- json 'r["stdout"] == "before\n"'
    sg run --json -u "$user" --memory 64M -- sh -c 'python3 -c "x = bytearray(300 << 20)"; exit 6'
    check "$user: only a child dies of it" all status_is 6 -- limit_is memory
    sg run --json -u "$user" --memory 64M 'f = open("/tmp/f", "wb")
while True:
    f.write(bytes(1 << 20))'
    check "$user: files are memory too" limit_is memory
    sg run --json -u "$user" --memory 512M "$HOG"
    check "$user: enough memory: no limit, and the peak is told" all status_is 0 -- \
        json 'r["limit"] is None and 300 << 20 < r["resource_usage"]["memory_peak_bytes"] < 400 << 20'
    sg run --json -u "$user" --pids 20 'import os, time
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        n += 1
except BlockingIOError:
    print("refused after", n)'
    check "$user: too many processes" all limit_is pids -- json 'r["stdout"] == "refused after 19\n"'
    sg run --json -u "$user" --disk 8M -- sh -c 'head -c 5000000 /dev/zero >/tmp/a && head -c 5000000 /dev/zero >b'
    check "$user: disk full" all limit_is disk -- json '"No space left" in r["stderr"]'
    sg run --json -u "$user" --timeout 1s -- sleep 60
    check "$user: out of time" all status_is 124 -- limit_is time
    sg run --json -u "$user" --output-limit 1K -- head -c 5000 /dev/zero
    check "$user: too much output" all status_is 0 -- limit_is output -- json 'len(r["stdout"]) == 1024'
done

is_slowed_down()
{
    [ "$(sed -n 's/^nr_throttled //p' "$SANDBOX/cpu.stat")" -gt 5 ]
}
start "$SG" run --cpus 0.2 -- sh -c 'sleep 424306 & while :; do :; done'
until_true has_process 424306
SANDBOX=$(group_of 424306)
check "--cpus slows down" until_true is_slowed_down
kill -TERM "$PID"
join

# ---- the end -----------------------------------------------------------------------------------------

sg run -- sh -c 'for i in 1 2 3; do setsid sleep 424302 >/dev/null 2>&1 & done; exit 5'
check "children in the background end with it" all gives 5 '' -- has_no_process 424302

# The caller is killed: the processes end by themselves, the next run removes the group.
start_sleeper 424303
kill -KILL "$PID"
join
check "killed: its processes end" until_true has_no_process 424303
check "killed: its group is left" test -d "$SANDBOX"
sg run 'print("next")'
check "killed: the next run works" gives 0 next
check "killed: ... and removes the group" is_not test -d "$SANDBOX"

# Worse: frozen processes, which cannot end before they are thawed or killed by the group.
start_sleeper 424304
victim=$(host_pids 424304)
echo 1 >"$SANDBOX/cgroup.freeze"
kill -KILL "$PID"
join
sg run 'print("next")'
check "killed while frozen: the next run works" gives 0 next
check "killed while frozen: ... and removes group and processes" \
    all is_not test -d "$SANDBOX" -- is_not kill -0 "$victim"

start_sleeper 424305
kill -KILL "$PID"
join
sg doctor --sweep
check "doctor --sweep removes the group" all status_is 0 -- until_true no_groups

# ---- through the library -------------------------------------------------------------------------------

run "$TOP/build/vm/library"
sed 's/^/# /' "$T/out"
number()
{
    sed -nE "s/^$1: (longest gap|peak) ([0-9]+) (ms|MiB)$/\2/p" "$T/out"
}
check "pause and resume" all status_is 0 -- err_is ''
check "a paused group is frozen" out_has "^paused: 1 frozen$"
check "a resumed one is not" out_has "^resumed: 0 frozen$"
check "a paused program stands still" [ "$(number after)" -ge 1900 ]
check "... and did not before" [ "$(number before)" -lt 1500 ]
check "the peak of memory is told" [ "$(number large)" -ge 200 ]
check "... and not of an earlier sandbox in the same group" [ "$(number small)" -lt 100 ]
check "nothing is left" no_groups

# ---- nothing adds up -----------------------------------------------------------------------------------

# With room for a few namespaces only, one that is not given back is missed soon.
ROOM=$(grep -H . /proc/sys/user/max_*_namespaces)
for kind in user mnt pid net ipc uts cgroup; do
    echo 24 >/proc/sys/user/max_${kind}_namespaces
done
many()
{
    local i

    for ((i = 0; i < 30; i++)); do
        [ "$("$SG" run -- echo "$i" 2>&1)" = "$i" ] || { "$SG" run -- echo "$i"; echo "run $i"; return 1; }
    done
}
check "thirty runs need no more namespaces than a few" many
while IFS=: read -r file number; do
    echo "$number" >"$file"
done <<<"$ROOM"
check "no group is left" no_groups

finish
