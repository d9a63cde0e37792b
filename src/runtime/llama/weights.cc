// SPDX-License-Identifier: Apache-2.0
// Reads, checks and packs the weights, several pieces of matrices in parallel. One file, because a piece goes through
// all three at once.
#include "runtime/llama/weights.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/cast.h"
#include "convert/naming.h"
#include "core/model/floats.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/payload/payload.h"

namespace weighbridge::llama {
namespace {

using kernels::kPanel;

constexpr std::string_view kData = "data", kScales = "scales";
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;  // packed weights per task of a thread

[[noreturn]] void not_finite(std::string_view name) {
  fail("not-finite", name, "tensor '" + std::string(name) + "' holds a value that is not a finite number");
}

// The form that a tensor is computed in.
struct Found {
  Form form = Form::f32;
  std::size_t block = 0;  // columns that share a scale
  bool ggml = false;      // blocks of GGML, which hold their scales
  // Whether rows are packed from the bytes of the one part that they are stored in.
  bool own_bytes() const noexcept { return ggml || form == Form::f16 || form == Form::bf16; }
};
// The part with this role. Checks that it has `bytes` bytes: containers other than .slm leave that to their users.
Part part_of(const Tensor& tensor, std::string_view role, std::uint64_t bytes) {
  const auto part = tensor.part(role);
  if (!part || part->size() != bytes)
    fail("parts", tensor.name(),
         "tensor '" + std::string(tensor.name()) + "' is " + std::string(tensor.type_name()) + ", and its part '" +
             std::string(role) + "' has " + (part ? core::bytes_text(part->size()) : "no bytes") + " in place of " +
             std::to_string(bytes));
  return *part;
}

// GGML's blocks have 32 codes with their scale, an f16 in front. In q8_0 a code is a byte. In q4_0 byte i has code i
// and, above it, code i + 16, plus 8.
constexpr std::size_t kGgmlBlock = 32, kHalf = kGgmlBlock / 2;
constexpr std::string_view kGgmlQ4 = "ggml.q4_0", kGgmlQ8 = "ggml.q8_0", kGgml = "ggml.";
constexpr std::size_t ggml_bytes(Form form) { return 2 + (form == Form::q4_0 ? kHalf : kGgmlBlock); }

// Of a matrix of any type of GGML's.
std::optional<codecs::BlockForm> ggml_blocks(const Tensor& tensor) {
  const BlockTypeInfo* const type = tensor.block_type();
  if (type == nullptr || !type->id.starts_with(kGgml) || tensor.shape().size() != 2) return std::nullopt;
  return core::readable_blocks(tensor);
}

std::size_t row_bytes(const Found& found, std::size_t columns) {
  return found.ggml ? columns / kGgmlBlock * ggml_bytes(found.form) : columns * sizeof(std::uint16_t);
}

// Codes of q4_0 as those of SLM: two neighbors a byte, the first in the low bits, as two's complement.
void respell_codes(const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < kHalf / 2; ++i) {
    const auto first = std::to_integer<unsigned>(from[2 * i]), second = std::to_integer<unsigned>(from[2 * i + 1]);
    to[i] = static_cast<std::byte>(((first & 15) | (second & 15) << 4) ^ 0x88);
    to[kHalf / 2 + i] = static_cast<std::byte>((first >> 4 | (second & 0xF0)) ^ 0x88);
  }
}
// Blocks as codes and scales.
struct Divided {
  Divided(std::span<const std::byte> bytes, Form form) {
    const std::size_t size = ggml_bytes(form), count = bytes.size() / size, each = size - 2;
    std::vector<std::byte> halves(count * 2);
    codes.resize(count * each);
    scales.resize(count);
    for (std::size_t b = 0; b < count; ++b) {
      const std::byte* const from = bytes.data() + b * size;
      std::memcpy(halves.data() + b * 2, from, 2);
      if (form == Form::q4_0)
        respell_codes(from + 2, codes.data() + b * each);
      else
        std::memcpy(codes.data() + b * each, from + 2, each);
    }
    codecs::cast(DType::f16, halves, DType::f32, std::as_writable_bytes(std::span(scales)), count);
  }
  std::vector<std::byte> codes;
  std::vector<float> scales;
};

Stored codes_of(const Tensor& tensor, const Found& found) {
  const std::uint64_t count = tensor.shape()[0] * tensor.shape()[1];
  return Stored(part_of(tensor, kData, found.form == Form::q8_0 ? count : count / 2));
}
Stored stored_scales(const Tensor& tensor, const Found& found) {
  return Stored(part_of(tensor, kScales, tensor.shape()[0] * tensor.shape()[1] / found.block * sizeof(float)));
}

// The form of a matrix.
Found form_of(const Tensor& tensor) {
  const BlockTypeInfo* const type = tensor.block_type();
  if (type == nullptr) {
    const bool halves = tensor.layout() == Layout::dense && !tensor.unsupported() && tensor.shape().size() == 2;
    if (halves && tensor.dtype() == DType::f16) return {.form = Form::f16};
    if (halves && tensor.dtype() == DType::bf16) return {.form = Form::bf16};
    return {};
  }
  if ((type->id == kGgmlQ4 || type->id == kGgmlQ8) && ggml_blocks(tensor))
    return {type->id == kGgmlQ4 ? Form::q4_0 : Form::q8_blocks, kGgmlBlock, true};
  struct Row {
    std::string_view block_type;
    Form form;
  };
  static constexpr Row kRows[] = {{"slm.q8_0", Form::q8_0}, {"slm.q4_0", Form::q4_0}};
  const auto row = std::ranges::find(kRows, type->id, &Row::block_type);
  if (row == std::end(kRows)) return {};
  const codecs::BlockForm blocks = core::block_form(tensor);
  if (!codecs::block_problem(blocks).empty()) return {};
  return {row->form, base::to_size(blocks.group), false};
}

// Selects the first of each `repeats` heads of `rows` rows; `count` are selected in all.
struct Heads {
  std::size_t rows = 0, count = 0, repeats = 1;

