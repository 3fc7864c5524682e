#include "eval/evaluate.hpp"
#include "ir/rewriter.hpp"
#include "ops/op_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

namespace cuvil {
namespace {

using Ints = std::vector<int64_t>;

template <class T> constexpr DType dtype_of = DType::Bool;
template <> constexpr DType dtype_of<double> = DType::F64;
template <> constexpr DType dtype_of<float> = DType::F32;
template <> constexpr DType dtype_of<int64_t> = DType::I64;
template <> constexpr DType dtype_of<int32_t> = DType::I32;
template <> constexpr DType dtype_of<int8_t> = DType::I8;
template <> constexpr DType dtype_of<uint8_t> = DType::U8;

int64_t count_of(const Ints& shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies());
}
Shape dims_of(const Ints& shape) { return {shape.begin(), shape.end()}; }

template <class T> struct Tensor {
    Ints shape;
    std::vector<T> elements;
    bool operator==(const Tensor&) const = default;
};

// An element of a bool tensor: std::vector<bool> has no bytes.
struct Truth {
    uint8_t value;
    bool operator==(const Truth&) const = default;
};

// One node over constants.
class OneNode {
public:
    OneNode() : program_(builtin_op_table()), rewriter_(program_, program_.add_function("main")) {}

    template <class T> Value& constant(const Tensor<T>& x) {
        return rewriter_.constant(Type::tensor(dtype_of<T>, dims_of(x.shape)), bytes_of(x.elements));
    }

    template <class T> static std::string bytes_of(const std::vector<T>& elements) {
        return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
    }

    template <class T>
    std::optional<Tensor<T>> evaluated(std::string_view op, std::vector<Value*> x, Attributes a = {}) {
        OpNode& node = rewriter_.create(op, std::move(x), std::move(a));
        auto results = evaluate(program_, node);
        if (!results) return std::nullopt;
        Tensor<T> y;
        EXPECT_EQ(node.result().type().dtype(), dtype_of<T>);
        for (const Dim& d : node.result().type().shape()) y.shape.push_back(*d.constant());
        y.elements.resize(results->at(0).size() / sizeof(T));
        EXPECT_EQ(static_cast<int64_t>(y.elements.size()), count_of(y.shape));
        if (!y.elements.empty()) std::memcpy(y.elements.data(), results->at(0).data(), results->at(0).size());
        return y;
    }

    Program& program() { return program_; }
    Rewriter& rewriter() { return rewriter_; }

private:
    Program program_;
    Rewriter rewriter_;
};

template <class Y, class... X>
std::optional<Tensor<Y>> evaluated(std::string_view op, Attributes attributes, const Tensor<X>&... x) {
    OneNode one;
    return one.evaluated<Y>(op, {&one.constant(x)...}, std::move(attributes));
}

std::mt19937 random_bits(7);

template <class T> Tensor<T> random_tensor(const Ints& shape, double low = -4, double high = 4) {
    Tensor<T> x{shape, std::vector<T>(static_cast<size_t>(count_of(shape)))};
    for (T& element : x.elements)
        element = static_cast<T>(std::uniform_real_distribution<double>(low, high)(random_bits));
    return x;
}

void expect_near(const Tensor<float>& actual, const Tensor<double>& expected, double tolerance = 1e-5) {
    ASSERT_EQ(actual.shape, expected.shape);
    for (size_t i = 0; i < actual.elements.size(); i++) {
        double scale = std::max(1.0, std::abs(expected.elements[i]));
        ASSERT_NEAR(actual.elements[i], expected.elements[i], tolerance * scale) << "element " << i;
    }
}

// Walks all indices of a shape.
template <class F> void for_each_index(const Ints& shape, F f) {
    Ints index(shape.size(), 0);
    for (int64_t i = 0, n = count_of(shape); i < n; i++) {
        f(index);
        for (size_t axis = shape.size(); axis-- > 0;) {
            if (++index[axis] < shape[axis]) break;
            index[axis] = 0;
        }
    }
}

template <class T> T& at(Tensor<T>& x, const Ints& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); i++) offset = offset * x.shape[i] + index[i];
    return x.elements.at(static_cast<size_t>(offset));
}

// A tensor whose elements are given by a function of the index.
template <class T, class F> Tensor<T> made(const Ints& shape, F f) {
    Tensor<T> y{shape, std::vector<T>(static_cast<size_t>(count_of(shape)))};
    for_each_index(shape, [&](const Ints& index) { at(y, index) = f(index); });
    return y;
}

