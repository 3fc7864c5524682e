// The IR as Python sees it: handles that keep their program alive. Nothing is ever erased from a program that Python
// holds - passes work on copies - so a handle cannot dangle.
#pragma once

#include "ir/program.hpp"

#include <memory>

namespace cuvil::python {

using ProgramPointer = std::shared_ptr<Program>;

struct FunctionHandle {
    ProgramPointer program;
    FuncIR* function;
};

struct NodeHandle {
    ProgramPointer program;
    OpNode* node;
};

struct ValueHandle {
    ProgramPointer program;
    Value* value;
};

// A program of its own with the same content; the bytes of the weights are shared.
Program copy_of(const Program& program);

} // namespace cuvil::python
