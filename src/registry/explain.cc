// SPDX-License-Identifier: Apache-2.0
// explain(): runs the walker of the file's format and records what it reports about the bytes. Adds tensors and their
// elements from the model, and the bytes that were not reported. locate() is the reverse.
#include "weighbridge/explain.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/blocks.h"
#include "codecs/cast.h"
#include "codecs/zstd.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/payload/payload.h"
#include "delta/patch.h"
#include "io/read.h"
#include "registry/load.h"
#include "weighbridge/place.h"

namespace weighbridge {
namespace {

using core::bytes_text;

constexpr std::uint64_t kElementRange = 64;                 // bytes of the longest range whose elements are named
constexpr std::uint64_t kMaxRows = 64;                      // of a part among others whose elements are looked for
constexpr std::uint64_t kMaxGap = std::uint64_t{16} << 20;  // bytes of a gap to compare with zero: milliseconds

std::string index_text(std::uint64_t element, Shape shape) {
  std::vector<std::uint64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::uint64_t dim = std::max<std::uint64_t>(shape[i], 1);
    index[i] = element % dim;
    element /= dim;
  }
  return core::shape_text(index);
}

// The places of a part's elements in the stored order, counted in elements, and back.
class Places {
 public:
  explicit Places(const Part& part) {
    const Shape shape = part.shape();
    shape_.assign(shape.begin(), shape.end());
    strides_.assign(part.strides().begin(), part.strides().end());
    for (std::size_t i = 0; i < strides_.size(); ++i)
      if (shape_[i] > 1 && strides_[i] != 0) by_stride_.push_back(i);
    std::sort(by_stride_.begin(), by_stride_.end(),
              [&](std::size_t a, std::size_t b) { return strides_[a] > strides_[b]; });
  }

  std::uint64_t place(std::uint64_t element) const {
    if (strides_.empty()) return element;
    std::int64_t out = 0;
    for (std::size_t i = shape_.size(); i-- > 0; element /= shape_[i])
      out += static_cast<std::int64_t>(element % shape_[i]) * strides_[i];
    return static_cast<std::uint64_t>(out);
  }
  // The first one, if several elements are at this place. nullopt: none, or the strides overlap or are reversed.
  std::optional<std::uint64_t> element(std::uint64_t at) const {
    if (strides_.empty()) return at;
    std::vector<std::uint64_t> index(shape_.size());
    std::uint64_t rest = at;
    for (const std::size_t i : by_stride_) {
      if (strides_[i] <= 0) return std::nullopt;
      const auto stride = static_cast<std::uint64_t>(strides_[i]);
      index[i] = rest / stride;
      if (index[i] >= shape_[i]) return std::nullopt;
      rest %= stride;
    }
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < shape_.size(); ++i) out = out * shape_[i] + index[i];
    if (place(out) != at) return std::nullopt;
    return out;
  }

 private:
  std::vector<std::uint64_t> shape_;
  std::vector<std::int64_t> strides_;
  std::vector<std::size_t> by_stride_;
};

// An element as the shortest text that reads back as the same value, in its type or in the type that it is widened to.
std::string element_text(DType dtype, std::span<const std::byte> bytes) {
  DType as = dtype;
  switch (info(dtype).kind) {
    case DTypeKind::real: as = dtype == DType::f64 ? dtype : DType::f32; break;
    case DTypeKind::signed_integer: as = DType::i64; break;
    case DTypeKind::unsigned_integer: as = DType::u64; break;
    case DTypeKind::complex: {
      const DType half = dtype == DType::complex64 ? DType::f32 : DType::f64;
      const std::size_t width = bytes.size() / 2;
      return element_text(half, bytes.first(width)) + ", " + element_text(half, bytes.last(width)) + "i";
    }
    default: break;
  }
  std::byte wide[8];
  const auto out = std::span(wide).first(static_cast<std::size_t>(packed_size(as, 1).value_or(0)));
  if (out.empty() || !codecs::cast(dtype, bytes, as, out, 1).ok()) return {};
  std::string text = Value::numbers(as, {out.begin(), out.end()}).to_text();
  return text.size() < 2 ? text : text.substr(1, text.size() - 2);  // without the brackets of a list
}

