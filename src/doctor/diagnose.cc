// SPDX-License-Identifier: Apache-2.0
// What a file is and what is wrong with it: verify(), then the questions that its findings leave open.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "core/archive/zip.h"
#include "core/model/draft.h"
#include "core/model/view.h"
#include "core/reading/findings.h"
#include "doctor/damage.h"
#include "io/place.h"
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
using Names = std::set<std::string, std::less<>>;

// Zeros that reach the end of a file are what a reserved download leaves; a range in its middle may be a pruned matrix.
constexpr std::uint64_t kMinAtEnd = 16 * doctor::kZeroBlock, kMinInside = std::uint64_t{1} << 20;

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

bool ends_in_header(std::string_view rule) {
  return ends_with_any(rule, {"/truncated-header", "/header-past-end", "/too-short"});
}

bool is_dangerous(const Finding& finding) {
  return finding.severity == Severity::error && finding.rule.ends_with("/dangerous-global");
}

// Whether it is about the model: its file, or one of its files, and not another file of the folder.
bool is_of_model(const Finding& finding) { return finding.file.empty() || finding.file.source; }

// What the sentence of a finding ends with, before the values that it compares: a name.
std::string detail_of(const Finding& finding) {
  const std::string_view text = std::string_view(finding.message).substr(0, finding.message.find(" (expected "));
  const std::size_t colon = text.rfind(": ");
  return colon == text.npos ? std::string() : std::string(text.substr(colon + 2));
}

// What the examination notices besides broken rules.
enum class Sign : std::uint8_t {
  other_data,  // a file of data is another model's: the finding's detail names it
  no_data,     // it is not there
  leaves,      // an archive writes outside of the folder into which it is unpacked
  unlisted,    // the index omits a tensor
  untrue,      // metadata are not true
  no_index,    // there are no weights, or only shards without an index
  mended,      // the model is whole with another index or header
  not_finite,  // numbers are NaN or infinite
  unused,      // bytes belong to no tensor
  unsized,     // a tensor has a size that is not known
  untyped,     // a tensor has a type that is not read
  disagrees,   // config.json states other shapes
  cut,         // a file of several ends early
  another,     // another format is at the end of the file
  dangerous,   // a pickle can run code
  code,        // other programs may run code when they load it
  conflict     // two sources of metadata contradict each other
};
constexpr std::pair<std::string_view, Sign> kSigns[] = {
    {"/external-short", Sign::other_data}, {"/external-rest", Sign::other_data},
    {"/external-missing", Sign::no_data},  {"/member-path", Sign::leaves},
    {"/tensor-unlisted", Sign::unlisted},  {"file/also-another", Sign::another},
    {"claim/tied", Sign::untrue},          {"claim/token-id", Sign::untrue},
    {"claim/data-hash", Sign::untrue},     {"claim/vocabulary", Sign::untrue},
    {"-conflict", Sign::conflict},         {"hf/weights-missing", Sign::no_index}};

class ModelExamination {
 public:
  // `depth`: how many models this one is inside.
  ModelExamination(std::shared_ptr<const Place> place, const Context& context, OpenOptions options, unsigned depth = 0)
      : place_(std::move(place)),
        context_(context),
        options_(std::move(options)),
        file_(place_->file()),
        depth_(depth) {
    options_.list_incomplete = true;
  }

  Diagnosis run() {
    out_.verdict = verify(place_, context_, options_);
    out_.file = file_;
    out_.size = file_ ? file_->size() : out_.verdict.model.file_size();
    read_findings();
    compare_digest();
    if (out_.verdict.format.empty() && !look_inside()) return foreign();
    if (!inner_ && !look_inside()) count_tensors();
    if (file_ && !inner_) {
      compare_name();
      look_for_zeros();
    }
    if (report().valid()) look_at_tensors();
    if (!file_ && !report().valid()) mend_index();
    decide();
    return std::move(out_);
  }

 private:
  const Report& report() const { return out_.verdict.report; }
  void advise(What what, std::string name = {}) { out_.advice.push_back({what, std::move(name)}); }

  void note_damaged(std::string_view name) {
    if (out_.damaged.size() < Diagnosis::kMaxNames) out_.damaged.emplace_back(name);
  }

