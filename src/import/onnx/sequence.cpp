// Sequences and optionals. A list whose length is known dissolves: its elements are values of the graph, and a `list`
// node that nothing reads in the end holds them together meanwhile. An empty optional is a `list` of nothing.
#include "import/onnx/axes.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace cuvil::onnx {
namespace {

constexpr int64_t most_parts = 65536; // each is a node

bool is_list(const Value& value) { return value.type().kind() == Type::Kind::Tuple; }
bool is_empty_optional(const Value& value) { return value.type().kind() == Type::Kind::Optional; }

Values list_of(Node& node, size_t input) {
    const Value& value = node.input(input);
    if (!is_list(value))
        throw ImportError("type-mismatch",
                          fmt::format("input {} is {}, expected a sequence", input, value.type().text()));
    if (!value.producer()) node.unsupported("a sequence whose length is not known when compiling");
    return {value.producer()->operands().begin(), value.producer()->operands().end()};
}

Value& make_list(Node& node, const Values& values) {
    if (std::ranges::any_of(values, [&](const Value* v) { return node.is_poison(v); })) return node.poison();
    return node.build.rewriter().make("list", values);
}

bool is_known(const Node& node, size_t input) { return node.known_numbers(input).has_value(); }

// A position counted from the front, in a list of `count` elements.
size_t position(Node& node, size_t input, size_t count, size_t past_the_end) {
    auto given = node.known_numbers(input);
    if (!given || given->size() != 1) throw ImportError("bad-node", "a position must be one number");
    auto size = static_cast<int64_t>(count);
    int64_t at = given->front() < 0 ? given->front() + size : given->front();
    if (at < 0 || at >= size + static_cast<int64_t>(past_the_end))
        throw ImportError("bad-node", fmt::format("position {} in a sequence of {}", given->front(), count));
    return static_cast<size_t>(at);
}

// Elements of one type behind each other, so that a position may come from data.
Value& stack(Node& node, const Values& values) {
    Values rows;
    for (Value* value : values) {
        if (value->type() != values[0]->type())
            node.unsupported("a position that is not known when compiling, in a sequence of different shapes");
        rows.push_back(&node.build.unsqueeze(*value, {0}));
    }
    if (values.empty()) throw ImportError("bad-node", "a position in an empty sequence");
    return node.build.concat(rows, 0);
}

// The same as position(), where only data shows it.
Value& position_from_data(Node& node, size_t input, size_t count, size_t past_the_end) {
    auto size = static_cast<int64_t>(count);
    return position_from_front(node.build, node.input(input), size, size + static_cast<int64_t>(past_the_end));
}

// `count` elements of the stack: those in front of the position, and then what `behind` says, place for place.
Values spliced(Node& node, Value& stacked, Value& position, size_t count,
               const std::function<Value&(Value& place)>& behind) {
    GraphBuilder& build = node.build;
    Values values;
    for (size_t i = 0; i < count; i++) {
        Value& place = build.scalar(DType::I64, static_cast<double>(i));
        Value& is_before = build.elementwise("less", {&place, &position});
        values.push_back(&build.gather(stacked, build.make("where", {&is_before, &place, &behind(place)}), 0));
    }
    return values;
}

Values sequence_construct(Node& node) {
    Values values;
    for (size_t i = 0; i < node.input_count(); i++) values.push_back(&node.input(i));
    return {&make_list(node, values)};
}

Values sequence_empty(Node& node) { return {&make_list(node, {})}; }

Values sequence_insert(Node& node) {
    Values values = list_of(node, 0);
    if (node.has_input(2) && !is_known(node, 2)) {
        GraphBuilder& build = node.build;
        size_t count = values.size() + 1;
        Value& at = position_from_data(node, 2, values.size(), 1);
        values.push_back(&node.input(1));
        Value& last = build.scalar(DType::I64, static_cast<double>(count - 1));
        return {&make_list(node, spliced(node, stack(node, values), at, count, [&](Value& place) -> Value& {
                               Value& is_new = build.elementwise("equal", {&place, &at});
                               return build.make("where", {&is_new, &last, &build.elementwise("sub", place, 1)});
                           }))};
    }
    size_t at = node.has_input(2) ? position(node, 2, values.size(), 1) : values.size();
    values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), &node.input(1));
    return {&make_list(node, values)};
}

Values sequence_erase(Node& node) {
    Values values = list_of(node, 0);
    if (values.empty()) throw ImportError("bad-node", "an empty sequence has nothing to erase");
    if (node.has_input(1) && !is_known(node, 1)) {
        Value& at = position_from_data(node, 1, values.size(), 0);
        return {&make_list(node, spliced(node, stack(node, values), at, values.size() - 1, [&](Value& place) -> Value& {
                               return node.build.elementwise("add", place, 1);
                           }))};
    }
    size_t at = node.has_input(1) ? position(node, 1, values.size(), 0) : values.size() - 1;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
    return {&make_list(node, values)};
}

Values sequence_at(Node& node) {
    Values values = list_of(node, 0);
    if (is_known(node, 1)) return {values[position(node, 1, values.size(), 0)]};
    return {&node.build.gather(stack(node, values), node.build.reshape(node.input(1), {}), 0)};
}

Values sequence_length(Node& node) {
    auto count = static_cast<int64_t>(list_of(node, 0).size());
    return {&node.build.dims({count}, {})};
}

