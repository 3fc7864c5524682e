# How every target of the project is compiled and linked.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(CUVIL_CCACHE ccache)
    if(CUVIL_CCACHE)
        set(CMAKE_C_COMPILER_LAUNCHER ${CUVIL_CCACHE})
        set(CMAKE_CXX_COMPILER_LAUNCHER ${CUVIL_CCACHE})
    endif()
endif()

add_compile_options(-Wall -Wextra)
# Floating-point results may not depend on how the compiler contracts a * b + c: kernels say fma where they mean it.
add_compile_options(-ffp-contract=off)
add_link_options(-fuse-ld=lld-19 LINKER:--gc-sections)
if(CUVIL_STANDALONE)
    add_link_options(LINKER:--as-needed LINKER:--strip-all)
endif()

# A headers' view of one folder of src/: a directory that holds nothing but `<folder>`. A target that links cuvil_<folder>
# sees it, so an include of a folder that is not linked does not compile.
function(cuvil_folder_includes target folder)
    set(view ${PROJECT_BINARY_DIR}/views/${folder})
    file(MAKE_DIRECTORY ${view})
    if(NOT EXISTS ${view}/${folder})
        file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${folder} ${view}/${folder} SYMBOLIC)
    endif()
    target_include_directories(${target} PUBLIC ${view})
endfunction()

include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
