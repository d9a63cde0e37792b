// SPDX-License-Identifier: Apache-2.0
// Folders in which trainers publish the difference between two checkpoints: safetensors files with a tensor of
// compressed bytes for each tensor that changes, and an index that says what they are.
//
//   slime, miles, ModelExpress   model.safetensors.index.json with delta_encoding; checksums in the files' metadata
//   SkyRL                        manifest.json, which lists every tensor
//
// The bytes are one zstd stream: the exclusive or of all bytes of the tensor ("xor"); or a count, as many positions of
// bytes, all u32, and the new bytes ("overwrite", slime only). Checksums are of the new tensor.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "codecs/codec.h"
#include "codecs/zstd.h"
#include "core/model/numpy_types.h"
#include "core/model/words.h"
#include "core/payload/payload.h"
#include "core/reading/rules.h"
#include "core/reading/shards.h"
#include "delta/encode.h"
#include "io/read.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "wire/json_reader.h"

namespace weighbridge::delta {
namespace {

namespace rules = core::rules;

constexpr std::string_view kManifest = "manifest.json", kIndex = "model.safetensors.index.json";
constexpr std::uint64_t kPositions = std::uint64_t{1} << 32;
constexpr std::size_t kHead = 4, kEach = 5;  // bytes of a count; of a position and its byte

[[noreturn]] void fail(const Rule& rule, std::string_view tensor, const core::Said& expected, const core::Said& found) {
  throw Error(core::Findings::make(rule, {.tensor = tensor}, expected, found));
}

enum class Sum : std::uint8_t { xxh3, adler, sha256 };
constexpr std::string_view kSums[] = {"xxh3-128", "adler32", "sha256"};

Sum sum_named(std::string_view name) {
  const auto* const at = std::ranges::find(kSums, name);
  if (at == std::end(kSums))
    base::unsupported("unsupported/checksum", "the checksum " + core::quoted(core::excerpt(name)) +
                                                  " is not one that this build computes: xxh3-128, adler32, sha256");
  return static_cast<Sum>(at - kSums);
}

class Summing {
 public:
  explicit Summing(Sum kind) : kind_(kind) {}
  void update(std::span<const std::byte> bytes) {
    if (kind_ == Sum::xxh3) xxh3_.update(bytes);
    if (kind_ == Sum::adler) adler_ = codecs::adler32(bytes, adler_);
    if (kind_ == Sum::sha256) sha256_.update(bytes);
  }
  std::string hex() {
    return kind_ == Sum::xxh3    ? codecs::to_hex(xxh3_.finish())
           : kind_ == Sum::adler ? codecs::to_hex(adler_)
                                 : codecs::to_hex(sha256_.finish());
  }

 private:
  Sum kind_;
  codecs::Xxh3_128 xxh3_;
  codecs::Sha256 sha256_;
  std::uint32_t adler_ = 1;
};

// "bfloat16": PyTorch's names are those of NumPy and ml_dtypes.
std::string_view torch_name(DType dtype) {
  const core::NumpyType* const type = core::numpy_type(dtype);
  for (std::string_view left = type ? type->words : std::string_view(); !left.empty();) {
    const std::string_view word = left.substr(0, left.find(' '));
    if (word.size() > 2) return word;
    left.remove_prefix(std::min(word.size() + 1, left.size()));
  }
  return name(dtype);
}

// What a folder says of one tensor.
struct Entry {
  Model file{};
  Tensor bytes{};  // of the file
  bool overwrite = false;
  std::string checksum{};
  Sum sum = Sum::xxh3;
};

void exclusive_or(std::span<std::byte> out, std::span<const std::byte> with) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] ^= with[i];
}

// The bytes of [offset, offset + out.size()), which begin and end at whole elements.
void read_bytes(const core::Elements& from, std::uint64_t offset, std::span<std::byte> out, const Context& context) {
  const std::uint64_t first = core::elements_in(offset, from.dtype());
  from.read(first, std::min(core::elements_in(out.size(), from.dtype()), from.count() - first), out, context);
}

// The elements of the base with the published changes, made in order. Checks the checksum at the end.
class PublishedElements final : public core::Elements {
 public:
  PublishedElements(const Part& base, Entry entry, std::string scratch)
      : Elements(base.dtype(), base.count()), base_(base), entry_(std::move(entry)), scratch_(std::move(scratch)) {}

