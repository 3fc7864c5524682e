// A size read from a constant is known: it takes the place of its symbol.
#include "optimize/constants.hpp"
#include "optimize/passes.hpp"
#include "optimize/substitute.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// What is larger is no size.
constexpr int64_t largest_size = int64_t{1} << 40;

bool is_size(int64_t element) { return element >= -largest_size && element <= largest_size; }

} // namespace

bool fold_read_size(OpNode& node, Rewriter& rewriter) {
    if (node.op() != "read_size") return false;
    auto element = constant_integer(rewriter.program(), *node.operand(0), node.get<int64_t>("at"));
    if (!element || !is_size(*element)) return false;
    Region& body = rewriter.function().body();
    Sizes sizes{
        {node.get<std::string>("count"), std::max<int64_t>(node.get<bool>("negated") ? -*element : *element, 0)}};
    if (!may_hold(body, sizes)) return false;
    rewriter.erase(node);
    substitute(body, sizes, rewriter);
    return true;
}

} // namespace cuvil
