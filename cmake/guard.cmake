# sandglass-guard: the process that all traffic out of sandboxes goes through. `sandglass serve` and `sandglass run`
# start it; `sandglass audit` is a part of it, since it writes the record.

pkg_check_modules(GUARD REQUIRED IMPORTED_TARGET libuv jansson libssl libcrypto zlib libhs libpcre2-8)

sources(guard_sources src/guard/*.c src/lib/json/*.c src/lib/uv/*.c src/lib/audit/*.c src/lib/sanitise/*.c src/lib/vault/*.c src/lib/net/*.c src/lib/tls/*.c
    src/lib/http/bio.c src/lib/http/chunked.c src/lib/http/status.c src/lib/http/work.c)
add_executable(sandglass-guard ${guard_sources} ${command_sources} ${settings_sources} ${wire_sources}
    ${shared_sources})
target_link_libraries(sandglass-guard PRIVATE PkgConfig::GUARD flags)
set_target_properties(sandglass-guard PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${SANDGLASS_LIBEXEC_OUTPUT})
install(TARGETS sandglass-guard DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass)
