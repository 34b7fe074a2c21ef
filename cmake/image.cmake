# sandglass-image: the workers that turn image layers into worlds. It is a program of its own, linked with the libraries that
# decompress layers and hash them, which nothing that runs as root has.

pkg_check_modules(IMAGE REQUIRED IMPORTED_TARGET zlib libzstd>=1.5 libcrypto)

sources(image_sources src/image/*.c)
# What compiles and loads the system-call filter.
sources(image_filter_sources src/inside/stage/seccomp*.c)
add_executable(sandglass-image ${image_sources} ${image_filter_sources} ${base_sources})
target_link_libraries(sandglass-image PRIVATE PkgConfig::IMAGE flags)
set_target_properties(sandglass-image PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${SANDGLASS_LIBEXEC_OUTPUT})
install(TARGETS sandglass-image DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandglass)
