// SPDX-License-Identifier: Apache-2.0
// The functions of weighbridge/c.h over the library. Owns the only place where its exceptions become values.
#include "weighbridge/c.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "weighbridge/convert.h"
#include "weighbridge/delta.h"
#include "weighbridge/derivation.h"
#include "weighbridge/diff.h"
#include "weighbridge/dtype.h"
#include "weighbridge/edit.h"
#include "weighbridge/formats.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"
#include "weighbridge/manifest.h"
#include "weighbridge/open.h"
#include "weighbridge/options.h"
#include "weighbridge/output.h"
#include "weighbridge/place.h"
#include "weighbridge/policy.h"
#include "weighbridge/source.h"
#include "weighbridge/text.h"
#include "weighbridge/verify.h"
#include "weighbridge/version.h"
#include "weighbridge/view.h"

using namespace weighbridge;

struct wb_error {
  wb_kind kind = WB_INTERNAL;
  std::string message{}, file{}, expected{}, found{}, hint{};  // escaped
  Finding exact{};
};
struct wb_job {
  Limits limits{};
  std::shared_ptr<Executor> executor{};
  wb_progress progress = nullptr;
  void* user = nullptr;
  mutable std::mutex in_hook{};  // calls that share the job take turns
  std::atomic<bool> cancelled{false};
};
struct wb_options {
  OpenOptions open{};
  Options convert{};
  ViewOptions view{};
  DiffOptions diff{};
  EditOptions edit{};
  ManifestOptions manifest{};
  ManifestCheck check{};
  struct Pem {
    std::shared_ptr<const Source> key{}, certificate{}, public_key{}, roots{};
    std::vector<std::shared_ptr<const Source>> chain{};
  } pem{};
  std::string to{};
  struct Given {
    std::string name{};
    std::vector<OptionOf> taken{};  // the kinds that have it
    std::string refused{};          // what another kind with an option of this name said of its value
  };
  std::vector<Given> given{};
};
struct wb_model {
  wb_model(std::string opened_path, Model opened, Report found)
      : path(std::move(opened_path)), model(std::move(opened)), report(std::move(found)) {
    names.reserve(model.size());
    for (const Tensor& tensor : model) names.emplace_back(tensor.name());
  }
  std::string path;  // as the caller named it
  Model model;
  Report report;                   // warnings of opening
  std::vector<std::string> names;  // each ends with a NUL, unlike those of the model
};
struct wb_plan {
  Plan plan;
  std::string from, path;  // the names of input and output
  bool possible = plan.possible();
};

namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "wb_job_cancel() may be called by a signal handler");

// Nothing can be allocated for it: the text is short enough to lie in the string itself.
wb_error& no_memory() {
  static wb_error error{WB_MEMORY, "out of memory"};
  return error;
}

wb_kind kind_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::malformed: return WB_MALFORMED;
    case Kind::unsupported: return WB_UNSUPPORTED;
    case Kind::misuse: return WB_MISUSE;
    case Kind::io: return WB_IO;
    case Kind::limit: return WB_LIMIT;
  }
  return WB_INTERNAL;
}

wb_error* error_of(wb_kind kind, std::string_view message, const Finding& finding = {}) {
  return new wb_error{kind,
                      escape_for_display(message),
                      escape_for_display(finding.file.name),
                      escape_for_display(finding.expected),
                      escape_for_display(finding.found),
                      escape_for_display(finding.hint.name),
                      finding};
}

// Runs `work` and returns what it throws.
template <class Work> wb_error* guarded(Work&& work) noexcept {
  try {
    try {
      work();
      return nullptr;
    } catch (const Error& error) {
      const Finding& found = error.finding();  // what() ends at a NUL
      return error_of(kind_of(found.kind), (found.file.empty() ? "" : found.file.name + ": ") + found.message, found);
    } catch (const Cancelled& cancelled) {
      return error_of(WB_CANCELLED, cancelled.what());
    } catch (const std::bad_alloc&) {
      return &no_memory();
    } catch (const std::exception& error) {
      return error_of(WB_INTERNAL, error.what());
    } catch (...) {
      return error_of(WB_INTERNAL, "a progress function threw an exception");
    }
  } catch (...) {
    return &no_memory();
  }
}