// Bits that are not a number by themselves: "code 0x40", the highest digits first.
std::string code_text(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "code 0x";
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const auto byte = std::to_integer<unsigned>(bytes[i]);
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

// The index of a part among the roles of its block type; nullopt if there is none.
std::optional<std::size_t> role_of(const BlockTypeInfo& type, const Part& part) {
  const auto found = std::ranges::find(type.roles, part.role());
  if (found == type.roles.end()) return std::nullopt;
  return static_cast<std::size_t>(found - type.roles.begin());
}

// The bytes of a part that the i-th run of elements needs, where a run is what can be decoded by itself.
class Blocks {
 public:
  // nullopt: its blocks cannot be read.
  static std::optional<Blocks> of(const Tensor& tensor, const Part& part) {
    const BlockTypeInfo* const type = tensor.block_type();
    const auto form = type ? core::readable_blocks(tensor) : std::nullopt;
    const auto role = form ? role_of(*type, part) : std::nullopt;
    if (!role || form->elements() == 0) return std::nullopt;
    Blocks out(*form, *role);
    if (out.step_ == 0) return std::nullopt;
    return out;
  }

  std::uint64_t count() const noexcept { return (form_.elements() - 1) / step_ + 1; }
  std::uint64_t step() const noexcept { return step_; }
  std::uint64_t last(std::uint64_t i) const noexcept { return std::min(form_.elements(), (i + 1) * step_) - 1; }
  codecs::ByteRange range(std::uint64_t i) const noexcept {
    return form_.type->codec->range(form_, role_, i * step_, last(i) - i * step_ + 1);
  }
  // The first one that ends after this byte of the part: ranges ascend.
  std::uint64_t find(std::uint64_t byte) const noexcept {
    std::uint64_t low = 0, high = count();
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      const codecs::ByteRange there = range(middle);
      if (there.offset + there.length <= byte)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  // The first run after i that needs other bytes.
  std::uint64_t after(std::uint64_t i) const noexcept {
    const std::uint64_t offset = range(i).offset;
    std::uint64_t low = i + 1, high = count();
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (range(middle).offset <= offset)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

 private:
  Blocks(const codecs::BlockForm& form, std::size_t role)
      : form_(form), role_(role), step_(form.type->codec->step(form)) {}
  codecs::BlockForm form_;
  std::size_t role_;
  std::uint64_t step_;
};

// Reports tensors, blocks and elements.
class Payload {
 public:
  Payload(core::Spans& spans, std::uint64_t begin, std::uint64_t end) : spans_(spans), begin_(begin), end_(end) {}

  void report_span(const Tensor& tensor, const Part& part, const Extent& extent) {
    const std::uint64_t last = extent.offset + extent.length;
    if (!spans_.wanted(extent.offset, last)) return;
    spans_.add(Span::Kind::tensor, extent.offset, last, tensor.name(), about(tensor, part, extent));
    if (end_ - begin_ > kElementRange || part.encoding() != Encoding::raw) return;
    const std::uint64_t first = std::max(begin_, extent.offset), until = std::min(end_, last);
    const auto cut = core::cut_of(part);
    index_ = part.shape();
    codes_ = core::is_codes(tensor);
    if (const auto blocks = cut ? std::nullopt : Blocks::of(tensor, part)) {
      // Codes that are stored individually are in the order of the tensor's elements.
      if (blocks->step() == 1 && part == tensor.main() && part.count() == blocks->count()) index_ = tensor.shape();
      report_blocks(tensor, *blocks, extent.offset, first, until);
      if (tensor.block_type()->block_bytes != 0) return;  // a part of bytes, which are not elements
    }
    if (info(part.dtype()).bits == 0 || part.count() == 0) return;
    if (cut)
      report_cut(part, *cut, extent.offset, first, until);
    else if (info(part.dtype()).bits % 8 == 0)
      report_elements(part, extent.offset, first, until);
    else
      report_packed(part, extent.offset, first, until);
  }

 private:
  static std::string about(const Tensor& tensor, const Part& part, const Extent& extent) {
    const bool blocks = tensor.block_type() != nullptr && tensor.part_count() == 1 && tensor.has_shape();
    std::string out = "part " + std::string(part.role()) + ": ";
    out += blocks ? tensor.type_name() : part.dtype_name();
    out += " " + core::shape_text(blocks ? tensor.shape() : part.shape());
    if (!part.strides().empty()) out += ", not row-major";
    if (part.order() == Order::big) out += ", big-endian";
    if (const core::Coded* const mark = core::coded(tensor))
      out += (mark->codes ? ", codes of " : ", completes codes of ") + mark->name;
    if (part.encoding() != Encoding::raw)
      out += ", compressed (" + std::string(part.encoding_name()) + "): " + bytes_text(extent.length) + " hold " +
             bytes_text(core::cut_of(part) ? core::decoded_size(part) : part.size());
    return out;
  }

  void report_blocks(const Tensor& tensor, const Blocks& blocks, std::uint64_t at, std::uint64_t first,
                     std::uint64_t until) {
    std::uint64_t listed = 0;
    for (std::uint64_t i = blocks.find(first - at); i < blocks.count() && listed < kElementRange; ++listed) {
      const codecs::ByteRange there = blocks.range(i);
      if (at + there.offset >= until) break;
      const std::uint64_t next = blocks.after(i);  // several runs may share a scale
      if (next > i + 1 || blocks.step() > 1)       // else it is an element
        spans_.add(Span::Kind::block, at + there.offset, at + there.offset + there.length,
                   next > i + 1 ? std::string("for a group") : "block " + std::to_string(i),
                   "elements " + index_text(i * blocks.step(), tensor.shape()) + " to " +
                       index_text(blocks.last(next - 1), tensor.shape()));
      i = next;
    }
  }

  void report_elements(const Part& part, std::uint64_t at, std::uint64_t first, std::uint64_t until) {
    const std::uint64_t width = info(part.dtype()).bits / 8;
    const Places places(part);
    for (std::uint64_t i = (first - at) / width; at + i * width < until; ++i)
      if (const auto found = places.element(i); found && *found < part.count())
        report_element(part, *found, at + i * width, width);
  }

  // Elements interleaved with those of other parts. Finds the few rows that a short range touches by checking the
  // places of all rows; parts with more than one row have few.
  void report_cut(const Part& part, const core::Cut& cut, std::uint64_t at, std::uint64_t first, std::uint64_t until) {
    const std::uint64_t width = info(part.dtype()).bits / 8;
    if (width == 0 || cut.step == 0 || !part.strides().empty()) return;
    const bool one = cut.row == 0 || part.shape().size() != 2;
    const std::uint64_t columns = one ? part.count() : part.shape()[1];
    const std::uint64_t rows = columns == 0 ? 0 : std::min(part.count() / columns, kMaxRows);
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t begin = at + cut.first + row * cut.row;
      if (until <= begin) continue;
      for (std::uint64_t i = first <= begin ? 0 : (first - begin) / cut.step;
           i < columns && begin + i * cut.step < until; ++i)
        report_element(part, row * columns + i, begin + i * cut.step, width, cut.swap > 1);
    }
  }

  void report_element(const Part& part, std::uint64_t element, std::uint64_t at, std::uint64_t width,
                      bool swapped = false) {
    if (!spans_.wanted(at, at + width)) return;
    std::byte bytes[16];
    const auto out = std::span(bytes).first(static_cast<std::size_t>(width));
    // Read only these bytes: reading a strided part would read rows, and many tensors may share this byte.
    core::source_of(part).read_at(at, out);
    if (part.order() == Order::big || swapped) base::swap_units(out, info(part.dtype()).swap_bytes);
    spans_.add(Span::Kind::element, at, at + width, index_text(element, index_),
               codes_ ? code_text(out) : element_text(part.dtype(), out));
  }

  void report_packed(const Part& part, std::uint64_t at, std::uint64_t first, std::uint64_t until) {
    const std::uint32_t bits = info(part.dtype()).bits;
    for (; first < until; ++first) {
      const std::uint64_t from = (first - at) * 8 / bits,
                          to = std::min(((first - at) * 8 + 7) / bits, part.count() - 1);
      if (from >= part.count()) return;
      spans_.add(Span::Kind::element, first, first + 1,
                 index_text(from, part.shape()) + (to > from ? " to " + index_text(to, part.shape()) : ""),
                 std::to_string(bits) + " bits each");
    }
  }

  core::Spans& spans_;
  const std::uint64_t begin_, end_;
  Shape index_{};       // by which elements of the current part are named
  bool codes_ = false;  // the elements of the reported tensor are codes, not numbers
};

// Reports the frames of a patch: which plane of which chunk they hold, and of which elements.
void report_planes(core::Spans& spans, const Model& model, const Source& source, const Limits& limits) {
  Report ignored;
  core::Findings findings(ignored, core::Findings::Mode::all);
  const auto patch = is_patch(model) ? delta::Patch::read(model, limits, findings) : nullptr;
  if (!patch) return;
  for (const delta::Change& change : patch->changes) {
    const auto extent = change.op < delta::Op::sparse ? std::nullopt : change.tensor.main().extent();
    if (!extent || !core::is_same(*model.sources()[extent->source], source) ||
        !spans.wanted(extent->offset, extent->offset + extent->length))
      continue;
    // One chunk has no list.
    std::vector<std::byte> stored(change.frames.empty() && change.chunks() == 1 &&
                                          change.tensor.main().encoding() == Encoding::zstd &&
                                          extent->length <= limits.memory
                                      ? base::to_size(extent->length)
                                      : 0);
    if (!stored.empty()) source.read_at(extent->offset, stored);
    std::uint64_t at = extent->offset;
    std::size_t next = 0;
    for (std::uint64_t c = 0; c < change.chunks(); ++c)
      for (std::uint32_t p = 0; p < change.planes() && change.words_in(c) > 0; ++p, ++next) {
        const std::uint64_t size =
            next < change.frames.size() ? change.frames[next]
            : stored.empty()            ? 0
                             : codecs::frame_length(std::span(stored).subspan(base::to_size(at - extent->offset)));
        if (size == 0) return;
        const auto element = [&](std::uint64_t unit) {
          return index_text(unit * change.width * 8 / info(change.dtype).bits, change.shape);
        };
        const std::uint64_t first = c * change.chunk;
        spans.add(Span::Kind::block, at, at + size,
                  "chunk " + std::to_string(c) + ", plane " + std::to_string(p) + ": " +
                      (p < change.gap ? "gaps" : "changes") + ", byte " +
                      std::to_string(p < change.gap ? p : p - change.gap),
                  std::to_string(change.words_in(c)) + " changes in elements " + element(first) + " to " +
                      element(first + change.units_in(c) - 1));
        at += size;
      }
  }
}

bool are_zeros(const Source& source, std::uint64_t begin, std::uint64_t end) {
  if (end - begin > kMaxGap) return false;
  bool zeros = true;
  io::read_pieces(source, begin, end, [&](std::uint64_t, std::span<const std::byte> piece) {
    return zeros = std::ranges::all_of(piece, [](std::byte b) { return b == std::byte{0}; });
  });
  return zeros;
}

// Bytes that were not reported, within the range, between neighbors or at its ends. A section counts as reported only
// where something in it was; a header of fields has no gaps.
void report_gaps(const Source& source, const std::vector<Span>& spans, std::uint64_t begin, std::uint64_t end,
                 std::vector<Span>& out) {
  std::uint64_t reach = begin;
  const auto gap = [&](std::uint64_t from, std::uint64_t to) {
    if (from >= to) return;
    const bool zeros = are_zeros(source, from, to);
    out.push_back({zeros ? Span::Kind::padding : Span::Kind::unclaimed,
                   from,
                   to - from,
                   zeros ? "zeros between structures" : "bytes that no structure claims",
                   {}});
  };
  for (const Span& span : spans) {
    gap(reach, std::min(span.offset, end));
    reach = std::max(reach, span.end());
  }
  gap(reach, end);
}

}  // namespace

std::string_view name(Span::Kind kind) noexcept {
  switch (kind) {
    case Span::Kind::file: return "file";
    case Span::Kind::structure: return "structure";
    case Span::Kind::entry: return "entry";
    case Span::Kind::field: return "field";
    case Span::Kind::tensor: return "tensor";
    case Span::Kind::block: return "block";
    case Span::Kind::element: return "element";
    case Span::Kind::padding: return "padding";
    case Span::Kind::unclaimed: break;
  }
  return "unclaimed";
}

Explanation explain(std::shared_ptr<const Source> source, std::uint64_t offset, std::uint64_t length,
                    const Context& context, const ExplainOptions& options) {
  if (!source) base::misuse("source", "there is no file to explain");
  const std::uint64_t size = source->size();
  // Where what is missing from a truncated file would begin: readers report it there.
  const bool at_end = size > 0 && offset == size && length == 1;
  if (!at_end && (length == 0 || !base::fits(offset, length, size))) {
    const std::string first = std::to_string(offset),
                      last = std::to_string(base::checked_add(offset, length - 1).value_or(UINT64_MAX));
    base::misuse_of(source->name(), "offset",
                    size == 0 ? "the file is empty"
                    : length == 0
                        ? "the range is empty"
                        : (length == 1 ? "there is no byte " + first : "there are no bytes " + first + " to " + last) +
                              ": the file has " + bytes_text(size));
  }
  Explanation out;
  out.size = size;
  out.offset = offset;
  out.length = length;
  const std::uint64_t begin = at_end ? size - 1 : offset, end = begin + length;
  core::Spans spans(begin, end, options.max_spans);
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  findings.keep_spans(&spans);
  registry::Loaded loaded =
      registry::load(place_of(source), context, {.format = options.format, .checks = Checks::structure}, findings);
  if (loaded.format != nullptr) out.format = loaded.format->info.name;
  Payload payload(spans, begin, end);
  for (const Tensor& tensor : loaded.model)
    for (const Part& part : tensor.parts()) {
      const auto extent = part.extent();
      if (extent && extent->length > 0 && core::is_same(*loaded.model.sources()[extent->source], *source))
        payload.report_span(tensor, part, *extent);
    }
  report_planes(spans, loaded.model, *source, context.limits);
  std::vector<Span> all = spans.take();
  out.left_out = spans.left_out();
  std::vector<Span> gaps;
  if (out.left_out == 0) report_gaps(*source, all, begin, end, gaps);
  out.spans.push_back({Span::Kind::file, 0, size, out.format.empty() ? "file" : std::string(out.format), {}});
  std::merge(all.begin(), all.end(), gaps.begin(), gaps.end(), std::back_inserter(out.spans),
             [](const Span& a, const Span& b) { return a.offset < b.offset; });

  const Span& inner = out.spans.back();
  for (const Finding& finding : report.findings()) {
    if (!finding.offset || !finding.file.empty()) continue;
    const std::uint64_t at = *finding.offset;
    if ((at >= begin && at < end) || at == offset ||
        (at >= inner.offset && at < inner.end() && inner.kind != Span::Kind::file))
      out.findings.push_back(finding);
  }
  if (loaded.format == nullptr && out.findings.empty() && !report.findings().empty())
    out.findings.push_back(report.findings().front());

  // Whole lines of sixteen, with one before the range.
  const std::uint64_t line = begin / 16 * 16, before = line >= 16 ? line - 16 : 0;
  out.bytes_at = options.bytes <= 32 ? begin : before;
  out.bytes.resize(static_cast<std::size_t>(std::min(options.bytes, size - out.bytes_at)));
  if (!out.bytes.empty()) source->read_at(out.bytes_at, out.bytes);
  return out;
}

Explanation explain(const std::string& path, std::uint64_t offset, std::uint64_t length, const Context& context,
                    const ExplainOptions& options) {
  return explain(open_file(path), offset, length, context, options);
}

namespace {

[[noreturn]] void no_element(std::string_view name, std::string why) {
  base::misuse("element", core::quoted(core::excerpt(name, 100)) + ": " + std::move(why));
}

[[noreturn]] void no_tensor(const Model& model, std::string_view name) {
  no_element(name, "there is no tensor of this name" +
                       core::near_text(name, model.size(), [&](std::uint32_t i) { return model.name(i); }));
}

// The tensor, and the text of an index after its name. A tensor with brackets in its name wins.
std::pair<Tensor, std::string_view> tensor_and_index(const Model& model, std::string_view name) {
  if (auto whole = model.find(name)) return {*std::move(whole), {}};
  const std::size_t bracket = name.ends_with(']') ? name.rfind('[') : std::string_view::npos;
  if (bracket == std::string_view::npos) no_tensor(model, name);
  auto found = model.find(name.substr(0, bracket));
  if (!found) no_tensor(model, name.substr(0, bracket));
  return {*std::move(found), name.substr(bracket)};
}

// The number of the element, row-major.
std::uint64_t element_of(std::string_view name, std::string_view index, Shape shape) {
  const std::string wanted =
      "the index must have " + std::to_string(shape.size()) + " numbers below " + core::shape_text(shape);
  std::string_view rest = index.substr(1, index.size() - 2);
  const auto skip_space = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size())); };
  std::uint64_t out = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    skip_space();
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (fault != std::errc() || number >= shape[d]) no_element(name, wanted);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    skip_space();
    if (d + 1 < shape.size() && (rest.empty() || rest.front() != ',')) no_element(name, wanted);
    if (d + 1 < shape.size()) rest.remove_prefix(1);
    out = out * shape[d] + number;  // below the number of elements, which fits
  }
  if (!rest.empty()) no_element(name, wanted);
  return out;
}

}  // namespace

