# libsandglass.so and libsandglass.a, both showing sg_* only.

set(map ${CMAKE_SOURCE_DIR}/src/engine/libsandglass.map)
add_library(libsandglass SHARED $<TARGET_OBJECTS:normal_engine>)
target_link_libraries(libsandglass PRIVATE flags)
target_link_options(libsandglass PRIVATE -Wl,--version-script=${map} -Wl,--no-undefined)
set_target_properties(libsandglass PROPERTIES OUTPUT_NAME sandglass LINK_DEPENDS ${map}
    LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0 PUBLIC_HEADER include/sandglass.h)
if(SANDGLASS_SANITIZE)
    # clang leaves the sanitizers' symbols to the program
    set_target_properties(libsandglass PROPERTIES LINK_OPTIONS
        "-Wl,--version-script=${map};-Wl,-z,undefs")
endif()
install(TARGETS libsandglass LIBRARY PUBLIC_HEADER)

# The static library is one object whose hidden symbols are made local, so that names such as
# strbuf_add do not meet those of the program.
set(archive ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libsandglass.a)
set(whole ${CMAKE_BINARY_DIR}/libsandglass.o)
add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_LINKER} -r -o ${whole} $<TARGET_OBJECTS:normal_engine>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${whole}
    DEPENDS normal_engine $<TARGET_OBJECTS:normal_engine>
    COMMENT "Linking libsandglass.a" COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(static_library ALL DEPENDS ${archive})
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
