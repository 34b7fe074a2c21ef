# Test programs. All of them land in <build>/tests and none is installed.

set(tests_dir ${CMAKE_BINARY_DIR}/tests)

# Everything but the files with a main function, as archives: a test pulls in the objects it uses. The libraries are
# one archive, and each program is one, since each has names of its own for the same things. They also have the host
# compiler look at the code of the inside.
sources(lib_sources src/lib/*/*.c src/wire/*.c)
function(testable name)
    list(FILTER ARGN EXCLUDE REGEX "/(main|sudo/sudo)\\.c$")
    list(REMOVE_DUPLICATES ARGN)
    add_library(testable_${name} STATIC ${ARGN})
    target_include_directories(testable_${name} SYSTEM PUBLIC ${LLHTTP_INCLUDE})
    target_link_libraries(testable_${name} PUBLIC PkgConfig::FRONT PkgConfig::GUARD PkgConfig::IMAGE PkgConfig::CLIENT m
        PRIVATE flags)
endfunction()
testable(lib ${lib_sources} $<TARGET_OBJECTS:llhttp>)
set(rest ${engine_sources} ${inside_sources} ${sudo_sources} ${cli_sources})
list(REMOVE_ITEM rest ${lib_sources})
set(compiled $<TARGET_OBJECTS:normal_engine>) # the host compiler has compiled these in the same way
list(REMOVE_ITEM rest ${engine_sources})
if(SANDGLASS_SANITIZE)
    list(APPEND compiled $<TARGET_OBJECTS:normal_inside>)
    list(REMOVE_ITEM rest ${inside_sources})
endif()
testable(warden ${rest} ${compiled})
foreach(program front guard image client)
    set(rest ${${program}_sources})
    list(REMOVE_ITEM rest ${lib_sources})
    list(FILTER rest EXCLUDE REGEX "/cli/shared/")
    testable(${program} ${rest})
endforeach()
target_sources(testable_front PRIVATE ${front_embed})
set(rest ${pull_sources})
list(REMOVE_ITEM rest ${lib_sources})
testable(pull ${rest})

# The files with a main function, for the compiler to look at: with `testable` that is all there is, so whoever only
# wants to test need not build the programs too.
set(main_sources ${engine_sources} ${inside_sources} ${sudo_sources} ${cli_sources} ${front_sources}
    ${guard_sources} ${image_sources} ${client_sources})
list(REMOVE_DUPLICATES main_sources)
list(FILTER main_sources INCLUDE REGEX "/(main|sudo/sudo)\\.c$")
list(APPEND main_sources ${CMAKE_SOURCE_DIR}/src/pull/main.c)
add_library(mains OBJECT ${main_sources})
target_include_directories(mains SYSTEM PRIVATE ${LLHTTP_INCLUDE})
target_link_libraries(mains PRIVATE PkgConfig::FRONT PkgConfig::GUARD PkgConfig::IMAGE PkgConfig::CLIENT
    flags)
add_custom_target(unit-tests DEPENDS mains)

# There are many of them: the linker that is four times as fast, where it is installed.
find_program(LLD ld.lld)
set(test_linker "")
if(LLD)
    set(test_linker -fuse-ld=lld)
endif()

# The programs whose headers a test includes, itself or by a header of the tests.
function(programs_of ret file)
    file(STRINGS ${file} lines REGEX "^#include \"")
    set(programs "")
    foreach(line ${lines})
        string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" header ${line})
        if(header MATCHES "^(front|guard|image)/")
            list(APPEND programs ${CMAKE_MATCH_1})
        elseif(header MATCHES "^cli/client/")
            list(APPEND programs client)
        elseif(header MATCHES "^pull/")
            list(APPEND programs pull)
        endif()
        foreach(dir tests/unit fuzz)
            if(EXISTS ${CMAKE_SOURCE_DIR}/${dir}/${header})
                programs_of(more ${CMAKE_SOURCE_DIR}/${dir}/${header})
                list(APPEND programs ${more})
            endif()
        endforeach()
    endforeach()
    list(REMOVE_DUPLICATES programs)
    set(${ret} ${programs} PARENT_SCOPE)
endfunction()

function(test_program target dir)
    add_executable(${target} ${ARGN})
    add_dependencies(unit-tests ${target})
    list(GET ARGN 0 source)
    programs_of(programs ${source})
    list(TRANSFORM programs PREPEND testable_)
    target_link_libraries(${target} PRIVATE ${programs} testable_warden testable_lib flags)
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
