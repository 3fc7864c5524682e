// The file is a magic, a version, the length of a header, the header - a Python dict in text such as
//
//     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }
//
// padded with spaces to a newline at a multiple of 64 - and the elements.
#include "npy.hpp"

#include "support/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>

namespace cuvil::cli {
namespace {

constexpr std::string_view magic = {"\x93NUMPY", 6};

struct Header {
    std::string descr;
    bool fortran_order = false;
    std::vector<int64_t> shape;
};

class HeaderReader {
public:
    HeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

    Header read() {
        Header header;
        bool seen[3] = {};
        expect('{');
        while (!take('}')) {
            const std::string key = quoted();
            expect(':');
            if (key == "descr" && !seen[0]) {
                seen[0] = true;
                skip_spaces();
                if (peek() == '[') fail("holds records, not a tensor");
                header.descr = quoted();
            } else if (key == "fortran_order" && !seen[1]) {
                seen[1] = true;
                header.fortran_order = boolean();
            } else if (key == "shape" && !seen[2]) {
                seen[2] = true;
                header.shape = tuple();
            } else {
                fail(fmt::format("has an unexpected entry '{}' in its header", key));
            }
            if (!take(',')) {
                expect('}');
                break;
            }
        }
        if (!seen[0] || !seen[1] || !seen[2]) fail("has a header without 'descr', 'fortran_order' and 'shape'");
        return header;
    }

private:
    [[noreturn]] void fail(const std::string& what) const { throw NpyError(name_ + " " + what); }
    [[noreturn]] void malformed() const { fail("has a malformed header"); }

    void skip_spaces() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) at_++;
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(char c) {
        skip_spaces();
        if (peek() != c) return false;
        at_++;
        return true;
    }
    void expect(char c) {
        if (!take(c)) malformed();
    }
    std::string quoted() {
        skip_spaces();
        const char quote = peek();
        if (quote != '\'' && quote != '"') malformed();
        const size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) malformed();
        std::string word(text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
        return word;
    }
    bool boolean() {
        skip_spaces();
        for (const std::string_view word : {std::string_view("True"), std::string_view("False")})
            if (text_.substr(at_).starts_with(word)) {
                at_ += word.size();
                return word == "True";
            }
        malformed();
    }
    std::vector<int64_t> tuple() {
        std::vector<int64_t> sizes;
        expect('(');
        while (!take(')')) {
            skip_spaces();
            int64_t size = -1;
            const auto [next, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
            if (error != std::errc() || size < 0) malformed();
            at_ = static_cast<size_t>(next - text_.data());
            if (peek() == 'L') at_++; // Python 2's long integers
            sizes.push_back(size);
            if (sizes.size() > 64) fail("has more than 64 dimensions");
            if (!take(',')) {
                expect(')');
                break;
            }
        }
        return sizes;
    }

    std::string_view text_;
    const std::string& name_;
    size_t at_ = 0;
};

struct Element {
    cuvil_dtype dtype{}; // bits 0: strings
    uint64_t size = 0;   // bytes
    char kind = 0;
    bool big_endian = false;
};

std::optional<Element> parse_descr(std::string_view descr) {
    Element e;
    if (descr.size() < 3) return std::nullopt;
    if (descr[0] == '>')
        e.big_endian = true;
    else if (descr[0] != '<' && descr[0] != '|' && descr[0] != '=')
        return std::nullopt;
    e.kind = descr[1];
    const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), e.size);
    if (error != std::errc() || end != descr.data() + descr.size()) return std::nullopt;
    if (e.kind == 'U' || e.kind == 'S') {
        if (e.size > INT32_MAX) return std::nullopt;
        e.size *= e.kind == 'U' ? 4 : 1;
        return e;
    }
    const std::map<char, std::pair<uint8_t, std::vector<uint64_t>>> kinds = {
        {'b', {6, {1}}},       {'i', {0, {1, 2, 4, 8}}}, {'u', {1, {1, 2, 4, 8}}},
        {'f', {2, {2, 4, 8}}}, {'c', {5, {8, 16}}},      {'V', {4, {2}}},
    };
    const auto found = kinds.find(e.kind);
    if (found == kinds.end()) return std::nullopt;
    const auto& [code, sizes] = found->second;
    if (std::find(sizes.begin(), sizes.end(), e.size) == sizes.end()) return std::nullopt;
    e.dtype = {code, static_cast<uint8_t>(e.size * 8), 1};
    return e;
}

