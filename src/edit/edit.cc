// SPDX-License-Identifier: Apache-2.0
// Plans and carries out an edit: what changes, whether the new header fits, and which of the three ways writes it.
// Before a byte is written, the ordinary reader opens the file as it would become, and the result is compared with the
// request.
#include "weighbridge/edit.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/coded.h"
#include "core/model/plan_text.h"
#include "core/model/progress.h"
#include "core/model/view.h"
#include "core/reading/format.h"
#include "core/writing/claims.h"
#include "core/writing/layout.h"
#include "edit/applying.h"
#include "edit/copy.h"
#include "edit/folder.h"
#include "edit/patched_file.h"
#include "edit/values.h"
#include "io/atomic_file.h"
#include "io/file_source.h"
#include "io/forwarding_source.h"
#include "io/journal.h"
#include "io/publication.h"
#include "registry/load.h"
#include "registry/registry.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"
#include "weighbridge/text.h"

namespace weighbridge {
namespace {

using core::quoted, edit_files::PatchedFile;
using Way = Edited::Way;

// A file with another header: what is before it stays, what is after it moves.
class WithHeader final : public io::InterposedSource {
 public:
  WithHeader(std::shared_ptr<const Source> file, const core::NewHeader& where, const std::string& header)
      : InterposedSource(std::move(file)), offset_(where.offset), room_(where.room), header_(header) {}
  std::uint64_t size() const noexcept override { return of().size() - room_ + header_.size(); }
  std::uint64_t written_end() const noexcept override { return size(); }
  std::string_view path() const noexcept override { return {}; }           // which has other bytes
  void will_need(std::uint64_t, std::uint64_t) const noexcept override {}  // the offsets are others
  std::shared_ptr<const Place> place() const override { return nullptr; }  // only this file is read
  void read_at(std::uint64_t at, std::span<std::byte> out) const override {
    const auto take = [&](std::uint64_t begin, std::uint64_t end, auto&& fill) {
      if (at >= end || out.empty()) return;
      const auto some = out.first(base::to_size(std::min<std::uint64_t>(out.size(), end - at)));
      fill(at - begin, some);
      at += some.size();
      out = out.subspan(some.size());
    };
    const std::uint64_t end = offset_ + header_.size();
    take(0, offset_, [&](std::uint64_t in, std::span<std::byte> some) { of().read_at(in, some); });
    take(offset_, end, [&](std::uint64_t in, std::span<std::byte> some) {
      std::memcpy(some.data(), header_.data() + in, some.size());
    });
    take(end, size(), [&](std::uint64_t in, std::span<std::byte> some) { of().read_at(offset_ + room_ + in, some); });
  }

