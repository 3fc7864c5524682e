// Meets the loader as any host does that opens it by dlopen. Its first argument is libcuvil_rt.so, its second one of:
//   quiet FILE    runs the `scale` module on one thread between two getppid calls, with all memory given
//   threads FILE  runs the `steps` module on three threads, forks, runs again in both processes, and closes the library
//   exit FILE     leaves main while another thread is running the module on three threads
#include "cuvil/cuvil.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

struct Loader {
    explicit Loader(const char* path) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
        load = reinterpret_cast<decltype(load)>(dlsym(library, "cuvil_load"));
        run = reinterpret_cast<decltype(run)>(dlsym(library, "cuvil_run"));
        unload = reinterpret_cast<decltype(unload)>(dlsym(library, "cuvil_unload"));
        message = reinterpret_cast<decltype(message)>(dlsym(library, "cuvil_error_message"));
    }
    cuvil_module* open(const char* path, int32_t threads) const {
        cuvil_module* module = nullptr;
        if (load(path, threads, &module) == CUVIL_OK) return module;
        fprintf(stderr, "%s\n", message());
        exit(2);
    }

    void* library;
    decltype(&cuvil_load) load;
    decltype(&cuvil_run) run;
    decltype(&cuvil_unload) unload;
    decltype(&cuvil_error_message) message;
};

cuvil_value tensor(void* data, cuvil_dtype dtype, std::vector<int64_t>& shape) {
    cuvil_value value{};
    value.tag = CUVIL_TENSOR;
    value.as.tensor = {data, 1, 0, static_cast<int32_t>(shape.size()), dtype, shape.data(), nullptr, 0};
    return value;
}

int quiet(const Loader& loader, const char* path) {
    cuvil_module* module = loader.open(path, 1);
    std::vector<int64_t> shape = {8, 4}, scalar;
    float x[32] = {}, y[32];
    int32_t level = 0;
    const cuvil_value in = tensor(x, {2, 32, 1}, shape);
    cuvil_value out[] = {tensor(y, {2, 32, 1}, shape), tensor(&level, {0, 32, 1}, scalar)};
    int32_t status = loader.run(module, &in, out);
    getppid();
    for (int i = 0; i < 10; i++) status |= loader.run(module, &in, out);
    getppid();
    loader.unload(module);
    return status;
}

bool steps_are_right(const Loader& loader, cuvil_module* module) {
    std::vector<int64_t> shape = {100}, scalar, x(100, 1), y(100);
    int64_t count = 2;
    const cuvil_value in[] = {tensor(x.data(), {0, 64, 1}, shape), tensor(&count, {0, 64, 1}, scalar)};
    cuvil_value out = tensor(y.data(), {0, 64, 1}, shape);
    if (loader.run(module, in, &out) != CUVIL_OK) return false;
    for (int64_t i = 0; i < 100; i++)
        if (y[i] != 9 + 4 * i) return false;
    return true;
}

int threads(const Loader& loader, const char* path) {
    cuvil_module* module = loader.open(path, 3);
    bool right = true;
    for (int i = 0; i < 50; i++) right &= steps_are_right(loader, module);
    const pid_t child = fork();
    for (int i = 0; i < 50; i++) right &= steps_are_right(loader, module);
    loader.unload(module);
    dlclose(loader.library);
    if (child == 0) return right ? 0 : 1;
    int status = 0;
    waitpid(child, &status, 0);
    return right && status == 0 ? 0 : 1;
}

int leave(const Loader& loader, const char* path) {
    cuvil_module* module = loader.open(path, 3);
    std::thread([&loader, module] {
        while (steps_are_right(loader, module)) continue;
        _exit(1);
    }).detach();
    usleep(20000);
    exit(0); // not a return: the loader object lives on for the other thread
}

} // namespace

int main(int count, char** arguments) {
    if (count != 4) return 2;
    const Loader loader(arguments[1]);
    if (strcmp(arguments[2], "quiet") == 0) return quiet(loader, arguments[3]);
    if (strcmp(arguments[2], "threads") == 0) return threads(loader, arguments[3]);
    if (strcmp(arguments[2], "exit") == 0) return leave(loader, arguments[3]);
    return 2;
}
