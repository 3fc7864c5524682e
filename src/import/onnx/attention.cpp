// Attention, and how it learns of positions: products, a mask and a softmax, which optimisation makes one op of.
#include "import/onnx/heads.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace cuvil::onnx {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// [B,S,H*D] -> [B,H,S,D]
Value& split_heads(GraphBuilder& build, Value& x, int64_t heads) {
    const Shape& shape = x.type().shape();
    Value& parts = build.reshape(x, {shape[0], shape[1], heads, head_size(shape[2], heads)});
    return build.transpose(parts, {0, 2, 1, 3});
}

// [B,H,T,D] with each head `times` times, one after the other.
Value& repeat_heads(GraphBuilder& build, Value& x, const Dim& times) {
    if (times.is(1)) return x;
    Shape shape = x.type().shape();
    shape.insert(shape.begin() + 2, times);
    Value& repeated = build.broadcast_to(build.unsqueeze(x, {2}), shape);
    return build.reshape(repeated, {shape[0], shape[1] * times, shape[3], shape[4]});
}

// How many heads of queries share one of keys and values.
Dim group_size(const Value& q, const Value& k) {
    auto size = k.type().dim(1).is(0) ? std::nullopt : divide_exactly(q.type().dim(1), k.type().dim(1));
    if (!size)
        throw ImportError("shape-mismatch", fmt::format("{} heads of queries cannot share {} heads of keys",
                                                        q.type().dim(1).text(), k.type().dim(1).text()));
    return *size;
}

std::optional<DType> softmax_dtype(const Node& node) {
    if (!node.has_attribute("softmax_precision")) return std::nullopt;
    auto dtype = dtype_of(node.integer("softmax_precision"));
    if (!dtype || !is_floating(*dtype)) bad_attribute("softmax_precision is no floating-point type");
    return dtype;
}

double scale_of(const Node& node, const Dim& size) {
    return node.has_attribute("scale") ? node.real("scale") : inverse_root(node, size);
}

class Attention {
public:
    explicit Attention(Node& node) : node_(node), build_(node.build) {}

    Values make() {
        read();
        Value& keys = repeat_heads(build_, *k_, group_size(*q_, *k_));
        Value& values = build_.cast(repeat_heads(build_, *v_, group_size(*q_, *v_)), q_->type().dtype());
        double scale = scale_of(node_, q_->type().dim(3));
        double cap = node_.real("softcap", 0);
        Value& raw = build_.elementwise("mul", build_.matmul(*q_, build_.swap_last_axes(keys)), scale);
        Value& capped = cap > 0 ? capped_by(raw, cap) : raw;
        Value* bias = make_bias();
        Value& scores = bias ? build_.elementwise("add", {&capped, bias}) : capped;
        Value& precise = build_.cast(scores, softmax_dtype(node_).value_or(scores.type().dtype()));
        Value& softmax = build_.make("softmax", {&precise});
        Value* empty = bias && may_be_empty_ ? &empty_rows(*bias) : nullptr;
        Value& result = build_.matmul(build_.cast(softmax, q_->type().dtype()), values);
        Values outputs{&as_given(result, empty), k_, v_};
        if (!node_.wants(3)) return outputs;
        switch (node_.integer("qk_matmul_output_mode", 0)) {
        case 0: outputs.push_back(&raw); break;
        case 1: outputs.push_back(&capped); break;
        case 2: outputs.push_back(&scores); break;
        case 3: outputs.push_back(&build_.cast(without_rows(softmax, empty), q_->type().dtype())); break;
        default: bad_attribute("qk_matmul_output_mode is none of 0, 1, 2, 3");
        }
        return outputs;
    }

private:
    // Queries, keys and values as [B,H,S,D], what has gone before among them.
    void read() {
        int64_t rank = node_.type(0).rank();
        if (rank != 3 && rank != 4) expect_rank(node_, 0, 4);
        for (size_t i = 1; i < 3; i++) expect_rank(node_, i, rank);
        auto heads = [&](size_t i, std::string_view attribute) -> Value& {
            return rank == 4 ? node_.input(i) : split_heads(build_, node_.input(i), node_.integer(attribute));
        };
        q_ = &heads(0, "q_num_heads");
        k_ = &heads(1, "kv_num_heads");
        v_ = &heads(2, "kv_num_heads");
        if (node_.has_input(4) != node_.has_input(5))
            throw ImportError("bad-node", "past_key and past_value must be given together");
        if (node_.has_input(4)) {
            if (node_.has_input(6)) throw ImportError("bad-node", "nonpad_kv_seqlen must not be given with past_key");
            past_ = node_.type(4).dim(2);
            k_ = &build_.concat({&node_.input(4), k_}, 2);
            v_ = &build_.concat({&node_.input(5), v_}, 2);
        }
        Shape shape = v_->type().shape();
        shape[2] = k_->type().dim(2);
        v_ = &build_.fit(*v_, shape);
    }

