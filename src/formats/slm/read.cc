// SPDX-License-Identifier: Apache-2.0
// .slm to Model: the one walker for open and verify. It reads header, tokenizer section and directory once into
// owned memory, checks them in that order and adds the valid tensors. The pass over the whole file (content.cc)
// follows. The rules about several tensors are here: hashes, required names and shapes, overlaps.
//
//   108 bytes of header | tokenizer section | directory: entries of 64 bytes | payloads, at multiples of 64
//   layout.h has the fields of header and entries. The checksum at 100 covers the whole file, itself as zero.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/order.h"
#include "core/model/words.h"
#include "core/payload/extents.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/slm/content.h"
#include "formats/slm/directory.h"
#include "formats/slm/format.h"
#include "formats/slm/header.h"
#include "formats/slm/names.h"
#include "io/read.h"

namespace weighbridge::slm_format {
namespace {

using core::at_field, core::bytes_text;

constexpr std::uint64_t kMaxTrailing = 63;  // the most that alignment can add (M16)

class Walk : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    draft_.set_format("slm");
    draft_.set_checksum_form(draft_.checksum_form);
    if (!read_header()) return;
    check_fields(header_, findings_);
    const bool sections = check_sections(header_, size_, findings_) && within_limits();
    keep_header();
    if (sections) {
      read_tokenizer();
      read_directory();
    }
    draft_.index_names();
    const bool all = draft_.checks == Checks::all;
    draft_.set_checked(all);
    if (all) check_payload(draft_, source_, header_.checksum, context_, findings_);
  }

 private:
  // False if the rest of the file cannot be read.
  bool read_header() {
    const std::string magic = io::text_of(source_, 0, std::min<std::uint64_t>(kMagic.size(), size_));
    if (magic.size() == kMagic.size() && magic != kMagic) return findings_.fail(rules::kMagicRule, {.offset = 0});
    if (!has_bytes(rules::kTooShort, kHeaderSize)) return false;
    const std::string bytes = io::text_of(source_, 0, kHeaderSize);
    header_ = base::load_record<Header>(bytes.data());
    findings_.record<Header>(Span::Kind::structure, 0, bytes, "header");
    if (header_.version != kVersion)
      return findings_.fail(rules::kVersionRule, at_field(&Header::version), "1", header_.version);
    const std::uint64_t length = header_.header_length;
    if (length < kHeaderSize)
      return findings_.fail(rules::kHeaderLength, at_field(&Header::header_length), "at least 108", length);
    if (length > size_)
      return findings_.fail(rules::kHeaderPastEnd, at_field(&Header::header_length), core::at_most(size_), length);
    return true;
  }

  bool within_limits() {
    const std::uint64_t all = header_.header_length + header_.tokenizer_length + header_.tensor_count * kEntrySize;
    return few_enough(at_field(&Header::tensor_count), header_.tensor_count) && within_limit({.offset = 0}, all);
  }

  void keep_header() {
    draft_.set_version(std::to_string(header_.version));
    draft_.set_attributes(header_attributes(header_));
    const std::uint64_t more = header_.header_length - kHeaderSize;
    findings_.span(Span::Kind::structure, kHeaderSize, header_.header_length, "more of the header");
    if (more == 0 || more > context_.limits.header) return;
    const std::string bytes = io::text_of(source_, kHeaderSize, more);
    const auto verbatim = std::as_bytes(std::span(bytes));
    draft_.set_extra(std::string(kHeaderExtra),
                     Value::foreign(std::string(kGrammar), {verbatim.begin(), verbatim.end()}));
  }

  void read_tokenizer() {
    const std::string section = io::text_of(source_, header_.tokenizer_offset, header_.tokenizer_length);
    findings_.span(Span::Kind::structure, header_.tokenizer_offset, header_.tokenizer_offset + section.size(),
                   "tokenizer");
    if (section.starts_with(kBtok)) check_special_tokens(header_, findings_);
    draft_.set_tokenizer(parse_tokenizer(section, header_.tokenizer_offset, header_.vocab_size, findings_));
    draft_.add_checksum("file", checksum_text(header_.checksum));
    draft_.add_checksum("tokenizer", checksum_text(tokenizer_checksum(section, draft_.checksum_form)));
  }

