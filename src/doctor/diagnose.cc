// SPDX-License-Identifier: Apache-2.0
// What a file is and what is wrong with it: verify(), then the questions that its findings leave open.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/model/draft.h"
#include "core/model/view.h"
#include "core/reading/findings.h"
#include "doctor/damage.h"
#include "io/read.h"
#include "registry/detect.h"
#include "registry/load.h"
#include "registry/registry.h"
#include "weighbridge/doctor.h"
#include "weighbridge/formats.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace {

using What = Advice::What;

// Zeros that reach the end of a file are what a reserved download leaves; a range in its middle may be a pruned matrix.
constexpr std::uint64_t kLeastAtEnd = 16 * doctor::kZeroBlock, kLeastInside = std::uint64_t{1} << 20;

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

bool is_dangerous(const Finding& finding) {
  return finding.severity == Severity::error && finding.rule.ends_with("/dangerous-global");
}

// Whether it is about the model: its file, or one of its files, and not another file of the folder.
bool is_of_model(const Finding& finding) { return finding.file.empty() || finding.file.source; }

class ModelExamination {
 public:
  ModelExamination(std::shared_ptr<const Place> place, const Context& context)
      : place_(std::move(place)), context_(context), file_(place_->file()) {}

  Diagnosis run() {
    out_.verdict = verify(place_, context_, {.list_incomplete = true});
    out_.size = file_ ? file_->size() : out_.verdict.model.file_size();
    read_findings();
    if (out_.verdict.format.empty()) return foreign();
    count_tensors();
    if (file_) {
      compare_name();
      look_for_zeros();
    }
    decide();
    return std::move(out_);
  }

 private:
  const Report& report() const { return out_.verdict.report; }
  void advise(What what, std::string name = {}, std::uint64_t from = 0, std::uint64_t to = 0) {
    out_.advice.push_back({what, std::move(name), from, to});
  }

  void read_findings() {
    for (const Finding& finding : report().findings()) {
      if (finding.hint.what == Hint::What::size && finding.file.empty())
        out_.full_size = wire::as_u64(finding.hint.value);
      if (finding.hint.what == Hint::What::file) {
        if (out_.missing.size() < Diagnosis::kMostNames) out_.missing.push_back(finding.hint.name);
      } else if (finding.severity == Severity::error && !finding.file.empty() && !is_dangerous(finding)) {
        if (std::ranges::find(hurt_, finding.file.name) == hurt_.end()) hurt_.push_back(finding.file.name);
        if (finding.rule.ends_with("/truncated")) short_files_ = true;
      }
    }
  }

  // A file of no format: its finding says what it is.
  Diagnosis foreign() {
    out_.condition = Condition::foreign;
    const Finding* const first = report().first_error();
    const std::string_view rule = first ? std::string_view(first->rule) : std::string_view();
    out_.what = first ? first->message : "nothing that this program knows";
    if (rule == "file/git-lfs-pointer") {
      read_pointer();
      advise(What::fetch_object);
    } else if (rule == "file/compressed" && first) {
      const std::size_t detail = first->message.rfind(": ");  // the program's name ends the sentence
      advise(What::decompress, detail == std::string::npos ? "" : first->message.substr(detail + 2));
    } else if (rule.starts_with("file/") && rule != "file/zip" && rule != "file/tar" && rule != "file/pickle" &&
               rule != "file/other-format" && rule != "file/unknown") {
      advise(What::fetch_again);
    }
    return std::move(out_);
  }

  // "oid sha256:<64 digits>" and "size <n>", which the rule has recognized.
  void read_pointer() {
    const std::string text = io::head_of(*file_, 1024);
    out_.full_size = wire::as_u64(registry::line_of(text, "size "));
    const std::string_view digest = registry::line_of(text, "oid sha256:");
    if (codecs::is_hex(digest, 64)) out_.sha256 = digest;
  }

  // Which tensors the index lists, and which of them are there.
  void count_tensors() {
    if (file_ && out_.full_size && *out_.full_size > out_.size) {
      Report ignored;
      core::Findings findings(ignored, core::Findings::Mode::all);
      // What is missing reads as zeros.
      const auto whole = std::make_shared<const doctor::Continued>(file_, out_.size, std::string(), *out_.full_size);
      const OpenOptions options{.format = std::string(out_.verdict.format), .checks = Checks::structure};
      Model all;
      try {
        all = registry::load(place_of(whole), context_, options, findings).model;
      } catch (const Error&) {
        if (whole->exhausted()) return;  // a reader wanted more than there is: nothing is counted
        throw;
      }
      std::multimap<std::uint64_t, std::string_view> late;  // by where they begin
      core::Draft there;                                    // of no format, whose checksums would cover the whole file
      there.begin_view(all);
      there.set_format("");
      for (const Tensor& tensor : all) {
        std::uint64_t begin = UINT64_MAX, end = 0;
        for (const Part& part : tensor.parts())
          if (const auto extent = part.extent()) {
            begin = std::min(begin, extent->offset);
            end = std::max(end, extent->offset + extent->length);
          }
        if (end > out_.size)
          late.emplace(begin, tensor.name());
        else
          there.adopt(tensor.name(), tensor);
      }
      there.index_names();
      there.set_attributes({all.attributes().begin(), all.attributes().end()});
      out_.whole_model = there.finish();
      out_.tensors = all.size();
      out_.whole = all.size() - late.size();
      for (const auto& [begin, name] : late)
        if (out_.damaged.size() < Diagnosis::kMostNames) out_.damaged.emplace_back(name);
      return;
    }
    if (const Finding* const first = report().first_error(); file_ && first && lost_directory(first->rule))
      if (const auto whole = doctor::with_new_directory(file_, context_.limits)) {
        const OpenOptions options{.format = std::string(out_.verdict.format)};
        return count_faults(verify(place_of(whole), context_, options));
      }
    count_faults(out_.verdict);
  }