Location locate(const Model& model, std::string_view name) {
  const auto [tensor, index] = tensor_and_index(model, name);
  if (const Finding* const why = tensor.unsupported(); tensor.part_count() == 0 && why != nullptr) throw Error(*why);
  if (tensor.part_count() == 0) base::unsupported("unsupported/location", "the tensor has no stored bytes");
  const Part part = tensor.main();
  const auto extent = part.extent();
  if (!extent) base::unsupported("unsupported/location", "the tensor is not stored as one range of bytes");
  Location out{extent->source, extent->offset, extent->length, false};
  if (index.empty()) return out;
  if (const Finding* const why = tensor.unsupported()) throw Error(*why);
  if (tensor.layout() != Layout::dense && tensor.block_type() == nullptr)
    no_element(name, "the elements of a sparse tensor have no places of their own");
  const std::uint64_t element = element_of(name, index, tensor.shape());
  if (part.encoding() != Encoding::raw) {
    out.whole = true;
    return out;
  }
  const auto cut = core::cut_of(part);
  if (const auto blocks = cut ? std::nullopt : Blocks::of(tensor, part)) {
    const codecs::ByteRange there = blocks->range(element / blocks->step());
    return {extent->source, extent->offset + there.offset, there.length, false};
  }
  if (tensor.block_type() != nullptr) base::unsupported("unsupported/location", "this build cannot find its blocks");
  const std::uint32_t bits = info(part.dtype()).bits;
  if (cut)
    out.offset += core::place_in(*cut, part, element);
  else
    out.offset += Places(part).place(element) * bits / 8;
  out.length = std::max<std::uint64_t>(bits / 8, 1);
  return out;
}

}  // namespace weighbridge