    Value& capped_by(Value& x, double cap) {
        return build_.elementwise("mul", build_.make("tanh", {&build_.elementwise("div", x, cap)}), cap);
    }

    // What is added to the scores: -inf where a key takes no part.
    Value* make_bias() {
        Value* mask = node_.has_input(3) ? &whole_mask(node_.input(3)) : nullptr;
        may_be_empty_ = mask != nullptr;
        Value* keep = nullptr;
        auto keep_only = [&](Value& more) { keep = keep ? &build_.elementwise("logical_and", {keep, &more}) : &more; };
        if (mask && mask->type().dtype() == DType::Bool) keep_only(*mask), mask = nullptr;
        keep_near(keep_only);
        if (node_.has_input(6)) {
            may_be_empty_ = true;
            keep_only(build_.elementwise("less", {&key_numbers(), &lengths()}));
        }
        if (!keep) return mask;
        DType dtype = q_->type().dtype();
        Value& zero = mask ? *mask : build_.scalar(dtype, 0);
        return &choose(*keep, zero, build_.scalar(dtype, -infinity));
    }

    // By the places of query and key: is_causal and the windows.
    template <class Keep> void keep_near(const Keep& keep_only) {
        bool is_causal = node_.integer("is_causal", 0) != 0;
        int64_t left = node_.integer("left_window_size", -1), right = node_.integer("right_window_size", -1);
        if (left < -1 || right < -1) bad_attribute("a window has a negative size");
        if (is_causal) right = 0;
        if (left < 0 && right < 0) return;
        Value& key = key_numbers();
        Value& query = query_places();
        auto moved = [&](int64_t by) -> Value& {
            return by == 0 ? query : build_.elementwise("add", query, static_cast<double>(by));
        };
        if (right >= 0) keep_only(build_.elementwise("less_equal", {&key, &moved(right)}));
        if (left >= 0) {
            may_be_empty_ = true;
            keep_only(build_.elementwise("greater_equal", {&key, &moved(-left)}));
        }
    }

    // Where the queries stand among the keys: [S,1], or [B,1,S,1] where that differs.
    Value& query_places() {
        const Dim& length = q_->type().dim(2);
        Value& numbers = build_.unsqueeze(build_.positions(length), {1});
        if (past_.is(0) && !node_.has_input(6)) return numbers;
        Value& before = node_.has_input(6) ? build_.elementwise("sub", {&lengths(), &build_.dims({length}, {})})
                                           : build_.dims({past_}, {});
        return build_.elementwise("add", {&numbers, &before});
    }

    Value& key_numbers() { return build_.positions(k_->type().dim(2)); }

    // nonpad_kv_seqlen as [B,1,1,1]
    Value& lengths() {
        expect_rank(node_, 6, 1);
        Value& all = build_.fit(node_.input(6), {q_->type().dim(0)});
        return build_.reshape(build_.cast(all, DType::I64), {q_->type().dim(0), 1, 1, 1});
    }