  template <class T> std::vector<T> first_ones(const T* from, std::size_t columns) const {
    std::vector<T> out;
    out.reserve(count * rows * columns);
    for (std::size_t h = 0; h < count; ++h, from += repeats * rows * columns)
      out.insert(out.end(), from, from + rows * columns);
    return out;
  }
};

std::vector<float> scales_of(const Tensor& tensor, const Found& found) {
  const Stored stored = stored_scales(tensor, found);
  std::vector<float> out(stored.size() / sizeof(float));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = std::bit_cast<float>(base::load_le<std::uint32_t>(stored.data() + i * sizeof(float)));
  return out;
}

std::size_t packed_bytes(Form form, std::size_t n, std::size_t k) noexcept {
  switch (form) {
    case Form::f32: return kernels::packed_size(n, k) * sizeof(float);
    case Form::f16:
    case Form::bf16: return kernels::packed_size(n, k) * sizeof(std::uint16_t);
    case Form::q8_0: return kernels::packed_size(n, kernels::int8_depth(k));
    case Form::q4_0: return kernels::packed_q4_size(n, k);
    case Form::q8_blocks: return kernels::packed_q8_size(n, k);
  }
  return 0;
}

// How many consecutive heads are equal throughout; there are `heads` heads of `bytes` bytes.
std::size_t repeated(const std::byte* data, std::size_t heads, std::size_t bytes) {
  const auto same = [&](std::size_t count) {
    for (std::size_t h = 0; h < heads; ++h)
      if (std::memcmp(data + h * bytes, data + h / count * count * bytes, bytes) != 0) return false;
    return true;
  };
  for (std::size_t count = heads; count > 1; --count)
    if (heads % count == 0 && same(count)) return count;
  return 1;
}
// The same for a matrix; ignores rows past the heads.
std::size_t repeated(const Tensor& tensor, const Config& config) {
  const auto in = [&](const std::byte* data, std::size_t bytes) {
    return repeated(data, config.kv_heads, bytes / config.hidden * config.head);
  };
  const Found found = form_of(tensor);
  if (found.own_bytes()) {
    const Stored bytes(tensor.main());
    return in(bytes.data(), bytes.size());
  }
  if (found.form == Form::f32) {
    const core::Floats floats(tensor);
    return in(reinterpret_cast<const std::byte*>(floats.data()), floats.size() * sizeof(float));
  }
  const Stored codes = codes_of(tensor, found), scales = stored_scales(tensor, found);
  return std::gcd(in(codes.data(), codes.size()), in(scales.data(), scales.size()));
}

bool finite(const float* values, std::size_t count) {
  return count == 0 || kernels::kernels().all_finite(values, count);
}
// Whether no value of f16 or bf16 has all bits of the exponent, `maximum`.
bool finite_halves(std::span<const std::uint16_t> values, unsigned maximum) {
  unsigned found = 0;
  for (const std::uint16_t value : values) found |= static_cast<unsigned>((value & maximum) == maximum);
  return found == 0;
}

// A matrix to be packed, and its source: whole in memory or mapped, or read piece by piece.
struct Job {
  Linear* to;
  Tensor tensor;
  Found found;
  Heads heads;
  std::size_t bytes;  // packed
  std::size_t at;     // offset in the panels
  std::string name;   // in the model's own container
  // Set by prepare().
  std::shared_ptr<core::Floats> floats{};
  std::shared_ptr<Stored> stored{};  // codes, or the bytes of rows
  std::shared_ptr<std::vector<float>> scales{};

