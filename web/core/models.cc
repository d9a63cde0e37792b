// SPDX-License-Identifier: Apache-2.0
// Opens, checks and reads models.
#include "models.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "functions.h"
#include "weighbridge/weighbridge.h"

namespace weighbridge::web {
namespace {

// The most that is returned at once, because all of it is copied.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

std::uint64_t row_elements(const Tensor& tensor) {
  std::uint64_t out = 1;
  const Shape shape = tensor.shape();
  for (const std::uint64_t d : shape.subspan(shape.empty() ? 0 : 1)) out *= d;
  return out;
}

DType dtype_of(const std::string& text, DType otherwise) {
  const std::optional<DType> out = text.empty() ? otherwise : dtype_from_any_name(text);
  if (!out) misuse("there is no dtype '" + text + "'");
  return *out;
}

std::string added(Model model) {
  return object([&](JsonWriter& out) { out.member("model", models().add(std::move(model))); });
}

}  // namespace

Table<Model>& models() {
  static Table<Model> table;
  return table;
}

Tensor tensor_of(int model, int tensor) {
  const Model& m = models().get(model);
  if (tensor < 0) misuse("a tensor's number is its place in the file's index");
  return m[static_cast<std::uint32_t>(tensor)];
}

std::string core_version() {
#if defined(__wasm_simd128__)
  constexpr bool kSimd = true;
#else
  constexpr bool kSimd = false;
#endif
  return object([](JsonWriter& out) {
    out.member("version", version());
    out.member("commit", commit());
    out.flag("simd", kSimd);
  });
}

std::string core_formats() { return formats_to_json(); }

std::string open_model(const std::string& path, const val& options) {
  return answer(path, [&] {
    Report report;
    std::optional<Model> model = open(path, report, job_context(), made<OpenOptions>(OptionOf::open, options));
    if (!model) return failure(path, name(report.first_error()->kind), report);
    return object([&](JsonWriter& out) {
      out.member("model", models().add(*std::move(model)));
      add_findings(out, report);
    });
  });
}

void close_model(int model) { models().remove(model); }

std::string inspect(int model, const std::string& path) {
  return answer(path, [&] {
    const Model& m = models().get(model);
    std::vector<std::uint32_t> all(m.size());
    std::iota(all.begin(), all.end(), 0U);
    return to_json(Inspection{path, m, all});
  });
}

// A number that differs if two workers did not read the same index: the file may have been replaced in between.
std::string identity_of(const Model& model) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  };
  for (const auto& source : model.sources()) add(std::to_string(source->size()) + ' ');
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    add(model.name(i));
    for (const Part& part : model[i].parts()) {
      const Extent extent = part.extent().value_or(Extent{});
      add(' ' + std::to_string(extent.offset) + ' ' + std::to_string(extent.length) + ' ');
      add(part.digest());
    }
  }
  return std::to_string(hash);
}

std::string verify_file(const std::string& path, const val& options, const val& part) {
  return answer(path, [&] {
    const Share share{.index = static_cast<std::uint32_t>(count_option(part, "index", 0, UINT32_MAX)),
                      .of = static_cast<std::uint32_t>(count_option(part, "of", 1, UINT32_MAX))};
    const Verdict verdict = verify(path, job_context(), made<OpenOptions>(OptionOf::open, options), share);
    return object([&](JsonWriter& out) {
      out.key("verdict").raw(to_json(path, verdict));
      out.member("shares", verdict.shares);
      out.member("identity", share.of > 1 ? identity_of(verdict.model) : std::string());
      out.key("payload").begin_array();
      out.u64(verdict.payload_begin);
      out.u64(verdict.payload_end);
      out.end_array();
    });
  });
}

std::string hash(int model, const std::string& path, bool with_names) {
  return answer(path, [&] {
    const Model& m = models().get(model);
    return to_json(path, m.format(), with_names ? DigestKind::content : DigestKind::content_without_names,
                   content_digest(m, job_context(), with_names));
  });
}

std::string zt_hash(int model, const std::string& path) {
  return answer(path, [&] {
    const Model& m = models().get(model);
    return to_json(path, m.format(), DigestKind::zt_content, zt_content_digest(m));
  });
}

std::string statistics_of(int model, int tensor) {
  return answer({}, [&] { return to_json(statistics(tensor_of(model, tensor), job_context())); });
}

std::string histogram_of(int model, int tensor, double bins) {
  return answer({}, [&] {
    const auto wanted = static_cast<std::uint32_t>(count_of("bins", bins, UINT32_MAX));
    return to_json(histogram(tensor_of(model, tensor), wanted, job_context()));
  });
}

val rows(int model, int tensor, double first, double count) {
  return answer_value({}, [&] {
    const Tensor t = tensor_of(model, tensor);
    const std::uint64_t from = count_of("first", first), wanted = count_of("count", count);
    const double floats = static_cast<double>(wanted) * static_cast<double>(row_elements(t));
    if (floats * sizeof(float) > static_cast<double>(kMaxBytes)) misuse("rows are read at most a gibibyte at a time");
    const Array out = t.shape().empty() ? t.to_dense(DType::f32, job_context())
                                        : read_rows(t, from, wanted, DType::f32, job_context());
    const auto* const values = reinterpret_cast<const float*>(out.data.get());
    return copied(std::span(values, static_cast<std::size_t>(out.size / sizeof(float))));
  });
}

val read_tensor(int model, int tensor, const std::string& dtype) {
  return answer_value({}, [&] {
    const Tensor t = tensor_of(model, tensor);
    Context context = job_context();
    context.limits.decoded = kMaxBytes;
    const Array all = t.to_dense(dtype_of(dtype, t.dtype()), context);
    val shape = val::array();
    for (const std::uint64_t d : all.shape) shape.call<void>("push", static_cast<double>(d));
    val out = val::object();
    out.set("dtype", std::string(name(all.dtype)));
    out.set("shape", shape);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(all.data.get());
    out.set("bytes", copied(std::span(bytes, static_cast<std::size_t>(all.size))));
    return out;
  });
}

std::string extract(int model, int tensor, const std::string& to) {
  return answer(to, [&] {
    const Model& m = models().get(model);
    const Tensor t = tensor_of(model, tensor);
    // A dtype that NumPy does not have becomes f32.
    const Elements elements = Elements::dense(t, npy_type(t.dtype()).empty() ? DType::f32 : t.dtype());
    const Extracted facts = elements.write(to, {.replace = true, .inputs = m.sources()}, job_context());
    return to_json(to, m.format(), std::span(&facts, 1));
  });
}

std::string adapt_model(int model, const val& packages) {
  return answer({}, [&] {
    std::vector<Model> opened;
    for (const std::string& path : emscripten::vecFromJSArray<std::string>(packages))
      opened.push_back(open(path, job_context()));
    return added(slm::adapt(models().get(model), opened, job_context()));
  });
}

std::string logical_model(int model, const std::string& dtype) {
  return answer({},
                [&] { return added(logical(models().get(model), job_context(), dtype_of(dtype, DType::unknown))); });
}

}  // namespace weighbridge::web
