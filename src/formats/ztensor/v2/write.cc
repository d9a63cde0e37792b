// SPDX-License-Identifier: Apache-2.0
// Model to zTensor 2: the one layout that plan and writer share. Blobs are placed as canonical files have them (6.3):
// at multiples of 64 KiB, in the order of object and part names. Options::canonical does the rest of that section: raw
// parts, xxh3 digests, one blob for equal content. From a file of zTensor 2, stored bytes are copied verbatim.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "codecs/checksum.h"
#include "codecs/sparse.h"
#include "core/model/view.h"
#include "core/payload/elements.h"
#include "core/payload/extents.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "core/payload/widen.h"
#include "core/writing/layout.h"
#include "formats/ztensor/planning.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/layout.h"
#include "formats/ztensor/v2/manifest.h"
#include "formats/ztensor/v2/profiles.h"
#include "formats/ztensor/v2/shards.h"

namespace weighbridge::ztensor2 {
namespace {

using core::indexed, core::subject;
using Form = core::Payload::Form;

constexpr std::uint32_t kRootLevel = 2, kObjectLevel = 4;  // of the maps of attributes

core::PartDigest digest_of(const Options& options) {
  if (options.digest == "none") return core::PartDigest::none;
  return options.digest == "sha256" ? core::PartDigest::decoded_sha256 : core::PartDigest::xxh3;
}

void refuse_options(const Options& options) {
  if (!options.canonical) return;
  if (options.shards.max_size != 0) base::misuse("max-shard-size", "a canonical file of zTensor 2 has no shards");
  if (!options.encoding.empty() && options.encoding != name(Encoding::raw))
    base::misuse("encoding", "a canonical file of zTensor 2 is not compressed");
  if (!options.digest.empty() && options.digest != "xxh3")
    base::misuse("digest", "a canonical file of zTensor 2 has digests xxh3");
}

// The indices of a sparse tensor in the type that the profile requires.
DType index_dtype(const Tensor& tensor) {
  DType out = DType::unknown;
  for (const Part& part : tensor.parts()) {
    if (!core::is_index(tensor.layout(), part.role())) continue;
    if (part.dtype() != DType::u32 && part.dtype() != DType::u64) return DType::u64;
    if (out != DType::unknown && out != part.dtype()) return DType::u64;
    out = part.dtype();
  }
  return out;
}

// Whether the entries are sorted and without duplicates, as the profiles require. Other containers do not require it,
// so the indices have to be read.
void require_sound_indices(const Tensor& tensor, const Context& context) {
  const auto feed = [&](std::string_view role, auto use) {
    tensor.part(role).value().stream(context, [&](std::span<const std::byte> piece) {
      use(piece);
      return true;
    });
  };
  codecs::SparseReport report;
  const Shape shape = tensor.shape();
  const std::uint64_t count = tensor.main().count();
  if (tensor.layout() == Layout::sparse_csr) {
    codecs::CsrChecker checker(shape[0], shape[1], count, tensor.part(kIndptr).value().dtype(),
                               tensor.part(kIndices).value().dtype(), context.limits.memory, true);
    feed(kIndptr, [&](std::span<const std::byte> piece) { checker.indptr(piece); });
    feed(kIndices, [&](std::span<const std::byte> piece) { checker.indices(piece); });
    report = checker.finish();
  } else {
    codecs::CooChecker checker({shape.begin(), shape.end()}, count, tensor.part(kCoords).value().dtype(),
                               context.limits.memory);
    feed(kCoords, [&](std::span<const std::byte> piece) { checker.coords(piece); });
    report = checker.finish();
  }
  if (report.total == 0 && report.duplicates_checked) return;
  if (report.violations.empty())
    base::over_limit("memory", "tensor \"" + std::string(tensor.name()) +
                                   "\" has too many entries to check their order within the memory limit");
  base::misuse("sparse-order",
               "tensor \"" + std::string(tensor.name()) + "\" has entries that zTensor 2 refuses: " +
                   report.violations.front().message + "; writing it as sparse again sorts them",
               base::option_hint("sparse", tensor.layout() == Layout::sparse_csr ? "csr" : "coo"));
}

class Planner : ztensor::Planning {
 public:
  Planner(const Model& model, const Options& options, const Context& context)
      : Planning(model, options, Subject::part),
        context_(context),
        from_zt2_(!options.canonical && model.format() == "zt2"),
        manifest_(std::make_shared<Manifest>()) {
    encoding_ = options;
    if (options.encoding == name(Encoding::zstd)) encoding_.encoding = name(Encoding::zstd_seekable);
    manifest_->keep = out_.owner;
  }

