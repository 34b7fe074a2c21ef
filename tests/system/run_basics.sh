#!/bin/bash
# E1, S7: what `sandglass run` runs, and how its streams and its status come back.
. "$(dirname "$0")/lib.sh"

# ---- where the program comes from ----------------------------------------------------------------

for user in $USERS; do
    sg run --user "$user" 'print(1+1)'
    check "$user: code given as an argument" gives 0 2

    printf 'print("from a file")\n' >"$T/a.py"
    sg run --user "$user" -f "$T/a.py"
    check "$user: code in a file" gives 0 "from a file"

    run "$SG" run --user "$user" - <<<'print("from standard input")'
    check "$user: code on standard input" gives 0 "from standard input"

    sg run --user "$user" -- printf '%s|' a 'b  c' '' -n --json '$HOME' '*'
    check "$user: a command gets its arguments as they are" gives 0 'a|b  c||-n|--json|$HOME|*|'
done

sg run --file "$T/a.py"
check "--file is -f" gives 0 "from a file"

run "$SG" run -f - <<<'print("dash")'
check "-f - is standard input" gives 0 dash

run "$SG" run - <<<'import sys; print(repr(sys.stdin.read()))'
check "code from standard input leaves an empty standard input" gives 0 "''"

sg run ''
check "empty code is a program that does nothing" gives 0 ''

sg run $'import sys\nfor i in range(2):\n    print(f"{i}: \'q\' \\"d\\" ünï ☃")\n'
check "code has several lines, quotes and any letter" gives 0 $'0: \'q\' "d" ünï ☃\n1: \'q\' "d" ünï ☃'

echo 'print("relative")' >"$T/rel.py"
cd "$T" || exit 1
sg run -f rel.py
check "a relative file name starts at the caller's directory" gives 0 relative
sg run rel.py
check "the name of a file as code is told of" all status_is 1 -- err_has "to run the file of that name: -f rel.py"
cd "$TOP" || exit 1

{ printf 'data = """'; head -c 5000000 /dev/zero | tr '\0' x; printf '"""\nprint(len(data))\n'; } >"$T/big.py"
sg run -f "$T/big.py"
check "5 MB of code" gives 0 5000000

# ---- languages -----------------------------------------------------------------------------------

for user in $USERS; do
    sg run -u "$user" --language python 'import sys; print("py", sys.version_info[0])'
    check "$user: python" gives 0 "py 3"
    sg run -u "$user" --language javascript 'console.log("js", [1, 2, 3].map(x => x * 2).join())'
    check "$user: javascript" gives 0 "js 2,4,6"
    sg run -u "$user" --language bash 'a=(x y z); echo "sh ${#a[@]} ${BASH_VERSION:+bash}"'
    check "$user: bash" gives 0 "sh 3 bash"
    sg run -u "$user" --language typescript '
        import { platform } from "node:os";
        import * as path from "node:path";
        interface Point { x: number; y: number }
        enum Axis { X, Y = 5 }
        function pick<T, K extends keyof T>(from: T, key: K): T[K] { return from[key]; }
        const p: Point = { x: 1, y: 2 };
        const later: number = await Promise.resolve(40);
        console.log(pick(p, "y") + later, Axis.Y, platform(), path.basename("/a/b.ts"));'
    check "$user: typescript with types, imports and top-level await" gives 0 "42 5 linux b.ts"
done

sg run -l ts 'const fs: any = require("fs"); console.log(typeof fs.readFileSync);'
check "typescript may use require() too" gives 0 "function"

sg run -l typescript $'const a: number = 1;\nconst b: = 2;\n'
check "a mistake in typescript is told with its line" \
    all status_is 1 -- err_has 'cell-1:2'

sg run -l ts $'function f(x: number): never {\n  throw new Error("boom " + x);\n}\nf(7);\n'
check "an exception in typescript has the line of the source" \
    all status_is 1 -- err_has 'cell-1:2'
printf 'const a: number = 1;\nthrow new Error("boom")\n' >"$T/throws.ts"
sg run -f "$T/throws.ts"
check "... and of a file" all status_is 1 -- err_has 'main\.ts:2'

# ---- cells ---------------------------------------------------------------------------------------

sg run '1+1'
check "code is a cell: its value is printed" gives 0 2
sg run $'x = [1, 2]\nx.append(3)\nx'
check "... the one of its last line" gives 0 '[1, 2, 3]'
sg run 'x = 1'
check "... if there is one" gives 0 ''
sg run '1+1;'
check "... and no semicolon after it" gives 0 ''
sg run $'print("first")\ndisplay(2)\n3'
check "... after what was written and displayed before" gives 0 $'first\n2\n3'
sg run 'import asyncio; await asyncio.sleep(0, "awaited")'
check "top-level await" gives 0 awaited
sg run -l js 'const x = await Promise.resolve([1, 2]); x.length'
check "javascript has values too" gives 0 2
sg run -l ts 'const x: number = 6; x * 7'
check "... and typescript" gives 0 42
sg run -l bash 'false'
check "bash has a status as ever" all status_is 1 -- out_is ''
run "$SG" run - <<<'20 + 2'
check "standard input is a cell" gives 0 22
printf '20 + 2\n' >"$T/value.py"
sg run -f "$T/value.py"
check "a file is a program: values of it are not printed" gives 0 ''
run "$SG" run 'input() + "!"' <<<line
check "a cell may read from standard input" gives 0 'line!'
sg run $'def f():\n    1/0\nf()'
check "an error points into the cell, and to nothing else" \
    all status_is 1 -- err_has 'line 2' -- err_has 'ZeroDivisionError' -- is_not err_has 'sandglass'

