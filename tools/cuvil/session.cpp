#include "session.hpp"

#include "interrupt.hpp"
#include "npz.hpp"
#include "support/file.hpp"
#include "support/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace cuvil::cli {
namespace {

void check(int32_t status) {
    if (status == CUVIL_ERROR_CANCELLED) throw Cancelled();
    if (status != CUVIL_OK) throw InputError(cuvil_error_message());
}

} // namespace

bool is_model(const std::string& path) {
    const std::string suffix = std::filesystem::path(path).extension();
    return suffix == ".onnx" || suffix == ".cuir";
}

std::string compiled_for_here(const std::string& model, Console& console) {
    CompileOptions options;
    options.target = "native";
    options.cache_folder = default_cache_folder();
    options.cancel = &interrupted();
    options.progress = [&](const Progress& progress) { console.progress(progress); };
    return compiled(model, options, console);
}

std::string compiled(const std::string& model, const CompileOptions& options, Console& console) {
    Diagnostics diag;
    std::string file = bytes(compile({.path = model}, options, diag));
    console.end_progress();
    console.show(diag);
    return file;
}

Session::Session(const std::string& path, const std::string& compiled, int threads) {
    Diagnostics diag;
    if (compiled.empty()) (void)open_named(path, diag);
    const int32_t status = compiled.empty() ? cuvil_load(path.c_str(), threads, &module_)
                                            : cuvil_load_memory(compiled.data(), compiled.size(), threads, &module_);
    if (status == CUVIL_ERROR_FILE) diag.error("bad-artifact", cuvil_error_message());
    diag.stop_if_errors();
    check(status);
    manifest_ = nlohmann::json::parse(cuvil_manifest(module_));
    inputs_ = ports(manifest_.at("inputs"));
    outputs_ = ports(manifest_.at("outputs"));
    out_.assign(outputs_.size(), cuvil_value{});
}

Session::~Session() {
    release();
    if (module_) cuvil_unload(module_);
}

void Session::release() {
    for (cuvil_value& value : out_) cuvil_value_release(&value);
}

const std::vector<cuvil_value>& Session::run(const std::vector<cuvil_value>& in, const cuvil_run_options* options) {
    release();
    const EndsAtOnce ends;
    if (interrupted()) throw Cancelled();
    check(cuvil_run_with(module_, in.data(), out_.data(), options));
    return out_;
}

std::vector<std::string> names_of(const std::vector<Port>& ports) {
    std::vector<std::string> names;
    for (const Port& port : ports) names.push_back(port.name);
    return names;
}

std::string list_of(const std::vector<Port>& ports) {
    std::vector<std::string> texts;
    for (const Port& port : ports) texts.push_back(port.text());
    return fmt::format("{}", fmt::join(texts, ", "));
}

// Names may hold '=', so the longest that fits is taken.
std::optional<size_t> named_port(const std::string& text, const std::vector<Port>& ports, std::string_view alias,
                                 std::string& rest) {
    std::optional<size_t> best;
    for (size_t i = 0; i < ports.size(); i++)
        if (text.starts_with(ports[i].name + "=") && (!best || ports[i].name.size() > ports[*best].name.size()))
            best = i;
    if (!best && ports.size() == 1 && text.starts_with(std::string(alias) + "=")) {
        rest = text.substr(alias.size() + 1);
        return 0;
    }
    if (best) rest = text.substr(ports[*best].name.size() + 1);
    return best;
}

std::string with_at(const std::string& text) {
    const bool is_file = text.ends_with(".npy") || text.ends_with(".npz");
    return is_file && text[0] != '@' ? "@" + text : text;
}

void expect_no_name(const std::string& text, const std::vector<Port>& ports, std::string_view what) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || text.starts_with('@')) return;
    const std::string name = text.substr(0, equals);
    throw UsageError(fmt::format("no {} '{}'{}; the {}s are {}", what, name, did_you_mean(name, names_of(ports)), what,
                                 list_of(ports)));
}

