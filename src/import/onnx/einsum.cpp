// Einsum: sums of products by the names of their axes, as transposes, products of matrices and reductions.
//
// Operands are joined two at a time. Axes that neither the result nor a later operand names are summed as soon as they
// can be: those of one operand by a reduction, those of both by the matrix product. "ij,jk,k->i" becomes
// (ij,jk -> ik), (ik,k -> i).
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace cuvil::onnx {
namespace {

// A letter, or a negative number for an axis of an ellipsis: -1 is its last.
using Label = int;
using Labels = std::vector<Label>;

bool has(const Labels& labels, Label label) { return std::ranges::find(labels, label) != labels.end(); }

struct Term {
    Value* value;
    Labels labels;
};

[[noreturn]] void bad_equation(std::string_view equation) {
    bad_attribute(fmt::format("the equation \"{}\"", equation));
}

// The labels of one side of a comma; an ellipsis stands for `ellipsis` axes.
Labels labels_of(std::string_view text, int64_t ellipsis, std::string_view equation) {
    Labels labels;
    bool has_ellipsis = false;
    for (size_t i = 0; i < text.size(); i++) {
        if (text.substr(i).starts_with("...")) {
            if (std::exchange(has_ellipsis, true)) bad_equation(equation);
            for (int64_t k = ellipsis; k > 0; k--) labels.push_back(static_cast<Label>(-k));
            i += 2;
        } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
            labels.push_back(text[i]);
        } else {
            bad_equation(equation);
        }
    }
    return labels;
}

// Axes with one label are one: elements off their diagonal do not take part.
Term without_repeats(GraphBuilder& build, Term term) {
    for (size_t i = 0; i < term.labels.size(); i++)
        for (size_t k = i + 1; k < term.labels.size(); k++) {
            if (term.labels[k] != term.labels[i]) continue;
            auto rank = static_cast<int64_t>(term.labels.size());
            std::vector<int64_t> perm;
            for (int64_t axis = 0; axis < rank; axis++)
                if (axis != static_cast<int64_t>(i) && axis != static_cast<int64_t>(k)) perm.push_back(axis);
            perm.insert(perm.end(), {static_cast<int64_t>(i), static_cast<int64_t>(k)});
            Value& moved = build.transpose(*term.value, perm);
            Shape shape = moved.type().shape();
            const Dim size = shape[shape.size() - 2];
            build.require_equal(size, shape.back());
            shape.resize(shape.size() - 2);
            shape.push_back(size * size);
            Value& diagonal = build.range(build.scalar(DType::I64, 0), build.dims({size + 1}, {}), size);
            Labels labels;
            for (int64_t axis : perm) labels.push_back(term.labels[static_cast<size_t>(axis)]);
            labels.pop_back();
            return without_repeats(build, {&build.gather(build.reshape(moved, shape), diagonal, rank - 2), labels});
        }
    return term;
}

Term summed(GraphBuilder& build, const Term& term, const Labels& kept) {
    std::vector<int64_t> axes;
    Labels labels;
    for (size_t i = 0; i < term.labels.size(); i++) {
        if (has(kept, term.labels[i]))
            labels.push_back(term.labels[i]);
        else
            axes.push_back(static_cast<int64_t>(i));
    }
    return {&build.reduce("reduce_sum", *term.value, axes, false), labels};
}

// The axes in the order of the labels, of which the term may lack some: those get size 1.
Value& arranged(GraphBuilder& build, const Term& term, const Labels& order) {
    std::vector<int64_t> perm, missing;
    for (size_t i = 0; i < order.size(); i++) {
        auto found = std::ranges::find(term.labels, order[i]);
        if (found == term.labels.end())
            missing.push_back(static_cast<int64_t>(i));
        else
            perm.push_back(found - term.labels.begin());
    }
    return build.unsqueeze(build.transpose(*term.value, perm), missing);
}

Term product(GraphBuilder& build, Term a, Term b, const Labels& needed) {
    Labels of_a = needed, of_b = needed;
    of_a.insert(of_a.end(), b.labels.begin(), b.labels.end());
    of_b.insert(of_b.end(), a.labels.begin(), a.labels.end());
    a = summed(build, a, of_a);
    b = summed(build, b, of_b);
    Labels batch, inner, rows, columns;
    for (Label label : a.labels) (!has(b.labels, label) ? rows : has(needed, label) ? batch : inner).push_back(label);
    for (Label label : b.labels)
        if (!has(a.labels, label)) columns.push_back(label);
    auto joined = [](Labels first, const Labels& second, const Labels& third = {}) {
        first.insert(first.end(), second.begin(), second.end());
        first.insert(first.end(), third.begin(), third.end());
        return first;
    };
    Labels all = joined(batch, rows, columns);
    if (inner.empty()) return {&build.elementwise("mul", {&arranged(build, a, all), &arranged(build, b, all)}), all};

    // Sizes of 1 beside others, which only ellipses bring, are repeated before axes are joined.
    std::map<Label, Dim> sizes;
    for (const Term* term : {&a, &b})
        for (size_t i = 0; i < term->labels.size(); i++) {
            Shape size{term->value->type().shape()[i]};
            auto [known, is_new] = sizes.emplace(term->labels[i], size[0]);
            if (!is_new) known->second = broadcast_shapes({known->second}, size)[0];
        }
    auto shape_of = [&](const Labels& labels) {
        Shape shape;
        for (Label label : labels) shape.push_back(sizes.at(label));
        return shape;
    };
    auto stacked = [&](const Term& term, const Labels& first, const Labels& second) -> Value& {
        Labels order = joined(batch, first, second);
        Value& whole = build.broadcast_to(arranged(build, term, order), shape_of(order));
        return build.reshape(
            whole, {checked_count(shape_of(batch)), checked_count(shape_of(first)), checked_count(shape_of(second))});
    };
    return {&build.reshape(build.matmul(stacked(a, rows, inner), stacked(b, inner, columns)), shape_of(all)), all};
}

Values einsum(Node& node) {
    GraphBuilder& build = node.build;
    std::string equation;
    for (char c : node.text("equation", ""))
        if (c != ' ') equation += c;
    size_t arrow = equation.find("->");
    std::string left = equation.substr(0, arrow);
    std::vector<std::string> parts{""};
    for (char c : left) {
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    if (parts.size() != node.input_count())
        throw ImportError("bad-node", fmt::format("the equation \"{}\" for {} operands", equation, node.input_count()));

    std::vector<Term> terms;
    int64_t longest = 0;
    std::map<Label, int> count;
    for (size_t i = 0; i < parts.size(); i++) {
        bool has_ellipsis = parts[i].find("...") != std::string::npos;
        int64_t ellipsis = has_ellipsis ? node.type(i).rank() - static_cast<int64_t>(parts[i].size()) + 3 : 0;
        Labels labels = labels_of(parts[i], std::max<int64_t>(ellipsis, 0), equation);
        if (static_cast<int64_t>(labels.size()) != node.type(i).rank()) bad_equation(equation);
        longest = std::max(longest, ellipsis);
        for (Label label : labels) count[label]++;
        terms.push_back(without_repeats(build, {&node.input(i), labels}));
    }
    Labels result;
    if (arrow != std::string::npos) {
        result = labels_of(equation.substr(arrow + 2), longest, equation);
    } else {
        for (int64_t k = longest; k > 0; k--) result.push_back(static_cast<Label>(-k));
        for (const auto& [label, times] : count)
            if (label > 0 && times == 1) result.push_back(label);
    }
    for (size_t i = 0; i < result.size(); i++)
        if (!count.contains(result[i]) || std::count(result.begin(), result.end(), result[i]) > 1)
            bad_equation(equation);

    Term all = terms[0];
    for (size_t i = 1; i < terms.size(); i++) {
        Labels needed = result;
        for (size_t k = i + 1; k < terms.size(); k++)
            needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
        all = product(build, all, terms[i], needed);
    }
    return {&arranged(build, summed(build, all, result), result)};
}

const Row rows[] = {
    {"Einsum", 12, newest, einsum, 1, any, "equation", "matmul"},
};

} // namespace

std::span<const Row> einsum_rows() { return rows; }

} // namespace cuvil::onnx
