#include "peer.hpp"

#include "interrupt.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace cuvil::cli {
namespace {

// Arguments: model, threads, then NAME FILE of each input. Each line of its input asks for something, in JSON, and is
// answered so: {"measure": [ITERATIONS, SECONDS]} by the times of runs, {"values": [NAME...], "folder": FOLDER} by the
// number of files 0.npy, 1.npy, ... that it wrote. Values inside of the model become outputs: messages of protobuf that
// are appended are merged.
constexpr const char* script = R"(
import json, os, sys, time

def say(answer):
    print(json.dumps(answer), flush=True)

try:
    import numpy as np
    import onnxruntime as ort
except ImportError:
    say({"missing": True})
    sys.exit()

def session_of(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(sys.argv[2])
    if isinstance(model, bytes):
        folder = os.path.dirname(os.path.abspath(sys.argv[1]))
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

def load(file):
    array = np.load(file)
    return array.astype(object) if array.dtype.kind == "U" else array

def field(number, content):
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    return varint(number << 3 | 2) + varint(len(content)) + content

def with_outputs(names):
    with open(sys.argv[1], "rb") as file:
        model = file.read()
    return model + field(7, b"".join(field(12, field(1, name.encode())) for name in names))

def measure(iterations, seconds):
    times = []
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        session.run(None, feeds)
        end = time.perf_counter()
        times.append(end - start)
        if len(times) >= iterations if iterations else end - begin >= seconds:
            return times

def save_values(names, folder):
    known = [output.name for output in session.get_outputs()]
    inner = [name for name in names if name not in known]
    found = (session_of(with_outputs(inner)) if inner else session).run(names, feeds)
    for i, value in enumerate(found):
        value = np.asarray(value)
        np.save(os.path.join(folder, f"{i}.npy"), value.astype(str) if value.dtype == object else value)
    return len(found)

try:
    session = session_of(sys.argv[1])
    feeds = {name: load(file) for name, file in zip(sys.argv[3::2], sys.argv[4::2])}
    session.run(None, feeds)
except Exception as error:
    say({"failed": str(error)})
    sys.exit()
say({"version": ort.__version__})
for line in sys.stdin:
    request = json.loads(line)
    try:
        say(measure(*request["measure"]) if "measure" in request else save_values(request["values"], request["folder"]))
    except Exception as error:
        say({"failed": str(error)})
)";

// $CUVIL_PYTHON, or else the one beside this program and the first of $PATH.
std::vector<std::string> pythons() {
    if (const char* chosen = std::getenv("CUVIL_PYTHON"); chosen && *chosen) return {chosen};
    std::error_code ignored;
    const std::filesystem::path beside =
        std::filesystem::read_symlink("/proc/self/exe", ignored).replace_filename("python3");
    std::vector<std::string> found;
    if (std::filesystem::exists(beside, ignored)) found.push_back(beside);
    found.emplace_back("python3");
    return found;
}

std::filesystem::path new_folder() {
    std::string name = std::filesystem::temp_directory_path() / "cuvil-peer-XXXXXX";
    if (!mkdtemp(name.data())) throw InputError(fmt::format("cannot make the folder {}", name));
    return name;
}

} // namespace

Peer::Peer(const std::string& model, const std::vector<Port>& inputs, const Feeds& feeds, int threads)
    : folder_(new_folder()) {
    std::vector<std::string> arguments = {"-c", script, model, std::to_string(threads)};
    try {
        for (size_t i = 0; i < inputs.size(); i++) {
            if (feeds.values[i].tag == CUVIL_NONE) continue;
            const std::filesystem::path file = folder_ / fmt::format("{}.npy", i);
            write_npy(file, feeds.values[i]);
            arguments.insert(arguments.end(), {inputs[i].name, file});
        }
        for (const std::string& python : pythons()) {
            if (!start(python, arguments)) continue;
            const nlohmann::json answer = nlohmann::json::parse(read_line(), nullptr, false);
            if (answer.is_object() && answer.contains("failed"))
                throw InputError(fmt::format("onnxruntime refuses {}: {}", model, answer["failed"].get<std::string>()));
            if (answer.is_object() && answer.contains("version")) {
                name_ = "onnxruntime " + answer["version"].get<std::string>();
                return;
            }
            end();
        }
        throw InputError("there is no Python with onnxruntime to compare with: install it with `pip install "
                         "onnxruntime`, or name another Python in $CUVIL_PYTHON");
    } catch (...) {
        end();
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        throw;
    }
}

Peer::~Peer() {
    end();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

bool Peer::start(const std::string& python, const std::vector<std::string>& arguments) {
    std::array<int, 2> in{}, out{};
    if (pipe2(in.data(), O_CLOEXEC) != 0) return false;
    if (pipe2(out.data(), O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    std::vector<char*> words = {const_cast<char*>(python.c_str())};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t process = -1;
    const int failed = posix_spawnp(&process, python.c_str(), &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    process_ = failed ? -1 : process;
    if (failed) end();
    return !failed;
}

// Empty when the child has gone.
std::string Peer::read_line() {
    for (;;) {
        if (const size_t end = buffered_.find('\n'); end != std::string::npos) {
            std::string line = buffered_.substr(0, end);
            buffered_.erase(0, end + 1);
            return line;
        }
        std::array<char, 1 << 16> block;
        const ssize_t size = ::read(from_, block.data(), block.size());
        if (interrupted()) throw Cancelled();
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return "";
        buffered_.append(block.data(), static_cast<size_t>(size));
    }
}

void Peer::end() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    to_ = from_ = -1;
    if (process_ > 0) {
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
    }
    process_ = -1;
    buffered_.clear();
}

nlohmann::json Peer::ask(const nlohmann::json& request) {
    const std::string line = request.dump() + "\n";
    const bool is_sent = ::write(to_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    nlohmann::json answer = nlohmann::json::parse(is_sent ? read_line() : "", nullptr, false);
    if (answer.is_discarded()) throw InputError(fmt::format("{} ended before it had an answer", name_));
    if (answer.is_object()) throw InputError(fmt::format("{} fails: {}", name_, answer.value("failed", "")));
    return answer;
}

void Peer::measure(const Amount& amount, Latencies& out) {
    for (const nlohmann::json& seconds : ask({{"measure", {amount.iterations, amount.seconds}}}))
        out.add(seconds.get<double>());
}

std::vector<Array> Peer::values(const std::vector<std::string>& names) {
    const std::filesystem::path folder = folder_ / "values";
    std::filesystem::create_directory(folder);
    ask({{"values", names}, {"folder", folder.string()}});
    std::vector<Array> arrays;
    for (size_t i = 0; i < names.size(); i++) arrays.push_back(read_npy(folder / fmt::format("{}.npy", i)));
    std::filesystem::remove_all(folder);
    return arrays;
}

} // namespace cuvil::cli
