// SPDX-License-Identifier: Apache-2.0
// Model to EMBD: the one layout for plan and writer. Index and data keep the source's order of tensors, and sections
// follow one another without gaps. The checksums over payload are filled in once all payload is written.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/embd/architecture.h"
#include "formats/embd/format.h"
#include "formats/embd/metadata.h"
#include "formats/embd/vocabulary.h"

namespace weighbridge::embd {
namespace {

using core::indexed, core::subject;

// The plan reads one tensor, position_ids, because its elements decide whether dropping it is a loss (reading E14).
// Real models have fewer positions.
constexpr std::uint64_t kMaxPositions = 4096;

// Whether the elements are 0, 1, 2, ... [reads]
bool counts_up(const Part& part, const Context& context) {
  std::uint64_t next = 0;
  bool good = part.count() <= kMaxPositions;
  if (!good) return false;
  part.stream(context, [&](std::span<const std::byte> piece) {
    for (; good && !piece.empty(); piece = piece.subspan(8))
      good = base::load_le<std::uint64_t>(piece.data()) == next++;
    return good;
  });
  return good;
}

class Planner : core::Planning {
 public:
  Planner(const Model& model, const Options& options, const Context& context)
      : Planning(model, options), context_(context) {}

  core::WriteLayout run() {
    core::drop_extra(plan_items_, model_);
    metadata_ = plan_metadata(model_, options_, plan_items_);
    plan_tokenizer();
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    if (metadata_.numbers) check_architecture(*metadata_.numbers);
    core::name_copies(plan_items_, model_, written_);
    if (out_.blockers.empty()) lay_out();
    return std::move(out_);
  }

 private:
  void plan_tokenizer() {
    const auto tokenizer = model_.tokenizer();
    if (tokenizer == nullptr) return;
    VocabularyPlan plan = plan_vocabulary(*tokenizer);
    const std::uint64_t wanted = metadata_.numbers ? metadata_.numbers->vocab_size : tokenizer->vocab_size;
    if (plan.obstacle.empty() && wanted != tokenizer->vocab_size)
      plan.obstacle =
          "it has " + std::to_string(tokenizer->vocab_size) + " tokens, vocab_size is " + std::to_string(wanted);
    if (!plan.obstacle.empty()) {
      plan_items_.lose(LossKind::tokenizer, "tokenizer", "a tokenizer", "dropped: " + plan.obstacle);
      return;
    }
    for (const std::size_t i : plan.found)
      plan_items_.change(LossKind::tokenizer, indexed("tokenizer.special", kSpecial[i]), core::kAbsent,
                         std::to_string(plan.special[i]));
    for (const std::string_view key : plan.dropped)
      plan_items_.lose(LossKind::tokenizer, indexed("tokenizer.special", key), "a special token", "dropped");
    if (!std::ranges::is_sorted(plan.order))
      plan_items_.change(LossKind::tokenizer, "tokenizer.ids", "in another order", "0, 1, 2, ...");
    vocabulary_ = std::move(plan);
  }

  // Lists everything about one tensor that EMBD cannot express.
  void judge(const Tensor& tensor) {
    check_text(tensor);
    if (!core::check_known(plan_items_, tensor, "EMBD")) return;
    if (check_position_ids(tensor)) return;
    core::check_dense(plan_items_, tensor, target_dtype(tensor), "no digest of its own");
    if (check_dtype(tensor) && check_shape(tensor)) written_.push_back(tensor.index());
  }

  void check_text(const Tensor& tensor) {
    if (tensor.name().size() > kMaxText)
      plan_items_.block(LossKind::name, subject(tensor), bytes_text(tensor.name().size()),
                        "longer than the " + std::to_string(kMaxText) + " that EMBD allows");
    core::drop_attributes(plan_items_, tensor);
    core::drop_extra(plan_items_, tensor);
  }

  // Reading E14. True if the tensor is left out of the file.
  bool check_position_ids(const Tensor& tensor) {
    if (tensor.name() != kPositionIds || tensor.dtype() != DType::i64 || tensor.layout() != Layout::dense) return false;
    if (counts_up(tensor.main(), context_))
      plan_items_.change(LossKind::dtype, subject(tensor), "i64 " + shape_text(tensor.shape()),
                         "left out: EMBD implies 0, 1, 2, ...");
    else
      plan_items_.lose(LossKind::dtype, subject(tensor), "i64 " + shape_text(tensor.shape()),
                       "dropped: EMBD has no i64, and it does not simply count up from 0");
    return true;
  }

