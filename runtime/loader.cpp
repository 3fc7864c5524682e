#include "runtime/loader.hpp"

#include "runtime/cpu.hpp"
#include "runtime/thread_count.hpp"
#include "runtime/values.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cuvil::rt {
namespace {

constexpr const char* program_symbol = "cuvil_program_1";

#if defined(__x86_64__)
constexpr uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t this_machine = EM_AARCH64;
#else
constexpr uint16_t this_machine = EM_NONE;
#endif

std::string machine_text(uint16_t machine) {
    switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "AArch64";
    default: return "machine type " + std::to_string(machine);
    }
}

// A path to an open file that no earlier load used. The dynamic linker takes an object for a loaded one when it has the
// same name, and it also keeps as a name of the object each other path under which the same file was opened; so a
// descriptor's number alone would, reused, give the old code. Slashes and dots that change nothing spell a counter.
std::string unused_path(int fd) {
    static std::atomic<uint64_t> counter{0};
    std::string path = "/proc/self/fd/";
    for (uint64_t count = ++counter; count != 0; count >>= 1) path += (count & 1) ? ".//" : "./";
    return path + std::to_string(fd);
}

Frame& frame_of(const cuvil_host* host) { return *static_cast<Frame*>(host->data); }

// A step's work, and after each piece that the calling thread did, word to whoever traces the run.
struct TracedWork {
    const cuvil_run_options& options;
    Task task;
    void* context;

    static void run(void* work, int64_t item, int32_t worker) {
        const auto& [options, task, context] = *static_cast<const TracedWork*>(work);
        task(context, item, worker);
        if (worker == 0) options.trace(options.context, -1, 0);
    }
};

void host_parallel_for(const cuvil_host* host, int64_t n, void (*fn)(void*, int64_t, int32_t), void* context) {
    Frame& frame = frame_of(host);
    if (!frame.options.trace) return frame.threads.parallel_for(n, fn, context);
    TracedWork work{frame.options, fn, context};
    frame.threads.parallel_for(n, TracedWork::run, &work);
}

void host_trace(const cuvil_host* host, int32_t step, int32_t is_end) {
    const cuvil_run_options& options = frame_of(host).options;
    options.trace(options.context, step, is_end);
}

void* host_alloc(const cuvil_host*, uint64_t bytes) { return allocate_block(bytes); }

void host_free(const cuvil_host*, void* block) { free(block); }

// A module that calls back into Python comes from cuvil.jit and is not saved in files.
int32_t host_call(const cuvil_host*, int32_t, const cuvil_value*, cuvil_value*) { return CUVIL_ERROR_MODEL; }

} // namespace

Frame::Frame(const Manifest& manifest, int32_t thread_count)
    : dims(manifest.dims.size()), in(manifest.inputs.size()), out(manifest.outputs.size()), threads(thread_count) {
    host = {sizeof host, host_parallel_for, host_alloc, host_free, host_call, nullptr, this};
}

FrameList::~FrameList() {
    for (std::atomic<Frame*>& slot : frames_) delete slot.load();
}

std::unique_ptr<Frame> FrameList::take() {
    for (std::atomic<Frame*>& slot : frames_) {
        if (!slot.load(std::memory_order_relaxed)) continue;
        if (Frame* frame = slot.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Frame>(frame);
    }
    return nullptr;
}

void FrameList::give(std::unique_ptr<Frame> frame) {
    for (std::atomic<Frame*>& slot : frames_) {
        Frame* empty = nullptr;
        if (slot.compare_exchange_strong(empty, frame.get(), std::memory_order_release, std::memory_order_relaxed)) {
            frame.release();
            return;
        }
    }
}

void Module::CloseLibrary::operator()(void* handle) const { dlclose(handle); }

Module::Module(std::unique_ptr<ArtifactFile> file, int32_t threads)
    : file_(std::move(file)), threads_(threads > 0 ? std::min(threads, max_threads) : default_thread_count()) {
    expect_thread_variable();
    if (threads < 0) throw CallError{CUVIL_ERROR_FILE, "the number of threads is negative: 0 stands for all"};
    const ArtifactView& view = file_->view();
    if (view.machine() != this_machine)
        throw CallError{CUVIL_ERROR_FILE, file_->name() + " holds code for " + machine_text(view.machine()) +
                                              ", this is " + machine_text(this_machine)};
    manifest_json_ = view.manifest();
    try {
        manifest_ = read_manifest(manifest_json_);
    } catch (const ManifestError& error) {
        throw CallError{CUVIL_ERROR_FILE, "the manifest of " + file_->name() + " " + error.what()};
    }
    if (manifest_.weights_bytes != view.weights().size())
        throw CallError{CUVIL_ERROR_FILE, file_->name() + " has " + std::to_string(view.weights().size()) +
                                              " bytes of weights, its manifest says " +
                                              std::to_string(manifest_.weights_bytes)};
    open_library();
    choose_level();
    file_->close_fd(); // the mappings stay
    Pool::instance().add_user();
}

Module::~Module() { Pool::instance().remove_user(); }

void Module::open_library() {
    const std::string path = unused_path(file_->fd());
    library_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!library_) {
        std::string reason = dlerror();
        if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
        throw CallError{CUVIL_ERROR_FILE, file_->name() + " cannot be loaded: " + reason};
    }
    program_ = static_cast<const cuvil_program*>(dlsym(library_.get(), program_symbol));
    if (!program_)
        throw CallError{CUVIL_ERROR_FILE, file_->name() + " has no symbol " + program_symbol +
                                              ": it was built for another version of Cuvil's interface"};
    if (program_->abi_version == 0 || program_->abi_version > CUVIL_ABI_VERSION)
        throw CallError{CUVIL_ERROR_FILE, file_->name() + " has version " + std::to_string(program_->abi_version) +
                                              " of Cuvil's interface; this loader knows versions up to " +
                                              std::to_string(CUVIL_ABI_VERSION)};
    if (program_->size < sizeof *program_ || program_->dim_count != manifest_.dims.size())
        throw CallError{CUVIL_ERROR_FILE, file_->name() + " has code and a manifest that do not belong together"};
}