// Names the file in the errors of `work` that are about it.
template <class Work> auto about(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.kind() == Kind::misuse) throw;
    throw error.in(path);
  }
}

template <class T> T& given(T* object, const char* what) {
  if (object == nullptr) base::misuse("null", std::string(what) + " is NULL");
  return *object;
}
// Checks the output before it makes what goes there.
template <class T, class Make> void give(T** out, Make&& make) {
  T*& to = given(out, "the output");
  to = make();
}

// The job whose hook this thread is in. A call that a hook makes with that job works in this thread and calls no hook:
// another thread of it would wait for the hook that waits for the call.
thread_local const wb_job* in_hook_of = nullptr;

Context context_of(const wb_job* job) {
  Context out;
  if (job == nullptr) return out;
  const auto cancelled = [job] { return job->cancelled.load(std::memory_order_relaxed); };
  if (cancelled()) throw Cancelled{};
  out.limits = job->limits;
  if (in_hook_of == job) {
    out.progress = [cancelled](std::uint64_t, std::uint64_t) { return !cancelled(); };
    return out;
  }
  out.executor = job->executor;
  out.progress = [job, cancelled](std::uint64_t done, std::uint64_t total) {
    if (cancelled()) return false;
    if (job->progress == nullptr) return true;
    const std::scoped_lock lock(job->in_hook);
    const struct Inside {
      const wb_job* before;
      ~Inside() { in_hook_of = before; }
    } inside{std::exchange(in_hook_of, job)};
    return job->progress(done, total, job->user) != 0;
  };
  return out;
}

char* text_of(std::string_view text) {
  auto* const out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out == nullptr) throw std::bad_alloc();
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return out;
}

// The object of one file as the list that the command prints.
char* text_of_file(const std::string& file) {
  return text_of(std::string(kJsonFilesBegin).append(file).append(kJsonFilesEnd));
}

Tensor tensor_of(const wb_model* model, std::size_t tensor) {
  const Model& all = given(model, "the model").model;
  if (tensor >= all.size())
    base::misuse("tensor", "there is no tensor " + std::to_string(tensor) + " of " + std::to_string(all.size()));
  return all[static_cast<std::uint32_t>(tensor)];
}

// What an accessor returns for a tensor, or `otherwise` if there is none.
template <class T, class Get> T of_tensor(const wb_model* model, std::size_t tensor, T otherwise, Get&& get) noexcept {
  if (model == nullptr || tensor >= model->model.size()) return otherwise;
  return get(model->model[static_cast<std::uint32_t>(tensor)]);
}
// Likewise of its shape. There may be none.
template <class T, class Get> T of_shape(const wb_model* model, std::size_t tensor, T otherwise, Get&& get) noexcept {
  return of_tensor(model, tensor, otherwise,
                   [&](const Tensor& t) { return t.has_shape() ? get(t.shape()) : otherwise; });
}
const char* of_error(const wb_error* error, std::string wb_error::*text) noexcept {
  return error == nullptr ? "" : (error->*text).c_str();
}

DType named_dtype(const Tensor& tensor, const char* name) {
  if (name == nullptr) return tensor.dtype();
  if (const auto found = dtype_from_any_name(name)) return *found;
  base::misuse("dtype", "unknown dtype " + core::quoted(name));
}

