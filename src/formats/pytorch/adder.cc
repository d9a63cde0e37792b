// SPDX-License-Identifier: Apache-2.0
// Finds where elements lie in their storages.
#include "formats/pytorch/adder.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "codecs/cast.h"
#include "core/archive/pickle_globals.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/payload/work.h"
#include "core/reading/rules.h"
#include "formats/pytorch/format.h"

namespace weighbridge::pytorch {
namespace {

using core::bytes_text, wire::Pickle;
using Ref = Pickle::Ref;

constexpr std::size_t kMaxDims = 64;  // a limit of the object model, not of the format

// The index of the last element, plus one; nullopt above 2^64 - 1. No dimension is 0.
std::optional<std::uint64_t> span_of(const Strided& data) {
  if (data.strides.empty()) return base::element_count(data.shape);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < data.shape.size(); ++i) {
    const auto step = base::checked_mul(data.shape[i] - 1, static_cast<std::uint64_t>(data.strides[i]));
    const auto sum = step ? base::checked_add(last, *step) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return base::checked_add(last, 1);
}

bool row_major(const Strided& data) {
  if (data.strides.empty() || std::ranges::find(data.shape, 0U) != data.shape.end()) return true;
  std::uint64_t step = 1;
  for (std::size_t i = data.shape.size(); i-- > 0;) {
    if (data.shape[i] != 1 && static_cast<std::uint64_t>(data.strides[i]) != step) return false;
    step *= data.shape[i];  // no more than the number of elements
  }
  return true;
}

// The elements of an array in Fortran order, in row-major order.
std::string reordered(const std::string& from, Shape shape, std::uint32_t width) {
  std::string out(from.size(), '\0');
  std::vector<std::uint64_t> index(shape.size(), 0);
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::uint64_t element = 0, step = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      element += index[i] * step;
      step *= shape[i];
    }
    from.copy(out.data() + to, width, base::to_size(element * width));
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace

void Adder::add(const Content& content, Storages& storages) {
  content_ = &content;
  storages_ = &storages;
  const WalkEnd end = walk(content.pickle, content.input, context_.limits, content.top, *this);
  const core::At here{.offset = content.base.value_or(content.at)};
  if (end == WalkEnd::depth) findings_.report(core::rules::kLimitDepth, here, core::at_most(context_.limits.depth));
  if (end == WalkEnd::names) findings_.report(rules::kNames, here);
  if (end == WalkEnd::memory)
    findings_.report(core::rules::kLimitMemory, here, core::at_most(core::in_bytes(context_.limits.memory)));
}

void Adder::finish() {
  draft_.drop_same_names([&](std::uint32_t, std::uint32_t later) {
    findings_.report(rules::kDuplicateName, {.offset = at_[later], .tensor = draft_.name(later)});
  });
  if (!own_attributes_) draft_.set_attributes_in_tree();
  if (lacking_ > 0)
    draft_.set_incomplete({.why = (lacking_ == 1 ? "the data of one tensor is"
                                                 : "the data of " + std::to_string(lacking_) + " tensors are") +
                                  " not in the file: " + first_lacking_ + (lacking_ == 1 ? "" : " and others")});
}

void Adder::tensor(std::string_view name, const Rebuilt& rebuilt, Ref ref) {
  const std::string full = full_name(name);
  const core::At where{.offset = offset_of(ref), .tensor = full};
  if (!base::is_utf8(full)) return findings_.report(rules::kNameUtf8, {.offset = offset_of(ref)});
  if (draft_.size() >= context_.limits.tensors)
    return findings_.report(core::rules::kLimitTensors, where, core::at_most(context_.limits.tensors));
  if (rebuilt.fault != nullptr && rebuilt.fault->severity == Severity::error)
    return findings_.report(*rebuilt.fault, where, {}, {}, rebuilt.why);
  if (rebuilt.fault != nullptr)
    add_unsupported(full, rebuilt, where);
  else if (rebuilt.form == Rebuilt::Form::array)
    add_array(full, rebuilt.array, where);
  else if (rebuilt.conjugated || rebuilt.negated)
    add_turned(full, rebuilt, where);
  else if (rebuilt.quantizer)
    add_quantized(full, rebuilt, where);
  else if (rebuilt.form == Rebuilt::Form::strided)
    add_dense(full, rebuilt.data, where);
  else
    add_sparse(full, rebuilt, where);
  at_.resize(draft_.size(), offset_of(ref));
}

void Adder::value(std::string_view name, Value value, Ref ref) {
  std::string key = full_name(name);
  if (!base::is_utf8(key)) return findings_.report(rules::kNameUtf8, {.offset = offset_of(ref)});
  if (draft_.attribute(key) != nullptr)
    return findings_.report(rules::kDuplicateValue, {.offset = offset_of(ref)}, {}, core::in_quotes(key));
  draft_.set_attribute(std::move(key), std::move(value));
}

namespace {

// Whether the function or class that would make the object is harmful.
bool is_dangerous(const wire::Pickle& pickle, wire::Pickle::Ref ref) {
  constexpr int kMaxCalls = 16;  // calls of what a call returns; more are far from anything that a program writes
  for (int i = 0; i < kMaxCalls && pickle.kind(ref) == wire::PickleKind::object; ++i) ref = pickle.callee(ref);
  return pickle.kind(ref) == wire::PickleKind::global &&
         (pickle.computed(ref) || core::is_dangerous_global(pickle.module(ref), pickle.name(ref)));
}

}  // namespace

void Adder::opaque(std::string_view name, Ref ref, std::string_view why) {
  const std::string full = full_name(name);
  std::string detail = why.empty() ? spell_class(content_->pickle, ref) : std::string(why);
  if (!base::is_utf8(detail)) detail.clear();
  draft_.add_left_behind(core::indexed("values", base::is_utf8(full) ? full : std::string()),
                         detail.empty() ? "an object of an unknown class" : detail);
  const Rule& rule = is_dangerous(content_->pickle, ref) ? rules::kDangerousValue : rules::kOpaque;
  findings_.report(rule, {.offset = offset_of(ref)}, {},
                   base::is_utf8(full) ? core::quoted(core::excerpt(full, 80)) : std::string(), detail);
}

std::string Adder::full_name(std::string_view name) const { return std::string(content_->prefix) + std::string(name); }
std::uint64_t Adder::offset_of(Ref ref) const {
  return content_->base ? *content_->base + content_->pickle.at(ref) : content_->at;
}

void Adder::mark(std::uint32_t tensor, const Rule& rule, const core::At& where, const core::Said& found,
                 std::string_view why) {
  Finding finding = core::Findings::make(rule, where, {}, found, base::is_utf8(why) ? why : "");
  if (rule.phase == Rule::Phase::whole) {  // place() reported it
    finding.severity = Severity::unsupported;
    finding.kind = Kind::unsupported;
  } else {
    findings_.report(finding);
  }
  draft_.tensor(tensor).unsupported(std::move(finding));
}

void Adder::add_unsupported(std::string_view name, const Rebuilt& rebuilt, const core::At& where) {
  const bool strided = rebuilt.form == Rebuilt::Form::strided;
  const auto& shape = strided ? rebuilt.data.shape : rebuilt.shape;
  if (shape.size() > kMaxDims) return findings_.report(rules::kRank, where, {}, shape.size());
  std::optional<Placed> placed;
  if (strided && !(placed = place(rebuilt.data, where))) return;
  const DType dtype = rebuilt.data.type == nullptr ? DType::unknown : rebuilt.data.type->dtype;
  const std::uint32_t tensor = draft_.add_tensor(name, Layout::dense, dtype, shape);
  if (dtype == DType::unknown && !rebuilt.type_name.empty() && base::is_utf8(rebuilt.type_name))
    draft_.tensor(tensor).type_name(rebuilt.type_name);
  // A conjugated or negated view has no part, because bytes of a known type would be taken for its values.
  const bool shows_bytes = rebuilt.fault->id != rules::kConjugate.id;
  if (shows_bytes && placed && placed->unreadable == nullptr && placed->strides.empty()) {
    placed->dtype = dtype;
    add_part(draft_, "data", *placed);
    if (dtype == DType::unknown) draft_.first_part(tensor).dtype_name(rebuilt.type_name);
  }
  mark(tensor, *rebuilt.fault, where, {}, rebuilt.why);
}

// Where the elements are. nullopt: it is broken, which has been reported.
std::optional<Adder::Placed> Adder::place(const Strided& data, const core::At& where) {
  const auto wrong = [&](const Rule& rule, const core::Said& expected = {}, const core::Said& found = {},
                         std::string why = {}) {
    findings_.report(rule, where, expected, found, why);
    return std::nullopt;
  };
  const auto key = [&] { return "storage " + core::quoted(core::excerpt(data.storage.key)); };
  Placed out;
  out.shape = data.shape;
  out.dtype = data.type->codes == DType::unknown ? data.type->dtype : data.type->codes;
  if (out.shape.size() > kMaxDims) return wrong(rules::kRank, {}, out.shape.size());
  const std::uint64_t width = data.type->bytes;
  const auto count = base::element_count(out.shape);
  const auto bytes = count ? base::checked_mul(*count, width) : std::nullopt;
  if (!bytes || *bytes > INT64_MAX) return wrong(rules::kSizeOverflow, {}, core::of_shape(out.shape));
  out.size = *bytes;
  const auto there = base::checked_mul(data.storage.count, data.storage.type->bytes);
  const auto before = base::checked_mul(data.storage.first, data.storage.type->bytes);
  const auto storage_end = there && before ? base::checked_add(*before, *there) : std::nullopt;
  if (!storage_end) return wrong(rules::kStorageId, {}, {}, "its size overflows");
  // The bytes from the first element to the last.
  std::uint64_t first = 0, length = 0;
  if (*count > 0) {
    const auto span = span_of(data);
    const auto span_bytes = span ? base::checked_mul(*span, width) : std::nullopt;
    const auto offset = base::checked_mul(data.first, width);
    if (!span_bytes || !offset || !base::fits(*offset, *span_bytes, *there))
      return wrong(rules::kView, core::in_bytes(*there),
                   span_bytes && offset ? bytes_text(*span_bytes) + " at " + std::to_string(*offset)
                                        : std::string("more than 2^64 bytes"),
                   key());
    first = *offset;
    length = *span_bytes;
  }
  Stored* const stored = storages_->find(data.storage);
  if (stored == nullptr) {
    // The file is only a part of a checkpoint: list the tensor, whose elements are elsewhere.
    findings_.report_absent(rules::kStorageMissing, where, key());
    if (lacking_++ == 0) first_lacking_ = key();
    out.unreadable = &rules::kStorageMissing;
    return out;
  }
  if (stored->unreadable != nullptr) {
    out.unreadable = stored->unreadable;
    out.why = stored->found;
    return out;
  }
  if (stored->size < *storage_end)
    return wrong(rules::kStorageSize, core::in_bytes(*storage_end), core::in_bytes(stored->size), key());
  return in_storage(data, where, *stored, std::move(out), *count == 0 ? 0 : *before + first, length);
}

std::optional<Adder::Placed> Adder::in_storage(const Strided& data, const core::At& where, const Stored& stored,
                                               Placed out, std::uint64_t begin, std::uint64_t length) {
  const bool ordered = row_major(data);
  if (data.type->packed > 1) {
    // The last dimension counts groups of elements.
    const auto last = out.shape.empty() ? std::nullopt : base::checked_mul(out.shape.back(), data.type->packed);
    if (!ordered || !last) {
      out.unreadable = &rules::kUnknownDtype;
      out.why = std::string(data.type->name) + " that is not in order";
      return out;
    }
    out.shape.back() = *last;
  }
  out.encoding = stored.encoding;
  if (out.encoding == Encoding::raw) {
    out.extent = {0, stored.offset + begin, length};
    if (!ordered) out.strides = data.strides;
    return out;
  }
  out.extent = {0, stored.offset, stored.stored};
  if (!ordered) {
    out.unreadable = &rules::kStridedDeflate;
  } else if (stored.size > context_.limits.decoded) {
    findings_.report(core::rules::kLimitDecoded, where, core::at_most(core::in_bytes(context_.limits.decoded)),
                     core::in_bytes(stored.size));
    return std::nullopt;
  } else if (begin != 0 || out.size != stored.size) {
    out.cut = core::Cut{.whole = stored.size, .first = begin, .step = data.type->bytes};
  }
  return out;
}

void Adder::add_part(core::Draft& draft, std::string_view role, const Placed& placed) const {
  const std::uint32_t part =
      draft.add_part(role, placed.dtype, placed.shape, placed.encoding, placed.extent, placed.size);
  if (placed.cut) draft.part(part).cut(*placed.cut);
  if (!placed.strides.empty()) draft.part(part).strides(placed.strides);
  if (content_->order == Order::big && info(placed.dtype).swap_bytes > 1) draft.part(part).order(Order::big);
}

// Reports elements that their strides repeat so often that computing all of them has no end.
bool Adder::repeats(const Placed& placed, std::uint64_t size, const core::At& where) {
  if (placed.strides.empty() || size <= core::allowed_work(placed.extent.length, context_.limits.work)) return false;
  findings_.report(core::rules::kLimitWork, where);
  return true;
}

// In row-major order, for a tensor that is computed from them.
core::ElementsPtr Adder::elements_of(const Placed& placed) const {
  core::Draft own;
  own.add_sources(draft_.sources());
  own.add_tensor({}, Layout::dense, placed.dtype, placed.shape);
  add_part(own, "data", placed);
  own.index_names();
  return core::elements_of(own.finish()[0].main());
}

void Adder::add_made(std::string_view name, const Placed& from, DType dtype, core::ElementsPtr elements) {
  draft_.add_tensor(name, Layout::dense, dtype, from.shape);
  const std::uint64_t size = *packed_size(dtype, elements->count());
  draft_.part(draft_.add_part("data", dtype, from.shape, Encoding::computed, {}, size)).elements(std::move(elements));
}

namespace {

// Changes the signs of numbers of this many bytes, every `step`-th one.
void negate(DTypeKind kind, std::span<std::byte> bytes, std::size_t width, std::size_t first, std::size_t step) {
  for (std::size_t at = first * width; at < bytes.size(); at += step * width) {
    const auto number = bytes.subspan(at, width);
    if (kind == DTypeKind::signed_integer) {
      unsigned carry = 1;
      for (std::byte& each : number) {
        carry += std::to_integer<unsigned>(~each);
        each = static_cast<std::byte>(carry & 0xFFU);
        carry >>= 8;
      }
    } else {
      number.back() ^= std::byte{0x80};
    }
  }
}

}  // namespace

// A view that PyTorch conjugates or negates when it is used.
void Adder::add_turned(std::string_view name, const Rebuilt& rebuilt, const core::At& where) {
  const auto placed = place(rebuilt.data, where);
  if (!placed) return;
  if (placed->unreadable != nullptr) return add_dense(name, rebuilt.data, where);
  if (repeats(*placed, placed->size, where)) return;
  const DTypeInfo& type = info(placed->dtype);
  const bool pairs = type.kind == DTypeKind::complex;
  const std::size_t width = type.bits / (pairs ? 16U : 8U);
  add_made(name, *placed, placed->dtype,
           core::mapped(elements_of(*placed),
                        {.dtype = placed->dtype,
                         .make = [kind = type.kind, width, conjugated = rebuilt.conjugated, negated = rebuilt.negated](
                                     std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out,
                                     const Context&, codecs::CastTally*) {
                           std::ranges::copy(in, out.begin());
                           if (conjugated) negate(kind, out, width, 1, 2);
                           if (negated) negate(kind, out, width, 0, 1);
                         }}));
}

namespace {

// The scales and zeros of the channels of a quantized tensor, read once.
class Channels {
 public:
  Channels(core::ElementsPtr scales, core::ElementsPtr zeros) : scales_(std::move(scales)), zeros_(std::move(zeros)) {}
  void read(const Context& context) {
    const std::lock_guard lock(mutex_);
    if (!scale.empty() || scales_->count() == 0) return;
    zero = numbers(*zeros_, context);
    scale = numbers(*scales_, context);
  }
  std::vector<double> scale, zero;

