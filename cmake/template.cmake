# The default template and the programs of kernels/ with their compiled code, packed into one file that the engine
# carries. Compiled by the system's Python, which is the one in sandboxes.

find_program(SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

file(GLOB_RECURSE template_files CONFIGURE_DEPENDS template/*)
file(GLOB_RECURSE kernel_files CONFIGURE_DEPENDS kernels/*)
list(FILTER kernel_files EXCLUDE REGEX "/(tests|__pycache__)/|/README\\.md$")
set(kernel_names ${kernel_files})
list(TRANSFORM kernel_names REPLACE "^${CMAKE_SOURCE_DIR}/kernels/" "")

set(template_image ${CMAKE_BINARY_DIR}/template.pack)
add_custom_command(OUTPUT ${template_image}
    COMMAND ${SYSTEM_PYTHON} ${CMAKE_SOURCE_DIR}/tools/pack-template ${template_image} ${kernel_names}
    DEPENDS ${template_files} ${kernel_files} ${CMAKE_SOURCE_DIR}/tools/pack-template
    COMMENT "Packing the template" VERBATIM)
add_custom_target(template DEPENDS ${template_image})
