#include "eval/interpret.hpp"

#include "eval/compute.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <unordered_map>

namespace cuvil::evaluation {

int64_t Tensor::count() const {
    int64_t product = 1;
    for (int64_t size : shape) product *= size;
    return product;
}

std::pair<Tensor, std::byte*> new_tensor(DType dtype, std::vector<int64_t> shape) {
    auto bytes = static_cast<int64_t>(size_of(dtype));
    for (int64_t size : shape)
        if (__builtin_mul_overflow(bytes, size, &bytes)) throw std::bad_alloc();
    // What a kernel may read beyond the last element of an empty tensor is there, too.
    std::shared_ptr<uint64_t[]> words(new uint64_t[static_cast<size_t>(bytes) / sizeof(uint64_t) + 1]);
    auto* data = reinterpret_cast<std::byte*>(words.get());
    return {Tensor{dtype, std::move(shape), data, std::move(words)}, data};
}

namespace {

using Ints = std::vector<int64_t>;

class Interpreter {
public:
    Interpreter(const Program& program, const InterpretOptions& options) : program_(program), options_(options) {}

    std::vector<Tensor> run(const std::vector<std::optional<Tensor>>& inputs) {
        const FuncIR& main = program_.main();
        const auto& arguments = main.body().arguments();
        std::vector<Tensor> given;
        for (size_t i = 0; i < arguments.size(); i++) {
            if (i < inputs.size() && inputs[i])
                given.push_back(*inputs[i]);
            else
                given.push_back(weight(main.inputs.at(i).default_value, arguments[i]->type()));
        }
        for (size_t i = 0; i < arguments.size(); i++) bind(*arguments[i], given[i]);
        for (size_t i = 0; i < arguments.size(); i++)
            check_input(main.inputs.at(i).name, arguments[i]->type(), given[i]);
        return run_region(main.body(), given);
    }

private:
    [[noreturn]] static void fail(const OpNode& node, const std::string& message) {
        throw InterpretError(fmt::format(
            "{}: {}", node.location().name.empty() ? std::string(node.op()) : node.location().name, message));
    }

    void check_input(const std::string& name, const Type& type, const Tensor& given) const {
        bool fits = type.has_rank() && type.dtype() == given.dtype && type.shape().size() == given.shape.size();
        for (size_t i = 0; fits && i < given.shape.size(); i++)
            fits = value_of(type.shape()[i], symbols_) == given.shape[i];
        if (!fits) throw InterpretError(fmt::format("input '{}' does not have the type {}", name, type.text()));
    }

    // ---- Regions

    // Values of a region that nothing needs any longer behind one of its nodes.
    using Dead = std::unordered_map<const OpNode*, std::vector<const Value*>>;

    const Dead& dead_in(const Region& region) {
        auto [found, is_new] = dead_.try_emplace(&region);
        if (!is_new) return found->second;
        std::unordered_map<const OpNode*, size_t> order;
        for (const auto& node : region.nodes()) order.emplace(node.get(), order.size());
        auto add = [&](const Value& value, const OpNode* last) {
            for (const Use& use : value.uses()) {
                const OpNode* user = use.node;
                while (user->parent() != &region) user = user->parent()->parent();
                if (!last || order.at(user) > order.at(last)) last = user;
            }
            if (last) found->second[last].push_back(&value);
        };
        for (const auto& argument : region.arguments()) add(*argument, nullptr);
        for (const auto& node : region.nodes())
            for (const auto& result : node->results()) add(*result, node.get());
        return found->second;
    }

    std::vector<Tensor> run_region(const Region& region, const std::vector<Tensor>& arguments) {
        for (size_t i = 0; i < arguments.size(); i++) put(*region.arguments()[i], arguments[i]);
        const Dead& dead = dead_in(region);
        std::vector<Tensor> results;
        for (const auto& node : region.nodes()) {
            if (options_.cancel && options_.cancel->load(std::memory_order_relaxed)) throw Cancelled();
            if (node->def().has(terminator))
                for (const Value* value : node->operands()) results.push_back(get(*value));
            else
                run(*node);
            if (auto found = dead.find(node.get()); found != dead.end())
                for (const Value* value : found->second) values_.erase(value);
        }
        for (const auto& argument : region.arguments()) values_.erase(argument.get());
        return results;
    }

    const Tensor& get(const Value& value) const { return values_.at(&value); }

    void put(const Value& value, Tensor tensor) {
        bind(value, tensor);
        if (options_.seen && value.producer() && !value.producer()->parent()->parent()) options_.seen(value, tensor);
        values_[&value] = std::move(tensor);
    }