  static bool lost_directory(std::string_view rule) { return rule.ends_with("/end") || rule.ends_with("/directory"); }

  void count_faults(const Verdict& verdict) {
    const Model& model = verdict.model;
    std::set<std::string, std::less<>> faulty;
    for (const Finding& finding : verdict.report.findings())
      if (finding.severity == Severity::error && finding.has_tensor && is_of_model(finding))
        faulty.insert(finding.tensor);
    for (const Tensor& tensor : model)
      if (const Finding* const why = tensor.unsupported(); why != nullptr && why->severity == Severity::error)
        faulty.emplace(tensor.name());
    std::uint64_t absent = 0;
    for (const std::string& name : faulty) absent += model.find(name) ? 0U : 1U;
    out_.tensors = model.size() + absent;
    out_.whole = out_.tensors - faulty.size();
    for (const std::string& name : faulty)
      if (out_.damaged.size() < Diagnosis::kMostNames) out_.damaged.push_back(name);
    leave_out(model, [&](const Tensor& tensor) { return faulty.contains(tensor.name()); });
  }

  // What remains of the model that could be read.
  template <class Faulty> void leave_out(const Model& model, Faulty faulty) {
    std::vector<std::uint32_t> leave;
    for (std::uint32_t i = 0; i < model.size(); ++i) {
      const Tensor tensor = model[i];
      if (faulty(tensor)) leave.push_back(i);
    }
    out_.whole_model = leave.empty() ? model : core::view_without(model, leave);
  }

  void compare_name() {
    const std::string extension = file_->extension();
    const core::Format* const named = registry::find_by_extension(extension);
    const core::Format* const is = registry::find(out_.verdict.format);
    if (!named || !is || named == is) return;
    const auto own = is->info.extensions;
    if (!own.empty() && std::ranges::find(own, extension) == own.end()) out_.named_like = named->info.name;
  }

  void look_for_zeros() {
    if (out_.full_size && *out_.full_size < out_.size)
      out_.trailing = ByteRange{*out_.full_size, out_.size - *out_.full_size};
    // A checksum over the bytes is better evidence.
    if (out_.verdict.checked == "structure and checksums") return;
    std::vector<ByteRange> extents;
    for (const Tensor& tensor : out_.verdict.model)
      for (const Part& part : tensor.parts())
        if (const auto extent = part.extent(); extent && extent->source == 0 && part.digest().empty())
          extents.push_back({extent->offset, extent->length});
    if (extents.empty()) return;  // zeros outside of tensors, or under digests, say nothing
    const doctor::Zeros zeros = doctor::find_zeros(*file_, std::move(extents), kLeastAtEnd, context_);
    const auto reaches_end = [&](const ByteRange& range) { return range.offset + range.length == out_.size; };
    if (zeros.hole && (reaches_end(*zeros.hole) || zeros.hole->length >= kLeastInside)) out_.zeros = zeros.hole;
    // Zeros at the end that include whole tensors, of which verify() warns. One tensor may well be zeros.
    if (!out_.zeros && in_tail(zeros.tail) > 1) out_.zeros = ByteRange{zeros.tail, out_.size - zeros.tail};
  }

  // Whether some bytes of the tensor in this file are at `at` or after it.
  static bool reaches(const Tensor& tensor, std::uint64_t at, bool with_digest) {
    for (const Part& part : tensor.parts()) {
      const auto extent = part.extent();
      if (extent && extent->source == 0 && extent->length > 0 && extent->offset + extent->length > at &&
          (with_digest || part.digest().empty()))
        return true;
    }
    return false;
  }
  // How many tensors without a digest do.
  std::size_t in_tail(std::uint64_t at) const {
    std::size_t count = 0;
    for (const Tensor& tensor : out_.verdict.model) count += reaches(tensor, at, false) ? 1U : 0U;
    return count;
  }

