// Loop and Scan: the body becomes a region that runs again and again.
#include "import/onnx/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace cuvil::onnx {
namespace {

constexpr int64_t most_sequences = 64; // each of which a loop is made for

// What one try to build the body found.
struct Attempt {
    OpNode* loop;
    Values results; // condition, carried, stacked
    std::set<std::string> symbols;
    Diagnostics diag;
};

// What is run again and again.
struct Repeated {
    const GraphProto& body;
    Value *trips, *condition;            // may be nullptr
    Values carried;                      // as they are at first
    std::vector<std::string_view> names; // of the iteration number, the condition and the carried values in the body
    size_t stacked;
    // Builds the body for an iteration number, the condition, and carried values; gives the next condition, the next
    // carried values, and slices to be stacked.
    std::function<Values(const Values&)> build;
};

// Builds the loop with arguments of these types.
Attempt attempt(Node& node, const Repeated& repeated, const std::vector<Type>& carried) {
    GraphBuilder& build = node.build;
    Attempt made{};
    std::vector<Value*> operands{repeated.trips, repeated.condition};
    operands.insert(operands.end(), repeated.carried.begin(), repeated.carried.end());
    made.loop =
        &build.rewriter().create_typed("loop", operands, {{"count", build.fresh_dim("trips").as_symbol().value()}},
                                       std::vector<Type>(carried.size() + repeated.stacked));
    Region& region = made.loop->region(0);
    std::vector<Type> types{Type::tensor(DType::I64, {}), Type::tensor(DType::Bool, {})};
    types.insert(types.end(), carried.begin(), carried.end());
    Values arguments;
    for (size_t i = 0; i < types.size(); i++)
        arguments.push_back(&region.add_argument(types[i], std::string(repeated.names[i])));
    build.enter(region);
    Diagnostics* before = node.importer().redirect(&made.diag);
    try {
        made.results = repeated.build(arguments);
    } catch (...) {
        node.importer().redirect(before);
        build.leave();
        throw;
    }
    node.importer().redirect(before);
    made.symbols = build.leave();
    return made;
}

// The loop must carry each value in one type: a size that the body changes becomes a symbol of the region.
std::vector<Type> carried_types(Node& node, const Values& first, const std::vector<std::vector<bool>>& changes,
                                std::set<std::string>& symbols) {
    std::vector<Type> types;
    for (size_t i = 0; i < changes.size(); i++) {
        Shape shape = first[i]->type().shape();
        for (size_t k = 0; k < shape.size(); k++) {
            if (!changes[i][k]) continue;
            shape[k] = node.build.fresh_dim("carried");
            symbols.insert(shape[k].as_symbol().value());
        }
        types.push_back(first[i]->type().with_shape(std::move(shape)));
    }
    return types;
}

// Marks the sizes that turned out to change; true when one was new.
bool find_changes(Node& node, const std::vector<Type>& carried, const Attempt& made,
                  std::vector<std::vector<bool>>& changes) {
    bool is_new = false;
    for (size_t i = 0; i < carried.size(); i++) {
        const Type& given = made.results[1 + i]->type();
        if (!given.is_tensor() || !given.has_rank() || given.dtype() != carried[i].dtype())
            throw ImportError("type-mismatch", fmt::format("the body turns carried value {} from {} into {}", i,
                                                           carried[i].text(), given.text()));
        if (given.rank() != carried[i].rank())
            node.unsupported(
                fmt::format("the body turns carried value {} from {} into {}", i, carried[i].text(), given.text()));
        for (size_t k = 0; k < changes[i].size(); k++) {
            if (changes[i][k] || carried[i].shape()[k] == given.shape()[k]) continue;
            changes[i][k] = true;
            is_new = true;
        }
    }
    return is_new;
}

Type outside_type(Node& node, const Type& type, const std::set<std::string>& inner) {
    Shape shape;
    for (const Dim& d : type.shape()) shape.push_back(mentions(d, inner) ? node.build.fresh_dim("loop_size") : d);
    return type.with_shape(std::move(shape));
}

// The carried and stacked results, `wanted` of them or the same number of poisons.
Values repeat(Node& node, const Repeated& repeated, size_t wanted) {
    GraphBuilder& build = node.build;
    size_t count = repeated.carried.size();
    std::vector<std::vector<bool>>& changes = node.importer().changing_sizes(repeated.body);
    changes.resize(count);
    for (size_t i = 0; i < count; i++) changes[i].resize(repeated.carried[i]->type().shape().size());

    for (;;) {
        std::set<std::string> changing;
        std::vector<Type> carried = carried_types(node, repeated.carried, changes, changing);
        Attempt made = attempt(node, repeated, carried);
        if (made.diag.has_errors() || any_poison(node, made.results)) {
            node.importer().append(made.diag);
            return Values(wanted, &node.poison());
        }
        if (find_changes(node, carried, made, changes)) {
            build.rewriter().erase(*made.loop);
            continue;
        }
        node.importer().append(made.diag);
        const Type& next = made.results[0]->type();
        if (next.dtype() != DType::Bool || !checked_count(next.shape()).is(1))
            throw ImportError("type-mismatch", fmt::format("the condition that the body returns is {}", next.text()));
        build.enter(made.loop->region(0));
        made.results[0] = &build.reshape(*made.results[0], {});
        end_region(node, made.results);
        build.leave();

        std::set<std::string> inner = made.symbols;
        inner.insert(changing.begin(), changing.end());
        Values results;
        for (size_t i = 0; i < count + repeated.stacked; i++) {
            Type type = i < count ? carried[i] : made.results[1 + i]->type();
            if (!type.has_rank()) node.unsupported("the body gives a sequence, or a value of unknown rank");
            if (i < count) {
                type = outside_type(node, type, inner);
            } else {
                // All slices must turn out to have one shape.
                Shape shape = outside_type(node, type, inner).shape();
                shape.insert(shape.begin(), Dim::symbol(made.loop->get<std::string>("count")));
                type = type.with_shape(std::move(shape));
            }
            made.loop->result(i).set_type(std::move(type));
            results.push_back(&made.loop->result(i));
        }
        return results;
    }
}

Values loop(Node& node) {
    const GraphProto& body = node.graph("body");
    size_t count = node.input_count() < 2 ? 0 : node.input_count() - 2;
    if (body.inputs.size() != count + 2 || body.outputs.size() < count + 1 ||
        node.output_count() > body.outputs.size() - 1)
        throw ImportError("bad-node",
                          fmt::format("the body has {} inputs and {} outputs for {} carried values and {} outputs",
                                      body.inputs.size(), body.outputs.size(), count, node.output_count()));
    Repeated repeated{
        .body = body,
        .trips = node.has_input(0) ? &as_scalar(node, 0, DType::I64) : nullptr,
        .condition = node.has_input(1) ? &as_scalar(node, 1, DType::Bool) : nullptr,
        .carried = {},
        .names = {},
        .stacked = body.outputs.size() - 1 - count,
        .build = [&](const Values& arguments) { return node.import_body(body, arguments); },
    };
    for (const ValueInfoProto& input : body.inputs) repeated.names.push_back(input.name);
    for (size_t i = 0; i < count; i++) repeated.carried.push_back(&node.input(2 + i));
    return repeat(node, repeated, node.output_count());
}

// An axis or direction for each of `count` values, 0 where none is given.
std::vector<int64_t> scan_list(Node& node, std::string_view attribute, size_t count) {
    std::vector<int64_t> list = node.integers(attribute).value_or(std::vector<int64_t>(count, 0));
    if (list.size() != count)
        bad_attribute(fmt::format("attribute \"{}\" has {} entries for {} values", attribute, list.size(), count));
    return list;
}

// A loop over slices of its last inputs. What it stacks may go to another axis, and backwards.
Values scan_values(Node& node, const Values& inputs) {
    GraphBuilder& build = node.build;
    const GraphProto& body = node.graph("body");
    auto scanned = static_cast<size_t>(std::max<int64_t>(node.integer("num_scan_inputs"), 0));
    if (scanned < 1 || scanned > inputs.size() || body.inputs.size() != inputs.size() ||
        body.outputs.size() + scanned < inputs.size() || node.output_count() > body.outputs.size())
        throw ImportError("bad-node",
                          fmt::format("the body has {} inputs and {} outputs for {} inputs, {} of them scanned",
                                      body.inputs.size(), body.outputs.size(), inputs.size(), scanned));
    size_t count = inputs.size() - scanned, stacked = body.outputs.size() - count;
    std::vector<int64_t> axes = scan_list(node, "scan_input_axes", scanned),
                         ways = scan_list(node, node.opset < 9 ? "directions" : "scan_input_directions", scanned);
    std::vector<int64_t> out_axes = scan_list(node, "scan_output_axes", stacked),
                         out_ways = scan_list(node, "scan_output_directions", stacked);
    for (size_t i = 0; i < scanned; i++) {
        axes[i] = normal_axis(axes[i], inputs[count + i]->type().rank());
        build.require_equal(inputs[count + i]->type().dim(axes[i]), inputs[count]->type().dim(axes[0]));
    }
    const Dim length = inputs[count]->type().dim(axes[0]);
    Repeated repeated{
        .body = body,
        .trips = &build.dims({length}, {}),
        .condition = nullptr,
        .carried = {},
        .names = {"", ""},
        .stacked = stacked,
        .build =
            [&](const Values& arguments) {
                Values given(arguments.begin() + 2, arguments.end());
                for (size_t i = 0; i < scanned; i++) {
                    Value& place = ways[i] == 0
                                       ? *arguments[0]
                                       : build.elementwise("sub", {&build.dims({length - 1}, {}), arguments[0]});
                    given.push_back(&build.gather(*inputs[count + i], place, axes[i]));
                }
                Values results = node.import_body(body, given);
                results.insert(results.begin(), arguments[1]);
                return results;
            },
    };
    for (size_t i = 0; i < count; i++) {
        repeated.names.push_back(body.inputs[i].name);
        repeated.carried.push_back(inputs[i]);
    }
    Values results = repeat(node, repeated, body.outputs.size());
    for (size_t i = 0; i < stacked; i++) {
        Value*& result = results[count + i];
        if (node.is_poison(result)) continue;
        Shape shape = result->type().shape();
        shape[0] = length;
        result = &build.fit(*result, shape);
        if (out_ways[i] != 0) result = &build.slice(*result, 0, Dim::max(length - 1, 0), length, -1);
        std::vector<int64_t> perm;
        for (int64_t k = 1; k < result->type().rank(); k++) perm.push_back(k);
        perm.insert(perm.begin() + normal_axis(out_axes[i], result->type().rank()), 0);
        result = &build.transpose(*result, perm);
    }
    return results;
}

Values scan(Node& node) {
    Values inputs;
    for (size_t i = 0; i < node.input_count(); i++) inputs.push_back(&node.input(i));
    return scan_values(node, inputs);
}

// The first definition had a batch: every value of the body is one sequence's. Each sequence has a loop of its own.
Values scan_batch(Node& node) {
    GraphBuilder& build = node.build;
    if (node.has_input(0)) node.unsupported("sequences of different lengths");
    if (node.input_count() < 2) throw ImportError("bad-node", "there is nothing to scan");
    auto batch = node.type(node.input_count() - 1).rank() == 0 ? Dim() : node.type(node.input_count() - 1).dim(0);
    if (!batch.constant() || *batch.constant() < 1 || *batch.constant() > most_sequences)
        node.unsupported(fmt::format("a batch of {}", batch.text()));
    std::vector<Values> results;
    for (int64_t i = 0; i < *batch.constant(); i++) {
        Values inputs;
        for (size_t k = 1; k < node.input_count(); k++) {
            if (node.type(k).rank() == 0 || !node.type(k).dim(0).is(*batch.constant()))
                throw ImportError("shape-mismatch",
                                  fmt::format("{} is no batch of {}", node.type(k).text(), batch.text()));
            inputs.push_back(&build.squeeze(build.slice(node.input(k), 0, i, 1), {0}));
        }
        Values outputs = scan_values(node, inputs);
        results.resize(outputs.size());
        for (size_t k = 0; k < outputs.size(); k++)
            results[k].push_back(node.is_poison(outputs[k]) ? outputs[k] : &build.unsqueeze(*outputs[k], {0}));
    }
    Values all;
    for (const Values& parts : results)
        all.push_back(any_poison(node, parts) ? &node.poison() : &build.concat(parts, 0));
    return all;
}

const Row rows[] = {
    {"Loop", 1, newest, loop, 0, any, "body", "loop"},
    {"Scan", 8, 8, scan_batch, 2, any, "body directions num_scan_inputs", "loop"},
    {"Scan", 9, newest, scan, 1, any,
     "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions", "loop"},
};

} // namespace

std::span<const Row> loop_rows() { return rows; }

} // namespace cuvil::onnx