  core::WriteLayout run() {
    out_.head = kMagic;
    place_root();
    bool possible = true;
    for (const Tensor& tensor : model_) possible &= judge(tensor);
    if (possible) place_all();
    out_.owner = manifest_;
    if (!out_.blockers.empty()) return std::move(out_);
    const std::uint64_t tail = add_tail(manifest_);
    // The actual sizes of compressed parts may need more padding to a multiple of 64 KiB than their upper bounds do.
    if (!out_.size_exact) out_.size += kPlacement;
    if (tail > kMaxManifest)
      plan_items_.block(LossKind::shape, "the manifest", std::to_string(tail) + " bytes", "at most 1 GiB");
    return std::move(out_);
  }
  core::WriteLayout run_files() {
    core::WriteLayout whole = run();
    if (!whole.blockers.empty()) return whole;
    const std::uint64_t maximum = options_.shards.max_size == 0 ? UINT64_MAX : options_.shards.max_size;
    return divide(std::move(whole), *manifest_, maximum, digest_of(options_));
  }

 private:
  // Whether the stored bytes can be copied to the file.
  bool stores(const Part& part) const {
    if (!from_zt2_ || !part.extent() || !part.strides().empty() || core::cut_of(part)) return false;
    if (part.encoding() == Encoding::unknown) return true;
    const std::string_view own = name(part.encoding());
    const bool same = encoding_.encoding.empty() || encoding_.encoding == own;
    const bool digests_anew = !options_.digest.empty() && part.encoding() != Encoding::raw;
    return (part.encoding() == Encoding::raw || part.encoding() == Encoding::zstd_seekable) && same && !digests_anew;
  }

  bool judge(const Tensor& tensor) {
    const std::size_t before = out_.blockers.size();
    const auto block = [&](LossKind kind, std::string from, std::string to) {
      plan_items_.block(kind, subject(tensor), std::move(from), std::move(to));
    };
    if (!tensor.has_shape()) block(LossKind::shape, "an unknown shape", "every object states its shape");
    if (!base::is_utf8(tensor.name()) || !is_name(tensor.name()))
      block(LossKind::name, "its name", "a name has 1 to 1024 bytes of UTF-8, without NUL");
    if (tensor.part_count() == 0) block(LossKind::layout, "no parts", "every object has parts");
    const bool verbatim = std::ranges::all_of(all_parts(tensor), [&](const Part& p) { return stores(p); });
    if (tensor.unsupported() && !(from_zt2_ && verbatim))
      plan_items_.block_uninterpreted(tensor, subject(tensor), std::string(tensor.type_name()),
                                      tensor.unsupported()->message);
    else if (!tensor.unsupported() && is_quantized(tensor.layout()) && !tensor.block_type())
      block(LossKind::layout, std::string(tensor.layout_name()), "no layout that zTensor 2 is written with");
    else if (!tensor.unsupported() && tensor.layout() == Layout::sparse_coo && tensor.shape().empty())
      block(LossKind::layout, "sparse without dimensions", "no layout that zTensor 2 has");
    if (out_.blockers.size() != before) return false;
    if (const DType cast = cast_of(tensor); cast != DType::unknown) {
      core::check_cast(plan_items_, tensor, cast);
    } else {
      for (const Part& part : all_parts(tensor)) check_part(tensor, part);
    }
    for (const Part& part : tensor.parts())
      if (!is_written(tensor, part))
        plan_items_.lose(LossKind::layout, subject(tensor, part), std::string(part.role()),
                         "dropped: the layout has no such part");
    return out_.blockers.size() == before;
  }