  std::uint64_t at_once() const noexcept override { return count(); }
  void read(std::uint64_t first, std::uint64_t n, std::span<std::byte> out, const Context& context,
            codecs::CastTally* tally) const override {
    read_in_order(first, n, out, context, tally);
  }
  void stream(const Context& context, const core::ElementSink& sink, codecs::CastTally*) const override {
    const core::ElementsPtr from = in_any_order(base_, scratch_, context);
    Summing sum(entry_.sum);
    std::vector<std::byte> made;
    std::uint64_t at = 0;
    bool going = true;
    // Makes the next bytes of the result.
    const auto next = [&](std::size_t size, auto&& change) {
      made.resize(size);
      read_bytes(*from, at, made, context);
      change(std::span(made));
      sum.update(made);
      at += size;
      return going = sink(made);
    };
    if (entry_.overwrite) {
      const Overwrite list = decoded_list(context);
      std::size_t i = 0;
      while (going && at < base_.size())
        next(static_cast<std::size_t>(std::min(core::kPiece, base_.size() - at)), [&](std::span<std::byte> out) {
          for (; i < list.count && list.position(i) < at + out.size(); ++i)
            out[base::to_size(list.position(i) - at)] = list.value(i);
        });
    } else {
      core::Chunks chunks(base::to_size(core::kPiece), [&](std::span<const std::byte> piece) {
        return next(piece.size(), [&](std::span<std::byte> out) { exclusive_or(out, piece); });
      });
      decode(base_.size(), context, [&](std::span<const std::byte> piece) { return chunks.add(piece); });
      if (going) chunks.finish();
    }
    if (!going) return;
    if (const std::string hex = sum.hex(); hex != entry_.checksum)
      fail(rules::kPublishedChecksum, name(), {kSums[static_cast<std::size_t>(entry_.sum)], " ", entry_.checksum},
           {std::string_view(hex)});
  }

 private:
  struct Overwrite {
    std::vector<std::byte> bytes;
    std::size_t count = 0;
    std::uint64_t position(std::size_t i) const { return base::load_le<std::uint32_t>(&bytes[kHead + 4 * i]); }
    std::byte value(std::size_t i) const { return bytes[kHead + 4 * count + i]; }
  };

  std::string_view name() const { return entry_.bytes.name(); }
  io::StoredBytes stored() const {
    const Extent extent = *entry_.bytes.main().extent();
    return {*entry_.file.sources()[extent.source], extent.offset, extent.length};
  }
  void decode(std::uint64_t size, const Context& context, const codecs::Decoder::Sink& sink) const {
    if (size > context.limits.decoded)
      base::over_limit("decoded", "the changes of the tensor " + core::quoted(name()) + " exceed the limit", size);
    io::StoredBytes bytes = stored();
    const codecs::LentDecoder decoder(codecs::kZstd);
    const codecs::DecodeResult result = decoder->decode(size, context.limits.memory, std::ref(bytes), sink);
    if (result.fault == codecs::DecodeFault::memory)
      base::over_limit("memory",
                       "the changes of the tensor " + core::quoted(name()) + " need a window that exceeds the limit");
    if (!result.ok() && result.fault != codecs::DecodeFault::stopped)
      fail(rules::kPublishedStream, name(), {core::in_bytes(size)}, {std::string_view(result.sentence)});
  }
  Overwrite decoded_list(const Context& context) const {
    io::StoredBytes bytes = stored();
    const auto size = codecs::zstd_stated_size(std::ref(bytes));
    if (!size || *size < kHead || *size > kHead + kEach * base_.size())
      fail(rules::kPublishedStream, name(), core::at_most(kHead + kEach * base_.size()),
           {size ? std::to_string(*size) : std::string("no content size")});
    if (*size > context.limits.memory)
      base::over_limit("memory", "the positions of the tensor " + core::quoted(name()) + " exceed the limit", *size);
    Overwrite out;
    out.bytes.reserve(base::to_size(*size));
    decode(*size, context, [&](std::span<const std::byte> piece) {
      out.bytes.insert(out.bytes.end(), piece.begin(), piece.end());
      return true;
    });
    const std::uint64_t count = base::load_le<std::uint32_t>(out.bytes.data());
    if (*size != kHead + kEach * count)
      fail(rules::kPublishedStream, name(), {core::in_bytes(kHead + kEach * count)}, {core::in_bytes(*size)});
    out.count = base::to_size(count);
    for (std::size_t i = 0; i < out.count; ++i)
      if (out.position(i) >= base_.size() || (i > 0 && out.position(i) <= out.position(i - 1)))
        fail(rules::kPublishedPositions, name(), {"ascending below ", base_.size()}, {out.position(i)});
    return out;
  }

