# Programs that must start fast: those that run inside sandboxes, and the command line. They are static and
# position independent, linked with musl, whose start takes a fifth of glibc's. Under a sanitizer
# the host compiler builds them.

find_program(MUSL_GCC musl-gcc REQUIRED)

# musl comes without the kernel's headers: a directory that shows only those of the system.
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(dir linux asm asm-generic)
    find_path(where_${dir} ${dir} PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} /usr/include
        NO_DEFAULT_PATH REQUIRED)
    file(CREATE_LINK ${where_${dir}}/${dir} ${kernel_headers}/${dir} SYMBOLIC)
endforeach()

# Debian's wrapper does not know -static-pie: the start files are named by hand.
find_file(MUSL_RCRT1 rcrt1.o PATHS /usr/lib/${CMAKE_SYSTEM_PROCESSOR}-linux-musl /usr/lib/musl/lib
    NO_DEFAULT_PATH REQUIRED)
get_filename_component(musl_lib ${MUSL_RCRT1} DIRECTORY)
set(static_link -static -nostartfiles
    -Wl,-pie,--no-dynamic-linker,-z,text,--gc-sections,-z,relro,-z,now,-z,noexecstack
    ${musl_lib}/rcrt1.o ${musl_lib}/crti.o)

set(static_flags -std=gnu17 ${common_flags} ${harden_flags} -fPIE -ffunction-sections
    -fdata-sections -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_SOURCE_DIR}/src
    -isystem ${kernel_headers})

# static_program(<target> <path of the program> <sources> [definitions...])
# The target's IMAGE property is the path of the program. What several programs have in common is compiled once: the
# caller has one of them depend on the other, since make would compile it for both at the same time.
function(static_program target path sources)
    list(REMOVE_DUPLICATES sources)
    get_filename_component(name ${path} NAME)
    get_filename_component(dir ${path} DIRECTORY)
    if(SANDGLASS_SANITIZE)
        add_executable(${target} ${sources})
        target_link_libraries(${target} PRIVATE flags)
        target_compile_definitions(${target} PRIVATE ${ARGN})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${dir} IMAGE ${path})
        return()
    endif()

    string(MAKE_C_IDENTIFIER "static${ARGN}" variant)
    set(objects_dir ${CMAKE_BINARY_DIR}/${variant})
    list(TRANSFORM ARGN PREPEND -D)
    foreach(source ${sources})
        string(REPLACE "${CMAKE_SOURCE_DIR}/src/" "" relative ${source})
        string(REPLACE "${CMAKE_BINARY_DIR}/" "" relative ${relative})
        set(object ${objects_dir}/${relative}.o)
        list(APPEND objects ${object})
        get_property(known GLOBAL PROPERTY static_objects)
        if(object IN_LIST known)
            continue()
        endif()
        set_property(GLOBAL APPEND PROPERTY static_objects ${object})
        get_filename_component(object_dir ${object} DIRECTORY)
        file(MAKE_DIRECTORY ${object_dir})
        get_source_file_property(needs ${source} OBJECT_DEPENDS)
        get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
        if(NOT needs)
            set(needs "")
            set(definitions "")
        endif()
        list(TRANSFORM definitions PREPEND -D)
        add_custom_command(OUTPUT ${object}
            COMMAND ${MUSL_GCC} ${static_flags} ${ARGN} ${definitions} -MD -MF ${object}.d -c
                ${source} -o ${object}
            DEPENDS ${source} ${needs} DEPFILE ${object}.d
            COMMENT "Building ${relative} for ${target}" VERBATIM)
    endforeach()
    file(MAKE_DIRECTORY ${dir})
    add_custom_command(OUTPUT ${path}
        COMMAND ${MUSL_GCC} ${static_link} -s -o ${path} ${objects} ${musl_lib}/crtn.o
        DEPENDS ${objects} COMMENT "Linking ${target}" VERBATIM)
    add_custom_target(${target} ALL DEPENDS ${path})
    set_target_properties(${target} PROPERTIES IMAGE ${path})
endfunction()
