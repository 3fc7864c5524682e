# Modules that the tests load, compiled as the compiler does it: freestanding, without a library.
set(module_folder ${CMAKE_CURRENT_BINARY_DIR}/runtime_modules)
set(module_sources ${CMAKE_CURRENT_LIST_DIR}/runtime_modules)
set(modules)
foreach(module future huge nonzero pick scale steps upper)
    add_custom_command(
        OUTPUT ${module_folder}/${module}.so
        COMMAND ${CMAKE_COMMAND} -E make_directory ${module_folder}
        COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -O1 -fPIC -ffreestanding -fno-exceptions -fvisibility=hidden -Wall -Wextra
                -I${PROJECT_SOURCE_DIR}/include -shared -nostdlib -fuse-ld=lld-19 -Wl,--no-undefined
                -o ${module_folder}/${module}.so ${module_sources}/${module}.cpp
        DEPENDS ${module_sources}/${module}.cpp ${module_sources}/module.hpp ${PROJECT_SOURCE_DIR}/include/cuvil/cuvil.h
        VERBATIM
    )
    list(APPEND modules ${module_folder}/${module}.so)
endforeach()
add_custom_target(cuvil_test_modules DEPENDS ${modules})

add_library(cuvil_runtime_fixture INTERFACE)
target_compile_definitions(cuvil_runtime_fixture INTERFACE CUVIL_TEST_MODULES="${module_folder}")
target_link_libraries(cuvil_runtime_fixture INTERFACE cuvil_artifact)
add_dependencies(cuvil_runtime_fixture cuvil_test_modules)

foreach(test arena bound cpu loader manifest pool process thread_count turns)
    cuvil_unit_test(runtime_${test}_test LIBS cuvil_runtime_fixture cuvil_rt_parts)
    add_dependencies(runtime_${test}_test cuvil_test_modules)
endforeach()

cuvil_unit_test(runtime_static_threads_test LIBS cuvil_static_host)

# A program that meets the loader only as a library, for what is seen from outside of a process.
add_executable(runtime_driver ${CMAKE_CURRENT_LIST_DIR}/runtime_driver.cpp)
target_link_libraries(runtime_driver PRIVATE ${CMAKE_DL_LIBS})
target_compile_definitions(runtime_process_test PRIVATE
    CUVIL_DRIVER="$<TARGET_FILE:runtime_driver>"
    CUVIL_RT="$<TARGET_FILE:cuvil_rt>"
)
add_dependencies(runtime_process_test runtime_driver cuvil_rt)

# The examples are run, too.
if(TARGET example_c)
    target_compile_definitions(runtime_process_test PRIVATE
        CUVIL_EXAMPLE_C="$<TARGET_FILE:example_c>"
        CUVIL_EXAMPLE_CPP="$<TARGET_FILE:example_cpp>"
        CUVIL_MINIMAL_HOST="$<TARGET_FILE:minimal_host>"
    )
    add_dependencies(runtime_process_test example_c example_cpp minimal_host)
endif()
if(TARGET minimal_host_for_musl)
    target_compile_definitions(runtime_process_test PRIVATE
        CUVIL_MINIMAL_HOST_MUSL="$<TARGET_FILE_DIR:minimal_host>/minimal_host_musl"
    )
    add_dependencies(runtime_process_test minimal_host_for_musl)
endif()
