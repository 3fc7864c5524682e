// `.cuvil` files, as far as a load goes before any code of the file runs: structure, hashes and manifest.
#include "expect.hpp"
#include "target.hpp"

#include "artifact/reader.hpp"
#include "runtime/manifest.hpp"

using namespace cuvil;

namespace {

void read_manifest_of(const ArtifactView& view) {
    try {
        const rt::Manifest manifest = rt::read_manifest(view.manifest());
        for (const auto* values : {&manifest.inputs, &manifest.outputs})
            for (const rt::ValueSpec& value : *values)
                fuzz::expect(!rt::shape_text(value).empty() && !rt::dtype_text(value.dtype).empty(),
                             "a value has a type");
        cuvil_failure failure{};
        for (failure.check = -1; failure.check <= static_cast<int64_t>(manifest.checks.size()); failure.check++)
            rt::failure_text(manifest, failure);
    } catch (const rt::ManifestError& error) {
        fuzz::expect(*error.what() != '\0', "a refusal has a sentence");
    }
}

// The same from a mapped file, as a load has it.
void read_file(std::string_view bytes) {
    std::string error;
    const std::unique_ptr<ArtifactFile> file = ArtifactFile::copy(bytes, error);
    if (!file) fuzz::fault("a file does not read as its bytes do: " + error);
    Diagnostics diag;
    fuzz::expect(check_weights(*file, diag) != diag.has_errors(), "damage is reported, and nothing else");
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::string error;
    const std::optional<ArtifactView> view = ArtifactView::read(bytes, error);
    fuzz::expect(view.has_value() == error.empty(), "a file is read, or there is a sentence");
    if (!view) return 0;
    for (const AttachedView& file : view->files()) {
        const std::string copy = std::string(file.name) + std::string(file.bytes); // reads all of it
        fuzz::expect(copy.size() == file.name.size() + file.bytes.size(), "an attached file is whole");
    }
    read_manifest_of(*view);
    read_file(bytes);
    return 0;
}
