#!/bin/bash
# E1: `--json` prints one ExecutionResult, with the same fields whatever was run and however it ended.
. "$(dirname "$0")/lib.sh"

FIELDS='["stdout", "stderr", "results", "exit_code", "duration_ms", "status", "error_message", "limit",
         "resource_usage", "limits_applied"]'
USAGE='["cpu_user_ms", "cpu_system_ms", "memory_peak_bytes", "disk_bytes", "stdout_bytes", "stderr_bytes"]'
LIMITS='["timeout_ms", "memory_bytes", "cpus", "pids", "disk_bytes", "disk_inodes", "output_bytes"]'

# One line of JSON on standard output, with all fields of the right types; nothing on standard error.
well_formed()
{
    local rule
    rule="list(r) == $FIELDS
        and type(r['stdout']) is str and type(r['stderr']) is str
        and type(r['results']) is list and all(type(v) is dict for v in r['results'])
        and type(r['exit_code']) is int and r['exit_code'] == $STATUS
        and type(r['duration_ms']) in (int, float) and r['duration_ms'] >= 0
        and r['status'] in ('success', 'timeout', 'execution_error', 'setup_error')
        and (r['error_message'] is None or type(r['error_message']) is str)
        and r['error_message'] != '' and len((r['error_message'] or '-').splitlines()) == 1
        and r['limit'] in (None, 'time', 'memory', 'pids', 'disk', 'output')
        and (r['status'] == 'setup_error') == (r['resource_usage'] is None)
        and (r['status'] == 'setup_error') == (r['limits_applied'] is None)
        and (r['status'] == 'success') == (r['exit_code'] == 0)
        and list(r['resource_usage'] or $USAGE) == $USAGE
        and all(type(v) in (int, float) and v >= 0 for v in (r['resource_usage'] or {}).values())
        and list(r['limits_applied'] or $LIMITS) == $LIMITS
        and all(type(v) in (int, float) and v > 0 for v in (r['limits_applied'] or {}).values())"
    err_is '' && [ "$(wc -l <"$T/out")" -eq 1 ] && json "($rule)"
}

# ---- each way to run, each way to end --------------------------------------------------------------

echo 'print("file")' >"$T/a.py"
for user in $USERS; do
    sg run --json -u "$user" 'print("code")'
    check "$user: code: all fields" well_formed
    check "$user: code: success" \
        json 'r["status"] == "success" and r["stdout"] == "code\n" and r["stderr"] == "" and r["error_message"] is None and r["limit"] is None'

    sg run --json -u "$user" -f "$T/a.py"
    check "$user: file: all fields" well_formed
    check "$user: file: success" json 'r["status"] == "success" and r["stdout"] == "file\n"'

    run "$SG" run --json -u "$user" - <<<'print("stdin")'
    check "$user: standard input: all fields" all well_formed -- json 'r["stdout"] == "stdin\n"'

    sg run --json -u "$user" -- sh -c 'echo out; echo err >&2; exit 3'
    check "$user: a program that fails: all fields" all status_is 3 -- well_formed
    check "$user: a program that fails: execution_error" \
        json 'r["status"] == "execution_error" and r["exit_code"] == 3 and r["stdout"] == "out\n" and r["stderr"] == "err\n" and "3" in r["error_message"] and r["limit"] is None'

    sg run --json -u "$user" 'import os; print("before", flush=True); os.kill(os.getpid(), 9)'
    check "$user: a signal: all fields" all status_is 137 -- well_formed
    check "$user: a signal: named, output kept" \
        json 'r["status"] == "execution_error" and r["stdout"] == "before\n" and "signal 9" in r["error_message"] and "KILL" in r["error_message"] and r["limit"] is None'

    sg run --json -u "$user" --timeout 700ms 'import time; print("before", flush=True); time.sleep(60)'
    check "$user: timeout: all fields" all status_is 124 -- well_formed
    check "$user: timeout: named, output kept" \
        json 'r["status"] == "timeout" and r["exit_code"] == 124 and r["limit"] == "time" and r["stdout"] == "before\n" and "700 ms" in r["error_message"] and r["duration_ms"] >= 700 and r["limits_applied"]["timeout_ms"] == 700'
done

sg run --json -- no-such-program
check "setup_error: all fields" all status_is 125 -- well_formed
check "setup_error: says what is wrong" \
    json 'r["status"] == "setup_error" and r["exit_code"] == 125 and "no-such-program" in r["error_message"] and r["stdout"] == "" and r["stderr"] == ""'
sg run --json --network allow 'print(1)'
check "a refusal by the policy is a setup_error" all status_is 125 -- well_formed -- json '"network" in r["error_message"]'
run as_nobody "$SG" run --json 'print(1)'
check "no root is a setup_error" all status_is 125 -- well_formed -- json '"root" in r["error_message"]'

for bad in "--timeout -1s" "--memory lots" "--language cobol" "--no-such-option" "-f /no/such/file.py"; do
    # shellcheck disable=SC2086
    sg run --json $bad
    check "bad usage stays text on standard error: $bad" refuses 2 .
done

# ---- results of a cell ---------------------------------------------------------------------------