  void read_findings() {
    for (const Finding& finding : report().findings()) {
      if (is_dangerous(finding)) signs_.insert(Sign::dangerous);
      if (is_about_code(finding.rule) && !base::is_not_known_safe(finding.rule)) signs_.insert(Sign::code);
      for (const auto& [ends, sign] : kSigns)
        if (finding.rule.ends_with(ends)) {
          signs_.insert(sign);
          if (sign == Sign::no_data) out_.missing.push_back(detail_of(finding));
          if (sign == Sign::other_data) hurt_.push_back(detail_of(finding));
        }
      if (finding.hint.what == Hint::What::size && finding.file.empty())
        out_.full_size = wire::as_u64(finding.hint.value);
      if (finding.severity == Severity::warning && !finding.has_tensor && finding.file.empty() && finding.offset &&
          ends_with_any(finding.rule, {"/trailing-data", "/trailing-bytes"}))
        out_.full_size = finding.offset;
      if (finding.hint.what == Hint::What::file) {
        if (out_.missing.size() < Diagnosis::kMaxNames) out_.missing.push_back(finding.hint.name);
      } else if (finding.severity == Severity::error && !finding.file.empty() && !is_dangerous(finding)) {
        if (std::ranges::find(hurt_, finding.file.name) == hurt_.end()) hurt_.push_back(finding.file.name);
        if (finding.rule.ends_with("/truncated") || ends_in_header(finding.rule)) signs_.insert(Sign::cut);
      }
    }
  }

  // A digest in the name, also of what a link leads to, is that of the bytes as they were published.
  void compare_digest() {
    if (!file_) return;
    std::error_code error;
    const auto real = std::filesystem::canonical(std::string(file_->path()), error);
    const std::string name = error ? std::string(file_->file_name()) : real.filename().string();
    const std::string_view stated = doctor::digest_in(name);
    if (stated.empty()) return;
    as_published_ = doctor::digest_of(*file_, stated, context_) == stated;
    out_.verdict.checked += std::string(out_.verdict.checked.empty() ? "" : "; ") + "the digest in its name";
    if (stated.size() == 64) out_.sha256 = stated;
  }

  // Whether a model begins or ends elsewhere than the file.
  bool look_inside() {
    constexpr unsigned kMaxDepth = 4;
    const Finding* const first = report().first_error();
    const bool longer = out_.full_size && *out_.full_size < out_.size;
    if (!file_ || depth_ == kMaxDepth || as_published_ == true) return false;
    if (first != nullptr && (first->kind == Kind::limit || is_dangerous(*first))) return false;
    if (out_.verdict.format.empty() && first != nullptr && first->rule != "file/unknown" && first->rule != "file/zeros")
      return false;
    const core::Format* const named = registry::find_by_extension(file_->extension());
    const std::string_view format = !out_.verdict.format.empty() ? out_.verdict.format : named ? named->info.name : "";
    inner_ = doctor::find_inner(file_, format, first == nullptr && !longer, context_);
    // The file is whole before the other model begins: one follows the other.
    if (inner_ && inner_->how == doctor::Inner::How::late && longer && inner_->range.offset >= *out_.full_size)
      inner_.reset();
    if (inner_ && inner_->how == doctor::Inner::How::older && longer) inner_.reset();
    if (!inner_) return false;
    const ByteRange range = inner_->range;
    Diagnosis inside =
        ModelExamination(place_of(std::make_shared<const doctor::Continued>(file_, range, std::string(), range.length)),
                         context_, options_, depth_ + 1)
            .run();
    if (inside.verdict.report.valid()) inside.own = ByteRange{0, range.length};
    if (out_.verdict.format.empty()) out_.verdict.format = inside.verdict.format;
    if (inside.own) out_.own = ByteRange{range.offset + inside.own->offset, inside.own->length};
    out_.whole_model = std::move(inside.whole_model);
    out_.tensors = inside.tensors;
    out_.whole = inside.whole;
    out_.damaged = std::move(inside.damaged);
    return true;
  }

