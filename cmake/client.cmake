# sandglass-client: the verbs that talk to a server. It is a program of its own, linked with the
# system's libcurl and jansson, which the static sandglass has not; sandglass execs it.

find_package(PkgConfig REQUIRED)
# zlib and libcrypto pack and hash the files of a build; libedit edits the lines of the prompt (BSD licence), libpng reads
# pictures for terminals that want sixels.
pkg_check_modules(CLIENT REQUIRED IMPORTED_TARGET libcurl>=7.85 jansson>=2.13 libedit>=3.1 libpng>=1.6
    zlib libcrypto)

sources(client_sources src/cli/client/*.c)
# What it shares with the command line.
sources(client_cli_sources src/cli/shared/*.c src/lib/settings/*.c)

add_executable(sandglass-client ${client_sources} ${client_cli_sources} ${command_sources} ${tar_sources} ${base_sources})
target_link_libraries(sandglass-client PRIVATE PkgConfig::CLIENT flags)
set_target_properties(sandglass-client PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${SANDGLASS_LIBEXEC_OUTPUT})
install(TARGETS sandglass-client DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass)
