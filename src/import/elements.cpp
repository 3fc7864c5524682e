#include "import/elements.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace cuvil {
namespace {

using Index = std::vector<int64_t>;
using Elements = std::vector<Dim>;

constexpr int64_t most_elements = 64;

std::optional<Index> fixed(const Shape& shape) {
    Index sizes;
    for (const Dim& d : shape) {
        auto size = d.constant();
        if (!size || *size < 0 || *size > most_elements) return std::nullopt;
        sizes.push_back(*size);
    }
    return sizes;
}

// The elements of a tensor with these sizes, each picked from `from` by `source`: its index there; nothing where one of
// them is out of range.
std::optional<Elements> pick(const Index& sizes, const Index& from_sizes, const Elements& from,
                             const std::function<Index(const Index&)>& source) {
    int64_t count = 1;
    for (int64_t size : sizes)
        if ((count *= size) > most_elements) return std::nullopt;
    Elements picked;
    for (int64_t i = 0; i < count; i++) {
        Index at(sizes.size());
        for (int64_t k = static_cast<int64_t>(sizes.size()) - 1, rest = i; k >= 0; k--) {
            at[static_cast<size_t>(k)] = rest % sizes[static_cast<size_t>(k)];
            rest /= sizes[static_cast<size_t>(k)];
        }
        Index there = source(at);
        int64_t flat = 0;
        for (size_t k = 0; k < there.size(); k++) {
            if (there[k] < 0 || there[k] >= from_sizes[k]) return std::nullopt;
            flat = flat * from_sizes[k] + there[k];
        }
        picked.push_back(from.at(static_cast<size_t>(flat)));
    }
    return picked;
}

std::optional<Elements> followed(const OpNode& node) {
    const Value& x = *node.operand(0);
    auto sizes = fixed(node.result().type().shape()), from = fixed(x.type().shape());
    if (!sizes || !from) return std::nullopt;
    auto by = [&](const std::function<Index(const Index&)>& source) {
        return pick(*sizes, *from, *x.elements(), source);
    };
    if (node.op() == "neg") {
        Elements negated;
        for (const Dim& d : *x.elements()) negated.push_back(Dim(0) - d);
        return negated;
    }
    if (node.op() == "transpose")
        return by([&](const Index& at) {
            Index there(at.size());
            const auto& perm = node.get<std::vector<int64_t>>("perm");
            for (size_t k = 0; k < at.size(); k++) there[static_cast<size_t>(perm[k])] = at[k];
            return there;
        });
    if (node.op() == "broadcast")
        return by([&](const Index& at) {
            Index there(at.end() - static_cast<int64_t>(from->size()), at.end());
            for (size_t k = 0; k < there.size(); k++)
                if ((*from)[k] == 1) there[k] = 0;
            return there;
        });
    if (node.op() == "slice") {
        auto starts = fixed(node.get<Shape>("starts"));
        if (!starts) return std::nullopt;
        return by([&](const Index& at) {
            Index there(at.size());
            for (size_t k = 0; k < at.size(); k++)
                there[k] = (*starts)[k] + at[k] * node.get<std::vector<int64_t>>("steps")[k];
            return there;
        });
    }
    if (node.op() == "gather") {
        const Value& indices = *node.operand(1);
        if (!indices.elements()) return std::nullopt;
        auto axis = static_cast<size_t>(node.get<int64_t>("axis"));
        auto index_sizes = fixed(indices.type().shape());
        if (!index_sizes) return std::nullopt;
        auto index_rank = static_cast<int64_t>(index_sizes->size());
        return by([&](const Index& at) {
            auto first = at.begin() + static_cast<int64_t>(axis);
            int64_t flat = 0;
            for (size_t k = 0; k < index_sizes->size(); k++)
                flat = flat * (*index_sizes)[k] + first[static_cast<int64_t>(k)];
            int64_t index = indices.elements()->at(static_cast<size_t>(flat)).constant().value_or(INT64_MIN);
            Index there(at.begin(), first);
            there.push_back(index < 0 && index != INT64_MIN ? index + (*from)[axis] : index);
            there.insert(there.end(), first + index_rank, at.end());
            return there;
        });
    }
    return std::nullopt;
}

} // namespace

void follow_elements(OpNode& node) {
    if (node.results().size() != 1 || node.result().elements() || node.operands().empty()) return;
    if (!node.operand(0) || !node.operand(0)->elements()) return;
    try {
        if (auto elements = followed(node)) node.result().set_elements(std::move(elements));
    } catch (const DimOverflow&) {
        return; // integers that wrap are no sizes
    }
}

} // namespace cuvil
