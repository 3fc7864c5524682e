// Writes a dictionary for libFuzzer: the words of IR text ("ir"), or the operators and attributes of ONNX ("onnx").
#include "import/onnx/onnx.hpp"
#include "ops/op_table.hpp"

#include <cstdio>
#include <set>
#include <string>

namespace {

std::set<std::string> ir_words() {
    std::set<std::string> words = {"func @",
                                   "weight \"",
                                   "program \"",
                                   "metadata \"",
                                   "default \"",
                                   "loc \"",
                                   "return ",
                                   "hash ",
                                   " -> ",
                                   "list<",
                                   "optional<",
                                   "tuple<",
                                   "object<\"",
                                   "none",
                                   "floordiv(",
                                   "min(",
                                   "max(",
                                   "then {",
                                   "else {",
                                   "body(",
                                   "{blocked, halo = [",
                                   "{padded, halo = ["};
    for (const cuvil::OpDef& op : cuvil::builtin_op_table().all()) {
        words.insert(std::string(op.name) + " ");
        for (const cuvil::AttributeDef& attribute : op.attributes) words.insert(std::string(attribute.name) + " = ");
    }
    for (int dtype = 0; dtype <= static_cast<int>(cuvil::DType::C128); dtype++)
        words.insert(": " + std::string(cuvil::name(static_cast<cuvil::DType>(dtype))) + "[");
    return words;
}

std::set<std::string> onnx_words() {
    std::set<std::string> words;
    for (const cuvil::ImportedOp& op : cuvil::onnx_rows()) words.insert(op.name);
    return words;
}

} // namespace

int main(int argc, char** argv) {
    const std::string format = argc == 2 ? argv[1] : "";
    if (format != "ir" && format != "onnx") {
        fprintf(stderr, "usage: write_dictionary ir|onnx\n");
        return 2;
    }
    for (const std::string& word : format == "ir" ? ir_words() : onnx_words()) {
        putchar('"');
        for (const char c : word) {
            if (c == '"' || c == '\\') putchar('\\');
            putchar(c);
        }
        puts("\"");
    }
    return 0;
}
