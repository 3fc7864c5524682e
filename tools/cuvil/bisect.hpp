// The first node of a model whose result is not what the other side says.
#pragma once

#include "other_side.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cuvil::cli {

// A value inside the model on both sides.
struct Probe {
    std::string name; // in the model, else of the node
    std::string type;
    evaluation::Difference difference;
};

// Where errors grow most from a node's inputs to its result, as parts of the largest element of each.
struct Growth {
    std::string node, op;
    double before = 0, after = 0;
};

struct Culprit {
    std::string node, file, op; // its name in the model, and what it is in the IR
    bool has_regions = false;   // an If, Loop or Scan, inside of which the search does not go
    Probe result;
    std::vector<Probe> inputs; // that nodes make
    int compilations = 0;
    // Where the inputs are nearly as far off as the result, so that rounding may have added up.
    std::optional<Growth> growth = {};
};

// Compiles parts of the model that return a single value each, and halves what lies between the inputs and the wrong
// `output`. Nothing where no part is wrong alone, which needs the whole model. Throws Refused, InputError.
std::optional<Culprit> bisect(const std::string& model, const CompileOptions& options, const Feeds& feeds, int threads,
                              const OtherSide& other, size_t output,
                              const std::function<evaluation::Tolerance(const Tensor&)>& tolerance, Console& console);

} // namespace cuvil::cli
