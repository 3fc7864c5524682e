#include "codegen/step_context.hpp"

#include <algorithm>

namespace cuvil {

std::string StepContext::buffer(const Value& value) const {
    const int number = plan.buffer(value);
    auto found = std::ranges::find(buffers, number);
    if (found == buffers.end()) found = buffers.insert(found, number);
    return fmt::format("buffer[{}]", found - buffers.begin());
}

} // namespace cuvil
