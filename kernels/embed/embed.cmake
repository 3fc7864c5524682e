# Writes OUTPUT, a C++ file that holds the text of FILES, a list of "<name in #include>=<path>".
set(entries "")
foreach(file IN LISTS FILES)
    string(REGEX MATCH "^([^=]+)=(.+)$" matched "${file}")
    set(name "${CMAKE_MATCH_1}")
    file(READ "${CMAKE_MATCH_2}" text)
    string(APPEND entries "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()

file(WRITE "${OUTPUT}" "#include \"kernels/embed/kernel_sources.hpp\"

namespace cuvil {

static constexpr SourceFile sources[] = {
${entries}};

std::span<const SourceFile> kernel_sources() {
    return sources;
}

} // namespace cuvil
")