    // Symbols that stand alone in the type of a value are its sizes.
    void bind(const Value& value, const Tensor& tensor) {
        if (!value.type().has_rank()) return;
        const Shape& shape = value.type().shape();
        for (size_t i = 0; i < std::min(shape.size(), tensor.shape.size()); i++)
            if (auto symbol = shape[i].as_symbol()) symbols_[*symbol] = tensor.shape[i];
    }

    // ---- Nodes

    void run(const OpNode& node) {
        std::string_view op = node.op();
        if (op == "list") return; // the importer has taken it apart
        if (op == "constant" || op == "weight") return put(node.result(), constant(node));
        if (op == "identity") return put(node.result(), get(*node.operand(0)));
        if (op == "list") return; // what importers left of it: nothing reads it
        if (op == "reshape") return reshape(node);
        if (op == "read_size") return read_size(node);
        if (op == "require") return require(node);
        if (op == "if") return run_if(node);
        if (op == "loop") return run_loop(node);
        if (op == "nonzero") symbols_[node.get<std::string>("count")] = nonzero_count(array(get(*node.operand(0))));
        compute(node);
    }

    static Array array(const Tensor& tensor) {
        return {cxx_name(tensor.dtype), size_of(tensor.dtype), tensor.shape, tensor.data};
    }

    void compute(const OpNode& node) {
        std::vector<Array> operands;
        bool has_strings = false;
        for (const Value* operand : node.operands()) {
            operands.push_back(operand ? array(get(*operand)) : Array{});
            has_strings = has_strings || (operand && get(*operand).dtype == DType::String);
        }
        std::vector<Tensor> tensors;
        std::vector<Result> results;
        for (const auto& value : node.results()) {
            if (!value->type().has_rank()) fail(node, fmt::format("the interpreter makes no {}", value->type().text()));
            auto [tensor, data] = new_tensor(value->type().dtype(), shape_of(node, *value));
            results.push_back({cxx_name(tensor.dtype), size_of(tensor.dtype), tensor.shape, data});
            tensors.push_back(std::move(tensor));
        }
        auto row = row_of(node.def());
        if (!row || has_strings) fail(node, fmt::format("the interpreter has no kernel for {}", node.op()));
        if (!row->compute({node, operands, results, symbols_}))
            fail(node, fmt::format("{} does not take these elements, sizes or indices", node.op()));
        for (size_t i = 0; i < tensors.size(); i++) put(node.result(i), std::move(tensors[i]));
    }

    Ints shape_of(const OpNode& node, const Value& value) const {
        auto shape = values_of(value.type().shape(), symbols_);
        if (!shape) fail(node, fmt::format("a size of {} is not known", value.type().text()));
        for (int64_t size : *shape)
            if (size < 0) fail(node, fmt::format("a tensor would have the size {}", size));
        return *shape;
    }

    Tensor weight(const std::string& name, const Type& type) const {
        auto found = program_.weights().find(name);
        if (found == program_.weights().end() || found->second.missing)
            throw InterpretError(fmt::format("the elements of weight {} are not there", quoted(name)));
        return tensor_of(found->second.bytes, type);
    }

    Tensor constant(const OpNode& node) const {
        auto bytes = constant_bytes(program_, node.result());
        if (!bytes) fail(node, "the elements of a weight are not there");
        if (node.result().type().dtype() == DType::String) fail(node, "strings only pass through");
        return tensor_of(*bytes, node.result().type());
    }

    // The program outlives the tensor. Weights lie in a model file as its format has them.
    static Tensor tensor_of(std::span<const std::byte> bytes, const Type& type) {
        Ints shape = *values_of(type.shape(), {});
        bool is_aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) == 0;
        if (is_aligned && !bytes.empty() && type.dtype() != DType::Bool)
            return {type.dtype(), std::move(shape), bytes.data(), nullptr};
        auto [tensor, data] = new_tensor(type.dtype(), std::move(shape));
        if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
        if (type.dtype() == DType::Bool)
            for (size_t i = 0; i < bytes.size(); i++) data[i] = std::byte{bytes[i] != std::byte{0}};
        return tensor;
    }

    void reshape(const OpNode& node) {
        Tensor tensor = get(*node.operand(0));
        int64_t count = tensor.count();
        tensor.shape = shape_of(node, node.result());
        if (tensor.count() != count)
            fail(node, fmt::format("{} elements do not fit {}", count, node.result().type().text()));
        put(node.result(), std::move(tensor));
    }

