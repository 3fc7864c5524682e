#include "artifact/reader.hpp"

#include "support/file.hpp"

namespace cuvil {

std::unique_ptr<ArtifactFile> read_artifact(const std::filesystem::path& path, Diagnostics& diagnostics) {
    (void)open_named(path, diagnostics);
    std::string error;
    std::unique_ptr<ArtifactFile> file = ArtifactFile::open(path.string(), error);
    if (!file) diagnostics.error("bad-artifact", error);
    return file;
}

bool check_weights(const ArtifactFile& file, Diagnostics& diagnostics) {
    std::string error;
    if (file.view().verify_weights(error)) return true;
    diagnostics.error("bad-artifact", file.name() + " " + error);
    return false;
}

} // namespace cuvil