sg run --json $'display("shown")\n[1, "two"]'
check "results: what was displayed, and the value" all well_formed -- \
    json '[x["main"] for x in r["results"]] == [False, True] and r["results"][1]["text"] == "[1, \u0027two\u0027]" and r["stdout"].endswith("two\u0027]\n")'
sg run --json $'class S:\n  def _repr_svg_(self): return "<svg/>"\nS()'
check "... in all their forms" json 'r["results"][0]["svg"] == "<svg/>" and "text" in r["results"][0]'
sg run --json -l js '({a: 1})'
check "... of javascript too" json 'r["results"][0]["main"] is True and "1" in r["results"][0]["text"]'
sg run --json $'display(1)\nimport time\ntime.sleep(60)' --timeout 1s
check "... as far as they came" json 'r["status"] == "timeout" and [x["text"] for x in r["results"]] == ["1"]'
sg run --json -- true
check "a command has none" all well_formed -- json 'r["results"] == []'
sg run --json $'import glob, sys\ndisplay(1)
for f in glob.glob("/tmp/.sandglass-results-*"):
    open(f, "a").write("not json\\n[1]\\n{\\"a\\": 1}\\n{\\"a\\": \\"\\x01\\"}\\n{\\"cut")'
check "what the code itself writes there is checked" all well_formed -- \
    json '[x.get("text") or x["a"] for x in r["results"]] == ["1", 1]'

# ---- text ----------------------------------------------------------------------------------------

sg run --json 'print("quote \" backslash \\ tab \t bell \a null \0 del \x7f ünï ☃ 🎉", end="")'
check "every character comes back as it was" \
    json 'r["stdout"] == "quote \" backslash \\ tab \t bell \a null \0 del \x7f ünï ☃ 🎉"'
sg run --json 'import sys; sys.stdout.buffer.write(b"a\xff\xfeb\xe2\x98");'
check "bytes that are not UTF-8 become U+FFFD" \
    json 'r["stdout"][0] == "a" and "b" in r["stdout"] and "\ufffd" in r["stdout"] and r["stdout"].strip("ab\ufffd") == "" and r["resource_usage"]["stdout_bytes"] == 6'
sg run --json 'print("<script>&</script>\u2028\x1b[31m", end="")'
check "markup and escapes come back as they were" json 'r["stdout"] == "<script>&</script>\u2028\x1b[31m"'
check "... and no control byte is in the document itself" \
    [ "$(tr -d '\040-\176\200-\377\n' <"$T/out" | wc -c)" -eq 0 ]
sg run --json 'print("x" * 8000000, end="")'
check "8 MB of output in one document" all well_formed -- json 'len(r["stdout"]) == 8000000'
sg run --json 'print("\x01" * 3000000, end="")'
check "3 MB of control characters in one document" all well_formed -- json 'r["stdout"] == chr(1) * 3000000'
"$SG" run --json 'print(1)' >/dev/full 2>"$T/err"
STATUS=$?
: >"$T/out"
check "a result that cannot be written is told" refuses 125 "cannot write"

# ---- numbers -------------------------------------------------------------------------------------

sg run --json 'print(1)'
check "the default limits" json 'r["limits_applied"] == {"timeout_ms": 30000, "memory_bytes": 1 << 30, "cpus": 1, "pids": 512, "disk_bytes": 512 << 20, "disk_inodes": 131072, "output_bytes": 8 << 20}'
sg run --json --timeout 1m --memory 128M --cpus 0.5 --pids 64 --disk 16M --output-limit 512K 'print(1)'
check "the limits that were asked for" json 'r["limits_applied"] == {"timeout_ms": 60000, "memory_bytes": 128 << 20, "cpus": 0.5, "pids": 64, "disk_bytes": 16 << 20, "disk_inodes": 4096, "output_bytes": 512 << 10}'
sg run --json --timeout=2h --memory=2G --disk=1G --output-limit=1M --cpus=2 'print(1)'
check "... in larger units" json '[r["limits_applied"][k] for k in ("timeout_ms", "memory_bytes", "disk_bytes", "output_bytes", "cpus")] == [7200000, 2 << 30, 1 << 30, 1 << 20, 2]'

for user in $USERS; do
    sg run --json -u "$user" 'import time
x = bytearray(60 << 20)
open("/tmp/file", "wb").write(bytes(3 << 20))
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
print("12345")'
    check "$user: memory in use at its peak" json '60 << 20 <= r["resource_usage"]["memory_peak_bytes"] <= 1 << 30'
    check "$user: disk in use" json '3 << 20 <= r["resource_usage"]["disk_bytes"] < 4 << 20'
    check "$user: processor time" json 'r["resource_usage"]["cpu_user_ms"] + r["resource_usage"]["cpu_system_ms"] >= 290'
    check "$user: bytes written" json 'r["resource_usage"]["stdout_bytes"] == 6 and r["resource_usage"]["stderr_bytes"] == 0'
    check "$user: duration" json '290 <= r["duration_ms"] < 30000'
done
sg run --json -- sh -c 'python3 -c "import time
while time.process_time() < 0.3: pass"'
check "the processor time of children counts" json 'r["resource_usage"]["cpu_user_ms"] + r["resource_usage"]["cpu_system_ms"] >= 290'

finish
