# The test modules come from runtime.cmake.
foreach(test reader writer)
    cuvil_unit_test(artifact_${test}_test LIBS cuvil_runtime_fixture)
    add_dependencies(artifact_${test}_test cuvil_test_modules)
endforeach()

cuvil_unit_test(artifact_linkable_test LIBS cuvil_artifact cuvil_codegen)
