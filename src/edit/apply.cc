// SPDX-License-Identifier: Apache-2.0
// Applies patches to the files of a model themselves: which of them change, what is refused, and checking the result
// before they get their names back. applying.h writes.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/progress.h"
#include "core/payload/elements.h"
#include "core/payload/extents.h"
#include "core/payload/part_digest.h"
#include "core/reading/findings.h"
#include "core/reading/format.h"
#include "core/writing/claims.h"
#include "core/writing/layout.h"
#include "delta/patch.h"
#include "edit/applying.h"
#include "edit/patched_file.h"
#include "io/journal.h"
#include "io/place.h"
#include "registry/load.h"
#include "weighbridge/edit.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using edit_files::Applying, edit_files::HeldFile;
using Chain = std::vector<std::shared_ptr<const delta::Patch>>;

const OpenOptions kStructure{.checks = Checks::structure};

[[noreturn]] void refuse(const std::string& why) {
  base::misuse("in-place", why + ", so it is not changed in place: write a new file");
}

// Refuses patches that do more than change elements where they are. Returns the names of the tensors that change.
std::vector<std::string> changed_names(const Chain& chain) {
  std::vector<std::string> out;
  for (const auto& patch : chain) {
    if (const std::string other = patch->other_change(); !other.empty()) refuse("the patch " + other);
    for (const delta::Change& change : patch->changes) out.push_back(patch->rows[change.row].name);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// The stored bytes of a tensor whose elements can change where they are.
Extent require_raw(const Tensor& tensor) {
  const Part part = tensor.part_count() == 1 ? tensor.main() : Part();
  const auto extent = part.extent();
  if (!extent || part.encoding() != Encoding::raw || part.order() != Order::little || !part.strides().empty() ||
      core::cut_of(part) || extent->length != part.size())
    refuse("the tensor " + core::quoted(tensor.name()) + " is not stored as its elements are");
  return *extent;
}

class InPlace {
 public:
  InPlace(const std::string& path, Chain chain, std::span<const Model> patches, const Context& context)
      : path_(path), chain_(std::move(chain)), patches_(patches), context_(context) {
    std::error_code unknown;
    is_folder_ = std::filesystem::is_directory(path, unknown);
    folder_ = is_folder_ ? path : io::split_path(path).folder;
  }

  Applied run(bool dry_run) {
    const std::vector<std::string> names = changed_names(chain_);
    settle(dry_run);
    hold(names);
    const Model base = open_held();
    const Model result = patched(base, patches_, context_);
    list(base, result, names);
    out_.base = chain_.front()->base;
    out_.result = chain_.back()->result;
    if (!dry_run && !targets_.empty()) write();
    return std::move(out_);
  }

 private:
  struct Target {
    std::uint32_t file = 0;
    std::uint64_t offset = 0, length = 0;
    std::string name{};
    core::ElementsPtr elements{};            // the new ones
    std::optional<core::Digester> digest{};  // of the new bytes, where the file states one
  };

  void settle(bool dry_run) {
    if (!is_folder_) {
      const std::string journal = io::left_edit_journal(io::resolve_target(path_).path());
      if (dry_run && !journal.empty()) {
        Finding found;
        found.rule = "io/journal";
        found.kind = Kind::io;
        found.message = "a run that was killed left the journal '" + journal + "': recover the file first";
        found.file.name = path_;
        found.hint = base::option_hint("recover", path_);
        throw Error(std::move(found));
      }
      if (!dry_run && !journal.empty())
        out_.left = edit_files::PatchedFile(path_, edit_files::max_journal_size(context_.limits)).left();
      else if (!dry_run)
        try {
          out_.left = edit_files::settle_applying(path_);
        } catch (const Error& error) {
          name_torn(error);
          throw;
        }
    }
    // A shard that is missing may have the name of a mixed file.
    try {
      model_.emplace(open(path_, context_, kStructure));
    } catch (const Error& error) {
      if (dry_run) throw;
      out_.left = edit_files::settle_folder(folder_);
      if (out_.left == Edited::Left::nothing) {
        name_torn(error);
        throw;
      }
      model_.emplace(open(path_, context_, kStructure));
    }
  }

  // Throws the error with more to it if files have the names of mixed ones without a journal: which tensors are neither
  // old nor new.
  void name_torn(const Error& error) const {
    io::OtherFiles files;
    const std::string own = io::split_path(path_).name;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(io::kApplying)) continue;
      std::string old = name.substr(0, name.size() - io::kApplying.size());
      if (is_folder_ || old == own) files.emplace(std::move(old), open_file(entry.path().string()));
    }
    if (files.empty()) return;
    const auto place = is_folder_ ? io::with_files(place_at(path_), files) : place_of(files.begin()->second);
    const Model found = open(place, context_, kStructure);
    const ContentDigests digests = content_digests(found, context_);
    std::string torn;
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < found.size(); ++i) {
      const auto *const old = chain_.front()->find(found.name(i)), *const now = chain_.back()->find(found.name(i));
      const auto& node = digests.tensors[i].bytes;
      if ((old && old->base == node) || (now && now->result == node)) continue;
      if (++count <= 8) torn += (torn.empty() ? "" : ", ") + core::quoted(found.name(i));
    }
    base::io_error_of(path_, "applying",
                      error.finding().message + ". " +
                          (count == 0 ? "Every tensor is that of the base or of the result"
                                      : std::to_string(count) + " of " + std::to_string(found.size()) +
                                            " tensors are neither those of the base nor of the result: " + torn) +
                          ". Nothing was changed");
  }

  // Opens the files that change, for this process alone.
  void hold(const std::vector<std::string>& names) {
    const Model& model = *model_;
    std::map<std::string, std::string> paths;  // by name in the folder
    std::string folder;
    for (const std::string& name : names) {
      const auto tensor = model.find(name);
      if (!tensor) refuse("the model has no tensor " + core::quoted(name));
      const Source& source = *model.sources()[require_raw(*tensor).source];
      if (source.path().empty()) refuse("the tensor " + core::quoted(name) + " is not in a file of its own");
      const std::string path(source.path());
      if (!folder.empty() && io::split_path(path).folder != folder) refuse("the files are in several folders");
      folder = io::split_path(path).folder;
      paths.emplace(source.file_name(), path);
    }
    for (const auto& [key, value] : model.attributes()) {
      const core::Claim* const claim = core::find_claim(key);
      if (claim && (claim->about == core::About::data_hash || claim->about == core::About::legacy_hash))
        refuse("its metadata " + core::quoted(key) + " states a hash of its data");
    }
    model_.reset();  // a lease needs that nobody has the file open, this process included
    for (const auto& [name, path] : paths) {
      auto held = std::make_unique<edit_files::PatchedFile>(path, edit_files::max_journal_size(context_.limits));
      if (held->names() > 1)
        base::misuse_of(path, "hard-link",
                        "the file has " + std::to_string(held->names()) +
                            " names (hard links), all of which would change: write a new file");
      if (!held_.empty() && held->target().folder != held_.front()->target().folder)
        refuse("the files are in several folders");
      numbers_.emplace(name, static_cast<std::uint32_t>(held_.size()));
      out_.files.push_back(path);
      held_.push_back(std::move(held));
    }
  }

  const HeldFile& file(std::uint32_t i) const { return applying_ ? applying_->file(i) : *held_[i]; }

  // The model, whatever its files are called now.
  Model open_held() const {
    io::OtherFiles files;
    for (const auto& [name, i] : numbers_) files.emplace(name, file(i).source());
    const auto own = is_folder_ ? files.end() : files.find(io::split_path(path_).name);
    const auto place = own == files.end() ? place_at(path_) : place_of(own->second);
    return open(io::with_files(place, std::move(files)), context_, kStructure);
  }

  Model open_alone(std::uint32_t i, const core::Format*& format) const {
    Report report;
    core::Findings findings(report, core::Findings::Mode::first_error);
    try {
      const auto loaded =
          registry::load(place_of(file(i).source()), context_, kStructure, findings, registry::Files::one);
      format = loaded.format;
      return loaded.model;
    } catch (const core::Stop&) {
      throw Error(*report.first_error());
    }
  }

  // What is to be written, in the order of the bytes.
  void list(const Model& base, const Model& result, const std::vector<std::string>& names) {
    const core::Extents extents = core::Extents::of(base);
    std::vector<bool> shared(extents.sorted().size());  // by part
    extents.walk([&](const core::Range& range, core::Relation relation, const core::Range* furthest) {
      if (relation != core::Relation::separate) shared[range.item] = shared[furthest->item] = true;
    });
    std::uint32_t part = 0;
    for (const Tensor& tensor : base) {
      if (shared[part] && std::ranges::binary_search(names, tensor.name()))
        refuse("the tensor " + core::quoted(tensor.name()) + " shares bytes with another one");
      part += tensor.part_count();
    }
    for (const std::string& name : names) {
      const Tensor tensor = base[name];
      const Extent extent = require_raw(tensor);
      const auto at = numbers_.find(base.sources()[extent.source]->file_name());
      if (at == numbers_.end()) refuse("the tensor " + core::quoted(name) + " is not in a file of its own");
      Target target{at->second, extent.offset, extent.length, name, core::elements_of(result[name].main())};
      const Part stored = tensor.main();
      if (const std::string_view digest = stored.digest(); !digest.empty()) {
        const core::PartDigest kind = core::parse_digest(digest).kind;
        if (kind == core::PartDigest::none)
          refuse("the digest of the tensor " + core::quoted(name) + " is not of a known kind");
        target.digest.emplace(kind);
      }
      ++out_.tensors;
      out_.bytes += extent.length;
      targets_.push_back(std::move(target));
    }
    for (std::uint32_t i = 0; i < held_.size(); ++i) {
      const core::Format* format = nullptr;
      const Model alone = open_alone(i, format);
      if (!format->new_header) refuse("this " + std::string(format->info.name) + " file holds more than elements");
      if (states_digests(i) && header_with({}, alone, *format).empty())
        refuse("its header cannot be written with other digests");
    }
    std::ranges::sort(targets_, {}, [](const Target& t) { return std::pair(t.file, t.offset); });
  }

  void write() {
    applying_.emplace(std::move(held_));
    core::Progress progress(context_, out_.bytes);
    const Context inner = progress.inner();
    // A piece takes some 3 MiB until it is written, its old bytes and the journal's included.
    const std::size_t group =
        std::min<std::size_t>(Applying::kGroup, 2 + 2 * core::executor_of(context_).concurrency());
    std::vector<Applying::Piece> pieces;
    std::vector<std::pair<Target*, std::uint64_t>> of;  // of each piece: its target, its offset in that
    const auto flush = [&] {
      core::executor_of(context_).for_each(pieces.size(), [&](std::uint64_t number) {
        const std::size_t i = base::to_size(number);
        auto& piece = pieces[i];
        const auto& [target, at] = of[i];
        const DType dtype = target->elements->dtype();
        target->elements->read(core::elements_in(at, dtype), core::elements_in(piece.bytes.size(), dtype), piece.bytes,
                               inner);
        applying_->prepare(piece);
        progress.add(piece.bytes.size());
      });
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (of[i].first->digest) of[i].first->digest->update(pieces[i].bytes);
      applying_->write(pieces);
      pieces.clear();
      of.clear();
    };
    for (Target& target : targets_)
      for (std::uint64_t at = 0; at < target.length; at += Applying::kPiece) {
        pieces.push_back({.file = target.file, .offset = target.offset + at});
        pieces.back().bytes.resize(base::to_size(std::min<std::uint64_t>(Applying::kPiece, target.length - at)));
        of.emplace_back(&target, at);
        if (pieces.size() == group) flush();
      }
    flush();
    for (std::uint32_t i = 0; i < out_.files.size(); ++i) renew_digests(i);
    progress.finish_pass();
    const Model written = open_held();
    if (const Digest found = content_digest(written, context_); found != out_.result)
      base::io_error_of(path_, "read-back",
                        "the content digest of what was written is " + found.text() + " and not " + out_.result.text() +
                            ", so the old bytes were put back");
    out_.logged = applying_->logged();
    applying_->finish();
  }

  using Digests = std::map<std::string_view, std::string>;  // by tensor
  bool states_digests(std::uint32_t number) const {
    return std::ranges::any_of(targets_, [&](const Target& t) { return t.file == number && t.digest; });
  }

  // The header of the file with these digests, in the place of the old one; empty if it would have another length.
  static std::string header_with(const Digests& digests, const Model& original, const core::Format& format,
                                 std::uint64_t* offset = nullptr) {
    core::Draft draft;
    draft.begin_view(original);
    std::vector<std::uint32_t> kept;
    for (const Tensor& tensor : original) {
      const std::uint32_t at = draft.adopt(tensor.name(), tensor);
      if (const auto digest = digests.find(tensor.name()); digest != digests.end())
        draft.first_part(at).digest(digest->second);
      kept.push_back(tensor.index());
    }
    draft.index_names();
    draft.set_attributes({original.attributes().begin(), original.attributes().end()});
    const auto header = format.new_header(original, draft.finish(), kept);
    if (header && offset) *offset = header->offset;
    return header && header->make ? header->make(header->room) : std::string();
  }

  // Writes a header with the digests of what was written, if the file states digests.
  void renew_digests(std::uint32_t number) {
    if (!states_digests(number)) return;
    Digests digests;
    for (Target& target : targets_)
      if (target.file == number && target.digest) digests.emplace(target.name, target.digest->finish());
    const core::Format* format = nullptr;
    std::uint64_t offset = 0;
    const Model original = open_alone(number, format);
    const std::string bytes = header_with(digests, original, *format, &offset);
    std::vector<Applying::Piece> pieces;
    for (std::size_t at = 0; at < bytes.size(); at += Applying::kPiece) {
      const auto some = std::as_bytes(std::span(bytes)).subspan(at, std::min(bytes.size() - at, Applying::kPiece));
      pieces.push_back({.file = number, .offset = offset + at, .bytes = {some.begin(), some.end()}});
      applying_->prepare(pieces.back());
      if (pieces.size() == Applying::kGroup || at + some.size() == bytes.size()) {
        applying_->write(pieces);
        pieces.clear();
      }
    }
    const Model again = open_alone(number, format);
    for (const auto& [name, digest] : digests)
      if (const Part part = again[name].main(); part.digest() != digest)
        base::io_error_of(path_, "read-back", "the new digest of " + core::quoted(name) + " does not read back");
  }

  const std::string path_;
  const Chain chain_;
  const std::span<const Model> patches_;
  const Context& context_;
  bool is_folder_ = false;
  std::string folder_;
  std::optional<Model> model_;  // until the files are held
  std::vector<std::unique_ptr<HeldFile>> held_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;  // of files, by name
  std::vector<Target> targets_;
  std::optional<Applying> applying_;  // has the files, once it writes
  Applied out_;
};

}  // namespace

Applied apply_in_place(const std::string& path, std::span<const Model> patches, const Context& context, bool dry_run) {
  if (patches.empty()) base::misuse("patches", "there is no patch to apply");
  return InPlace(path, delta::require_chain(patches, context), patches, context).run(dry_run);
}

}  // namespace weighbridge
