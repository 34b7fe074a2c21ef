#!/bin/bash
# A tree that was configured with another compiler: CMake would forget what the preset says, and build unhardened
# programs into another folder, beside the old ones.
. "$(dirname "$0")/lib.sh"

mkdir "$T/tree" "$T/other"
for entry in "$TOP"/*; do
    [ "${entry##*/}" = build ] || ln -s "$entry" "$T/tree/"
done
ln -s "$(command -v gcc)" "$T/other/gcc"
CACHE=$T/tree/build/release/CMakeCache.txt

# The compiler of a PATH, and the preset's own settings.
configured_for()
{
    grep -qx "CMAKE_C_COMPILER:[A-Z]*=$1" "$CACHE" && grep -q '^SANDGLASS_HARDEN:[A-Z]*=ON' "$CACHE" &&
        grep -q '^CMAKE_RUNTIME_OUTPUT_DIRECTORY:[A-Z]*=.*/build/bin$' "$CACHE"
}

run env PATH="$T/other:$PATH" "$T/tree/tools/configure" release
check "it is configured" all status_is 0 -- configured_for "$T/other/gcc"
run "$T/tree/tools/configure" release
check "for another compiler, it is configured anew" all status_is 0 -- configured_for "$(command -v gcc)"
touch "$T/tree/build/release/mark"
run "$T/tree/tools/configure" release
check "for the same one, it is left as it is" all status_is 0 -- test -e "$T/tree/build/release/mark"

finish
