// Writes what linkers take: relocatable objects with their weights, and archives of them.
#pragma once

#include "artifact/writer.hpp"
#include "cuvil/diagnostic.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace cuvil {

struct LinkableObject {
    std::string name;                 // of a member of an archive, at most 15 bytes: "model.o"
    std::string_view bytes;           // ELF, relocatable
    std::string weights_section = {}; // in `bytes` this section takes no room and is as large as the weights
    WeightsSource weights = {};
};

// Sends the object to `put`, in order, with the weights behind all else. Nothing is copied.
void emit_object(const LinkableObject& object, const std::function<void(std::string_view)>& put);

// Sends an archive with an index of the names that the objects define, without times and owners. Refuses, with
// "too-large", objects of more bytes than the format can say.
void emit_archive(std::span<const LinkableObject> objects, const std::function<void(std::string_view)>& put);

} // namespace cuvil
