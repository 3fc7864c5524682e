// The table of what src/eval computes: one node on arrays.
#pragma once

#include "eval/arrays.hpp"
#include "ir/op_node.hpp"

#include <map>
#include <optional>
#include <string>

namespace cuvil::evaluation {

// The values of symbolic sizes.
using Symbols = std::map<std::string, int64_t, std::less<>>;

std::optional<int64_t> value_of(const Dim& dim, const Symbols& symbols);
std::optional<std::vector<int64_t>> values_of(const std::vector<Dim>& dims, const Symbols& symbols);
// Counted from the front.
inline int64_t from_front(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

// A node and what it is computed from and into.
struct Computation {
    const OpNode& node;
    std::span<const Array> x; // the operands; one that is left out has no data
    std::span<const Result> y;
    const Symbols& symbols; // that sizes in attributes may hold

    const Array* optional(size_t i) const { return i < x.size() && x[i].data ? &x[i] : nullptr; }
    template <class T> const T& get(std::string_view attribute) const { return node.get<T>(attribute); }
    bool flag(std::string_view attribute) const { return node.get<bool>(attribute); }
    // The attribute `axis`, counted from the front of the first operand's.
    int64_t axis() const { return from_front(node.get<int64_t>("axis"), x[0].shape.size()); }
    // An attribute that holds dims; nothing where a symbol of theirs is not known.
    std::optional<std::vector<int64_t>> sizes(std::string_view attribute) const {
        return values_of(node.get<Shape>(attribute), symbols);
    }
};

struct Row {
    std::string_view op;
    bool (*compute)(const Computation&); // false: not for these types or sizes, or an index is out of range
    bool folds = false;                  // constants are folded with it
};

// The tables, besides the elementwise ops.
std::span<const Row> axis_rows();
std::span<const Row> data_rows();
std::span<const Row> window_rows();

// The row of an op; nothing for those that src/eval does not compute.
std::optional<Row> row_of(const OpDef& op);

} // namespace cuvil::evaluation
