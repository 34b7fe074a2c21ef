#!/bin/bash
# `sandglass run --network`, with a guard that says where each connection was meant to go.
. "$(dirname "$0")/lib.sh"

reachable
export SANDGLASS_GUARD_PROGRAM=$REACHABLE/egress_echo.py
ASK='import socket,sys
def ask(host, port, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    s.settimeout(10)
    s.connect((host, port))
    if kind == socket.SOCK_DGRAM:
        s.send(b"x")
    said = b""
    while data := s.recv(9999):
        said += data
        if kind == socket.SOCK_DGRAM:
            break
    return said.decode()
'

for user in $USERS; do
    sg run --approve -u "$user" --network allow "$ASK"'print(ask("198.51.100.7", 443), ask("2001:db8::7", 80))'
    check "$user: connections come to the guard" gives 0 '198.51.100.7 443 2001:db8::7 80'
    sg run --approve -u "$user" --network allow "$ASK"'print(ask("198.51.100.7", 999, socket.SOCK_DGRAM))'
    check "$user: so do datagrams, and are answered" gives 0 '198.51.100.7 999 x'
    sg run -u "$user" "$ASK"'ask("198.51.100.7", 443)'
    check "$user: without --network connecting fails at once" \
        all status_is 1 -- err_has 'Network is unreachable' -- is_not err_has timed
done

run "$PY" "$HERE/without_bpf.py" "$SG" run --approve --network allow "$ASK"'print(ask("198.51.100.7", 443), ask("2001:db8::7", 80))'
check "on a kernel without BPF they come another way" gives 0 '198.51.100.7 443 2001:db8::7 80'

# What the guard is told: port 7 says it.
DOCUMENT="$ASK"'print(ask("198.51.100.7", 7).splitlines()[-1])'
sg run --approve --network allow "$DOCUMENT"
check "allow: everything" all status_is 0 -- json 'r["default"] == "allow" and r["allow"] == r["deny"] == []'
sg run --approve --network 'a.test,*.b.test,192.0.2.0/24,!192.0.2.7' "$DOCUMENT"
check "a list: nothing else" all status_is 0 -- json 'r["default"] == "deny" and r["fakeIp"] is True' -- \
    json 'r["allow"] == ["a.test", "*.b.test", "192.0.2.0/24"] and r["deny"] == ["192.0.2.7"]'
sg run --approve --network '!*.ads.test' "$DOCUMENT"
check "a list of what is denied: everything else" all status_is 0 -- \
    json 'r["default"] == "allow" and r["deny"] == ["*.ads.test"]'
SANDGLASS_EGRESS_DENY=c.test SANDGLASS_EGRESS_DNS=192.0.2.53 SANDGLASS_STORE=memory \
    sg run --approve --network allow "$ASK"'print(ask("198.51.100.7", 7))'
check "the operator's settings of egress count, and no others" all status_is 0 -- out_has '^egress_deny = c.test$' -- \
    out_has '^egress_dns = 192.0.2.53$' -- out_has '^store = sqlite$' -- out_has '^log_level = error$'
SANDGLASS_EGRESS_FLOWS=0 sg run --approve --network allow 'print(1)'
check "bad settings are named" refuses 2 "SANDGLASS_EGRESS_FLOWS '0'"

sg run --approve --network allow "$ASK"'
for _ in range(3):
    try:
        ask("198.51.100.7", 9)
    except ConnectionError:
        pass
    print(ask("198.51.100.7", 1))'
check "a guard that dies is replaced" gives 0 $'198.51.100.7 1\n198.51.100.7 1\n198.51.100.7 1'
sg run --approve --network allow -- getent hosts localhost
check "its own names are its own" all status_is 0 -- out_has '::1|127.0.0.1'
sg run --approve --network allow --timeout 1s "$ASK"'
import time
ask("198.51.100.7", 1)
time.sleep(60)'
check "a time limit ends it all the same" status_is 124

for list in '' 'a.test,' 'a.test,,b.test' '192.0.2.0/33' 'http://a.test' 'a.test:80' '*' open; do
    sg run --approve --network "$list" 'print(1)'
    check "bad list '$list'" refuses 2 '--network'
done
SANDGLASS_GUARD_PROGRAM=/nowhere/guard sg run --approve --network allow 'print(1)'
check "a guard that is not there is named" refuses 125 "'/nowhere/guard'"
mkdir "$T/bin" && cp "$SG" "$T/bin/sandglass"
run env -u SANDGLASS_GUARD_PROGRAM "$T/bin/sandglass" run --approve --network allow 'print(1)'
check "one that is not installed is asked for" \
    sh -c '[ -e /usr/libexec/sandglass/sandglass-guard ] || [ -e /usr/local/libexec/sandglass/sandglass-guard ] || grep -q "sandglass-guard is not installed" "$T/err"'
run env -u SANDGLASS_GUARD_PROGRAM "$T/bin/sandglass" run 'print(1)'
check "... and not needed without a network" gives 0 1

finish