    static int64_t integer(const Tensor& tensor, int64_t at) { return integer_at(tensor.data, tensor.dtype, at); }

    static bool truth(const Tensor& tensor) { return *tensor.data != std::byte{0}; }

    void read_size(const OpNode& node) {
        int64_t value = integer(get(*node.operand(0)), node.get<int64_t>("at"));
        // The lowest integer has no opposite.
        if (node.get<bool>("negated")) value = value < 0 ? -std::max(value, -std::numeric_limits<int64_t>::max()) : 0;
        symbols_[node.get<std::string>("count")] = std::max<int64_t>(value, 0);
    }

    void require(const OpNode& node) const {
        const Shape &left = node.get<Shape>("left"), &right = node.get<Shape>("right");
        for (size_t i = 0; i < left.size(); i++) {
            auto a = value_of(left[i], symbols_), b = value_of(right[i], symbols_);
            if (a && b && *a == *b) continue;
            std::string message = node.get<std::string>("message");
            auto fill = [&](const std::string& mark, const std::optional<int64_t>& size) {
                for (size_t at; (at = message.find(mark)) != std::string::npos;)
                    message.replace(at, mark.size(), size ? std::to_string(*size) : "more than 64 bits hold");
            };
            fill("{0}", a);
            fill("{1}", b);
            fail(node, message);
        }
    }

    void run_if(const OpNode& node) {
        std::vector<Tensor> results = run_region(node.region(truth(get(*node.operand(0))) ? 0 : 1), {});
        for (size_t i = 0; i < results.size(); i++) put(node.result(i), std::move(results[i]));
    }

    void run_loop(const OpNode& node) {
        int64_t trips = node.operand(0) ? integer(get(*node.operand(0)), 0) : std::numeric_limits<int64_t>::max();
        bool going = !node.operand(1) || truth(get(*node.operand(1)));
        std::vector<Tensor> carried;
        for (size_t i = 2; i < node.operands().size(); i++) carried.push_back(get(*node.operand(i)));
        std::vector<std::vector<Tensor>> stacks(node.results().size() - carried.size());
        int64_t turn = 0;
        for (; turn < trips && going; turn++) {
            auto [number, number_data] = new_tensor(DType::I64, {});
            auto [condition, condition_data] = new_tensor(DType::Bool, {});
            std::memcpy(number_data, &turn, sizeof turn);
            *condition_data = std::byte{going};
            std::vector<Tensor> arguments = {number, condition};
            arguments.insert(arguments.end(), carried.begin(), carried.end());
            std::vector<Tensor> returned = run_region(node.region(0), arguments);
            going = truth(returned[0]);
            for (size_t i = 0; i < carried.size(); i++) carried[i] = std::move(returned[1 + i]);
            for (size_t i = 0; i < stacks.size(); i++) stacks[i].push_back(std::move(returned[1 + carried.size() + i]));
        }
        symbols_[node.get<std::string>("count")] = turn;
        for (size_t i = 0; i < carried.size(); i++) put(node.result(i), std::move(carried[i]));
        for (size_t i = 0; i < stacks.size(); i++) {
            const Value& result = node.result(node.results().size() - stacks.size() + i);
            put(result, stacked(node, stacks[i], result.type()));
        }
    }

    // Sizes of slices that no turn showed are 0.
    Tensor stacked(const OpNode& node, const std::vector<Tensor>& slices, const Type& type) const {
        Ints shape = {static_cast<int64_t>(slices.size())};
        for (size_t i = 1; i < type.shape().size(); i++)
            shape.push_back(slices.empty() ? value_of(type.shape()[i], symbols_).value_or(0) : slices[0].shape[i - 1]);
        auto [tensor, data] = new_tensor(type.dtype(), shape);
        for (const Tensor& slice : slices) {
            if (slice.shape != slices[0].shape) fail(node, "the turns of the loop stack slices of different sizes");
            size_t bytes = static_cast<size_t>(slice.count()) * size_of(slice.dtype);
            std::memcpy(data, slice.data, bytes);
            data += bytes;
        }
        return tensor;
    }

    const Program& program_;
    const InterpretOptions& options_;
    Symbols symbols_;
    std::unordered_map<const Value*, Tensor> values_;
    std::unordered_map<const Region*, Dead> dead_;
};

} // namespace

std::vector<Tensor> interpret(const Program& program, const std::vector<std::optional<Tensor>>& inputs,
                              const InterpretOptions& options) {
    return Interpreter(program, options).run(inputs);
}

} // namespace cuvil::evaluation
