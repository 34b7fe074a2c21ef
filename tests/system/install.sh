#!/bin/bash
# `make install`: everything in its place, working from there, and the library shows sg_* only.
. "$(dirname "$0")/lib.sh"

D=$T/dest
umask 077 # of who installs: that decides nothing
run make -C "$TOP" --no-print-directory install DESTDIR="$D" PREFIX=/usr/local
check "make install DESTDIR= PREFIX=" status_is 0
P=$D/usr/local
LIB=$(dirname "$(find "$P" -name 'libsandglass.so' | head -n 1)")

check "nothing outside the prefix" [ "$(find "$D" -mindepth 1 -maxdepth 2 | sort | tr '\n' ' ')" = "$D/usr $P " ]
for file in bin/sandglass libexec/sandglass/sandglass-client libexec/sandglass/sandglass-front libexec/sandglass/sandglass-image \
    include/sandglass.h share/man/man1/sandglass.1 share/man/man1/sandglass-run.1 \
    share/man/man1/sandglass-exec.1 \
    share/man/man1/sandglass-doctor.1 share/man/man3/sandglass.3 share/bash-completion/completions/sandglass \
    lib/systemd/system/sandglass.service libexec/sandglass/sandglass-pull; do
    check "$file" test -s "$P/$file"
done
check "the library, with its links" \
    [ "$(basename "$(readlink -f "$LIB/libsandglass.so")")" = "$(basename "$(readlink -f "$LIB/libsandglass.so.0")")" ]
check "the static library" test -s "$LIB/libsandglass.a"
check "programs are for everybody to start, files are not" \
    [ -z "$(find "$P" -type f \( -name '*.[13h]' -o -name '*.a' -o -name '*.service' \) -perm /111)$(find "$P" -perm /022 ! -type l)$(find "$P/bin" -type f ! -perm 755)" ]
check "and everybody can read and enter everything" [ -z "$(find "$D" -type f ! -perm -444 -o -type d ! -perm -555)" ]
check "what was built belongs to who had it" [ -z "$(find "$TOP/build/release" -maxdepth 1 ! -user "$(stat -c %u "$TOP/build")")" ]
umask 022
check "no set-uid program" [ -z "$(find "$P" -perm /6000)" ]
check "no path of the build is in them" \
    is_not grep -rqs "$TOP/" "$P/bin" "$P/include" "$P/share"

SG=$P/bin/sandglass
sg version
check "the installed program: version" all status_is 0 -- out_has '^sandglass [0-9]'
for user in $USERS; do
    sg run -u "$user" 'print(1+1)'
    check "$user: the installed program: run" gives 0 2
    sg run -u "$user" -- sudo id -u
    check "$user: the installed program: sudo inside" gives 0 0
done
sg doctor --json
check "the installed program: doctor" all status_is 0 -- json 'r["summary"]["can_run"]'
sg ps --help
check "the installed program: its client" all status_is 0 -- out_has '^Usage: sandglass ps'
env -u E2B_API_KEY "$SG" ps >"$T/out" 2>"$T/err"
STATUS=$?
check "the installed program: a verb without a key" refuses 2 "no API key.*sandglass key create"
cp "$SG" "$T/moved"
SG=$T/moved
sg run 'print("anywhere")'
check "it needs nothing beside itself" gives 0 anywhere
sg ps
check "... but for a verb that another program does" refuses 125 "libexec/sandglass/sandglass-client.*install all of it"
check "it is stripped" is_not sh -c 'nm "$1" 2>/dev/null | grep -q " T main"' sh "$SG"

# ---- the library -------------------------------------------------------------------------------------

nm -D --defined-only "$LIB/libsandglass.so" >"$T/symbols"
check "the shared library exports sg_* only, all with a version" \
    [ "$(grep -cvE ' (T sg_[a-z_]+@@SANDGLASS_[0-9.]+|A SANDGLASS_[0-9.]+)$' "$T/symbols") $(grep -c ' T sg_' "$T/symbols")" = \
    "0 $(grep -oE '^SG_EXPORT .*\bsg_[a-z_]+\(' "$TOP/include/sandglass.h" | wc -l)" ]
for function in $(grep -oE '\bsg_[a-z_]+\(' "$TOP/include/sandglass.h" | tr -d '(' | sort -u); do
    check "it exports $function" grep -q " T $function@@" "$T/symbols"
done
check "its name for programs is libsandglass.so.0" \
    sh -c 'readelf -d "$1" | grep -q "SONAME.*\[libsandglass.so.0\]"' sh "$LIB/libsandglass.so"
check "it needs the C library only" \
    [ "$(readelf -d "$LIB/libsandglass.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -cvE '^(libc\.so|ld-linux)')" -eq 0 ]
check "the static library defines sg_* only" \
    [ "$(nm -g --defined-only "$LIB/libsandglass.a" | awk 'NF == 3 { print $3 }' | grep -cv '^sg_')" -eq 0 ]
check "no text relocations, no executable stack, all bindings now" \
    sh -c '! readelf -d "$1" | grep -q TEXTREL && readelf -lW "$1" | grep GNU_STACK | grep -qv RWE && readelf -d "$1" | grep -qE "BIND_NOW|FLAGS.*NOW"' sh "$SG"

MANPATH=$P/share/man run man -w sandglass-run
check "man finds the page" all status_is 0 -- out_has "$P/share/man/man1/sandglass-run.1"
check "the installed completion is the one of the tree" \
    cmp "$TOP/completions/sandglass.bash" "$P/share/bash-completion/completions/sandglass"

finish
