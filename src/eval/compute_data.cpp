// Ops that move elements, pick them by data, or go through them step by step.
#include "eval/compute.hpp"

#include <algorithm>
#include <limits>

namespace cuvil::evaluation {
namespace {

using Ints = std::vector<int64_t>;

bool dims(const Computation& c) {
    auto values = c.sizes("values");
    if (!values) return false;
    const Array list{"i64",
                     sizeof(int64_t),
                     {static_cast<int64_t>(values->size())},
                     reinterpret_cast<const std::byte*>(values->data())};
    return cast_elements(list, c.y[0]);
}

bool slice(const Computation& c) {
    auto starts = c.sizes("starts");
    return starts && slice(c.x[0], *starts, c.get<Ints>("steps"), c.y[0]);
}

bool concat(const Computation& c) {
    return concat(c.x, from_front(c.get<int64_t>("axis"), c.y[0].shape.size()), c.y[0]);
}

bool pad(const Computation& c) {
    auto low = c.sizes("low");
    return low && pad(c.x[0], *low, c.get<double>("value"), c.y[0]);
}

bool scatter_elements(const Computation& c) {
    return scatter_elements(c.x[0], c.x[1], c.x[2], c.axis(), c.get<std::string>("reduction"), c.y[0]);
}

bool scatter_nd(const Computation& c) {
    return scatter_nd(c.x[0], c.x[1], c.x[2], c.get<std::string>("reduction"), c.y[0]);
}

bool recur(const Computation& c) {
    bool is_lstm = c.node.op() == "lstm", is_gru = c.node.op() == "gru";
    Recurrence layer{c.node.op(),
                     c.get<std::vector<std::string>>("activations"),
                     c.get<std::vector<double>>("alphas"),
                     c.get<std::vector<double>>("betas"),
                     c.get<double>("clip"),
                     c.flag("reverse"),
                     is_lstm  ? c.flag("couples")
                     : is_gru ? c.flag("resets_product")
                              : false,
                     &c.x[0],
                     &c.x[1],
                     &c.x[2],
                     is_lstm ? &c.x[3] : nullptr,
                     c.optional(is_lstm ? 4 : 3),
                     is_lstm ? c.optional(5) : nullptr,
                     is_gru ? c.optional(4) : nullptr};
    return recur(layer, c.y);
}

constexpr Row rows[] = {
    {"broadcast", [](const Computation& c) { return broadcast(c.x[0], c.y[0]); }, true},
    {"concat", concat, true},
    {"dims", dims},
    {"gather", [](const Computation& c) { return gather(c.x[0], c.x[1], c.axis(), c.y[0]); }, true},
    {"gather_elements", [](const Computation& c) { return gather_elements(c.x[0], c.x[1], c.axis(), c.y[0]); }},
    {"gather_nd", [](const Computation& c) { return gather_nd(c.x[0], c.x[1], c.get<int64_t>("batch_axes"), c.y[0]); }},
    {"gru", recur},
    {"lstm", recur},
    {"non_max_suppression",
     [](const Computation& c) { return suppress(c.x, c.optional(5), c.flag("centered"), c.y[0]); }},
    {"nonzero", [](const Computation& c) { return nonzero(c.x[0], c.y[0]); }},
    {"pad", pad, true},
    {"range", [](const Computation& c) { return range(c.x[0], c.x[1], c.y[0]); }, true},
    {"rnn", recur},
    {"scatter_elements", scatter_elements},
    {"scatter_nd", scatter_nd},
    {"slice", slice, true},
    {"transpose", [](const Computation& c) { return transpose(c.x[0], c.get<Ints>("perm"), c.y[0]); }, true},
};

} // namespace

std::span<const Row> data_rows() { return rows; }

} // namespace cuvil::evaluation