  // Whether prepare() leaves what pack() reads in the file.
  bool by_pieces() const {
    if (heads.repeats > 1 || !core::is_direct(tensor.main())) return false;
    if (to->form != Form::f32) return found.own_bytes();
    return ggml_blocks(tensor) || (tensor.layout() == Layout::dense && tensor.why_no_view(DType::f32) != NoView::none);
  }
  // Whether prepare() decodes the matrix, which should not last.
  bool decodes() const {
    return !by_pieces() && (to->form == Form::f32 ? tensor.why_no_view(DType::f32) != NoView::none : found.own_bytes());
  }

  void prepare() {
    const std::size_t rows = static_cast<std::size_t>(tensor.shape()[0]);
    const bool repeats = heads.repeats > 1;
    if (to->form != Form::f32 && found.own_bytes())
      (void)part_of(tensor, kData, std::uint64_t{rows} * row_bytes(found, to->k));
    if (by_pieces()) return;
    if (to->form == Form::f32) {
      floats = std::make_shared<core::Floats>(tensor);
      if (repeats) *floats = core::Floats(heads.first_ones(floats->data(), to->k));
      return;
    }
    stored = std::make_shared<Stored>(found.own_bytes() ? Stored(tensor.main()) : codes_of(tensor, found));
    if (repeats) *stored = Stored(heads.first_ones(stored->data(), stored->size() / rows));
    if (found.own_bytes()) return;
    scales = std::make_shared<std::vector<float>>(scales_of(tensor, found));
    if (!finite(scales->data(), scales->size())) not_finite(name);
    if (repeats) *scales = heads.first_ones(scales->data(), scales->size() / rows);
    if (to->form == Form::q8_0) {
      to->scale = *scales;
      to->scale.resize(kernels::round_up(to->n, kernels::kLanes));
      to->sum.resize(to->scale.size());
    }
  }
  void release() {
    floats.reset();
    stored.reset();
    scales.reset();
  }

