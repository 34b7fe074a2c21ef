#!/bin/bash
# Bad input and bad surroundings: one clear line, the right exit status, nothing left behind.
. "$(dirname "$0")/lib.sh"

# ---- files ---------------------------------------------------------------------------------------

sg run -f "$T/missing.py"
check "a missing file" refuses 2 "'$T/missing.py': No such file"
mkdir "$T/dir"
sg run -f "$T/dir"
check "a directory" refuses 2 "'$T/dir' is a directory: name a file"
sg run -f ''
check "an empty file name" refuses 2 "--file"
echo 'print(1)' >"$T/a.rb"
sg run -f "$T/a.rb"
check "a suffix of no language" refuses 2 "'$T/a.rb' names no language: add --language"
sg run -l py -f "$T/a.rb"
check "... which --language helps" gives 0 1
as_file=$T/private.py
echo 'print(1)' >"$as_file"
chmod 600 "$as_file"
run as_nobody "$SG" run -f "$as_file"
check "a file that may not be read" refuses 2 "'$as_file': Permission denied"

# ---- languages -----------------------------------------------------------------------------------

for language in cobol '' pyton 'python ' Ruby; do
    sg run --language "$language" 'x'
    check "an unknown language: '$language'" \
        refuses 2 "--language: unknown language '$language': use python, javascript, typescript or bash"
done
sg run --language python -- true
check "a language for a command" refuses 2 "--language is for code"

# ---- sizes, times, numbers -------------------------------------------------------------------------

for option in --memory --disk --output-limit; do
    for value in '' lots -1 12Q 1..5M M 1.5G '64 M' 0x40 99999999999999999999 -64M ' 64M'; do
        sg run "$option" "$value" 'print(1)'
        check "$option '$value'" refuses 2 "$option '$value' is (not a size|too large).*"
    done
done
for pair in "--memory 15M" "--memory 0" "--memory 2T" "--disk 1023K" "--disk 0" "--disk 2T" "--output-limit 0" "--output-limit 2G"; do
    # shellcheck disable=SC2086
    sg run $pair 'print(1)'
    check "out of range: $pair" refuses 2 "${pair% *} '${pair#* }' is not between .* and "
done
for value in -1s -5 -0.5s '' soon 5x 1:30 '5 s' s 1e3; do
    sg run --timeout "$value" 'print(1)'
    check "--timeout '$value'" refuses 2 "--timeout '$value' is not a duration: use .*30s"
    sg run --timeout="$value" 'print(1)'
    check "--timeout='$value'" refuses 2 "--timeout '$value' is not a duration"
done
for value in 0 0ms 25h 2d; do
    sg run --timeout "$value" 'print(1)'
    check "out of range: --timeout $value" refuses 2 "--timeout '$value' is not between 1ms and 24h"
done
for value in 0 -1 x '' 0.001 1025 1,5; do
    sg run --cpus "$value" 'print(1)'
    check "--cpus '$value'" refuses 2 "--cpus '$value' is not"
done
for value in 0 -1 x '' 1.5 32769 1K; do
    sg run --pids "$value" 'print(1)'
    check "--pids '$value'" refuses 2 "--pids '$value' is (not a whole number|out of range).*1 to 32768"
done

# ---- code that cannot be ---------------------------------------------------------------------------

printf 'print(1)\0print(2)\n' >"$T/nul.py"
sg run -f "$T/nul.py"
check "code with a NUL byte in a file" refuses 2 "'$T/nul.py' has a NUL byte at offset 8"
run "$SG" run - <"$T/nul.py"
check "code with a NUL byte on standard input" refuses 2 "'standard input' has a NUL byte at offset 8"
for language in javascript typescript bash; do
    sg run -l "$language" -f "$T/nul.py"
    check "... in $language" refuses 2 "NUL byte"
done

