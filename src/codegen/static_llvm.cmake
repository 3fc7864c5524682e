# libcuvil_llvm.so: Clang, LLD and LLVM of Debian's static libraries behind the functions of clang.hpp, lld.hpp and
# objcopy.hpp. Nothing else is seen from outside: other libraries of a process bring an LLVM of their own.
set(targets X86) # those that clang.cpp initialises

# LLD asks for all targets of LLVM. The others get initialisers that do nothing: without, they are half of the library.
set(no_targets ${CMAKE_CURRENT_BINARY_DIR}/no_targets.c)
set(text "")
foreach(target IN LISTS LLVM_TARGETS_TO_BUILD)
    if(NOT target IN_LIST targets)
        foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
            string(APPEND text "void LLVMInitialize${target}${part}(void) {}\n")
        endforeach()
    endif()
endforeach()
file(CONFIGURE OUTPUT ${no_targets} CONTENT "${text}" @ONLY)

file(GLOB archives CONFIGURE_DEPENDS ${LLVM_LIBRARY_DIR}/libclang[A-Z]*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
set(exports ${CMAKE_CURRENT_SOURCE_DIR}/llvm.map)

add_library(cuvil_llvm SHARED ${llvm_sources} no_polly.cpp ${no_targets})
set_target_properties(cuvil_llvm PROPERTIES
    CXX_VISIBILITY_PRESET default
    LINK_DEPENDS ${exports}
)
target_link_options(cuvil_llvm PRIVATE
    LINKER:--version-script=${exports}
    LINKER:--exclude-libs,ALL
    LINKER:--no-undefined
)
target_link_libraries(cuvil_llvm PRIVATE
    ${LLVM_LIBRARY_DIR}/liblldELF.a
    ${LLVM_LIBRARY_DIR}/liblldCommon.a
    ${archives}
    libzstd.a
    ZLIB::ZLIB
)