namespace {

// The texts that inputs are given as: by name, then what is left in the inputs' order.
class GivenInputs {
public:
    explicit GivenInputs(const std::vector<Port>& inputs) : inputs_(inputs), texts_(inputs.size()) {}

    void give(size_t i, std::string text) {
        if (texts_[i]) throw UsageError(fmt::format("input '{}' is given twice", inputs_[i].name));
        texts_[i] = std::move(text);
    }

    void give(const std::string& text) {
        std::string rest;
        if (const std::optional<size_t> i = named_port(text, inputs_, "input", rest)) return give(*i, rest);
        for (const Port& input : inputs_)
            if (text == input.name && input.kind != "strings")
                throw UsageError(fmt::format("input {0} has no value; give it as {1}=@FILE.npy or {1}=random:SIZES",
                                             input.text(), input.name));
        if (!text.starts_with(" [")) expect_no_name(text, inputs_, "input");
        if (with_at(text).starts_with('@') && text.ends_with(".npz")) return give_archive(with_at(text).substr(1));
        unnamed_.push_back(text);
    }

    // Once, when all are given: a text for each input.
    const std::vector<std::optional<std::string>>& all() {
        size_t next = 0;
        for (std::string& text : unnamed_) {
            if (text.starts_with(" [")) text.erase(0, 1); // see main.cpp
            while (next < inputs_.size() && texts_[next]) next++;
            if (next == inputs_.size())
                throw UsageError(fmt::format("too many inputs; the module has {}", list_of(inputs_)));
            give(next, std::move(text));
        }
        return texts_;
    }

private:
    // An input for each array; a single array is for the only input, whatever its name.
    void give_archive(const std::string& path) {
        const std::vector<std::string> names = npz_names(path);
        for (const std::string& name : names) {
            const std::vector<std::string> known = names_of(inputs_);
            const auto found = std::find(known.begin(), known.end(), name);
            if (found != known.end())
                give(static_cast<size_t>(found - known.begin()), fmt::format("@{}:{}", path, name));
            else if (names.size() == 1 && inputs_.size() == 1)
                give(0, fmt::format("@{}:{}", path, name));
            else
                throw InputError(fmt::format("{} holds '{}', which is no input{}; the inputs are {}", path, name,
                                             did_you_mean(name, known), list_of(inputs_)));
        }
    }

    const std::vector<Port>& inputs_;
    std::vector<std::optional<std::string>> texts_;
    std::vector<std::string> unnamed_;
};

} // namespace

Feeds take_feeds(const std::vector<Port>& inputs, const std::vector<std::string>& named,
                 const std::vector<std::string>& positional, const std::optional<std::string>& otherwise,
                 Filling filling, const std::optional<uint64_t>& seed) {
    std::vector<std::string> declared;
    for (const Port& port : inputs) declared.insert(declared.end(), port.shape.begin(), port.shape.end());
    expect_open(filling.sizes, open_sizes(declared));
    GivenInputs given(inputs);
    for (const std::string& text : named) given.give(text);
    for (const std::string& text : positional) given.give(text);
    Feeds out;
    out.values.assign(inputs.size(), cuvil_value{});
    const std::vector<std::optional<std::string>>& texts = given.all();
    for (size_t i = 0; i < inputs.size(); i++) {
        std::optional<std::string> text = texts[i];
        if (!text && inputs[i].optional) continue;
        if (!text) text = otherwise;
        if (!text)
            throw UsageError(fmt::format("input {0} is missing; give it as --input {1}=@FILE.npy or {1}=random:SIZES",
                                         inputs[i].text(), inputs[i].name));
        if (seed) filling.stream = *seed * inputs.size() + i + 1;
        out.feeds.emplace_back(parse_feed(with_at(*text), inputs[i], filling));
        out.values[i] = out.feeds.back().value();
    }
    return out;
}

} // namespace cuvil::cli
