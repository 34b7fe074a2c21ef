#!/bin/bash
# S10: variables, secrets included, get inside, and nowhere else.
. "$(dirname "$0")/lib.sh"

SECRET=s3cret-$(head -c 12 /dev/urandom | od -An -tx1 | tr -d ' \n')

for user in $USERS; do
    sg run -u "$user" -- env
    home=$([ "$user" = root ] && echo /root || echo /home/user)
    check "$user: a small environment of its own" [ "$(sort "$T/out" | tr '\n' ' ')" = \
        "HOME=$home LANG=C.UTF-8 LOGNAME=$user LOKY_MAX_CPU_COUNT=1 NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 PATH=$(sed -n 's/^PATH=//p' "$T/out") PWD=$home SHELL=/bin/bash USER=$user " ]
    check "$user: ... with the usual PATH" out_has '^PATH=(/[a-z/]+:)+/bin$'
    sg run -u "$user" --env A=1 -e B='two words' --env=C= --env 'D=x=y$z"' -- sh -c 'echo "$A|$B|${C-unset}|$D"'
    check "$user: --env" gives 0 '1|two words||x=y$z"'
    sg run -u "$user" -e GREETING=hi 'import os; print(os.environ["GREETING"])'
    check "$user: --env for code" gives 0 hi
    sg run -u "$user" --env HOME=/tmp --env PATH=/usr/bin --env LANG=C -- sh -c 'echo "$HOME $PATH $LANG"'
    check "$user: --env has precedence over the defaults" gives 0 "/tmp /usr/bin C"
done
sg run -l js -e GREETING=hi 'console.log(process.env.GREETING)'
check "--env in javascript" gives 0 hi
sg run -e A=1 -e A=2 -- printenv A
check "the last one of a name counts" gives 0 2
FROM_OUTSIDE=$SECRET sg run --env FROM_OUTSIDE -- printenv FROM_OUTSIDE
check "--env NAME copies from the environment" gives 0 "$SECRET"
sg run --env NOT_SET_ANYWHERE -- env
check "--env NAME that is not set" refuses 2 "NOT_SET_ANYWHERE' is not set"
FROM_OUTSIDE=$SECRET sg run -- env
check "nothing else of the caller's environment gets inside" is_not out_has "FROM_OUTSIDE|$SECRET|SANDGLASS"
for bad in =x '' 1A=x 'A B=x' 'ü=x'; do
    sg run --env "$bad" -- env
    check "not a variable: '$bad'" refuses 2 "--env"
done
long=$(head -c 100000 /dev/zero | tr '\0' v)
sg run --env "LONG=$long" -- sh -c 'echo ${#LONG}'
check "a value of 100 KB" gives 0 100000

# ---- files ---------------------------------------------------------------------------------------

cat >"$T/env" <<'END'
# a comment

PLAIN=some value
  INDENTED=yes  
EMPTY=
SINGLE='as $it is \n'
DOUBLE="line\none \"quoted\" \$x \\"
HASH=a # b
EQUALS=a=b=c
END
printf 'LAST=no line feed' >>"$T/env"
for user in $USERS; do
    sg run -u "$user" --env-file "$T/env" -- sh -c 'printf "%s|" "$PLAIN" "$INDENTED" "${EMPTY-unset}" "$SINGLE" "$DOUBLE" "$HASH" "$EQUALS" "$LAST"'
    check "$user: --env-file" gives 0 $'some value|yes||as $it is \\n|line\none "quoted" $x \\|a # b|a=b=c|no line feed|'
done
echo 'PLAIN=second' >"$T/env2"
sg run --env-file "$T/env" --env-file "$T/env2" -- sh -c 'echo "$PLAIN $INDENTED"'
check "a later file has precedence" gives 0 "second yes"
sg run -e PLAIN=first --env-file "$T/env2" -- printenv PLAIN
check "--env has precedence over --env-file, wherever it stands" gives 0 first
printf 'CR=value\r\n' >"$T/crlf"
sg run --env-file "$T/crlf" -- sh -c 'printf "[%s]" "$CR"'
check "lines may end with CR LF" gives 0 "[value]"

sg run --env-file "$T/not-there" -- env
check "an environment file that is not there" refuses 2 "environment file '$T/not-there': No such file"
sg run --env-file "$T" -- env
check "a directory as environment file" refuses 2 "'$T' is a directory"
printf 'GOOD=1\n%s\n' "$SECRET" >"$T/bad"
sg run --env-file "$T/bad" -- env
check "a mistake is told with its line" refuses 2 "$T/bad:2: "
check "... and without its text" is_not err_has "$SECRET"
printf 'KEY="%s\n' "$SECRET" >"$T/bad"
sg run --env-file "$T/bad" -- env
check "quotes that do not close" refuses 2 "$T/bad:1: .*quotes.*'KEY'"
check "... without the value" is_not err_has "$SECRET"
printf 'A=1\0B=2\n' >"$T/bad"
sg run --env-file "$T/bad" -- env
check "a NUL byte" refuses 2 "NUL byte"

# ---- nowhere else --------------------------------------------------------------------------------

printf 'API_KEY=%s\n' "$SECRET" >"$T/secret"
chmod 600 "$T/secret"
for user in $USERS; do
    sg run -u "$user" --env-file "$T/secret" --timeout 1s -- sh -c 'test -n "$API_KEY"; sleep 60'
    check "$user: a timeout does not tell it" all status_is 124 -- is_not err_has "$SECRET"
    sg run -u "$user" --json --env-file "$T/secret" -- no-such-program
    check "$user: a set-up error does not tell it" all status_is 125 -- is_not out_has "$SECRET"
    sg run -u "$user" --json --env-file "$T/secret" -- true
    check "$user: the result does not tell it" all status_is 0 -- is_not out_has "$SECRET"
done

# Who of the host holds it while the program runs? Only the program itself: looks at arguments,
# environment and open files of all processes, and at what is written to disk meanwhile.
start "$SG" run --env-file "$T/secret" -- sh -c 'sleep 424246; :'
until_true has_process 424246
holders()
{
    "$PY" - "$SECRET" <<'PYTHON'
import os, sys

me, secret = os.getpid(), sys.argv[1].encode()
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == me:
        continue
    try:
        name = open(f"/proc/{pid}/comm").read().strip()
        inside = int(open(f"/proc/{pid}/status").read().split("\nUid:")[1].split()[0]) % 65536 == 1000
        for what in ("cmdline", "environ"):
            if secret in open(f"/proc/{pid}/{what}", "rb").read():
                print(what, "of the program" if inside and not name.startswith("sg-") else name)
    except OSError:
        pass
PYTHON
}
check "it is in the environment of the program, and of no other process of the host" \
    [ "$(holders | sort -u)" = "environ of the program" ]
kill "$PID"
join
check "it is in no file that sandglass keeps" \
    is_not grep -rqs "$SECRET" /run/sandglass /var/lib/sandglass /var/log /etc/sandglass
start env "API_KEY=$SECRET" "$SG" run --env API_KEY -- sh -c 'sleep 424247; :'
until_true has_process 424247
check "copied by name it is in no command line" [ -z "$(holders | grep cmdline)" ]
check "... and not with the agent or its helpers" [ -z "$(holders | grep sg-)" ]
kill "$PID"
join

finish