 private:
  const std::uint64_t offset_, room_;
  const std::string& header_;
};

registry::Loaded load(const std::shared_ptr<const Source>& source, const Context& context, const OpenOptions& options,
                      Report& report, registry::Files files = registry::Files::all) {
  core::Findings findings(report, core::Findings::Mode::first_error);
  try {
    return registry::load(place_of(source), context, options, findings, files);
  } catch (const core::Stop&) {
    throw Error(*report.first_error());
  }
}

void require_same(bool same, std::string_view what) {
  if (!same)
    base::io_error("read-back", "the new header does not read back as requested (" + std::string(what) +
                                    "), so nothing was changed: this is a bug in weighbridge");
}

// Whether the file reads as the edited model, with the payload after the header moved by `moved`.
void require_reads_as(const Model& found, const Model& wanted, const core::NewHeader& header, std::uint64_t length) {
  require_same(found.size() == wanted.size() && found.attributes().size() == wanted.attributes().size(), "counts");
  const Attributes attributes = found.attributes();
  for (const auto& [key, value] : wanted.attributes()) {
    const Value* const there = attributes.find(key);
    require_same(there && *there == value, "metadata");
  }
  for (const Tensor& tensor : wanted) {
    const auto there = found.find(tensor.name());
    require_same(there && there->layout_name() == tensor.layout_name() && there->dtype() == tensor.dtype() &&
                     there->has_shape() == tensor.has_shape() && there->part_count() == tensor.part_count(),
                 "tensors");
    if (tensor.has_shape()) require_same(std::ranges::equal(there->shape(), tensor.shape()), "shapes");
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
      const Part a = tensor.part(i), b = there->part(i);
      auto place = a.extent();
      if (place && place->offset >= header.offset + header.room) place->offset += length - header.room;
      require_same(a.role() == b.role() && a.dtype() == b.dtype() && a.encoding() == b.encoding() &&
                       place == b.extent() && a.digest() == b.digest(),
                   "payload");
    }
  }
}

std::string file_of(const Model& model, const Tensor& tensor) {
  const auto extent = tensor.part_count() > 0 ? tensor.part(0).extent() : std::nullopt;
  const auto sources = model.sources();
  if (!extent || extent->source >= sources.size() || !sources[extent->source]) return {};
  return std::string(sources[extent->source]->file_name());
}

// 'the tensor "w" is in "model-00002-of-00003.safetensors"', for the first of the tensors to change that are not
// in the file `own`; empty if there is none. Throws what view() throws for a tensor that is not there.
std::string where_changed(const Model& model, const EditOptions& options, const std::string& own = {}) {
  if (!options.changes_tensors()) return {};
  const Model after = view(model, {.without = options.without, .rename = options.rename, .patterns = options.patterns});
  std::uint32_t at = 0;
  for (const Tensor& tensor : model) {
    const bool left_out = std::ranges::any_of(
        options.without, [&](const std::string& glob) { return matches_glob(glob, tensor.name()); });
    if (!left_out && after.name(at++) == tensor.name()) continue;
    const std::string file = file_of(model, tensor);
    if (!own.empty() && file == own) continue;
    return file.empty() ? std::string() : "the tensor " + core::quoted(tensor.name()) + " is in " + core::quoted(file);
  }
  return {};
}

void refuse_several(const Model& model, const EditOptions& options) {
  if (model.sources().size() == 1) return;
  const std::string where = where_changed(model, options);
  // No index lists the tensors of a split GGUF, so each of its files can be edited.
  if (!where.empty() && model.format() == "gguf" && options.without.empty())
    base::misuse("other-file", "an edit changes one file, and " + where + ": give that file");
  base::misuse("several-files", where.empty()
                                    ? "the model has several files, and an edit changes one: give one of its shards"
                                    : "the model has several files, and an edit changes one: " + where +
                                          ". Convert the model, which changes its shards and their index together");
}

// Whether the edit is one of a folder's settings.
bool is_settings(const std::string& path, const EditOptions& options) {
  std::error_code unknown;
  return !options.changes_tensors() && options.output.empty() && std::filesystem::is_directory(path, unknown) &&
         std::filesystem::exists(std::filesystem::path(path) / "config.json", unknown);
}

// Says which file of the folder to give.
void refuse_folder(const std::string& path, const EditOptions& options, const Context& context) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) return;
  std::optional<Model> model;
  try {
    model = open(path, context, {.checks = Checks::structure});
  } catch (const Error& error) {
    base::misuse_of(path, "folder",
                    "this is a folder, and an edit changes a file: name the file. The folder itself does not open: " +
                        error.finding().message);
  }
  std::string file;  // the one with all tensors
  for (const Tensor& tensor : *model) {
    const std::string here = file_of(*model, tensor);
    if (file.empty()) file = here;
    if (here != file) refuse_several(*model, options);
  }
  base::misuse_of(path, "folder",
                  "this is a folder, and an edit changes a file" +
                      (file.empty() ? ": name the file" : ": give " + core::quoted(file) + ", which has the tensors"));
}

std::string shown_type(const Value& value) { return " (" + std::string(edit_files::type_of(value)) + ")"; }

class Editor {
 public:
  Editor(std::shared_ptr<const Source> source, const EditOptions& options, const Context& context)
      : source_(std::move(source)), options_(options), context_(context) {}

