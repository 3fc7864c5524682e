// Inputs and outputs of the model.
#include "import/onnx/graph.hpp"

#include "ir/record_check.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace cuvil::onnx {
namespace {

void expect_names(const std::vector<ValueInfoProto>& ports, std::string_view what, const std::string& file,
                  Diagnostics& diag) {
    for (size_t i = 0; i < ports.size(); i++)
        if (ports[i].name.empty())
            diag.error("malformed-model", fmt::format("{} {} of the model has no name", what, i), {file, ""});
}

} // namespace

void GraphImporter::import_inputs(const GraphProto& graph, Scope& scope) {
    std::unordered_map<std::string_view, const TensorProto*> defaults;
    for (const TensorProto& initializer : graph.initializers) defaults.emplace(initializer.name, &initializer);
    std::set<std::string> shaped;
    for (const auto& [name, shape] : options_.input_shapes) shaped.insert(name);
    for (const auto& [name, shape] : options_.dynamic_shapes) shaped.insert(name);
    for (const std::string& name : shaped) {
        auto has_name = [&](const ValueInfoProto& input) { return input.name == name; };
        if (std::none_of(graph.inputs.begin(), graph.inputs.end(), has_name))
            diag_->error("input-shape", fmt::format("the model has no input {}", cuvil::quoted(name)), {file_, ""});
    }
    for (const auto& [symbol, value] : fixed_symbols(graph)) symbols_.emplace(symbol, value);

    expect_names(graph.inputs, "input", file_, *diag_);
    for (const ValueInfoProto& input : graph.inputs) {
        auto initializer = defaults.find(input.name);
        // Before IR version 4 every initialiser had to be an input, too: there it is a constant.
        if (initializer != defaults.end() && model_.ir_version < 4) continue;
        if (scope.values.contains(input.name)) {
            diag_->error("duplicate-name", fmt::format("two inputs have the name {}", quoted(input.name)), {file_, ""});
            continue;
        }
        auto fixed = options_.input_shapes.find(std::string(input.name));
        FuncIR::Port port{std::string(input.name), ""};
        try {
            Type type = input_type(input, fixed == options_.input_shapes.end() ? nullptr : &fixed->second);
            if (initializer != defaults.end()) import_default(input, *initializer->second, port, type);
            Value& value = function_.body().add_argument(std::move(type), port.name);
            check_complexity(value);
            scope.values.emplace(input.name, &value);
            function_.inputs.push_back(std::move(port));
        } catch (const ImportError& error) {
            diag_->error(error.code, error.what(), {file_, ""}).help = error.help;
            scope.values.emplace(input.name, &poison_);
        } catch (const DimOverflow&) {
            diag_->error("too-complex", fmt::format("the size of input {} exceeds 64 bits", quoted(input.name)),
                         {file_, ""});
            scope.values.emplace(input.name, &poison_);
        }
    }
}

// Sizes that the caller fixed through the name they have in the model.
std::map<std::string_view, int64_t> GraphImporter::fixed_symbols(const GraphProto& graph) {
    std::map<std::string_view, int64_t> fixed;
    for (const ValueInfoProto& input : graph.inputs) {
        auto given = options_.input_shapes.find(std::string(input.name));
        if (given == options_.input_shapes.end() || given->second.size() != input.shape.size()) continue;
        for (size_t i = 0; i < input.shape.size(); i++) {
            std::string_view param = input.shape[i].param;
            int64_t size = given->second[i];
            if (param.empty() || size < 0) continue;
            auto [at, is_new] = fixed.emplace(param, size);
            if (!is_new && at->second != size)
                diag_->error("input-shape",
                             fmt::format("size {} is given as {} and as {}", quoted(param), at->second, size),
                             {file_, ""});
        }
    }
    return fixed;
}

