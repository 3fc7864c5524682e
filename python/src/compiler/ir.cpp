// cuvil.ir: programs built by hand, read from text and looked into.
#include "attributes.hpp"
#include "cuvil/compile.hpp"
#include "errors.hpp"
#include "eval/evaluate.hpp"
#include "extension.hpp"
#include "import/importer.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/record_check.hpp"
#include "ir/rewriter.hpp"
#include "ir/verifier.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"
#include "program.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <set>

namespace cuvil::python {

Program copy_of(const Program& program) {
    Diagnostics diag;
    std::optional<Program> copy = parse(print(program), "copy", program.ops(), diag);
    if (!copy) throw InternalError("a program cannot be read back from its text:\n" + diag.render());
    for (const auto& [name, weight] : program.weights()) {
        if (weight.missing) continue;
        copy->remove_weight(name);
        copy->add_weight(name, weight.type, weight.bytes, weight.storage);
    }
    copy->name = program.name;
    copy->metadata = program.metadata;
    return std::move(*copy);
}

namespace {

nb::str text(std::string_view s) { return nb::str(s.data(), s.size()); }

// ---- Building

void reserve_symbols(Program& program, const Type& type) {
    if (!type.has_rank()) return;
    std::set<std::string> symbols;
    for (const Dim& d : type.shape()) d.collect_symbols(symbols);
    for (const std::string& symbol : symbols) program.reserve_symbol(symbol);
}

FunctionHandle add_function(const ProgramPointer& program, const std::string& name) {
    for (const auto& f : program->functions())
        if (f->name() == name) raise(PyExc_ValueError, "there is a function '%s' already", name.c_str());
    return {program, &program->add_function(name)};
}

ValueHandle add_input(const FunctionHandle& f, const std::string& name, const std::string& type) {
    for (const FuncIR::Port& port : f.function->inputs)
        if (port.name == name) raise(PyExc_ValueError, "there is an input '%s' already", name.c_str());
    const Type parsed = type_from(type);
    reserve_symbols(*f.program, parsed);
    f.function->inputs.push_back({name, ""});
    return {f.program, &f.function->body().add_argument(parsed, name)};
}

// A rewriter at the end of the function, before its "return".
Rewriter at_end(const FunctionHandle& f) {
    Rewriter rewriter(*f.program, *f.function);
    if (OpNode* end = f.function->body().terminator()) rewriter.insert_before(*end);
    return rewriter;
}

void add_output(const FunctionHandle& f, const std::string& name, const ValueHandle& value) {
    if (value.program != f.program) raise(PyExc_ValueError, "the value belongs to another program");
    for (const FuncIR::Port& port : f.function->outputs)
        if (port.name == name) raise(PyExc_ValueError, "there is an output '%s' already", name.c_str());
    Rewriter rewriter(*f.program, *f.function);
    OpNode* end = f.function->body().terminator();
    if (!end) end = &rewriter.create("return", {});
    rewriter.add_operand(*end, value.value);
    f.function->outputs.push_back({name, ""});
}

Attributes attributes_from(const OpDef& def, const nb::kwargs& given) {
    Attributes attributes;
    for (const auto [key, value] : given) {
        const std::string name = nb::cast<std::string>(key);
        const AttributeDef* known = def.find_attribute(name);
        if (!known) raise(PyExc_TypeError, "%s has no attribute '%s'", std::string(def.name).c_str(), name.c_str());
        attributes[name] = attribute_from(value, *known);
    }
    return attributes;
}

nb::object results_of(const ProgramPointer& program, const OpNode& node) {
    nb::list results;
    for (const auto& result : node.results()) results.append(ValueHandle{program, result.get()});
    return results.size() == 1 ? nb::object(results[0]) : nb::object(nb::tuple(results));
}

// Checks before it infers: a mistake in Python is no bug of ours.
nb::object add_op(const FunctionHandle& f, const std::string& op, const nb::list& operands, const nb::kwargs& given) {
    const OpDef* def = f.program->ops().find(op);
    if (!def) raise(PyExc_ValueError, "there is no op '%s'; see cuvil.ir.op_table()", op.c_str());
    if (!def->regions.empty() || def->has(terminator) || def->has(source))
        raise(PyExc_ValueError, "%s cannot be made with op(); write it as text for cuvil.ir.parse", op.c_str());
    std::vector<Value*> values;
    for (const nb::handle operand : operands) {
        if (operand.is_none()) {
            values.push_back(nullptr);
            continue;
        }
        ValueHandle value;
        if (!nb::try_cast(operand, value)) raise(PyExc_TypeError, "%R is no value of the function", operand.ptr());
        if (value.program != f.program) raise(PyExc_ValueError, "an operand belongs to another program");
        values.push_back(value.value);
    }
    Rewriter rewriter = at_end(f);
    OpNode& node = rewriter.create_typed(op, std::move(values), attributes_from(*def, given),
                                         std::vector<Type>(def->results.size()));
    std::vector<std::string> wrong = check_against_record(node);
    if (wrong.empty()) {
        try {
            infer(node);
        } catch (const std::runtime_error& error) { // InferenceError, or DimOverflow of a size beyond 64 bits
            wrong.push_back(op + ": " + error.what());
        }
    }
    if (!wrong.empty()) {
        rewriter.erase(node);
        raise(PyExc_ValueError, "%s", wrong[0].c_str());
    }
    return results_of(f.program, node);
}

ValueHandle add_constant(const FunctionHandle& f, nb::handle array, const std::string& name) {
    Constant constant = constant_from(array);
    Rewriter rewriter = at_end(f);
    return {f.program, &rewriter.constant(std::move(constant.type), std::move(constant.bytes), name)};
}

ValueHandle add_weight(const FunctionHandle& f, const std::string& name, nb::handle array) {
    Constant constant = constant_from(array);
    const std::string unique = f.program->add_weight(name, std::move(constant.type), std::move(constant.bytes));
    Rewriter rewriter = at_end(f);
    return {f.program, &rewriter.weight(unique)};
}

// ---- Looking

nb::list nodes_of(const ProgramPointer& program, const Region& region) {
    nb::list nodes;
    for (const auto& node : region.nodes()) nodes.append(NodeHandle{program, node.get()});
    return nodes;
}

nb::list inputs_of(const FunctionHandle& f) {
    nb::list out;
    for (size_t i = 0; i < f.function->inputs.size(); i++)
        out.append(nb::make_tuple(f.function->inputs[i].name,
                                  ValueHandle{f.program, f.function->body().arguments()[i].get()}));
    return out;
}

nb::list outputs_of(const FunctionHandle& f) {
    nb::list out;
    for (size_t i = 0; i < f.function->outputs.size(); i++)
        out.append(nb::make_tuple(f.function->outputs[i].name,
                                  ValueHandle{f.program, f.function->body().terminator()->operand(i)}));
    return out;
}

nb::list operands_of(const NodeHandle& n) {
    nb::list out;
    for (Value* operand : n.node->operands())
        out.append(operand ? nb::cast(ValueHandle{n.program, operand}) : nb::none());
    return out;
}

nb::list result_list(const NodeHandle& n) {
    nb::list out;
    for (const auto& result : n.node->results()) out.append(ValueHandle{n.program, result.get()});
    return out;
}

nb::dict attributes_of(const NodeHandle& n) {
    nb::dict out;
    for (const AttributeDef& def : n.node->def().attributes)
        out[text(def.name)] = attribute_to(n.node->attribute(def.name));
    return out;
}

nb::list regions_of(const NodeHandle& n) {
    nb::list out;
    for (const auto& region : n.node->regions()) out.append(nodes_of(n.program, *region));
    return out;
}

std::optional<std::string> dtype_of(const ValueHandle& v) {
    const Type& type = v.value->type();
    if (!type.is_tensor() && type.kind() != Type::Kind::Scalar) return std::nullopt;
    return std::string(name(type.dtype()));
}

nb::object shape_of(const ValueHandle& v) {
    if (!v.value->type().has_rank()) return nb::none();
    return nb::tuple(attribute_to(v.value->type().shape()));
}

std::optional<NodeHandle> producer_of(const ValueHandle& v) {
    if (!v.value->producer()) return std::nullopt;
    return NodeHandle{v.program, v.value->producer()};
}

nb::list users_of(const ValueHandle& v) {
    nb::list out;
    for (const Use& use : v.value->uses()) out.append(NodeHandle{v.program, use.node});
    return out;
}

// ---- Programs

ProgramPointer parse_text(const std::string& source, const std::string& file) {
    Diagnostics diag;
    std::optional<Program> program = parse(source, file, builtin_op_table(), diag);
    diag.stop_if_errors();
    for (const std::string& broken : verify(*program)) diag.error("invalid-ir", broken, {file, ""});
    diag.stop_if_errors();
    return std::make_shared<Program>(std::move(*program));
}

ProgramPointer import_from(const std::string& path, nb::handle bytes,
                           const std::map<std::string, std::vector<int64_t>>& input_shapes) {
    Source source{.path = path};
    if (!bytes.is_none())
        source.bytes = {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
    CompileOptions options;
    options.input_shapes = input_shapes;
    Diagnostics diag;
    const nb::gil_scoped_release release;
    return std::make_shared<Program>(import_model(source, options, builtin_op_table(), diag));
}

ProgramPointer passed(const Program& program, const std::string& stop_after, const std::vector<std::string>& disabled) {
    CompileOptions options;
    options.stop_after = stop_after;
    options.disabled_passes = disabled;
    Diagnostics diag;
    const nb::gil_scoped_release release;
    Program copy = copy_of(program);
    run_passes(copy, options, evaluate, diag);
    diag.stop_if_errors();
    return std::make_shared<Program>(std::move(copy));
}

// ---- The op table

nb::object tests_of(const OpDef& def) {
    if (!def.tests) return nb::none();
    nb::dict grid;
    nb::list cases, dtypes;
    for (const auto& shapes : def.tests->shapes) {
        nb::list one;
        for (const auto& shape : shapes) one.append(nb::tuple(attribute_to(shape)));
        cases.append(one);
    }
    for (const std::string_view dtype : def.tests->dtypes) dtypes.append(text(dtype));
    grid["shapes"] = cases;
    grid["dtypes"] = dtypes;
    grid["low"] = def.tests->low;
    grid["high"] = def.tests->high;
    return grid;
}

nb::dict record_of(const OpDef& def) {
    nb::list operands, attributes, results;
    for (const OperandDef& operand : def.operands) operands.append(text(operand.name));
    for (const AttributeDef& attribute : def.attributes) attributes.append(text(attribute.name));
    for (const std::string_view result : def.results) results.append(text(result));
    nb::dict record;
    record["name"] = text(def.name);
    record["summary"] = text(def.summary);
    record["operands"] = operands;
    record["attributes"] = attributes;
    record["results"] = results;
    record["reference"] = text(def.reference);
    record["tests"] = tests_of(def);
    return record;
}

nb::list op_table() {
    nb::list records;
    for (const OpDef& def : builtin_op_table().all()) records.append(record_of(def));
    return records;
}

} // namespace

void bind_ir(nb::module_& m) {
    nb::class_<ValueHandle>(m, "Value", "A value of a function: an input, or a result of a node.")
        .def_prop_ro("name", [](const ValueHandle& v) { return v.value->name(); })
        .def_prop_ro(
            "type", [](const ValueHandle& v) { return v.value->type().text(); }, "As in IR text: \"f32[N,4]\".")
        .def_prop_ro("dtype", dtype_of, "\"f32\"; None for what has no dtype.")
        .def_prop_ro("shape", shape_of, "Sizes, as int or text; None where not even the rank is known.")
        .def_prop_ro("producer", producer_of, "The node that makes it; None for an input.")
        .def_prop_ro("users", users_of, "The nodes that use it, once for each use.")
        .def(
            "__eq__", [](const ValueHandle& a, const ValueHandle& b) { return a.value == b.value; }, nb::is_operator())
        .def("__hash__", [](const ValueHandle& v) { return std::hash<Value*>()(v.value); })
        .def("__repr__",
             [](const ValueHandle& v) { return "<Value %" + v.value->name() + ": " + v.value->type().text() + ">"; });

    nb::class_<NodeHandle>(m, "OpNode", "One operation.")
        .def_prop_ro("op", [](const NodeHandle& n) { return text(n.node->op()); })
        .def_prop_ro("operands", operands_of, "Values, None where an optional one was left out.")
        .def_prop_ro("results", result_list)
        .def_prop_ro("attributes", attributes_of, "By name, defaults included.")
        .def_prop_ro(
            "location",
            [](const NodeHandle& n) { return nb::make_tuple(n.node->location().file, n.node->location().name); },
            "The place in the model: (file, node).")
        .def_prop_ro("regions", regions_of, "The nodes of each region of control flow.")
        .def(
            "__eq__", [](const NodeHandle& a, const NodeHandle& b) { return a.node == b.node; }, nb::is_operator())
        .def("__hash__", [](const NodeHandle& n) { return std::hash<OpNode*>()(n.node); })
        .def("__repr__", [](const NodeHandle& n) { return "<OpNode " + print(*n.node) + ">"; });

    nb::class_<FunctionHandle>(m, "FuncIR", "One function of a program; iterating gives its nodes in order.")
        .def_prop_ro("name", [](const FunctionHandle& f) { return f.function->name(); })
        .def_prop_ro("inputs", inputs_of, "(name, Value) of each.")
        .def_prop_ro("outputs", outputs_of, "(name, Value) of each.")
        .def_prop_ro("nodes", [](const FunctionHandle& f) { return nodes_of(f.program, f.function->body()); })
        .def("__iter__", [](const FunctionHandle& f) { return nb::iter(nodes_of(f.program, f.function->body())); })
        .def("__len__", [](const FunctionHandle& f) { return f.function->body().nodes().size(); })
        .def("__str__", [](const FunctionHandle& f) { return print(*f.function); })
        .def("__repr__", [](const FunctionHandle& f) { return "<FuncIR " + f.function->name() + ">"; })
        .def("input", add_input, nb::arg("name"), nb::arg("type"), "Adds an input of a type such as \"f32[N,4]\".")
        .def("output", add_output, nb::arg("name"), nb::arg("value"), "Makes a value the next output.")
        .def("op", add_op, nb::arg("op"), nb::arg("operands"), nb::arg("attributes"),
             "Adds a node; returns its result, or a tuple of them. None stands for an operand that is left out,\n"
             "attributes are keyword arguments.")
        .def("constant", add_constant, nb::arg("array"), nb::arg("name") = "constant",
             "Adds an array that is known now.")
        .def("weight", add_weight, nb::arg("name"), nb::arg("array"), "Adds an array to the table of weights.");

    nb::class_<Program>(m, "Program", "Functions and the table of weights; str() gives its text.")
        .def(
            "__init__",
            [](Program* place, const std::string& name) { (new (place) Program(builtin_op_table()))->name = name; },
            nb::arg("name") = "model")
        .def_rw("name", &Program::name)
        .def_prop_ro("metadata", [](const Program& p) { return p.metadata; })
        .def("function", add_function, nb::arg("name"), "Adds an empty function.")
        .def_prop_ro("functions",
                     [](const ProgramPointer& p) {
                         std::vector<FunctionHandle> out;
                         for (const auto& f : p->functions()) out.push_back({p, f.get()});
                         return out;
                     })
        .def_prop_ro(
            "main",
            [](const ProgramPointer& p) {
                if (p->functions().empty()) raise(PyExc_ValueError, "the program has no function");
                return FunctionHandle{p, &p->main()};
            },
            "The first function, which a module runs.")
        .def_prop_ro(
            "weights",
            [](const Program& p) {
                nb::dict out;
                for (const auto& [name, weight] : p.weights()) out[text(name)] = weight.type.text();
                return out;
            },
            "The type of each weight by name.")
        .def("verify", verify, "What is broken, as sentences; empty when nothing is.")
        .def(
            "__eq__", [](const Program& a, const Program& b) { return a == b; }, nb::is_operator())
        .def("__str__", [](const Program& p) { return print(p); })
        .def("__repr__", [](const Program& p) { return "<Program '" + p.name + "'>"; });

    m.def("parse", parse_text, nb::arg("text"), nb::arg("file"));
    m.def("import_model", import_from, nb::arg("path"), nb::arg("bytes").none(), nb::arg("input_shapes"));
    m.def("run_passes", passed, nb::arg("program"), nb::arg("stop_after"), nb::arg("disabled_passes"));
    m.def("op_table", op_table);
}

} // namespace cuvil::python
