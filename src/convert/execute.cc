// SPDX-License-Identifier: Apache-2.0
// Executes a plan: checks that it may run, writes beside the target, reads back, publishes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "convert/hashing.h"
#include "convert/output_folder.h"
#include "convert/rep.h"
#include "convert/write.h"
#include "core/model/progress.h"
#include "core/payload/dense.h"
#include "core/payload/work.h"
#include "core/writing/layout.h"
#include "io/publication.h"
#include "registry/registry.h"

namespace weighbridge {
namespace {

// Items that a message names; the plan has all of them.
constexpr std::size_t kMaxNamed = 10;

std::string list(const std::vector<Item>& items) {
  std::string out;
  for (std::size_t i = 0; i < items.size() && i < kMaxNamed; ++i) {
    out += (i == 0 ? ": " : "; ") + items[i].subject + " (" + std::string(name(items[i].kind)) + ")";
    if (!items[i].from.empty()) out += ", " + items[i].from;
    if (!items[i].to.empty()) out += (items[i].from.empty() ? " becomes " : " -> ") + items[i].to;
  }
  if (items.size() > kMaxNamed) out += "; and " + std::to_string(items.size() - kMaxNamed) + " more";
  return out;
}

void require_possible(const Plan& plan) {
  const std::string to(plan.to());
  if (!plan.blockers().empty()) base::misuse("blocked", "this cannot be written as " + to + list(plan.blockers()));
  const std::vector<Item> refused = plan.refused();
  if (refused.empty()) return;
  std::string kinds;
  for (const Item& item : refused) {
    const std::string kind(name(item.kind));
    if (("," + kinds + ",").find("," + kind + ",") == kinds.npos) kinds += (kinds.empty() ? "" : ",") + kind;
  }
  base::misuse("loss", "writing " + to + " would lose data that is not allowed to be lost" + list(refused),
               base::option_hint("allow", kinds));
}

// Only the file being appended to may also be the output: the new file begins with all its bytes and replaces it.
void require_other_file(const convert::PlanRep& rep, const std::string& path, bool replace) {
  for (const Model& model : rep.models)
    if (const Source* const input =
            io::find_file(path, model.sources(), replace ? rep.layout.prefix_source.get() : nullptr))
      base::misuse_of(path, "output-is-input",
                      "the output is the input '" + std::string(input->name()) + "': give another name");
}

void require_folder_name(const convert::PlanRep& rep, const std::string& path) {
  std::error_code unknown;
  if (rep.layout.folder && !rep.format->info.folder && !path.ends_with('/') &&
      !std::filesystem::is_directory(path, unknown))
    base::misuse_of(path, "output-kind", "shards are written into a folder: end the name with / and state the format",
                    base::option_hint("to", std::string(rep.format->info.name)));
}

// A small file can claim the same bytes for many tensors, each of which would be written, or a large alignment, to
// which each is padded. The dense form of a sparse tensor counts as data that is there.
void require_proportion(const convert::PlanRep& rep, const Limits& limits) {
  const std::uint64_t besides = rep.output_size - std::min(rep.output_size, rep.payload_size);
  if (besides > core::allowed_work(0, limits.output)) {
    std::uint64_t there = 0;
    for (const Model& model : rep.models) there = base::checked_add(there, model.file_size()).value_or(UINT64_MAX);
    if (const std::uint64_t allowed = core::allowed_work(there, limits.output); besides > allowed)
      base::over_limit("output",
                       fmt::format("the output has {} bytes of header and padding for {} bytes of input, and the limit "
                                   "is {}",
                                   besides, there, allowed),
                       rep.output_size);
  }
  if (rep.payload_size <= core::allowed_work(0, limits.output)) return;
  core::Work work;
  std::uint64_t dense = 0;
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (const Model& model : rep.models)
    for (const Tensor& tensor : model) {
      for (const Part& part : tensor.parts()) work.add(part);
      if (tensor.unsupported() || tensor.layout() == Layout::dense) continue;
      const auto extent = tensor.part(0).extent();
      if (extent && !seen.emplace(extent->source, extent->offset).second) continue;
      const auto count = base::element_count(tensor.shape());
      dense = base::checked_add(dense, packed_size(tensor.dtype(), count.value_or(0)).value_or(0)).value_or(UINT64_MAX);
    }
  const std::uint64_t there = base::checked_add(work.distinct(), dense).value_or(UINT64_MAX),
                      allowed = core::allowed_work(there, limits.output);
  if (rep.payload_size > allowed)
    base::over_limit(
        "output",
        fmt::format("the output has {} bytes for {} bytes of data{}, and the limit is {}", rep.payload_size, there,
                    rep.payload_size > there ? ", because tensors share bytes" : "", allowed),
        rep.payload_size);
}

// Checks the payload's own digests and rules before any bytes are copied. If a conversion drops or recomputes a digest,
// it must not hide bytes that failed the old one. Reads nothing where the source has no such rules.
void require_sound(const Model& model, const Context& context) {
  const core::Format* const format = registry::find(model.format());
  if (format == nullptr || format->check_content == nullptr || !format->content_can_fail) return;
  Context quiet = context;
  if (context.progress) quiet.progress = [&](std::uint64_t, std::uint64_t) { return context.progress(0, 0); };
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  format->check_content(model, quiet, findings);
  if (const Finding* error = report.first_error()) throw Error(*error);
}

// Sums up the effects of casts in all written files.
class Casts {
 public:
  void add(const core::WriteLayout& file, const convert::Record& record) {
    for (std::size_t i = 0; i < file.payloads.size(); ++i) {
      const core::Payload& p = file.payloads[i];
      if (p.form != core::Payload::Form::dense || p.dtype == p.tensor.dtype()) continue;
      const codecs::CastTally& tally = record.casts[i];
      Cast& cast = kind(p.tensor.dtype(), p.dtype);
      ++cast.tensors;
      cast.values += base::element_count(p.tensor.shape()).value_or(0);
      cast.overflowed += tally.overflowed;
      cast.flushed += tally.flushed;
      cast.largest_error = std::max(cast.largest_error, tally.largest_error);
      if (tally.overflowed == 0) continue;
      overflowed_ += tally.overflowed;
      if (++tensors_ == 1) {
        first_ = p.tensor.name();
        to_ = p.dtype;
      }
    }
  }
  bool overflowed() const noexcept { return overflowed_ > 0; }
  std::vector<Cast> take() { return std::move(made_); }