  void check_part(const Tensor& tensor, const Part& part) {
    if (!is_written(tensor, part)) return;
    if (!base::is_utf8(part.role()) || !is_name(part.role()))
      plan_items_.block(LossKind::name, subject(tensor, part), "its name",
                        "a name has 1 to 1024 bytes of UTF-8, without NUL");
    else
      Planning::check_part(tensor, part, holds(part.dtype()), stores(part),
                           "no type of zTensor 2: a cast can make one");
  }
  static std::vector<Part> all_parts(const Tensor& tensor) {
    std::vector<Part> out;
    for (const Part& part : tensor.parts()) out.push_back(part);
    return out;
  }

  // Layouts of the specification have exactly these parts; zTensor 1.x only warns about further ones.
  static bool is_written(const Tensor& tensor, const Part& part) {
    switch (tensor.layout()) {
      case Layout::dense: return part == tensor.main();
      case Layout::sparse_csr: return part.role() == kValues || part.role() == kIndices || part.role() == kIndptr;
      case Layout::sparse_coo: return part.role() == kValues || part.role() == kCoords;
      case Layout::structural: return true;
      default: {
        const auto roles = tensor.block_type()->roles;
        return std::ranges::find(roles, part.role()) != roles.end();
      }
    }
  }

  void check_metadata(const Tensor& tensor) {
    for (const auto& [key, value] : tensor.extra())
      if (is_field(key) || !encode_value(value, kObjectLevel - 1))
        plan_items_.lose(LossKind::extra, subject(tensor) + "." + indexed("extra", key), value.to_text(), "dropped");
  }
  static bool is_field(std::string_view key) noexcept {
    return key == kShape || key == kLayout || key == kAttributes || key == kParts || !is_name(key) ||
           !base::is_utf8(key);
  }
  static bool is_part_field(std::string_view key) noexcept {
    return key == kDtype || key == kBlob || key == kShard || key == kEncoding || key == kDecodedLength ||
           key == kDigest || !is_name(key) || !base::is_utf8(key);
  }

  struct Made {
    core::Payload payload;
    OutPart part;
    Part from;
  };

  Made make(const Tensor& tensor, std::uint32_t index, const AsObject& object, DType cast) {
    Made made;
    core::Payload& p = made.payload;
    made.from = tensor.part(index);
    const Part& from = made.from;
    p.tensor = tensor;
    p.part = index;
    p.alignment = static_cast<std::uint32_t>(kPlacement);
    p.role = from.role();
    made.part.name = tensor.layout() == Layout::dense ? kData : part_name(tensor, object, from.role());
    p.digest = digest_of(options_);
    p.dtype = cast != DType::unknown ? cast : from.dtype();
    const bool index_part = core::is_index(tensor.layout(), from.role());
    if (cast != DType::unknown) {
      p.form = Form::dense;
      p.logical_size = packed_size(cast, base::element_count(tensor.shape()).value_or(0)).value_or(core::kMaxSum);
    } else {
      p.form = stores(from) ? Form::stored : Form::logical;
      p.logical_size = from.size();
      if (index_part && !from_zt2_) checked_indices(tensor, made);
    }
    if (p.form == Form::stored) {
      p.encoding = from.encoding();
      p.stored_size = from.extent()->length;
      keep_stored(made);
    } else {
      core::encode_payload(p, encoding_);
      out_.size_exact &= p.encoding == Encoding::raw;
    }
    name_changes(p, made.part.keeps_digest, "in a part of its own");
    describe(made);
    return made;
  }