for pair in "py:print('p')" "js:console.log('p')" "ts:console.log('p' as string)" "sh:echo p"; do
    suffix=${pair%%:*}
    sg run -l "$suffix" "${pair#*:}"
    check "--language $suffix is a short form" gives 0 p
    printf '%s\n' "${pair#*:}" >"$T/main.$suffix"
    sg run -f "$T/main.$suffix"
    check "the suffix .$suffix gives the language" gives 0 p
done

for suffix in mjs mts; do
    echo 'import os from "node:os"; console.log(typeof os.cpus);' >"$T/module.$suffix"
    sg run -f "$T/module.$suffix"
    check "the suffix .$suffix is a module" gives 0 function
done
for suffix in cjs cts; do
    echo 'const os = require("os"); console.log(typeof os.cpus);' >"$T/module.$suffix"
    sg run -f "$T/module.$suffix"
    check "the suffix .$suffix is not" gives 0 function
done
echo 'echo bash' >"$T/main.bash"
sg run -f "$T/main.bash"
check "the suffix .bash gives the language" gives 0 bash

echo 'echo "a shell, $((1 + 2))"' >"$T/script.py"
sg run --language bash -f "$T/script.py"
check "--language has precedence over the suffix" gives 0 "a shell, 3"

echo 'print("no suffix")' >"$T/program"
sg run -f "$T/program"
check "a file without a suffix is python" gives 0 "no suffix"

# ---- exit status ---------------------------------------------------------------------------------

for user in $USERS; do
    for n in 0 1 3 42 124 125 255; do
        sg run -u "$user" -- sh -c "exit $n"
        check "$user: exit status $n is the program's own" gives "$n" ''
    done
done
sg run 'raise SystemExit(7)'
check "sys.exit of python" gives 7 ''
sg run 'raise ValueError("wrong")'
check "an uncaught exception: status 1 and its trace on standard error" \
    all status_is 1 -- out_is '' -- err_has '^ValueError: wrong$'
sg run -l js 'process.exit(9)'
check "process.exit of javascript" gives 9 ''
for pair in KILL:137:Killed TERM:143:Terminated SEGV:139:Segmentation ABRT:134:Aborted; do
    IFS=: read -r name number word <<<"$pair"
    sg run "import os, signal, sys; print('before', flush=True); os.kill(os.getpid(), signal.SIG$name)"
    check "SIG$name gives $number and a remark" remarks "$number" before "signal $((number - 128)) .*$word"
done
sg run -q 'import os; os.abort()'
check "--quiet leaves the remark out" gives 134 ''

sg run -- no-such-program-here
check "a command that is not there" refuses 125 "no-such-program-here.*not found in PATH inside"
sg run -- /etc/passwd
check "a file that is no program" refuses 125 "/etc/passwd.*permission denied"

# ---- standard input ------------------------------------------------------------------------------

for user in $USERS; do
    run "$SG" run -u "$user" 'import sys; print(sys.stdin.read().upper(), end="")' <<<"hello"
    check "$user: standard input is passed on" gives 0 HELLO
done
sg run 'import sys; print(repr(sys.stdin.read()))'
check "an empty standard input is empty" gives 0 "''"

head -c 5000000 /dev/urandom >"$T/blob"
run "$SG" run -- sha256sum <"$T/blob"
check "5 MB of any bytes pass through standard input" gives 0 "$(sha256sum <"$T/blob")"

run "$SG" run -- cat <"$T/blob"
check "5 MB of any bytes pass in and out" cmp "$T/blob" "$T/out"
check "... with status 0" status_is 0

run "$SG" run -- true <"$T/blob"
check "a program need not read its standard input" gives 0 ''
run "$SG" run -- sh -c 'exec <&-; sleep 0.2; echo closed' <"$T/blob"
check "a program may close its standard input" gives 0 closed
run "$SG" run -- true < <(sleep 30)
check "a run ends while its standard input stays open" gives 0 ''

run "$SG" run 'print(1)' <&-
check "a closed standard input is an empty one" gives 0 1

# ---- live streams --------------------------------------------------------------------------------

# Each answer comes while the program still runs: it does not go on before the next line is sent.
coproc TALK { "$SG" run -- sh -c 'while read -r line; do echo "got $line"; done' 2>"$T/err"; }
# shellcheck disable=SC2153
talk_pid=$TALK_PID
exec {ear}<&"${TALK[0]}" {mouth}>&"${TALK[1]}"
told=
for word in one two three; do
    echo "$word" >&"$mouth"
    read -r -t 20 answer <&"$ear" && told+="$answer;"
