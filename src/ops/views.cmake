# ops/views.hpp, the typed views of the ops. Who links cuvil_ops can include it. The generator itself is linked with the
# library's file: as a user of the target it would wait for its own output.
set(generated ${PROJECT_BINARY_DIR}/generated)
add_executable(generate_views generate_views.cpp)
target_link_libraries(generate_views PRIVATE $<TARGET_FILE:cuvil_ops> cuvil_ir)
add_dependencies(generate_views cuvil_ops)
target_include_directories(generate_views PRIVATE $<TARGET_PROPERTY:cuvil_ops,INCLUDE_DIRECTORIES>)
add_custom_command(
    OUTPUT ${generated}/ops/views.hpp
    COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}/ops
    COMMAND generate_views ${generated}/ops/views.hpp
    DEPENDS generate_views
    VERBATIM
)
add_custom_target(cuvil_ops_views DEPENDS ${generated}/ops/views.hpp)
add_library(cuvil_views INTERFACE)
target_include_directories(cuvil_views INTERFACE ${generated})
add_dependencies(cuvil_views cuvil_ops_views)
target_link_libraries(cuvil_ops INTERFACE cuvil_views)