void read(const Tensor& tensor, DType dtype, std::uint64_t first, std::uint64_t count, std::span<std::byte> out,
          const Context& context) {
  const std::uint64_t all = base::element_count(tensor.shape()).value_or(0), bits = info(dtype).bits;
  const std::uint64_t end = base::checked_add(first, count).value_or(UINT64_MAX);
  if (end > all)
    base::misuse("range", fmt::format("the tensor has {} elements; {} is past its end", all, std::max(first, end)));
  const auto on_boundary = [&](std::uint64_t at) { return at * (bits % 8) % 8 == 0; };
  if (!on_boundary(first) || (!on_boundary(end) && end != all))
    base::misuse("range", fmt::format("elements [{}, {}) of {} do not begin and end on byte boundaries", first, end,
                                      name(dtype)));
  const auto begin = packed_size(dtype, first), size = packed_size(dtype, count);
  if (!begin || size != out.size())
    base::misuse("range", fmt::format("these {} elements take {} bytes; the buffer has {}", count, size.value_or(0),
                                      out.size()));
  if (out.empty()) return;
  const auto elements = core::elements_of(tensor, dtype);
  // The stored elements may be shorter than a byte where those of `dtype` are not.
  const std::uint64_t step = info(tensor.dtype()).bits % 8 == 0 ? 1 : 8;
  const std::uint64_t from = first - first % step, to = std::min(all, end + (step - end % step) % step);
  if (from == first && to == end) return elements->read(first, count, out, context);
  std::vector<std::byte> wide(base::to_size(packed_size(dtype, to - from).value_or(0)));
  elements->read(from, to - from, wide, context);
  std::copy_n(wide.begin() + static_cast<std::ptrdiff_t>((first - from) * bits / 8), out.size(), out.begin());
}

std::shared_ptr<const Source> file_at(const std::string& path) {
  return about(path, [&] { return open_file(path); });
}

void set_pem(wb_options::Pem& to, const std::string& name, const std::string& path) {
  auto file = file_at(path);
  if (name == "chain")
    to.chain.push_back(std::move(file));
  else
    (name == "key"           ? to.key
     : name == "certificate" ? to.certificate
     : name == "roots"       ? to.roots
                             : to.public_key) = std::move(file);
}

void set_option_of(wb_options& all, OptionOf kind, const std::string& name, const std::string& text) {
  switch (kind) {
    case OptionOf::open: return all.open.set(name, text);
    case OptionOf::view: return all.view.add(name, text);
    case OptionOf::diff: return all.diff.add(name, text);
    case OptionOf::edit: return all.edit.add(name, text);
    case OptionOf::manifest: return all.manifest.set(name, text);
    case OptionOf::check: return all.check.set(name, text);
    case OptionOf::sign:
    case OptionOf::trust: return set_pem(all.pem, name, text);
    default: return all.convert.set(name, text);
  }
}

// What takes the options of a kind, for messages.
std::string_view purpose(OptionOf kind) noexcept {
  switch (kind) {
    case OptionOf::open: return "opening";
    case OptionOf::diff: return "comparisons";
    case OptionOf::edit: return "edits";
    case OptionOf::manifest:
    case OptionOf::check: return "manifests";
    case OptionOf::sign:
    case OptionOf::trust: return "signatures";
    default: return "conversions";
  }
}

// An option of one name may be of several kinds, whose calls read the text each in its way.
void set_option(wb_options& all, const std::string& name, const std::string& text) {
  if ((name == "format" || name == "to") && find_format(text) == nullptr)
    base::misuse("format", "unknown format " + core::quoted(text));
  wb_options::Given entry{name};
  std::optional<Error> refused;
  if (name == "to") {
    all.to = text;
    entry.taken.push_back(OptionOf::convert);
  }
  for (const OptionInfo& option : all_options()) {
    if (option.name != name || !option.c) continue;
    try {
      set_option_of(all, option.of, name, text);
      entry.taken.push_back(option.of);
    } catch (const Error& error) {
      entry.refused = error.finding().message;
      if (!refused) refused = error;
    }
  }
  if (entry.taken.empty()) {
    if (refused) throw Error(*refused);
    all.convert.set(name, text);  // says that there is none
  }
  all.given.push_back(std::move(entry));
}

