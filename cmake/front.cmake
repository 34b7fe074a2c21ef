# sandglass-front: the part of the server that speaks HTTP. The host compiler builds it, with shared
# libraries; `sandglass serve` starts it.

find_package(PkgConfig REQUIRED)
pkg_check_modules(FRONT REQUIRED IMPORTED_TARGET libuv jansson libssl libcrypto sqlite3 zlib)

# Debian ships llhttp as C sources, kept current with node's.
find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp NO_DEFAULT_PATH REQUIRED)
sources(llhttp_sources /usr/share/llhttp/*.c)
add_library(llhttp OBJECT ${llhttp_sources})
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_compile_options(llhttp PRIVATE -DLLHTTP_STRICT_MODE=1 -O2 -g ${harden_flags} ${sanitize_flags} -w)

sources(front_sources src/order/*.c src/http/*.c src/rpc/*.c src/store/*.c src/front/*.c
    src/envd/*.c src/interpreter/*.c src/forward/*.c src/e2b/*.c src/server/*.c)
# The table of options is the same as the command line's.
sources(front_cli_sources src/cli/options.c src/cli/suggest.c src/cli/ui.c src/cli/terminal.c)

add_executable(sandglass-front ${front_sources} ${front_cli_sources} ${shared_sources}
    $<TARGET_OBJECTS:llhttp>)
target_include_directories(sandglass-front SYSTEM PRIVATE ${LLHTTP_INCLUDE})
target_link_libraries(sandglass-front PRIVATE PkgConfig::FRONT m flags)
set_target_properties(sandglass-front PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${SANDGLASS_LIBEXEC_OUTPUT})
install(TARGETS sandglass-front DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass)
