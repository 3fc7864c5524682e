#include "ir/rewriter.hpp"
#include "plan/cost.hpp"
#include "plan/pack.hpp"
#include "plan/plan.hpp"
#include "plan/views.hpp"
#include "plan/winograd.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>
#include <span>

namespace cuvil {
namespace {

// A copy, since weights in a mapped model file may lie at any address.
std::vector<float> floats(std::span<const std::byte> bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::copy_n(bytes.begin(), values.size() * sizeof(float), std::as_writable_bytes(std::span(values)).begin());
    return values;
}

std::string weight_name(const Value& value) {
    const OpNode& node = *value.producer();
    if (node.op() == "weight") return node.get<std::string>("name");
    return value.name().empty() ? "constant" : value.name();
}

// Makes the weight `suffix` of a constant, unless it exists with the same content: two layers may share one.
Value& derived_weight(Rewriter& edit, const Value& of, std::string_view suffix, Type type,
                      std::span<const std::byte> bytes) {
    std::string name = weight_name(of) + "/" + std::string(suffix);
    auto found = edit.program().weights().find(name);
    if (found == edit.program().weights().end() || found->second.hash != content_hash(bytes))
        name = edit.program().add_weight(name, std::move(type),
                                         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return edit.weight(name);
}

class Chooser {
public:
    Chooser(Program& program, FuncIR& function, const ChoiceOptions& options, Plan& plan, Diagnostics& diag)
        : edit_(program, function), options_(options), plan_(plan), diag_(diag) {}

    void choose(Region& region) {
        for (const auto& node : region.nodes()) {
            edit_.insert_before(*node);
            edit_.set_location(node->location());
            if (node->def().lower.kind == Lowering::Kernel) plan_.kernels[node.get()] = kernel_for(*node);
            for (const auto& inner : node->regions()) choose(*inner);
        }
    }

    // A table of rows that is the weights of a product, too, as that of words in a language model, is kept once.
    void share_tables(Region& region) {
        for (const auto& node : region.nodes()) {
            if (node->op() == "gather") read_packed_rows(*node);
            for (const auto& inner : node->regions()) share_tables(*inner);
        }
    }

private:
    void read_packed_rows(OpNode& node) {
        const Type& table = node.operand(0)->type();
        auto bytes = constant_bytes(edit_.program(), *node.operand(0));
        if (!bytes || table.dtype() != DType::F32 || table.rank() != 2 || !is_first_axis(node)) return;
        int64_t rows = *table.dim(0).constant(), width = *table.dim(1).constant();
        Type packed_type = packed_matrix_type(width, rows, options_.matrices);
        std::optional<Hash128> hash;
        for (const auto& [name, weight] : edit_.program().weights()) {
            if (weight.type != packed_type) continue;
            if (!hash) hash = content_hash(pack_transposed(rows, width, floats(*bytes), options_.matrices));
            if (weight.hash != *hash) continue;
            plan_.packed_rows[&node] = rows;
            plan_.kernels[&node] = "gather_packed";
            edit_.insert_before(node);
            edit_.set_operand(node, 0, &edit_.weight(name));
            return;
        }
    }

    static bool is_first_axis(const OpNode& node) {
        int64_t axis = node.get<int64_t>("axis");
        return axis == 0 || axis == -node.operand(0)->type().rank();
    }

    std::string kernel_for(OpNode& node) {
        if (node.op() == "conv2d") return choose_conv2d(node);
        if (node.op() == "conv_transpose2d") return choose_conv_transpose(node);
        if (node.op() == "matmul") return choose_matmul(node);
        if (node.op() == "attention") return choose_attention(node);
        if (node.def().lower.text == "recurrent") return choose_recurrent(node);
        if (node.op() == "max_pool2d" || node.op() == "avg_pool2d") return "pool_any";
        return std::string(node.def().lower.text);
    }

    // The quick kernels need f32 and constant weights. An image of a few channels that no convolution made (the
    // network's input) is read with one channel per plane, all others in blocks of 16 channels. Groups must fill whole
    // blocks, or blocks whole groups.
    std::string choose_conv2d(OpNode& node) {
        Value &x = *node.operand(0), &w = *node.operand(1);
        Value* bias = node.operand(2);
        auto weights = constant_bytes(edit_.program(), w);
        bool quick = x.type().dtype() == DType::F32 && weights && (!bias || constant_bytes(edit_.program(), *bias));
        if (!quick) return "conv_any";
        int64_t k = *w.type().dim(0).constant(), c = *w.type().dim(1).constant(), groups = node.get<int64_t>("groups");
        int64_t r = *w.type().dim(2).constant(), s = *w.type().dim(3).constant();
        bool narrow = c == 1 || c == 2 || c == 4 || c == 8;
        if (groups > 1 && narrow && k == c * groups) {
            Type type = Type::tensor(DType::F32, {(k + 15) / 16, 1, r, s, c, 16});
            set_packed(node, w, "packed_narrow", type, pack_narrow_convolution(k, c, r, s, floats(*weights)));
            return "conv2d_narrow";
        }
        if (groups > 1 && (c % 16 != 0 || k / groups % 16 != 0)) return "conv_any";
        if (int64_t stride = stride_of_3x3(node); stride > 0 && groups == 1 && has_winograd(c, k)) {
            std::string kernel = choose_3x3(node, stride, c, k);
            if (point_scheme(node, kernel).tile > 0) return take_winograd(node, kernel, c, k, floats(*weights));
        }
        int64_t block = c <= 8 && !comes_blocked(x) ? 1 : 16;
        if (auto scheme = block == 1 && groups == 1 ? scheme_of_phases(node, c, k) : std::nullopt)
            return take_phases(node, *scheme, c, k, floats(*weights));
        // Within a panel: by blocks of channels, of which the last one may be short.
        int64_t channels = block == 1 ? c : (c + 3) / 4 * 4;
        Type type = Type::tensor(DType::F32, {(k + 15) / 16, channels, r, s, 16});
        set_packed(node, w, block == 1 ? "packed1" : "packed16", type,
                   pack_convolution(k, c, r, s, block, floats(*weights)));
        return block == 1 ? "conv2d_padded" : groups == 1 ? "conv2d_blocked" : "conv2d_grouped";
    }

    std::string choose_3x3(const OpNode& node, int64_t stride, int64_t c, int64_t k) {
        const Dim &oh = node.result().type().dim(2), &ow = node.result().type().dim(3);
        const std::string& choice = plan_.choices[&node] = fmt::format(
            "conv2d 3x3{} {} to {} channels, {} x {}", stride == 2 ? " stride 2" : "", c, k, oh.text(), ow.text());
        if (auto wanted = options_.kernels.find(choice); wanted != options_.kernels.end()) return wanted->second;
        return std::string(options_.least_bytes ? convolution_kernels[0] : winograd_kernel(stride, c, k, oh, ow));
    }

    std::string take_winograd(OpNode& node, std::string_view kernel, int64_t c, int64_t k,
                              const std::vector<float>& weights) {
        PointScheme scheme = point_scheme(node, kernel);
        set_at_points(node, fmt::format("winograd{}_stride{}", scheme.tile, scheme.stride), scheme, c, k, weights);
        return std::string(kernel);
    }

    void set_at_points(OpNode& node, std::string_view suffix, const PointScheme& scheme, int64_t c, int64_t k,
                       const std::vector<float>& weights) {
        Type type =
            Type::tensor(DType::F32, {(k + 15) / 16, scheme.weights() * scheme.weights(), (c + 15) / 16 * 16, 16});
        set_packed(node, *node.operand(1), suffix, type, pack_winograd_convolution(scheme, k, c, weights));
    }

    // What a window over phases takes, if the estimate says that this is quicker than the direct kernel.
    std::optional<PointScheme> scheme_of_phases(const OpNode& node, int64_t c, int64_t k) const {
        using Ints = std::vector<int64_t>;
        const Type &w = node.operand(1)->type(), &y = node.result().type();
        const Ints& pads = node.get<Ints>("pads");
        if (options_.least_bytes || c > 4 || node.get<Ints>("strides") != Ints{2, 2} ||
            node.get<Ints>("dilations") != Ints{1, 1} || std::ranges::min(pads) < 0)
            return std::nullopt;
        int64_t r = *w.dim(2).constant(), s = *w.dim(3).constant(), taps = phase_taps(r, pads[0]);
        if (taps < 3 || taps > 4 || phase_taps(s, pads[1]) != taps) return std::nullopt;
        PointScheme scheme = {4, 1, taps};
        int64_t usual = 112; // pixels, where a run decides
        Dim rows = y.dim(2).constant().value_or(usual), columns = y.dim(3).constant().value_or(usual);
        double direct = estimate(direct_convolution_work(1, c, k, rows, columns, r * s))->nanoseconds;
        double phased = estimate(winograd_work(scheme, 1, 4 * c, k, rows, columns))->nanoseconds;
        return phased < direct ? std::optional(scheme) : std::nullopt;
    }

    std::string take_phases(OpNode& node, const PointScheme& scheme, int64_t c, int64_t k,
                            const std::vector<float>& weights) {
        const Type& w = node.operand(1)->type();
        const auto& pads = node.get<std::vector<int64_t>>("pads");
        auto of_phases = weights_of_phases(k, c, *w.dim(2).constant(), *w.dim(3).constant(), pads[0], pads[1], weights);
        std::string suffix = fmt::format("phases_{}_{}", pads[0], pads[1]);
        set_at_points(node, suffix, scheme, 4 * c, k, of_phases);
        return "conv2d_phased";
    }

    // By how many pixels a window of 3 x 3 moves in both directions, 1 or 2; 0 for any other convolution.
    static int64_t stride_of_3x3(const OpNode& node) {
        using Ints = std::vector<int64_t>;
        const Type& w = node.operand(1)->type();
        const auto& strides = node.get<Ints>("strides");
        bool fits = w.dim(2).is(3) && w.dim(3).is(3) && node.get<Ints>("dilations") == Ints{1, 1} &&
                    strides[0] == strides[1] && strides[0] <= 2;
        return fits ? strides[0] : 0;
    }

    std::string choose_conv_transpose(OpNode& node) {
        using Ints = std::vector<int64_t>;
        Value& w = *node.operand(1);
        Value* bias = node.operand(2);
        auto weights = w.type().dtype() == DType::F32 ? constant_bytes(edit_.program(), w) : std::nullopt;
        bool quick = weights && node.get<int64_t>("groups") == 1 && (!bias || constant_bytes(edit_.program(), *bias));
        if (!quick) return "conv_transpose_any";
        int64_t c = *w.type().dim(0).constant(), k = *w.type().dim(1).constant();
        int64_t r = *w.type().dim(2).constant(), s = *w.type().dim(3).constant();
        // The phases of all strides lie behind each other, which only packing and kernel know.
        const auto &strides = node.get<Ints>("strides"), &dilations = node.get<Ints>("dilations");
        Type type = Type::tensor(DType::F32, {(k + 15) / 16, (c + 15) / 16, r, s, 16, 16});
        std::string suffix = "packed_transposed";
        for (int64_t n : {strides[0], strides[1], dilations[0], dilations[1]}) suffix += "_" + std::to_string(n);
        set_packed(node, w, suffix, type,
                   pack_transposed_convolution(k, c, {r, s}, strides, dilations, floats(*weights)));
        return "conv_transpose_blocked";
    }

    void set_packed(OpNode& node, const Value& weight, std::string_view suffix, Type type,
                    const std::vector<float>& values) {
        edit_.set_operand(node, 1,
                          &derived_weight(edit_, weight, suffix, std::move(type), std::as_bytes(std::span(values))));
    }

    // Whether a convolution made x, so that it lies in blocks of 16 channels.
    bool comes_blocked(const Value& x) const {
        for (const OpNode* node = x.producer(); node && node->operand(0); node = node->operand(0)->producer()) {
            auto found = plan_.kernels.find(node);
            std::string_view kernel = found == plan_.kernels.end() ? "" : std::string_view(found->second);
            if (kernel.starts_with("conv2d_") || kernel == "conv_transpose_blocked") return true;
            if (kernel != "pool_any" && !is_loop_op(*node)) return false;
        }
        return false;
    }

    // Constant weights are packed; the kernel takes others as they are.
    std::string choose_recurrent(OpNode& node) {
        Value& w = *node.operand(1);
        auto weights = w.type().dtype() == DType::F32 ? constant_bytes(edit_.program(), w) : std::nullopt;
        if (weights) {
            int64_t gates = *w.type().dim(0).constant(), hidden = *w.type().dim(1).constant();
            Type type = Type::tensor(DType::F32, {gates, (hidden + 15) / 16, hidden, 16});
            set_packed(node, w, "packed_gates", type, pack_gates(gates, hidden, floats(*weights)));
        }
        return "recurrent";
    }

    std::string choose_matmul(OpNode& node) {
        Value& b = *node.operand(1);
        if (b.type().dtype() != DType::F32) return "matmul_any";
        std::string kernel = "gemm";
        auto bytes = b.type().rank() == 2 ? constant_bytes(edit_.program(), b) : std::nullopt;
        if (bytes) {
            kernel = take_constant_matrix(node, b, floats(*bytes));
        } else {
            Shape shape(b.type().shape().begin(), b.type().shape().end() - 2);
            shape.insert(shape.end(), {Dim::ceildiv(b.type().dim(-1), 16), b.type().dim(-2), Dim(16)});
            OpNode& pack = edit_.create_typed("pack", {&b}, {}, {Type::tensor(DType::F32, shape)});
            plan_.kernels[&pack] = "pack_b";
            edit_.set_operand(node, 1, &pack.result());
            edit_.insert_before(pack);
            read_in_place(pack, 0);
            edit_.insert_before(node);
        }
        read_in_place(node, 0);
        write_transposed(node);
        return kernel;
    }

    std::string take_constant_matrix(OpNode& node, const Value& b, const std::vector<float>& values) {
        const DType dtype = options_.matrices;
        if (auto number = beyond_range(values, dtype)) {
            diag_
                .error("weight-out-of-range",
                       fmt::format("weight {} holds {}, for which {} has no number", quoted(weight_name(b)), *number,
                                   name(dtype)),
                       node.location())
                .suggest(dtype == DType::F16 && std::isfinite(*number)
                             ? "--precision bf16-weights has the range of f32"
                             : "leave --precision out: f32 keeps it as it is");
            return "gemm";
        }
        int64_t k = *b.type().dim(0).constant(), n = *b.type().dim(1).constant();
        std::string suffix = dtype == DType::F32 ? "" : fmt::format("_{}", name(dtype));
        edit_.set_operand(node, 1,
                          &derived_weight(edit_, b, "packed" + suffix, packed_matrix_type(k, n, dtype),
                                          pack_matrix(k, n, values, dtype)));
        return "gemm" + suffix;
    }

    std::string choose_attention(OpNode& node) {
        read_in_place(node, 0, [](const View& view) { return view.strides.back().is(1); });
        for (size_t i = 1; i < node.operands().size(); i++) read_in_place(node, i);
        write_transposed(node);
        return "attention";
    }

    // The node's kernel takes strides: what is copied only for it is not copied.
    void read_in_place(OpNode& node, size_t i, bool (*can_read)(const View&) = [](const View&) { return true; }) {
        Value* operand = node.operand(i);
        auto traced = operand ? trace_view(*operand) : std::nullopt;
        if (!traced || !can_read(traced->view)) return;
        edit_.set_operand(node, i, &make_view(edit_, *operand, *traced));
        erase_unused(operand->producer());
    }

    void erase_unused(OpNode* node) {
        while (node && node->result().uses().empty()) {
            OpNode* before = node->operand(0)->producer();
            plan_.kernels.erase(node);
            edit_.erase(*node);
            node = before && before->results().size() == 1 && only_moves(*before) ? before : nullptr;
        }
    }

    // The node's kernel writes rows at any places: a transpose that moves whole ones is its way of storing them.
    void write_transposed(OpNode& node) {
        Value& y = node.result();
        if (!y.has_one_use()) return;
        OpNode& transpose = *y.uses()[0].node;
        if (transpose.op() != "transpose" || transpose.parent() != node.parent()) return;
        const auto& perm = transpose.get<std::vector<int64_t>>("perm");
        if (perm.back() != static_cast<int64_t>(perm.size()) - 1) return;
        plan_.stored_transposed[&node] = perm;
        y.set_type(transpose.result().type());
        plan_.kernels.erase(&transpose);
        edit_.replace(transpose, y);
    }

    Rewriter edit_;
    const ChoiceOptions& options_;
    Plan& plan_;
    Diagnostics& diag_;
};

// Dtypes that kernels compute with. Strings only pass through.
bool is_computed(const Type& type) {
    switch (type.dtype()) {
    case DType::F16:
    case DType::BF16:
    case DType::C64:
    case DType::C128:
    case DType::String: return false;
    default: return true;
    }
}

std::string instead_of(DType dtype) {
    switch (dtype) {
    case DType::F16:
    case DType::BF16: return "export the model in f32";
    case DType::String:
        return "strings can only pass from inputs to outputs: replace them by numbers before the export";
    default: return "keep real and imaginary parts in an axis of their own";
    }
}

// The first dtype among the node's operands and results that it cannot be computed in.
std::optional<DType> foreign_dtype(const OpNode& node) {
    Lowering::Kind kind = node.def().lower.kind;
    if (kind != Lowering::Kernel && kind != Lowering::Scalar && kind != Lowering::Control) return std::nullopt;
    auto is_foreign = [](const Value* v) { return v && v->type().is_tensor() && !is_computed(v->type()); };
    for (const Value* operand : node.operands())
        if (is_foreign(operand)) return operand->type().dtype();
    for (const auto& result : node.results())
        if (is_foreign(result.get())) return result->type().dtype();
    return std::nullopt;
}

// What one node of the model became is one error: `told` has the messages with their nodes.
void check_dtypes(const Region& region, std::set<std::string>& told, Diagnostics& diag) {
    for (const auto& node : region.nodes()) {
        if (std::optional<DType> dtype = foreign_dtype(*node)) {
            std::string message =
                std::string(node->op()) + " cannot be computed in " + std::string(cuvil::name(*dtype));
            const std::string& place = node->location().name;
            if (place.empty() || told.insert(message + '\n' + place).second)
                diag.error("unsupported-dtype", message, node->location()).suggest(instead_of(*dtype));
        }
        for (const auto& inner : node->regions()) check_dtypes(*inner, told, diag);
    }
}

// Only text of the IR can have values of other types: importers refuse them.
void check_type(const Type& type, const std::string& what, const Location& where, Diagnostics& diag) {
    if (!type.is_tensor())
        diag.error("unsupported-type", what + " is " + type.text() + ": only tensors have code", where);
    else if (!type.has_rank())
        diag.error("unknown-rank", what + " is " + type.text() + ": only tensors with a rank have code", where);
}

void check_types(const Region& region, Diagnostics& diag) {
    for (size_t i = 0; i < region.arguments().size(); i++) {
        const Type& type = region.arguments()[i]->type();
        check_type(type, "argument " + std::to_string(i), {}, diag);
        if (type.has_rank() && !type.layout().is_plain())
            diag.error("invalid-ir", "argument " + std::to_string(i) + " is " + type.text() +
                                         ": what comes from outside has no layout of its own");
    }
    for (const auto& node : region.nodes()) {
        for (const auto& result : node->results())
            check_type(result->type(), "a result of " + std::string(node->op()), node->location(), diag);
        for (const auto& inner : node->regions()) check_types(*inner, diag);
    }
}

void check_strings(const FuncIR& function, Diagnostics& diag) {
    const auto& arguments = function.body().arguments();
    for (size_t i = 0; i < arguments.size(); i++)
        if (is_strings(arguments[i]->type()) && !function.inputs[i].default_value.empty())
            diag.error("unsupported-dtype", "input '" + function.inputs[i].name + "' of strings cannot have a default");
    const auto& results = function.body().terminator()->operands();
    for (size_t i = 0; i < results.size(); i++)
        if (is_strings(results[i]->type()) && alias_root(*results[i]).argument_of() != &function.body())
            diag.error("unsupported-dtype",
                       "output '" + function.outputs[i].name + "' is of strings that are no input: they can only pass");
}

void check_code(const Region& region, Diagnostics& diag) {
    if (const OpNode* node = first_without_code(region))
        diag.error("bad-option",
                   std::string(node->op()) + " has no code of its own: the pass that takes it apart is "
                                             "disabled",
                   node->location());
}

} // namespace

bool is_strings(const Type& type) { return type.is_tensor() && type.dtype() == DType::String; }

const OpNode* first_without_code(const Region& region) {
    for (const auto& node : region.nodes()) {
        if (node->def().lower.kind == Lowering::None && !node->def().has(source) && !node->def().has(terminator))
            return node.get();
        for (const auto& inner : node->regions())
            if (const OpNode* found = first_without_code(*inner)) return found;
    }
    return nullptr;
}

Plan choose_algorithms(Program& program, const ChoiceOptions& options) {
    Diagnostics diag;
    std::set<std::string> told;
    for (const auto& function : program.functions()) {
        check_code(function->body(), diag);
        check_types(function->body(), diag);
        check_dtypes(function->body(), told, diag);
        check_strings(*function, diag);
    }
    for (const auto& [choice, kernel] : options.kernels)
        if (std::ranges::find(convolution_kernels, kernel) == std::end(convolution_kernels))
            diag.error("unknown-kernel", fmt::format("there is no kernel '{}' for '{}'", kernel, choice))
                .suggest(fmt::format("the kernels are {}", fmt::join(convolution_kernels, ", ")));
    diag.stop_if_errors();
    Plan plan;
    for (const auto& function : program.functions())
        Chooser(program, *function, options, plan, diag).choose(function->body());
    diag.stop_if_errors();
    for (const auto& function : program.functions())
        Chooser(program, *function, options, plan, diag).share_tables(function->body());
    return plan;
}

} // namespace cuvil