  // Reads the file and decides on the way. `in_place`: whether the file itself is to change.
  Edited plan(bool in_place) {
    open();
    refuse_structural_keys();
    edited_ = view(loaded_.model, wanted());
    core::for_each_forgotten(edited_, [](const Tensor& tensor) {
      base::unsupported("edit/scheme", "the tensor " + quoted(tensor.name()) + " holds codes of " +
                                           core::coded(tensor)->name +
                                           ", and the edited file would no longer show that they are codes");
    });
    keep_claims();
    find_kept();
    list_changes();
    out_.format = loaded_.format->info.name;
    out_.size = out_.size_after = source_->size();
    // A new file has no bytes of tensors that are left out.
    const bool drops = kept_.size() != loaded_.model.size();
    if (out_.changes.empty() && in_place) return out_;
    if ((in_place || !drops) && loaded_.read_as.empty() && loaded_.format->new_header)
      header_ = loaded_.format->new_header(loaded_.model, edited_, kept_);
    if (header_ && !header_->refusal.empty()) {
      refusal_ = header_->refusal;
      header_.reset();
    }
    // A file without data may end before its data would begin.
    if (header_ && !base::fits(header_->offset, header_->room, out_.size)) header_.reset();
    if (header_) {
      out_.header = header_->room;
      out_.needed = header_->minimum;
      if (header_->minimum > header_->maximum)
        base::misuse("header", "the new header would have " + core::bytes_text(header_->minimum) + ", and " +
                                   out_.format + " allows " + std::to_string(header_->maximum));
    }
    if (header_ && in_place && fits()) {
      out_.way = Way::in_place;
    } else if (header_ && !drops && has_length_for_a_copy()) {
      out_.way = Way::copied;
    } else {
      out_.way = Way::converted;
      plan_conversion(in_place);
      header_.reset();
      return out_;
    }
    out_.size_after = out_.size - header_->room + bytes_.size();
    require_reads(std::make_shared<const WithHeader>(source_, *header_, bytes_));
    return out_;
  }

  Edited& out() noexcept { return out_; }
  const core::NewHeader& header() const { return *header_; }
  std::string& bytes() noexcept { return bytes_; }
  const Plan& conversion() const noexcept { return *conversion_; }

  // Whether what was written reads as it should, by the ordinary reader.
  void require_reads(const std::shared_ptr<const Source>& written) const {
    Report report;
    require_reads_as(
        load(written, context_, {.format = out_.format, .checks = Checks::structure}, report, files_).model, edited_,
        *header_, bytes_.size());
  }

 private:
  void open() {
    Report report;
    OpenOptions reading{.format = options_.format, .checks = Checks::structure, .read_as = options_.read_as};
    loaded_ = load(source_, context_, reading, report);
    const bool is_part = core::incomplete(loaded_.model) != nullptr;
    if ((loaded_.model.sources().size() > 1 || is_part) && loaded_.format->info.name == "gguf" &&
        where_changed(loaded_.model, options_, std::string(source_->file_name())).empty()) {
      files_ = registry::Files::one;
      report = {};
      loaded_ = load(source_, context_, reading, report, files_);
    }
    refuse_several(loaded_.model, options_);
    const auto remarked = [&](std::string_view rule) {
      return std::ranges::any_of(report.findings(), [&](const Finding& finding) { return finding.rule == rule; });
    };
    if (remarked("safetensors/shard-alone") && options_.changes_tensors())
      base::misuse("shard",
                   "the file is a shard, and the index beside it lists its tensors by name: convert the whole "
                   "model to rename or leave out tensors");
    if (files_ == registry::Files::one && !options_.without.empty())
      base::misuse("shard",
                   "the file is a part of a split model, and each part states how many tensors there are: convert the "
                   "whole model to leave out tensors");
    // Only these formats have a header that can be edited alone; the others are converted, and checked as conversions
    // are.
    if (!loaded_.format->new_header) {
      Report again;
      reading.checks = Checks::all;
      loaded_ = load(source_, context_, reading, again);
    }
  }

  void refuse_structural_keys() const {
    const auto check = [&](std::string_view key) {
      for (const std::string_view fixed : loaded_.format->structural_keys)
        if (key == fixed || (fixed.ends_with('.') && key.starts_with(fixed)))
          base::misuse("structural-key", "the attribute " + quoted(key) +
                                             " describes how the file is laid out, so an edit cannot change it");
    };
    for (const auto& each : options_.set) check(each.key);
    for (const auto& each : options_.values) check(each.first);
    for (const std::string_view key : core::keys_meant(loaded_.model.attributes(), options_.unset)) check(key);
  }

  // What the metadata state about the model must stay true. What the edit itself would make untrue is dropped, unless
  // the edit sets it; list_changes() names it.
  void keep_claims() {
    for (const auto& each : options_.set) core::require_token_id(edited_, each.key);
    for (const auto& each : options_.values) core::require_token_id(edited_, each.first);
    std::vector<std::string> unsaid = core::unsaid_by_edit(loaded_.model, edited_);
    if (!unsaid.empty()) edited_ = view(edited_, {.unset = std::move(unsaid)});
  }

  // Only text in a container of texts.
  Value held(Value value) const {
    return loaded_.format->info.holds.attributes == "text" && value.kind() != Value::Kind::text
               ? Value::text(value.to_text())
               : value;
  }

