#!/bin/bash
# sandglass acp: an agent on standard input and output, in a sandbox of its own. The streams are in acp.py.
. "$(dirname "$0")/lib.sh"

mkdir "$T/state"
"$PY" -B "$HERE/acp.py" "$SG" "$T/state" >"$T/steps" 2>"$T/trouble"
RESULT=$?
take_steps "$T/steps"
check "every step was taken" test "$RESULT" -eq 0
[ "$RESULT" -eq 0 ] || sed 's/^/# /' "$T/trouble"

# ---- whose doing it was -----------------------------------------------------------------------------

sg acp -- sh -c 'echo out; echo err >&2'
check "standard error stays apart, and an agent that ends well needs no remark" all status_is 0 -- out_is out -- err_is err
sg acp -- sh -c 'echo said >&2; exit 3'
check "the agent's own status" all remarks 3 '' 'agent: exited with status 3$' -- err_has '^said$'
sg acp -q -- sh -c 'exit 3'
check "-q says nothing of its own" all status_is 3 -- err_is ''
sg acp -- sh -c 'exit 124'
check "an agent's own 124 is not taken for a timeout" remarks 123 '' 'agent: exited with status 124'
sg acp -- sh -c 'kill -SEGV $$'
check "a signal ended the agent" remarks 139 '' 'agent: ended by signal 11 '
sg acp --timeout 300ms -- sleep 60
check "a timeout" remarks 124 '' 'timeout: the time limit of 300 ms was reached.*--timeout'
sg acp -m 32M -- "$PY" -c 'x = bytearray(1 << 28)'
check "a limit of the sandbox" remarks 137 '' 'sandbox: memory limit of 32 MiB reached'
sg acp -- no-such-agent
check "an agent that is not there" refuses 127 "agent: cannot run 'no-such-agent': not found"
sg acp --serve-fs -- no-such-agent
check "... with --serve-fs" remarks 127 '' "agent: 'no-such-agent' does not exist"
sg acp -- /etc/passwd
check "an agent that is no program" refuses 126 "agent: cannot run '/etc/passwd': permission denied"
sg acp --cwd /nowhere -- true
check "a directory that is not there" refuses 2 "client: .*/nowhere"
run as_nobody "$SG" acp -- true
check "no sandbox can be made" refuses 2 'client: .*root'
start "$SG" acp -- sleep 4711
until_true has_process 4711
kill -TERM "$PID"
join
check "a signal ends sandglass, and the agent with it" all remarks 143 '' 'client: sandglass received signal 15' -- \
    until_true has_no_process 4711

sg acp --log "$T/log" -- sh -c 'exit 5'
cp "$T/log" "$T/out"
check "--log tells what happened, and which layer" "$PY" -c '
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["layer"] for line in lines] == ["sandbox", "agent", "agent", "agent"], lines
assert lines[-1]["level"] == "error" and lines[-1]["status"] == 5 and "exited with status 5" in lines[-1]["message"], lines
assert len({line["sandbox"] for line in lines}) == 1 and all("time" in line for line in lines)' "$T/log"
: >"$T/log"
sg acp --log "$T/log" --timeout 200ms -- sleep 60
check "... a timeout" grep -q '"layer":"sandbox".*"status":124.*"timeout: ' "$T/log"
sg acp --log - -- true
check "... on standard error" all status_is 0 -- err_has '^\{"time":.*"layer":"agent"'

# ---- surroundings -------------------------------------------------------------------------------------

for user in $USERS; do
    sg acp -u "$user" -e A=b -- sh -c 'id -un; echo $A'
    check "$user: user and variables" gives 0 "$user"$'\n'b
done
TRACE=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
run env TRACEPARENT=$TRACE "$SG" acp -- sh -c 'echo $TRACEPARENT'
check "a traceparent is passed inside" gives 0 $TRACE
for bad in nonsense 00-00000000000000000000000000000000-b7ad6b7169203331-01 "${TRACE}x" "01${TRACE#00}"; do
    run env TRACEPARENT="$bad" "$SG" acp -- sh -c 'echo "-$TRACEPARENT-"'
    check "... and '$bad' is not" gives 0 --
done
for template in base code-interpreter-v1; do
    sg acp --template "$template" -- echo 1
    check "--template $template" gives 0 1
done
sg acp --template mine -- true
check "other templates are a server's" refuses 2 "--template 'mine'.*server"
mkdir -p "$T/work"
chown 12345:12345 "$T/work"
sg acp -v "$T/work:/work:rw" -- touch /work/x
check "a directory worked on in place needs approval" refuses 2 "client: refused by policy rule 'writable-mounts'"
sg acp --approve -v "$T/work:/work:rw" --cwd /work -- sh -c 'echo changed >file'
check "... and has it with --approve" all status_is 0 -- grep -qx changed "$T/work/file"
sg acp --secret KEY@api.test -- true
check "a secret that is not there" refuses 2 "no variable 'KEY'"
for bad in KEY KEY@ KEY@host =V@api.test 'K Y@api.test' 'KEY@api.test,' '@api.test' "KEY=hunter2!@api.test"; do
    sg acp --secret "$bad" -- true
    check "--secret '$bad' is refused without showing it" all refuses 2 '--secret: ' -- is_not err_has hunter2