const std::vector<Ints> odd_shapes = {{}, {0, 3}, {1}, {7}, {15}, {16}, {17}, {3, 11}, {2, 5, 7}};

TEST(Evaluate, UnaryFunctions) {
    struct Row {
        const char* op;
        double (*reference)(double);
    };
    const Row rows[] = {
        {"exp", std::exp},
        {"tanh", std::tanh},
        {"erf", std::erf},
        {"floor", std::floor},
        {"ceil", std::ceil},
        {"abs", std::fabs},
        {"round", std::nearbyint},
        {"relu", [](double x) { return x > 0 ? x : 0; }},
        {"neg", [](double x) { return -x; }},
        {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    };
    for (const Row& row : rows)
        for (const Ints& shape : odd_shapes) {
            Tensor<float> x = random_tensor<float>(shape);
            Tensor<double> expected{shape, {}};
            for (float v : x.elements) expected.elements.push_back(row.reference(v));
            auto y = evaluated<float>(row.op, {}, x);
            ASSERT_TRUE(y) << row.op;
            expect_near(*y, expected, 1e-6);
        }
}

// Each op with a scalar lowering, for each dtype that its record accepts.
TEST(Evaluate, AllElementwiseOpsForAllTheirDTypes) {
    using enum DType;
    auto accepted = [](Accepts accepts) -> std::vector<DType> {
        std::vector<DType> floating = {F64, F32}, integer = {I64, I32, I16, I8, U64, U32, U16, U8};
        std::vector<DType> number = floating;
        number.insert(number.end(), integer.begin(), integer.end());
        if (accepts == Accepts::Floating) return floating;
        if (accepts == Accepts::Integer) return integer;
        if (accepts == Accepts::Bool) return {Bool};
        if (accepts == Accepts::Any) number.push_back(Bool);
        return number;
    };
    for (const OpDef& op : builtin_op_table().all()) {
        if (op.lower.kind != Lowering::Scalar || op.name == "cast") continue;
        for (DType dtype : accepted(op.operands.back().accepts)) {
            OneNode one;
            std::vector<Value*> operands;
            for (const OperandDef& operand : op.operands) {
                bool condition = operand.accepts == Accepts::Bool;
                Type type = Type::tensor(condition ? Bool : dtype, {17});
                operands.push_back(&one.rewriter().constant(type, std::string(17 * size_of(type.dtype()), '\0')));
            }
            OpNode& node = one.rewriter().create(op.name, operands);
            EXPECT_TRUE(evaluate(one.program(), node)) << op.name << " of " << name(dtype);
        }
    }
}

TEST(Evaluate, IntegersWrapAndNeverTrap) {
    Tensor<int8_t> a{{3}, {127, -128, -128}}, b{{3}, {1, 1, -1}};
    EXPECT_EQ(evaluated<int8_t>("add", {}, a, b)->elements, (std::vector<int8_t>{-128, -127, 127}));
    EXPECT_EQ(evaluated<int8_t>("mul", {}, a, b)->elements, (std::vector<int8_t>{127, -128, -128}));
    EXPECT_EQ(evaluated<int8_t>("div", {}, a, b)->elements, (std::vector<int8_t>{127, -128, -128}));
    Tensor<int32_t> c{{3}, {7, -7, INT32_MIN}}, d{{3}, {2, 0, -1}};
    EXPECT_EQ(evaluated<int32_t>("div", {}, c, d)->elements, (std::vector<int32_t>{3, 0, INT32_MIN}));
    EXPECT_EQ(evaluated<int32_t>("neg", {}, c)->elements, (std::vector<int32_t>{-7, 7, INT32_MIN}));
}

TEST(Evaluate, ComparisonsAndChoice) {
    float nan = std::nanf("");
    Tensor<float> a{{4}, {1, 2, nan, 4}}, b{{4}, {1, 3, nan, 2}};
    EXPECT_EQ(evaluated<Truth>("equal", {}, a, b)->elements, (std::vector<Truth>{{1}, {0}, {0}, {0}}));
    EXPECT_EQ(evaluated<Truth>("less", {}, a, b)->elements, (std::vector<Truth>{{0}, {1}, {0}, {0}}));
    Tensor<Truth> c{{4}, {{1}, {0}, {1}, {0}}}, d{{4}, {{1}, {1}, {0}, {0}}};
    EXPECT_EQ(evaluated<Truth>("logical_xor", {}, c, d)->elements, (std::vector<Truth>{{0}, {1}, {1}, {0}}));
    EXPECT_EQ(evaluated<Truth>("logical_not", {}, c)->elements, (std::vector<Truth>{{0}, {1}, {0}, {1}}));
    Tensor<int8_t> x{{4}, {1, 2, 3, 4}}, y{{4}, {5, 6, 7, 8}};
    EXPECT_EQ(evaluated<int8_t>("where", {}, c, x, y)->elements, (std::vector<int8_t>{1, 6, 3, 8}));
}

TEST(Evaluate, Casts) {
    float infinity = std::numeric_limits<float>::infinity();
    Tensor<float> x{{6}, {1.9f, -1.9f, 300, -infinity, std::nanf(""), 0}};
    EXPECT_EQ(evaluated<int8_t>("cast", {{"to", DType::I8}}, x)->elements,
              (std::vector<int8_t>{1, -1, 127, -128, 0, 0}));
    EXPECT_EQ(evaluated<uint8_t>("cast", {{"to", DType::U8}}, x)->elements, (std::vector<uint8_t>{1, 0, 255, 0, 0, 0}));
    EXPECT_EQ(evaluated<Truth>("cast", {{"to", DType::Bool}}, x)->elements,
              (std::vector<Truth>{{1}, {1}, {1}, {1}, {1}, {0}}));
    Tensor<int64_t> wide{{3}, {256 + 5, -1, 2}};
    EXPECT_EQ(evaluated<uint8_t>("cast", {{"to", DType::U8}}, wide)->elements, (std::vector<uint8_t>{5, 255, 2}));
    Tensor<Truth> truth{{2}, {{1}, {0}}};
    EXPECT_EQ(evaluated<double>("cast", {{"to", DType::F64}}, truth)->elements, (std::vector<double>{1, 0}));
}

TEST(Evaluate, MatMul) {
    for (const auto& [m, k, n] : {std::array{1, 1, 1}, {3, 5, 7}, {17, 33, 31}, {2, 0, 3}, {0, 4, 3}}) {
        Tensor<float> a = random_tensor<float>({2, m, k}), b = random_tensor<float>({2, k, n});
        Tensor<float> shared = random_tensor<float>({k, n});
        auto reference = [&](Tensor<float>& right, bool stacked) {
            return made<double>({2, m, n}, [&](const Ints& i) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum +=
                        double(at(a, {i[0], i[1], l})) * (stacked ? at(right, {i[0], l, i[2]}) : at(right, {l, i[2]}));
                return sum;
            });
        };
        expect_near(*evaluated<float>("matmul", {}, a, b), reference(b, true));
        expect_near(*evaluated<float>("matmul", {}, a, shared), reference(shared, false));
    }
}

