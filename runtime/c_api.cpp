// The functions of cuvil.h: no exception passes, and each failure leaves its sentence.
#pragma GCC visibility push(default)
#include "cuvil/cuvil.h"
#pragma GCC visibility pop

#include "runtime/bound_call.hpp"
#include "runtime/loader.hpp"
#include "runtime/values.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

struct cuvil_module {
    cuvil::rt::Module module;
};

struct cuvil_bound {
    cuvil::rt::BoundCall call;
};

namespace {

using namespace cuvil;
using namespace cuvil::rt;

thread_local std::string error_message;

int32_t fail(int32_t status, const char* message) noexcept {
    try {
        error_message = message;
    } catch (...) {
        error_message.clear(); // no memory even for the sentence
    }
    return status;
}

template <typename Body> int32_t guarded(Body body) noexcept {
    try {
        body();
        return CUVIL_OK;
    } catch (const CallError& error) {
        return fail(error.status, error.message.c_str());
    } catch (const std::bad_alloc&) {
        return fail(CUVIL_ERROR_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        return fail(CUVIL_ERROR_FILE, error.what());
    }
}

template <typename Open> int32_t load(Open open, int32_t threads, cuvil_module** module) {
    if (!module) return fail(CUVIL_ERROR_FILE, "there is no place for the module");
    *module = nullptr;
    return guarded([&] {
        std::string error;
        std::unique_ptr<ArtifactFile> file = open(error);
        if (!file) throw CallError{CUVIL_ERROR_FILE, error};
        *module = new cuvil_module{{std::move(file), threads}};
    });
}

// A caller of another version has another size of the struct; what it does not know is left out.
cuvil_run_options known(const cuvil_run_options* options) {
    cuvil_run_options known{};
    if (options) memcpy(&known, options, std::min<uint64_t>(options->size, sizeof known));
    return known;
}

const char* name_at(const std::vector<ValueSpec>& values, int32_t index) {
    return index >= 0 && index < static_cast<int64_t>(values.size()) ? values[index].name.c_str() : nullptr;
}

} // namespace

int32_t cuvil_load(const char* path, int32_t threads, cuvil_module** module) {
    return load([&](std::string& error) { return ArtifactFile::open(path ? path : "", error); }, threads, module);
}

int32_t cuvil_load_memory(const void* bytes, uint64_t size, int32_t threads, cuvil_module** module) {
    const std::string_view image(static_cast<const char*>(bytes), bytes ? size : 0);
    return load([&](std::string& error) { return ArtifactFile::copy(image, error); }, threads, module);
}

void cuvil_unload(cuvil_module* module) { delete module; }

const char* cuvil_error_message(void) { return error_message.c_str(); }

const char* cuvil_manifest(const cuvil_module* module) { return module->module.manifest_json().c_str(); }

const char* cuvil_level_name(const cuvil_module* module) { return module->module.level().name; }

int32_t cuvil_input_count(const cuvil_module* module) {
    return static_cast<int32_t>(module->module.manifest().inputs.size());
}

int32_t cuvil_output_count(const cuvil_module* module) {
    return static_cast<int32_t>(module->module.manifest().outputs.size());
}

const char* cuvil_input_name(const cuvil_module* module, int32_t index) {
    return name_at(module->module.manifest().inputs, index);
}

const char* cuvil_output_name(const cuvil_module* module, int32_t index) {
    return name_at(module->module.manifest().outputs, index);
}

int32_t cuvil_run(cuvil_module* module, const cuvil_value* in, cuvil_value* out) {
    return guarded([&] { module->module.run(in, out, {}); });
}

int32_t cuvil_run_with(cuvil_module* module, const cuvil_value* in, cuvil_value* out,
                       const cuvil_run_options* options) {
    return guarded([&] { module->module.run(in, out, known(options)); });
}

int32_t cuvil_bind(cuvil_module* module, const cuvil_value* in, cuvil_value* out, cuvil_bound** bound) {
    if (!bound) return fail(CUVIL_ERROR_NAME, "there is no place for the bound call");
    *bound = nullptr;
    return guarded([&] { *bound = new cuvil_bound{{module->module, in, out}}; });
}

int32_t cuvil_run_bound(cuvil_bound* bound, const cuvil_run_options* options) {
    return guarded([&] { bound->call.run(known(options)); });
}

void cuvil_unbind(cuvil_bound* bound) { delete bound; }

void cuvil_value_release(cuvil_value* value) {
    if (value) cuvil::rt::release_value(*value);
}
