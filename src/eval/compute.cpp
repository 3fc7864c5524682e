#include "eval/compute.hpp"

#include <algorithm>
#include <cstring>

namespace cuvil::evaluation {

std::optional<int64_t> value_of(const Dim& dim, const Symbols& symbols) {
    return dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
        auto found = symbols.find(name);
        return found == symbols.end() ? std::nullopt : std::optional(found->second);
    });
}

std::optional<std::vector<int64_t>> values_of(const std::vector<Dim>& dims, const Symbols& symbols) {
    std::vector<int64_t> values;
    for (const Dim& dim : dims) {
        auto value = value_of(dim, symbols);
        if (!value) return std::nullopt;
        values.push_back(*value);
    }
    return values;
}

namespace {

using Ints = std::vector<int64_t>;

bool elementwise(const Computation& c) { return map_elements(c.node.op(), c.x, c.y[0]); }

bool keep_bytes(const Computation& c) {
    std::memcpy(c.y[0].data, c.x[0].data, static_cast<size_t>(c.y[0].count()) * c.y[0].element_size);
    return true;
}

bool reduce(const Computation& c) {
    Ints axes = c.get<Ints>("axes");
    for (int64_t& axis : axes) axis = from_front(axis, c.x[0].shape.size());
    return reduce(c.node.def().lower.text, c.x[0], axes, c.y[0]);
}

bool softmax(const Computation& c) { return softmax(c.node.op(), c.x[0], c.axis(), c.y[0]); }

bool attention(const Computation& c) {
    const Attending how{c.get<double>("scale"), c.get<double>("fill"), c.flag("nan_to_zero")};
    return attention(c.x[0], c.x[1], c.x[2], c.optional(3), how, c.y[0]);
}

bool arg_extreme(const Computation& c) {
    return arg_extreme(c.x[0], c.axis(), c.node.op() == "arg_max", c.flag("last"), c.y[0]);
}

bool cumulate(const Computation& c) {
    return cumulate(c.node.op() == "cum_sum" ? "Sum" : "Prod", c.x[0], c.axis(), c.flag("exclusive"), c.flag("reverse"),
                    c.y[0]);
}

// Ops along axes, and products.
constexpr Row rows[] = {
    {"arg_max", arg_extreme},
    {"arg_min", arg_extreme},
    {"attention", attention},
    {"batch_norm", [](const Computation& c) { return batch_norm(c.x, c.get<double>("epsilon"), c.y[0]); }},
    {"bitcast", keep_bytes, true},
    {"cast", [](const Computation& c) { return cast_elements(c.x[0], c.y[0]); }, true},
    {"cum_prod", cumulate},
    {"cum_sum", cumulate},
    {"eliminate", [](const Computation& c) { return eliminate(c.x[0], c.y[0]); }},
    {"hardmax", softmax},
    {"identity", keep_bytes, true},
    {"layer_norm",
     [](const Computation& c) {
         return layer_norm(c.x[0], c.optional(1), c.optional(2), c.axis(), c.get<double>("epsilon"), c.y[0]);
     }},
    {"log_softmax", softmax, true},
    {"matmul", [](const Computation& c) { return matmul(c.x[0], c.x[1], c.y[0]); }, true},
    {"reduce_max", reduce, true},
    {"reduce_mean", reduce, true},
    {"reduce_min", reduce, true},
    {"reduce_prod", reduce, true},
    {"reduce_sum", reduce, true},
    {"reshape", keep_bytes, true},
    {"rms_norm",
     [](const Computation& c) { return rms_norm(c.x[0], c.optional(1), c.axis(), c.get<double>("epsilon"), c.y[0]); }},
    {"softmax", softmax, true},
    {"sort_rows", [](const Computation& c) { return sort_rows(c.x[0], c.y[0]); }},
    {"top_k", [](const Computation& c) { return top_k(c.x[0], c.axis(), c.flag("largest"), c.y[0]); }},
};

} // namespace

std::span<const Row> axis_rows() { return rows; }

std::optional<Row> row_of(const OpDef& op) {
    for (std::span<const Row> table : {axis_rows(), data_rows(), window_rows()})
        if (auto found = std::ranges::find(table, op.name, &Row::op); found != table.end()) return *found;
    if (op.lower.kind == Lowering::Scalar) return Row{op.name, elementwise, true};
    return std::nullopt;
}

} // namespace cuvil::evaluation
