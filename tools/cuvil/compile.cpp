// cuvil compile: a model in, a module out; or the text of a stage before it.
#include "cuvil/compile.hpp"

#include "command.hpp"
#include "compile_options.hpp"
#include "describe.hpp"
#include "output.hpp"
#include "precision_error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>

namespace cuvil::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
    std::string model;
    std::string output;
    std::string emit = "module";
    std::string name;
    std::string report;
    std::vector<std::string> inputs, sizes;
    CompileArguments compile;
};

// What --report writes, for a model that was compiled and for one that was refused.
class Report {
public:
    using Json = nlohmann::ordered_json;

    Report(const Options& o, const CompileOptions& options)
        : path_(o.report), json_{{"cuvil", version()}, {"model", o.model}, {"ok", false}, {"target", options.target}} {}

    // Between a stage's first word and the next one's lies its time.
    void begin_stage(std::string_view stage) {
        end_stage();
        stage_ = stage;
        start_ = Clock::now();
    }

    void finish(const fs::path& file, const std::string& manifest) {
        end_stage();
        json_["ok"] = true;
        json_["file"] = file.string();
        json_["bytes"] = fs::file_size(file);
        json_["manifest"] = Json::parse(manifest);
    }

    void add(const std::vector<PrecisionError>& errors) {
        end_stage();
        json_["precision_errors"] = json_of(errors);
    }

    void write(const Diagnostics& diag) {
        if (path_.empty()) return;
        end_stage();
        json_["stages"] = stages_;
        json_["diagnostics"] = Json::array();
        for (const Diagnostic& d : diag.all())
            json_["diagnostics"].push_back({{"severity", d.severity == Severity::Error ? "error" : "warning"},
                                            {"code", d.code},
                                            {"message", d.message},
                                            {"file", d.where.file},
                                            {"node", d.where.name},
                                            {"notes", d.notes},
                                            {"help", d.help},
                                            {"count", d.count}});
        const std::string text = json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
        write_output(path_, text);
    }

private:
    using Clock = std::chrono::steady_clock;

    void end_stage() {
        if (!stage_.empty())
            stages_.push_back(
                {{"name", stage_}, {"seconds", std::chrono::duration<double>(Clock::now() - start_).count()}});
        stage_.clear();
    }

    std::string path_, stage_;
    Clock::time_point start_{};
    Json stages_ = Json::array(), json_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void say_done(Console& console, const fs::path& path, uint64_t size, double seconds) {
    console.end_progress();
    if (!console.is_quiet()) console.out(fmt::format("{}: {}, {:.1f} s\n", path.string(), size_text(size), seconds));
}

// The file that one text goes to. A single text takes the name that was asked for as it is.
fs::path text_path(const Options& o, const EmittedText& text, size_t count) {
    if (o.output.empty()) return fs::path(o.model).stem().string() + "." + text.suffix;
    if (o.output.ends_with('/') || fs::is_directory(o.output))
        return fs::path(o.output) / (fs::path(o.model).stem().string() + "." + text.suffix);
    if (count == 1) return o.output;
    return fs::path(o.output).replace_extension("." + text.suffix);
}

int write_texts(const Options& o, const CompileOptions& options, Emit what, Console& console) {
    const auto start = std::chrono::steady_clock::now();
    Diagnostics diag;
    const std::vector<EmittedText> texts = emit({.path = o.model}, what, options, diag);
    console.end_progress();
    console.show(diag);
    for (const EmittedText& text : texts) {
        if (o.output == "-") {
            console.out(text.text);
            continue;
        }
        const fs::path path = text_path(o, text, texts.size());
        expect_output(path, o.model);
        write_output(path, text.text);
        say_done(console, path, text.text.size(), seconds_since(start));
    }
    return Done;
}

// Nothing where the inputs are left to chance and no run can be made of that.
std::vector<PrecisionError> errors_against_f32(const Options& o, const CompileOptions& options, const fs::path& path,
                                               Console& console) {
    try {
        std::vector<PrecisionError> errors = precision_errors(o.model, path, options, o.inputs, parse_symbols(o.sizes));
        console.end_progress();
        if (!console.is_quiet())
            console.out(fmt::format("{} against f32, {} inputs\n{}", name(options.precision),
                                    o.inputs.empty() ? "random" : "given", text_of(errors)));
        return errors;
    } catch (const std::runtime_error& error) {
        const bool no_run = dynamic_cast<const UsageError*>(&error) || dynamic_cast<const InputError*>(&error);
        if (!no_run || !o.inputs.empty() || !o.sizes.empty()) throw;
        console.err(fmt::format("not compared with f32: {}\n", error.what()));
        return {};
    }
}

int write_module(const Options& o, const CompileOptions& options, Console& console) {
    if (o.output == "-") throw UsageError("-o -: a module is no text; name a file");
    const auto start = std::chrono::steady_clock::now();
    fs::path path = o.output.empty() ? fs::path(fs::path(o.model).stem().string() + ".cuvil") : fs::path(o.output);
    if (fs::is_directory(path)) path /= fs::path(o.model).stem().string() + ".cuvil";
    expect_output(path, o.model);
    if (!o.report.empty()) expect_output(o.report, o.model);
    Report report(o, options);
    std::string stage;
    CompileOptions reported = options;
    reported.progress = [&](const Progress& progress) {
        if (progress.stage != stage) report.begin_stage(stage = progress.stage);
        options.progress(progress);
    };
    Diagnostics diag;
    try {
        const Artifact artifact = compile({.path = o.model}, reported, diag);
        if (options.cancel->load()) throw Cancelled();
        write(artifact, path, diag);
        report.finish(path, manifest(artifact));
    } catch (const Refused& refused) {
        report.write(refused.diagnostics());
        throw;
    }
    const double seconds = seconds_since(start);
    const bool is_heard = !console.is_quiet() || !o.report.empty();
    if (options.precision != Precision::F32 && is_heard) report.add(errors_against_f32(o, options, path, console));
    report.write(diag);
    console.end_progress();
    console.show(diag);
    say_done(console, path, fs::file_size(path), seconds);
    return Done;
}

// What a C program links: files beside each other.
int write_for_c(const Options& o, const CompileOptions& options, Emit what, Console& console) {
    if (o.output == "-") throw UsageError("-o -: an object is no text; name a file");
    const auto start = std::chrono::steady_clock::now();
    const std::string stem = fs::path(o.model).stem().string(), suffix = what == Emit::Static ? ".a" : ".o";
    fs::path path = o.output.empty() ? fs::path(stem + suffix) : fs::path(o.output);
    if (o.output.ends_with('/') || fs::is_directory(path)) path /= stem + suffix;
    if (path.extension() == ".h") throw UsageError("-o " + o.output + ": this is what the header is called");
    expect_output(path, o.model);
    if (what == Emit::Static) expect_output(fs::path(path).replace_extension(".h"), o.model);
    Diagnostics diag;
    const std::vector<fs::path> written = write_library({.path = o.model}, what, path, options, diag);
    console.end_progress();
    console.show(diag);
    for (const fs::path& file : written) say_done(console, file, fs::file_size(file), seconds_since(start));
    return Done;
}

} // namespace