  // Indices in a type of the profile, which are read once before they are written.
  void checked_indices(const Tensor& tensor, Made& made) {
    core::Payload& p = made.payload;
    const DType wanted = options_.canonical ? DType::u64 : index_dtype(tensor);
    const bool wide = made.from.dtype() != wanted;
    if (wide) {
      plan_items_.change(LossKind::dtype, subject(tensor, made.from), std::string(name(made.from.dtype())),
                         std::string(name(wanted)));
      p.logical_size = base::checked_mul(made.from.count(), 8).value_or(core::kMaxSum);
    }
    p.dtype = wanted;
    const bool checks = made.from.role() != kIndptr;  // once for each tensor
    if (!wide && !checks) return;
    p.form = Form::generated;
    p.make = [tensor, elements = wide ? core::widened(made.from) : core::elements_of(made.from), checks](
                 const Context& context, const auto& sink) {
      if (checks) require_sound_indices(tensor, context);
      elements->stream(context, [&](std::span<const std::byte> piece) { return sink(piece), true; });
    };
  }

  void keep_stored(Made& made) const {
    made.part.keeps_digest = options_.digest.empty();
    made.part.digest = made.part.keeps_digest ? std::string(made.from.digest()) : std::string();
    if (made.part.keeps_digest) made.payload.digest = core::PartDigest::none;
    for (const auto& [key, value] : made.from.extra()) {
      auto item = is_part_field(key) ? std::nullopt : encode_value(value, kObjectLevel + 1);
      if (item) made.part.extra.emplace_back(key, *std::move(item));
    }
  }

  // The fields of the manifest.
  static void describe(Made& made) {
    const core::Payload& p = made.payload;
    OutPart& out = made.part;
    out.size = p.logical_size;
    if (p.encoding == Encoding::zstd_seekable) out.encoding = kSeekable;
    if (p.encoding == Encoding::unknown) {
      out.encoding = made.from.encoding_name();
      if (const Attributes extra = made.from.extra(); const Value* const length = extra.find(kDecodedLength))
        out.size = length->as_u64().value_or(0);
    }
    if (const LogicalType* const type = logical_type(p.dtype)) {
      out.type = type->type;
      out.dtype = name(type->storage);
    } else {
      out.dtype = p.dtype == DType::unknown ? std::string(made.from.dtype_name()) : std::string(name(p.dtype));
    }
  }

  void place_all() {
    begin_payloads(kMagicSize);
    std::vector<std::uint32_t> first_part(model_.size() + 1);
    for (std::uint32_t i = 0; i < model_.size(); ++i) first_part[i + 1] = first_part[i] + model_[i].part_count();
    for (const std::uint32_t i : core::by_name(model_)) {
      place(model_[i], first_part[i]);
      if (!out_.blockers.empty()) return;
    }
  }

