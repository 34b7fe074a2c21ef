# sandglass-front: the part of the server that speaks HTTP. The host compiler builds it, with shared
# libraries; `sandglass serve` starts it.

find_package(PkgConfig REQUIRED)
pkg_check_modules(FRONT REQUIRED IMPORTED_TARGET libuv jansson libssl libcrypto sqlite3 zlib libpq libhs libpcre2-8 libcurl>=7.85)

# Debian ships llhttp as C sources, kept current with node's.
find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp NO_DEFAULT_PATH REQUIRED)
sources(llhttp_sources /usr/share/llhttp/*.c)
add_library(llhttp OBJECT ${llhttp_sources})
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_compile_options(llhttp PRIVATE -DLLHTTP_STRICT_MODE=1 -O2 -g ${harden_flags} ${sanitize_flags} -w)

sources(front_sources src/front/*/*.c src/lib/json/*.c src/lib/uv/*.c src/lib/http/*.c src/lib/rpc/*.c src/lib/sanitise/*.c src/lib/tls/*.c src/lib/vault/*.c src/lib/net/*.c src/lib/web/*.c)
include(cmake/migrations.cmake)
list(APPEND front_sources ${migrations_source})
# The programs of run_analysis are a part of it, since it may not be able to read where they were installed; copies are
# installed for who wants to change them.
sources(analysis_programs analysis/*.py)
set(front_embed ${CMAKE_SOURCE_DIR}/src/front/tools/embed.S)
foreach(program ${analysis_programs})
    get_filename_component(name ${program} NAME_WE)
    list(APPEND analysis_paths "SG_${name}=\"${program}\"")
endforeach()
set(gateway_program ${CMAKE_SOURCE_DIR}/templates/mcp-gateway/mcp-gateway)
list(APPEND analysis_paths "SG_mcp_gateway=\"${gateway_program}\"")
set_source_files_properties(${front_embed} PROPERTIES OBJECT_DEPENDS "${analysis_programs};${gateway_program}"
    COMPILE_DEFINITIONS "${analysis_paths}")
install(FILES ${analysis_programs} ${CMAKE_SOURCE_DIR}/analysis/README.md
    DESTINATION ${CMAKE_INSTALL_DATADIR}/sandglass/analysis)

add_executable(sandglass-front ${front_sources} ${front_embed} ${command_sources} ${settings_sources} ${wire_sources} ${shared_sources}
    $<TARGET_OBJECTS:llhttp>)
target_include_directories(sandglass-front SYSTEM PRIVATE ${LLHTTP_INCLUDE})
target_link_libraries(sandglass-front PRIVATE PkgConfig::FRONT m flags)
set_target_properties(sandglass-front PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${SANDGLASS_LIBEXEC_OUTPUT})
install(TARGETS sandglass-front DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass)

# What makes the default world, for `sandglass world make`.
foreach(program make debian-layer)
    configure_file(worlds/${program} ${SANDGLASS_LIBEXEC_OUTPUT}/worlds/${program} COPYONLY)
    install(PROGRAMS worlds/${program} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass/worlds)
endforeach()
configure_file(worlds/packages ${SANDGLASS_LIBEXEC_OUTPUT}/worlds/packages COPYONLY)
install(FILES worlds/packages DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass/worlds)
