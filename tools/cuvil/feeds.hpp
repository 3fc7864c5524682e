// Inputs of a run from the command line: "x=@x.npy", "x=random:1x3", "x=zeros", "x=1,2,3", "x=[[1,2],[3,4]]".
#pragma once

#include "cuvil/cuvil.h"
#include "npy.hpp"
#include "sizes.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace cuvil::cli {

// An input or output as the manifest declares it.
struct Port {
    std::string name;
    std::string kind;  // "tensor", "strings", "list"
    std::string dtype; // "f32"
    bool any_rank = false;
    std::vector<std::string> shape; // "64", "N"
    bool optional = false;

    // "x: f32[N,64]"
    std::string text() const;
};
std::vector<Port> ports(const nlohmann::json& list);

// An input's array and its view for the loader. Stays where it is: the view points into it.
class Feed {
public:
    explicit Feed(Array array);
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;
    const cuvil_value& value() const { return value_; }

private:
    Array array_;
    std::vector<int64_t> offsets_;
    std::string text_;
    cuvil_value value_{};
};

// How inputs are filled that nobody gives element by element.
struct Filling {
    Sizes sizes = {};    // of open sizes, from --size
    uint64_t stream = 0; // random numbers of another stream are others
};

// The array that `text` (what stands behind the "=") describes for `port`. Random numbers are the same in every run:
// from -1 to 1 for floating inputs, 0 to 9 for integers. Throws UsageError for what cannot be read, InputError for bad
// files.
Array parse_feed(const std::string& text, const Port& port, const Filling& filling = {});

} // namespace cuvil::cli
