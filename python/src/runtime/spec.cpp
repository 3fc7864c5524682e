#include "spec.hpp"

#include "raise.hpp"
#include "runtime/dtypes.hpp"

#include <algorithm>
#include <nanobind/stl/string.h>
#include <nlohmann/json.hpp>

namespace cuvil::python {

std::vector<Spec> read_specs(const char* manifest, const char* key) {
    std::vector<Spec> specs;
    const nlohmann::json json = nlohmann::json::parse(manifest);
    for (const auto& entry : json.at(key)) {
        Spec spec;
        spec.name = nb::steal(PyUnicode_InternFromString(entry.at("name").get<std::string>().c_str()));
        const std::string kind = entry.at("kind").get<std::string>();
        spec.tag = kind == "strings" ? CUVIL_STRINGS : kind == "list" ? CUVIL_LIST : CUVIL_TENSOR;
        spec.dtype_name = entry.value("dtype", "");
        spec.dtype = rt::dtype_of(spec.dtype_name);
        spec.optional = entry.value("optional", false);
        const auto shape = entry.find("shape");
        spec.has_fixed_shape =
            spec.tag == CUVIL_TENSOR && shape != entry.end() && shape->is_array() &&
            std::all_of(shape->begin(), shape->end(), [](const auto& size) { return size.is_number_integer(); });
        if (spec.has_fixed_shape) spec.shape = shape->template get<std::vector<int64_t>>();
        specs.push_back(std::move(spec));
    }
    return specs;
}

std::string list_of(const std::vector<Spec>& specs) {
    std::string names;
    for (const Spec& spec : specs) names += (names.empty() ? "" : ", ") + nb::cast<std::string>(nb::repr(spec.name));
    return names.empty() ? "none" : names;
}

void no_such(const char* what, nb::handle name, const std::vector<Spec>& specs) {
    raise(PyExc_KeyError, "no %s %R; the %ss are %s", what, name.ptr(), what, list_of(specs).c_str());
}

} // namespace cuvil::python