 private:
  static std::vector<double> numbers(const core::Elements& from, const Context& context) {
    std::vector<std::byte> stored(core::bytes_of(from.dtype(), from.count()));
    from.read(0, from.count(), stored, context);
    std::vector<double> out(base::to_size(from.count()));
    if (info(from.dtype()).kind == DTypeKind::real) {
      codecs::cast(from.dtype(), stored, DType::f64, std::as_writable_bytes(std::span(out)), from.count());
      return out;
    }
    std::vector<std::int64_t> whole(out.size());
    codecs::cast(from.dtype(), stored, DType::i64, std::as_writable_bytes(std::span(whole)), from.count());
    std::ranges::transform(whole, out.begin(), [](std::int64_t each) { return static_cast<double>(each); });
    return out;
  }
  const core::ElementsPtr scales_, zeros_;
  std::mutex mutex_;
};

}  // namespace

// The values of a quantized tensor, as PyTorch's dequantize() computes them.
void Adder::add_quantized(std::string_view name, const Rebuilt& rebuilt, const core::At& where) {
  const Quantizer& how = *rebuilt.quantizer;
  std::vector<Placed> placed;
  for (const Strided* each : {&rebuilt.data, how.scales ? &*how.scales : nullptr, how.zeros ? &*how.zeros : nullptr}) {
    if (each == nullptr) continue;
    auto one = place(*each, where);
    if (!one) return;
    if (one->unreadable != nullptr) {
      const std::uint32_t tensor = draft_.add_tensor(name, Layout::dense, DType::unknown, rebuilt.data.shape);
      return mark(tensor, *one->unreadable, where, one->why, {});
    }
    placed.push_back(*std::move(one));
  }
  const auto codes = elements_of(placed[0]);
  if (repeats(placed[0], codes->count() * sizeof(float), where)) return;
  std::uint64_t inner = 1, channels = 1;  // elements of one channel that are neighbors
  if (how.scales) {
    channels = rebuilt.data.shape[how.axis];
    for (std::size_t i = how.axis + 1; i < rebuilt.data.shape.size(); ++i) inner *= rebuilt.data.shape[i];
  }
  const auto all = how.scales ? std::make_shared<Channels>(elements_of(placed[1]), elements_of(placed[2])) : nullptr;
  const auto make = [=, scale = how.scale, zero = static_cast<double>(how.zero)](
                        std::uint64_t first, std::span<const std::byte> in, std::span<std::byte> out,
                        const Context& context, codecs::CastTally*) {
    if (all) all->read(context);
    const std::size_t n = out.size() / sizeof(float);
    std::vector<double> numbers(n);
    codecs::cast(codes->dtype(), in, DType::f64, std::as_writable_bytes(std::span(numbers)), n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto channel = base::to_size((first + i) / inner % channels);
      // With one scale, PyTorch computes in f32; with one for each channel, in f64.
      const float value = all ? static_cast<float>((numbers[i] - all->zero[channel]) * all->scale[channel])
                              : static_cast<float>(scale) * static_cast<float>(numbers[i] - zero);
      base::store_le(out.data() + i * sizeof(float), std::bit_cast<std::uint32_t>(value));
    }
  };
  add_made(name, placed[0], DType::f32, core::mapped(codes, {.dtype = DType::f32, .make = make}));
  draft_.add_left_behind(core::indexed("tensors", name),
                         "the codes of " + rebuilt.type_name + ", whose values are written");
}

void Adder::add_dense(std::string_view name, const Strided& data, const core::At& where) {
  const auto placed = place(data, where);
  if (!placed) return;
  const std::uint32_t tensor = draft_.add_tensor(name, Layout::dense, placed->dtype, placed->shape);
  if (placed->unreadable == nullptr)
    add_part(draft_, "data", *placed);
  else
    mark(tensor, *placed->unreadable, where, placed->why, {});
}

void Adder::add_sparse(std::string_view name, const Rebuilt& rebuilt, const core::At& where) {
  if (rebuilt.shape.size() > kMaxDims) return findings_.report(rules::kRank, where);
  const bool coo = rebuilt.form == Rebuilt::Form::coo;
  std::vector<std::pair<std::string_view, const Strided*>> parts{{"values", &rebuilt.data}};
  if (coo) {
    parts.emplace_back("coords", &rebuilt.indices[0]);
  } else {
    parts.emplace_back("indices", &rebuilt.indices[1]);
    parts.emplace_back("indptr", &rebuilt.indices[0]);
  }
  std::vector<Placed> placed;
  for (const auto& [role, data] : parts) {
    auto each = place(*data, where);
    if (!each) return;
    placed.push_back(*std::move(each));
  }
  const std::uint32_t tensor =
      draft_.add_tensor(name, coo ? Layout::sparse_coo : Layout::sparse_csr, rebuilt.data.type->dtype, rebuilt.shape);
  for (const Placed& each : placed)
    if (each.unreadable != nullptr) return mark(tensor, *each.unreadable, where, each.why, {});
  for (std::size_t i = 0; i < parts.size(); ++i) add_part(draft_, parts[i].first, placed[i]);
}

namespace {

// Whether a text stands for bytes, as their Latin-1.
bool is_encoded(const Pickle& pickle, Ref ref) {
  return pickle.kind(ref) == wire::PickleKind::text && !pickle.is_str(ref);
}
// Where bytes, or the data of an object, are in the input as they are.
std::optional<Pickle::Span> bytes_at(const Pickle& pickle, Ref ref) {
  if (pickle.kind(ref) != wire::PickleKind::object) return pickle.span(ref);
  const auto found = std::ranges::lower_bound(pickle.data(), ref, {}, &wire::PickleData::object);
  if (found == pickle.data().end() || found->object != ref) return std::nullopt;
  return Pickle::Span{found->offset, found->length};
}

}  // namespace

// A NumPy array, whose bytes are in the pickle, verbatim or as text.
void Adder::add_array(std::string_view name, const PickledArray& array, const core::At& where) {
  if (array.shape.size() > kMaxDims) return findings_.report(rules::kRank, where, {}, array.shape.size());
  const auto count = base::element_count(array.shape);
  const auto size = count ? packed_size(array.dtype, *count) : std::nullopt;
  if (!size || *size > INT64_MAX) return findings_.report(rules::kSizeOverflow, where, {}, core::of_shape(array.shape));
  const Pickle& pickle = content_->pickle;
  const auto span = bytes_at(pickle, array.bytes);
  if (is_encoded(pickle, array.bytes) || !span || !content_->base) return add_decoded_array(name, array, *size, where);
  if (span->length != *size)
    return findings_.report(rules::kStorageSize, where, core::in_bytes(*size), core::in_bytes(span->length));
  draft_.add_tensor(name, Layout::dense, array.dtype, array.shape);
  const std::uint32_t part = draft_.add_part("data", array.dtype, array.shape, Encoding::raw,
                                             {0, *content_->base + span->offset, *size}, *size);
  if (array.big && info(array.dtype).swap_bytes > 1) draft_.part(part).order(Order::big);
  if (!array.fortran) return;
  std::vector<std::int64_t> strides(array.shape.size());
  std::int64_t step = 1;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    strides[i] = step;
    if (*count > 0) step *= static_cast<std::int64_t>(array.shape[i]);
  }
  draft_.part(part).strides(std::move(strides));
}

// Array bytes that are not in the file verbatim are decoded now and kept.
void Adder::add_decoded_array(std::string_view name, const PickledArray& array, std::uint64_t size,
                              const core::At& where) {
  const Pickle& pickle = content_->pickle;
  // Arrays may share their bytes, and each has a copy: allow a megabyte, and the input four times.
  constexpr std::uint64_t kDecodedAlways = std::uint64_t{1} << 20, kDecodedPerByte = 4;
  const std::uint64_t allowed = kDecodedAlways + kDecodedPerByte * content_->input.size;
  if (size > allowed - std::min(decoded_, allowed)) return findings_.report(core::rules::kLimitWork, where);
  decoded_ += size;
  std::string bytes;
  const bool object = pickle.kind(array.bytes) == wire::PickleKind::object;
  if (const auto kept = object ? std::nullopt : pickle.text(array.bytes)) {
    bytes = *kept;
  } else if (const auto span = bytes_at(pickle, array.bytes)) {
    bytes.resize(base::to_size(span->length));
    content_->input.read(span->offset, std::as_writable_bytes(std::span(bytes)));
  }
  if (is_encoded(pickle, array.bytes)) {
    auto decoded = wire::from_latin1(bytes);
    if (!decoded) return findings_.report(rules::kTensorArguments, where, {}, {}, "its bytes are not Latin-1 text");
    bytes = *std::move(decoded);
  }
  if (bytes.size() != size)
    return findings_.report(rules::kStorageSize, where, core::in_bytes(size), core::in_bytes(bytes.size()));
  const DTypeInfo& element = info(array.dtype);
  if (array.big) base::swap_units(std::as_writable_bytes(std::span(bytes)), element.swap_bytes);
  if (array.fortran && size > 0) bytes = reordered(bytes, array.shape, element.bits / 8);
  if (array.dtype == DType::boolean)
    for (char& each : bytes) each = each == 0 ? 0 : 1;
  draft_.add_tensor(name, Layout::dense, array.dtype, array.shape);
  const std::uint32_t part = draft_.add_part("data", array.dtype, array.shape, Encoding::computed, {}, size);
  auto kept = std::make_shared<const std::string>(std::move(bytes));
  draft_.part(part).elements(
      core::held_elements(array.dtype, size * 8 / element.bits, {std::as_bytes(std::span(*kept)), kept}));
}

}  // namespace weighbridge::pytorch
