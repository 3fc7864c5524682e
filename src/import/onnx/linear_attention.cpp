// What keeps a state from one piece of a sequence to the next: attention without softmax, and a convolution over what
// has gone before.
#include "import/onnx/heads.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

class LinearAttention {
public:
    explicit LinearAttention(Node& node) : node_(node), build_(node.build) {}

    Values make() {
        read();
        OpNode& loop = build_.rewriter().create_typed("loop", {&build_.dims({length_}, {}), nullptr, state_},
                                                      {{"count", build_.fresh_dim("steps").as_symbol().value()}},
                                                      std::vector<Type>(2));
        Region& body = loop.region(0);
        Value& at = body.add_argument(Type::tensor(DType::I64, {}), "step");
        Value& condition = body.add_argument(Type::tensor(DType::Bool, {}), "");
        Value& before = body.add_argument(state_->type(), "state");
        build_.enter(body);
        auto [state, y] = step(before, at);
        build_.rewriter().create_typed("return", {&condition, &state, &y}, {}, {});
        Shape all = y.type().shape();
        build_.leave();
        loop.result(0).set_type(state_->type());
        all.insert(all.begin(), Dim::symbol(loop.get<std::string>("count")));
        loop.result(1).set_type(state_->type().with_shape(all));
        all[0] = length_;
        // [T,B,H,1,D] -> [B,T,H*D]
        Value& steps = build_.transpose(build_.fit(loop.result(1), all), {1, 0, 2, 3, 4});
        return {&build_.reshape(steps, {batch_, length_, all[2] * all[4]}), &loop.result(0)};
    }

private:
    // [B,T,H*D] -> [B,T,H,D]
    Value& heads(size_t input, int64_t count) {
        Value& x = node_.input(input);
        expect_rank(node_, input, 3);
        const Dim size = head_size(x.type().dim(2), count);
        return build_.fit(build_.reshape(x, {x.type().dim(0), x.type().dim(1), count, size}),
                          {batch_, length_, count, size});
    }

    void read() {
        int64_t q_heads = node_.integer("q_num_heads"), kv_heads = node_.integer("kv_num_heads");
        if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
            bad_attribute(fmt::format("{} heads of queries cannot share {} heads of keys", q_heads, kv_heads));
        expect_rank(node_, 0, 3);
        batch_ = node_.type(0).dim(0);
        length_ = node_.type(0).dim(1);
        q_ = &heads(0, q_heads);
        k_ = &heads(1, kv_heads);
        v_ = &heads(2, kv_heads);
        kv_heads_ = kv_heads;
        group_ = q_heads / kv_heads;
        const Dim &rows = k_->type().dim(3), &columns = v_->type().dim(3);
        Type type = v_->type().with_shape({batch_, kv_heads, rows, columns});
        state_ = node_.has_input(3) ? &build_.fit(node_.input(3), type.shape())
                                    : &build_.broadcast_to(build_.scalar(type.dtype(), 0), type.shape());
        std::string_view rule = node_.text("update_rule", "gated_delta");
        is_gated_ = rule == "gated" || rule == "gated_delta";
        is_delta_ = rule == "delta" || rule == "gated_delta";
        if (!is_gated_ && !is_delta_ && rule != "linear")
            bad_attribute(fmt::format("there is no update_rule \"{}\"", rule));
        if (is_gated_) decay_ = &heads(4, kv_heads);
        if (is_delta_) {
            bool is_shared = node_.type(5).rank() == 3 && node_.type(5).dim(2).is(1);
            beta_ = &heads(5, is_shared ? 1 : kv_heads);
        }
        scale_ = node_.real("scale", 0);
        if (scale_ == 0) scale_ = inverse_root(node_, q_->type().dim(3));
    }

    // [B,T,H,D] at a time: [B,H,D]
    Value& now(Value& x, Value& at) { return build_.gather(x, at, 1); }

    Value& product(Value& a, Value& b) { return build_.elementwise("mul", {&a, &b}); }

    // The state after a step, and what it gives: [B,H,1,D].
    std::pair<Value&, Value&> step(Value& before, Value& at) {
        Value* state = &before;
        if (is_gated_) state = &product(*state, build_.make("exp", {&build_.unsqueeze(now(*decay_, at), {3})}));
        Value &key = now(*k_, at), &row = build_.unsqueeze(key, {2});
        Value* value = &build_.unsqueeze(now(*v_, at), {2});
        if (is_delta_) {
            Value& known = build_.matmul(row, *state);
            value = &product(build_.elementwise("sub", {value, &known}), build_.unsqueeze(now(*beta_, at), {3}));
        }
        state = &build_.elementwise("add", {state, &product(build_.unsqueeze(key, {3}), *value)});
        Value& query = now(*q_, at);
        const Dim &rows = query.type().dim(2), &columns = value->type().dim(3);
        Value& groups = build_.reshape(query, {batch_, kv_heads_, group_, rows});
        Value& y = build_.elementwise("mul", build_.matmul(groups, *state), scale_);
        return {*state, build_.reshape(y, {batch_, group_ * kv_heads_, 1, columns})};
    }

    Node& node_;
    GraphBuilder& build_;
    Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr, *state_ = nullptr, *decay_ = nullptr, *beta_ = nullptr;
    Dim batch_, length_;
    int64_t kv_heads_ = 1, group_ = 1;
    bool is_gated_ = false, is_delta_ = false;
    double scale_ = 0;
};

Values linear_attention(Node& node) { return LinearAttention(node).make(); }

// x [B,C,L], weights [C,1,K]; before x stands the end of what was before, or zeros.
Values causal_conv(Node& node) {
    GraphBuilder& build = node.build;
    const Type &type = node.type(0), &weights = node.type(1);
    if (type.rank() != 3 || weights.rank() != 3 || !weights.dim(1).is(1))
        throw ImportError("shape-mismatch",
                          fmt::format("input and weights do not fit, {} and {}", type.text(), weights.text()));
    auto channels = weights.dim(0).constant(), taps = weights.dim(2).constant();
    if (!channels || !taps || *taps < 1)
        node.unsupported(fmt::format("weights whose sizes are not fixed, {}", weights.text()));
    Value& x = build.fit(node.input(0), {type.dim(0), *channels, type.dim(2)});
    Value& all = node.has_input(3)
                     ? build.concat({&build.fit(node.input(3), {type.dim(0), *channels, *taps - 1}), &x}, 2)
                     : build.pad(x, {0, 0, *taps - 1}, {0, 0, 0}, 0);
    Value* bias = node.has_input(2) ? &build.fit(node.input(2), {*channels}) : nullptr;
    Value& image = build.make("conv2d", {&build.unsqueeze(all, {2}), &build.unsqueeze(node.input(1), {2}), bias},
                              {{"groups", *channels}});
    Value* y = &build.squeeze(image, {2});
    std::string_view activation = node.text("activation", "none");
    if (activation == "silu" || activation == "swish")
        y = &build.make("silu", {y});
    else if (activation != "none")
        bad_attribute(fmt::format("there is no activation \"{}\"", activation));
    return {y, &build.slice(all, 2, type.dim(2), *taps - 1)};
}

const Row rows[] = {
    {"CausalConvWithState", 27, newest, causal_conv, 2, 4, "activation", "concat, conv2d"},
    {"LinearAttention", 27, newest, linear_attention, 3, 6, "chunk_size kv_num_heads q_num_heads scale update_rule",
     "loop, matmul"},
};

} // namespace

std::span<const Row> linear_attention_rows() { return rows; }

} // namespace cuvil::onnx