  void read_directory() {
    const std::uint32_t count = header_.tensor_count;
    std::string entries = io::text_of(source_, header_.tensor_directory_offset, count * kEntrySize);
    findings_.span(Span::Kind::structure, header_.tensor_directory_offset, entry_at(count), "tensor directory");
    directory_ = Directory(std::move(entries));
    draft_.add_checksum("tensor_layout", checksum_text(layout_checksum(directory_, draft_.checksum_form)));
    // A layer has kLayerRoles tensors. A file with more layers than its tensors can fill is invalid and needs no names.
    const KnownNames known(std::min(header_.layer_count, count / kLayerRoles + 1));
    sound_.assign(count, false);
    for (std::uint32_t i = 0; i < count; ++i) {
      const EntryPlace place{entry_at(i), header_.tensor_data_offset, size_, name_scratch_ = known.name(hash(i))};
      findings_.record<Entry>(Span::Kind::entry, entry_at(i), directory_.bytes().substr(i * kEntrySize, kEntrySize),
                              name_scratch_);
      Extents extents;
      sound_[i] = check_entry(directory_[i], place, findings_, extents);
    }
    check_hashes(known);
    check_required(known);
    check_overlaps(known);
    add_tensors(known);
  }

  std::uint64_t entry_at(std::uint32_t i) const noexcept { return header_.tensor_directory_offset + i * kEntrySize; }
  std::uint64_t hash(std::uint32_t i) const noexcept { return directory_.hash(i); }

  void check_hashes(const KnownNames& known) {
    for (const auto& [later, first] : base::repeated(directory_.size(), [&](std::uint32_t i) { return hash(i); })) {
      sound_[later] = false;
      findings_.report(rules::kDuplicateHash, {.offset = entry_at(later), .tensor = known.name(hash(later))}, {},
                       spell_hash(hash(later)), {"the first one is at offset ", entry_at(first)});
    }
  }

  // Checks the shapes of the tensors that the specification lists, and that none is missing.
  void check_required(const KnownNames& known) {
    std::vector<std::uint32_t> by_place(known.places(), core::kNone);
    for (std::uint32_t i = 0; i < directory_.size(); ++i) {
      const Known* const one = known.find(hash(i));
      if (one == nullptr) continue;
      const std::string name = spell(one->role, one->layer);
      std::uint32_t& there = by_place[KnownNames::place(*one)];
      if (there != core::kNone && hash(there) != hash(i)) {
        sound_[i] = false;
        findings_.report(rules::kBothNames, {.offset = entry_at(i), .tensor = name}, {}, {},
                         {"the other one is at offset ", entry_at(there)});
      } else if (one->alias) {
        findings_.report(rules::kAliasName, {.offset = entry_at(i), .tensor = name});
      }
      if (there == core::kNone) there = i;
      if (sound_[i]) check_shape(*one, i, name);
    }
    if (header_.layer_count > known.layers())
      return findings_.report(rules::kLayerCount, at_field(&Header::layer_count),
                              core::at_least(std::uint64_t{header_.layer_count} * kLayerRoles + 2, " tensors"),
                              directory_.size());
    const bool tied = (header_.flags & kTiedOutput) != 0;
    const auto need = [&](Role role, std::uint32_t layer, const Rule& rule) {
      if (by_place[KnownNames::place(role, layer)] == core::kNone)
        findings_.report(rule, {.offset = {}, .tensor = spell(role, layer)});
    };
    need(Role::tok_embeddings, 0, rules::kMissingTensor);
    need(Role::norm, 0, rules::kMissingTensor);
    if (!tied) need(Role::output, 0, rules::kMissingOutput);
    for (std::uint32_t layer = 0; layer < header_.layer_count; ++layer)
      for (std::uint32_t r = 0; r < kLayerRoles; ++r)
        need(static_cast<Role>(kModelRoles + r), layer, rules::kMissingTensor);
  }

  void check_shape(const Known& one, std::uint32_t i, std::string_view name) {
    const Dims needed = dims_of(one.role, header_);
    const EntryShape shape = shape_of(directory_[i]);
    if (shape.two() == needed || has_zero(one.role, needed)) return;
    sound_[i] = false;
    findings_.report(rules::kTensorShape, at_field(&Entry::dims, entry_at(i), name), spell(needed), shape.text());
  }
  // Whether a required shape has a 0: then the header itself is wrong, which has been reported.
  static bool has_zero(Role role, Dims dims) noexcept {
    const bool vector = role == Role::norm || role == Role::attention_norm || role == Role::ffn_norm;
    return dims.rows == 0 || (!vector && dims.columns == 0);
  }

  struct Run {
    std::uint64_t field_at;
    std::uint32_t tensor;  // kNone: the tokenizer section
  };

