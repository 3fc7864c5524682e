// What a program means, node by node: the other side when a compiled module is verified. A program runs as its importer
// leaves it, with the kernels of src/eval and every value in memory of its own; no pass, plan or generated code takes
// part.
#pragma once

#include "ir/program.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cuvil::evaluation {

// A tensor in memory: row-major, without gaps, aligned for its elements.
struct Tensor {
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    const std::byte* data = nullptr;     // never nullptr but for strings
    std::shared_ptr<const void> storage; // keeps `data` alive
    std::shared_ptr<const std::vector<std::string>> strings = {};

    int64_t count() const;
};
// An uninitialised one, and where to write its elements. Throws std::bad_alloc for what is too large.
std::pair<Tensor, std::byte*> new_tensor(DType dtype, std::vector<int64_t> shape);

// The program does not run on these inputs: a size or an index does not fit, or there is no kernel.
class InterpretError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct InterpretOptions {
    // Sees the results of the main function's own nodes, as they come.
    std::function<void(const Value&, const Tensor&)> seen = {};
    const std::atomic<bool>* cancel = nullptr;
};

// The results of the main function. Inputs are in its order; one that has a default may be left out. Throws
// InterpretError, Cancelled, std::bad_alloc.
std::vector<Tensor> interpret(const Program& program, const std::vector<std::optional<Tensor>>& inputs,
                              const InterpretOptions& options = {});

} // namespace cuvil::evaluation
