// SPDX-License-Identifier: Apache-2.0
// Model to npy and npz: the one layout that plan and writer share. An npy is byte for byte what numpy.save() writes; an
// npz has such a file for each tensor, in the order of the model. What NumPy cannot express is a blocker or a loss.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "codecs/checksum.h"
#include "core/archive/zip.h"
#include "core/model/numpy_types.h"
#include "core/model/words.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/numpy/format.h"
#include "formats/numpy/header.h"
#include "formats/numpy/layout.h"

namespace weighbridge::numpy {
namespace {

using core::indexed, core::subject;

constexpr std::uint64_t kMaxSum = UINT64_MAX / 4;  // the bound on sums of sizes
// A member of this size needs 64-bit sizes in its local header.
constexpr std::uint64_t kLarge = 0xFFFFFFFF;
constexpr std::size_t kLongestName = 0xFFFE;

bool is_deflated(const core::ZipOut& member) noexcept { return member.method == core::zip::kDeflated; }

// The members of an npz, which the functions of its layout fill in.
struct Members {
  Model keep;
  std::vector<core::ZipOut> all;
  std::vector<std::string> headers;  // of the arrays
  std::string comment;
};

class Planner : core::Planning {
 public:
  Planner(const Model& model, const Options& options, bool archive) : Planning(model, options), archive_(archive) {}

  core::WriteLayout run() {
    check_all();
    if (out_.blockers.empty()) archive_ ? lay_out_archive() : lay_out_array();
    return std::move(out_);
  }

 private:
  void check_all() {
    if (!archive_ && model_.size() != 1)
      plan_items_.block(LossKind::layout, "tensors", std::to_string(model_.size()) + " tensors",
                        "an npy file holds exactly one: choose one by its name, or write an npz");
    core::drop_tokenizer(plan_items_, model_, "NumPy has");
    core::drop_attributes(plan_items_, model_, "NumPy's files have no attributes");
    core::drop_extra(plan_items_, model_);
    for (std::uint32_t i = 0; i < model_.size(); ++i) judge(model_[i]);
    core::name_copies(plan_items_, model_);
  }

  void judge(const Tensor& tensor) {
    check_name(tensor);
    core::drop_attributes(plan_items_, tensor);
    core::drop_extra(plan_items_, tensor);
    if (!core::check_known(plan_items_, tensor, "NumPy")) return;
    const DType dtype = core::target_dtype(tensor, options_);
    core::check_dense(plan_items_, tensor, dtype);
    check_dtype(tensor, dtype);
  }

  void check_name(const Tensor& tensor) {
    const std::string_view name = tensor.name();
    if (!archive_) {
      if (model_.size() == 1 && name != kArray)
        plan_items_.lose(LossKind::name, subject(tensor), core::quoted(core::excerpt(name)),
                         "dropped: an npy file has no names, and reads as " + core::quoted(kArray));
      return;
    }
    const auto block = [&](std::string why) {
      plan_items_.block(LossKind::name, subject(tensor), "its name", std::move(why));
    };
    if (name.size() > kLongestName - kSuffix.size())
      block("a member's name has at most 65,534 bytes, with " + std::string(kSuffix));
    else if (!base::is_utf8(name))
      block("a member's name is UTF-8");
    else if (!core::is_zip_name(std::string(name) + std::string(kSuffix)))
      block(
          "as a member's name it would be absolute, lead out of the folder of an unpacked archive, or hold a "
          "backslash or a zero byte");
    // For the name "x.npy", numpy.load() returns the member x.npy, although that is the array "x".
    else if (name.ends_with(kSuffix) && model_.find(name.substr(0, name.size() - kSuffix.size())))
      block("NumPy would give the array " + core::quoted(core::excerpt(name.substr(0, name.size() - kSuffix.size()))) +
            " for it");
  }

  void check_dtype(const Tensor& tensor, DType dtype) {
    const core::NumpyType* const type = core::numpy_type(dtype);
    if (!type)
      return plan_items_.block(
          LossKind::dtype, subject(tensor), std::string(name(dtype)),
          info(dtype).kind == DTypeKind::real ? "no dtype of NumPy: a cast can make one" : "no dtype of NumPy");
    core::check_cast(plan_items_, tensor, dtype);
    if (!size_of(dtype, tensor.shape()))
      plan_items_.block(LossKind::shape, subject(tensor), "its shape",
                        "2^63 bytes or more, with dimensions of 0 left out");
    if (type->ml_dtype.empty()) return;
    plan_items_.lose(LossKind::dtype, subject(tensor), std::string(name(dtype)),
                     std::string(type->text) + ", as ml_dtypes saves " + std::string(type->ml_dtype) +
                         ": NumPy reads void items of " + std::to_string(info(dtype).bits / 8) +
                         (info(dtype).bits == 8 ? " byte" : " bytes") + " until they are viewed as ml_dtypes." +
                         std::string(type->ml_dtype));
  }

  // Appends the tensor, and the payload for its elements, which the caller completes.
  core::Payload add(const Tensor& tensor, std::string_view name) {
    const DType dtype = core::target_dtype(tensor, options_);
    core::Payload payload = core::dense_payload(out_, tensor, dtype, *size_of(dtype, tensor.shape()));
    out_.tensors.push_back({.name = name,
                            .from = tensor,
                            .layout = Layout::dense,
                            .dtype = dtype,
                            .opaque = is_raw(dtype) && !stated_.contains(tensor.index())});
    return payload;
  }