  void decide() {
    const FormatInfo* const info = find_format(out_.verdict.format);
    const std::string_view rule = report().first_error() ? std::string_view(report().first_error()->rule) : "";
    const bool short_of = out_.full_size && *out_.full_size > out_.size;
    const bool cut_header = ends_with_any(rule, {"/truncated-header", "/header-past-end", "/too-short"});
    const bool cut_index = ends_with_any(rule, {"/bad-footer", "/end"});
    const bool zeros_at_end = out_.zeros && out_.zeros->offset + out_.zeros->length == out_.size;
    out_.what = std::string(info ? info->title : out_.verdict.format) + (file_                  ? " file"
                                                                         : info && info->folder ? ""
                                                                                                : " model");
    if (!out_.missing.empty()) {
      out_.condition = Condition::incomplete;
      out_.what += " of which files are missing";
      for (const std::string& name : out_.missing) advise(What::fetch_file, name);
      fetch_hurt();
    } else if (short_of) {
      out_.condition = Condition::incomplete;
      out_.what += " that ends early";
      advise(What::fetch_rest, {}, zeros_at_end ? out_.zeros->offset : out_.size, *out_.full_size);
    } else if (cut_header || cut_index) {
      out_.condition = Condition::incomplete;
      out_.what += cut_header ? " that ends inside its header" : " without its end, where its index is";
      advise(What::fetch_rest, {}, out_.size, 0);
    } else if (short_files_) {
      out_.condition = Condition::incomplete;
      out_.what += " of which files end early";
      fetch_hurt();
    } else if (std::ranges::any_of(report().findings(), is_dangerous)) {
      out_.condition = Condition::suspicious;
      out_.what += " that can run code when Python loads it";
      advise(What::distrust);
    } else if (!hurt_.empty()) {
      out_.condition = Condition::damaged;
      out_.what += " of which files are damaged";
      fetch_hurt();
    } else if (!report().valid()) {
      out_.condition = Condition::damaged;
      out_.what += out_.trailing && report().errors() == 1 ? " with bytes after its end" : " that breaks its rules";
      if (out_.trailing && report().errors() == 1)
        advise(What::trim, {}, 0, *out_.full_size);
      else if (file_)
        advise(What::fetch_again);
    } else if (zeros_at_end && out_.zeros->length >= kLeastAtEnd) {
      out_.condition = Condition::incomplete;
      out_.what += " whose end is zeros, as in a download that stopped after its space was reserved";
      take_zeros_as_damage();
      advise(What::fetch_rest, {}, out_.zeros->offset, out_.size);
    } else if (out_.zeros) {
      out_.condition = Condition::suspicious;
      out_.what += zeros_at_end ? " that is valid, and whose last tensors are zeros"
                                : " that is valid, with a hole of zeros inside a tensor";
      advise(What::compare);
    } else if (out_.trailing) {
      out_.condition = Condition::suspicious;
      out_.what += " that is valid, with bytes after its end";
      advise(What::trim, {}, 0, *out_.full_size);
    } else if (!out_.verdict.not_known_safe.empty()) {
      out_.condition = Condition::unproven;
      out_.what += ", valid, but with a pickle that is not known to be harmless";
      advise(What::distrust);
    } else {
      out_.what += ", nothing is wrong with it";
    }
    if (out_.whole > 0 && (cut_index || !out_.damaged.empty())) advise(What::salvage);
    if (!out_.named_like.empty() && info && !info->extensions.empty())
      advise(What::rename, std::string(info->extensions[0]));
  }

  void fetch_hurt() {
    for (const std::string& name : hurt_) advise(What::fetch_again, name);
  }

  // The tensors that a hole at the end of the file reaches into.
  void take_zeros_as_damage() {
    const auto reached = [&](const Tensor& tensor) { return reaches(tensor, out_.zeros->offset, true); };
    for (const Tensor& tensor : out_.verdict.model) {
      if (!reached(tensor)) continue;
      --out_.whole;
      if (out_.damaged.size() < Diagnosis::kMostNames) out_.damaged.emplace_back(tensor.name());
    }
    leave_out(out_.verdict.model, reached);
  }

  std::shared_ptr<const Place> place_;
  const Context& context_;
  std::shared_ptr<const Source> file_;
  std::vector<std::string> hurt_;  // files of the model with errors, besides the one that was given
  bool short_files_ = false;       // one of these ends early
  Diagnosis out_;
};

}  // namespace

std::string_view name(Condition condition) noexcept {
  constexpr std::string_view kNames[] = {"sound", "suspicious", "incomplete", "damaged", "foreign", "unproven"};
  return kNames[static_cast<std::size_t>(condition)];
}
std::string_view name(Advice::What what) noexcept {
  constexpr std::string_view kNames[] = {"fetch-rest", "fetch-again", "fetch-object", "fetch-file", "salvage",
                                         "trim",       "rename",      "decompress",   "compare",    "distrust"};
  return kNames[static_cast<std::size_t>(what)];
}

Diagnosis diagnose(std::shared_ptr<const Place> place, const Context& context) {
  return ModelExamination(std::move(place), context).run();
}
Diagnosis diagnose(const std::string& path, const Context& context) { return diagnose(place_at(path), context); }

}  // namespace weighbridge