TEST(Evaluate, Conv2d) {
    struct Case {
        int64_t groups;
        Ints strides, dilations, pads;
    };
    for (const Case& c : {Case{1, {1, 1}, {1, 1}, {0, 0, 0, 0}}, Case{2, {2, 1}, {1, 2}, {1, 0, 2, 3}},
                          Case{4, {3, 2}, {2, 1}, {2, 2, 0, 1}}}) {
        Tensor<float> x = random_tensor<float>({2, 4, 9, 11}), w = random_tensor<float>({8, 4 / c.groups, 3, 2});
        Tensor<float> bias = random_tensor<float>({8});
        auto out = [&](int64_t size, int64_t kernel, size_t i) {
            return (size + c.pads[i] + c.pads[i + 2] - c.dilations[i] * (kernel - 1) - 1) / c.strides[i] + 1;
        };
        auto expected = made<double>({2, 8, out(9, 3, 0), out(11, 2, 1)}, [&](const Ints& o) {
            double sum = at(bias, {o[1]});
            for_each_index({4 / c.groups, 3, 2}, [&](const Ints& t) {
                int64_t y = o[2] * c.strides[0] + t[1] * c.dilations[0] - c.pads[0];
                int64_t column = o[3] * c.strides[1] + t[2] * c.dilations[1] - c.pads[1];
                if (y < 0 || y >= 9 || column < 0 || column >= 11) return;
                int64_t channel = o[1] / (8 / c.groups) * (4 / c.groups) + t[0];
                sum += double(at(x, {o[0], channel, y, column})) * at(w, {o[1], t[0], t[1], t[2]});
            });
            return sum;
        });
        Attributes attributes = {
            {"groups", c.groups}, {"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}};
        expect_near(*evaluated<float>("conv2d", attributes, x, w, bias), expected);
    }
}

TEST(Evaluate, Pooling) {
    Tensor<float> x = random_tensor<float>({2, 3, 7, 8});
    Ints kernel = {3, 2}, strides = {2, 1}, dilations = {1, 2}, pads = {1, 0, 1, 1};
    Attributes attributes = {{"kernel", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
    auto pooled = [&](bool mean, bool count_padding) {
        return made<double>({2, 3, 4, 7}, [&](const Ints& o) {
            double sum = 0, largest = -INFINITY, count = 0;
            for_each_index(kernel, [&](const Ints& t) {
                int64_t y = o[2] * strides[0] + t[0] * dilations[0] - pads[0];
                int64_t column = o[3] * strides[1] + t[1] * dilations[1] - pads[1];
                bool real = y >= 0 && y < 7 && column >= 0 && column < 8;
                if (real) sum += at(x, {o[0], o[1], y, column});
                if (real) largest = std::max<double>(largest, at(x, {o[0], o[1], y, column}));
                count += real || count_padding;
            });
            return mean ? sum / count : largest;
        });
    };
    expect_near(*evaluated<float>("max_pool2d", attributes, x), pooled(false, false));
    expect_near(*evaluated<float>("avg_pool2d", attributes, x), pooled(true, false));
    attributes["count_include_pad"] = true;
    expect_near(*evaluated<float>("avg_pool2d", attributes, x), pooled(true, true));
}

TEST(Evaluate, ReductionsOverAnyAxes) {
    Ints shape = {3, 5, 2, 17};
    Tensor<float> x = random_tensor<float>(shape);
    for (const Ints& axes : {Ints{}, Ints{3}, Ints{0}, Ints{1, 2}, Ints{0, 2}, Ints{-1, 1}, Ints{3, 0, 1, 2}}) {
        Ints reduced = shape;
        for (int64_t axis : axes) reduced[static_cast<size_t>(axis < 0 ? axis + 4 : axis)] = 1;
        Tensor<double> sum{reduced, std::vector<double>(static_cast<size_t>(count_of(reduced)), 0)}, largest = sum;
        for (double& v : largest.elements) v = -INFINITY;
        for_each_index(shape, [&](Ints index) {
            double v = at(x, index);
            for (size_t i = 0; i < 4; i++) index[i] = std::min(index[i], reduced[i] - 1);
            at(sum, index) += v;
            at(largest, index) = std::max(at(largest, index), v);
        });
        Tensor<double> mean = sum;
        for (double& v : mean.elements) v *= double(count_of(reduced)) / double(count_of(shape));
        expect_near(*evaluated<float>("reduce_sum", {{"axes", axes}}, x), sum);
        expect_near(*evaluated<float>("reduce_mean", {{"axes", axes}}, x), mean);
        expect_near(*evaluated<float>("reduce_max", {{"axes", axes}}, x), largest);
    }
    Tensor<float> empty{{2, 0}, {}};
    EXPECT_EQ(evaluated<float>("reduce_sum", {{"axes", Ints{1}}}, empty)->elements, (std::vector<float>{0, 0}));
    EXPECT_EQ(evaluated<float>("reduce_prod", {{"axes", Ints{1}}}, empty)->elements, (std::vector<float>{1, 1}));
}

TEST(Evaluate, Softmax) {
    Tensor<float> x = random_tensor<float>({3, 17, 5});
    for (int64_t axis : {0, 1, -1}) {
        auto which = static_cast<size_t>(axis < 0 ? 2 : axis);
        auto expected = made<double>(x.shape, [&](Ints index) {
            double own = at(x, index), sum = 0;
            for (index[which] = 0; index[which] < x.shape[which]; index[which]++) sum += std::exp(at(x, index) - own);
            return 1 / sum;
        });
        expect_near(*evaluated<float>("softmax", {{"axis", axis}}, x), expected, 1e-6);
        for (double& v : expected.elements) v = std::log(v);
        expect_near(*evaluated<float>("log_softmax", {{"axis", axis}}, x), expected, 1e-6);
    }
}

TEST(Evaluate, Movement) {
    Tensor<int8_t> x = random_tensor<int8_t>({3, 1, 5, 17}, -100, 100);
    EXPECT_EQ(*evaluated<int8_t>("transpose", {{"perm", Ints{3, 0, 1, 2}}}, x),
              made<int8_t>({17, 3, 1, 5}, [&](const Ints& i) { return at(x, {i[1], i[2], i[3], i[0]}); }));
    EXPECT_EQ(*evaluated<int8_t>("broadcast", {{"shape", Shape{2, 3, 4, 5, 17}}}, x),
              made<int8_t>({2, 3, 4, 5, 17}, [&](const Ints& i) { return at(x, {i[1], 0, i[3], i[4]}); }));
    EXPECT_EQ(*evaluated<int8_t>("reshape", {{"shape", Shape{15, 17}}}, x), (Tensor<int8_t>{{15, 17}, x.elements}));
    EXPECT_EQ(
        *evaluated<int8_t>(
            "slice", {{"starts", Shape{1, 0, 4, 2}}, {"sizes", Shape{2, 1, 3, 5}}, {"steps", Ints{1, 1, -2, 3}}}, x),
        made<int8_t>({2, 1, 3, 5}, [&](const Ints& i) { return at(x, {1 + i[0], 0, 4 - 2 * i[2], 2 + 3 * i[3]}); }));
    EXPECT_EQ(*evaluated<int8_t>("pad", {{"low", Shape{0, 1, 2, 0}}, {"high", Shape{1, 0, 3, 4}}, {"value", -7.0}}, x),
              made<int8_t>({4, 2, 10, 21}, [&](const Ints& i) -> int8_t {
                  bool inside = i[0] < 3 && i[1] == 1 && i[2] >= 2 && i[2] < 7 && i[3] < 17;
                  return inside ? at(x, {i[0], 0, i[2] - 2, i[3]}) : int8_t{-7};
              }));
    Tensor<int8_t> y = random_tensor<int8_t>({3, 2, 5, 17}, -100, 100);
    EXPECT_EQ(*evaluated<int8_t>("concat", {{"axis", int64_t{1}}}, x, y, x),
              made<int8_t>({3, 4, 5, 17}, [&](const Ints& i) {
                  bool from_y = i[1] == 1 || i[1] == 2;
                  return from_y ? at(y, {i[0], i[1] - 1, i[2], i[3]}) : at(x, {i[0], 0, i[2], i[3]});
              }));
    Tensor<float> scalar{{}, {3}};
    EXPECT_EQ(*evaluated<float>("broadcast", {{"shape", Shape{0, 4}}}, scalar), (Tensor<float>{{0, 4}, {}}));
    EXPECT_EQ(*evaluated<float>("transpose", {{"perm", Ints{}}}, scalar), scalar);
}

TEST(Evaluate, Gather) {
    Tensor<float> x = random_tensor<float>({2, 5, 3});
    Tensor<int64_t> indices{{2, 2}, {4, -1, 0, -5}};
    EXPECT_EQ(*evaluated<float>("gather", {{"axis", int64_t{1}}}, x, indices),
              made<float>({2, 2, 2, 3}, [&](const Ints& i) {
                  int64_t index = at(indices, {i[1], i[2]});
                  return at(x, {i[0], index < 0 ? index + 5 : index, i[3]});
              }));
    Tensor<int32_t> too_high{{1}, {5}}, too_low{{1}, {-6}};
    EXPECT_FALSE(evaluated<float>("gather", {{"axis", int64_t{1}}}, x, too_high));
    EXPECT_FALSE(evaluated<float>("gather", {{"axis", int64_t{1}}}, x, too_low));
}

TEST(Evaluate, ReadsWeightsThatAreNotAligned) {
    OneNode one;
    auto owner = std::make_shared<const std::string>("?" + OneNode::bytes_of(std::vector<float>{1, 2, 3}));
    auto bytes = std::as_bytes(std::span(*owner)).subspan(1);
    std::string name = one.program().add_weight("w", Type::tensor(DType::F32, {3}), bytes, owner);
    EXPECT_EQ(one.evaluated<float>("neg", {&one.rewriter().weight(name)})->elements, (std::vector<float>{-1, -2, -3}));
}

TEST(Evaluate, LeavesWhatItCannotCompute) {
    OneNode one;
    one.program().declare_weight("missing", Type::tensor(DType::F32, {3}), {});
    EXPECT_FALSE(one.evaluated<float>("neg", {&one.rewriter().weight("missing")}));
    Tensor<float> scalar{{}, {1}};
    EXPECT_FALSE(evaluated<float>("broadcast", {{"shape", Shape{1 << 14, 1 << 14}}}, scalar)); // 1 GiB
    EXPECT_FALSE(evaluated<float>("broadcast", {{"shape", Shape{Dim::symbol("N")}}}, scalar));
    Tensor<Truth> neither{{1}, {{2}}};
    EXPECT_FALSE(evaluated<Truth>("logical_not", {}, neither));
    EXPECT_FALSE(evaluated<int64_t>("nonzero", {{"count", std::string("k")}}, scalar));
}

} // namespace
} // namespace cuvil
