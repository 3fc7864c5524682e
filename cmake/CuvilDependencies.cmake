# Everything that is not ours, each under its own package name. Header-only and without a CMake package on every supported
# system: protozero, xxhash.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED CONFIG)
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(ZLIB REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG)
find_package(Clang REQUIRED CONFIG HINTS ${LLVM_INSTALL_PREFIX}/lib/cmake/clang)
find_package(LLD REQUIRED CONFIG HINTS ${LLVM_INSTALL_PREFIX}/lib/cmake/lld)
if(CUVIL_PYTHON)
    find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
    find_package(nanobind REQUIRED CONFIG)
endif()
