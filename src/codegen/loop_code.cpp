#include "codegen/loop_code.hpp"

#include "support/diagnostics.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace cuvil {
namespace {

// The record's expression with its operand names, and `To`, replaced.
std::string substitute(std::string_view expression, const std::map<std::string, std::string, std::less<>>& names) {
    auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::string out;
    for (size_t i = 0; i < expression.size();) {
        size_t end = i;
        while (end < expression.size() && is_word(expression[end])) end++;
        if (end == i) {
            out += expression[i++];
            continue;
        }
        std::string_view word = expression.substr(i, end - i);
        auto found = names.find(word);
        out += found == names.end() ? std::string(word) : found->second;
        i = end;
    }
    return out;
}

} // namespace

std::vector<Dim> broadcast_strides(const Shape& from, const Shape& to) {
    std::vector<Dim> strides(to.size(), 0);
    Dim stride = 1;
    for (size_t i = 1; i <= from.size(); i++) {
        if (!from[from.size() - i].is(1)) strides[to.size() - i] = stride;
        stride = stride * from[from.size() - i];
    }
    return strides;
}

MergedShape merge(const Shape& shape, const std::vector<std::vector<Dim>>& strides) {
    MergedShape out{{}, std::vector<std::vector<Dim>>(strides.size())};
    for (size_t i = 0; i < shape.size(); i++) {
        if (shape[i].is(1)) continue;
        bool joins = !out.shape.empty();
        for (size_t k = 0; joins && k < strides.size(); k++) joins = out.strides[k].back() == strides[k][i] * shape[i];
        for (size_t k = 0; k < strides.size(); k++) {
            if (joins) out.strides[k].pop_back();
            out.strides[k].push_back(strides[k][i]);
        }
        if (joins)
            out.shape.back() = out.shape.back() * shape[i];
        else
            out.shape.push_back(shape[i]);
    }
    if (out.shape.empty()) {
        out.shape = {1};
        for (auto& s : out.strides) s = {0};
    }
    return out;
}

LoopCode::LoopCode(const StepContext& context) : c_(context) {
    Step loop = c_.step;
    loop.anchor = nullptr;
    for (Value* v : memory_operands(loop))
        if (v->producer() != c_.step.anchor || !c_.step.anchor)
            operands_.push_back({v, fmt::format("o{}", operands_.size())});
}

const LoopCode::Operand* LoopCode::find(const Value& read) const {
    auto found = std::ranges::find(operands_, &read, &Operand::value);
    return found == operands_.end() ? nullptr : &*found;
}

void LoopCode::declare_operands(CxxText& out) const {
    for (const Operand& o : operands_) {
        std::string_view t = cxx_name(o.value->type().dtype());
        out.line("const {}* {} = f.at<{}>({});", t, o.name, t, c_.buffer(*o.value));
    }
}

template <class F> void LoopCode::emit_nodes(CxxText& out, F text_of) const {
    std::map<const Value*, std::string> inner;
    for (size_t i = 0; i < c_.step.fused.size(); i++) {
        const OpNode& node = *c_.step.fused[i];
        std::map<std::string, std::string, std::less<>> names;
        for (size_t k = 0; k < node.operands().size(); k++) {
            Value& operand = *node.operand(k);
            Value& read = behind_broadcasts(operand);
            std::string text;
            if (auto found = inner.find(&operand); found != inner.end())
                text = found->second;
            else if (is_literal(read))
                text = "splat(" + literal_text(c_.program, read) + ")";
            else
                text = text_of(operand, read);
            names[std::string(node.def().operands[k].name)] = text;
        }
        if (node.def().find_attribute("to")) names["To"] = cxx_name(node.get<DType>("to"));
        std::string name = fmt::format("v{}", i);
        out.line("const auto {} = {};", name, substitute(node.def().lower.text, names));
        inner[&node.result()] = name;
    }
    out.line("return v{};", c_.step.fused.size() - 1);
}

void LoopCode::emit_epilogue(CxxText& out, std::string_view accumulator, std::string_view full,
                             std::string_view along) const {
    if (c_.step.fused.empty()) {
        out.line("return {};", accumulator);
        return;
    }
    const Type& result = c_.step.outputs.at(0)->type();
    emit_nodes(out, [&](Value& operand, Value& read) {
        if (operand.producer() == c_.step.anchor) return std::string(accumulator);
        bool whole = &operand == &read && operand.type() == result;
        return fmt::format(fmt::runtime(whole ? full : along), find(read)->name);
    });
}

void LoopCode::emit(CxxText& out) const {
    const Type& type = c_.step.outputs.at(0)->type();
    declare_operands(out);
    out.line("{0}* y = f.at<{0}>({1});", cxx_name(type.dtype()), c_.buffer(*c_.step.outputs.at(0)));
    std::string parameters;
    for (size_t i = 0; i < operands_.size(); i++) parameters += fmt::format("{}auto x{}", i ? ", " : "", i);
    out.open("auto expression = []({}) {{", parameters);
    emit_nodes(out, [&](Value&, Value& read) { return fmt::format("x{}", find(read) - operands_.data()); });
    out.close("};");
    if (type.layout().is_plain())
        emit_plain(out);
    else
        emit_blocked(out);
}

void LoopCode::emit_plain(CxxText& out) const {
    const Type& type = c_.step.outputs.at(0)->type();
    std::vector<std::vector<Dim>> strides;
    for (const Operand& o : operands_) strides.push_back(broadcast_strides(o.value->type().shape(), type.shape()));
    MergedShape merged = merge(type.shape(), strides);
    size_t rank = merged.shape.size();
    std::string arguments;
    for (size_t i = 0; i < operands_.size(); i++)
        arguments += fmt::format(", Operand<{}, {}>{{{}, {}}}", rank, cxx_name(operands_[i].value->type().dtype()),
                                 operands_[i].name, sizes_text(c_.plan, merged.strides[i]));
    Dim work = element_count(merged.shape) * Dim(static_cast<int64_t>(c_.step.fused.size()));
    out.line("const i64 shape[{}] = {};", rank, sizes_text(c_.plan, merged.shape));
    out.line("f.parallel_ranges(map_rows(shape), {}, [=](Range rows) {{ map<{}>(shape, rows, y, expression{}); }});",
             size_text(c_.plan, work), rank, arguments);
}

void LoopCode::emit_blocked(CxxText& out) const {
    const Type& type = c_.step.outputs.at(0)->type();
    const Layout& l = type.layout();
    auto size = [&](const Dim& d) { return size_text(c_.plan, d); };
    out.line(
        "const auto l = Blocked{{.channels = {}, .h = {}, .w = {}, .top = {}, .left = {}, .bottom = {}, .right = {}}};",
        size(type.dim(1)), size(type.dim(2)), size(type.dim(3)), size(l.top), size(l.left), size(l.bottom),
        size(l.right));
    std::string arguments;
    for (const Operand& o : operands_) {
        bool is_image = o.value->type().shape() == type.shape();
        bool per_image = !is_image && !o.value->type().layout().is_plain();
        arguments += per_image ? fmt::format(", PerPlane{{{}, l.blocks()}}", o.name)
                               : fmt::format(", {}{{{}}}", is_image ? "Same" : "PerChannel", o.name);
    }
    Dim work = element_count(type.shape()) * Dim(static_cast<int64_t>(c_.step.fused.size()));
    out.line("const i64 n = {};", size(type.dim(0)));
    out.line("f.parallel_ranges(blocked_planes(n, l), {}, [=](Range planes) {{ map_blocked(l, n, planes, y, "
             "expression{}); }});",
             size(work), arguments);
}

} // namespace cuvil
