// Writes `.cuvil` files; runtime/artifact_view.hpp describes what is in them.
#pragma once

#include "cuvil/diagnostic.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

struct AttachedFile {
    std::string name; // "tokenizer.json"
    std::string bytes;
};

// The weights in the order of their offsets. Each piece starts at the next multiple of 64, the section ends at one, and
// the bytes between are zero. The pieces are read in place: no second copy is made.
using WeightsSource = std::vector<std::span<const std::byte>>;

// The offset of each piece in the section; the size of the whole, which the manifest states as weights.bytes.
std::vector<uint64_t> weights_offsets(const WeightsSource& weights);
uint64_t weights_size(const WeightsSource& weights);
// Sends the section to `put`, in order.
void emit_weights(const WeightsSource& weights, const std::function<void(std::string_view)>& put);

struct ArtifactParts {
    std::string_view shared_object; // as the linker wrote it, with its section table
    std::string manifest;           // JSON, format 1
    std::vector<AttachedFile> files;
    WeightsSource weights;
};

// The same parts always give the same bytes. A failure (no space, no permission, a folder in the way, attached files of
// one name) is an error diagnostic, and leaves no file and an older one as it was.
void write_artifact(const std::filesystem::path& path, const ArtifactParts& parts, Diagnostics& diagnostics);

// The same file in memory. Throws Refused where write_artifact reports attached files of one name.
std::string artifact_bytes(const ArtifactParts& parts);

} // namespace cuvil
