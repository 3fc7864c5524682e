// Activation functions.
#include "import/onnx/elementwise.hpp"

#include <string>

namespace cuvil::onnx {
namespace {

// `slope` * x where x is below 0. NaN is not, and stays.
Value& leaky(GraphBuilder& build, Value& x, Value& slope) {
    Value& scaled = build.elementwise("mul", {&x, &build.broadcast_to(slope, x.type().shape())});
    return build.make("where", {&build.elementwise("less", x, 0), &scaled, &x});
}

Values leaky_relu(Node& node) {
    Value& x = node.input(0);
    return {&leaky(node.build, x, node.build.scalar(x, node.real("alpha", 0.01f)))};
}

Values prelu(Node& node) { return {&leaky(node.build, node.input(0), node.input(1))}; }

// Before opset 7 there is one slope, or one for each channel.
Values prelu_of_channels(Node& node) {
    Value &x = node.input(0), &slope = node.input(1);
    if (x.type().rank() < 2 || checked_count(slope.type().shape()).is(1)) return prelu(node);
    Shape channels(static_cast<size_t>(x.type().rank() - 1), 1);
    channels[0] = x.type().dim(1);
    return {&leaky(node.build, x, node.build.reshape(slope, channels))};
}

Value& hard_sigmoid_of(GraphBuilder& build, Value& x, double alpha, double beta) {
    Value& line = build.elementwise("add", build.elementwise("mul", x, alpha), beta);
    return build.elementwise("maximum", build.elementwise("minimum", line, 1), 0);
}

Values hard_sigmoid(Node& node) {
    return {&hard_sigmoid_of(node.build, node.input(0), node.real("alpha", 0.2f), node.real("beta", 0.5f))};
}

Values gelu(Node& node) {
    std::string_view approximate = node.text("approximate", "none");
    if (approximate != "none" && approximate != "tanh")
        bad_attribute("approximate is '" + std::string(approximate) + "'");
    return {&node.build.make(approximate == "none" ? "gelu" : "gelu_tanh", {&node.input(0)})};
}

// x sigmoid(alpha x)
Value& swish_of(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    double alpha = node.real("alpha", 1);
    if (alpha == 1) return build.make("silu", {&x});
    return build.elementwise("mul", {&x, &build.make("sigmoid", {&build.elementwise("mul", x, alpha)})});
}

Values swish(Node& node) { return {&swish_of(node)}; }

// The gate's activation times the value; their shapes are the same.
Values swiglu(Node& node) {
    Value& value = node.build.fit(node.input(1), node.type(0).shape());
    return {&node.build.elementwise("mul", {&swish_of(node), &value})};
}

// Both sides of 0, chosen by the sign of x. NaN is not below 0.
Value& by_sign(GraphBuilder& build, Value& x, Value& below, Value& above) {
    return build.make("where", {&build.elementwise("less", x, 0), &below, &above});
}

// alpha (e^x - 1) where x is below 0
Values elu(Node& node) {
    Value& x = node.input(0);
    Value& below = node.build.elementwise("mul", node.build.make("expm1", {&x}), node.real("alpha", 1));
    return {&by_sign(node.build, x, below, x)};
}

Values selu(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    double alpha = node.real("alpha", 1.67326319217681884765625), gamma = node.real("gamma", 1.05070102214813232421875);
    Value& below = build.elementwise("mul", build.make("expm1", {&x}), gamma * alpha);
    return {&by_sign(build, x, below, build.elementwise("mul", x, gamma))};
}

// alpha (e^(x / alpha) - 1) where x is below 0
Values celu(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    double alpha = node.real("alpha", 1);
    Value& power = build.make("expm1", {&build.elementwise("div", x, alpha)});
    Value& below = build.elementwise("minimum", build.elementwise("mul", power, alpha), 0);
    return {&build.elementwise("add", {&build.make("relu", {&x}), &below})};
}

Values thresholded_relu(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    Value& is_above = build.elementwise("greater", x, node.real("alpha", 1));
    return {&build.make("where", {&is_above, &x, &build.broadcast_to(build.scalar(x, 0), x.type().shape())})};
}

// x moved towards 0 by `bias` beyond -lambd and lambd, 0 between them.
Values shrink(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    double bias = node.real("bias", 0), lambd = node.real("lambd", 0.5);
    Value& zero = build.broadcast_to(build.scalar(x, 0), x.type().shape());
    Value& upper =
        build.make("where", {&build.elementwise("greater", x, lambd), &build.elementwise("sub", x, bias), &zero});
    Value& lower = build.elementwise("add", x, bias);
    return {&build.make("where", {&build.elementwise("less", x, -lambd), &lower, &upper})};
}

Values softsign(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    return {&build.elementwise("div", {&x, &build.elementwise("add", build.make("abs", {&x}), 1)})};
}

const Row rows[] = {
    {"Celu", 12, newest, celu, 1, 1, "alpha", "expm1, relu, add"},
    {"Elu", 6, newest, elu, 1, 1, "alpha", "expm1, where"},
    {"Gelu", 20, newest, gelu, 1, 1, "approximate", "gelu, gelu_tanh"},
    {"HardSigmoid", 6, newest, hard_sigmoid, 1, 1, "alpha beta", "mul, add, minimum, maximum"},
    {"HardSwish", 14, newest, elementwise<"hard_swish">, 1, 1, "", "hard_swish"},
    {"LeakyRelu", 6, newest, leaky_relu, 1, 1, "alpha", "mul, less, where"},
    {"Mish", 18, newest, elementwise<"mish">, 1, 1, "", "mish"},
    {"PRelu", 6, 6, prelu_of_channels, 2, 2, "", "mul, less, where"},
    {"PRelu", 7, newest, prelu, 2, 2, "", "mul, less, where"},
    {"Relu", 6, newest, elementwise<"relu">, 1, 1, "", "relu"},
    {"Selu", 6, newest, selu, 1, 1, "alpha gamma", "expm1, where"},
    {"Shrink", 9, newest, shrink, 1, 1, "bias lambd", "less, greater, where"},
    {"Sigmoid", 6, newest, elementwise<"sigmoid">, 1, 1, "", "sigmoid"},
    {"Softplus", 1, newest, elementwise<"softplus">, 1, 1, "", "softplus"},
    {"Softsign", 1, newest, softsign, 1, 1, "", "abs, div"},
    {"SwiGLU", 28, newest, swiglu, 2, 2, "alpha", "silu, mul"},
    {"Swish", 24, newest, swish, 1, 1, "alpha", "silu"},
    {"Tanh", 6, newest, elementwise<"tanh">, 1, 1, "", "tanh"},
    {"ThresholdedRelu", 10, newest, thresholded_relu, 1, 1, "alpha", "greater, where"},
};

} // namespace

std::span<const Row> activation_rows() { return rows; }

} // namespace cuvil::onnx
