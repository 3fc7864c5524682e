// A module that is loaded, or compiled for the purpose, with its inputs from the command line.
#pragma once

#include "console.hpp"
#include "cuvil/compile.hpp"
#include "cuvil/cuvil.h"
#include "feeds.hpp"

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::cli {

// True for the suffixes of models; what has another one is taken for a module.
bool is_model(const std::string& path);
// The module's file for a model, with warnings on the console.
std::string compiled(const std::string& model, const CompileOptions& options, Console& console);
// The same for this processor, with progress on the console.
std::string compiled_for_here(const std::string& model, Console& console);

// A loaded module and the values of its latest run, given back at the end.
class Session {
public:
    // threads as in cuvil_load. `compiled`: the module's file, or empty: it lies at `path`. Throws InputError.
    Session(const std::string& path, const std::string& compiled, int threads);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    const char* level() const { return cuvil_level_name(module_); }
    const nlohmann::json& manifest() const { return manifest_; }
    const std::vector<Port>& inputs() const { return inputs_; }
    const std::vector<Port>& outputs() const { return outputs_; }

    // Gives the results of the run before back. A signal ends the process meanwhile. Throws InputError.
    const std::vector<cuvil_value>& run(const std::vector<cuvil_value>& in, const cuvil_run_options* options = nullptr);

private:
    void release();

    cuvil_module* module_ = nullptr;
    nlohmann::json manifest_;
    std::vector<Port> inputs_, outputs_;
    std::vector<cuvil_value> out_;
};

// The inputs of a run, in the module's order.
struct Feeds {
    std::list<Feed> feeds;
    std::vector<cuvil_value> values;
};

// `named`: "NAME=VALUE" each, `positional`: the same, or values alone in the order of the inputs; "@FILE.npz" stands
// for an input of each name in it. An input that nobody gives is made from `otherwise`; without it, an error. With a
// `seed` each input is filled from a stream of its own. Throws UsageError and InputError.
Feeds take_feeds(const std::vector<Port>& inputs, const std::vector<std::string>& named,
                 const std::vector<std::string>& positional, const std::optional<std::string>& otherwise = {},
                 Filling filling = {}, const std::optional<uint64_t>& seed = {});

std::vector<std::string> names_of(const std::vector<Port>& ports);
// "x: f32[N,4], y: f32[N]"
std::string list_of(const std::vector<Port>& ports);
// The port that "NAME=REST" names; the only one also answers to `alias`.
std::optional<size_t> named_port(const std::string& text, const std::vector<Port>& ports, std::string_view alias,
                                 std::string& rest);
// "@x.npy" for "x.npy", where the meaning is plain.
std::string with_at(const std::string& text);
// Throws UsageError where `text`, which is none of the ports', names one: "NAME=REST". A file with '=' in its name is
// "@a=b.npy". `what`: "input", "output".
void expect_no_name(const std::string& text, const std::vector<Port>& ports, std::string_view what);

} // namespace cuvil::cli
