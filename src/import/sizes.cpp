// Sizes that the elements of integer tensors give: known when compiling, or read while running.
#include "import/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil {
namespace {

// Shapes longer than this are a fault.
constexpr int64_t most_read = 64;

Region& region_of(const Value& value) { return value.producer() ? *value.producer()->parent() : *value.argument_of(); }

} // namespace

int64_t GraphBuilder::length_of(const Value& integers) const {
    auto count = checked_count(integers.type().shape()).constant();
    if (!count || *count > most_read)
        throw ImportError("data-dependent-shape",
                          fmt::format("the rank of the result depends on the size of {}", integers.type().text()),
                          "fix the sizes of the inputs when compiling");
    return *count;
}

// The reads stand right behind what makes the value, so that every later use, in whatever region, finds the symbols
// bound.
const std::vector<GraphBuilder::ReadSize>& GraphBuilder::read(Value& value) {
    auto level =
        std::find_if(levels_.rbegin(), levels_.rend(), [&](const Level& l) { return l.region == &region_of(value); });
    if (level == levels_.rend()) throw ImportError("data-dependent-shape", "the data is not of this graph");
    if (auto known = level->read.find(&value); known != level->read.end()) return known->second;
    int64_t count = length_of(value);
    if (value.producer())
        rewriter_.insert_after(*value.producer());
    else if (!region_of(value).nodes().empty())
        rewriter_.insert_before(*region_of(value).nodes().front());
    std::vector<ReadSize> sizes;
    for (int64_t i = 0; i < count; i++) {
        auto bind = [&](bool negated) {
            std::string symbol = program().fresh_symbol(negated ? "below_zero" : "size");
            level->symbols.insert(symbol);
            read_symbols_.insert(symbol);
            rewriter_.create_typed("read_size", {&value}, {{"at", i}, {"count", symbol}, {"negated", negated}}, {});
            return Dim::symbol(std::move(symbol));
        };
        Dim size = bind(false);
        sizes.push_back({std::move(size), bind(true)});
    }
    rewriter_.insert_at_end(*levels_.back().region);
    return level->read.emplace(&value, std::move(sizes)).first->second;
}

std::vector<std::optional<Dim>> GraphBuilder::known_elements(const Value& value) const {
    if (value.elements()) return {value.elements()->begin(), value.elements()->end()};
    std::vector<std::optional<Dim>> known;
    if (const OpNode* node = value.producer(); node && node->op() == "concat" && value.type().rank() == 1) {
        for (const Value* part : node->operands()) {
            auto elements = known_elements(*part);
            known.insert(known.end(), elements.begin(), elements.end());
        }
        return known;
    }
    known.resize(static_cast<size_t>(length_of(value)));
    return known;
}

std::vector<Dim> GraphBuilder::sizes_of(Value& value) {
    std::vector<Dim> sizes;
    std::vector<std::optional<Dim>> known = known_elements(value);
    bool is_known = std::ranges::all_of(known, [](const auto& element) { return element.has_value(); });
    if (!is_known) {
        const std::vector<ReadSize>& all = read(value);
        for (size_t i = 0; i < all.size(); i++) sizes.push_back(known[i] ? *known[i] : all[i].size - all[i].below_zero);
        return sizes;
    }
    for (const auto& element : known) sizes.push_back(*element);
    return sizes;
}

bool GraphBuilder::is_from_data(const Dim& dim) const {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    return std::ranges::any_of(symbols, [&](const std::string& symbol) { return read_symbols_.contains(symbol); });
}

Value& GraphBuilder::name_sizes(Value& x) {
    Shape shape = x.type().shape();
    for (Dim& size : shape)
        if (!size.as_symbol() && is_from_data(size)) size = read(dims({size}, {})).at(0).size;
    return fit(x, shape);
}

std::vector<Dim> GraphBuilder::counts_of(Value& value, std::string_view what) {
    std::vector<Dim> counts = sizes_of(value);
    for (size_t i = 0; i < counts.size(); i++) {
        require_at_least(counts[i], 0, what);
        if (counts[i].lower_bound().value_or(-1) < 0)
            counts[i] = value.elements() ? Dim::max(counts[i], 0) : read(value)[i].size;
    }
    return counts;
}

void GraphBuilder::require(const Dim& left, const Dim& right, std::string message) {
    for (const Level& level : levels_)
        if (level.required.contains({left, right})) return;
    levels_.back().required.emplace(left, right);
    rewriter_.create_typed("require", {},
                           {{"left", Shape{left}}, {"right", Shape{right}}, {"message", std::move(message)}}, {});
}

void GraphBuilder::require_at_least(const Dim& dim, int64_t least, std::string_view what) {
    if (dim.lower_bound().value_or(least - 1) >= least) return;
    if (auto number = dim.constant())
        throw ImportError("shape-mismatch", fmt::format("{} is {}, expected at least {}", what, *number, least));
    require(Dim::min(dim, least), least, fmt::format("{} is {{0}}, expected at least {}", what, least));
}

} // namespace cuvil