  // Numbers that no training leaves, what config.json says, bytes that nothing uses.
  void look_at_tensors() {
    Report& to = out_.verdict.report;
    const Model& model = out_.verdict.model;
    for (const doctor::NotFinite& each : doctor::find_not_finite(model, context_)) {
      if (each.unread) continue;
      to.add(
          core::Findings::make(doctor::rules::kNotFinite, {.tensor = each.tensor}, {},
                               std::to_string(each.nans) + " NaN, " + std::to_string(each.infinities) + " infinite"));
      signs_.insert(Sign::not_finite);
    }
    for (const doctor::Unused& each : doctor::find_unused(model, context_)) {
      to.add(core::Findings::make(doctor::rules::kUnused, {}, {},
                                  std::to_string(each.bytes) + " of " + std::to_string(each.of) + " bytes", each.file));
      signs_.insert(Sign::unused);
    }
    if (!file_) {
      doctor::Disagreement config = doctor::compare_with_config(model);
      absent_ = config.missing.size();
      out_.tensors += absent_;
      for (const std::string& name : config.missing) note_damaged(name);
      for (Finding& each : config.findings) {
        signs_.insert(each.severity == Severity::error ? Sign::disagrees : Sign::untrue);
        to.add(std::move(each));
      }
    }
    for (const Tensor& tensor : model) {
      bool sized = false;
      for (const Part& part : tensor.parts()) sized |= part.extent().has_value();
      if (tensor.unsupported() == nullptr) continue;
      if (!sized) signs_.insert(Sign::unsized);
      if (tensor.dtype() == DType::unknown) signs_.insert(Sign::untyped);
    }
  }

  // The folder with an index that lists what its shards hold, if that is all that was wrong with it.
  void mend_index() {
    std::vector<std::string> lost;
    const auto mended = doctor::with_new_index(place_, context_, lost);
    if (!mended) return;
    Verdict verdict = verify(mended, context_, as_found(Checks::all));
    if (!verdict.report.valid()) return;
    signs_.insert(Sign::mended);
    out_.missing.clear();
    out_.damaged.clear();
    out_.whole_model = verdict.model;
    out_.whole = verdict.model.size();
    out_.tensors = out_.whole + lost.size();
    for (const std::string& each : lost) note_damaged(each);
  }

  // How to read another form of the same model.
  OpenOptions as_found(Checks checks) const {
    OpenOptions out = options_;
    out.format = out_.verdict.format;
    out.checks = checks;
    out.list_incomplete = false;
    return out;
  }