// The options, all of which must be of one of these kinds, or have one of these names.
const wb_options& options_for(const wb_options* options, std::initializer_list<OptionOf> kinds,
                              std::initializer_list<std::string_view> names = {}) {
  static const wb_options none;
  if (options == nullptr) return none;
  const auto has = [](const auto& all, const auto& one) { return std::find(all.begin(), all.end(), one) != all.end(); };
  for (const wb_options::Given& each : options->given) {
    if (has(names, each.name) || std::ranges::any_of(kinds, [&](OptionOf kind) { return has(each.taken, kind); }))
      continue;
    if (std::ranges::any_of(kinds, [&](OptionOf kind) { return find_option(kind, each.name) != nullptr; }))
      base::misuse("option", each.refused);
    base::misuse("option", core::quoted(each.name) + " is an option for " + std::string(purpose(each.taken.front())));
  }
  return *options;
}

// The text of a small file. An empty one would mean that none was given.
std::string text_at(const std::shared_ptr<const Source>& file, std::string_view what) {
  if (file == nullptr) return {};
  std::string text = core::whole_text(*file, {.header = std::uint64_t{1} << 20}, what);
  if (text.empty()) base::misuse_of(file->name(), "key", "the file is empty, so it is not a key or certificate");
  return text;
}

// A policy of the library by its name, else a file.
Policy policy_of(const std::string& name) {
  if (const std::string_view ready = ready_policy(name); !ready.empty()) return read_policy(ready, name);
  return about(name, [&] { return read_policy(core::whole_text(*open_file(name), {}, "the policy"), name); });
}

// Stores the result of work that is done: a lack of memory is no reason to say that it failed.
template <class Make> void give_done(char** json, Make&& make) {
  if (json != nullptr) try {
      *json = text_of(make());
    } catch (const std::bad_alloc&) {
      *json = nullptr;
    }
}

std::vector<Model> models_of(const wb_model* const* models, std::size_t count) {
  std::vector<Model> out;
  if (count > 0) given(models, "the list of patches");
  for (std::size_t i = 0; i < count; ++i) out.push_back(given(models[i], "a patch").model);
  return out;
}

// Writes the patch that `make` makes.
template <class Make>
void write_patch(const std::string& from, const char* output, const wb_options& options, const wb_job* job, char** json,
                 Make&& make) {
  const std::string path = &given(output, "the output");
  const Context context = context_of(job);
  OutputFile::check(path, options.convert.replace);  // before anything is compared
  const Model patch = make(PatchOptions{.scratch = path, .metadata = options.diff.metadata}, context);
  const PatchInfo info = patch_info(patch, context);
  plan(patch, "zt", {.encoding = "zstd", .replace = options.convert.replace}).execute(path, context);
  give_done(json, [&] { return to_json(from, path, info); });
}

}  // namespace