  Part base_;
  Entry entry_;
  std::string scratch_;
};

// The members of a JSON object, each value verbatim.
std::map<std::string, std::string_view, std::less<>> members_of(std::string_view json, const Limits& limits) {
  std::map<std::string, std::string_view, std::less<>> out;
  wire::JsonReader in(json, limits.depth);
  std::string scratch;
  std::string_view raw;
  bool good = in.enter_object();
  for (wire::JsonString key; good && in.next_key(key);) {
    const std::string name(wire::json_text(key, scratch));
    good = in.skip_value(raw) && out.emplace(name, raw).second;
  }
  if (!good || !in.ok() || !in.finish()) fail(rules::kPublishedIndex, {}, "JSON objects with unique keys", {});
  return out;
}

class Importer {
 public:
  Importer(const Model& base, const std::string& folder, const PatchOptions& options, const Context& context)
      : base_(base), place_(place_at(folder)), options_(options), context_(context) {}

  Model result() {
    if (const auto manifest = place_->kind() == Place::Kind::folder ? place_->open(kManifest) : nullptr)
      skyrl(core::whole_text(*manifest, context_.limits, kManifest));
    else if (const auto index = place_->open(kIndex))
      slime(core::whole_text(*index, context_.limits, kIndex));
    else
      fail(rules::kPublishedIndex, {}, {kIndex, " or ", kManifest}, "neither");
    // A change that no entry names would be lost.
    for (const auto& [name, file] : files_)
      for (const Tensor& tensor : file)
        if (!named_.contains(std::pair(file.sources()[0].get(), std::string(tensor.name()))))
          fail(rules::kPublishedTensor, tensor.name(), "a tensor that the index names",
               {"it in ", core::in_quotes(name)});
    core::Draft draft;
    draft.begin_view(base_);
    for (const Tensor& tensor : base_) {
      const auto at = entries_.find(tensor.name());
      if (at == entries_.end())
        draft.adopt(tensor.name(), tensor);
      else
        add_computed(draft, tensor.name(), tensor,
                     std::make_shared<PublishedElements>(tensor.main(), at->second, options_.scratch));
    }
    draft.index_names();
    draft.set_attributes({base_.attributes().begin(), base_.attributes().end()});
    return draft.finish();
  }

 private:
  using Members = std::map<std::string, std::string_view, std::less<>>;

  static std::string text(const Members& members, std::string_view key, std::string_view otherwise = {}) {
    const auto at = members.find(key);
    wire::JsonReader in(at == members.end() ? std::string_view("0") : at->second);
    wire::JsonString string;
    std::string scratch;
    return std::string(in.read_string(string) ? wire::json_text(string, scratch) : otherwise);
  }
  static std::optional<std::uint64_t> number(const Members& members, std::string_view key) {
    const auto at = members.find(key);
    return at == members.end() ? std::nullopt : wire::as_u64(at->second);
  }

  void slime(const std::string& index) {
    const Members all = members_of(index, context_.limits), empty;
    const auto at = all.find("metadata");
    const Members metadata = at == all.end() ? empty : members_of(at->second, context_.limits);
    const std::string encoding = text(metadata, "delta_encoding"), compression = text(metadata, "compression_format");
    if (encoding != "xor" && encoding != "overwrite")
      fail(rules::kPublishedIndex, {}, "delta_encoding xor or overwrite", {core::in_quotes(encoding)});
    if (compression != "zstd")
      fail(rules::kPublishedIndex, {}, "compression_format zstd", {core::in_quotes(compression)});
    const Sum sum = sum_named(text(metadata, "checksum_format"));
    const bool good = core::each_in_index(index, context_.limits, [&](std::string_view tensor, std::string_view file) {
      const Model& model = file_named(tensor, file);
      const Value* const stated = model.attribute(tensor);
      return add(tensor, model, tensor,
                 {.overwrite = encoding == "overwrite",
                  .checksum = std::string(stated ? stated->as_text().value_or("") : ""),
                  .sum = sum});
    });
    if (!good) fail(rules::kPublishedIndex, {}, "a weight_map of texts with unique names", {});
  }

