# Test programs. All of them land in <build>/tests and none is installed.

set(tests_dir ${CMAKE_BINARY_DIR}/tests)

# Everything but the files with a main function, as an archive: a test pulls in the objects it uses. It also has the
# host compiler look at the code of the inside.
set(testable_sources ${engine_sources} ${inside_sources} ${sudo_sources} ${cli_sources}
    ${front_sources} ${guard_sources} ${client_sources})
list(REMOVE_DUPLICATES testable_sources)
list(FILTER testable_sources EXCLUDE REGEX "/(main|sudo/sudo)\\.c$")
# What other targets have compiled in the same way is taken from there.
set(compiled $<TARGET_OBJECTS:normal_engine> $<TARGET_OBJECTS:llhttp>)
list(REMOVE_ITEM testable_sources ${engine_sources})
if(SANDGLASS_SANITIZE)
    list(APPEND compiled $<TARGET_OBJECTS:normal_inside>)
    list(REMOVE_ITEM testable_sources ${inside_sources})
endif()
add_library(testable STATIC ${testable_sources} ${front_embed} ${compiled})
target_include_directories(testable SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_link_libraries(testable PUBLIC PkgConfig::FRONT PkgConfig::GUARD PkgConfig::CLIENT m PRIVATE flags)

# The files with a main function, for the compiler to look at: with `testable` that is all there is, so whoever only
# wants to test need not build the programs too.
set(main_sources ${engine_sources} ${inside_sources} ${sudo_sources} ${cli_sources} ${front_sources}
    ${guard_sources} ${client_sources})
list(REMOVE_DUPLICATES main_sources)
list(FILTER main_sources INCLUDE REGEX "/(main|sudo/sudo)\\.c$")
add_library(mains OBJECT ${main_sources})
target_include_directories(mains SYSTEM PRIVATE ${LLHTTP_INCLUDE})
target_link_libraries(mains PRIVATE PkgConfig::FRONT PkgConfig::GUARD PkgConfig::CLIENT flags)
add_custom_target(unit-tests DEPENDS mains)

# There are many of them: the linker that is four times as fast, where it is installed.
find_program(LLD ld.lld)
set(test_linker "")
if(LLD)
    set(test_linker -fuse-ld=lld)
endif()

function(test_program target dir)
    add_executable(${target} ${ARGN})
    add_dependencies(unit-tests ${target})
    target_link_libraries(${target} PRIVATE testable flags)
    target_link_options(${target} PRIVATE ${test_linker})
    target_compile_definitions(${target} PRIVATE SG_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${tests_dir}/${dir})
endfunction()

sources(unit_sources tests/unit/test_*.c)
foreach(source ${unit_sources})
    get_filename_component(name ${source} NAME_WE)
    test_program(${name} unit ${source})
    target_include_directories(${name} PRIVATE tests/unit)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 60)
endforeach()

# With SANDGLASS_FUZZ these programs search; without, they replay the corpus as a test.
sources(fuzz_sources fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE fuzz_ "" corpus ${name})
    if(SANDGLASS_FUZZ)
        test_program(${name} fuzz ${source})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
        test_program(${name} fuzz ${source} fuzz/replay_main.c)
        add_test(NAME ${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${corpus})
        set_tests_properties(${name} PROPERTIES TIMEOUT 120)
    endif()
endforeach()

sources(example_sources examples/*.c)
foreach(source ${example_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} ${source})
    add_dependencies(unit-tests example_${name})
    target_link_libraries(example_${name} PRIVATE libsandglass flags)
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY ${tests_dir}/examples)
endforeach()

add_variant(control SG_CONTROL=1)
static_program(sandglass-control ${tests_dir}/sandglass-control
    "${cli_sources};${engine_sources};${control_embed}" SG_CONTROL=1)
add_dependencies(sandglass-control control_agent control_sudo)
add_library(libsandglass_control SHARED $<TARGET_OBJECTS:control_engine>)
target_link_libraries(libsandglass_control PRIVATE flags)
target_link_options(libsandglass_control PRIVATE -Wl,--version-script=${map})
set_target_properties(libsandglass_control PROPERTIES OUTPUT_NAME sandglass-control
    LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY ${tests_dir})

add_custom_target(tests DEPENDS unit-tests sandglass-control libsandglass_control)