  std::string header_of(const Tensor& tensor) const {
    return write_header(core::numpy_type(core::target_dtype(tensor, options_))->text, tensor.shape());
  }

  static bool is_raw(DType dtype) { return !core::numpy_type(dtype)->ml_dtype.empty(); }

  // The archive's comment (layout.h). For each size of items, most arrays have the type that is not said by name.
  std::string comment() {
    std::map<std::uint32_t, std::map<DType, std::size_t>> counts;
    for (const Tensor& tensor : model_)
      if (const DType dtype = core::target_dtype(tensor, options_); is_raw(dtype)) ++counts[info(dtype).bits][dtype];
    if (counts.empty()) return {};
    std::string out(kMark);
    std::map<std::uint32_t, DType> usual;
    for (const auto& [bits, types] : counts) {
      usual[bits] = std::max_element(types.begin(), types.end(), [](const auto& a, const auto& b) {
                      return a.second < b.second;
                    })->first;
      out += " V" + std::to_string(bits / 8) + "=" + std::string(name(usual[bits]));
    }
    for (const Tensor& tensor : model_) {
      const DType dtype = core::target_dtype(tensor, options_);
      if (!is_raw(dtype)) continue;
      const std::string line = "\n" + std::string(name(dtype)) + " " + std::string(tensor.name());
      if (dtype != usual[info(dtype).bits]) {
        if (line.find('\n', 1) != line.npos || line.size() > kLongestComment - out.size()) {
          // Without its line it would be read as the usual type.
          stated_.clear();
          return {};
        }
        out += line;
      }
      stated_.insert(tensor.index());
    }
    return out;
  }

  void lay_out_array() {
    const Tensor tensor = model_[0];
    out_.head = header_of(tensor);
    out_.payloads.push_back(add(tensor, kArray));
    out_.size = out_.head.size() + out_.payloads[0].stored_size;
  }

  void lay_out_archive() {
    const auto members = std::make_shared<Members>();
    members->keep = model_;
    members->all.reserve(model_.size());
    members->headers.reserve(model_.size());
    out_.tensors.reserve(model_.size());
    out_.payloads.reserve(model_.size());
    out_.size_exact = options_.encoding != "deflate";
    members->comment = comment();
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const Tensor tensor = model_[i];
      std::string header = header_of(tensor);
      core::Payload payload = add(tensor, tensor.name());
      core::ZipOut member;
      member.name = std::string(tensor.name()) + std::string(kSuffix);
      member.header_at = at;
      member.size = header.size() + payload.logical_size;
      payload.digest = core::PartDigest::crc32;
      if (!out_.size_exact && payload.logical_size > 0) payload.stream_prefix = header;
      core::encode_payload(payload, options_);
      if (payload.encoding == Encoding::deflate) member.method = core::zip::kDeflated;
      if (!is_deflated(member)) payload.stored_size = payload.logical_size;
      member.large = std::max(member.size, payload.stored_size + header.size()) >= kLarge;
      if (out_.size_exact) member.padding = core::zip_padding(member);
      payload.preamble_size = core::zip_header_size(member) + (is_deflated(member) ? 0 : header.size());
      at += payload.preamble_size + payload.stored_size;
      if (at > kMaxSum || payload.stored_size > kMaxSum)
        return plan_items_.block(LossKind::shape, subject(tensor), "its size", "more than 2^62 bytes in all");
      members->all.push_back(std::move(member));
      members->headers.push_back(std::move(header));
      out_.payloads.push_back(std::move(payload));
    }
    finish_archive(members);
  }

  void finish_archive(const std::shared_ptr<Members>& members) {
    out_.owner = members;
    out_.make_preamble = [members](std::size_t i, const core::Stored& stored) {
      const core::ZipOut member = complete(*members, i, stored);
      return core::zip_local_header(member) + (is_deflated(member) ? std::string() : members->headers[i]);
    };
    out_.tail = [members](std::span<const core::Stored> stored) {
      std::vector<core::ZipOut> all;
      all.reserve(stored.size());
      for (std::size_t i = 0; i < stored.size(); ++i) all.push_back(complete(*members, i, stored[i]));
      return core::zip_directory(all, stored.empty() ? 0 : stored.back().end(), members->comment);
    };
    const core::PlannedPayloads planned = core::plan_payloads(out_, 0);
    out_.size = planned.end + out_.tail(planned.stored).size();
  }

  // Completes a member once its elements are stored.
  static core::ZipOut complete(const Members& members, std::size_t i, const core::Stored& stored) {
    core::ZipOut member = members.all[i];
    const std::string& header = members.headers[i];
    const std::uint64_t before = core::zip_header_size(member) + (is_deflated(member) ? 0 : header.size());
    member.header_at = stored.offset - before;
    member.stored = is_deflated(member) ? stored.length : member.size;
    const std::uint32_t elements =
        codecs::u32_from_hex(std::string_view(stored.digest).substr(stored.digest.size() - 8)).value_or(0);
    member.crc32 = codecs::combine(codecs::CrcKind::crc32, codecs::crc32(std::as_bytes(std::span(header))), elements,
                                   member.size - header.size());
    return member;
  }

  const bool archive_;
  std::set<std::uint32_t> stated_;  // tensors whose type the comment states
};

}  // namespace

core::WriteLayout layout_npy(const Model& model, const Options& options, const Context&) {
  return Planner(model, options, false).run();
}

core::WriteLayout layout_npz(const Model& model, const Options& options, const Context&) {
  return Planner(model, options, true).run();
}

}  // namespace weighbridge::numpy
