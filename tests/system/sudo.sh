#!/bin/bash
# sudo inside a sandbox: for `user`, through the agent, without a password.
. "$(dirname "$0")/lib.sh"

for user in $USERS; do
    sg run -u "$user" -- sudo id -u
    check "$user: sudo is root" gives 0 0
    sg run -u "$user" -- sudo sh -c 'id -un; id -gn; id -G; awk "/^NoNewPrivs/ { print \$2 }" /proc/self/status'
    check "$user: root as with --user root" gives 0 $'root\nroot\n0\n1'
    for n in 0 1 42 255; do
        sg run -u "$user" -- sudo sh -c "exit $n"
        check "$user: exit status $n passes through" gives "$n" ''
    done
    run "$SG" run -u "$user" -- sudo cat <<<"through"
    check "$user: standard input passes through" gives 0 through
    sg run -u "$user" -- sudo sh -c 'echo out; echo err >&2'
    check "$user: standard output and error stay separate" all out_is out -- err_is err
    sg run -u "$user" --cwd /tmp -- sudo -u user id -un
    check "$user: -u user" gives 0 user
    sg run -u "$user" --cwd /tmp -- sudo -u '#1000' id -u
    check "$user: -u with an id" gives 0 1000
    sg run -u "$user" -- sudo --user=root -- id -u
    check "$user: --user=, and -- before the command" gives 0 0
done

late=0
for ((i = 0; i < 80; i++)); do
    "$SG" run -- sudo true 2>>"$T/late" || late=$((late + 1))
done
check "sudo works from the first moment, 80 times of 80" all [ "$late" -eq 0 ] -- [ ! -s "$T/late" ]

head -c 2000000 /dev/urandom >"$T/blob"
run "$SG" run -- sudo cat <"$T/blob"
check "2 MB pass in and out" cmp "$T/blob" "$T/out"

sg run 'import subprocess
subprocess.run("sudo mkdir /opt/tool && echo made | sudo tee /opt/tool/file", shell=True, check=True)
print(open("/opt/tool/file").read(), end="")'
check "user sets things up with it" gives 0 $'made\nmade'
sg run -- sh -c 'sudo sh -c "echo \"echo installed\" > /usr/local/bin/tool; chmod 755 /usr/local/bin/tool"; tool; sudo chown user /opt; touch /opt/mine; stat -c %U /opt/mine'
check "... a program in /usr/local/bin, a directory" gives 0 $'installed\nuser'
sg run -- sh -c 'touch /etc/x 2>/dev/null || echo refused; sudo touch /etc/x && stat -c %U /etc/x'
check "without it user may not" gives 0 $'refused\nroot'

# ---- environment ---------------------------------------------------------------------------------

sg run --env SECRET=x --env LC_TEST=kept -- sudo sh -c 'echo "$SECRET|$LC_TEST|$HOME|$USER|$LOGNAME|$SUDO_USER|$SUDO_UID|$SUDO_COMMAND" | cut -c1-60'
check "the environment is reset, but for the language" gives 0 "|kept|/root|root|root|user|1000|sh -c echo \"\$SECRET|\$LC_TEST"
sg run --env SECRET=x -- sudo -E sh -c 'echo "$SECRET|$HOME"'
check "-E keeps it" gives 0 "x|/home/user"
sg run --env A=1 --env B=2 -- sudo --preserve-env=B sh -c 'echo "$A|$B"'
check "--preserve-env=LIST keeps these" gives 0 "|2"
sg run -- sudo A=1 B='two words' sh -c 'echo "$A|$B"'
check "NAME=VALUE before the command" gives 0 "1|two words"
sg run --env SECRET=x -- sudo -E -H sh -c 'echo "$HOME"'
check "-H sets HOME" gives 0 /root
sg run --env LD_LIBRARY_PATH=/tmp -- sudo sh -c 'echo "${LD_LIBRARY_PATH:-none}"'
check "what changes how programs are loaded does not pass" gives 0 none

# ---- directory and shells ------------------------------------------------------------------------