  ViewOptions wanted() const {
    ViewOptions out{
        .without = options_.without, .rename = options_.rename, .patterns = options_.patterns, .unset = options_.unset};
    const Attributes present = loaded_.model.attributes();
    for (const EditOptions::Setting& each : options_.set)
      out.values.emplace_back(each.key, held(edit_files::typed(each, present.find(each.key))));
    for (const auto& [key, value] : options_.values)
      out.values.emplace_back(key, held(edit_files::like(value, present.find(key))));
    return out;
  }

  // Which of the file's tensors the view has; views keep the order.
  void find_kept() {
    for (std::uint32_t i = 0; i < loaded_.model.size(); ++i)
      if (std::ranges::none_of(options_.without,
                               [&](const std::string& glob) { return matches_glob(glob, loaded_.model.name(i)); }))
        kept_.push_back(i);
  }

  void list_changes() {
    const Attributes before = loaded_.model.attributes(), after = edited_.attributes();
    const auto add = [&](LossKind kind, std::string subject, std::string from, std::string to) {
      out_.changes.push_back({kind, std::move(subject), std::move(from), std::move(to)});
    };
    for (const auto& [key, value] : before) {
      const Value* const now = after.find(key);
      if (now && *now == value) continue;
      const bool types = now && edit_files::type_of(*now) != edit_files::type_of(value);
      add(LossKind::attribute, core::indexed("attributes", key), value.to_text() + (types ? shown_type(value) : ""),
          now ? now->to_text() + (types ? shown_type(*now) : "") : "removed");
    }
    for (const auto& [key, value] : after)
      if (!before.find(key))
        add(LossKind::attribute, core::indexed("attributes", key), core::kAbsent,
            value.to_text() + (value.kind() == Value::Kind::text ? "" : shown_type(value)));
    std::uint32_t at = 0;
    for (const std::string& name : loaded_.read_as)
      add(LossKind::dtype, core::indexed("tensors", name), "as stored",
          std::string(weighbridge::name(loaded_.model[name].dtype())));
    for (const Tensor& tensor : loaded_.model) {
      const bool kept = at < kept_.size() && kept_[at] == tensor.index();
      if (!kept)
        add(LossKind::name, core::subject(tensor), std::string(tensor.name()), "left out");
      else if (edited_.name(at) != tensor.name())
        add(LossKind::name, core::subject(tensor), std::string(tensor.name()), std::string(edited_.name(at)));
      at += kept ? 1 : 0;
    }
  }

  // Whether the header ends the file, and can have any length.
  bool is_last() const { return header_->offset + header_->room == out_.size; }
  bool make(std::uint64_t length) {
    bytes_ = header_->make(length);
    return !bytes_.empty();
  }

  // Whether the new header fits in the place of the old one.
  bool fits() {
    if (is_last()) return make(header_->minimum);
    return header_->minimum <= header_->room && make(header_->room);
  }

  // A length with which the payload keeps its place within blocks of the disk, so that these can be shared.
  bool has_length_for_a_copy() {
    const core::NewHeader& h = *header_;
    const auto wanted = base::checked_add(h.minimum, options_.reserve);
    if (!wanted || *wanted > h.maximum)
      base::misuse("reserve", "a header with " + core::bytes_text(options_.reserve) +
                                  " to spare would be larger than " + std::to_string(h.maximum) + ", which is what " +
                                  out_.format + " allows");
    if (is_last()) return make(h.minimum);
    const std::uint64_t block = std::max(h.step, edit_files::kBlock);
    std::uint64_t length = base::align_up(*wanted, h.step).value_or(UINT64_MAX);
    if (h.room % h.step == 0) {
      const std::uint64_t within = h.room % block;
      std::uint64_t same = *wanted / block * block + within;
      if (same < *wanted) same += block;
      if (same <= h.maximum) length = same;
    }
    return length <= h.maximum && make(length);
  }

  std::string why_not_in_place() const {
    if (!loaded_.read_as.empty()) return "other dtypes need a new file: give its name";
    if (kept_.size() == loaded_.model.size() || !loaded_.format->new_header)
      return "this " + out_.format + " file cannot be edited in place: give the name of a new file";
    return "leaving out these tensors needs a new file, because " + std::string(header_ ? "the new header does not fit"
                                                                                : refusal_.empty()
                                                                                    ? "a new header alone cannot do it"
                                                                                    : refusal_);
  }