    // A mask may be for the first keys only; the others take no part.
    Value& whole_mask(Value& mask) {
        const Type type = mask.type();
        const Dim& keys = k_->type().dim(2);
        if (type.rank() < 1 || type.rank() > 4)
            throw ImportError("shape-mismatch", fmt::format("the mask is {}", type.text()));
        bool is_bool = type.dtype() == DType::Bool;
        Value* numbers = is_bool ? &build_.cast(mask, DType::U8) : &build_.cast(mask, q_->type().dtype());
        if (type.dim(-1) == keys) return is_bool ? mask : *numbers;
        Shape low(type.shape().size(), 0), high = low, shape = type.shape();
        high.back() = Dim::max(keys - type.dim(-1), 0);
        shape.back() = keys;
        Value& padded = build_.fit(build_.pad(*numbers, low, high, is_bool ? 0 : -infinity), shape);
        return is_bool ? build_.cast(padded, DType::Bool) : padded;
    }

    // The rows for which no key takes part.
    Value& empty_rows(Value& bias) {
        Value& largest = build_.reduce("reduce_max", bias, {bias.type().rank() - 1}, true);
        return build_.elementwise("equal", {&largest, &build_.scalar(bias, -infinity)});
    }

    // Zeros in such rows.
    Value& without_rows(Value& x, Value* empty) { return empty ? choose(*empty, build_.scalar(x, 0), x) : x; }

    // The result in the form of the queries, with zeros in the empty rows.
    Value& as_given(Value& result, Value* empty) {
        if (node_.type(0).rank() == 4) return without_rows(result, empty);
        const Shape shape = result.type().shape();
        if (empty) {
            Shape rows = empty->type().shape();
            rows.insert(rows.begin(), 4 - rows.size(), Dim(1));
            empty = &build_.transpose(build_.reshape(*empty, rows), {0, 2, 1, 3});
        }
        Value& moved = without_rows(build_.transpose(result, {0, 2, 1, 3}), empty);
        return build_.reshape(moved, {shape[0], shape[2], shape[1] * shape[3]});
    }

    // condition ? a : b
    Value& choose(Value& condition, Value& a, Value& b) {
        std::vector<Value*> values = build_.broadcast_together({&a, &b});
        Shape shape = broadcast_shapes(condition.type().shape(), values[0]->type().shape());
        for (Value*& value : values) value = &build_.broadcast_to(*value, shape);
        return build_.make("where", {&build_.broadcast_to(condition, shape), values[0], values[1]});
    }

    Node& node_;
    GraphBuilder& build_;
    Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
    Dim past_ = 0;
    bool may_be_empty_ = false; // of keys, for some query
};

Values attention(Node& node) { return Attention(node).make(); }

// Softmax of scores that a subgraph has changed, times values; another one may change the probabilities.
Values flex_attention(Node& node) {
    GraphBuilder& build = node.build;
    for (size_t i = 0; i < 3; i++) expect_rank(node, i, 4);
    Value& q = node.input(0);
    Value& keys = repeat_heads(build, node.input(1), group_size(q, node.input(1)));
    Value& values = repeat_heads(build, node.input(2), group_size(q, node.input(2)));
    DType own = q.type().dtype(), dtype = softmax_dtype(node).value_or(own == DType::F64 ? own : DType::F32);
    auto changed = [&](Value& x, std::string_view attribute) -> Value& {
        if (!node.has_attribute(attribute)) return x;
        const GraphProto& graph = node.graph(attribute);
        if (graph.inputs.size() != 1 || graph.outputs.size() != 1)
            throw ImportError("bad-node", fmt::format("{} does not have one input and one output", attribute));
        Value& result = *node.import_body(graph, {&x}).at(0);
        if (node.is_poison(&result)) return result;
        if (!result.type().is_tensor() || result.type().dtype() != dtype || result.type().rank() != 4)
            throw ImportError("type-mismatch",
                              fmt::format("{} gives {} for {}", attribute, result.type().text(), x.type().text()));
        return build.fit(result, x.type().shape());
    };
    Value& product = build.matmul(q, build.swap_last_axes(keys));
    Value& scores =
        changed(build.elementwise("mul", build.cast(product, dtype), scale_of(node, q.type().dim(3))), "score_mod");
    if (node.is_poison(&scores)) return {&scores};
    Value& probabilities = changed(build.make("softmax", {&scores}), "prob_mod");
    if (node.is_poison(&probabilities)) return {&probabilities};
    return {&build.cast(build.matmul(build.cast(probabilities, own), values), own)};
}

