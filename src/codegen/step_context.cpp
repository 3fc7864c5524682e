#include "codegen/step_context.hpp"

#include <algorithm>

namespace cuvil {

std::string StepContext::buffer(int number) const {
    auto found = std::ranges::find(buffers, number);
    if (found == buffers.end()) found = buffers.insert(found, number);
    return fmt::format("buffer[{}]", found - buffers.begin());
}

} // namespace cuvil