  // `first` is a multiple of kPanel.
  void pack(std::size_t first, std::size_t rows) const {
    const std::size_t n = to->n, k = to->k, end = std::min(first + rows, n), count = (end - first) * k;
    switch (to->form) {
      case Form::f32: {
        std::vector<float> read;
        const float* from = floats ? floats->data() + first * k : nullptr;
        if (from == nullptr) {
          read.resize(count);
          read_rows(first, end - first, read);
          from = read.data();
        }
        if (!finite(from, count)) not_finite(name);
        kernels::kernels().pack_f32(from, k, end - first, k, reinterpret_cast<float*>(to->packed) + first * k);
        return;
      }
      case Form::f16:
      case Form::bf16: {
        std::vector<std::uint16_t> halves(count);
        bytes_of_rows(first, std::as_writable_bytes(std::span(halves)));
        if (!finite_halves(halves, to->form == Form::f16 ? 0x7C00U : 0x7F80U)) not_finite(name);
        return kernels::pack_halves(halves.data(), n, k, first, rows, reinterpret_cast<std::uint16_t*>(to->packed));
      }
      case Form::q8_0: {
        const auto* from = reinterpret_cast<const std::int8_t*>(stored->data()) + first * k;
        auto* out = reinterpret_cast<std::int8_t*>(to->packed);
        return kernels::pack_codes_i8(from, n, k, first, rows, out, to->sum.data());
      }
      case Form::q4_0:
        if (found.ggml) break;
        kernels::pack_codes_q4(reinterpret_cast<const std::uint8_t*>(stored->data()) + first * k / 2,
                               scales->data() + first * (k / found.block), found.block, n, k, first, rows,
                               reinterpret_cast<std::uint8_t*>(to->packed));
        return;
      case Form::q8_blocks: break;
    }
    std::vector<std::byte> blocks((end - first) * row_bytes(found, k));
    bytes_of_rows(first, blocks);
    const Divided divided(blocks, to->form);
    if (!finite(divided.scales.data(), divided.scales.size())) not_finite(name);
    auto* out = reinterpret_cast<std::uint8_t*>(to->packed);
    if (to->form == Form::q4_0)
      kernels::pack_codes_q4(reinterpret_cast<const std::uint8_t*>(divided.codes.data()), divided.scales.data(),
                             kGgmlBlock, n, k, first, rows, out);
    else
      kernels::pack_codes_q8(reinterpret_cast<const std::int8_t*>(divided.codes.data()), divided.scales.data(), n, k,
                             first, rows, out);
  }

  // Rows from row `first` as f32.
  void read_rows(std::size_t first, std::size_t rows, std::span<float> out) const {
    tensor.rows_into(first, rows, DType::f32, std::as_writable_bytes(out));
  }
  // The stored bytes of rows from row `first`.
  void bytes_of_rows(std::size_t first, std::span<std::byte> out) const {
    const std::size_t begin = first * row_bytes(found, to->k);
    if (stored) {
      std::memcpy(out.data(), stored->data() + begin, out.size());
      return;
    }
    const Part part = tensor.main();
    const std::size_t width = info(part.dtype()).bits / 8;
    part.read_range(begin / width, out.size() / width, out);
  }
};

class Loader {
 public:
  Loader(const Model& model, const Config& config, GeneratorPrecision precision) : model_(model), config_(config) {
    out_.precision = precision;
  }

  Weights load(Executor& executor) {
    const std::size_t h = config_.hidden;
    const Tensor words = require(model_, "tok_embeddings.weight", config_.vocabulary, h);
    out_.words = Table(words, h);
    out_.layers.resize(config_.layers);
    for (std::size_t i = 0; i < config_.layers; ++i) layer(i);
    out_.norm = vector_of("norm.weight");
    add(out_.output, config_.tied ? words : require(model_, "output.weight", config_.vocabulary, h), config_.vocabulary,
        h, {});
    out_.zeros.resize(kernels::round_up(std::max({config_.vocabulary, h, config_.ffn}), kernels::kLanes));
    pack(executor);
    return std::move(out_);
  }

 private:
  std::vector<float> vector_of(const std::string& name) const {
    const core::Floats floats(require(model_, name, config_.hidden, 0));
    if (!kernels::kernels().all_finite(floats.data(), floats.size())) not_finite(convert::given_tensor(model_, name));
    return {floats.data(), floats.data() + floats.size()};
  }

  void layer(std::size_t i) {
    const std::size_t h = config_.hidden, f = config_.ffn;
    Layer& layer = out_.layers[i];
    layer.attention_norm = vector_of(layer_name(i, "attention_norm"));
    layer.ffn_norm = vector_of(layer_name(i, "ffn_norm"));
    const auto matrix = [&](Linear& to, std::string_view part, std::size_t rows, std::size_t columns) {
      add(to, require(model_, layer_name(i, part), rows, columns), rows, columns, {});
    };
    // Of keys and values only the distinct heads (reading M8); rows stored past them are unused.
    const auto kept = [&](Linear& to, std::string_view part) {
      add(to, require(model_, layer_name(i, part), config_.kv_rows, h), config_.kv_width(), h,
          {config_.head, config_.kv_heads, config_.repeats});
    };
    matrix(layer.query, "wq", h, h);
    kept(layer.key, "wk");
    kept(layer.value, "wv");
    matrix(layer.out, "wo", h, h);
    matrix(layer.gate, "w1", f, h);
    matrix(layer.up, "w3", f, h);
    matrix(layer.down, "w2", h, f);
  }

