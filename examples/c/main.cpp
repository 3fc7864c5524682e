// A module in C++: a wrapper that owns what the C interface hands out, and a program that feeds zeros of given shapes.
//
//     example_cpp resnet18.cuvil 1x3x224x224
#include <cuvil/cuvil.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// A value of the module, given back at the end of its life.
class Value {
public:
    Value() = default;
    Value(Value&& other) noexcept : value_(std::exchange(other.value_, {})) {}
    Value& operator=(Value&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    ~Value() { cuvil_value_release(&value_); }

    cuvil_value* get() { return &value_; }
    const cuvil_tensor& tensor() const {
        if (value_.tag != CUVIL_TENSOR) throw std::runtime_error("not a tensor");
        return value_.as.tensor;
    }

private:
    cuvil_value value_{};
};

// A float tensor of the caller.
struct Floats {
    std::vector<int64_t> shape;
    std::vector<float> data;

    cuvil_value value() {
        cuvil_value v{};
        v.tag = CUVIL_TENSOR;
        v.as.tensor = {data.data(), 1, 0, static_cast<int32_t>(shape.size()), {2, 32, 1}, shape.data(), nullptr, 0};
        return v;
    }
};

class Module {
public:
    explicit Module(const std::string& path, int threads = 0) {
        cuvil_module* module = nullptr;
        check(cuvil_load(path.c_str(), threads, &module));
        module_.reset(module);
    }

    std::vector<Value> run(std::vector<Floats>& inputs) {
        if (static_cast<int32_t>(inputs.size()) != cuvil_input_count(module_.get()))
            throw std::runtime_error("the module has " + std::to_string(cuvil_input_count(module_.get())) +
                                     " inputs: give a shape for each");
        std::vector<cuvil_value> in, out(cuvil_output_count(module_.get()));
        for (Floats& input : inputs) in.push_back(input.value());
        check(cuvil_run(module_.get(), in.data(), out.data()));
        std::vector<Value> values(out.size());
        for (size_t i = 0; i < out.size(); i++) *values[i].get() = out[i];
        return values;
    }

    std::string output_name(size_t index) const {
        return cuvil_output_name(module_.get(), static_cast<int32_t>(index));
    }

private:
    static void check(int32_t status) {
        if (status != CUVIL_OK) throw std::runtime_error(cuvil_error_message());
    }
    struct Unload {
        void operator()(cuvil_module* module) const { cuvil_unload(module); }
    };
    std::unique_ptr<cuvil_module, Unload> module_;
};

static Floats zeros(const std::string& text) {
    Floats tensor;
    size_t count = 1;
    std::istringstream sizes(text);
    for (std::string size; std::getline(sizes, size, 'x');) {
        if (size.empty() || size.find_first_not_of("0123456789") != std::string::npos)
            throw std::runtime_error("'" + text + "' is no shape: write 1x3x224x224");
        tensor.shape.push_back(std::stoll(size));
        count *= static_cast<size_t>(tensor.shape.back());
    }
    tensor.data.resize(count);
    return tensor;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: example_cpp MODULE.cuvil [SHAPE]...\n";
        return 2;
    }
    try {
        Module module(argv[1]);
        std::vector<Floats> inputs;
        for (int i = 2; i < argc; i++) inputs.push_back(zeros(argv[i]));
        const std::vector<Value> outputs = module.run(inputs);
        for (size_t i = 0; i < outputs.size(); i++) {
            const cuvil_tensor& tensor = outputs[i].tensor();
            int64_t count = 1;
            std::cout << module.output_name(i) << ":";
            for (int32_t axis = 0; axis < tensor.ndim; axis++) {
                std::cout << (axis ? "x" : " ") << tensor.shape[axis];
                count *= tensor.shape[axis];
            }
            const bool is_float = tensor.dtype.code == 2 && tensor.dtype.bits == 32;
            std::cout << " =";
            for (int64_t k = 0; is_float && k < std::min<int64_t>(count, 8); k++)
                std::cout << ' ' << static_cast<const float*>(tensor.data)[k];
            std::cout << (count > 8 ? " ...\n" : "\n");
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