void append_utf8(std::string& out, uint32_t c) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd; // no character
    if (c < 0x80) {
        out += static_cast<char>(c);
        return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(lead[more] | (c >> (6 * more)));
    for (int i = more - 1; i >= 0; i--) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3f));
}

// UTF-8 -> code points; a byte that is no UTF-8 stands for itself.
std::u32string code_points(std::string_view text) {
    std::u32string out;
    for (size_t i = 0; i < text.size();) {
        const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
        const uint32_t first = byte(i);
        const size_t more = first >= 0xf0 && first < 0xf8 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
        uint32_t c = more == 0 || first >= 0xf8 ? first : first & (0x3fu >> more);
        bool good = first < 0xf8;
        for (size_t k = 1; k <= more && good; k++) {
            good = (byte(i + k) & 0xc0) == 0x80;
            c = (c << 6) | (byte(i + k) & 0x3f);
        }
        out.push_back(good ? c : first);
        i += good ? more + 1 : 1;
    }
    return out;
}

std::string text_of_element(const char* at, const Element& e) {
    std::string text;
    if (e.kind == 'S') {
        text.assign(at, e.size);
        text.erase(text.find_last_not_of('\0') + 1);
        return text;
    }
    std::u32string points;
    for (uint64_t i = 0; i < e.size; i += 4) {
        unsigned char b[4];
        std::memcpy(b, at + i, 4);
        if (e.big_endian) std::reverse(b, b + 4);
        points += static_cast<char32_t>(b[0] | b[1] << 8 | b[2] << 16 | static_cast<uint32_t>(b[3]) << 24);
    }
    points.erase(points.find_last_not_of(U'\0') + 1);
    for (const char32_t c : points) append_utf8(text, c);
    return text;
}

// A complex element is two numbers, each with its own order of bytes.
void reverse_bytes(std::string& bytes, const Element& e) {
    const uint64_t width = e.kind == 'c' ? e.size / 2 : e.size;
    for (uint64_t i = 0; i + width <= bytes.size(); i += width)
        std::reverse(bytes.begin() + static_cast<ptrdiff_t>(i), bytes.begin() + static_cast<ptrdiff_t>(i + width));
}

uint64_t little_endian(std::string_view bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

std::string shape_text(const int64_t* shape, int32_t ndim) {
    std::string text = "(";
    for (int32_t i = 0; i < ndim; i++) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
    return text + (ndim == 1 ? ",)" : ")");
}

std::string file_start(const std::string& descr, const std::string& shape) {
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
    const size_t before = magic.size() + 2 + 2;
    header.append(63 - (before + header.size()) % 64, ' ');
    header += '\n';
    std::string out(magic);
    out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    return out + header;
}

std::string tensor_file(const cuvil_tensor& t) {
    const std::map<uint8_t, char> kinds = {{0, 'i'}, {1, 'u'}, {2, 'f'}, {4, 'V'}, {5, 'c'}, {6, 'b'}};
    const uint64_t size = t.dtype.bits / 8;
    std::string out = file_start(fmt::format("{}{}{}", size == 1 ? '|' : '<', kinds.at(t.dtype.code), size),
                                 shape_text(t.shape, t.ndim));
    uint64_t count = 1;
    for (int32_t i = 0; i < t.ndim; i++) count *= static_cast<uint64_t>(t.shape[i]);
    return out.append(static_cast<const char*>(t.data) + t.byte_offset, count * size);
}

std::string strings_file(const cuvil_strings& s) {
    int64_t count = 1;
    for (int32_t i = 0; i < s.ndim; i++) count *= s.shape[i];
    std::vector<std::u32string> texts;
    size_t longest = 1;
    for (int64_t i = 0; i < count; i++) {
        texts.push_back(code_points({s.bytes + s.offsets[i], static_cast<size_t>(s.offsets[i + 1] - s.offsets[i])}));
        longest = std::max(longest, texts.back().size());
    }
    std::string out = file_start(fmt::format("<U{}", longest), shape_text(s.shape, s.ndim));
    for (std::u32string& text : texts) {
        text.resize(longest);
        for (const char32_t c : text)
            for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(c >> shift & 0xff);
    }
    return out;
}

} // namespace

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape, bool fortran_order) {
    std::vector<int64_t> strides(shape.size());
    if (std::ranges::find(shape, 0) != shape.end()) return strides;
    int64_t step = 1;
    for (size_t k = 0; k < shape.size(); k++) {
        const size_t axis = fortran_order ? k : shape.size() - 1 - k;
        strides[axis] = step;
        step *= shape[axis];
    }
    return strides;
}

