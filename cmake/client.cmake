# sandglass-client: the verbs that talk to a server. It is a program of its own, linked with the
# system's libcurl and jansson, which the static sandglass has not; sandglass execs it.

find_package(PkgConfig REQUIRED)
# libedit edits the lines of the prompt (BSD licence), libpng reads pictures for terminals that want sixels.
pkg_check_modules(CLIENT REQUIRED IMPORTED_TARGET libcurl>=7.85 jansson>=2.13 libedit>=3.1 libpng>=1.6)

sources(client_sources src/client/*.c)
# What it shares with the command line.
sources(client_cli_sources src/cli/acp_source.c src/cli/acp_tar.c src/cli/env_list.c src/cli/options.c src/cli/state_dir.c src/cli/suggest.c
    src/cli/terminal.c src/cli/text_file.c src/cli/ui.c src/cli/when.c
    src/order/address.c src/order/prices.c src/order/settings.c)

add_executable(sandglass-client ${client_sources} ${client_cli_sources} ${base_sources})
target_link_libraries(sandglass-client PRIVATE PkgConfig::CLIENT flags)
set_target_properties(sandglass-client PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${SANDGLASS_LIBEXEC_OUTPUT})
install(TARGETS sandglass-client DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass)
