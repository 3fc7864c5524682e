// A program: functions, the table of weights, and where it came from.
#pragma once

#include "ir/op_node.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

struct Hash128 {
    uint64_t high = 0, low = 0;
    std::string text() const; // 32 hex digits
    bool operator==(const Hash128&) const = default;
};
Hash128 content_hash(std::span<const std::byte> bytes);

// A large constant: named in the program, its bytes stand beside it (row-major, little-endian).
struct Weight {
    std::string name;
    Type type;
    Hash128 hash;
    std::span<const std::byte> bytes;    // empty with `missing` set: a text file named it, nobody has it
    std::shared_ptr<const void> storage; // keeps `bytes` alive: a mapped file or a string
    bool missing = false;
};

// One function. Its body's arguments are the inputs, its terminator's operands the outputs.
class FuncIR {
public:
    explicit FuncIR(std::string name) : name_(std::move(name)), body_(nullptr) {}

    const std::string& name() const { return name_; }
    Region& body() { return body_; }
    const Region& body() const { return body_; }

    struct Port {
        std::string name;          // as in the model
        std::string default_value; // inputs: name of the weight that stands in when the caller gives none
        bool operator==(const Port&) const = default;
    };
    std::vector<Port> inputs;  // beside body().arguments()
    std::vector<Port> outputs; // beside body().terminator()->operands()

private:
    std::string name_;
    Region body_;
};

class Program {
public:
    explicit Program(const OpTable& ops) : ops_(&ops) {}
    Program(Program&&) = default;
    Program& operator=(Program&&) = default;

    const OpTable& ops() const { return *ops_; }
    FuncIR& add_function(std::string name);
    const std::vector<std::unique_ptr<FuncIR>>& functions() const { return functions_; }
    FuncIR& main() const { return *functions_.at(0); }

    // The weights by name, in the order of the names.
    const std::map<std::string, Weight, std::less<>>& weights() const { return weights_; }
    // Adds a weight; a taken name gets a suffix. Returns the name.
    std::string add_weight(std::string name, Type type, std::string bytes);
    std::string add_weight(std::string name, Type type, std::span<const std::byte> bytes,
                           std::shared_ptr<const void> storage);
    // A weight that text names without its bytes.
    void declare_weight(const std::string& name, Type type, Hash128 hash);
    void remove_weight(std::string_view name);

    // A symbol name not used before, made from `hint` ("N", "N_1", ...), always an identifier.
    std::string fresh_symbol(std::string_view hint);
    void reserve_symbol(std::string name) { symbols_.insert(std::move(name)); }

    std::string name;                            // for the manifest: the model file's stem
    std::map<std::string, std::string> metadata; // producer, opset, ...

private:
    const OpTable* ops_;
    std::vector<std::unique_ptr<FuncIR>> functions_;
    std::map<std::string, Weight, std::less<>> weights_;
    std::set<std::string> symbols_;
};

// The bytes of a `constant` or `weight` node; an empty optional if `value` is neither, or its bytes are missing.
std::optional<std::span<const std::byte>> constant_bytes(const Program& program, const Value& value);

// Element `at` of a tensor of i64 or i32, whatever the alignment.
int64_t integer_at(const std::byte* elements, DType dtype, int64_t at);
bool is_constant(const Value& value);

// Structure, attributes, types, names of ports and places are the same; weights compare by hash.
bool operator==(const Program& a, const Program& b);
bool operator==(const FuncIR& a, const FuncIR& b);

} // namespace cuvil