done
run env KEY=x "$SG" acp --secret KEY@api.test -- true
check "a secret needs the network, and that approval" refuses 2 "client: refused by policy rule 'network'"
run env KEY=x "$SG" acp --network block --secret KEY@api.test -- true
check "... and none without one" refuses 2 '--secret needs a network'
sg acp --env KEY=a --secret KEY@api.test -- true
check "one variable, one value" refuses 2 "'KEY' is given both"

# ---- source code ----------------------------------------------------------------------------------------

LONG=$(printf 'long%.0s' {1..40})
mkdir -p "$T/src/dir/empty" "$T/src/$LONG"
echo content >"$T/src/dir/file"
echo deep >"$T/src/$LONG/$LONG"
ln -s ../file "$T/src/dir/link"
ln -s /etc/shadow "$T/src/out"
printf '#!/bin/sh\necho run\n' >"$T/src/program"
chmod 750 "$T/src/program"
touch -d @1000000000 "$T/src/dir/file"
LOOK='pwd; cat dir/file; readlink dir/link; stat -c "%a %Y" program dir/file | cut -d" " -f1; stat -c %Y dir/file; ./program; ls dir; cat long*/long*'
SEEN=$'/home/user/project\ncontent\n../file\n750\n644\n1000000000\nrun\nempty\nfile\nlink\ndeep'
sg acp --source "$T/src" -- sh -c "$LOOK"
check "a directory is copied, and the agent starts in it" gives 0 "$SEEN"
sg acp --source "$T/src" -- sh -c 'echo new >dir/file; rm program'
check "... and the copy is a copy" all status_is 0 -- test "$(cat "$T/src/dir/file")" = content -- test -e "$T/src/program"
mkfifo "$T/src/pipe"
sg acp --source "$T/src" -- test ! -e pipe
check "what is no file is left out, with a remark" remarks 0 '' "left out of the source: 'pipe'"
rm "$T/src/pipe"
sg acp -u root --source "$T/src" --into /srv/code -- sh -c 'pwd; stat -c %U dir/file'
check "--into, as root" gives 0 $'/srv/code\nroot'
sg acp --source "$T/src" --into work -w /tmp -- sh -c 'pwd; ls ~/work/dir/file'
check "--cwd is stronger" gives 0 $'/tmp\n/home/user/work/dir/file'
tar -C "$T/src" -cf "$T/s.tar" .
tar -C "$T/src" -czf "$T/s.tar.gz" .
tar -C "$T/src" -cJf "$T/s.txz" .
for archive in s.tar s.tar.gz s.txz; do
    sg acp --source "$T/$archive" -- sh -c "$LOOK"
    check "$archive is unpacked" gives 0 "$SEEN"
done
git -C "$T/src" init -q
git -C "$T/src" add -A
git -C "$T/src" -c user.name=a -c user.email=a@b.test commit -qm one
git -C "$T/src" bundle create -q "$T/s.bundle" --all
sg acp --source "$T/s.bundle" -- sh -c 'cat dir/file; git log --format=%s; git status --short; git remote'
check "a bundle is cloned" gives 0 $'content\none'

"$PY" - "$T" <<'PYTHON'
import io, sys, tarfile
for file, names in (("dots", ["a", "../../escape"]), ("absolute", ["/etc/escape"])):
    with tarfile.open(f"{sys.argv[1]}/{file}.tar", "w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
PYTHON
sg acp --source "$T/dots.tar" -- true
check "a tar that climbs out is refused, and the member is named" refuses 2 "client: the source .*dots.tar.*'\.\./\.\./escape'"
sg acp --source "$T/absolute.tar" -- true
check "... one with absolute names too" refuses 2 "client: .*'/etc/escape'"
head -c 3000 "$T/s.tar" >"$T/short.tar"
sg acp --source "$T/short.tar" -- true
check "a broken tar" refuses 2 'client: .*short.tar.*no whole tar'
echo no >"$T/no.bundle"
sg acp --source "$T/no.bundle" -- true
check "a bundle that is none" refuses 2 'client: .*no bundle of git'
sg acp --source "$T/nowhere" -- true
check "a source that is not there" refuses 2 "client: --source: cannot open .*nowhere"
sg acp --source "$T/log" -- true
check "a source of another kind" refuses 2 'neither a directory nor named like a tar'
sg acp --source "$TOP/src" --disk 1M -- true
check "a source that does not fit" refuses 125 'sandbox: .*disk full: the limit is 1 MiB'
start "$SG" acp --timeout 1s --source "$T/s.tar" -- sleep 60
join
check "the time limit is for all of it" remarks 124 '' timeout

# ---- bad usage ------------------------------------------------------------------------------------------

sg acp
check "no agent" refuses 2 "no agent: give its command after '--'"
sg acp cat
check "a command without '--'" refuses 2 "unexpected argument 'cat'"
sg acp --into x -- true
check "--into without a source" refuses 2 '--into is for what --source'
sg acp --frob -- true
check "an unknown option" refuses 2 "unknown option '--frob'"
sg acp --timeout 0 -- true
check "no time" refuses 2 '--timeout'

finish
