# What is installed, in two parts with no file in common: COMPONENT runtime loads and runs modules, COMPONENT compiler
# adds the compiler and the program.
set(runtime_files __init__.py _feeds.py _files.py _runtime.pyi config.py errors.py py.typed runtime.py)
file(GLOB_RECURSE compiler_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/cuvil cuvil/*.py cuvil/*.pyi)
list(REMOVE_ITEM compiler_files ${runtime_files})
foreach(component runtime compiler)
    foreach(file IN LISTS ${component}_files)
        cmake_path(GET file PARENT_PATH folder)
        install(FILES cuvil/${file} DESTINATION cuvil/${folder} COMPONENT ${component})
    endforeach()
endforeach()

set_target_properties(_runtime _compiler PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS _runtime LIBRARY DESTINATION cuvil COMPONENT runtime)
install(TARGETS cuvil_rt LIBRARY DESTINATION cuvil COMPONENT runtime NAMELINK_SKIP)
install(FILES ${PROJECT_SOURCE_DIR}/include/cuvil/cuvil.h DESTINATION cuvil/include/cuvil COMPONENT runtime)

install(TARGETS _compiler LIBRARY DESTINATION cuvil COMPONENT compiler)
if(CUVIL_STANDALONE) # the program finds the library beside it, wherever the package is; a script finds the program
    set_target_properties(cuvil PROPERTIES INSTALL_RPATH $ORIGIN/..)
    install(TARGETS cuvil_llvm LIBRARY DESTINATION cuvil COMPONENT compiler)
    install(TARGETS cuvil RUNTIME DESTINATION cuvil/bin COMPONENT compiler)
    install(PROGRAMS launcher.py RENAME cuvil DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT compiler)
else()
    install(TARGETS cuvil RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT compiler)
endif()