  void skyrl(const std::string& manifest) {
    const Members all = members_of(manifest, context_.limits);
    const auto at = all.find("tensors");
    wire::JsonReader in(at == all.end() ? std::string_view("0") : at->second, context_.limits.depth);
    bool good = in.enter_array();
    while (good && in.next_element()) {
      std::string_view raw;
      if (!(good = in.skip_value(raw))) break;
      const Members each = members_of(raw, context_.limits);
      const std::string name = text(each, "name"), file = text(each, "payload_file"), old = text(each, "sha256");
      const Model& model = file_named(name, file);
      good = add(name, model, text(each, "payload_key"),
                 {.checksum = text(each, "checksum", old),
                  .sum = sum_named(text(each, "checksum_algorithm", old.empty() ? "xxh3-128" : "sha256"))});
      const Part part = base_[name].main(), bytes = entries_.at(name).bytes.main();
      for (const auto& [key, size] :
           {std::pair("uncompressed_num_bytes", part.size()), std::pair("compressed_num_bytes", bytes.size())})
        if (const auto stated = number(each, key); stated != size)
          fail(rules::kPublishedTensor, name, {size, " as ", key},
               {stated ? std::to_string(*stated) : std::string("none")});
    }
    if (!good || !in.ok()) fail(rules::kPublishedIndex, {}, "a list of tensors with unique names", {});
  }

  const Model& file_named(std::string_view tensor, std::string_view file) {
    const auto at = files_.find(file);
    if (at != files_.end()) return at->second;
    const bool plain = !file.empty() && file.find_first_of("/\\") == file.npos;
    const auto source = plain ? place_->open(file) : nullptr;
    if (!source) fail(rules::kPublishedTensor, tensor, "a file of the folder", {core::in_quotes(file)});
    return files_.emplace(file, open(source, context_)).first->second;
  }

  // False if the name is not unique.
  bool add(std::string_view name, const Model& file, std::string_view key, Entry entry) {
    if (name.empty() || key.empty())
      fail(rules::kPublishedIndex, {}, "a name for each tensor", "none, or an empty one");
    const auto base = base_.find(name), bytes = file.find(key);
    if (!base || base->part_count() != 1 || base->unsupported())
      fail(rules::kPublishedTensor, name, "a tensor of the base with one part", {});
    if (!bytes || bytes->unsupported() || bytes->dtype() != DType::u8 || bytes->main().encoding() != Encoding::raw)
      fail(rules::kPublishedTensor, name, {"a tensor ", core::in_quotes(key), " of u8 in its file"}, {});
    if (entry.overwrite && base->main().size() > kPositions)
      fail(rules::kPublishedWrap, name, core::at_most(kPositions), {base->main().size()});
    named_.emplace(file.sources()[0].get(), key);
    entry.file = file;
    entry.bytes = *bytes;
    return entries_.emplace(name, std::move(entry)).second;
  }

  const Model& base_;
  const std::shared_ptr<const Place> place_;
  const PatchOptions& options_;
  const Context& context_;
  std::map<std::string, Model, std::less<>> files_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::set<std::pair<const Source*, std::string>> named_;
};

}  // namespace
}  // namespace weighbridge::delta

