# Compiler and linker flags. `flags` is linked by everything that the host compiler builds; the
# lists are also used for the programs of the inside (inside.cmake).

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported()

# No -fstrict-aliasing: scope cleanup reads every kind of pointer through a void **. No NDEBUG,
# whatever build type is asked for: assertions stay on in a release. Under a sanitizer most of the compiler's time would
# go into optimising the checks, which tests that wait most of their time do not need, and of debug information lines are
# enough. A fuzzer is as good as it is fast.
set(optimise -O2)
set(debug -g)
if(SANDGLASS_SANITIZE AND SANDGLASS_FUZZ)
    set(optimise -O1)
elseif(SANDGLASS_SANITIZE)
    set(optimise -O0)
    set(debug -g1)
endif()
set(common_flags ${optimise} -UNDEBUG -D_GNU_SOURCE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -fno-strict-aliasing -fvisibility=hidden
    -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
    -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wformat=2 -Wswitch-enum
    -Wimplicit-fallthrough)
if(SANDGLASS_WERROR)
    list(APPEND common_flags -Werror)
endif()

set(harden_flags "")
if(SANDGLASS_HARDEN)
    set(harden_flags -fstack-protector-strong -fstack-clash-protection -fcf-protection
        -ftrivial-auto-var-init=zero)
endif()

add_library(flags INTERFACE)
target_include_directories(flags INTERFACE include src)
target_compile_options(flags INTERFACE $<$<COMPILE_LANGUAGE:C>:${common_flags};${debug};${harden_flags}>)
target_link_options(flags INTERFACE -Wl,-z,relro,-z,now,--hash-style=gnu,--as-needed)
if(SANDGLASS_HARDEN)
    target_compile_definitions(flags INTERFACE _FORTIFY_SOURCE=3)
endif()
if(SANDGLASS_SANITIZE)
    set(sanitize_flags -fsanitize=${SANDGLASS_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    target_compile_options(flags INTERFACE $<$<COMPILE_LANGUAGE:C>:${sanitize_flags}>
        $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${SANDGLASS_FUZZ}>>:-fsanitize=fuzzer-no-link>)
    target_link_options(flags INTERFACE ${sanitize_flags})
endif()