  bool check_dtype(const Tensor& tensor) {
    const DType from = tensor.dtype(), to = target_dtype(tensor);
    if (dtype_value(to) == kDTypeValues) {
      const bool castable = info(to).kind == DTypeKind::real;
      plan_items_.block(LossKind::dtype, subject(tensor), std::string(name(from)),
                        castable ? "no dtype of EMBD: cast it to f32, f16 or bf16" : "no dtype of EMBD");
      return false;
    }
    core::check_cast(plan_items_, tensor, to);
    return true;
  }

  bool check_shape(const Tensor& tensor) {
    const Shape shape = tensor.shape();
    const auto block = [&](const char* why) {
      plan_items_.block(LossKind::shape, subject(tensor), shape_text(shape), why);
      return false;
    };
    if (shape.empty() || shape.size() > kMaxRank) return block("EMBD has 1 to 4 dimensions");
    if (std::ranges::any_of(shape, [](std::uint64_t dim) { return dim > UINT32_MAX; }))
      return block("a dimension of EMBD is below 2^32");
    const auto count = base::element_count(shape);
    if (!count || !packed_size(target_dtype(tensor), *count)) return block("more than 2^64 - 1 bytes");
    return true;
  }

  void check_architecture(const Numbers& numbers) {
    if (!layers_fit(numbers, model_.size()))
      return plan_items_.block(LossKind::attribute, indexed("attributes", "num_layers"),
                               std::to_string(numbers.num_layers),
                               "more layers than " + std::to_string(model_.size()) + " tensors can make");
    for_each_expected(numbers, [&](const Expected& expected) {
      const auto tensor = model_.find(expected.name);
      const std::string what = indexed("tensors", expected.name);
      if (!tensor) {
        if (expected.required)
          plan_items_.block(LossKind::name, what, core::kAbsent,
                            "a tensor that EMBD requires, " + shape_text(expected.shape));
        return;
      }
      if (tensor->unsupported() || !tensor->has_shape()) return;
      if (!std::ranges::equal(tensor->shape(), expected.shape))
        plan_items_.block(LossKind::shape, what, shape_text(tensor->shape()),
                          "what EMBD asks for, " + shape_text(expected.shape));
      if (expected.required && info(target_dtype(*tensor)).kind != DTypeKind::real)
        plan_items_.block(LossKind::dtype, what, std::string(name(tensor->dtype())),
                          "a floating-point dtype, which EMBD requires");
    });
  }

  std::uint64_t aligned(std::uint64_t at) const {
    return (metadata_.flags & kTensorsAligned) != 0 ? base::align_up(at, kAlignment).value_or(UINT64_MAX) : at;
  }

  void lay_out() {
    Header header{};
    std::copy_n(kMagic, sizeof kMagic, header.magic);
    header.version_major = kVersionMajor;
    header.version_minor = metadata_.version_minor;
    header.flags = metadata_.flags | (vocabulary_ ? kVocabEmbedded : 0);
    std::string sections;
    if (!append_sections(header, sections)) return block_head(sections.size());
    const std::uint64_t index_at = kHeaderSize + sections.size();
    std::uint64_t data_at = index_at + written_.size() * kDescriptorSize;
    for (const std::uint32_t i : written_) data_at += model_.name(i).size();
    const std::uint64_t padded = aligned(data_at);
    if (padded > UINT32_MAX) return block_head(padded);
    header.tensor_index_offset = static_cast<std::uint32_t>(index_at);
    header.tensor_index_count = static_cast<std::uint32_t>(written_.size());
    header.tensor_data_offset = static_cast<std::uint32_t>(padded);
    if (!append_index(header, sections)) return;
    sections.append(base::to_size(padded - data_at), '\0');
    finish(header, std::move(sections));
  }

  void block_head(std::uint64_t size) {
    plan_items_.block(LossKind::shape, "attributes, tokenizer and names", "more than " + bytes_text(size),
                      "EMBD puts them in front of the data, below 4 GiB");
  }