// Pairs of elements, turned by an angle that belongs to the position.
Values rotary_embedding(Node& node) {
    GraphBuilder& build = node.build;
    Value& given = node.input(0);
    bool is_flat = given.type().rank() == 3;
    if (!is_flat) expect_rank(node, 0, 4);
    const Shape shape = given.type().shape();
    int64_t heads = is_flat ? node.integer("num_heads") : 0;
    Value& x = is_flat ? build.reshape(given, {shape[0], shape[1], heads, head_size(shape[2], heads)}) : given;
    const Dim size = x.type().dim(3);
    Dim turned = node.integer("rotary_embedding_dim", 0);
    if (turned.is(0)) turned = size;
    const Dim half = head_size(turned, 2);

    // [B,S,half], with an axis of 1 for the heads.
    auto angles = [&](size_t input) -> Value& {
        Value* values = &node.input(input);
        if (node.has_input(3)) {
            expect_rank(node, input, 2);
            values = &build.gather(*values, node.input(3), 0);
        }
        if (values->type().rank() != 3) expect_rank(node, input, 3);
        Shape row = values->type().shape();
        row.back() = half;
        return build.unsqueeze(build.fit(*values, row), {is_flat ? 2 : 1});
    };
    Value &cosine = angles(1), &sine = angles(2);
    bool is_interleaved = node.integer("interleaved", 0) != 0;
    Value& a = build.slice(x, 3, 0, half, is_interleaved ? 2 : 1);
    Value& b = build.slice(x, 3, is_interleaved ? Dim(1) : half, half, is_interleaved ? 2 : 1);
    auto product = [&](Value& v, Value& w) -> Value& { return build.elementwise("mul", {&v, &w}); };
    Value& real = build.elementwise("sub", {&product(a, cosine), &product(b, sine)});
    Value& imaginary = build.elementwise("add", {&product(a, sine), &product(b, cosine)});
    Value* result = &build.concat({&real, &imaginary}, 3);
    if (is_interleaved) {
        Shape pairs = real.type().shape();
        Value& joined = build.concat({&build.unsqueeze(real, {4}), &build.unsqueeze(imaginary, {4})}, 4);
        pairs.back() = turned;
        result = &build.reshape(joined, pairs);
    }
    if (turned != size) result = &build.concat({result, &build.slice(x, 3, turned, size - turned)}, 3);
    return {is_flat ? &build.reshape(*result, shape) : result};
}

constexpr std::string_view attributes = "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap "
                                        "softmax_precision";
constexpr std::string_view window_attributes =
    "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale softcap "
    "softmax_precision";

const Row rows[] = {
    {"Attention", 23, 23, attention, 3, 6, attributes, "matmul, softmax"},
    {"Attention", 24, 24, attention, 3, 7, attributes, "matmul, softmax"},
    {"Attention", 25, newest, attention, 3, 7, window_attributes, "matmul, softmax"},
    {.name = "FlexAttention",
     .since = 1,
     .until = newest,
     .build = flex_attention,
     .least_inputs = 3,
     .most_inputs = 3,
     .attributes = "prob_mod scale score_mod softmax_precision",
     .builds = "matmul, softmax",
     .domain = "ai.onnx.preview"},
    {"RotaryEmbedding", 23, newest, rotary_embedding, 3, 4, "interleaved num_heads rotary_embedding_dim", "mul, add"},
};

} // namespace

std::span<const Row> attention_rows() { return rows; }

} // namespace cuvil::onnx
