# The program's parts are no library: a test compiles what it looks at.
cuvil_unit_test(tools_foreign_json_test
    LIBS nlohmann_json::nlohmann_json
    SOURCES ${PROJECT_SOURCE_DIR}/tools/cuvil/foreign_json.cpp
)
target_include_directories(tools_foreign_json_test PRIVATE ${PROJECT_SOURCE_DIR}/tools/cuvil)
