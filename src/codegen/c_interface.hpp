// A model as C programs that link it see it: NAME.h, and the code behind the functions that it declares.
#pragma once

#include "codegen/cxx_module.hpp"
#include "plan/plan.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

struct CValue {
    std::string identifier;       // a parameter's name: "x"
    std::string type;             // of the elements: "float"; empty for strings
    std::string description;      // "\"x\": f32 [N,3,224,224]", fit for a comment
    std::optional<int64_t> count; // of elements, where all sizes are fixed
};

struct CInterface {
    std::string name;                 // the prefix of all names: "resnet18"
    std::vector<std::string> symbols; // parameters for the sizes that calls choose, first entries of the plan's dims
    std::vector<CValue> inputs, outputs;
    bool has_run; // all values are tensors whose shapes follow from the inputs': NAME_run exists
};

// `text` as an identifier of C and C++ that is no keyword: "resnet18-v1.7" -> "resnet18_v1_7".
std::string c_identifier(std::string_view text);

CInterface c_interface(const Program& program, const Plan& plan, std::string name);

// The text of NAME.h; `version` is Cuvil's.
std::string c_header(const CInterface& c, const Plan& plan, std::string_view version);

// The C++ behind it, which joins lower_to_cxx's sources: it knows the program as cuvil_program_1. The weights get a
// section that takes no room in the object, weights_section(plan).
CXXSource c_entry(const CInterface& c, const Program& program, const Plan& plan);
std::string weights_section(const Plan& plan);

// The host that all statically linked models of a program share.
CXXSource c_host();
// The threads of a program that asks for them: cuvil_threads.
CXXSource c_threads();
// The names that others see of an object with c_entry.
std::vector<std::string> c_names(const CInterface& c);
inline constexpr std::string_view c_host_names = "cuvil_*";

} // namespace cuvil
