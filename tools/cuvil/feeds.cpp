#include "feeds.hpp"

#include "compile_options.hpp"
#include "console.hpp"
#include "npz.hpp"
#include "runtime/dtypes.hpp"
#include "support/words.hpp"
#include "text_of_value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <system_error>

namespace cuvil::cli {
namespace {

using Json = nlohmann::json;

cuvil_dtype dtype_of(const Port& port) {
    const cuvil_dtype dtype = rt::dtype_of(port.dtype);
    const bool is_complex = dtype.code == 5;
    if (dtype.bits == 0 || is_complex)
        throw UsageError(fmt::format("{}: give values of this type as @FILE.npy", port.text()));
    return dtype;
}

[[noreturn]] void bad_value(const Port& port, std::string_view value, std::string_view help = "") {
    throw UsageError(fmt::format("{}: '{}' is no {}{}", port.text(), value, port.dtype, help));
}

constexpr std::string_view forms =
    "; a value is @FILE.npy, random:SIZES, zeros:SIZES, ones:SIZES, 1,2,3 or [[1,2],[3,4]]";

// The bits of a float as f16 or bf16, rounded to even.
uint16_t narrow(double value, bool is_bf16) {
    const float f = static_cast<float>(value);
    if (!is_bf16) {
        const _Float16 half = static_cast<_Float16>(f);
        uint16_t bits;
        std::memcpy(&bits, &half, sizeof bits);
        return bits;
    }
    uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    if (std::isnan(f)) return 0x7fc0;
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T> void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Appends one number in the input's dtype.
class Elements {
public:
    explicit Elements(const Port& port) : port_(port), dtype_(dtype_of(port)) {}
    cuvil_dtype dtype() const { return dtype_; }
    std::string take() { return std::move(bytes_); }

    void add(double value) {
        switch (dtype_.code) {
        case 2:
            if (dtype_.bits == 64) return append(bytes_, value);
            if (dtype_.bits == 32) return append(bytes_, static_cast<float>(value));
            return append(bytes_, narrow(value, false));
        case 4: return append(bytes_, narrow(value, true));
        case 6: return append(bytes_, static_cast<uint8_t>(value != 0));
        default: add_integer(static_cast<uint64_t>(static_cast<int64_t>(value)), false);
        }
    }

    void add_word(std::string_view word) {
        const std::string_view digits = word.starts_with('+') ? word.substr(1) : word;
        const char *begin = digits.data(), *end = begin + digits.size();
        if (dtype_.code == 6 && (word == "true" || word == "false")) return add(word == "true");
        if (dtype_.code <= 1) {
            int64_t negative = 0;
            uint64_t positive = 0;
            const bool is_negative = digits.starts_with('-');
            const auto [next, error] =
                is_negative ? std::from_chars(begin, end, negative) : std::from_chars(begin, end, positive);
            if (error != std::errc() || next != end) bad_value(port_, word, forms);
            return add_integer(is_negative ? static_cast<uint64_t>(negative) : positive, is_negative);
        }
        double value = 0;
        const auto [next, error] = std::from_chars(begin, end, value);
        if (error != std::errc() || next != end) bad_value(port_, word, forms);
        add(value);
    }

private:
    // The value must fit: nothing wraps silently at the door.
    void add_integer(uint64_t value, bool is_negative) {
        const bool is_signed = dtype_.code == 0;
        const int bits = dtype_.bits;
        const uint64_t most = is_signed ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0} >> (64 - bits);
        const bool fits =
            is_negative ? is_signed && static_cast<int64_t>(value) >= -static_cast<int64_t>(most) - 1 : value <= most;
        if (!fits) bad_value(port_, is_negative ? std::to_string(static_cast<int64_t>(value)) : std::to_string(value));
        bytes_.append(reinterpret_cast<const char*>(&value), static_cast<size_t>(bits) / 8);
    }

    const Port& port_;
    cuvil_dtype dtype_;
    std::string bytes_;
};

// How many elements; what the machine's memory cannot hold is refused before the system has to.
int64_t count_of(const std::vector<int64_t>& shape, const Port& port, cuvil_dtype dtype) {
    const int64_t most = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (dtype.bits / 8);
    int64_t count = 1;
    for (const int64_t size : shape)
        if (__builtin_mul_overflow(count, size, &count) || count > most)
            throw UsageError(fmt::format("{}: an array of this shape does not fit into memory", port.text()));
    return count;
}

std::optional<int64_t> fixed(const std::string& size) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
    if (error != std::errc() || end != size.data() + size.size()) return std::nullopt;
    return value;
}

Array array_of(cuvil_dtype dtype, std::vector<int64_t> shape, std::string bytes) {
    Array array;
    array.dtype = dtype;
    array.strides = dense_strides(shape);
    array.shape = std::move(shape);
    array.bytes = std::move(bytes);
    return array;
}

// Says how to fill an input whose sizes are not all known.
[[noreturn]] void sizes_are_open(std::string_view how, const Port& port, Sizes sizes) {
    std::vector<std::string> options, shape;
    std::set<std::string> open = open_sizes(port.shape);
    std::erase_if(open, [&](const std::string& name) { return sizes.contains(name); });
    for (const std::string& name : open) {
        options.push_back(fmt::format("--size {}=1", name));
        sizes[name] = 1;
    }
    for (const std::string& size : port.shape)
        shape.push_back(std::to_string(std::max<int64_t>(value_of(size, sizes).value_or(1), 0)));
    const bool is_one = open.size() == 1;
    throw UsageError(fmt::format("{}: the size{} {} {} open; give {} as {}, or the shape as --input {}={}:{}",
                                 port.text(), is_one ? "" : "s", fmt::join(open, ", "), is_one ? "is" : "are",
                                 is_one ? "it" : "them", fmt::join(options, " "), port.name, how,
                                 fmt::join(shape, "x")));
}

// The shape for "zeros", "random:1x3": what is written, else what is declared.
std::vector<int64_t> filled_shape(const std::string& text, size_t colon, const Port& port, const Sizes& sizes) {
    if (colon != std::string::npos) return parse_sizes(text.substr(colon + 1));
    if (port.any_rank)
        throw UsageError(fmt::format("{0}: give a shape, as in --input {1}={2}:1x3", port.text(), port.name, text));
    std::vector<int64_t> shape;
    for (const std::string& size : port.shape) {
        const std::optional<int64_t> value = value_of(size, sizes);
        if (!value) sizes_are_open(text, port, sizes);
        if (*value < 0)
            throw UsageError(fmt::format("{}: the size {} would be {}; give other sizes", port.text(), size, *value));
        shape.push_back(*value);
    }
    return shape;
}

// Uniform bits: a Weyl sequence through the finaliser of MurmurHash3, which is called splitmix64.
class Random {
public:
    explicit Random(uint64_t stream) : state_(stream * 0xd1342543de82ef95) {}
    uint64_t next() {
        state_ += 0x9e3779b97f4a7c15;
        uint64_t z = state_;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
    uint64_t state_;
};

Array filled(std::string_view how, std::vector<int64_t> shape, const Port& port, uint64_t stream) {
    Elements elements(port);
    Random random(stream);
    const int64_t count = count_of(shape, port, elements.dtype());
    for (int64_t i = 0; i < count; i++) {
        if (how == "zeros")
            elements.add(0);
        else if (how == "ones")
            elements.add(1);
        else if (elements.dtype().code == 2 || elements.dtype().code == 4)
            elements.add(2 * random.unit() - 1);
        else
            elements.add(static_cast<double>(random.next() % (elements.dtype().code == 6 ? 2 : 10)));
    }
    return array_of(elements.dtype(), std::move(shape), elements.take());
}

// "1,2,3" has no shape of its own: the declared one, with at most one open size, says how it is meant.
std::vector<int64_t> shape_of_list(int64_t count, const Port& port) {
    if (port.any_rank) return {count};
    int64_t known = 1;
    std::optional<size_t> open;
    std::vector<int64_t> shape(port.shape.size());
    for (size_t i = 0; i < port.shape.size(); i++) {
        if (const std::optional<int64_t> size = fixed(port.shape[i])) {
            shape[i] = *size;
            known *= *size;
        } else if (open) {
            throw UsageError(fmt::format("{}: nest the values, as in [[1,2],[3,4]]", port.text()));
        } else {
            open = i;
        }
    }
    if (open && known > 0 && count % known == 0) {
        shape[*open] = count / known;
        known = count;
    }
    if (known != count)
        throw UsageError(
            fmt::format("{}: {} cannot fill this shape", port.text(), counted(static_cast<size_t>(count), "value")));
    return shape;
}

Array listed(std::string_view text, const Port& port) {
    std::vector<std::string> words;
    while (true) {
        const size_t comma = text.find(',');
        std::string_view word = text.substr(0, comma);
        while (word.starts_with(' ')) word.remove_prefix(1);
        while (word.ends_with(' ')) word.remove_suffix(1);
        words.emplace_back(word);
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    const int64_t count = static_cast<int64_t>(words.size());
    if (port.kind == "strings") {
        Array array;
        array.shape = shape_of_list(count, port);
        array.strings = std::move(words);
        return array;
    }
    Elements elements(port);
    for (const std::string& word : words) elements.add_word(word);
    return array_of(elements.dtype(), shape_of_list(count, port), elements.take());
}

void flatten(const Json& json, size_t depth, std::vector<int64_t>& shape, std::vector<Json>& leaves, const Port& port) {
    if (depth > 64) throw UsageError(fmt::format("{}: the values are nested too deeply", port.text()));
    if (!json.is_array()) {
        if (depth < shape.size()) throw UsageError(fmt::format("{}: the lists have different lengths", port.text()));
        leaves.push_back(json);
        return;
    }
    const int64_t size = static_cast<int64_t>(json.size());
    if (depth == shape.size() && leaves.empty()) shape.push_back(size);
    if (depth >= shape.size() || shape[depth] != size)
        throw UsageError(fmt::format("{}: the lists have different lengths", port.text()));
    for (const Json& item : json) flatten(item, depth + 1, shape, leaves, port);
}

Array nested(const std::string& text, const Port& port) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) throw UsageError(fmt::format("{}: '{}' is no list", port.text(), text));
    std::vector<int64_t> shape;
    std::vector<Json> leaves;
    flatten(json, 0, shape, leaves, port);
    if (port.kind == "strings") {
        Array array;
        array.shape = std::move(shape);
        for (const Json& leaf : leaves) {
            if (!leaf.is_string()) throw UsageError(fmt::format("{}: {} is no string", port.text(), leaf.dump()));
            array.strings.push_back(leaf.get<std::string>());
        }
        return array;
    }
    Elements elements(port);
    for (const Json& leaf : leaves) elements.add_word(leaf.is_string() ? leaf.get<std::string>() : leaf.dump());
    return array_of(elements.dtype(), std::move(shape), elements.take());
}

// "x.npy", "all.npz:x", or "all.npz", in which an array has the input's name or is the only one.
Array read_array(const std::string& place, const Port& port) {
    const size_t end = place.find(".npz");
    if (end == std::string::npos) return read_npy(place);
    const std::string path = place.substr(0, end + 4);
    if (place.size() > path.size() && place[path.size()] == ':') return read_npz(path, place.substr(path.size() + 1));
    const std::vector<std::string> names = npz_names(place);
    return read_npz(place, names.size() == 1 ? names[0] : port.name);
}

// "float32" for "f32"
std::string numpy_name(const std::string& dtype) {
    static const std::map<char, std::string> kinds = {{'f', "float"}, {'i', "int"}, {'u', "uint"}, {'c', "complex"}};
    const auto kind = kinds.find(dtype[0]);
    return kind == kinds.end() ? dtype : kind->second + dtype.substr(1);
}

Array from_file(const std::string& path, const Port& port) {
    Array array;
    try {
        array = read_array(path, port);
    } catch (const std::system_error& error) {
        throw InputError(fmt::format("cannot read {}: {}", path, error.code().message()));
    }
    if (port.kind != "tensor" || array.holds_strings()) return array;
    const bool is_bf16 = array.dtype.code == 4;
    if (is_bf16 && port.dtype != "bf16") throw InputError(fmt::format("{} holds raw 2-byte elements", path));
    if (const std::string_view held = dtype_text(array.dtype); held != port.dtype)
        throw InputError(fmt::format(
            "{}: {} holds {}, not {}{}", port.text(), path, held, port.dtype,
            is_bf16 || port.dtype == "bf16"
                ? ""
                : fmt::format(": save it anew, converted with array.astype('{}')", numpy_name(port.dtype))));
    return array;
}

} // namespace