void Module::choose_level() {
    std::vector<std::string_view> has;
    for (uint32_t i = 0; i < program_->level_count; i++) has.push_back(program_->levels[i].name);
    const std::vector<std::string_view>& offered = cpu_levels();
    auto contains = [](const auto& list, std::string_view name) {
        return std::find(list.begin(), list.end(), name) != list.end();
    };
    const char* variable = getenv("CUVIL_ISA");
    const std::string_view forced = variable ? variable : "";
    if (!forced.empty() && !contains(has, forced))
        throw CallError{CUVIL_ERROR_FILE, "CUVIL_ISA asks for level " + std::string(forced) + ", " + file_->name() +
                                              " has " + level_list(has)};
    if (!forced.empty() && !contains(offered, forced))
        throw CallError{CUVIL_ERROR_FILE, "CUVIL_ISA asks for level " + std::string(forced) + ", this processor has " +
                                              level_list(offered)};
    for (uint32_t i = 0; i < program_->level_count; i++)
        if (forced.empty() ? contains(offered, has[i]) : has[i] == forced) level_ = &program_->levels[i];
    if (!level_)
        throw CallError{CUVIL_ERROR_FILE, file_->name() + " has code for the levels " + level_list(has) +
                                              ", this processor has " + level_list(offered)};
}

void Module::run(const cuvil_value* in, cuvil_value* out, const cuvil_run_options& options) {
    if ((!in && !manifest_.inputs.empty()) || (!out && !manifest_.outputs.empty()))
        throw CallError{CUVIL_ERROR_NAME, !in ? "there are no inputs" : "there is no room for the outputs"};
    std::unique_ptr<Frame> frame = idle_.take();
    if (!frame) frame = std::make_unique<Frame>(manifest_, threads_);
    std::fill(frame->out.begin(), frame->out.end(), cuvil_value{});
    frame->options = options;
    auto give_back = [&] {
        frame->threads.leave();
        frame->arena.reset();
        idle_.give(std::move(frame));
    };
    frame->threads.enter();
    try {
        prepare(*frame, in, out);
        start(*frame);
    } catch (...) {
        for (size_t i = 0; i < frame->out.size(); i++)
            if (out[i].tag == CUVIL_NONE) release_value(frame->out[i]);
        give_back();
        throw;
    }
    for (size_t i = 0; i < frame->out.size(); i++)
        if (out[i].tag == CUVIL_NONE) out[i] = frame->out[i];
    give_back();
}

void Module::prepare(Frame& frame, const cuvil_value* in, const cuvil_value* out) {
    take_inputs(manifest_, in, frame.arena, frame.dims.data(), frame.in.data());
    frame.failure = {-1, {}};
    if (int32_t status = program_->bind(frame.in.data(), frame.dims.data(), &frame.failure); status != CUVIL_OK)
        throw CallError{status, failure_text(manifest_, frame.failure)};
    check_bound_dims(manifest_, frame.in.data(), frame.dims.data());

    bool any_given = false;
    for (size_t i = 0; i < frame.out.size(); i++) {
        frame.out[i] = take_output(manifest_.outputs[i], out[i], frame.dims.data());
        any_given |= out[i].tag != CUVIL_NONE;
    }
    if (any_given) separate_inputs(manifest_, frame.out.data(), frame.arena, frame.in.data());

    const uint64_t needed = program_->workspace_size(frame.dims.data(), threads_);
    if (frame.workspace_bytes < needed || !frame.workspace) {
        frame.workspace.reset(); // first give back, then take
        frame.workspace_bytes = 0;
        frame.workspace.reset(static_cast<std::byte*>(allocate_block(needed)));
        if (!frame.workspace)
            throw CallError{CUVIL_ERROR_MEMORY, needed == UINT64_MAX
                                                    ? "the workspace for these shapes is larger than any memory"
                                                    : "out of memory: the workspace for these shapes has " +
                                                          std::to_string(needed) + " bytes"};
        frame.workspace_bytes = needed;
    }

    cuvil_call& call = frame.call;
    call = {};
    call.size = sizeof call;
    call.host = &frame.host;
    call.weights = file_->view().weights().data();
    call.workspace = frame.workspace.get();
    call.dims = frame.dims.data();
    call.in = frame.in.data();
    call.out = frame.out.data();
    call.failure = &frame.failure;
    call.threads = threads_;
}

void Module::start(Frame& frame) {
    frame.host.trace = frame.options.trace ? host_trace : nullptr;
    frame.call.cancel = frame.options.cancel;
    const int32_t status = level_->run(&frame.call);
    if (status == CUVIL_OK) return;
    if (status == CUVIL_ERROR_MEMORY) throw CallError{status, "out of memory: the module could not allocate an output"};
    if (status == CUVIL_ERROR_CANCELLED) throw CallError{status, "the run was cancelled"};
    throw CallError{status, failure_text(manifest_, frame.failure)};
}

} // namespace cuvil::rt
