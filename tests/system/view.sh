#!/bin/bash
# "Limits are visible": what programs see of memory, processors and processes is the sandbox's own, and they size themselves by it.
. "$(dirname "$0")/lib.sh"

HOST_CPUS=$(nproc)
MOST=$((HOST_CPUS < 2 ? HOST_CPUS : 2))

# ---- what tools say ------------------------------------------------------------------------------

for user in $USERS; do
    sg run -u "$user" --memory 512M -- sh -c 'free -m | awk "/^Mem:/ {print \$2}"; free -m | awk "/^Swap:/ {print \$2}"; cat /proc/swaps'
    check "$user: free has the limit, and no swap" gives 0 $'512\n0\nFilename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority'
    sg run -u "$user" --memory 512M 'import mmap
def used():
    lines = dict(line.split(":") for line in open("/proc/meminfo"))
    return (int(lines["MemTotal"].split()[0]) - int(lines["MemAvailable"].split()[0])) // 1024
before = used()
held = mmap.mmap(-1, 100 << 20)
held.write(b"x" * (100 << 20))
grown = used() - before
held.close()
print(before < 100, 95 <= grown <= 110, used() < before + 20)'
    check "$user: what a program takes is used, and free again after it" gives 0 "True True True"
    sg run -u "$user" --memory 512M 'import time
with open("/proc/meminfo") as file:
    first = file.read()
    held = b"x" * (50 << 20)
    time.sleep(2.5)
    file.seek(0)
    print(first != file.read())'
    check "$user: a file that stays open is kept up to date" gives 0 True
    sg run -u "$user" --cpus 1 -- sh -c 'grep -c ^processor /proc/cpuinfo; grep -c "^cpu[0-9]" /proc/stat; cat /sys/devices/system/cpu/online /sys/devices/system/cpu/possible /sys/devices/system/cpu/present; cut -d" " -f1-3 /proc/loadavg | grep -cE "^[0-9.]+ [0-9.]+ [0-9.]+$"; nproc'
    check "$user: one processor" gives 0 $'1\n1\n0\n0\n0\n1\n1'
    sg run -u "$user" --cpus 2 -- sh -c 'grep -c ^processor /proc/cpuinfo; python3 -c "import os; print(os.cpu_count())"; nproc'
    check "$user: two processors" gives 0 "$(printf '%s\n' "$MOST" "$MOST" "$MOST")"
    sg run -u "$user" --disk 64M -- sh -c 'df -m --output=size / | tail -1 | tr -d " "'
    check "$user: df has the disk's size" gives 0 64
    sg run -u "$user" -- sh -c 'sleep 0.1; ps -o etimes= -p $$ | awk "{print (\$1 < 60)}"; top -bn1 | grep -c "^ *[0-9].*top$"'
    check "$user: ps and top work" gives 0 $'1\n1'
done

# ---- the control group ---------------------------------------------------------------------------

SEEN='cd /sys/fs/cgroup && for f in memory.max memory.swap.max cpu.max pids.max; do echo "$f $(cat $f)"; done
    tr " " "\n" <cgroup.controllers | grep -cxE "memory|cpu|pids"
    grep -cE "^inactive_file [0-9]+$" memory.stat; grep -cE "^nr_periods [0-9]+$" cpu.stat
    test "$(cat memory.current)" -gt 100000 && test "$(cat pids.current)" -ge 2 && echo used'
for user in $USERS; do
    sg run -u "$user" --memory 512M --cpus 0.5 --pids 77 -- sh -c "$SEEN"
    check "$user: the control group, as version 2 has it" all out_has '^memory.max 536870912$' -- \
        out_has '^memory.swap.max (0|max|)$' -- out_has '^cpu.max 50000 100000$' -- out_has '^pids.max 78$' -- \
        out_has '^used$' -- [ "$(sed -n 5,7p "$T/out" | tr '\n' ' ')" = "3 1 1 " ]
    sg run -u "$user" -- sh -c 'for f in /proc/meminfo /proc/stat /proc/cpuinfo /proc/swaps /proc/loadavg /sys/limits/meminfo /sys/devices/system/cpu/online /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/limits/new /sys/fs/cgroup/new; do echo 1 2>/dev/null >$f && echo "$f written"; chmod 666 $f && echo "$f changed"; done 2>/dev/null; mkdir /sys/fs/cgroup/new /sys/fs/cgroup/memory/new 2>/dev/null && echo made; echo end'
    check "$user: none of it can be written" gives 0 end
    sg run -u "$user" -- sh -c 'for f in $(find /sys -type f ! -perm 0200 ! -perm 0000 ! -name cgroup.event_control ! -name "memory.*force_empty" ! -name memory.pressure_level ! -name cgroup.kill ! -name memory.reclaim) /sys/devices/system/cpu/* /proc/meminfo /proc/cpuinfo /proc/stat /proc/uptime /proc/loadavg /proc/swaps /proc/cgroups; do cat $f >/dev/null || echo $f; done 2>&1 | grep -v "memory.kmem.slabinfo\|Invalid argument\|not supported"; echo end'
    check "$user: all of it can be read" gives 0 end
done

# ---- runtimes size themselves --------------------------------------------------------------------

heap_is()
{
    local bytes
    bytes=$(awk '/ MaxHeapSize / {print $4}' "$T/out")
    [ -n "$bytes" ] && [ "$bytes" -ge $(($1 << 20)) ] && [ "$bytes" -le $(($2 << 20)) ]
}
sg run --memory 512M --timeout 60s -- java -XX:+PrintFlagsFinal -version
check "java: a quarter of 512 MiB" heap_is 120 136
sg run --memory 2G --timeout 60s -- java -XX:+PrintFlagsFinal -version
check "java: a quarter of 2 GiB" heap_is 504 520
sg run --memory 1G --cpus 0.5 --timeout 60s -- sh -c 'echo "System.out.println(Runtime.getRuntime().availableProcessors()); System.out.println(((com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean()).getTotalMemorySize() >> 20)" | jshell -s - 2>/dev/null'
check "java: processors and memory" gives 0 $'1\n1024'
sg run -l js --memory 512M --cpus 1 'const os = require("os"); console.log(os.totalmem() >> 20, os.cpus().length, process.constrainedMemory() / 1048576, os.totalmem() - os.freemem() < 200 * 1048576)'
check "node: memory and processors" gives 0 "512 1 512 true"
sg run --memory 512M --cpus 1 'import os
print(os.cpu_count(), int(open("/sys/fs/cgroup/memory.max").read()) >> 20)'
check "python: processors and memory" gives 0 "1 512"

finish