Action add_compile(CLI::App& verb) {
    auto o = std::make_shared<Options>();
    verb.add_option("model", o->model, "The model: .onnx, or .cuir (IR text)")->required()->option_text("MODEL");
    verb.add_option("-o,--output", o->output,
                    "The file to write (default: the model's name, here); - for texts on stdout")
        ->option_text("FILE");
    verb.add_option("--emit", o->emit,
                    "What to write: module (default), ir, cxx, llvm, asm; for C programs static (an archive and a "
                    "header), obj, header")
        ->option_text("WHAT");
    verb.add_option("--name", o->name,
                    "What the C functions' names begin with (default: the output's name, made an identifier)")
        ->option_text("NAME");
    o->compile.add_to(verb);
    verb.add_option("--report", o->report,
                    "Write stages, steps and diagnostics to this file as JSON, also of a refusal")
        ->option_text("FILE");
    add_repeatable(
        verb, "-i,--input", o->inputs,
        "An input for which --precision is compared with f32, as for cuvil run; repeatable (default: random)")
        ->option_text("NAME=VALUE");
    add_repeatable(verb, "--size", o->sizes, "An open size of these inputs where they are random, as N=8; repeatable")
        ->option_text("NAME=N");
    verb.footer(R"(
With --precision the model is compiled in f32, too, and both run here: a table says how far each output is from that in
f32, at most, and which part of its largest number this is.

Examples:
  cuvil compile resnet18.onnx -o resnet18.cuvil
  cuvil compile model.onnx --input-shape x:1x3x224x224 --isa v3,v4
  cuvil compile model.onnx --dynamic x:N,3,H,W --attach tokenizer.json
  cuvil compile gpt2.onnx --precision bf16-weights --input @inputs.npz
  cuvil compile model.onnx --report report.json --verbose
  cuvil compile model.onnx --emit=cxx -o - | less
  cuvil compile resnet18.onnx --emit=static && gcc main.c resnet18.a -o main
  cuvil compile model.onnx --print-after CanonicalizePass

The last line on stdout says file, size and seconds. A module is written whole or not at all.)");
    return [o](Console& console) {
        if (fs::is_regular_file(o->model) && holds_module(o->model))
            throw UsageError(o->model + " is compiled already: cuvil run runs it, cuvil inspect shows what it holds");
        CompileOptions options = o->compile.options(console);
        const Emit what = choice<Emit>("--emit", o->emit,
                                       {{"module", Emit::Module},
                                        {"ir", Emit::Ir},
                                        {"cxx", Emit::Cxx},
                                        {"llvm", Emit::Llvm},
                                        {"asm", Emit::Asm},
                                        {"static", Emit::Static},
                                        {"obj", Emit::Object},
                                        {"header", Emit::Header}});
        const bool is_for_c = what == Emit::Static || what == Emit::Object || what == Emit::Header;
        if (!is_for_c && !o->name.empty()) throw UsageError("--name is for --emit=static, obj and header");
        if (is_for_c && !options.attachments.empty()) throw UsageError("--attach puts files into modules alone");
        if (is_for_c && !options.stop_after.empty()) throw UsageError("--stop-after prints IR: leave --emit out");
        options.library_name = o->name;
        if (what == Emit::Header && o->name.empty() && !o->output.empty() && o->output != "-")
            options.library_name = library_name(text_path(*o, {"h", ""}, 1));
        const bool is_module = what == Emit::Module && options.stop_after.empty();
        if (!is_module || options.precision == Precision::F32)
            for (const auto& [list, option] : {std::pair(&o->inputs, "--input"), std::pair(&o->sizes, "--size")})
                if (!list->empty()) throw UsageError(fmt::format("{} is for modules with a --precision", option));
        if (!is_module && !o->report.empty()) throw UsageError("--report tells about modules: leave --emit out");
        if (is_module) return write_module(*o, options, console);
        if (what == Emit::Static || what == Emit::Object) return write_for_c(*o, options, what, console);
        return write_texts(*o, options, options.stop_after.empty() ? what : Emit::Ir, console);
    };
}

} // namespace cuvil::cli