  void plan_conversion(bool in_place) {
    if (in_place) base::misuse("new-file", why_not_in_place(), base::option_hint("output"));
    Options options;
    options.replace = options_.replace;
    if (out_.format == "npz")
      options.allow = {LossKind::dtype};  // items that NumPy does not know are so in the file, too
    const auto takes = loaded_.format->info.options;
    if (std::ranges::find(takes, "reserve") != takes.end()) options.header.reserve = options_.reserve;
    conversion_ = weighbridge::plan(edited_, out_.format, options, context_);
    if (!conversion_->possible()) {
      const Item first =
          conversion_->blockers().empty() ? conversion_->refused().front() : conversion_->blockers().front();
      base::misuse("new-file", "the new file would lose " + first.subject + " (" + std::string(name(first.kind)) +
                                   "): convert the file, which lists all of it and asks for consent");
    }
    for (const Item& change : conversion_->changes())
      if (change.kind == LossKind::attribute &&
          std::ranges::find(out_.changes, change.subject, &Item::subject) == out_.changes.end())
        out_.changes.push_back(change);
    // What the old file has beside its weights, and the new one cannot have.
    for (const Item& loss : conversion_->unconsented()) out_.changes.push_back(loss);
    out_.size_after = conversion_->output_size();
  }

  const std::shared_ptr<const Source> source_;
  registry::Files files_ = registry::Files::all;  // one: the first part of a split model, and the edit concerns only it
  const EditOptions& options_;
  const Context& context_;
  registry::Loaded loaded_;
  Model edited_;
  std::vector<std::uint32_t> kept_;  // the tensors that are not left out
  std::optional<core::NewHeader> header_;
  std::string_view refusal_;  // why the format has no header for it
  std::string bytes_;
  std::optional<Plan> conversion_;
  Edited out_;
};

void refuse_left_journal(const std::string& path) {
  const std::string journal = io::left_edit_journal(io::resolve_target(path).path());
  if (!journal.empty())
    base::io_error_of(
        path, "journal",
        "a journal of an edit is beside this file ('" + journal +
            "'), which an edit that was killed leaves: recover the file first, which finishes the edit or "
            "undoes it");
}

// Writes the new header and the payload of the old file to `path`.
void copy_to(const std::string& path, bool replace, Editor& editor, int from,
             const std::shared_ptr<const Source>& source, const Context& context) {
  const core::NewHeader& h = editor.header();
  const std::string& header = editor.bytes();
  const std::uint64_t size = editor.out().size_after, behind = h.offset + h.room;
  const edit_files::Range ranges[] = {{0, 0, h.offset}, {behind, h.offset + header.size(), source->size() - behind}};
  core::Progress progress(context, 2 * source->size());
  const std::function<void(std::uint64_t)> go_on = [&](std::uint64_t bytes) { progress.add(bytes); };
  io::AtomicFile out(path, {.replace = replace});
  out.write_at(h.offset, std::as_bytes(std::span(header)));
  bool all_shared = true;
  for (const edit_files::Range& range : ranges) {
    const std::uint64_t shared = edit_files::copy_range(from, out.descriptor(), range, path, go_on);
    editor.out().shared += shared;
    all_shared = all_shared && range.length - shared < 2 * edit_files::kBlock;
  }
  out.sync(size);
  // First the bytes: of a disk that loses them, the reader would say that the file is invalid.
  const auto written = out.reopen();
  std::string again(header.size(), '\0');
  if (written->size() == size) written->read_at(h.offset, std::as_writable_bytes(std::span(again)));
  if (again != header) out.refuse_read_back();
  if (!all_shared)
    for (const auto& [begin, to, length] : ranges) out.read_back(*written, to, *source, begin, length, go_on);
  editor.require_reads(written);
  io::Publication publication(out);
  source->check_unchanged();
  progress.finish_pass();
  publication.publish();
}

// What is known about a file that was opened to be changed.
Edited opened(const PatchedFile& file) {
  Edited out;
  out.names = file.names();
  out.alone = file.alone();
  out.left = file.left();
  out.size = out.size_after = file.size();
  return out;
}

edit_files::Trust trust_of(bool trusted) { return trusted ? edit_files::Trust::any : edit_files::Trust::own; }

void require_other_file(const std::string& path, const std::string& output) {
  if (io::same_file(path, output))
    base::misuse_of(output, "output-is-input", "the output is the input: edit it in place, or give another name");
}

