# The programs that run inside sandboxes. They are static and linked with musl, which starts faster
# than glibc, and are embedded into the engine. Under a sanitizer the host compiler builds them.

find_program(MUSL_GCC musl-gcc REQUIRED)

# musl comes without the kernel's headers: a directory that shows only those of the system.
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(dir linux asm asm-generic)
    find_path(where_${dir} ${dir} PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} /usr/include
        NO_DEFAULT_PATH REQUIRED)
    file(CREATE_LINK ${where_${dir}}/${dir} ${kernel_headers}/${dir} SYMBOLIC)
endforeach()

set(inside_flags -std=gnu17 ${common_flags} ${harden_flags} -ffunction-sections -fdata-sections
    -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_SOURCE_DIR}/src -isystem ${kernel_headers})

# inside_program(<target> <file name> <sources> [definitions...])
# The target's IMAGE property is the path of the program.
function(inside_program target name sources)
    set(dir ${CMAKE_BINARY_DIR}/${target})
    list(REMOVE_DUPLICATES sources)
    if(SANDGLASS_SANITIZE)
        add_executable(${target} ${sources})
        target_link_libraries(${target} PRIVATE flags)
        target_compile_definitions(${target} PRIVATE ${ARGN})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${dir} IMAGE ${dir}/${name})
        return()
    endif()

    list(TRANSFORM ARGN PREPEND -D)
    foreach(source ${sources})
        file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/src ${source})
        set(object ${dir}/${relative}.o)
        get_filename_component(object_dir ${object} DIRECTORY)
        file(MAKE_DIRECTORY ${object_dir})
        add_custom_command(OUTPUT ${object}
            COMMAND ${MUSL_GCC} ${inside_flags} ${ARGN} -MD -MF ${object}.d -c ${source}
                -o ${object}
            DEPENDS ${source} DEPFILE ${object}.d
            COMMENT "Building ${relative} for ${target}" VERBATIM)
        list(APPEND objects ${object})
    endforeach()
    add_custom_command(OUTPUT ${dir}/${name}
        COMMAND ${MUSL_GCC} -static -s -Wl,--gc-sections,-z,relro,-z,now,-z,noexecstack
            -o ${dir}/${name} ${objects}
        DEPENDS ${objects} COMMENT "Linking ${target}" VERBATIM)
    add_custom_target(${target} DEPENDS ${dir}/${name})
    set_target_properties(${target} PROPERTIES IMAGE ${dir}/${name})
endfunction()