extern "C" {

const char* wb_version(void) { return version().data(); }  // a static text
void wb_text_free(char* text) { std::free(text); }

int wb_error_kind(const wb_error* error) { return error == nullptr ? 0 : error->kind; }
const char* wb_error_message(const wb_error* error) { return of_error(error, &wb_error::message); }
const char* wb_error_rule(const wb_error* error) { return error == nullptr ? "" : error->exact.rule.c_str(); }
const char* wb_error_file(const wb_error* error) { return of_error(error, &wb_error::file); }
const char* wb_error_expected(const wb_error* error) { return of_error(error, &wb_error::expected); }
const char* wb_error_found(const wb_error* error) { return of_error(error, &wb_error::found); }
const char* wb_error_hint(const wb_error* error) { return of_error(error, &wb_error::hint); }
const char* wb_error_tensor(const wb_error* error, std::size_t* length) {
  const bool has = error != nullptr && error->exact.has_tensor;
  if (length != nullptr) *length = has ? error->exact.tensor.size() : 0;
  return has ? error->exact.tensor.c_str() : nullptr;
}
int wb_error_offset(const wb_error* error, std::uint64_t* offset) {
  if (error == nullptr || !error->exact.offset) return 0;
  if (offset != nullptr) *offset = *error->exact.offset;
  return 1;
}
wb_error* wb_error_json(const wb_error* error, char** json) {
  return guarded([&] {
    const Finding& exact = given(error, "the error").exact;
    give(json, [&] { return text_of(exact.rule.empty() ? "null" : to_json(exact)); });
  });
}
void wb_error_free(wb_error* error) {
  if (error != &no_memory()) delete error;
}

wb_error* wb_job_new(wb_job** out) {
  return guarded([&] { give(out, [] { return new wb_job; }); });
}
wb_error* wb_job_set_limit(wb_job* job, const char* name, std::uint64_t value) {
  return guarded([&] { set_limit(given(job, "the job").limits, &given(name, "the name of a limit"), value); });
}
wb_error* wb_job_set_threads(wb_job* job, unsigned threads) {
  return guarded([&] {
    constexpr unsigned kMaxThreads = 1024;  // as for --threads
    given(job, "the job");
    if (threads > kMaxThreads)
      base::misuse("threads",
                   "threads must be at most " + std::to_string(kMaxThreads) + ", not " + std::to_string(threads));
    job->executor = threads == 1 ? nullptr : thread_executor(threads);
  });
}
void wb_job_set_progress(wb_job* job, wb_progress progress, void* user) {
  if (job == nullptr) return;
  job->progress = progress;
  job->user = user;
}
void wb_job_cancel(wb_job* job) {
  if (job != nullptr) job->cancelled.store(true, std::memory_order_relaxed);
}
void wb_job_free(wb_job* job) { delete job; }

wb_error* wb_options_new(wb_options** out) {
  return guarded([&] { give(out, [] { return new wb_options; }); });
}
wb_error* wb_options_set(wb_options* options, const char* name, const char* value) {
  return guarded([&] {
    wb_options& all = given(options, "the options");
    const std::string option = &given(name, "the name of an option");
    const std::string_view text = &given(value, "the value of an option");
    set_option(all, option, std::string(text));
  });
}
void wb_options_free(wb_options* options) { delete options; }

wb_error* wb_open(const char* path, const wb_options* options, const wb_job* job, wb_model** out) {
  return guarded([&] {
    const std::string file = &given(path, "the path");
    give(out, [&] {
      return about(file, [&] {
        Report report;
        auto model = open(file, report, context_of(job), options_for(options, {OptionOf::open}).open);
        if (!model) throw Error(*report.first_error());
        return new wb_model(file, *std::move(model), std::move(report));
      });
    });
  });
}
const char* wb_model_format(const wb_model* model) {
  return model == nullptr ? "" : model->model.format().data();  // a static text
}
std::size_t wb_model_size(const wb_model* model) { return model == nullptr ? 0 : model->model.size(); }
std::size_t wb_model_find(const wb_model* model, const char* name, std::size_t length) {
  if (model == nullptr || (name == nullptr && length > 0)) return wb_model_size(model);
  const auto found = model->model.find(std::string_view(name, length));
  return found ? found->index() : model->model.size();
}
const char* wb_tensor_name(const wb_model* model, std::size_t tensor, std::size_t* length) {
  const std::string* const name = model != nullptr && tensor < model->names.size() ? &model->names[tensor] : nullptr;
  if (length != nullptr) *length = name == nullptr ? 0 : name->size();
  return name == nullptr ? nullptr : name->c_str();
}
int wb_tensor_readable(const wb_model* model, std::size_t tensor) {
  return of_tensor(model, tensor, 0, [](const Tensor& t) { return t.unsupported() == nullptr ? 1 : 0; });
}
const char* wb_tensor_dtype(const wb_model* model, std::size_t tensor) {
  return of_tensor(model, tensor, static_cast<const char*>(nullptr),
                   [](const Tensor& t) { return name(t.dtype()).data(); });  // a static text
}
int wb_tensor_has_shape(const wb_model* model, std::size_t tensor) {
  return of_shape(model, tensor, 0, [](Shape) { return 1; });
}
std::size_t wb_tensor_rank(const wb_model* model, std::size_t tensor) {
  return of_shape(model, tensor, std::size_t{0}, [](Shape shape) { return shape.size(); });
}
const std::uint64_t* wb_tensor_shape(const wb_model* model, std::size_t tensor) {
  return of_shape(model, tensor, static_cast<const std::uint64_t*>(nullptr),
                  [](Shape shape) { return shape.empty() ? nullptr : shape.data(); });
}
std::uint64_t wb_tensor_count(const wb_model* model, std::size_t tensor) {
  return of_shape(model, tensor, std::uint64_t{0}, [](Shape shape) { return base::element_count(shape).value_or(0); });
}
void wb_model_free(wb_model* model) { delete model; }

wb_error* wb_read(const wb_model* model, std::size_t tensor, const char* dtype, std::uint64_t first,
                  std::uint64_t count, void* out, std::size_t size, const wb_job* job) {
  return guarded([&] {
    const Tensor from = tensor_of(model, tensor);
    if (const Finding* const why = from.unsupported()) about(model->path, [&] { throw Error(*why); });
    if (size > 0) given(static_cast<std::byte*>(out), "the output");
    const DType as = named_dtype(from, dtype);
    about(model->path, [&] { read(from, as, first, count, {static_cast<std::byte*>(out), size}, context_of(job)); });
  });
}
wb_error* wb_inspect(const wb_model* model, char** json) {
  return guarded([&] {
    const Model& from = given(model, "the model").model;
    std::vector<std::uint32_t> all(from.size());
    std::iota(all.begin(), all.end(), 0U);
    give(json, [&] {
      return text_of_file(to_json({.path = model->path, .model = from, .tensors = all, .report = &model->report}));
    });
  });
}
wb_error* wb_verify(const char* path, const wb_options* options, const wb_job* job, int* verdict, char** json) {
  return guarded([&] {
    const std::string file = &given(path, "the path");
    const OpenOptions& opening = options_for(options, {OptionOf::open}).open;
    const Verdict found = about(file, [&] { return verify(file, context_of(job), opening); });
    if (json != nullptr) *json = text_of_file(to_json(file, found));
    if (verdict != nullptr)
      *verdict = !found.report.valid()                                             ? WB_INVALID
                 : found.report.unsupported() > 0 || !found.not_known_safe.empty() ? WB_INCONCLUSIVE
                                                                                   : WB_VALID;
  });
}
wb_error* wb_hash(const wb_model* model, int digest, const wb_job* job, char** text) {
  return guarded([&] {
    if (digest != WB_DIGEST_CONTENT && digest != WB_DIGEST_CONTENT_WITHOUT_NAMES)
      base::misuse("digest", "unknown digest " + std::to_string(digest));
    const Model& from = given(model, "the model").model;
    give(text, [&] {
      return about(model->path,
                   [&] { return text_of(content_digest(from, context_of(job), digest == WB_DIGEST_CONTENT).text()); });
    });
  });
}

wb_error* wb_plan_new(const wb_model* model, const char* path, const wb_options* options, const wb_job* job,
                      wb_plan** out) {
  return guarded([&] {
    const Model& from = given(model, "the model").model;
    const std::string to = &given(path, "the path");
    const wb_options& asked = options_for(options, {OptionOf::convert, OptionOf::view});
    const std::string format = asked.to.empty() ? std::string(format_of_output(to)) : asked.to;
    give(out, [&] {
      return new wb_plan{
          plan(asked.view.empty() ? from : view(from, asked.view), format, asked.convert, context_of(job)), model->path,
          to};
    });
  });
}
int wb_plan_possible(const wb_plan* plan) { return plan != nullptr && plan->possible ? 1 : 0; }
wb_error* wb_plan_json(const wb_plan* plan, char** json) {
  return guarded([&] {
    const wb_plan& it = given(plan, "the plan");
    give(json, [&] { return text_of(to_json(it.from, it.path, it.plan)); });
  });
}
wb_error* wb_plan_execute(const wb_plan* plan, const wb_job* job, char** json) {
  return guarded([&] {
    const wb_plan& it = given(plan, "the plan");
    const Written written = it.plan.execute(it.path, context_of(job));
    give_done(json, [&] { return to_json(it.from, it.path, it.plan, &written); });
  });
}
void wb_plan_free(wb_plan* plan) { delete plan; }

wb_error* wb_diff(const wb_model* a, const wb_model* b, const wb_options* options, const wb_job* job, int* equal,
                  char** json) {
  return guarded([&] {
    const wb_model &from = given(a, "the first model"), &to = given(b, "the second model");
    const DiffOptions& asked = options_for(options, {OptionOf::diff}).diff;
    const Diff found = diff(from.model, to.model, asked, context_of(job));
    if (json != nullptr) *json = text_of(to_json(Comparison{from.path, to.path, from.model, to.model, found}));
    if (equal != nullptr) *equal = found.equal() ? 1 : 0;
  });
}

wb_error* wb_edit(const char* path, const wb_options* options, int dry_run, const wb_job* job, char** json) {
  return guarded([&] {
    const std::string file = &given(path, "the path");
    const EditOptions& asked = options_for(options, {OptionOf::edit}).edit;
    const Edited done = about(file, [&] {
      return dry_run != 0 ? plan_edit(file, asked, context_of(job)) : edit(file, asked, context_of(job));
    });
    give_done(json,
              [&] { return to_json(file, asked.output, done, dry_run == 0 && done.way != Edited::Way::nothing); });
  });
}

wb_error* wb_check(const char* path, const char* policy, const char* manifest, const wb_options* options,
                   const wb_job* job, int* verdict, char** json) {
  return guarded([&] {
    const std::string file = &given(path, "the path");
    const OpenOptions& opening = options_for(options, {OptionOf::open}).open;
    const Policy demands = policy_of(&given(policy, "the policy"));
    const auto list = manifest == nullptr ? nullptr : file_at(manifest);
    const PolicyVerdict found =
        about(file, [&] { return check(place_at(file, opening.access), demands, context_of(job), opening, list); });
    if (json != nullptr) *json = text_of_file(to_json(file, demands, found));
    if (verdict != nullptr)
      *verdict = !found.passed()                                                   ? WB_INVALID
                 : found.others.unsupported() > 0 || !found.not_known_safe.empty() ? WB_INCONCLUSIVE
                                                                                   : WB_VALID;
  });
}

wb_error* wb_manifest_write(const char* path, const char* output, const wb_options* options, const wb_job* job,
                            char** json) {
  return guarded([&] {
    const std::string files = &given(path, "the path");
    const wb_options& all = options_for(options, {OptionOf::manifest, OptionOf::sign});
    ManifestOptions asked = all.manifest;
    asked.output = &given(output, "the output");
    if (all.pem.key == nullptr && (all.pem.certificate != nullptr || !all.pem.chain.empty()))
      base::misuse("option", "a certificate needs its private key, the option \"key\"");
    SigningKey key{.key = text_at(all.pem.key, "the key"),
                   .certificate = text_at(all.pem.certificate, "the certificate")};
    for (const auto& each : all.pem.chain) key.chain.push_back(text_at(each, "the certificate"));
    const Manifest made = about(files, [&] { return save_manifest(files, asked, key, context_of(job)); });
    give_done(json, [&] { return to_json(files, asked.output, made, key.method()); });
  });
}
wb_error* wb_manifest_verify(const char* path, const char* manifest, const wb_options* options, const wb_job* job,
                             int* verdict, char** json) {
  return guarded([&] {
    const std::string files = &given(path, "the path"), list = &given(manifest, "the manifest");
    const wb_options& all = options_for(options, {OptionOf::check, OptionOf::trust});
    ManifestCheck asked = all.check;
    asked.trust = {.key = text_at(all.pem.public_key, "the key"), .roots = text_at(all.pem.roots, "the roots")};
    const auto bundle = file_at(list);
    const ManifestVerdict found = about(files, [&] { return verify_manifest(files, bundle, asked, context_of(job)); });
    if (json != nullptr) *json = text_of_file(to_json(files, list, found));
    if (verdict != nullptr)
      *verdict = !found.valid()                                 ? WB_INVALID
                 : found.signature == SignatureState::unchecked ? WB_INCONCLUSIVE
                                                                : WB_VALID;
  });
}

wb_error* wb_verify_derivation(const char* path, const wb_model* source, const char* statement,
                               const wb_options* options, const wb_job* job, int* verdict, char** json) {
  return guarded([&] {
    const std::string file = &given(path, "the path");
    Model from = given(source, "the source").model;
    DerivationOptions how{.imatrix = options_for(options, {}, {"imatrix"}).convert.gguf.imatrix};
    const Context context = context_of(job);
    const Derivation found = about(file, [&] {
      const auto made = open_file(file);
      if (statement != nullptr) {
        const auto stated = file_at(statement);
        const Statement read = about(statement, [&] {
          return read_statement(core::whole_text(*stated, context.limits, "the statement"), context.limits);
        });
        how = stated_options(read, *made, from, how.imatrix, context);
      }
      return derive_again(open(made, context), from, how, context);
    });
    if (json != nullptr) *json = text_of_file(to_json(file, source->path, found));
    if (verdict != nullptr)
      *verdict = !found.unclaimed.empty() ? WB_INCONCLUSIVE : found.derived() ? WB_VALID : WB_INVALID;
  });
}

wb_error* wb_make_patch(const wb_model* base, const wb_model* result, const char* output, const wb_options* options,
                        const wb_job* job, char** json) {
  return guarded([&] {
    const wb_model &from = given(base, "the base"), &to = given(result, "the result");
    write_patch(from.path, output, options_for(options, {}, {"overwrite", "metadata"}), job, json,
                [&](const PatchOptions& how, const Context& context) {
                  return make_patch(from.model, to.model, how, context);
                });
  });
}
wb_error* wb_fold_patches(const wb_model* const* patches, std::size_t count, const char* output,
                          const wb_options* options, const wb_job* job, char** json) {
  return guarded([&] {
    const std::vector<Model> all = models_of(patches, count);
    write_patch(count > 0 ? patches[0]->path : "", output, options_for(options, {}, {"overwrite"}), job, json,
                [&](const PatchOptions& how, const Context& context) { return fold_patches(all, how, context); });
  });
}
wb_error* wb_apply(const wb_model* base, const wb_model* const* patches, std::size_t count, const wb_job* job,
                   wb_model** out) {
  return guarded([&] {
    const wb_model& from = given(base, "the base");
    const std::vector<Model> all = models_of(patches, count);
    give(out, [&] { return new wb_model(from.path, patched(from.model, all, context_of(job)), from.report); });
  });
}
wb_error* wb_apply_in_place(const char* path, const wb_model* const* patches, std::size_t count, int dry_run,
                            const wb_job* job, char** json) {
  return guarded([&] {
    const std::string files = &given(path, "the path");
    const std::vector<Model> all = models_of(patches, count);
    const Applied done = about(files, [&] { return apply_in_place(files, all, context_of(job), dry_run != 0); });
    give_done(json, [&] { return to_json(files, done, dry_run == 0 && !done.files.empty()); });
  });
}

}  // extern "C"