Type GraphImporter::input_type(const ValueInfoProto& input, const std::vector<int64_t>* fixed) {
    if (input.kind != "tensor")
        throw ImportError("unsupported-type",
                          fmt::format("input {} is {} {}, only tensors are supported", quoted(input.name),
                                      input.kind == "no type" ? "of" : "a", input.kind));
    std::optional<DType> dtype = dtype_of(input.element_type);
    if (!dtype)
        throw ImportError("unsupported-type", fmt::format("input {} has elements of type {}", quoted(input.name),
                                                          data_type_name(input.element_type)));
    if (auto given = options_.dynamic_shapes.find(std::string(input.name)); given != options_.dynamic_shapes.end())
        return Type::tensor(*dtype, dynamic_shape(input, given->second));
    if (!input.has_shape && !fixed) return Type::tensor_of_unknown_rank(*dtype);
    if (input.has_shape && fixed && fixed->size() != input.shape.size())
        throw ImportError("input-shape", fmt::format("input {} has {} axes, the given shape has {}", quoted(input.name),
                                                     input.shape.size(), fixed->size()));
    Shape shape;
    for (size_t i = 0; i < (input.has_shape ? input.shape.size() : fixed->size()); i++) {
        DimensionProto declared = input.has_shape ? input.shape[i] : DimensionProto{};
        // Some exporters write -1 for a size that is not fixed.
        if (declared.value && *declared.value < 0) declared.value.reset();
        int64_t given = fixed ? (*fixed)[i] : -1;
        if (declared.value && given >= 0 && given != *declared.value)
            throw ImportError("input-shape", fmt::format("axis {} of input {} has size {}, not {}", i,
                                                         quoted(input.name), *declared.value, given));
        if (declared.value)
            shape.emplace_back(*declared.value);
        else if (given >= 0)
            shape.emplace_back(given);
        else if (declared.param.empty())
            shape.push_back(builder_.fresh_dim(fmt::format("{}_{}", input.name, i)));
        else if (auto known = symbols_.find(declared.param); known != symbols_.end())
            shape.push_back(known->second);
        else
            shape.push_back(symbols_.emplace(declared.param, builder_.fresh_dim(declared.param)).first->second);
    }
    return Type::tensor(*dtype, std::move(shape));
}

// The sizes that the caller gave. One that the model fixes may become a symbol, which frees it everywhere; another
// number is a mistake.
Shape GraphImporter::dynamic_shape(const ValueInfoProto& input, const std::vector<std::string>& sizes) {
    if (input.has_shape && sizes.size() != input.shape.size())
        throw ImportError("input-shape", fmt::format("input {} has {} axes, the given shape has {}", quoted(input.name),
                                                     input.shape.size(), sizes.size()));
    Shape shape;
    for (size_t i = 0; i < sizes.size(); i++) {
        const std::string& size = sizes[i];
        int64_t number = 0;
        const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), number);
        if (error == std::errc() && end == size.data() + size.size() && number >= 0) {
            const std::optional<int64_t> declared = input.has_shape ? input.shape[i].value : std::nullopt;
            if (declared && *declared >= 0 && *declared != number)
                throw ImportError("input-shape", fmt::format("axis {} of input {} has size {}, not {}", i,
                                                             quoted(input.name), *declared, number));
            shape.emplace_back(number);
        } else if (auto known = symbols_.find(size); known != symbols_.end()) {
            shape.push_back(known->second);
        } else {
            if (std::string wrong = check_sizes(Shape{Dim::symbol(size)}); !wrong.empty())
                throw ImportError("input-shape", fmt::format("axis {} of input {}: {}", i, quoted(input.name), wrong),
                                  "give a number, or a word for a size that is open");
            shape.push_back(symbols_.emplace(size, builder_.fresh_dim(size)).first->second);
        }
    }
    return shape;
}