Array parse_npy(std::string_view file, const std::string& name) {
    const auto fail = [&](const std::string& what) { throw NpyError(name + " " + what); };
    if (!file.starts_with(magic)) fail("is not a .npy file");
    if (file.size() < 8) fail("is truncated");
    const int version = static_cast<unsigned char>(file[6]);
    if (version < 1 || version > 3)
        fail(fmt::format("has version {} of the .npy format; versions 1 to 3 are read", version));
    const size_t length_bytes = version == 1 ? 2 : 4;
    if (file.size() < 8 + length_bytes) fail("is truncated");
    const uint64_t header_length = little_endian(file.substr(8, length_bytes));
    file.remove_prefix(8 + length_bytes);
    if (file.size() < header_length) fail("is truncated in its header");
    const Header header = HeaderReader(file.substr(0, header_length), name).read();
    file.remove_prefix(header_length);

    if (header.descr == "|O") fail("holds Python objects, which only Python can read");
    const std::optional<Element> element = parse_descr(header.descr);
    if (!element) fail(fmt::format("has elements of type '{}', which no tensor has", header.descr));
    uint64_t count = 1, bytes = 0;
    for (const int64_t size : header.shape)
        if (size != 0 && __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count))
            fail("has more elements than 64 bits count");
    if (std::ranges::find(header.shape, 0) != header.shape.end()) count = 0;
    if (__builtin_mul_overflow(count, element->size, &bytes)) fail("has more elements than 64 bits count");
    if (file.size() != bytes)
        fail(fmt::format("holds {} bytes of elements, but its shape needs {}", file.size(), bytes));
    // Elements of no width take no room, so a small file could ask for any number of them.
    if (element->size == 0 && count > 1 << 20) fail("has an absurd number of empty strings");

    Array array;
    array.dtype = element->dtype;
    array.shape = header.shape;
    array.strides = dense_strides(header.shape, header.fortran_order);
    if (!array.holds_strings()) {
        array.bytes = file;
        if (element->big_endian) reverse_bytes(array.bytes, *element);
        return array;
    }
    if (header.fortran_order && header.shape.size() > 1) fail("holds strings in Fortran order");
    for (uint64_t i = 0; i < count; i++)
        array.strings.push_back(text_of_element(file.data() + i * element->size, *element));
    return array;
}

Array read_npy(const std::filesystem::path& path) {
    const MappedFile file(path);
    return parse_npy(file.text(), path.string());
}

std::string npy_bytes(const cuvil_value& value) {
    if (value.tag == CUVIL_TENSOR) return tensor_file(value.as.tensor);
    if (value.tag == CUVIL_STRINGS) return strings_file(value.as.strings);
    throw NpyError("a list does not fit a .npy file");
}

void write_npy(const std::filesystem::path& path, const cuvil_value& value) {
    const std::string bytes = npy_bytes(value);
    write_atomically(path, [&](int fd) { write_all(fd, bytes); });
}

} // namespace cuvil::cli