Edited edit_file(PatchedFile& file, const std::string& path, const EditOptions& options, const Context& context,
                 const std::function<void(const Edited&)>& before) {
  const auto source = file.source();
  Editor editor(source, options, context);
  editor.plan(true);
  Edited& out = editor.out();
  out.names = file.names();
  out.alone = file.alone();
  out.left = file.left();
  if (out.way == Way::nothing) return out;
  if (before) before(out);
  if (out.way == Way::in_place) {
    core::check_cancelled(context);
    const core::NewHeader& h = editor.header();
    file.apply({h.offset, h.room, editor.bytes()}, [&] { editor.require_reads(file.source()); });
    out.undo = file.undo_path();
  } else {
    file.share();
    copy_to(path, true, editor, file.descriptor(), source, context);
    io::os::remove(io::os::kHere, file.undo_path().c_str());  // of the file that is gone
  }
  return out;
}

}  // namespace

std::string_view name(Edited::Way way) noexcept {
  constexpr std::string_view kNames[] = {"nothing", "in-place", "copied", "converted", "settings"};
  return kNames[static_cast<std::size_t>(way)];
}
std::string_view name(Edited::Left left) noexcept {
  constexpr std::string_view kNames[] = {"nothing", "finished", "undone"};
  return kNames[static_cast<std::size_t>(left)];
}

Edited plan_edit(const std::string& path, const EditOptions& options, const Context& context) {
  if (is_settings(path, options)) return edit_files::plan_folder(path, options, context).edited;
  refuse_folder(path, options, context);
  const io::Fd fd = io::open_to_read(path);  // waits for an edit that is under way
  refuse_left_journal(path);
  Editor editor(io::source_over(fd, path), options, context);
  Edited out = editor.plan(options.output.empty());
  if (const auto there = io::os::status(fd.get())) out.names = there->links;
  if (!options.output.empty()) {
    require_other_file(path, options.output);
    io::AtomicFile::check(options.output, options.replace);
  }
  return out;
}

Edited edit(const std::string& path, const EditOptions& options, const Context& context,
            const std::function<void(const Edited&)>& before) {
  if (is_settings(path, options)) {
    const edit_files::FolderEdit made = edit_files::plan_folder(path, options, context);
    if (before) before(made.edited);
    edit_files::write_folder(path, made);
    return made.edited;
  }
  refuse_folder(path, options, context);
  if (options.output.empty()) {
    PatchedFile file(path, edit_files::max_journal_size(context.limits));
    return edit_file(file, path, options, context, before);
  }
  const io::Fd fd = io::open_to_read(path);
  refuse_left_journal(path);
  require_other_file(path, options.output);
  const auto source = io::source_over(fd, path);
  Editor editor(source, options, context);
  editor.plan(false);
  if (before) before(editor.out());
  if (editor.out().way == Way::copied)
    copy_to(options.output, options.replace, editor, fd.get(), source, context);
  else
    editor.conversion().execute(options.output, context);
  return editor.out();
}

Edited undo_edit(const std::string& path, const Context& context, bool trust_journal) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    base::misuse_of(
        path, "no-undo",
        "an edit of a folder cannot be undone: a new file replaces its config.json, and the old one is not kept");
  PatchedFile file(path, edit_files::max_journal_size(context.limits), trust_of(trust_journal));
  const edit_files::Patch back = file.undo();
  Edited out = opened(file);
  out.way = Way::in_place;
  out.header = back.length;
  out.needed = back.bytes.size();
  {
    // The file as it would become must open before it is written.
    Report report;
    const core::NewHeader where{.offset = back.offset, .room = back.length};
    const auto after = std::make_shared<const WithHeader>(file.source(), where, back.bytes);
    out.format = load(after, context, {.checks = Checks::structure}, report, registry::Files::one).format->info.name;
  }
  file.apply(back);
  out.size_after = file.size();
  out.undo = file.undo_path();
  return out;
}

Edited settle_edit(const std::string& path, const Context& context, bool trust_journal,
                   const std::function<void(const Edited&)>& before) {
  std::vector<RecoveryStep> steps;
  const auto show = [&](const std::vector<RecoveryStep>& planned) {
    Edited plan;
    plan.steps = steps = planned;
    if (before) before(plan);
  };
  const edit_files::Trust trust = trust_of(trust_journal);
  std::error_code unknown;
  Edited out;
  if (std::filesystem::is_directory(path, unknown))
    out.left = edit_files::settle_folder(path, trust, show);
  else
    out = opened(PatchedFile(path, edit_files::max_journal_size(context.limits), trust, show));
  out.steps = std::move(steps);
  return out;
}

}  // namespace weighbridge