  [[noreturn]] void refuse(const Options& options) const {
    const auto many = [](std::uint64_t n, std::string_view one) {
      return std::to_string(n) + " " + std::string(one) + (n == 1 ? "" : "s");
    };
    // bf16 has the range of f32, so it holds what narrower exponents cannot.
    const bool dequantized = options.dequantize == to_,
               wider = to_ != DType::bf16 && (dequantized || options.cast == to_);
    base::malformed("convert/overflow",
                    many(overflowed_, "value") + " of " + many(tensors_, "tensor") +
                        (overflowed_ == 1 ? " is" : " are") + " too large for " + std::string(name(to_)) +
                        "; nothing was written",
                    first_,
                    wider ? base::option_hint(dequantized ? "dequantize" : "cast", std::string(name(DType::bf16)))
                          : base::option_hint("allow", std::string(name(LossKind::overflow))));
  }

 private:
  Cast& kind(DType from, DType to) {
    const auto known =
        std::ranges::find_if(made_, [&](const Cast& cast) { return cast.from == from && cast.to == to; });
    if (known != made_.end()) return *known;
    return made_.emplace_back(Cast{.from = from, .to = to});
  }

  std::vector<Cast> made_;
  std::uint64_t overflowed_ = 0, tensors_ = 0;
  std::string first_;  // the first tensor that overflowed
  DType to_ = DType::unknown;
};

// The companion file, until the output is published.
class Companion {
 public:
  Companion(const core::WriteLayout& layout, const convert::PlanRep& rep, const std::string& path, bool replace) {
    if (!layout.companion) return;
    const auto& [extension, text] = *layout.companion;
    const std::size_t name = path.find_last_of('/') + 1, dot = path.rfind('.');
    path_ = (dot == std::string::npos || dot <= name ? path : path.substr(0, dot)) + extension;
    require_other_file(rep, path_, replace);
    if (!text) {
      std::error_code unknown;  // a name that the system cannot look up names no file
      const io::SplitPath split = io::split_path(path_);
      io::recover(split.folder).require_free(split.folder, split.name);
      stale_ = std::filesystem::exists(std::filesystem::symlink_status(path_, unknown));
      if (stale_ && !replace)
        base::misuse_of(path_, "output-exists", "the file exists and would be taken for the sidecar of the new file",
                        base::option_hint("overwrite"));
      // Remove what a killed run wrote beside another output of this name.
      io::remove_stale(io::open_folder(split.folder).get(), split.name);
      return;
    }
    // Writing would follow a link that readers of the output refuse.
    std::error_code unknown;
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(path_, unknown)))
      base::misuse_of(path_, "output-kind",
                      "the file belongs to the output and cannot be written: it is a symbolic link");
    const std::string bytes = text(std::string_view(path).substr(name));
    file_.emplace(path_, io::AtomicFileOptions{replace, bytes.size(), io::split_path(path_).folder});
    file_->write_whole(std::as_bytes(std::span(bytes)));
  }
  void add_to(io::Publication& to) {
    if (file_) to.add(*file_);
    if (stale_) to.remove(path_);
  }