std::string Port::text() const {
    return fmt::format("{}: {}{}", name, kind == "tensor" ? dtype : kind,
                       any_rank ? "" : fmt::format("[{}]", fmt::join(shape, ",")));
}

std::vector<Port> ports(const Json& list) {
    std::vector<Port> out;
    for (const Json& entry : list) {
        Port port;
        port.name = entry.at("name").get<std::string>();
        port.kind = entry.at("kind").get<std::string>();
        port.dtype = entry.value("dtype", "");
        port.optional = entry.value("optional", false);
        const auto shape = entry.find("shape");
        port.any_rank = shape == entry.end() || shape->is_null();
        if (!port.any_rank)
            for (const Json& size : *shape)
                port.shape.push_back(size.is_string() ? size.get<std::string>() : size.dump());
        out.push_back(std::move(port));
    }
    return out;
}

Feed::Feed(Array array) : array_(std::move(array)) {
    const int32_t ndim = static_cast<int32_t>(array_.shape.size());
    if (!array_.holds_strings()) {
        value_.tag = CUVIL_TENSOR;
        value_.as.tensor = {array_.bytes.data(),   1, 0, ndim, array_.dtype, array_.shape.data(),
                            array_.strides.data(), 0};
        return;
    }
    offsets_.push_back(0);
    for (const std::string& text : array_.strings) {
        text_ += text;
        offsets_.push_back(static_cast<int64_t>(text_.size()));
    }
    value_.tag = CUVIL_STRINGS;
    value_.as.strings = {offsets_.data(), text_.data(), ndim, array_.shape.data()};
}

Array parse_feed(const std::string& text, const Port& port, const Filling& filling) {
    if (port.kind == "list")
        throw UsageError(fmt::format("{}: lists cannot be given on the command line", port.text()));
    if (text.starts_with('@')) return from_file(text.substr(1), port);
    if (text.starts_with('[')) return nested(text, port);
    const size_t colon = text.find(':');
    const std::string how = text.substr(0, colon);
    const bool is_fill = how == "random" || how == "zeros" || how == "ones";
    if (is_fill && port.kind == "tensor")
        return filled(how, filled_shape(text, colon, port, filling.sizes), port, filling.stream);
    return listed(text, port);
}

} // namespace cuvil::cli