done
exec {mouth}>&-
eval "exec ${TALK[1]}>&-"
wait "$talk_pid"
STATUS=$?
check "standard input and output are live in both directions" [ "$told" = "got one;got two;got three;" ]
check "... and the end of standard input ends it" status_is 0
exec {ear}<&-

mkfifo "$T/fifo"
"$SG" run -- sh -c 'echo first >&2; read -r x; echo "second $x" >&2' <"$T/fifo" >"$T/out" 2>"$T/err" &
PID=$!
exec {mouth}>"$T/fifo"
check "standard error is live" until_true grep -q first "$T/err"
echo now >&"$mouth"
exec {mouth}>&-
join
check "... to its end" all status_is 0 -- err_is $'first\nsecond now'

sg run -- sh -c 'for i in 1 2 3 4 5; do echo "out $i"; echo "err $i" >&2; done'
check "standard output and error are separate, each in order" \
    all out_is $'out 1\nout 2\nout 3\nout 4\nout 5' -- err_is $'err 1\nerr 2\nerr 3\nerr 4\nerr 5'

sg run 'import sys
for i in range(3):
    print("no newline at the end", i, end="", flush=True)'
check "output without a line feed" gives 0 "no newline at the end 0no newline at the end 1no newline at the end 2"

# ---- binary and large output ---------------------------------------------------------------------

"$PY" -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 512)' >"$T/bytes"
for user in $USERS; do
    sg run -u "$user" 'import sys
sys.stdout.buffer.write(bytes(range(256)) * 512);'
    check "$user: every byte passes unchanged" cmp "$T/bytes" "$T/out"

    sg run -u "$user" 'import sys
sys.stdout.write("o" * 1000000); sys.stderr.write("e" * 1000000);'
    check "$user: 1 MB on both streams, status" status_is 0
    check "$user: 1 MB of standard output" [ "$(tr -d o <"$T/out" | wc -c; wc -c <"$T/out")" = "$(printf '0\n1000000')" ]
    check "$user: 1 MB of standard error" [ "$(tr -d e <"$T/err" | wc -c; wc -c <"$T/err")" = "$(printf '0\n1000000')" ]
done

"$SG" run -- sh -c 'head -c 3000000 /dev/zero' 2>"$T/err" | { sleep 0.5; wc -c; } >"$T/out"
STATUS=${PIPESTATUS[0]}
check "a slow reader gets all of it" gives 0 3000000

# ---- where the output goes -----------------------------------------------------------------------

"$SG" run -- yes 2>"$T/err" | head -n 1 >"$T/out"
STATUS=${PIPESTATUS[0]}
check "a reader that leaves ends the run like SIGPIPE" gives 141 y

"$SG" run 'print(1)' >/dev/full 2>"$T/err"
STATUS=$?
: >"$T/out"
check "output that cannot be written is told" refuses 125 "cannot write.*No space left"

"$SG" run 'import sys; print("x"); sys.exit(5)' >&- 2>"$T/err"
STATUS=$?
check "a closed standard output does no harm" all status_is 5 -- err_is ''

# ---- where and as whom ---------------------------------------------------------------------------

sg run -- sh -c 'pwd; id -un; id -u; echo "$HOME"'
check "it runs as user, at home" gives 0 $'/home/user\nuser\n1000\n/home/user'
sg run --user root -- sh -c 'pwd; id -un; id -u; echo "$HOME"'
check "--user root" gives 0 $'/root\nroot\n0\n/root'
for user in $USERS; do
    sg run -u "$user" --cwd /tmp -- pwd
    check "$user: --cwd" gives 0 /tmp
    sg run -u "$user" -w /usr/bin 'import os; print(os.getcwd())'
    check "$user: -w, for code too" gives 0 /usr/bin
done
sg run --cwd /no/such/place -- pwd
check "a --cwd that is not there" refuses 125 "/no/such/place"
sg run --cwd /root -- pwd
check "a --cwd that the user may not enter" refuses 125 "/root"
sg run --user nosuchuser -- id
check "an unknown --user" refuses 125 "nosuchuser"
sg run -- ls /proc/self/fd
check "no descriptor but the three and the one of ls" gives 0 $'0\n1\n2\n3'
for user in $USERS; do
    sg run -u "$user" 'import io, logging, os
said = io.StringIO()
logging.basicConfig(stream=said, level=logging.INFO)
import matplotlib.font_manager
print(len(os.listdir(os.path.expanduser("~/.cache/matplotlib"))), said.getvalue().strip())'
    check "$user: matplotlib finds its list of fonts made" gives 0 "1 "
done
exec {extra}</etc/passwd
sg run -- sh -c "ls -l /proc/self/fd | grep -c passwd"
exec {extra}<&-
check "no descriptor of the caller gets inside" gives 1 0

# ---- S3: time ------------------------------------------------------------------------------------

for value in 1h 24h 90s 1500ms 2m 30; do
    sg run --timeout "$value" 'print("in time")'
    check "--timeout $value" gives 0 "in time"
done
sg run --timeout 1h 'import time
for i in range(4):
    time.sleep(0.5)
print("whole")'
check "a task is not cut inside its limit" gives 0 whole

finish
