#include "codegen/clang.hpp"

#include "cuvil/diagnostic.hpp"

#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cuvil {

static const std::string root = "/cuvil/";

// Where LLVM gives up it calls this and would end the process. Leaving by an exception runs none of its destructors:
// what it worked on has to be left as it is.
static void give_up(void*, const char* reason, bool) { throw InternalError(std::string("LLVM gives up: ") + reason); }

void throw_fatal_errors() {
    static std::once_flag once;
    std::call_once(once, [] { llvm::install_fatal_error_handler(give_up); });
}

static void initialize_targets() {
    throw_fatal_errors();
    static std::once_flag once;
    std::call_once(once, [] {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeX86AsmParser();
    });
}

// Arguments of `clang -cc1`, whose defaults are not those of `clang`: exceptions, RTTI-free builds, unwind tables, PIC
// and vectorisers are as said here or off. Kernels spell out their vectors and unrolling, so -O1 gives the speed of -O3
// in half the time and is the default. -Wno-psabi: on levels with narrower registers vectors of 16 floats travel by
// memory, as intended.
static std::vector<std::string> compiler_arguments(const SourceJob& job) {
    return {
        "-triple=x86_64-unknown-linux-gnu",
        "-target-cpu",
        "x86-64-" + job.level,
        "-std=c++20",
        "-O" + std::to_string(job.effort),
        "-ffp-contract=off",
        "-ffreestanding",
        "-nostdsysteminc",
        "-nobuiltininc",
        "-fno-rtti",
        "-fno-threadsafe-statics",
        "-fvisibility=hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-mrelocation-model",
        "pic",
        "-pic-level",
        "2",
        "-mframe-pointer=all",
        "-mprefer-vector-width=512", // else v4 halves vectors of 16 floats that no function takes by value
        "-Qn",                       // no compiler version in the object
        "-Wno-psabi",
        "-DCUVIL_ISA=" + job.level,
        "-I" + root,
        "-xc++",
        root + job.name,
    };
}

std::string identity(const SourceJob& job) {
    std::string text = clang::getClangFullVersion();
    for (const std::string& argument : compiler_arguments(job)) text += '\0' + argument;
    return text + '\0' + std::to_string(static_cast<int>(job.output)) + '\0' + job.text;
}

static std::unique_ptr<clang::CodeGenAction> action_for(Output output, llvm::LLVMContext* context) {
    switch (output) {
    case Output::Llvm: return std::make_unique<clang::EmitLLVMAction>(context);
    case Output::Assembly: return std::make_unique<clang::EmitAssemblyAction>(context);
    case Output::Object: break;
    }
    return std::make_unique<clang::EmitObjAction>(context);
}

// What reaches LLVM's own handler: without one, an error of the back end ends the process.
struct BackendErrors {
    llvm::raw_ostream& text;
    bool any = false;

    static void handle(const llvm::DiagnosticInfo* info, void* self) {
        BackendErrors& errors = *static_cast<BackendErrors*>(self);
        if (info->getSeverity() != llvm::DS_Error) return;
        errors.any = true;
        llvm::DiagnosticPrinterRawOStream printer(errors.text);
        errors.text << "error: ";
        info->print(printer);
        errors.text << '\n';
    }
};

namespace {

// One run of Clang.
class Compilation {
public:
    Compilation(const SourceJob& job, std::span<const SourceFile> headers)
        : job_(job), text_(diagnostics_), options_(llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>()),
          printer_(text_, options_.get()) {
        auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
        files->addFile(root + job.name, 0, llvm::MemoryBuffer::getMemBufferCopy(job.text));
        for (const SourceFile& header : headers)
            files->addFile(root + std::string(header.name), 0, llvm::MemoryBuffer::getMemBufferCopy(header.text));
        compiler_.createDiagnostics(&printer_, /*ShouldOwnClient=*/false);
        compiler_.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
        compiler_.createFileManager(files);
    }

    JobResult run() {
        JobResult result;
        const std::vector<std::string> arguments = compiler_arguments(job_);
        std::vector<const char*> words;
        words.reserve(arguments.size());
        for (const std::string& argument : arguments) words.push_back(argument.c_str());
        if (clang::CompilerInvocation::CreateFromArgs(compiler_.getInvocation(), words, compiler_.getDiagnostics())) {
            compiler_.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(bytes_));
            context_.setDiscardValueNames(job_.output == Output::Object);
            context_.setDiagnosticHandlerCallBack(BackendErrors::handle, &errors_);
            action_ = action_for(job_.output, &context_);
            result.ok = compiler_.ExecuteAction(*action_) && !errors_.any;
            if (result.ok) result.bytes.assign(bytes_.begin(), bytes_.end());
        }
        result.diagnostics = diagnostics_;
        return result;
    }

private:
    const SourceJob& job_;
    std::string diagnostics_;
    llvm::raw_string_ostream text_;
    llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options_;
    clang::TextDiagnosticPrinter printer_;
    clang::CompilerInstance compiler_;
    llvm::SmallVector<char, 0> bytes_;
    llvm::LLVMContext context_;
    BackendErrors errors_{text_};
    std::unique_ptr<clang::CodeGenAction> action_;
};

} // namespace

JobResult compile_source(const SourceJob& job, std::span<const SourceFile> headers) {
    initialize_targets();
    auto compilation = std::make_unique<Compilation>(job, headers);
    try {
        return compilation->run();
    } catch (const InternalError& error) {
        (void)compilation.release();
        return {.bytes = {}, .diagnostics = error.what(), .ok = false};
    }
}

std::vector<JobResult> compile_all(std::span<const SourceJob> jobs, std::span<const SourceFile> headers,
                                   unsigned threads, const std::function<void(size_t done)>& progress,
                                   std::stop_token stop) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    threads = static_cast<unsigned>(std::min<size_t>(threads, jobs.size()));

    std::vector<JobResult> results(jobs.size());
    std::atomic<size_t> next = 0;
    std::mutex mutex; // over `done` and `working`
    std::condition_variable changed;
    size_t done = 0;
    size_t working = threads;

    const auto work = [&](const std::stop_token& abandoned) {
        while (!stop.stop_requested() && !abandoned.stop_requested()) {
            const size_t index = next.fetch_add(1);
            if (index >= jobs.size()) break;
            results[index] = compile_source(jobs[index], headers);
            const std::lock_guard lock(mutex);
            ++done;
            changed.notify_one();
        }
        const std::lock_guard lock(mutex);
        --working;
        changed.notify_one();
    };

    // Declared after all that the threads use: however this scope is left, they are stopped and joined first.
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) workers.emplace_back(work);

    size_t reported = 0;
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [&] { return done != reported || working == 0; });
        if (done == reported) break;
        reported = done;
        lock.unlock();
        if (progress) progress(reported);
        lock.lock();
    }
    return results;
}

} // namespace cuvil