yes '# 200 MB of code' | head -c 209715200 >"$T/huge.py"
sg run -f "$T/huge.py"
check "200 MB of code in a file" refuses 2 "'$T/huge.py' is 200 MiB, the limit is 64 MiB: .*--mount"
run "$SG" run - <"$T/huge.py"
check "200 MB of code on standard input" refuses 2 "'standard input' is .*the limit is 64 MiB"
run "$SG" run - < <(cat "$T/huge.py")
check "200 MB of code through a pipe" refuses 2 "'standard input' is .*the limit is 64 MiB"
head -c 67108864 "$T/huge.py" >"$T/max.py"
sg run -f "$T/max.py"
check "64 MiB of code are still code" gives 0 ''
head -c 67108865 "$T/huge.py" >"$T/max.py"
sg run -f "$T/max.py"
check "one byte more is not" refuses 2 "the limit is 64 MiB"
rm "$T/huge.py" "$T/max.py"
sg run --memory 16M --disk 1M -f <(yes '# more than the disk' | head -c 3000000)
check "code that does not fit the sandbox's disk" all refuses 125 "(No space|disk|memory)"

# ---- the command line ------------------------------------------------------------------------------

sg run
check "nothing to run" refuses 2 "nothing to run"
sg run --json
check "nothing to run, with an option" refuses 2 "nothing to run"
sg run --
check "no command after --" refuses 2 "no command after '--'"
sg run 'print(1)' 'print(2)'
check "two codes" refuses 2 "unexpected argument 'print\(2\)'"
sg run 'print(1)' -f "$as_file"
check "code and file" refuses 2 "both .* are given"
sg run - -- true
check "standard input and command" refuses 2 "both .* are given"
sg run --memroy 64M 'print(1)'
check "a misspelt option is suggested" refuses 2 "unknown option '--memroy'; did you mean '--memory'\?"
sg run --xyzzy 'print(1)'
check "an unknown option" refuses 2 "unknown option '--xyzzy'"
sg run -X 'print(1)'
check "an unknown short option" refuses 2 "unknown option '-X'"
for option in --timeout --memory -f --env --mount --policy; do
    sg run "$option"
    check "$option without a value" refuses 2 "$option needs a value"
done
sg run --json=yes 'print(1)'
check "a value for a flag" refuses 2 "--json takes no value"
sg run --tty --json 'print(1)'
check "--tty with --json" refuses 2 "--tty and --json exclude each other"
for name in 'a b' -x '' "$(head -c 100 /dev/zero | tr '\0' a)"; do
    sg run --hostname "$name" 'print(1)'
    check "a bad host name: '${name:0:10}'" all one_line -- out_is '' -- is_not status_is 0
    sg run --user "$name" 'print(1)'
    check "a bad user: '${name:0:10}'" refuses 2 "--user"
done
sg run --cwd relative 'print(1)'
check "a relative --cwd" refuses 2 "--cwd 'relative' is not an absolute path"
sg run --xyzzy $'evil\033[31m\n'
check "no control character of the input reaches the terminal" \
    [ "$(tr -d '\n' <"$T/err" | tr -d '\040-\176\200-\377' | wc -c)" -eq 0 ]
sg run -f $'no\nsuch\033[31mfile'
check "... of a file name neither" all refuses 2 "No such file" -- \
    [ "$(tr -d '\n' <"$T/err" | tr -d '\040-\176\200-\377' | wc -c)" -eq 0 ]

# ---- a host that cannot ------------------------------------------------------------------------------

run as_nobody "$SG" run 'print(1)'
check "no root" refuses 125 "needs root.*sudo"
mkdir -p "$T/state/front" "$T/programs"
chown 12345 "$T/state/front"
chmod 700 "$T/state/front"
cp -r "$(dirname "$SG")" "$(dirname "$SG")/../libexec" "$T/programs/"
chmod -R a+rX "$T/programs"
run as_nobody "$T/programs/bin/sandglass" key list --state "$T/state"
check "keys that are not one's own" refuses 1 "keys and tenants in '$T/state/front' are root's to manage: use sudo"
run setpriv --bounding-set=-sys_admin "$SG" run 'print(1)'
check "root without its capabilities" refuses 125 "(CAP_SYS_ADMIN|root|doctor)"
run "$PY" "$HERE/without_userns.py" "$SG" run 'print(1)'
check "a kernel without user namespaces" refuses 125 "user namespaces.*doctor"
run unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"' sh "$SG" run 'print(1)'
check "a host where no more user namespaces are allowed" refuses 125 "(user namespaces|root).*(doctor|root)"
run unshare -Ur "$SG" run 'print(1)'
check "root of a user namespace only" refuses 125 "(root|doctor)"

