// Attention that exporters write out: its core, with whatever scale and mask stand between the products, then factors
// of its queries and keys. Exporters choose the pieces independently of one another, so the patterns are combined of
// them.
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

#include <cmath>
#include <deque>
#include <optional>
#include <string>

namespace cuvil {
namespace {

// Some nodes of a pattern: `@` stands for what they follow, and the last one makes `result`. Without nodes it is the
// same value.
struct Piece {
    std::string_view name, nodes, result;
};
enum Scaling { Unscaled, Multiplied, Divided };
constexpr Piece scalings[] = {{"", "", ""}, {"_mul", "%t = mul @, %c", "%t"}, {"_div", "%t = div @, %c", "%t"}};
enum Masking { Unmasked, Added, Kept, Dropped };
constexpr Piece maskings[] = {{"", "", ""},
                              {"_add", "%a = add @, %mask", "%a"},
                              {"_where", "%a = where %mask, @, %fill", "%a"},
                              {"_where_not", "%a = where %mask, %fill, @", "%a"}};
// NaN, as in rows without a key, may give way to 0.
constexpr Piece softmaxes[] = {
    {"", "%p = softmax @ {axis = %axis}", "%p"},
    {"_without_nan", "%p = softmax @ {axis = %axis}  %e = equal %p, %p  %n = logical_not %e  %z = where %n, 0, %p",
     "%z"}};
// How queries or keys are moved behind their factor.
constexpr Piece ways[] = {{"", "", ""},
                          {"_transpose", "%1 = transpose @", "%1"},
                          {"_reshape", "%1 = reshape @", "%1"},
                          {"_reshape_transpose", "%1 = reshape @  %2 = transpose %1", "%2"},
                          {"_transpose_reshape", "%1 = transpose @  %2 = reshape %1", "%2"},
                          {"_reshape_transpose_reshape", "%1 = reshape @  %2 = transpose %1  %3 = reshape %2", "%3"},
                          {"_transpose_reshape_transpose_reshape",
                           "%1 = transpose @  %2 = reshape %1  %3 = transpose %2  %4 = reshape %3", "%4"}};

// The finite number that a piece multiplies by.
std::optional<double> number_of(const MatchContext& match, size_t scaling) {
    if (scaling == Unscaled) return 1;
    auto number = only_number(match.program(), *match["c"]);
    if (!number || !std::isfinite(*number) || (scaling == Divided && *number == 0)) return std::nullopt;
    return scaling == Multiplied ? *number : 1 / *number;
}

// The kernel computes in f32, over the last axis, for stacks of equal size or for one matrix of keys and one of values.
bool is_computed(const MatchContext& match) {
    const Type &q = match["q"]->type(), &k = match["k"]->type(), &v = match["v"]->type();
    if (q.dtype() != DType::F32 || k.rank() != v.rank() || (k.rank() != q.rank() && k.rank() != 2)) return false;
    auto axis = match.get<int64_t>("axis");
    return axis == -1 || axis == q.rank() - 1;
}

Value& negated(const MatchResult& match, Value& drop) {
    bool is_broadcast = drop.producer() && drop.producer()->op() == "broadcast";
    Value& keep = match.make("logical_not", {is_broadcast ? drop.producer()->operand(0) : &drop});
    return is_broadcast ? match.make("broadcast", {&keep}, {{"shape", drop.type().shape()}}) : keep;
}

// Where all queries have the same keys, their rows are those of one matrix.
FusedOp attention(const MatchResult& match, Value* mask, Attributes attributes) {
    Value &q = *match["q"], &k = *match["k"], &v = *match["v"];
    if (k.type().rank() == q.type().rank()) return &match.make("attention", {&q, &k, &v, mask}, std::move(attributes));
    Shape leading(q.type().shape().begin(), q.type().shape().end() - 1);
    const Dim rows = element_count(leading);
    auto matrix = [&](Value& x) { return &match.make("reshape", {&x}, {{"shape", Shape{rows, x.type().dim(-1)}}}); };
    Value& y = match.make("attention", {matrix(q), &k, &v, mask ? matrix(*mask) : nullptr}, std::move(attributes));
    return &match.make("reshape", {&y}, {{"shape", match.root().result().type().shape()}});
}

// The operand of the root without its factor: what moves it is made once more for what was multiplied.
Value& without_factor(const MatchResult& match, Value& operand) {
    if (&operand == match["t"]) return *match["x"];
    const OpNode& node = *operand.producer();
    return match.make(node.op(), {&without_factor(match, *node.operand(0))}, node.attributes());
}

class Table {
public:
    Table() {
        for (size_t scaling = 0; scaling < std::size(scalings); scaling++)
            for (size_t masking = 0; masking < std::size(maskings); masking++)
                for (bool no_nan : {false, true}) add_core(scaling, masking, no_nan);
        for (const Piece& way : ways)
            for (size_t scaling : {Multiplied, Divided})
                for (bool of_keys : {false, true}) add_factor(way, scaling, of_keys);
    }