namespace weighbridge {

Model import_patch(const Model& base, const std::string& folder, const PatchOptions& options, const Context& context) {
  return make_patch(base, delta::Importer(base, folder, options, context).result(), options, context);
}

Published export_patch(const Model& base, const Model& patch, const PublishOptions& options,
                       const PatchOptions& scratch_options, const Context& context) {
  using namespace delta;
  constexpr std::string_view kLayouts[] = {"slime", "slime-overwrite", "skyrl"};
  if (std::ranges::find(kLayouts, options.layout) == std::end(kLayouts))
    base::misuse("layout", "there is no layout " + core::quoted(options.layout) + ": slime, slime-overwrite, skyrl");
  const bool skyrl = options.layout == "skyrl", overwrite = options.layout == "slime-overwrite";
  const Sum kind = sum_named(options.checksum);
  if (skyrl && kind == Sum::adler) base::misuse("checksum", "SkyRL does not know adler32: use xxh3-128");
  if (options.step == 0) base::misuse("step", "the first step is 1: 0 is the base itself");
  const auto known = Patch::require(patch, context.limits);
  const Model result = patched(base, {&patch, 1}, context);
  std::string other = known->other_change();
  for (const Change& change : known->changes)
    if (other.empty() && known->rows[change.row].name.empty()) other = "changes a tensor whose name is empty";
  if (!other.empty())
    base::misuse("patch-export", "such a folder can only change elements where they are, and the patch " + other);

  Scratch scratch(scratch_options.scratch);
  struct Made {
    Tensor tensor;
    std::uint64_t offset, length;
    std::string checksum;
  };
  std::vector<Made> made;
  const auto encoder = codecs::kZstd.encoder();
  const auto sink = [&](std::span<const std::byte> bytes) { scratch.append(bytes); };
  for (const Change& change : known->changes) {
    const std::string& name = known->rows[change.row].name;
    const Tensor tensor = *result.find(name);
    const Part part = tensor.main();
    if (overwrite && part.size() > kPositions)
      base::misuse("patch-export", "positions of 32 bits do not reach the end of the tensor " + core::quoted(name));
    const core::ElementsPtr from = in_any_order(base[name].main(), scratch_options.scratch, context);
    const std::uint64_t offset = scratch.size();
    Summing sum(kind);
    std::vector<std::byte> old, positions(kHead), values;
    std::uint64_t at = 0;
    if (!overwrite) encoder->begin(part.size(), scratch_options.level);
    part.stream(context, [&](std::span<const std::byte> piece) {
      old.resize(piece.size());
      read_bytes(*from, at, old, context);
      sum.update(piece);
      for (std::size_t i = 0; overwrite && i < piece.size(); ++i) {
        if (piece[i] == old[i]) continue;
        positions.resize(positions.size() + 4);
        base::store_le(positions.data() + positions.size() - 4, static_cast<std::uint32_t>(at + i));
        values.push_back(piece[i]);
      }
      if (positions.size() + values.size() > context.limits.memory)
        base::over_limit("memory", "the positions of the tensor " + core::quoted(name) + " exceed the limit");
      at += piece.size();
      if (overwrite) return true;
      exclusive_or(old, piece);
      encoder->push(old, sink);
      return true;
    });
    if (overwrite) {
      base::store_le(positions.data(), static_cast<std::uint32_t>(values.size()));
      encoder->begin(positions.size() + values.size(), scratch_options.level);
      encoder->push(positions, sink);
      encoder->push(values, sink);
    }
    encoder->finish(sink);
    made.push_back({tensor, offset, scratch.size() - offset, sum.hex()});
  }

  Published out{.index_name = std::string(skyrl ? kManifest : kIndex)};
  if (!made.empty())
    out.weights_name = skyrl ? "delta-rank00000-file000000.safetensors" : "model-00000-of-00001.safetensors";
  core::Draft draft;
  draft.set_format("safetensors");
  const std::uint32_t source = draft.add_source(scratch.source());
  std::vector<Value::Entry> checksums;
  for (const Made& each : made) {
    draft.add_dense(each.tensor.name(), DType::u8, {&each.length, 1}, {source, each.offset, each.length});
    if (!skyrl) checksums.emplace_back(each.tensor.name(), Value::text(each.checksum));
  }
  draft.set_attributes(std::move(checksums));
  draft.index_names();
  out.weights = draft.finish();

  JsonWriter json(JsonWriter::Style::compact);
  json.begin_object();
  if (skyrl) {
    json.member("version", options.step);
    json.member("base_version", options.step - 1);
    json.key("tensors").begin_array();
    std::uint64_t decoded = 0, stored = 0;
    for (const Made& each : made) {
      json.begin_object();
      json.member("name", each.tensor.name());
      json.member("dtype", torch_name(each.tensor.dtype()));
      json.key("shape").begin_array();
      for (const std::uint64_t d : each.tensor.shape()) json.u64(d);
      json.end_array();
      json.member("uncompressed_num_bytes", each.tensor.main().size());
      json.member("compressed_num_bytes", each.length);
      json.member("payload_file", out.weights_name);
      json.member("payload_key", each.tensor.name());
      json.member("checksum", each.checksum);
      json.member("checksum_algorithm", options.checksum);
      json.end_object();
      decoded += each.tensor.main().size();
      stored += each.length;
    }
    json.end_array();
    json.member("total_uncompressed_num_bytes", decoded);
    json.member("total_compressed_num_bytes", stored);
    json.key("payload_files").begin_array();
    if (!made.empty()) json.string(out.weights_name);
    json.end_array();
  } else {
    const auto version = [](std::uint64_t step) {
      const std::string digits = std::to_string(step);
      return std::string(6 - std::min<std::size_t>(digits.size(), 6), '0') + digits;
    };
    json.key("metadata").begin_object();
    json.member("version", version(options.step));
    json.member("base_version", version(options.step - 1));
    json.member("delta_encoding", overwrite ? "overwrite" : "xor");
    json.member("compression_format", "zstd");
    json.member("checksum_format", options.checksum);
    json.end_object();
    json.key("weight_map").begin_object();
    for (const Made& each : made) json.member(each.tensor.name(), out.weights_name);
    json.end_object();
  }
  json.end_object();
  out.index = json.take();
  return out;
}

}  // namespace weighbridge