void GraphImporter::import_default(const ValueInfoProto& input, const TensorProto& initializer, FuncIR::Port& port,
                                   Type& type) {
    Tensor tensor = tensors_.read(initializer, fmt::format("initializer {}", quoted(initializer.name)));
    if (!type.has_rank()) type = tensor.type;
    bool fits = type.dtype() == tensor.type.dtype() && type.rank() == tensor.type.rank();
    for (int64_t i = 0; fits && i < type.rank(); i++)
        fits = compare(type.dim(i), tensor.type.dim(i)) != Equality::Different;
    if (!fits)
        throw ImportError("contradictory-shapes", fmt::format("input {} is declared as {}, its default value is {}",
                                                              quoted(input.name), type.text(), tensor.type.text()));
    port.default_value = program_.add_weight(std::string(initializer.name), tensor.type, tensor.bytes, tensor.storage);
}

void GraphImporter::import_outputs(const GraphProto& graph, Scope& scope) {
    expect_names(graph.outputs, "output", file_, *diag_);
    Values results;
    for (const ValueInfoProto& output : graph.outputs) {
        Value* const* found = scope.find(output.name);
        if (!found || !*found || *found == &poison_) continue;
        if (!(*found)->type().is_tensor()) {
            diag_->error("unsupported-type", fmt::format("output {} is a sequence or an optional", quoted(output.name)),
                         {file_, ""});
            continue;
        }
        check_declared(output.name, (*found)->type(), {file_, ""}, scope); // an input or initializer
        results.push_back(*found);
        function_.outputs.push_back({std::string(output.name), ""});
    }
    builder_.rewriter().set_location({});
    builder_.rewriter().create("return", results);
    if (diag_->has_errors()) return;
    // Nodes have refused those that they read.
    constexpr std::string_view shapes_help =
        "give its sizes: --input-shape {0}:2x3 or --dynamic {0}:N,3 with as many as "
        "it has, in Python input_shapes or dynamic_shapes";
    for (size_t i = 0; i < function_.inputs.size(); i++)
        if (!function_.body().arguments()[i]->type().has_rank())
            diag_
                ->error("unknown-rank",
                        fmt::format("the shape of input {} is not known", cuvil::quoted(function_.inputs[i].name)),
                        {file_, ""})
                .suggest(fmt::format(shapes_help, function_.inputs[i].name));
}

void GraphImporter::check_declared(std::string_view name, const Type& type, const Location& where, Scope& scope) {
    auto entry = scope.declared.find(name);
    if (entry == scope.declared.end()) return;
    const ValueInfoProto& declared = *entry->second;
    scope.declared.erase(entry);
    if (declared.kind == "no type" || !type.is_tensor()) return;
    const auto& outputs = model_.graph->outputs;
    bool is_output = &declared >= outputs.data() && &declared < outputs.data() + outputs.size();
    std::string what = (is_output ? "output " : "") + quoted(declared.name);
    std::optional<DType> dtype = dtype_of(declared.element_type);
    bool fits = declared.kind == "tensor" && (declared.element_type == 0 || dtype == type.dtype());
    if (!fits) {
        diag_->error("contradictory-types",
                     fmt::format("{} is declared as a {}, but is {}", what,
                                 declared.kind != "tensor" ? std::string(declared.kind)
                                 : dtype                   ? "tensor of " + std::string(cuvil::name(*dtype))
                                                           : "tensor of " + data_type_name(declared.element_type),
                                 type.text()),
                     where);
        return;
    }
    // Shapes that the caller fixed may well differ from what the file says.
    if (!declared.has_shape || !type.has_rank() || !options_.input_shapes.empty() || !options_.dynamic_shapes.empty())
        return;
    fits = declared.shape.size() == type.shape().size();
    std::vector<std::string> sizes;
    for (size_t i = 0; i < declared.shape.size(); i++) {
        const DimensionProto& size = declared.shape[i];
        bool is_fixed = size.value && *size.value >= 0;
        sizes.push_back(is_fixed ? std::to_string(*size.value) : size.param.empty() ? "?" : std::string(size.param));
        if (fits && is_fixed) fits = compare(type.shape()[i], *size.value) != Equality::Different;
    }
    if (!fits)
        diag_->error("contradictory-shapes",
                     fmt::format("{} is declared with shape [{}], but is {}", what, fmt::join(sizes, ","), type.text()),
                     where);
}

} // namespace cuvil::onnx