# A full disk: the state directory, then the template directory, in a mount namespace of its own.
on_full_disk()
{
    local where=$1 options=$2

    shift 2
    mkdir -p "$where"
    unshare -m sh -c 'where=$0; options=$1; shift; mount -t tmpfs -o "$options" full "$where" &&
        { head -c 1000000 /dev/zero >"$where/fill" 2>/dev/null; "$@"; s=$?; ls -A "$where" >"$T/left"; exit $s; }' \
        "$where" "$options" "$@"
}
run on_full_disk /run size=16k,nr_inodes=20 "$SG" run 'print(1)'
check "a full disk below /run" refuses 125 "/run/sandglass.*No space left"
run on_full_disk /run size=16k,nr_inodes=2 "$SG" run 'print(1)'
check "no more files below /run" refuses 125 "/run/sandglass.*No space left"
run on_full_disk /var/lib/sandglass size=64k,nr_inodes=2000 "$SG" run 'print(1)'
check "a full disk below /var/lib" refuses 125 "/var/lib.*No space left|No space left.*/var/lib"
check "... and no half template is left" [ "$(cat "$T/left")" = fill ]
run on_full_disk /var/lib/sandglass size=64m,nr_inodes=20 "$SG" run 'print(1)'
check "no more files below /var/lib" refuses 125 "/var/lib.*No space left|No space left.*/var/lib"
check "... and no half template is left" [ "$(cat "$T/left")" = fill ]
run unshare -m sh -c 'mount -t tmpfs -o ro full /var/lib/sandglass && exec "$@"' sh "$SG" run 'print(1)'
check "a read-only /var/lib" refuses 125 "(/var/lib/sandglass|template).*Read-only"
run unshare -m sh -c 'umount -R -l /sys/fs/cgroup && exec "$@"' sh "$SG" run 'print(1)'
check "no control groups" refuses 125 "(cgroup|control group)"
sg run 'print("works again")'
check "afterwards all is well" gives 0 "works again"

# ---- a stale slot ------------------------------------------------------------------------------------

slot_of()
{
    echo $((($(awk '/^Uid:/ { print $2 }' "/proc/$(host_pids "$1")/status") - 0x10000000) / 65536))
}
groups_of()
{
    find /sys/fs/cgroup -path "*/sandglass/local/runs/$1" -prune 2>/dev/null
}
run_and_is_swept()
{
    "$SG" run -- true && [ -z "$(groups_of "$1")" ]
}
for user in $USERS; do
    start "$SG" run -u "$user" -- sleep 424250
    until_true has_process 424250
    slot=$(slot_of 424250)
    kill -KILL "$PID"
    join
    check "$user: the processes of a killed run end by themselves" until_true has_no_process 424250
    sg run 'print("next")'
    check "$user: the next run works" gives 0 next
    check "$user: ... and removes what the killed one left" until_true run_and_is_swept "$slot"
done

# Worse: its processes cannot even die, because they are frozen.
start "$SG" run -- sleep 424251
until_true has_process 424251
slot=$(slot_of 424251)
victim=$(host_pids 424251)
freezer=$(groups_of "$slot" | grep freezer)
if [ -n "$freezer" ]; then
    echo FROZEN >"$freezer/freezer.state"
else
    echo 1 >"$(groups_of "$slot" | head -n 1)/cgroup.freeze"
fi
kill -KILL "$PID"
join
sg run 'print("next")'
check "a stale slot with frozen processes: the next run works" gives 0 next
check "... and removes them" until_true run_and_is_swept "$slot"
check "... all of them" is_not kill -0 "$victim"

finish