sg run --cwd /tmp -- sudo pwd
check "it stays in the directory" gives 0 /tmp
sg run -u root --cwd /root -- sudo -u user id -un
check "... also where the target may not look around" gives 0 user
sg run -- sudo -D /var pwd
check "-D" gives 0 /var
sg run -- sudo -i pwd
check "-i: a login shell at home" gives 0 /root
sg run -- sudo -i printf '%s|' 'two words' '$HOME'
check "-i: arguments stay whole, variables are the target's" gives 0 'two words|/root|'
sg run -- sudo -s echo 'a  b'
check "-s: a command" gives 0 'a  b'
run "$SG" run -- sudo -s <<<'echo "shell of $(id -un)"'
check "-s: standard input is its script" gives 0 "shell of root"

# ---- refusals ------------------------------------------------------------------------------------

says()
{
    status_is 1 && out_is '' && [ "$(wc -l <"$T/err")" -eq 1 ] && err_has "^sudo: $1"
}
sg run -- sudo -u no-one id
check "a user that there is not" says "unknown user no-one"
sg run -- sudo no-such-program
check "a command that is not there" says "cannot run 'no-such-program': not found in PATH"
sg run -- sudo -D /no/such id
check "a directory that is not there" says ".*/no/such"
sg run -- sudo -i -s
check "two kinds of shell" says "-i and -s"
sg run -- sudo
check "nothing to run: usage, status 1" all status_is 1 -- err_has '^usage: sudo '
sg run -u root -- setpriv --reuid=33 --regid=33 --clear-groups sudo id
check "a user who may not" says "user id 33 may not use sudo"
sg run -- sudo -l
check "-l" all status_is 0 -- out_has 'NOPASSWD: ALL'
for flag in -v -k -K; do
    sg run -- sudo "$flag"
    check "$flag needs no command" gives 0 ''
done
sg run -- sudo -n -S -p prompt id -u
check "-n, -S and -p are accepted" gives 0 0
sg run -- sudo --help
check "--help" all status_is 0 -- out_has '^usage: sudo ' -- err_is ''
sg run -- sudo --version
check "--version" all status_is 0 -- out_has .

# ---- signals and endings -------------------------------------------------------------------------

sg run -- sudo sh -c 'kill -TERM $$'
check "a signal that ends the command ends sudo" status_is 143
sg run -- sh -c 'sudo sh -c "trap \"echo got TERM; exit 7\" TERM; echo ready; while :; do sleep 0.05; done" > /tmp/log &
pid=$!; until grep -q ready /tmp/log; do sleep 0.05; done; kill -TERM $pid; wait $pid; echo "status $?"; cat /tmp/log'
check "a signal to sudo reaches the command" all status_is 0 -- out_is $'status 7\nready\ngot TERM'
sg run -- sh -c 'sudo sleep 100 & pid=$!; until pgrep -u root -x sleep >/dev/null; do sleep 0.05; done
kill -KILL $pid; for i in $(seq 100); do pgrep -u root -x sleep >/dev/null || { echo gone; exit; }; sleep 0.1; done'
check "a command does not outlive its sudo" gives 0 gone
sg run --timeout 1s -- sudo sleep 424244
check "the timeout holds for sudo" all remarks 124 '' "time limit" -- has_no_process 424244
sg run --json --memory 64M -- sudo python3 -c 'x = bytearray(300 << 20)'
check "the memory limit holds for sudo" all json 'r["limit"] == "memory"' -- is_not status_is 0
sg run --json --disk 8M -- sudo dd if=/dev/zero of=/root/f bs=1M
check "the disk limit holds for sudo" json 'r["limit"] == "disk"'
sg run --json --pids 20 -- sudo python3 -c 'import os, time
for i in range(100):
    if os.fork() == 0: time.sleep(60)'
check "the limit of processes holds for sudo" all json 'r["limit"] == "pids"' -- is_not status_is 0
sg run -- sh -c 'for i in $(seq 20); do sudo sh -c "echo $i" & done | sort -n | tr "\n" " "; wait'
check "twenty at once" gives 0 "$(seq 20 | tr '\n' ' ')"
sg run -- sh -c 'sudo setsid sleep 424245 >/dev/null 2>&1 & sleep 0.3; echo end'
check "what it left in the background ends with the run" all gives 0 end -- has_no_process 424245

# ---- no way out ----------------------------------------------------------------------------------

sg run -- sudo sh -c 'grep CapEff /proc/self/status; echo 1 > /proc/sys/kernel/hostname; mount -t tmpfs x /mnt; unshare -U true' 
check "root by sudo is no more than root inside" all is_not status_is 0 -- out_has 'CapEff:.00000000000404fb$'

finish