 private:
  std::string path_;
  std::optional<io::AtomicFile> file_;
  bool stale_ = false;
};

// What writing a payload would be refused for, before its file takes room on the disk.
void require_limits(const convert::PlanRep& rep, const Limits& limits) {
  require_proportion(rep, limits);
  for (const core::WriteLayout* const file : core::files_of(rep.layout))
    for (const core::Payload& p : file->payloads) {
      if (p.form == core::Payload::Form::logical)
        core::require_work(p.tensor.part(p.part), p.logical_size, limits);
      else if (p.form == core::Payload::Form::dense && p.tensor.layout() == Layout::dense)
        core::require_dense_work(p.tensor, limits);
      else if (p.form == core::Payload::Form::dense)
        static_cast<void>(core::dense_size(p.tensor, p.tensor.dtype(), limits));
    }
}

}  // namespace

void Plan::check_output(const std::string& path, const Limits& limits) const {
  const convert::PlanRep* const rep = convert::PlanMaker::rep(*this);
  if (!rep) base::misuse("empty-plan", "this plan was not made by plan()");
  require_possible(*this);
  require_limits(*rep, limits);
  require_folder_name(*rep, path);
  require_other_file(*rep, path, rep->options.replace);
  if (rep->layout.folder) {
    convert::OutputFolder::check_path(path, rep->options.replace);
  } else {
    io::AtomicFile::check(path, rep->options.replace);
  }
}

Written Plan::execute(const std::string& path, const Context& context) const {
  const convert::PlanRep* const rep = convert::PlanMaker::rep(*this);
  if (!rep) base::misuse("empty-plan", "this plan was not made by plan()");
  require_possible(*this);
  require_limits(*rep, context.limits);
  Written out;
  core::StepTimer timer(out.steps);
  const bool replace = rep->options.replace;
  const core::WriteLayout& layout = rep->layout;
  require_folder_name(*rep, path);
  std::optional<convert::OutputFolder> folder;
  if (layout.folder) folder.emplace(*layout.folder, path, replace);
  for (const std::string& each : folder ? folder->paths() : std::vector{path}) require_other_file(*rep, each, replace);
  // A file that is appended to keeps its bytes and their digests.
  for (const Model& model : rep->models)
    if (rep->kept_tensors == 0 || &model != &rep->models.front()) require_sound(model, context);
  timer.ran("checking the input");
  const std::vector<const core::WriteLayout*> files = core::files_of(layout);
  std::uint64_t bytes = layout.prefix_length;
  for (const core::WriteLayout* const file : files)
    for (const core::Payload& p : file->payloads) bytes += convert::hashed_bytes(p);
  core::Progress progress(context, 2 * bytes);  // once to write, once to read back
  // With an encoding, `size` is a bound that may far exceed the need. Reserve nothing then: a disk with just enough
  // room must do.
  std::optional<io::AtomicFile> single;
  if (!folder) single.emplace(path, io::AtomicFileOptions{replace, layout.size_exact ? layout.size : 0});
  Companion companion(layout, *rep, path, replace);
  if (folder) folder->write();
  Casts casts;
  std::uint64_t size = rep->output_size;
  const bool may_overflow = std::ranges::find(rep->options.allow, LossKind::overflow) != rep->options.allow.end();
  for (std::size_t i = 0; i < files.size(); ++i) {
    io::AtomicFile& file = folder ? folder->payload(i) : *single;
    const convert::Record record = convert::write(*files[i], rep->options.level, file, context, progress);
    casts.add(*files[i], record);
    size = size - files[i]->size + record.size;
    timer.ran("writing");
    if (casts.overflowed() && !may_overflow) continue;  // only keep counting: nothing will be published
    const std::string_view format = folder ? layout.folder->format : rep->format->info.name;
    convert::sync_and_read_back({*files[i], format, rep->kept_tensors}, record, file, context, progress);
    timer.ran("reading back");
  }
  if (casts.overflowed() && !may_overflow) casts.refuse(rep->options);
  if (folder) folder->check(rep->format->info.name, context);
  io::AtomicFile& last = folder ? folder->last() : *single;
  // From here on, runs with the same output take turns. If two runs append to one file, the second finds it changed.
  const auto go_on = [&] { return core::goes_on(context, 2 * bytes, 2 * bytes); };
  io::Publication publication(last, go_on);
  folder ? folder->add_others(publication) : companion.add_to(publication);
  for (const Model& model : rep->models)
    for (const auto& source : model.sources()) source->check_unchanged();
  progress.finish_pass();
  if (folder) folder->made().sync();
  publication.publish();
  if (folder) folder->made().keep();
  timer.ran("publishing");
  out.size = size;
  out.casts = casts.take();
  out.losses = unconsented();
  return out;
}

}  // namespace weighbridge
