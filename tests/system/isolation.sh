#!/bin/bash
# S2, E4: what a sandbox sees is its own: files, processes, network, ids. Nothing of it lasts.
. "$(dirname "$0")/lib.sh"

SECRET=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')

# ---- nothing persists (S2) -----------------------------------------------------------------------

sg run -- sh -c 'for d in ~ /tmp /var/tmp /dev/shm /run/lock; do echo x > $d/left-here && cat $d/left-here; done'
check "user: places to write" gives 0 $'x\nx\nx\nx\nx'
sg run -u root -- sh -c 'for d in ~ /home/user / /etc /usr/local/bin /var/lib /opt /srv /tmp /dev/shm /run; do echo x > $d/left-here || exit; done; rm -rf /etc/passwd /usr/local/lib; echo done'
check "root: all but /usr can be written" gives 0 "done"
for user in $USERS; do
    sg run -u "$user" -- sh -c 'find / -xdev -name left-here 2>/dev/null; ls /usr/local/bin/left-here /dev/shm/left-here /usr/local/lib 2>&1 | grep -c "No such"; grep -c ^user: /etc/passwd; stat -c %a /usr'
    check "$user: the next sandbox is new" gives 0 $'2\n1\n755'
done
check "nothing of it is on the host" \
    [ -z "$(find / -xdev -name left-here -not -path '/proc/*' 2>/dev/null)" ]
check "the host's /usr and /etc are as they were" \
    all test -d /usr/lib/python3 -- test -s /etc/passwd -- [ "$(stat -c %a /usr)" = 755 ]

for user in $USERS; do
    sg run -u "$user" -- sh -c 'ls -A ~ | sort | tr "\n" " "; ls -A /tmp /var/tmp /dev/shm /mnt /media /srv /opt /home | tr -s "\n" " "'
    check "$user: home is fresh, the other places are empty" \
        gives 0 ".bashrc .cache .profile /dev/shm: /home: user /media: /mnt: /opt: /srv: /tmp: /var/tmp: "
done

# ---- what is there of the host -------------------------------------------------------------------

for user in $USERS; do
    sg run -u "$user" -- sh -c 'ls -A / | sort | tr "\n" " "'
    check "$user: the root directory" gives 0 \
        "bin dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sbin srv sys tmp usr var "
    sg run -u "$user" -- sh -c 'ls -A /dev | sort | tr "\n" " "'
    check "$user: devices" gives 0 "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "
    sg run -u "$user" -- sh -c 'ls -A /usr/local/* | tr -d "\n"; ls /sys /sys/devices/system/cpu /sys/fs | tr "\n" " "'
    check "$user: /usr/local has sudo, a word instead of crontab, python, the kernels and tools of ready commands only, /sys has its own limits only" gives 0 \
        "/usr/local/bin:crontabpythonsudo/usr/local/etc:/usr/local/games:/usr/local/include:/usr/local/lib:sandglasssandglass-tools/usr/local/sbin:/usr/local/share:/usr/local/src:/sys: devices fs limits  /sys/devices/system/cpu: online possible present  /sys/fs: cgroup "
    sg run -u "$user" -- sh -c 'ls -d /etc/machine-id /etc/hostname.old /etc/ssh /boot /work /var/lib/sandglass /run/sandglass/slots /sys/kernel /sys/class /var/log/* "$0" 2>/dev/null' "$TOP"
    check "$user: no state of the host" gives 2 ''
    sg run -u "$user" -- sh -c 'cut -d: -f1,3 /etc/passwd | grep -E "^(root|user):" | sort; test "$(wc -l < /etc/passwd)" -lt 15'
    check "$user: users of its own" gives 0 $'root:0\nuser:1000'
done
echo "$SECRET" >"$T/secret"
chmod 644 "$T/secret"
for user in $USERS; do
    sg run -u "$user" -- sh -c 'cat "$0"; grep -rs "$1" / --include=secret -l' "$T/secret" "$SECRET"
    check "$user: a file of the host is not there" all is_not out_has . -- is_not status_is 0
done

sg run -- sh -c 'for p in /usr/bin/x /etc/x /x /root/x /home/x /var/lib/x /proc/sys/kernel/hostname /dev/x; do echo 1 > $p && echo "$p written"; done 2>/dev/null; echo end'
check "user: cannot write what belongs to root inside" gives 0 end
sg run -u root -- sh -c 'for p in /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger /dev/x /proc/irq/default_smp_affinity; do echo 1 > $p && echo "$p written"; done 2>/dev/null; echo end'
check "root: cannot write to the kernel" gives 0 end
sg run -u root -- sh -c 'for p in /usr/x /usr/bin/x /usr/bin/env /usr/lib/python3/x /usr/share/x; do echo 1 > $p && echo "$p written"; done 2>/dev/null; rm -f /usr/bin/env 2>/dev/null; chmod 777 /usr/bin/env 2>/dev/null; command -v env'
check "root: cannot change the host's programs" gives 0 /usr/bin/env
sg run -u root -- sh -c 'cp /usr/bin/true /usr/local/bin/ls && ls / && rm /usr/local/bin/ls && ls -d /'
check "root: /usr/local is its own and comes first" gives 0 /

