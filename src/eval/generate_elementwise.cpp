// Writes the sources of src/eval that hold one function for each op with a scalar lowering: the op's expression as a
// lambda over the kernels' vectors, for each dtype that the op accepts. And a header with the activations of recurrent
// layers.
//
//     generate_elementwise ELEMENTWISE.CPP CAST.CPP ACTIVATIONS.HPP
#include "ops/op_table.hpp"
#include "ops/recurrent.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

namespace cuvil {
namespace {

std::string_view types_of(const OperandDef& operand) {
    switch (operand.accepts) {
    case Accepts::Any: return "AllTypes()";
    case Accepts::Floating: return "FloatingTypes()";
    case Accepts::Integer: return "IntegerTypes()";
    case Accepts::Number: return "NumberTypes()";
    case Accepts::Bool: return "Types<bool>()";
    case Accepts::Index: return "Types<i64, i32>()";
    case Accepts::F32: return "Types<f32>()";
    }
    return "";
}

bool is_scalar(const OpDef& op) { return op.lower.kind == Lowering::Scalar; }
// Its expression names the destination type, so it is dispatched over two types.
bool is_cast(const OpDef& op) { return op.find_attribute("to") != nullptr; }

std::string lambda_of(const OpDef& op) {
    std::string parameters;
    for (const OperandDef& operand : op.operands)
        parameters += fmt::format("{}auto {}", parameters.empty() ? "" : ", ", operand.name);
    return fmt::format("[]({}) {{ return {}; }}", parameters, op.lower.text);
}

// Operands that take only bool beside others that do not are conditions: they do not have the type T.
std::string arguments_of(const OpDef& op) {
    std::string arguments;
    for (size_t i = 0; i < op.operands.size(); i++)
        arguments += fmt::format(", elements<{}>(x[{}])", op.operands[i].accepts == Accepts::Bool ? "bool" : "T", i);
    return arguments;
}

std::string function_of(const OpDef& op) {
    return fmt::format("bool {}_(std::span<const Array> x, const Result& y) {{\n"
                       "    return with_type(x.back().type, {}, [&]<class T>() {{\n"
                       "        map_all(y, {}{});\n"
                       "    }});\n"
                       "}}\n\n",
                       op.name, types_of(op.operands.back()), lambda_of(op), arguments_of(op));
}

std::string elementwise_source(const std::vector<OpDef>& ops) {
    std::string functions, rows;
    for (const OpDef& op : ops) {
        if (!is_scalar(op) || is_cast(op)) continue;
        functions += function_of(op);
        rows += fmt::format("    {{\"{0}\", {1}, {0}_}},\n", op.name, op.operands.size());
    }
    return fmt::format("#include \"eval/elementwise.hpp\"\n\n"
                       "namespace cuvil::evaluation {{\n"
                       "namespace {{\n\n"
                       "{}"
                       "struct Row {{\n"
                       "    std::string_view op;\n"
                       "    size_t operands;\n"
                       "    bool (*map)(std::span<const Array>, const Result&);\n"
                       "}};\n\n"
                       "constexpr Row rows[] = {{\n{}}};\n\n"
                       "}} // namespace\n\n"
                       "bool map_elements(std::string_view op, std::span<const Array> x, const Result& y) {{\n"
                       "    for (const Row& row : rows)\n"
                       "        if (row.op == op) return row.operands == x.size() && row.map(x, y);\n"
                       "    return false;\n"
                       "}}\n\n"
                       "}} // namespace cuvil::evaluation\n",
                       functions, rows);
}

std::string cast_source(const OpDef& cast) {
    return fmt::format("#include \"eval/elementwise.hpp\"\n\n"
                       "namespace cuvil::evaluation {{\n\n"
                       "bool cast_elements(const Array& x, const Result& y) {{\n"
                       "    bool known = false;\n"
                       "    with_type(y.type, AllTypes(), [&]<class To>() {{\n"
                       "        known = with_type(x.type, {}, [&]<class T>() {{\n"
                       "            map_all(y, {}, elements<T>(x));\n"
                       "        }});\n"
                       "    }});\n"
                       "    return known;\n"
                       "}}\n\n"
                       "}} // namespace cuvil::evaluation\n",
                       types_of(cast.operands.back()), lambda_of(cast));
}

std::string activations_header() {
    std::string cases;
    for (const RecurrentActivation& activation : recurrent_activations())
        cases +=
            fmt::format("    if (name == \"{}\") return lanes_of<T>({});\n", activation.name, activation.expression);
    return fmt::format("#pragma once\n"
                       "#include \"kernels/math.hpp\"\n"
                       "#include <string_view>\n\n"
                       "namespace cuvil::evaluation {{\n\n"
                       "template <class T>\n"
                       "INLINE lanes_of<T> activate(std::string_view name, lanes_of<T> alpha, lanes_of<T> beta, "
                       "lanes_of<T> v) {{\n{}"
                       "    return v;\n"
                       "}}\n\n"
                       "}} // namespace cuvil::evaluation\n",
                       cases);
}

bool write(const char* path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    return file.flush().good();
}

} // namespace
} // namespace cuvil

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const cuvil::OpDef* cast = cuvil::builtin_op_table().find("cast");
    bool written = cuvil::write(argv[1], cuvil::elementwise_source(cuvil::builtin_ops())) &&
                   cuvil::write(argv[2], cuvil::cast_source(*cast)) &&
                   cuvil::write(argv[3], cuvil::activations_header());
    return written ? 0 : 1;
}
