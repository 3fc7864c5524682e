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
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

namespace cuvil {

static const std::string root = "/cuvil/";
static constexpr std::chrono::milliseconds between_reports(50);

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

namespace {

// Threads that go on in Clang, which nothing can stop, after their compilation has ended. Never destroyed.
struct LeftThreads {
    std::mutex mutex;
    std::condition_variable ended;
    size_t count = 0;
    pid_t process = 0; // a fork has none of them
};

LeftThreads& left_threads() {
    static auto& all = *new LeftThreads;
    [[maybe_unused]] static const int registered = std::atexit(wait_for_left_threads);
    return all;
}

// What the threads of one compilation share and, together with the caller, own.
struct Work {
    const std::vector<SourceJob> jobs;
    const std::span<const SourceFile> headers;

    std::mutex mutex; // over what follows
    std::condition_variable changed;
    std::vector<JobResult> results = std::vector<JobResult>(jobs.size());
    size_t next = 0, done = 0, working = 0;
    bool is_left = false;

    void run() {
        std::unique_lock lock(mutex);
        while (!is_left && next < jobs.size()) {
            const size_t index = next++;
            lock.unlock();
            JobResult result = compile_source(jobs[index], headers);
            lock.lock();
            results[index] = std::move(result);
            ++done;
            changed.notify_one();
        }
        --working;
        changed.notify_one();
        if (!is_left) return;
        LeftThreads& left = left_threads();
        const std::lock_guard left_lock(left.mutex);
        --left.count;
        left.ended.notify_all();
    }
};

// The threads. However their scope is left: they are joined where all is done, else they end by themselves.
class Workers {
public:
    explicit Workers(std::shared_ptr<Work> work) : work_(std::move(work)) {}
    Workers(const Workers&) = delete;
    ~Workers() {
        const bool is_left = leave();
        for (std::thread& thread : threads_) is_left ? thread.detach() : thread.join();
    }

    void start(size_t count) {
        threads_.reserve(count);
        for (size_t i = 0; i < count; ++i) {
            const std::lock_guard lock(work_->mutex);
            threads_.emplace_back([work = work_] { work->run(); });
            ++work_->working;
        }
    }

private:
    bool leave() {
        const std::lock_guard lock(work_->mutex);
        if (work_->working == 0) return false;
        work_->is_left = true;
        LeftThreads& left = left_threads();
        const std::lock_guard left_lock(left.mutex);
        if (std::exchange(left.process, getpid()) != getpid()) left.count = 0;
        left.count += work_->working;
        return true;
    }

    std::shared_ptr<Work> work_;
    std::vector<std::thread> threads_;
};

} // namespace

void wait_for_left_threads() {
    LeftThreads& left = left_threads();
    std::unique_lock lock(left.mutex);
    if (left.process == getpid()) left.ended.wait(lock, [&] { return left.count == 0; });
}

std::vector<JobResult> compile_all(std::vector<SourceJob> jobs, std::span<const SourceFile> headers, unsigned threads,
                                   const std::function<void(size_t done)>& progress, const std::stop_token& stop) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    const size_t count = std::min<size_t>(threads, jobs.size());
    const auto work = std::make_shared<Work>(std::move(jobs), headers);
    Workers workers(work);
    workers.start(count);

    std::unique_lock lock(work->mutex);
    for (size_t reported = 0; !stop.stop_requested();) {
        const auto has_news = [&] { return work->done != reported || work->working == 0; };
        work->changed.wait_for(lock, between_reports, has_news);
        if (work->working == 0 && work->done == reported) break;
        reported = work->done;
        lock.unlock();
        if (progress) progress(reported);
        lock.lock();
    }
    return std::exchange(work->results, std::vector<JobResult>(work->jobs.size()));
}

} // namespace cuvil