# Each sandbox is a boot of its own, and nobody inside can change which.
BOOT_ID='cat /proc/sys/kernel/random/boot_id; cd /proc/sys/kernel/random; echo x > boot_id; rm -f boot_id; cat boot_id'
sg run -u root -- sh -c "$BOOT_ID" && cp "$T/out" "$T/first"
sg run -- sh -c "$BOOT_ID"
check "each sandbox has a boot id of its own, and keeps it" all \
    [ "$(sort -u "$T/first" | grep -cE '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')" = 1 ] -- \
    [ "$(cat "$T/out" "$T/first" /proc/sys/kernel/random/boot_id | sort -u | wc -l)" = 3 ]
sg run -- sh -c 'touch f; python3 -c "import os; os.setxattr(\"f\", \"user.k\", b\"v\"); print(os.getxattr(\"f\", \"user.k\"))"'
check "files can have attributes" gives 0 "b'v'"

# ---- network (E4) --------------------------------------------------------------------------------

NET='import errno, socket, sys, time
for family, address in ((socket.AF_INET, "1.1.1.1"), (socket.AF_INET, "10.0.0.1"), (socket.AF_INET, "169.254.169.254"),
                        (socket.AF_INET6, "2606:4700:4700::1111")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        s.settimeout(20)
        try:
            s.connect((address, 53)); print("connected", address)
        except OSError as e:
            if e.errno != errno.ENETUNREACH: print(address, e)
try:
    socket.getaddrinfo("example.com", 80); print("resolved")
except socket.gaierror: pass
print([n for _, n in socket.if_nameindex()])'
for user in $USERS; do
    for option in "" "--network block"; do
        # shellcheck disable=SC2086
        sg run -u "$user" $option "$NET"
        check "$user: no network${option:+ ($option)}: unreachable at once, only lo" gives 0 "['lo']"
    done
    sg run -u "$user" 'import socket, threading
s = socket.create_server(("127.0.0.1", 8080))
threading.Thread(target=lambda: s.accept()[0].sendall(b"own server"), daemon=True).start()
print(socket.create_connection(("127.0.0.1", 8080)).recv(99).decode())
s6 = socket.create_server(("::1", 8081), family=socket.AF_INET6)
print("port 80 of its own:", socket.create_server(("127.0.0.1", 80)).getsockname()[1])'
    check "$user: its own loopback works" gives 0 $'own server\nport 80 of its own: 80'
done

"$PY" -c '
import socket, sys, time
a = socket.create_server(("0.0.0.0", 0)); print(a.getsockname()[1])
u = socket.socket(socket.AF_UNIX); u.bind("\0sandglass-test-" + sys.argv[1]); u.listen()
sys.stdout.flush(); time.sleep(600)' "$SECRET" >"$T/port" &
server=$!
until_true test -s "$T/port"
for user in $USERS; do
    sg run -u "$user" "import socket
for family, to in ((socket.AF_INET, ('127.0.0.1', $(cat "$T/port"))), (socket.AF_UNIX, '\0sandglass-test-$SECRET')):
    try:
        socket.socket(family).connect(to); print('reached', to)
    except ConnectionRefusedError: print('refused')"
    check "$user: no socket of the host is reached" gives 0 $'refused\nrefused'
done
kill "$server"
wait "$server" 2>/dev/null
sg run 'import socket
s = socket.create_server(("0.0.0.0", 18765)); print("bound")
try:
    s.settimeout(1.5); s.accept(); print("somebody came")
except TimeoutError: pass' &
lonely=$!
sleep 0.7
check "the host does not reach a server inside" \
    is_not "$PY" -c 'import socket; socket.create_connection(("127.0.0.1", 18765), 1)'
wait "$lonely"
check "... that was there" gives 0 bound

# ---- names and processes -------------------------------------------------------------------------

name=$(hostname)
for user in $USERS; do
    sg run -u "$user" -- hostname
    check "$user: the host name" gives 0 sandbox
    sg run -u "$user" --hostname sandbox-7.example -- uname -n
    check "$user: --hostname" gives 0 sandbox-7.example
    sg run -u "$user" -- sh -c 'hostname other 2>/dev/null; hostname'
    check "$user: it cannot be changed inside" gives 0 sandbox
    sg run -u "$user" -- sh -c 'cat /proc/1/comm; ls /proc | grep -c "^[0-9]*$" | { read n; [ "$n" -le 6 ] && echo few; }; [ $$ -lt 100 ] && echo low'
    check "$user: a pid namespace of its own, the agent is pid 1" gives 0 $'sg-agent\nfew\nlow'
    sg run -u "$user" -- sh -c 'kill -9 1; kill -TERM 1; kill -STOP 1; echo alive'
    check "$user: the agent cannot be killed" all status_is 0 -- out_is alive
    sg run -u "$user" -- sh -c 'ls /proc/1/fd; readlink /proc/1/cwd /proc/1/exe /proc/1/root; cat /proc/1/environ /proc/1/maps /proc/1/mem'
    check "$user: the agent cannot be looked into" all is_not status_is 0 -- out_is ''
    sg run -u "$user" -- cat /proc/self/cgroup
    check "$user: no path of the host's control groups" all out_has ':/$' -- is_not out_has ':/.'
done
check "the host keeps its name" [ "$(hostname)" = "$name" ]

# ---- mounts --------------------------------------------------------------------------------------

for user in $USERS; do
    sg run -u "$user" -- sh -c 'cut -d" " -f5 /proc/self/mountinfo | grep -vE "^/(proc/|usr/[^l]|sys/fs/cgroup/)" | sort -u | tr "\n" " "'
    check "$user: the mounts" gives 0 "/ /dev /dev/pts /dev/shm /proc /sys /sys/fs/cgroup /sys/limits /usr /usr/local "
    # The host's /usr names its file system; that is all.
    sg run -u "$user" -- grep -hv " /usr " /proc/self/mountinfo /proc/mounts /proc/self/mountstats
    check "$user: they tell nothing of the host" \
        is_not out_has "/var/lib|/run/sandglass|template|$T|$TOP|/dev/(vd|sd|nvme|mapper)|ext4|xfs|btrfs"
    sg run -u "$user" -- sh -c 'mount -t tmpfs x /mnt 2>/dev/null || umount /proc 2>/dev/null || mount -o remount,rw /proc/sys 2>/dev/null || echo refused'
    check "$user: they cannot be changed" gives 0 refused
    sg run -u "$user" -- sh -c 'for f in config.gz fb interrupts iomem ioports kallsyms kcore key-users keys kmsg kpagecgroup kpagecount kpageflags latency_stats modules pagetypeinfo sched_debug slabinfo sysrq-trigger timer_list timer_stats vmallocinfo; do test -e /proc/$f && cat /proc/$f 2>/dev/null | head -c 10; done; for d in acpi asound scsi; do ls /proc/$d 2>/dev/null; done; echo end'
    check "$user: /proc is masked" gives 0 end
done

# ---- rights and ids ------------------------------------------------------------------------------

sg run -- sh -c 'grep -E "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):" /proc/self/status | tr -s "\t\n" " "'
check "user: no capabilities, no new ones, a system-call filter" gives 0 \
    "CapInh: 0000000000000000 CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 00000000000404fb CapAmb: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 "
sg run -u root -- sh -c 'grep -E "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):" /proc/self/status | tr -s "\t\n" " "'
check "root: the capabilities of set-up tools only" gives 0 \
    "CapInh: 0000000000000000 CapPrm: 00000000000404fb CapEff: 00000000000404fb CapBnd: 00000000000404fb CapAmb: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 "
for user in $USERS; do
    sg run -u "$user" -- sh -c 'for ns in -U -m -n -p -i -u -C; do unshare $ns true 2>/dev/null && echo "$ns made"; done; echo none'
    check "$user: no namespaces inside" gives 0 none
    sg run -u "$user" -- sh -c 'id -G; awk "{ print \$1, \$3 }" /proc/self/uid_map /proc/self/gid_map'
    check "$user: 65,536 ids, no further groups" gives 0 "$([ "$user" = root ] && echo 0 || echo 1000)"$'\n0 65536\n0 65536'
done
sg run -u root -- sh -c 'touch /tmp/f && chown user:user /tmp/f && stat -c %U:%G /tmp/f && setpriv --reuid=user --regid=user --clear-groups id -u && chown 65535 /tmp/f && ! chown 65536 /tmp/f 2>/dev/null'
check "root: owns and gives away, inside its range" gives 0 $'user:user\n1000'

# Two at once, seen from the host: each process has an id of its own sandbox's range.
start "$SG" run -- sleep 424242
first=$PID
start "$SG" run -u root -- sleep 424243
second=$PID
until_true has_process 424242
until_true has_process 424243
id_of()
{
    awk '/^Uid:/ { print $2 }' "/proc/$(host_pids "$1")/status"
}
a=$(id_of 424242)
b=$(id_of 424243)
check "ids on the host are in the reserved range" \
    all [ "$a" -ge $((0x10000000)) ] -- [ "$b" -ge $((0x10000000)) ] -- [ "$b" -lt $((0xF0000000)) ]
check "user is 1000 and root is 0 of a range" all [ $((a % 65536)) -eq 1000 ] -- [ $((b % 65536)) -eq 0 ]
check "two sandboxes have different ranges" [ $((a / 65536)) -ne $((b / 65536)) ]
for ns in user mnt pid ipc uts net cgroup; do
    check "two sandboxes and the host have different $ns namespaces" \
        [ "$({ readlink "/proc/$(host_pids 424242)/ns/$ns" "/proc/$(host_pids 424243)/ns/$ns"; readlink /proc/self/ns/$ns; } | sort -u | wc -l)" -eq 3 ]
done

kill "$first" "$second"
wait "$first" "$second" 2>/dev/null

finish
