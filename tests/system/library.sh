#!/bin/bash
# E1, E3, S2-S4, S7-S9 through libsandglass: programs that are compiled against what was installed.
. "$(dirname "$0")/lib.sh"

D=$T/dest
run make -C "$TOP" --no-print-directory install DESTDIR="$D" PREFIX=/usr/local
check "the library is installed" status_is 0
INCLUDE=$D/usr/local/include
LIB=$(dirname "$(find "$D" -name 'libsandglass.so' | head -n 1)")
export LD_LIBRARY_PATH=$LIB

for example in "$TOP"/examples/*.c; do
    name=$(basename "$example" .c)
    for compiler in gcc clang; do
        run "$compiler" -std=c17 -Wall -Wextra -Wpedantic -Werror -I"$INCLUDE" -o "$T/$name" "$example" -L"$LIB" -lsandglass
        check "$compiler compiles examples/$name.c" all status_is 0 -- err_is ''
        run "$T/$name"
        check "examples/$name runs" all status_is 0 -- err_is ''
    done
done
run "$T/run_code"
check "examples/run_code: its output" gives 0 $'sum: 5050\nuser id: 1000\nstatus: success, exit code: 0, limit: none'
run "$T/session"
check "examples/session: its output" gives 0 $'written\n[1, 2, 3] add up to 6'
run gcc -std=c17 -Wall -Werror -I"$INCLUDE" -o "$T/static" "$TOP/examples/run_code.c" "$LIB/libsandglass.a"
check "the static library links" all status_is 0 -- err_is ''
LD_LIBRARY_PATH='' run "$T/static"
check "... and runs" all status_is 0 -- out_has '^sum: 5050$'

echo '#include <sandglass.h>
int main(void) { struct sg_error e; sg_language l; return sg_language_parse("py", &l, &e) < 0; }' >"$T/cxx.cc"
run g++ -std=c++20 -Wall -Wextra -Werror -I"$INCLUDE" -o "$T/cxx" "$T/cxx.cc" -L"$LIB" -lsandglass
check "the header serves C++" all status_is 0 -- err_is ''
run "$T/cxx"
check "... with C linkage" status_is 0
echo '#include <sandglass.h>' >"$T/alone.c"
run gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$INCLUDE" -c -o "$T/alone.o" "$T/alone.c"
check "the header stands alone, in C11" all status_is 0 -- err_is ''

# The example of the manual page is a program too.
sed -n '/^# EXAMPLES/,$p' "$TOP/man/sandglass.3.scd" | sed -n '/^```$/,/^```$/p' | sed '/^```$/d; s/\\\\/\\/g' >"$T/manual.c"
run gcc -std=c17 -Wall -Wextra -Werror -I"$INCLUDE" -o "$T/manual" "$T/manual.c" -L"$LIB" -lsandglass
check "the example of sandglass(3) compiles" all status_is 0 -- err_is ''
run "$T/manual"
check "... and runs" gives 0 2

run gcc -std=gnu17 -Wall -Wextra -Werror -I"$INCLUDE" -o "$T/library_test" "$HERE/library_test.c" -L"$LIB" -lsandglass
check "library_test.c compiles" all status_is 0 -- err_is ''
run "$T/library_test"
check "library_test.c has cases" [ "$(wc -l <"$T/out")" -ge 22 ]
reachable
export GUARD_OF_TESTS=$REACHABLE/egress_echo.py
mapfile -t names <"$T/out"
for name in "${names[@]}"; do
    run "$T/library_test" "$name"
    check "library: $name" gives 0 ''
done

# S4: the caller of the library disappears.
cat >"$T/forget.c" <<'END'
#include <sandglass.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void started(void *arg, enum sg_stream stream, const void *data, size_t len)
{
    (void)arg, (void)stream, (void)data, (void)len;
    abort(); /* in the middle of everything */
}

int main(void)
{
    static const char *const argv[] = {"sh", "-c", "setsid sleep 424280 & echo; sleep 424280", NULL};
    struct sg_run run = SG_RUN_INIT;
    struct sg_result r;

    run.exec.argv = argv;
    run.exec.on_output = started;
    return sg_execute_command(&run, &r, NULL);
}
END
run gcc -std=gnu17 -I"$INCLUDE" -o "$T/forget" "$T/forget.c" -L"$LIB" -lsandglass
check "a caller that crashes compiles" status_is 0
run sh -c 'ulimit -c 0; "$0"; true' "$T/forget"
check "what a crashed caller ran ends by itself" until_true has_no_process 424280
"$SG" doctor --sweep >/dev/null

finish