  // A file of no format: its finding says what it is.
  Diagnosis foreign() {
    out_.condition = Condition::foreign;
    const Finding* const first = report().first_error();
    const std::string_view rule = first ? std::string_view(first->rule) : std::string_view();
    out_.what = first ? first->message : "nothing that weighbridge knows";
    if (rule == "file/git-lfs-pointer") {
      read_pointer();
      advise(What::fetch_object);
    } else if (rule == "file/compressed" && first) {
      advise(What::decompress, detail_of(*first));  // the program's name ends the sentence
    } else if (rule == "file/zeros") {
      const doctor::Zeros zeros = doctor::find_zeros(*file_, {}, kMinAtEnd, context_);
      out_.zeros = ByteRange{0, zeros.tail == 0 ? out_.size : zeros.head};
      out_.what = zeros.tail == 0 ? "the whole file is zeros, as a download that reserved its space and never began"
                                  : "the file begins with zeros, and what follows them is no model";
      advise(What::fetch_again);
    } else if (rule == "file/zip" || rule == "file/tar") {
      advise(What::decompress, rule == "file/zip" ? "unzip" : "tar");
    } else if (rule.starts_with("file/") && rule != "file/pickle" && rule != "file/other-format" &&
               rule != "file/unknown") {
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

  // Some tensors of a model, as one of no format: rules of content would cover the whole file.
  template <class Keep> static Model without_format(const Model& model, Keep keep) {
    core::Draft out;
    out.begin_view(model);
    out.set_format("");
    for (const Tensor& tensor : model)
      if (keep(tensor)) out.adopt(tensor.name(), tensor);
    out.index_names();
    out.set_attributes({model.attributes().begin(), model.attributes().end()});
    return out.finish();
  }

  // Which tensors the index lists, and which of them are there.
  void count_tensors() {
    const bool alone = out_.verdict.model.sources().size() <= 1;
    if (file_ && alone && out_.full_size && *out_.full_size > out_.size) {
      Report ignored;
      core::Findings findings(ignored, core::Findings::Mode::all);
      // What is missing reads as zeros.
      const auto whole =
          std::make_shared<const doctor::Continued>(file_, ByteRange{0, out_.size}, std::string(), *out_.full_size);
      Model all;
      try {
        all = registry::load(place_of(whole), context_, as_found(Checks::structure), findings).model;
      } catch (const Error&) {
        if (whole->exhausted()) return;  // a reader wanted more than there is: nothing is counted
        throw;
      }
      std::multimap<std::uint64_t, std::string_view> late;  // by where they begin
      out_.whole_model = without_format(all, [&](const Tensor& tensor) {
        std::uint64_t begin = UINT64_MAX, end = 0;
        for (const Part& part : tensor.parts())
          if (const auto extent = part.extent()) {
            begin = std::min(begin, extent->offset);
            end = std::max(end, extent->offset + extent->length);
          }
        if (end > out_.size) late.emplace(begin, tensor.name());
        return end <= out_.size;
      });
      std::set<std::string_view> lost;  // which even the reader of zeros cannot place
      for (const Finding& each : ignored.findings())
        if (each.severity == Severity::error && each.has_tensor && !all.find(each.tensor)) lost.insert(each.tensor);
      out_.whole = all.size() - late.size();
      out_.tensors = all.size() + (ignored.full() ? ignored.errors() : lost.size());
      for (const auto& [begin, name] : late) note_damaged(name);
      for (const std::string_view name : lost) note_damaged(name);
      return;
    }
    if (const Finding* const first = report().first_error(); file_ && first && out_.verdict.format == "npy") {
      std::string text;
      if (const auto whole = doctor::with_new_npy_header(file_, text)) {
        count_faults(verify(place_of(whole), context_, as_found(Checks::all)));
        if (out_.whole > 0) signs_.insert(Sign::mended);
        out_.verdict.report.add(core::Findings::make(doctor::rules::kHeaderText, {}, {}, text));
        return;
      }
    }
    if (const Finding* const first = report().first_error(); file_ && first && lost_directory(first->rule))
      if (const auto whole = doctor::with_new_directory(file_, context_.limits))
        return count_faults(verify(place_of(whole), context_, as_found(Checks::all)));
    count_faults(out_.verdict, lost_in_files());
  }

  // Tensors that the files of the model would hold if none of them ended early, and that their readers left out.
  Names lost_in_files() const {
    const Model& model = out_.verdict.model;
    const auto sources = model.sources();
    std::vector<std::shared_ptr<const doctor::Continued>> whole;
    io::OtherFiles files;
    for (const Finding& each : report().findings()) {
      const auto size = each.hint.what == Hint::What::size ? wire::as_u64(each.hint.value) : std::nullopt;
      const bool other = each.file.source && *each.file.source < sources.size();
      const auto file = other ? sources[*each.file.source] : each.file.empty() ? file_ : nullptr;
      if (!size || !file || *size <= file->size()) continue;
      whole.push_back(
          std::make_shared<const doctor::Continued>(file, ByteRange{0, file->size()}, std::string(), *size));
      files.insert_or_assign(std::string(file->file_name()), whole.back());
    }
    Names out;
    if (whole.empty()) return out;
    OpenOptions options = as_found(Checks::structure);
    options.list_incomplete = true;
    Report ignored;
    core::Findings findings(ignored, core::Findings::Mode::all);
    try {
      for (const Tensor& tensor : registry::load(io::with_files(place_, files), context_, options, findings).model)
        if (!model.find(tensor.name())) out.emplace(tensor.name());
    } catch (const Error&) {
      if (std::ranges::none_of(whole, [](const auto& file) { return file->exhausted(); })) throw;
    }
    return out;
  }

  static bool lost_directory(std::string_view rule) { return rule.ends_with("/end") || rule.ends_with("/directory"); }

  // `faulty`: tensors that are known not to be whole.
  void count_faults(const Verdict& verdict, Names faulty = {}) {
    const Model& model = verdict.model;
    for (const Finding& finding : verdict.report.findings())
      if (finding.severity == Severity::error && finding.has_tensor && is_of_model(finding))
        faulty.insert(finding.tensor);
    for (const Tensor& tensor : model)
      if (const Finding* const why = tensor.unsupported(); why != nullptr && why->severity == Severity::error)
        faulty.emplace(tensor.name());
    if (model.format() == "pytorch") in_members(model, faulty);
    std::uint64_t absent = 0;
    for (const std::string& name : faulty) absent += model.find(name) ? 0U : 1U;
    out_.tensors = model.size() + absent;
    out_.whole = out_.tensors - faulty.size();
    for (const std::string& name : faulty) note_damaged(name);
    leave_out(model, [&](const Tensor& tensor) { return faulty.contains(tensor.name()); });
  }

  // Findings of an archive of PyTorch name members: replaces them by the tensors in them.
  void in_members(const Model& model, Names& faulty) const {
    core::Draft names;
    Names tensors;
    for (const core::ZipMember& member :
         core::read_zip_again(*model.sources()[0], context_.limits, core::kQuietZip, names).members) {
      if (model.find(member.name) || faulty.erase(std::string(member.name)) == 0) continue;
      for (const Tensor& tensor : model)
        for (const Part& part : tensor.parts())
          if (const auto extent = part.extent(); extent && extent->source == 0 && extent->offset >= member.offset &&
                                                 extent->offset < member.offset + member.stored)
            tensors.emplace(tensor.name());
    }
    faulty.merge(tensors);
  }

  // What remains of the model that could be read.
  template <class Faulty> void leave_out(const Model& model, Faulty faulty) {
    std::vector<std::uint32_t> leave;
    for (std::uint32_t i = 0; i < model.size(); ++i) {
      const Tensor tensor = model[i];
      if (faulty(tensor)) leave.push_back(i);
    }
    if (leave.empty())
      out_.whole_model = model;
    else if (model.format() == "pytorch")  // whose rules are about members
      out_.whole_model = without_format(model, [&](const Tensor& tensor) { return !faulty(tensor); });
    else
      out_.whole_model = core::view_without(model, leave);
  }

  void compare_name() {
    const std::string extension = file_->extension();
    const core::Format* const named = registry::find_by_extension(extension);
    const core::Format* const is = registry::find(out_.verdict.format);
    if (!named || !is || named == is || named->plausible != nullptr) return;  // or many kinds use the extension
    const auto own = is->info.extensions;
    if (!own.empty() && std::ranges::find(own, extension) == own.end()) out_.named_like = named->info.name;
  }

  void look_for_zeros() {
    if (out_.full_size && *out_.full_size < out_.size) {
      out_.trailing = ByteRange{*out_.full_size, out_.size - *out_.full_size};
      out_.own = ByteRange{0, *out_.full_size};
    }
    // A checksum over the bytes is better evidence.
    if (as_published_ == true || out_.verdict.checked == "structure and checksums") return;
    std::vector<ByteRange> extents;
    for (const Tensor& tensor : out_.verdict.model)
      for (const Part& part : tensor.parts())
        if (const auto extent = part.extent(); extent && extent->source == 0 && part.digest().empty())
          extents.push_back({extent->offset, extent->length});
    if (extents.empty()) return;  // zeros outside of tensors, or under digests, say nothing
    const doctor::Zeros zeros = doctor::find_zeros(*file_, std::move(extents), kMinAtEnd, context_);
    const bool at_end = zeros.hole && zeros.hole->offset + zeros.hole->length == out_.size;
    if (zeros.hole && !at_end && zeros.hole->length >= kMinInside) out_.zeros = zeros.hole;
    // Zeros that reach the end begin before the first block of them: what a download wrote can end anywhere. They may
    // include whole tensors, of which verify() warns; one tensor may well be zeros.
    if (at_end || (!out_.zeros && in_tail(zeros.tail) > 1)) out_.zeros = ByteRange{zeros.tail, out_.size - zeros.tail};
  }

  // Whether some bytes of the tensor in this file are at `at` or after it.
  static bool reaches(const Tensor& tensor, std::uint64_t at) {
    for (const Part& part : tensor.parts()) {
      const auto extent = part.extent();
      if (extent && extent->source == 0 && extent->length > 0 && extent->offset + extent->length > at &&
          part.digest().empty())
        return true;
    }
    return false;
  }
  // How many tensors without a digest do.
  std::size_t in_tail(std::uint64_t at) const {
    std::size_t count = 0;
    for (const Tensor& tensor : out_.verdict.model)
      count += reaches(tensor, at) && !registry::may_be_zeros(tensor.name()) ? 1U : 0U;
    return count;
  }

  void decide() {
    const FormatInfo* const info = find_format(out_.verdict.format);
    const std::string_view rule = report().first_error() ? std::string_view(report().first_error()->rule) : "";
    const bool own = file_ && report().first_error() && report().first_error()->file.empty();
    const bool short_of = out_.full_size && *out_.full_size > out_.size;
    const bool cut_header = own && ends_in_header(rule);
    const bool cut_index = own && ends_with_any(rule, {"/bad-footer", "/end"});
    const bool zeros_at_end = out_.zeros && out_.zeros->offset + out_.zeros->length == out_.size;
    out_.what = std::string(info ? info->title : out_.verdict.format) + (file_                  ? " file"
                                                                         : info && info->folder ? ""
                                                                                                : " model");
    const auto has = [&](Sign sign) { return signs_.contains(sign); };
    const auto each = [](What what, const std::vector<std::string>& names) {
      std::vector<Advice> out;
      for (const std::string& name : names) out.push_back({what, name});
      return out;
    };
    const std::uint64_t begin = out_.own ? out_.own->offset : 0, end = out_.own ? begin + out_.own->length : 0;
    const Advice again{What::fetch_again}, compare{What::compare}, salvage{What::salvage}, rewrite{What::rewrite},
        distrust{What::distrust}, archive{What::distrust, "archive"}, config{What::fetch_again, "config.json"},
        trim = out_.own ? Advice{What::trim, {}, begin, end} : again,
        rest{What::fetch_rest,
             {},
             zeros_at_end ? out_.zeros->offset : out_.size,
             short_of       ? *out_.full_size
             : zeros_at_end ? out_.size
                            : 0};
    const auto inner = [&](doctor::Inner::How how) { return inner_ && inner_->how == how; };
    const std::string at = inner_ ? std::to_string(inner_->range.offset) : "", until = std::to_string(end);
    const bool only_trailing = out_.trailing && report().errors() == (has(Sign::another) ? 2 : 1),
               mended = has(Sign::mended), distrusted = !out_.verdict.not_known_safe.empty(),
               truncated = own && rule.ends_with("/truncated");
    const bool cut_pickle = file_ && rule == "pytorch/pickle" &&
                            io::head_of(*file_, core::kZipMember.size()) != core::kZipMember &&
                            detail_of(*report().first_error()).starts_with("the pickle ends inside");
    const Advice code{What::distrust, "code"};
    std::vector<Advice> fetch = each(What::fetch_file, out_.missing), hurt = each(What::fetch_again, hurt_);
    fetch.insert(fetch.end(), hurt.begin(), hurt.end());

    struct Outcome {
      bool holds;
      Condition condition;
      std::string what;
      std::vector<Advice> advice{};
    };
    using enum Condition;
    using How = doctor::Inner::How;
    // The first that holds: what proves more comes before what it explains.
    const Outcome outcomes[] = {
        {as_published_ == false, damaged, " whose bytes are not those of the digest in its name", {again}},
        {inner(How::repeated), damaged, " that begins again at byte " + at + ", as a resumed download may", {trim}},
        {inner(How::late), damaged, " that begins at byte " + at + ", after bytes of something else", {trim}},
        {inner(How::older), damaged, " with an end at byte " + until + ", and an unfinished append after it", {trim}},
        {mended && file_, damaged, " with a bad header over good data", {salvage}},
        {mended && has(Sign::no_index), damaged, " whose index is missing: every shard is there", {salvage}},
        {mended && has(Sign::unlisted), damaged, " whose index omits tensors that its shards hold", {salvage}},
        {mended && out_.tensors > out_.whole,
         damaged,
         " whose index is stale: it lists other files, and tensors that no file has",
         {salvage}},
        {mended, damaged, " whose index is stale: every tensor is there, in files of other names", {salvage}},
        {!out_.missing.empty(), incomplete, " of which files are missing", fetch},
        {short_of || truncated, incomplete, " that ends early", {rest}},
        {cut_header, incomplete, " that ends inside its header", {rest}},
        {cut_index, incomplete, " without its end, where its index is", {rest}},
        {has(Sign::cut), incomplete, " of which files end early", hurt},
        {has(Sign::dangerous), suspicious, " that can run code when Python loads it", {distrust}},
        {cut_pickle, incomplete, " that ends inside a pickle", {rest}},
        {has(Sign::leaves), suspicious, " with a member that leaves the folder where it is unpacked", {archive}},
        {has(Sign::other_data), damaged, " whose file of data is not its own", hurt},
        {!hurt_.empty(), damaged, " of which files are damaged", hurt},
        {absent_ > 0, incomplete, " without tensors that config.json or the numbers of its layers imply", {again}},
        {has(Sign::disagrees), damaged, " whose tensors are not those that config.json describes", {config}},
        {only_trailing, damaged, " with bytes after its end", {trim}},
        {!report().valid() && (!file_ || as_published_ == true), damaged, " that breaks its rules"},
        {!report().valid(), damaged, " that breaks its rules", {again}},
        {out_.zeros && !zeros_at_end, suspicious, " that is valid, with a hole of zeros inside a tensor", {compare}},
        {zeros_at_end, suspicious, " that is valid, and ends with zeros: its own, or never written", {compare, rest}},
        {out_.trailing.has_value(), suspicious, " that is valid, with bytes after its end", {trim}},
        {has(Sign::not_finite), suspicious, " that is valid, with numbers that are NaN or infinite", {compare}},
        {has(Sign::code), suspicious, " that is valid, with code that programs may run when they load it", {code}},
        {has(Sign::untrue), suspicious, " that is valid, with metadata that do not fit its tensors"},
        {has(Sign::conflict), suspicious, " that is valid, with metadata that contradict each other"},
        {has(Sign::unused), suspicious, " that is valid, with bytes that belong to no tensor", {rewrite}},
        {distrusted, unproven, ", valid, but with a pickle that is not known to be harmless", {distrust}},
        {has(Sign::unsized), unproven, ", valid, but with tensors whose size is not known"},
        {has(Sign::untyped), unproven, ", valid, but with tensors of a type that weighbridge does not read"},
        {as_published_ == true, sound, ", as it was published"},
        {true, sound, ", nothing is wrong with it"}};
    const Outcome& outcome = *std::ranges::find_if(outcomes, &Outcome::holds);
    out_.condition = outcome.condition;
    out_.what += outcome.what;
    out_.advice = outcome.advice;
    if (out_.whole > 0 && !has(Sign::mended) && absent_ == 0 && !out_.own &&
        (cut_index || has(Sign::cut) || !out_.damaged.empty()))
      advise(What::salvage);
    if (!out_.named_like.empty() && info && !info->extensions.empty())
      advise(What::rename, std::string(info->extensions[0]));
  }

  std::shared_ptr<const Place> place_;
  const Context& context_;
  OpenOptions options_;
  std::shared_ptr<const Source> file_;
  std::vector<std::string> hurt_;  // files of the model with errors, besides the one that was given
  std::set<Sign> signs_;
  std::optional<doctor::Inner> inner_;
  std::optional<bool> as_published_;  // whether its bytes have the digest in its name, if that has one
  std::uint64_t absent_ = 0;          // tensors that should be there
  const unsigned depth_;
  Diagnosis out_;
};

}  // namespace

std::string_view name(Condition condition) noexcept {
  constexpr std::string_view kNames[] = {"sound", "suspicious", "incomplete", "damaged", "foreign", "unproven"};
  return kNames[static_cast<std::size_t>(condition)];
}
std::string_view name(Advice::What what) noexcept {
  constexpr std::string_view kNames[] = {"fetch-rest", "fetch-again", "fetch-object", "fetch-file", "salvage", "trim",
                                         "rename",     "decompress",  "compare",      "distrust",   "rewrite"};
  return kNames[static_cast<std::size_t>(what)];
}

std::span<const Rule> doctor_rules() noexcept { return doctor::rules::kAll; }

Diagnosis diagnose(std::shared_ptr<const Place> place, const Context& context, const OpenOptions& options) {
  return ModelExamination(std::move(place), context, options).run();
}
Diagnosis diagnose(const std::string& path, const Context& context, const OpenOptions& options) {
  return diagnose(place_at(path, options.access), context, options);
}

}  // namespace weighbridge
