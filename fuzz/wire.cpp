#include "wire.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace cuvil::fuzz {
namespace {

enum WireType : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
constexpr int deepest = 200;

bool take_varint(std::string_view& bytes, uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (bytes.empty()) return false;
        const auto byte = static_cast<unsigned char>(bytes[0]);
        bytes.remove_prefix(1);
        value |= uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

void put_varint(std::string& out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
}

bool take_fixed(std::string_view& bytes, uint64_t& value, size_t size) {
    if (bytes.size() < size) return false;
    memcpy(&value, bytes.data(), size);
    bytes.remove_prefix(size);
    return true;
}

bool take_bytes(std::string_view& bytes, Field& field, int depth) {
    uint64_t length = 0;
    if (!take_varint(bytes, length) || length > bytes.size()) return false;
    const std::string_view content = bytes.substr(0, length);
    bytes.remove_prefix(length);
    field.is_message = length != 0 && read_fields(content, field.fields, depth + 1);
    if (!field.is_message) field.bytes = content;
    return true;
}

// A field and its number within the numbers of the messages around it: those of one kind have mostly the same.
struct Place {
    std::vector<Field>* message;
    size_t index;
    uint32_t kind;
    Field& field() const { return (*message)[index]; }
};

void collect(std::vector<Field>& message, uint32_t outer, std::vector<Place>& places) {
    for (size_t i = 0; i < message.size(); i++) {
        const uint32_t kind = outer * 64 + message[i].number;
        places.push_back({&message, i, kind});
        if (message[i].is_message) collect(message[i].fields, message[i].number, places);
    }
}

uint64_t odd_number(std::mt19937& random, uint64_t value) {
    constexpr uint64_t odd[] = {0, 1, 2, 3, 7, 8, 16, 255, 256, 1u << 16, 1u << 24, 1ull << 31, 1ull << 32, 1ull << 62};
    switch (random() % 6) {
    case 0: return value + 1;
    case 1: return value - 1;
    case 2: return 0 - value;
    case 3: return value ^ (1ull << random() % 64);
    case 4: return 0 - odd[random() % std::size(odd)];
    default: return odd[random() % std::size(odd)];
    }
}

void change_content(Field& field, std::mt19937& random, const std::vector<std::string>& words,
                    std::string (*mutate)(std::string)) {
    if (field.type != Bytes) {
        field.value = odd_number(random, field.value);
    } else if (!field.is_message) {
        const bool is_word = std::find(words.begin(), words.end(), field.bytes) != words.end();
        field.bytes = is_word && random() % 8 != 0 ? words[random() % words.size()] : mutate(std::move(field.bytes));
    }
}

} // namespace

bool read_fields(std::string_view bytes, std::vector<Field>& fields, int depth) {
    fields.clear();
    if (depth > deepest) return false;
    while (!bytes.empty()) {
        uint64_t key = 0;
        if (!take_varint(bytes, key) || key >> 3 == 0 || key >> 3 > 63) return false;
        Field field{static_cast<uint32_t>(key >> 3), static_cast<uint32_t>(key & 7), 0, {}, false, {}};
        bool is_good = false;
        switch (field.type) {
        case Varint: is_good = take_varint(bytes, field.value); break;
        case Fixed64: is_good = take_fixed(bytes, field.value, 8); break;
        case Fixed32: is_good = take_fixed(bytes, field.value, 4); break;
        case Bytes: is_good = take_bytes(bytes, field, depth); break;
        default: break;
        }
        if (!is_good) return false;
        fields.push_back(std::move(field));
    }
    return true;
}

std::string bytes_of(const std::vector<Field>& fields) {
    std::string out;
    for (const Field& field : fields) {
        put_varint(out, uint64_t{field.number} << 3 | field.type);
        const char* value = reinterpret_cast<const char*>(&field.value);
        if (field.type == Varint) put_varint(out, field.value);
        if (field.type == Fixed64) out.append(value, 8);
        if (field.type == Fixed32) out.append(value, 4);
        if (field.type != Bytes) continue;
        const std::string content = field.is_message ? bytes_of(field.fields) : field.bytes;
        put_varint(out, content.size());
        out += content;
    }
    return out;
}

void change(std::vector<Field>& message, std::mt19937& random, const std::vector<std::string>& words,
            std::string (*mutate)(std::string bytes)) {
    std::vector<Place> places;
    collect(message, 0, places);
    if (places.empty()) return;
    const Place place = places[random() % places.size()];
    std::vector<Place> alike;
    for (const Place& other : places)
        if (other.kind == place.kind) alike.push_back(other);
    Field other = alike[random() % alike.size()].field(); // a copy: it may be the field around `place`
    switch (random() % 8) {
    case 0: place.message->erase(place.message->begin() + static_cast<ptrdiff_t>(place.index)); break;
    case 1: place.message->push_back(std::move(other)); break;
    case 2: std::swap(place.field(), (*place.message)[random() % place.message->size()]); break;
    case 3:
    case 4: place.field() = std::move(other); break;
    default: change_content(place.field(), random, words, mutate);
    }
}

} // namespace cuvil::fuzz
