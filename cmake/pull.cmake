# sandglass-pull: fetches images from registries, and reads them from layouts and archives.

pkg_check_modules(PULL REQUIRED IMPORTED_TARGET libcurl>=7.85 jansson>=2.13 libcrypto)

sources(pull_sources src/pull/*.c src/lib/json/*.c src/lib/net/*.c src/lib/web/*.c)
add_executable(sandglass-pull ${pull_sources} ${base_sources})
target_link_libraries(sandglass-pull PRIVATE PkgConfig::PULL flags)
set_target_properties(sandglass-pull PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${SANDGLASS_LIBEXEC_OUTPUT})
install(TARGETS sandglass-pull DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass)