  void place(const Tensor& tensor, std::uint32_t first_part) {
    AsObject object = to_object(tensor);
    check_metadata(tensor);
    OutObject out;
    out.name = tensor.name();
    const Shape shape = tensor.shape();
    out.shape.assign(shape.begin(), shape.end());
    out.attributes = encode_attributes(object.attributes, kObjectLevel,
                                       [&](LossKind kind, const Value::Entry& e, std::string_view to) {
                                         plan_items_.lose(kind, subject(tensor) + "." + indexed("attributes", e.first),
                                                          e.second.to_text(), std::string(to));
                                       });
    for (const auto& [key, value] : tensor.extra())
      if (!is_field(key))
        if (auto item = encode_value(value, kObjectLevel - 1)) out.extra.emplace_back(key, *std::move(item));
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i)
      if (is_written(tensor, tensor.part(i))) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const Part one = tensor.part(a), other = tensor.part(b);
      return part_name(tensor, object, one.role()) < part_name(tensor, object, other.role());
    });
    const DType cast = cast_of(tensor);
    const std::size_t own = out_.payloads.size();
    out_.tensors.push_back({.name = out.name,
                            .from = tensor,
                            .layout = tensor.layout(),
                            .dtype = cast != DType::unknown ? cast : tensor.dtype()});
    for (const std::uint32_t i : order) out.parts.push_back(place_part(make(tensor, i, object, cast), first_part + i));
    out.layout = std::move(object.layout);
    out_.tensors.back().shared_parts = static_cast<std::uint32_t>(order.size() - (out_.payloads.size() - own));
    manifest_->objects.push_back(std::move(out));
  }

  OutPart place_part(Made made, std::uint32_t ordinal) {
    core::Payload& p = made.payload;
    p.out_tensor = static_cast<std::uint32_t>(out_.tensors.size() - 1);
    auto payload = options_.canonical ? equal_content(p) : shared_payload(p, ordinal, from_zt2_);
    if (!payload) payload = append_payload(std::move(p), ordinal);
    made.part.payload = payload.value_or(core::kNone);  // none: a blocker
    return std::move(made.part);
  }
  // 6.3, rule 3: finds the payload with the same bytes, comparing SHA-256; only payloads of equal sizes are read. If
  // there is none, remembers this one, which becomes the next payload.
  std::optional<std::uint32_t> equal_content(const core::Payload& p) {
    const auto next = static_cast<std::uint32_t>(out_.payloads.size());
    std::vector<Content>& same_size = contents_[p.logical_size];
    std::optional<codecs::Digest256> digest;
    for (Content& other : same_size) {
      if (!other.digest) other.digest = digest_of_payload(out_.payloads[other.payload]);
      if (!digest) digest = digest_of_payload(p);
      if (*digest == *other.digest) return other.payload;
    }
    same_size.push_back({next, digest});
    return std::nullopt;
  }
  codecs::Digest256 digest_of_payload(const core::Payload& p) const {
    codecs::Sha256 sha;
    const auto keep = [&](std::span<const std::byte> piece) {
      sha.update(piece);
      return true;
    };
    if (p.form == Form::dense)
      p.tensor.stream_dense(p.dtype, context_, keep);
    else if (p.form == Form::generated)
      p.make(context_, [&](std::span<const std::byte> piece) { sha.update(piece); });
    else
      p.tensor.part(p.part).stream(context_, keep);
    return sha.finish();
  }

  void place_root() {
    const Attributes all = model_.attributes();
    std::vector<Value::Entry> entries(all.begin(), all.end());
    const auto lose = [&](LossKind kind, const Value::Entry& e, std::string_view to) {
      plan_items_.lose(kind, indexed("attributes", e.first), e.second.to_text(), std::string(to));
    };
    add_tokenizer(entries, model_.tokenizer());
    manifest_->attributes = encode_attributes(entries, kRootLevel, lose);
    for (const auto& [key, value] : model_.extra()) {
      const bool own = key == kAttributes || key == kShards || key == kObjects || !is_name(key) || !base::is_utf8(key);
      auto item = own ? std::nullopt : encode_value(value, 1);
      if (item)
        manifest_->extra.emplace_back(key, *std::move(item));
      else
        plan_items_.lose(LossKind::extra, indexed("extra", key), value.to_text(), "dropped");
    }
  }

  struct Content {
    std::uint32_t payload;
    std::optional<codecs::Digest256> digest;
  };

  const Context& context_;
  Options encoding_;
  const bool from_zt2_;  // stored bytes may be copied verbatim
  std::shared_ptr<Manifest> manifest_;
  std::map<std::uint64_t, std::vector<Content>> contents_;  // canonical: by size
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context& context) {
  if (options.shards.max_size != 0) return layout_files(model, options, context);
  refuse_options(options);
  return Planner(model, options, context).run();
}

core::WriteLayout layout_files(const Model& model, const Options& options, const Context& context) {
  refuse_options(options);
  return Planner(model, options, context).run_files();
}

}  // namespace weighbridge::ztensor2