    std::span<const Rule> rules() const { return rules_; }

private:
    static std::string followed(std::string text, std::string& value, const Piece& piece) {
        if (piece.nodes.empty()) return text;
        std::string nodes(piece.nodes);
        nodes.replace(nodes.find('@'), 1, value);
        value = piece.result;
        return text + nodes + "  ";
    }

    void add_core(size_t scaling, size_t masking, bool no_nan) {
        std::string value = "%s", text = "%s = matmul %q, %k  ";
        text = followed(text, value, scalings[scaling]);
        text = followed(text, value, maskings[masking]);
        text = followed(text, value, softmaxes[no_nan]);
        text += "%r = matmul " + value + ", %v";
        bool has_fill = masking == Kept || masking == Dropped;
        auto guard = [=](const MatchContext& match) {
            return is_computed(match) && number_of(match, scaling) &&
                   (!has_fill || only_number(match.program(), *match["fill"]));
        };
        auto action = [=](const MatchResult& match) -> FusedOp {
            Attributes attributes{{"scale", *number_of(match, scaling)}, {"nan_to_zero", no_nan}};
            if (has_fill) attributes["fill"] = *only_number(match.program(), *match["fill"]);
            Value* mask = masking == Unmasked ? nullptr : match["mask"];
            return attention(match, masking == Dropped ? &negated(match, *mask) : mask, std::move(attributes));
        };
        add("attention" + std::string(scalings[scaling].name) + std::string(maskings[masking].name) +
                std::string(softmaxes[no_nan].name),
            text, guard, action);
    }

    void add_factor(const Piece& way, size_t scaling, bool of_keys) {
        std::string value = "%x", text = followed("", value, scalings[scaling]);
        text = followed(text, value, way);
        text += "%r = attention " + (of_keys ? "%q, " + value : value + ", %k") + ", %v, %mask";
        auto guard = [=](const MatchContext& match) { return number_of(match, scaling).has_value(); };
        auto action = [=](const MatchResult& match) -> FusedOp {
            const OpNode& root = match.root();
            Attributes attributes = root.attributes();
            attributes["scale"] = root.get<double>("scale") * *number_of(match, scaling);
            Value& operand = without_factor(match, *root.operand(of_keys ? 1 : 0));
            Value *q = of_keys ? match["q"] : &operand, *k = of_keys ? &operand : match["k"];
            return &match.make("attention", {q, k, match["v"], match["mask"]}, std::move(attributes));
        };
        add(std::string("attention_of") + std::string(scalings[scaling].name) + std::string(way.name) +
                (of_keys ? "_keys" : "_queries"),
            text, guard, action);
    }

    void add(std::string name, std::string pattern, Guard guard, Action action) {
        texts_.push_back(std::move(name));
        std::string_view kept = texts_.back();
        texts_.push_back(std::move(pattern));
        rules_.push_back({kept, texts_.back(), std::move(guard), std::move(action)});
    }

    std::deque<std::string> texts_; // addresses stay
    std::vector<Rule> rules_;
};

} // namespace

std::span<const Rule> attention_rules() {
    static const Table table;
    return table.rules();
}

} // namespace cuvil