Values split_to_sequence(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    int64_t axis = node.axis("axis", 0, x.type().rank());
    const Dim size = x.type().dim(axis);
    std::vector<Dim> sizes;
    if (node.has_input(1) && node.type(1).rank() == 1) {
        sizes = node.counts(1, "the size of a part");
    } else {
        auto part = node.has_input(1) ? node.known_numbers(1) : std::vector<int64_t>{1};
        if (!part || !size.constant()) node.unsupported("a number of parts that is not known when compiling");
        if (part->size() != 1 || part->at(0) < 1)
            throw ImportError("bad-node", fmt::format("parts of size {}", fmt::join(*part, ",")));
        int64_t whole = *size.constant(), count = whole / part->at(0);
        if (count > most_parts) throw ImportError("too-complex", fmt::format("{} parts", count));
        sizes.assign(static_cast<size_t>(count), part->at(0));
        if (int64_t rest = whole % part->at(0); rest != 0) sizes.emplace_back(rest);
    }
    // Before anything is cut: parts that are too long would reach beyond x.
    Dim sum = 0;
    for (const Dim& part : sizes) sum = sum + part;
    build.require_equal(sum, size);
    Values parts;
    Dim start = 0;
    for (const Dim& part : sizes) {
        parts.push_back(&build.slice(x, axis, start, part));
        start = start + part;
        if (!node.has_input(1) && node.integer("keepdims", 1) == 0)
            parts.back() = &build.squeeze(*parts.back(), {axis});
    }
    return {&make_list(node, parts)};
}

Values concat_from_sequence(Node& node) {
    GraphBuilder& build = node.build;
    Values values = list_of(node, 0);
    if (values.empty()) throw ImportError("bad-node", "an empty sequence");
    bool is_new = node.integer("new_axis", 0) != 0;
    int64_t axis = node.axis("axis", {}, values[0]->type().rank() + (is_new ? 1 : 0));
    if (is_new)
        for (Value*& value : values) value = &build.unsqueeze(*value, {axis});
    return {&build.concat(values, axis)};
}

Values sequence_map(Node& node) {
    const GraphProto& body = node.graph("body");
    size_t count = list_of(node, 0).size();
    if (body.inputs.size() != node.input_count() || body.outputs.size() < node.output_count())
        throw ImportError("bad-node",
                          fmt::format("the body has {} inputs and {} outputs, the node {} and {}", body.inputs.size(),
                                      body.outputs.size(), node.input_count(), node.output_count()));
    std::vector<Values> mapped(body.outputs.size());
    for (size_t i = 0; i < count; i++) {
        Values arguments;
        for (size_t k = 0; k < node.input_count(); k++) {
            if (!is_list(node.input(k))) {
                arguments.push_back(&node.input(k));
                continue;
            }
            Values list = list_of(node, k);
            if (list.size() != count)
                throw ImportError("bad-node", fmt::format("sequences of {} and {}", count, list.size()));
            arguments.push_back(list[i]);
        }
        Values results = node.import_body(body, arguments);
        for (size_t k = 0; k < mapped.size(); k++) mapped[k].push_back(results[k]);
    }
    Values lists;
    for (const Values& values : mapped) lists.push_back(&make_list(node, values));
    return lists;
}

Values optional(Node& node) {
    if (node.has_input(0)) return {&node.input(0)};
    Type nothing = Type::optional(Type::tensor_of_unknown_rank(DType::F32));
    return {&node.build.rewriter().create_typed("list", {}, {}, {nothing}).result()};
}

Values optional_has_element(Node& node) {
    return {&node.build.bools({node.has_input(0) && !is_empty_optional(node.input(0))}, {})};
}

Values optional_get_element(Node& node) {
    if (is_empty_optional(node.input(0))) throw ImportError("bad-node", "the optional is empty");
    return {&node.input(0)};
}

const Row rows[] = {
    {"ConcatFromSequence", 11, newest, concat_from_sequence, 1, 1, "axis new_axis", "concat", 1},
    {"Optional", 15, newest, optional, 0, 1, "type", "list", 1},
    {"OptionalGetElement", 15, newest, optional_get_element, 1, 1, "", "list", 1},
    {"OptionalHasElement", 15, 17, optional_has_element, 1, 1, "", "constant", 1},
    {"OptionalHasElement", 18, newest, optional_has_element, 0, 1, "", "constant", 1},
    {"SequenceAt", 11, newest, sequence_at, 2, 2, "", "list", 1},
    {"SequenceConstruct", 11, newest, sequence_construct, 1, any, "", "list"},
    {"SequenceEmpty", 11, newest, sequence_empty, 0, 0, "dtype", "list"},
    {"SequenceErase", 11, newest, sequence_erase, 1, 2, "", "list", 1},
    {"SequenceInsert", 11, newest, sequence_insert, 2, 3, "", "list", 1},
    {"SequenceLength", 11, newest, sequence_length, 1, 1, "", "constant", 1},
    {"SequenceMap", 17, newest, sequence_map, 1, any, "body", "list", any},
    {"SplitToSequence", 11, newest, split_to_sequence, 1, 2, "axis keepdims", "slice"},
};

} // namespace

std::span<const Row> sequence_rows() { return rows; }

} // namespace cuvil::onnx
