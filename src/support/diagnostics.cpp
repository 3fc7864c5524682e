#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cuvil {

Diagnostic& Diagnostic::note(std::string text) {
    notes.push_back(std::move(text));
    return *this;
}

Diagnostic& Diagnostic::suggest(std::string text) {
    help = std::move(text);
    return *this;
}

Diagnostic& Diagnostic::show(std::string line) {
    excerpt = std::move(line);
    return *this;
}

Diagnostic& Diagnostics::add(Diagnostic diagnostic) {
    auto same = [&](const Diagnostic& d) {
        return d.severity == diagnostic.severity && d.code == diagnostic.code && d.message == diagnostic.message &&
               d.where.file == diagnostic.where.file;
    };
    if (auto found = std::find_if(all_.begin(), all_.end(), same); found != all_.end()) {
        found->count++;
        return *found;
    }
    if (diagnostic.severity == Severity::Error) error_count_++;
    all_.push_back(std::move(diagnostic));
    return all_.back();
}

Diagnostic& Diagnostics::error(std::string code, std::string message, Location where) {
    return add({Severity::Error, std::move(code), std::move(message), std::move(where), {}, {}, {}, 1});
}

Diagnostic& Diagnostics::warning(std::string code, std::string message, Location where) {
    return add({Severity::Warning, std::move(code), std::move(message), std::move(where), {}, {}, {}, 1});
}

void Diagnostics::stop_if_errors() const {
    if (has_errors()) throw Refused(*this);
}

std::string render(const Diagnostic& d) {
    std::string out =
        fmt::format("{}[{}]: {}\n", d.severity == Severity::Error ? "error" : "warning", d.code, d.message);
    if (!d.where.empty()) {
        out += "  --> " + d.where.file;
        if (!d.where.name.empty()) out += (d.where.file.empty() ? "node " : ", node ") + quoted(d.where.name);
        if (d.count > 1) out += fmt::format(" and {} more", d.count - 1);
        out += '\n';
    }
    if (!d.excerpt.empty()) out += "   |  " + d.excerpt + '\n';
    for (const std::string& note : d.notes) out += "note: " + note + '\n';
    if (!d.help.empty()) out += "help: " + d.help + '\n';
    return out;
}

std::string Diagnostics::render() const {
    std::string out;
    for (const Diagnostic& d : all_) out += cuvil::render(d);
    return out;
}

Refused::Refused(Diagnostics diagnostics) : diagnostics_(std::move(diagnostics)), text_(diagnostics_.render()) {}

void internal_error(const char* file, int line, const std::string& what) {
    throw InternalError(fmt::format("internal error at {}:{}: {}", file, line, what));
}

Location join(const Location& a, const Location& b) {
    constexpr std::string_view link = " + ";
    constexpr size_t longest = 200;
    if (b.empty() || a == b) return a;
    if (a.empty()) return b;
    auto between_links = [&](const std::string& name) { return std::string(link) + name + std::string(link); };
    bool contained = b.name.empty() || between_links(a.name).find(between_links(b.name)) != std::string::npos;
    if (contained || a.name.size() + b.name.size() > longest) return a;
    return {a.file.empty() ? b.file : a.file, a.name.empty() ? b.name : a.name + std::string(link) + b.name};
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out + '"';
}

} // namespace cuvil