  // Appends metadata and vocabulary, which follow the header. False if they are too large.
  bool append_sections(Header& header, std::string& to) const {
    auto metadata = encode_metadata(metadata_.entries);
    if (!metadata || metadata->size() > UINT32_MAX - kHeaderSize) return false;
    header.metadata_offset = static_cast<std::uint32_t>(kHeaderSize);
    header.metadata_size = static_cast<std::uint32_t>(metadata->size());
    to = *std::move(metadata);
    if (!vocabulary_) return true;
    const std::uint64_t at = kHeaderSize + to.size();
    const auto vocabulary = encode_vocabulary(*model_.tokenizer(), *vocabulary_, at);
    if (!vocabulary) return false;
    header.vocab_offset = static_cast<std::uint32_t>(at);
    header.vocab_size = static_cast<std::uint32_t>(vocabulary->size());
    to += *vocabulary;
    return true;
  }

  // Appends descriptors and names, and lays out the payloads.
  bool append_index(Header& header, std::string& to) {
    out_.tensors.reserve(written_.size());
    out_.payloads.reserve(written_.size());
    std::string names;
    std::uint64_t at = header.tensor_data_offset;
    for (const std::uint32_t i : written_) {
      const Tensor tensor = model_[i];
      const DType dtype = target_dtype(tensor);
      const std::uint64_t size = *packed_size(dtype, *base::element_count(tensor.shape()));
      at = aligned(at);
      const auto end = base::checked_add(at, size);
      if (!end || *end > UINT64_MAX - kAlignment - kFooterSize) {
        plan_items_.block(LossKind::shape, subject(tensor), "its size", "more than 2^64 - 1 bytes in all");
        return false;
      }
      Descriptor d{};
      d.name_hash = fnv1a32(tensor.name());
      d.dtype = static_cast<std::uint8_t>(dtype_value(dtype));
      d.ndim = static_cast<std::uint8_t>(tensor.shape().size());
      d.name_length = static_cast<std::uint16_t>(tensor.name().size());
      for (std::size_t k = 0; k < tensor.shape().size(); ++k)
        d.shape[k] = static_cast<std::uint32_t>(tensor.shape()[k]);
      d.data_offset = at - header.tensor_data_offset;
      to += base::store_record(d);
      names += tensor.name();
      add_payload(tensor, dtype, size);
      at = *end;
    }
    to += names;
    header.tensor_data_size = at - header.tensor_data_offset;
    return true;
  }

  void add_payload(const Tensor& tensor, DType dtype, std::uint64_t size) {
    core::Payload payload = core::dense_payload(out_, tensor, dtype, size);
    if ((metadata_.flags & kTensorsAligned) != 0) payload.alignment = kAlignment;
    out_.payloads.push_back(std::move(payload));
    out_.tensors.push_back({.name = tensor.name(), .from = tensor, .layout = Layout::dense, .dtype = dtype});
  }

  void finish(Header header, std::string sections) {
    const Summed summed{header.tensor_data_offset, header.tensor_data_offset + header.tensor_data_size,
                        header.tensor_data_offset + header.tensor_data_size};
    out_.size = header.total_file_size = summed.end + kFooterSize;
    out_.head = base::store_record(header);
    if ((header.flags & kChecksumEnabled) != 0) {
      header.header_checksum = codecs::crc32(std::as_bytes(std::span(out_.head)).first(kHeaderSummed));
      out_.head = base::store_record(header);
      out_.finalize = [summed](const core::WrittenFile& file) { seal(summed, file); };
    }
    out_.head += sections;
    out_.tail = [](std::span<const core::Stored>) {
      Footer footer{};
      std::copy_n(kMagicEnd, sizeof kMagicEnd, footer.magic_end);
      return base::store_record(footer);
    };
  }

  static void seal(const Summed& summed, const core::WrittenFile& file) {
    const Context context;
    core::Progress progress(context, summed.end);
    const Sums sums = sum(summed, file.read, core::executor_of(context), progress);
    std::string bytes;
    base::append_fields(bytes, sums.data, sums.file);
    file.write(summed.end, std::as_bytes(std::span(bytes)));
  }

  const Context& context_;
  MetadataPlan metadata_;
  std::optional<VocabularyPlan> vocabulary_;  // nullopt: no vocabulary section
  std::vector<std::uint32_t> written_;        // tensors of the model that go into the file
};

}  // namespace

core::WriteLayout layout(const Model& model, const Options& options, const Context& context) {
  return Planner(model, options, context).run();
}

}  // namespace weighbridge::embd
