// Names of relocatable objects: which of them others see.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace cuvil {

// The names of an object that stay visible: those that match one of `kept` ("digits_*"), and those of `renamed`, which
// become others. All other names that the object defines become its own, and groups of which the linker keeps one among
// several objects become plain sections.
struct VisibleNames {
    std::span<const std::string> kept;
    std::map<std::string, std::string> renamed;
};

// The object with these names. The bytes depend on the arguments alone. Throws InternalError when the bytes are no
// object.
std::string with_names(std::string_view object, const VisibleNames& names);

} // namespace cuvil
