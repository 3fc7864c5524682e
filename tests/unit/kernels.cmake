# The kernels at each level, as an artifact would hold them. `eval` is compiled as the rest of Cuvil is.
set(levels)
foreach(level v2 v3 v4 eval)
    add_library(kernels_level_${level} OBJECT kernels_level.cpp)
    target_compile_definitions(kernels_level_${level} PRIVATE CUVIL_ISA=${level})
    target_compile_options(kernels_level_${level} PRIVATE -O1 -ffreestanding -nostdinc)
    if(NOT level STREQUAL eval)
        target_compile_options(kernels_level_${level} PRIVATE -march=x86-64-${level})
    endif()
    list(APPEND levels $<TARGET_OBJECTS:kernels_level_${level}>)
endforeach()

foreach(test math product tensor)
    cuvil_unit_test(kernels_${test}_test SOURCES ${levels})
endforeach()
cuvil_unit_test(kernels_weights_test LIBS cuvil_plan SOURCES ${levels})

# The table of docs/math.md.
add_executable(kernels_measure_math EXCLUDE_FROM_ALL kernels_measure_math.cpp ${levels})
target_link_libraries(kernels_measure_math PRIVATE GTest::gtest)
