// Elementwise operators. Since opset 7 they all broadcast like NumPy; before, only the second of two operands did.
#include "import/onnx/elementwise.hpp"

#include <limits>
#include <string>
#include <vector>

namespace cuvil::onnx {
namespace {

// Before opset 7 the axes of the second operand are those of the first from `axis` on, or the last ones.
template <OpName op> Values one_sided(Node& node) {
    Value &a = node.input(0), *b = &node.input(1);
    if (node.has_attribute("axis") && node.integer("broadcast", 0) != 0) {
        int64_t behind = a.type().rank() - node.axis("axis", {}, a.type().rank()) - b->type().rank();
        if (behind < 0) throw ImportError("shape-mismatch", b->type().text() + " does not fit in " + a.type().text());
        Shape shape = b->type().shape();
        shape.resize(shape.size() + static_cast<size_t>(behind), 1);
        b = &node.build.reshape(*b, shape);
    }
    return {&node.build.elementwise(op.text, {&a, &node.build.broadcast_to(*b, a.type().shape())})};
}

// Min, Max, Sum: any number of operands.
template <OpName op> Values chain(Node& node) {
    Value* result = &node.input(0);
    for (size_t i = 1; i < node.input_count(); i++) result = &node.build.elementwise(op.text, {result, &node.input(i)});
    return {result};
}

Values mean(Node& node) {
    Values sum = chain<"add">(node);
    return {&node.build.elementwise("div", *sum[0], static_cast<double>(node.input_count()))};
}

bool is_above(const Dim& a, const Dim& b) { return (a - b).lower_bound().value_or(0) > 0; }

// Sizes that are compared in the graph are decided now, as far as that is possible.
Values equal(Node& node) {
    GraphBuilder& build = node.build;
    std::vector<Value*> both = build.broadcast_together({&node.input(0), &node.input(1)});
    const auto &a = both[0]->elements(), &b = both[1]->elements();
    bool is_known = a && b && a->size() == b->size();
    std::vector<bool> equal;
    for (size_t i = 0; is_known && i < a->size(); i++) {
        Equality equality = compare((*a)[i], (*b)[i]);
        // A size is never negative: not equal to the -1 that stands for an unknown one.
        if (equality == Equality::Unknown && (is_above((*a)[i], (*b)[i]) || is_above((*b)[i], (*a)[i])))
            equality = Equality::Different;
        is_known = equality != Equality::Unknown;
        equal.push_back(equality == Equality::Equal);
    }
    if (is_known) return {&build.bools(equal, both[0]->type().shape())};
    return {&build.elementwise("equal", both)};
}

Values where(Node& node) {
    GraphBuilder& build = node.build;
    if (node.type(1).dtype() != node.type(2).dtype())
        throw ImportError("type-mismatch", "the two choices have different types, " + node.type(1).text() + " and " +
                                               node.type(2).text());
    std::vector<Value*> all = build.broadcast_together({&node.input(0), &node.input(1), &node.input(2)});
    const auto &a = all[1]->elements(), &b = all[2]->elements();
    auto condition = build.constant_bools(node.input(0));
    if (condition && condition->size() == 1 && a) condition->assign(a->size(), condition->front());
    if (a && b && condition && a->size() == b->size() && a->size() == condition->size()) {
        std::vector<Dim> chosen;
        for (size_t i = 0; i < a->size(); i++) chosen.push_back((*condition)[i] ? (*a)[i] : (*b)[i]);
        return {&build.dims(chosen, all[1]->type().shape(), all[1]->type().dtype())};
    }
    return {&build.make("where", all)};
}

// Small whole powers are products. The result has the type of x; the work is done in the wider of the two types.
Values pow(Node& node) {
    GraphBuilder& build = node.build;
    Value &x = node.input(0), &y = node.input(1);
    DType own = x.type().dtype(), other = y.type().dtype();
    auto exponent = build.constant_number(y);
    if (exponent && (*exponent == 1 || *exponent == 2 || *exponent == 3)) {
        Value& base = build.broadcast_to(x, broadcast_shapes(x.type().shape(), y.type().shape()));
        Value* result = &base;
        for (int i = 1; i < static_cast<int>(*exponent); i++) result = &build.elementwise("mul", {result, &base});
        return {result};
    }
    DType common = own;
    if (is_floating(other) && (!is_floating(own) || size_of(other) > size_of(own))) common = DType::F64;
    // Powers that wrap are the same in more bits; a negative exponent stays one.
    if (is_integer(own) && is_integer(other)) common = is_unsigned_integer(other) ? DType::U64 : DType::I64;
    if (own == other) common = own;
    Value& power = build.elementwise("pow", {&build.cast(x, common), &build.cast(y, common)});
    return {&build.cast(power, own)};
}

// The remainder takes the sign of the divisor (fmod = 0) or of the dividend.
Values mod(Node& node) {
    bool truncates = node.integer("fmod", 0) != 0;
    return {&node.build.elementwise(truncates ? "rem" : "mod", {&node.input(0), &node.input(1)})};
}

Values bit_shift(Node& node) {
    std::string_view direction = node.text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
        bad_attribute("direction is '" + std::string(direction) + "', neither LEFT nor RIGHT");
    return {
        &node.build.elementwise(direction == "LEFT" ? "shift_left" : "shift_right", {&node.input(0), &node.input(1)})};
}

// A byte becomes a bool by what it says, not by its bits.
Values bit_cast(Node& node) {
    GraphBuilder& build = node.build;
    int64_t to = node.integer("to");
    auto dtype = dtype_of(to);
    if (!dtype) node.unsupported("elements of type " + data_type_name(to));
    DType from = node.type(0).dtype();
    if (size_of(*dtype) != size_of(from) || size_of(from) == 0)
        throw ImportError("type-mismatch", "elements of " + std::string(name(from)) + " and " +
                                               std::string(name(*dtype)) + " differ in size");
    if (*dtype == from) return {&node.input(0)};
    if (*dtype == DType::Bool) return {&build.cast(node.input(0), DType::Bool)};
    return {&build.make("bitcast", {&node.input(0)}, {{"to", *dtype}})};
}

Values is_inf(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    bool negative = node.integer("detect_negative", 1) != 0, positive = node.integer("detect_positive", 1) != 0;
    if (negative && positive) return {&build.elementwise("equal", build.make("abs", {&x}), infinity)};
    if (negative || positive) return {&build.elementwise("equal", x, positive ? infinity : -infinity)};
    return {&build.broadcast_to(build.bools({false}, {}), x.type().shape())};
}

Values is_nan(Node& node) {
    Value& x = node.input(0);
    return {&node.build.make("logical_not", {&node.build.elementwise("equal", {&x, &x})})};
}

Value& clip_to(GraphBuilder& build, Value& x, Value* low, Value* high) {
    auto bound = [&](Value& b) -> Value& {
        if (!checked_count(b.type().shape()).is(1))
            throw ImportError("shape-mismatch", "the bounds must be scalars, not " + b.type().text());
        return build.reshape(b, {});
    };
    Value* result = &x;
    if (low) result = &build.elementwise("maximum", {result, &bound(*low)});
    if (high) result = &build.elementwise("minimum", {result, &bound(*high)});
    return *result;
}

// Before opset 11 the bounds are attributes, by default the range of finite floats.
Values clip_attributes(Node& node) {
    Value& x = node.input(0);
    constexpr double limit = std::numeric_limits<float>::max();
    return {&clip_to(node.build, x, &node.build.scalar(x, node.real("min", -limit)),
                     &node.build.scalar(x, node.real("max", limit)))};
}

Values clip(Node& node) {
    return {&clip_to(node.build, node.input(0), node.optional_input(1), node.optional_input(2))};
}

Values cast(Node& node) {
    int64_t to = node.integer("to");
    auto dtype = dtype_of(to);
    if (!dtype) node.unsupported("elements of type " + data_type_name(to));
    return {&node.build.cast(node.input(0), *dtype)};
}

Values cast_like(Node& node) { return {&node.build.cast(node.input(0), node.type(1).dtype())}; }

const Row rows[] = {
    {"Abs", 6, newest, elementwise<"abs">, 1, 1, "", "abs"},
    {"Acos", 7, newest, elementwise<"acos">, 1, 1, "", "acos"},
    {"Acosh", 9, newest, elementwise<"acosh">, 1, 1, "", "acosh"},
    {"Add", 6, 6, one_sided<"add">, 2, 2, "axis broadcast", "add"},
    {"Add", 7, newest, elementwise<"add">, 2, 2, "", "add"},
    {"And", 1, 6, one_sided<"logical_and">, 2, 2, "axis broadcast", "logical_and"},
    {"And", 7, newest, elementwise<"logical_and">, 2, 2, "", "logical_and"},
    {"Asin", 7, newest, elementwise<"asin">, 1, 1, "", "asin"},
    {"Asinh", 9, newest, elementwise<"asinh">, 1, 1, "", "asinh"},
    {"Atan", 7, newest, elementwise<"atan">, 1, 1, "", "atan"},
    {"Atanh", 9, newest, elementwise<"atanh">, 1, 1, "", "atanh"},
    {"BitCast", 26, newest, bit_cast, 1, 1, "to", "bitcast"},
    {"BitShift", 11, newest, bit_shift, 2, 2, "direction", "shift_left, shift_right"},
    {"BitwiseAnd", 18, newest, elementwise<"bitwise_and">, 2, 2, "", "bitwise_and"},
    {"BitwiseNot", 18, newest, elementwise<"bitwise_not">, 1, 1, "", "bitwise_not"},
    {"BitwiseOr", 18, newest, elementwise<"bitwise_or">, 2, 2, "", "bitwise_or"},
    {"BitwiseXor", 18, newest, elementwise<"bitwise_xor">, 2, 2, "", "bitwise_xor"},
    {"Cast", 6, 18, cast, 1, 1, "to", "cast"},
    {"Cast", 19, 23, cast, 1, 1, "to saturate", "cast"},
    {"Cast", 24, newest, cast, 1, 1, "to saturate round_mode", "cast"},
    {"CastLike", 15, 18, cast_like, 2, 2, "", "cast"},
    {"CastLike", 19, 23, cast_like, 2, 2, "saturate", "cast"},
    {"CastLike", 24, newest, cast_like, 2, 2, "saturate round_mode", "cast"},
    {"Ceil", 6, newest, elementwise<"ceil">, 1, 1, "", "ceil"},
    {"Clip", 6, 10, clip_attributes, 1, 1, "min max", "maximum, minimum"},
    {"Clip", 11, newest, clip, 1, 3, "", "maximum, minimum"},
    {"Cos", 7, newest, elementwise<"cos">, 1, 1, "", "cos"},
    {"Cosh", 9, newest, elementwise<"cosh">, 1, 1, "", "cosh"},
    {"Div", 6, 6, one_sided<"div">, 2, 2, "axis broadcast", "div"},
    {"Div", 7, newest, elementwise<"div">, 2, 2, "", "div"},
    {"Equal", 1, 6, one_sided<"equal">, 2, 2, "axis broadcast", "equal"},
    {"Equal", 7, newest, equal, 2, 2, "", "equal"},
    {"Erf", 9, newest, elementwise<"erf">, 1, 1, "", "erf"},
    {"Exp", 6, newest, elementwise<"exp">, 1, 1, "", "exp"},
    {"Floor", 6, newest, elementwise<"floor">, 1, 1, "", "floor"},
    {"Greater", 1, 6, one_sided<"greater">, 2, 2, "axis broadcast", "greater"},
    {"Greater", 7, newest, elementwise<"greater">, 2, 2, "", "greater"},
    {"GreaterOrEqual", 12, newest, elementwise<"greater_equal">, 2, 2, "", "greater_equal"},
    {"IsInf", 10, newest, is_inf, 1, 1, "detect_negative detect_positive", "abs, equal"},
    {"IsNaN", 9, newest, is_nan, 1, 1, "", "equal, logical_not"},
    {"Less", 1, 6, one_sided<"less">, 2, 2, "axis broadcast", "less"},
    {"Less", 7, newest, elementwise<"less">, 2, 2, "", "less"},
    {"LessOrEqual", 12, newest, elementwise<"less_equal">, 2, 2, "", "less_equal"},
    {"Log", 6, newest, elementwise<"log">, 1, 1, "", "log"},
    {"Max", 6, newest, chain<"maximum">, 1, any, "", "maximum"},
    {"Mean", 6, newest, mean, 1, any, "", "add, div"},
    {"Min", 6, newest, chain<"minimum">, 1, any, "", "minimum"},
    {"Mod", 10, newest, mod, 2, 2, "fmod", "mod, rem"},
    {"Mul", 6, 6, one_sided<"mul">, 2, 2, "axis broadcast", "mul"},
    {"Mul", 7, newest, elementwise<"mul">, 2, 2, "", "mul"},
    {"Neg", 6, newest, elementwise<"neg">, 1, 1, "", "neg"},
    {"Not", 1, newest, elementwise<"logical_not">, 1, 1, "", "logical_not"},
    {"Or", 1, 6, one_sided<"logical_or">, 2, 2, "axis broadcast", "logical_or"},
    {"Or", 7, newest, elementwise<"logical_or">, 2, 2, "", "logical_or"},
    {"Pow", 1, 6, one_sided<"pow">, 2, 2, "axis broadcast", "pow"},
    {"Pow", 7, newest, pow, 2, 2, "", "pow, mul"},
    {"Reciprocal", 6, newest, elementwise<"reciprocal">, 1, 1, "", "reciprocal"},
    {"Round", 11, newest, elementwise<"round">, 1, 1, "", "round"},
    {"Sign", 9, newest, elementwise<"sign">, 1, 1, "", "sign"},
    {"Sin", 7, newest, elementwise<"sin">, 1, 1, "", "sin"},
    {"Sinh", 9, newest, elementwise<"sinh">, 1, 1, "", "sinh"},
    {"Sqrt", 6, newest, elementwise<"sqrt">, 1, 1, "", "sqrt"},
    {"Sub", 6, 6, one_sided<"sub">, 2, 2, "axis broadcast", "sub"},
    {"Sub", 7, newest, elementwise<"sub">, 2, 2, "", "sub"},
    {"Sum", 6, newest, chain<"add">, 1, any, "", "add"},
    {"Tan", 7, newest, elementwise<"tan">, 1, 1, "", "tan"},
    {"Where", 9, newest, where, 3, 3, "", "where"},
    {"Xor", 1, 6, one_sided<"logical_xor">, 2, 2, "axis broadcast", "logical_xor"},
    {"Xor", 7, newest, elementwise<"logical_xor">, 2, 2, "", "logical_xor"},
};

} // namespace

std::span<const Row> elementwise_rows() { return rows; }

} // namespace cuvil::onnx
