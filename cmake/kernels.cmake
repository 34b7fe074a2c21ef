# The programs of kernels/, packed with their compiled code into one file that the engine carries.
# Compiled by the system's Python, which is the one in sandboxes.

find_program(SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

file(GLOB_RECURSE kernel_files CONFIGURE_DEPENDS kernels/*)
list(FILTER kernel_files EXCLUDE REGEX "/(tests|__pycache__)/|/README\\.md$")
set(kernel_names ${kernel_files})
list(TRANSFORM kernel_names REPLACE "^${CMAKE_SOURCE_DIR}/kernels/" "")

set(kernels_image ${CMAKE_BINARY_DIR}/kernels.pack)
add_custom_command(OUTPUT ${kernels_image}
    COMMAND ${SYSTEM_PYTHON} ${CMAKE_SOURCE_DIR}/tools/pack-kernels ${kernels_image} ${kernel_names}
    DEPENDS ${kernel_files} ${CMAKE_SOURCE_DIR}/tools/pack-kernels
    COMMENT "Packing the kernels" VERBATIM)
add_custom_target(kernels DEPENDS ${kernels_image})
