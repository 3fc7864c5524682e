// Every row of the operator tables with operands that hardly fit: of any rank, empty, of odd types, left out. What
// comes out is a sound program or a refusal.
#include "import/onnx/onnx.hpp"
#include "import/onnx/rows.hpp"
#include "import_onnx_writer.hpp"
#include "import_testing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>

namespace cuvil {
namespace {

using namespace onnx_writer;

constexpr int rounds = 200; // for each row
const std::string preview = "ai.onnx.preview";

class Sweep {
public:
    explicit Sweep(const onnx::Row& row, unsigned seed) : row_(row), random_(seed) {}

    // One node of the operator, whose operands are inputs and initializers.
    Graph graph() {
        Graph g;
        int most = std::min(row_.most_inputs, row_.least_inputs + 5);
        int count = row_.least_inputs + below(most - row_.least_inputs + 1), rank = below(6);
        Names operands, results{"y", "y2", "y3"};
        for (int i = 0; i < count; i++) operands.push_back(operand(g, "x" + std::to_string(i), rank));
        Names attributes;
        std::istringstream words{std::string(row_.attributes)};
        for (std::string name; words >> name;)
            if (below(3) != 0) attributes.push_back(attribute_of(name));
        results.resize(1 + static_cast<size_t>(below(3)));
        g.nodes.push_back(node(std::string(row_.name), operands, results, attributes, std::string(row_.domain)));
        for (const std::string& result : results) g.outputs.push_back(untyped(result));
        return g;
    }

private:
    int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
    template <class T, size_t n> const T& any_of(const std::array<T, n>& all) {
        return all[static_cast<size_t>(below(n))];
    }

    int64_t number() { return any_of(std::array<int64_t, 12>{-1, 0, 1, 2, 3, 4, -2, 1, 0, -9, INT64_MAX, INT64_MIN}); }
    float real_number() {
        return any_of(std::array{0.f, 1.f, 0.5f, -1.f, 1e30f, std::numeric_limits<float>::quiet_NaN()});
    }
    Ints numbers() {
        Ints all;
        bool is_mild = below(4) != 0;
        for (int i = below(6); i > 0; i--) all.push_back(is_mild ? below(3) : number());
        return all;
    }

    std::string operand(Graph& g, const std::string& name, int usual_rank) {
        int kind = below(10);
        if (kind == 0 && row_.least_inputs < 2) kind = 1;
        if (kind == 0) return "";
        if (kind <= 2) {
            g.initializers.push_back(constant(name));
        } else if (kind == 3 && row_.lists > 0) {
            g.inputs.push_back(value_info(name + "_element", F32, shape(usual_rank)));
            g.nodes.push_back(node("SequenceConstruct", {name + "_element"}, {name}));
        } else {
            int32_t dtype = kind <= 7 ? F32 : any_of(std::array<int32_t, 8>{F16, F64, U8, I32, I64, I64, Bool, String});
            g.inputs.push_back(value_info(name, dtype, shape(below(3) == 0 ? below(6) : usual_rank)));
        }
        return name;
    }

    std::vector<Size> shape(int rank) {
        std::vector<Size> sizes;
        for (int i = 0; i < rank; i++) sizes.push_back(any_of(std::array<Size, 6>{"", "", "", 0, 1, 2}));
        return sizes;
    }

    std::string constant(const std::string& name) {
        switch (below(8)) {
        case 0: return tensor(name, I64, {}, raw(Ints{number()}));
        case 1: return tensor(name, I64, {0, 2}, "");
        case 2: return tensor(name, F32, {}, raw(std::vector{real_number()}));
        case 3: return tensor(name, F32, {0}, "");
        case 4: return floats(name, {1 + below(4)}, real_number());
        case 5: return tensor(name, Bool, {}, "\1");
        default: return ints(name, numbers());
        }
    }

    std::string attribute_of(const std::string& name) {
        static const std::set<std::string> reals{"alpha", "beta",  "bias",   "clip",          "cubic_coeff_a",
                                                 "gamma", "high",  "lambd",  "epsilon",       "extrapolation_value",
                                                 "low",   "ratio", "scale",  "spatial_scale", "momentum",
                                                 "value", "mean",  "softcap"};
        static const std::set<std::string> lists{"axes",  "dilations", "ends",           "kernel_shape", "paddings",
                                                 "pads",  "perm",      "output_padding", "pooled_shape", "output_shape",
                                                 "shape", "starts",    "split",          "strides",      "value_ints"};
        static const std::set<std::string> graphs{"body", "else_branch", "then_branch"};
        static const std::map<std::string, std::array<const char*, 4>> words{
            {"approximate", {"none", "tanh", "", "x"}},
            {"auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}},
            {"coordinate_transformation_mode", {"asymmetric", "align_corners", "half_pixel", "tf_crop_and_resize"}},
            {"direction", {"forward", "reverse", "bidirectional", "RIGHT"}},
            {"equation", {"...i,...i->...", "ij,jk", "......->", "ii->i"}},
            {"keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller", ""}},
            {"mode", {"linear", "nearest", "reflect", "wrap"}},
            {"nearest_mode", {"floor", "ceil", "round_prefer_ceil", "simple"}},
            {"padding_mode", {"zeros", "border", "reflection", ""}},
            {"reduction", {"none", "add", "mean", "sum"}}};
        if (auto word = words.find(name); word != words.end()) return text_attribute(name, any_of(word->second));
        if (reals.contains(name)) return real(name, real_number());
        if (lists.contains(name)) return list(name, numbers());
        if (graphs.contains(name))
            return graph_attribute(name, Graph{{node("Identity", {"x0"}, {"inner"})}, {}, {untyped("inner")}}.bytes());
        return integer(name, number());
    }

    const onnx::Row& row_;
    std::mt19937 random_;
};

TEST(OnnxRows, WithOperandsThatHardlyFit) {
    std::vector<ImportedOp> ops = onnx_rows();
    size_t accepted = 0, refused = 0;
    for (const ImportedOp& op : ops) {
        const onnx::Row* row = onnx::find_row(op.name, op.since);
        if (!row) row = onnx::find_row(op.name, op.since, preview);
        int64_t version = row->until == onnx::newest ? onnx::newest_opset : row->until;
        Sweep sweep(*row, 7);
        for (int round = 0; round < rounds; round++) {
            std::string bytes = model(sweep.graph(), version);
            Writer(bytes).add_message(8, opset(preview, 1));
            SCOPED_TRACE(std::string(row->name) + " of opset " + std::to_string(version) + ", round " +
                         std::to_string(round));
            try {
                import_bytes(bytes); // which verifies it
                accepted++;
            } catch (const Refused&) {
                refused++;
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
        }
    }
    EXPECT_EQ(accepted + refused, ops.size() * rounds);
    EXPECT_GT(accepted, ops.size()); // else the operands fit too hardly
}

} // namespace
} // namespace cuvil