  // G6: equal ranges are aliases. Nothing is checked if an entry is broken, because its range is unknown.
  void check_overlaps(const KnownNames& known) {
    std::vector<core::Range> ranges;
    std::vector<Run> runs;
    const auto add = [&](std::uint64_t begin, std::uint64_t length, std::uint64_t field_at, std::uint32_t tensor) {
      ranges.push_back({0, begin, length, static_cast<std::uint32_t>(runs.size())});
      runs.push_back({field_at, tensor});
    };
    add(header_.tokenizer_offset, header_.tokenizer_length, base::offset_of(&Header::tokenizer_offset), core::kNone);
    for (std::uint32_t i = 0; i < directory_.size(); ++i) {
      if (!sound_[i]) return;
      const Entry e = directory_[i];
      add(e.byte_offset, e.byte_length, entry_at(i) + base::offset_of(&Entry::byte_offset), i);
      const std::uint64_t scales = scale_count(e.dtype, e.block_size, *extents_of(e)) * sizeof(float);
      if (scales > 0) add(e.scale_offset, scales, entry_at(i) + base::offset_of(&Entry::scale_offset), i);
    }
    std::uint64_t reach = header_.tensor_directory_offset + directory_.size() * kEntrySize;
    reach = std::max<std::uint64_t>(reach, header_.header_length);
    core::Extents(std::move(ranges))
        .walk([&](const core::Range& range, core::Relation relation, const core::Range* furthest) {
          reach = std::max(reach, range.end());
          if (relation != core::Relation::overlap) return;
          const Run& run = runs[range.item];
          std::optional<std::string_view> tensor;
          if (run.tensor != core::kNone) tensor = name_scratch_ = known.name(hash(run.tensor));
          findings_.report(rules::kOverlap, {.offset = run.field_at, .tensor = tensor}, {}, {},
                           {range.offset, " to ", range.end(), " and ", furthest->offset, " to ", furthest->end()});
        });
    if (size_ - reach > kMaxTrailing)
      findings_.report(rules::kTrailingBytes, {.offset = reach}, core::at_most(core::in_bytes(kMaxTrailing)),
                       core::in_bytes(size_ - reach));
  }

  void add_tensors(const KnownNames& known) {
    std::uint32_t label = 0;  // 0: none so far; above the dtypes: mixed
    for (std::uint32_t i = 0; i < directory_.size(); ++i) {
      if (!sound_[i]) continue;
      const Entry e = directory_[i];
      add_tensor(e, known.name(e.name_hash));
      label = label == 0 || label == e.dtype ? e.dtype : UINT32_MAX;
    }
    if (label != 0) draft_.set_dtype_label(is_stored(label) ? stored_name(label) : "mixed");  // M18
  }

  void add_tensor(const Entry& e, std::string_view name) {
    const EntryShape shape = shape_of(e);
    const Extents x = *extents_of(e);
    const Extent payload{0, e.byte_offset, e.byte_length};
    const auto dtype = static_cast<Stored>(e.dtype);
    const BlockTypeInfo* const type = block_type(dtype);
    const std::uint32_t tensor = draft_.add_tensor(name, type ? type->layout : Layout::dense, DType::f32, shape.span());
    auto side = draft_.tensor(tensor).id(e.name_hash);
    if (!type) {
      draft_.add_part(kData, DType::f32, shape.span(), Encoding::raw, payload, e.byte_length);
      return;
    }
    side.block_type(type).attribute(std::string(kType), Value::text(std::string(type->type_attribute)));
    side.attribute(std::string(kBlockSize), Value::integer(std::int64_t{e.block_size}));
    const std::uint64_t scales = scale_count(e.dtype, e.block_size, x);
    const Extent scale_extent{0, e.scale_offset, scales * sizeof(float)};
    const std::uint64_t bytes[] = {e.byte_length}, row_scales[] = {scales}, block_scales[] = {x.rows, scales / x.rows};
    if (dtype == Stored::q8_0) {
      draft_.add_part(kData, DType::i8, shape.span(), Encoding::raw, payload, e.byte_length);
      draft_.add_part(kScales, DType::f32, row_scales, Encoding::raw, scale_extent, scale_extent.length);
    } else {
      draft_.add_part(kData, DType::u8, bytes, Encoding::raw, payload, e.byte_length);
      draft_.add_part(kScales, DType::f32, block_scales, Encoding::raw, scale_extent, scale_extent.length);
    }
  }

  Header header_;
  Directory directory_;
  std::vector<bool> sound_;  // for each entry of the directory
  std::string name_scratch_;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::slm_format