  void add(Linear& to, const Tensor& tensor, std::size_t rows, std::size_t columns, const Heads& heads) {
    to.n = rows;
    to.k = columns;
    const Found found = form_of(tensor);
    // Blocks of a size that the kernel does not support are computed as f32.
    to.form = found.form == Form::q4_0 && found.block % kernels::kBlock != 0 ? Form::f32 : found.form;
    const std::size_t bytes = packed_bytes(to.form, rows, columns);
    jobs_.push_back({&to, tensor, found, heads, bytes, plan_.add(bytes), convert::given_tensor(model_, tensor.name())});
  }

  void pack(Executor& executor) {
    out_.packed_bytes = plan_.size();
    out_.panels = kernels::Block(out_.packed_bytes);
    for (Job& job : jobs_) job.to->packed = out_.panels.as<std::byte>() + job.at;
    // What is decoded whole is packed and freed by one thread before that takes the next.
    std::vector<Job*> whole, shared;
    for (Job& job : jobs_) (job.decodes() ? whole : shared).push_back(&job);
    executor.for_each(shared.size(), [&](std::uint64_t i) { shared[static_cast<std::size_t>(i)]->prepare(); });
    std::ranges::sort(whole, std::greater(), &Job::bytes);
    executor.for_each(whole.size(), [&](std::uint64_t i) {
      Job& job = *whole[static_cast<std::size_t>(i)];
      job.prepare();
      job.pack(0, job.to->n);
      job.release();
    });
    struct Piece {
      const Job* job;
      std::size_t first, rows;
    };
    std::vector<Piece> pieces;
    for (const Job* const job : shared) {
      const std::size_t row = std::max<std::size_t>(job->bytes / job->to->n, 1);
      const std::size_t rows = kernels::round_up(std::max<std::size_t>(kPieceBytes / row, 1), kPanel);
      for (std::size_t first = 0; first < job->to->n; first += rows) pieces.push_back({job, first, rows});
    }
    executor.for_each(pieces.size(), [&](std::uint64_t i) {
      const Piece& piece = pieces[static_cast<std::size_t>(i)];
      piece.job->pack(piece.first, piece.rows);
    });
  }

  const Model& model_;
  const Config& config_;
  Weights out_;
  std::vector<Job> jobs_;
  kernels::BlockPlan plan_;
};

}  // namespace

const std::byte* Linear::panel(std::size_t index) const noexcept {
  return packed + packed_bytes(form, index * kPanel, k);
}

Stored::Stored(std::vector<std::byte> bytes) {
  const auto held = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  bytes_ = {*held, held};
}
Stored::Stored(const Part& part) {
  if (part.why_no_view() == NoView::none) {
    bytes_ = part.view();
    return;
  }
  std::vector<std::byte> bytes;
  part.stream({}, [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return true;
  });
  *this = Stored(std::move(bytes));
}

Table::Table(const Tensor& tensor, std::size_t width)
    : width_(width), elements_(core::elements_of(tensor, DType::f32)) {
  // What can only be read from its first element on is held.
  if (core::divides(*elements_, std::max<std::uint64_t>(core::kPayloadRange, width * sizeof(float)))) return;
  const Array copy = tensor.to_dense(DType::f32);
  elements_ = core::held_elements(DType::f32, elements_->count(),
                                  {{copy.data.get(), static_cast<std::size_t>(copy.size)}, copy.data});
}

void Table::row(std::uint32_t id, float* out) const {
  elements_->read(std::uint64_t{id} * width_, width_, std::as_writable_bytes(std::span(out, width_)), {});
}

std::size_t repeated_heads(const Model& model, const Config& config) {
  std::size_t maximum = config.kv_heads;
  for (std::size_t i = 0; i < config.layers && maximum > 1; ++i)
    for (const std::string_view part : {"wk", "wv"})
      maximum = std::gcd(maximum, repeated(require(model, layer_name(i, part), config.hidden, config.hidden), config));
  return maximum;
}

Weights load_weights(const Model& model, const Config& config, GeneratorPrecision precision, Executor& executor) {
  return Loader(model, config, precision).load(executor);
}

}  // namespace weighbridge::llama
