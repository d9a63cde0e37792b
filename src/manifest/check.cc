// SPDX-License-Identifier: Apache-2.0
// Compares files with a manifest: first its signature, then which files there are, then their bytes, then the tensors
// of those that changed.
#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/fail.h"
#include "core/reading/json_file.h"
#include "core/writing/options.h"
#include "manifest/bundle.h"
#include "manifest/files.h"
#include "manifest/text.h"
#include "weighbridge/open.h"
#include "weighbridge/text.h"

namespace weighbridge {
namespace {

using signing::Bundle, signing::Listing, signing::Octets, signing::Piece, signing::PublicKey, signing::Root;
using signing::Stamp;
using What = FileDifference::What;

std::string grouped_list(const std::vector<std::string>& all, std::size_t maximum) {
  std::string out;
  for (std::size_t i = 0; i < all.size() && i < maximum; ++i) out += (i == 0 ? "" : ", ") + all[i];
  return all.size() > maximum ? out + " and " + std::to_string(all.size() - maximum) + " more" : out;
}

class Checking {
 public:
  Checking(const std::string& path, std::shared_ptr<const Source> bundle, const ManifestCheck& check,
           const Context& context)
      : path_(path), bundle_(std::move(bundle)), check_(check), context_(context) {}

  ManifestVerdict run() {
    try {
      const std::string text = core::whole_text(*bundle_, context_.limits, "the manifest");
      const Bundle bundle = signing::parse_bundle(text, context_.limits, out_.report);
      check_signature(bundle);
      if (out_.signature != SignatureState::invalid) {
        signing::Statement statement = signing::parse_statement(bundle.payload, context_.limits, out_.report);
        if (statement.old_form)
          add("manifest/old-form", Severity::warning,
              "the manifest has the form of version 0.2, which is no longer written");
        out_.manifest = std::move(statement.manifest);
        about_bundle();
        compare();
      }
    } catch (const Error& error) {
      if (!base::refuses_input(error.kind())) throw;
      out_.report.add(error.finding());
    }
    if (!root_) about_bundle();
    return std::move(out_);
  }

 private:
  void add(std::string_view rule, Severity severity, std::string message) {
    out_.report.add(signing::finding_of(rule, severity, std::move(message)));
  }
  void add_of(const std::string& file, std::string_view rule, std::string message, std::string expected = {},
              std::string found = {}, Hint hint = {}) {
    Finding finding = signing::finding_of(rule, Severity::error, std::move(message));
    finding.hint = std::move(hint);
    finding.file.name = root_->path(file);
    finding.expected = std::move(expected);
    finding.found = std::move(found);
    out_.report.add(std::move(finding));
  }
  // What was found so far without a file is about the bundle.
  void about_bundle() {
    out_.report.amend([&](Finding& finding) {
      if (finding.file.empty()) finding.file.name = bundle_->name();
    });
  }

  void leave_unchecked(std::string why) {
    out_.signature = SignatureState::unchecked;
    out_.unchecked = std::move(why);
  }
  void refuse(std::string_view rule, std::string message) {
    out_.signature = SignatureState::invalid;
    add(rule, Severity::error, std::move(message));
  }

  void check_signature(const Bundle& bundle) {
    out_.method = bundle.method;
    const bool trusts = !check_.trust.key.empty() || !check_.trust.roots.empty();
    if (bundle.method == SigningMethod::none) {
      if (trusts)
        refuse("manifest/unsigned", "the manifest has no signature, so nothing shows who made it");
      else
        add("manifest/unsigned", Severity::warning,
            "the manifest has no signature: it shows that files are unchanged since it was made, not who made it");
      return;
    }
    if (!can_sign()) return leave_unchecked("this build has no OpenSSL");
    switch (bundle.method) {
      case SigningMethod::key: return check_key(bundle);
      case SigningMethod::certificate:
      case SigningMethod::sigstore: return check_certificate(bundle);
      case SigningMethod::none: break;
    }
  }

  // Whether the key made one of the signatures. DSSE accepts any; only the order of work is ours.
  bool accepts(const PublicKey& key, const Bundle& bundle) {
    constexpr std::size_t kMaxSignatures = 16;
    if (bundle.signatures.size() > kMaxSignatures) {
      refuse("manifest/signature", "the manifest has " + std::to_string(bundle.signatures.size()) +
                                       " signatures; at most " + std::to_string(kMaxSignatures) + " are tried");
      return false;
    }
    const auto any = [&](const std::string& message, bool sha256) {
      return std::any_of(bundle.signatures.begin(), bundle.signatures.end(), [&](const Octets& signature) {
        return key.accepts(signature, std::as_bytes(std::span(message)), sha256);
      });
    };
    if (any(signing::signed_bytes(bundle.payload), false)) {
      out_.signature = SignatureState::valid;
    } else if (const std::string old = signing::signed_bytes_of_old_form(bundle.payload);
               any(old, false) || (bundle.method == SigningMethod::certificate && any(old, true))) {
      out_.signature = SignatureState::valid;
      add("manifest/old-form", Severity::warning,
          "the signature has the form of versions before 1.0: sign the model again");
    } else {
      return false;
    }
    return true;
  }

  void check_key(const Bundle& bundle) {
    if (check_.trust.key.empty()) {
      out_.signer = bundle.hint;
      return leave_unchecked(check_.trust.roots.empty() ? "no public key was given"
                                                        : "it was made with a bare key, not with a certificate");
    }
    const PublicKey key = PublicKey::from_pem(check_.trust.key);
    out_.signer = key.fingerprint();
    const bool named = bundle.hint.empty() || bundle.hint == key.fingerprint() || bundle.hint == key.der_fingerprint();
    if (!named)
      refuse("manifest/key", "the manifest was signed with another key: it names " + bundle.hint +
                                 ", and the given key is " + key.fingerprint());
    else if (!accepts(key, bundle) && out_.signature != SignatureState::invalid)
      refuse("manifest/signature",
             "the signature was not made by the given key (" + key.fingerprint() + ") for this list of files");
    else if (bundle.hint.empty() && out_.signature == SignatureState::valid)
      add("manifest/old-form", Severity::warning,
          "the manifest does not name its key, as versions before 1.1 wrote it");
  }

  // With the key of the signer's certificate, who may be anybody.
  void check_certificate(const Bundle& bundle) {
    const signing::Subject subject = signing::subject_of(bundle.chain.front());
    out_.signer = subject.name;
    if (!accepts(PublicKey::from_certificate(bundle.chain.front()), bundle)) {
      if (out_.signature != SignatureState::invalid)
        refuse("manifest/signature", "the signature was not made with the key of the certificate (" + subject.name +
                                         ") for this list of files");
    } else if (bundle.method == SigningMethod::sigstore) {
      leave_unchecked("it is Sigstore's, and only its servers' roots and log can show that " +
                      (subject.name.empty() ? "its certificate" : subject.name + "'s certificate") + " is genuine");
    } else {
      check_chain(bundle, subject);
    }
  }

  // Whether the certificate is that of somebody whom the reader trusts.
  void check_chain(const Bundle& bundle, const signing::Subject& subject) {
    if (check_.trust.roots.empty())
      return leave_unchecked(check_.trust.key.empty() ? "no root certificates were given"
                                                      : "it was made with a certificate, not with a bare key");
    try {
      signing::require_chain(bundle.chain, check_.trust.roots);
    } catch (const Error& error) {
      if (error.kind() != Kind::malformed) throw;
      return refuse(error.finding().rule, error.finding().message);
    }
    if (subject.expired || subject.not_yet)
      add("manifest/expired", Severity::warning,
          subject.expired ? "the signer's certificate has expired (" + subject.not_after +
                                "), and nothing in the manifest shows that it was signed before"
                          : "the signer's certificate is not valid yet (" + subject.not_before + ")");
  }

  bool selected(const ManifestEntry& entry) const {
    if (check_.only_file.empty()) return true;
    const std::string name = entry_name(entry);
    return std::any_of(check_.only_file.begin(), check_.only_file.end(), [&](const std::string& glob) {
      return matches_glob(glob, name) || matches_glob(glob, entry.file);
    });
  }

  // What is known of one file of the manifest.
  struct File {
    std::vector<const ManifestEntry*> entries{};  // those to check
    bool whole = true;                            // whether these are all
    std::optional<Stamp> stamp{};
    std::vector<const ManifestEntry*> differing{};
    std::map<const ManifestEntry*, Digest> found{};
    bool resized = false;
  };

  void compare() {
    root_.emplace(path_);
    std::map<std::string, File, std::less<>> files;
    for (const ManifestEntry& entry : out_.manifest.entries) {
      const bool single = entry.file == "." && !root_->is_folder();
      File& file = files[single ? root_->name() : entry.file];
      selected(entry) ? file.entries.push_back(&entry) : void(file.whole = false);
    }
    std::erase_if(files, [](const auto& each) { return each.second.entries.empty(); });
    if (files.empty()) base::misuse("only", "nothing in the manifest has such a name", base::option_hint("only"));
    std::set<std::string, std::less<>> ignored = signing::always_ignored();
    ignored.insert(out_.manifest.ignored.begin(), out_.manifest.ignored.end());
    if (const std::string own = root_->below(std::string(bundle_->name())); !own.empty()) ignored.insert(own);
    std::set<std::string, std::less<>> present;
    const Listing listing = signing::list(*root_, ignored, context_);
    for (const Listing::Entry& entry : listing.entries) judge(entry, files, present);
    if (listing.downloader &&
        std::ranges::find(out_.manifest.ignored, signing::kDownloader) == out_.manifest.ignored.end())
      out_.manifest.ignored.emplace_back(signing::kDownloader);
    hash_all(files, present);
    for (const auto& [name, file] : files)
      if (!present.contains(name))
        differ(What::missing, name);
      else if (!file.differing.empty() || file.resized)
        changed(name, file);
    std::stable_sort(out_.differences.begin(), out_.differences.end(),
                     [](const FileDifference& a, const FileDifference& b) { return a.file < b.file; });
    report_differences();
  }

  void judge(const Listing::Entry& entry, const std::map<std::string, File, std::less<>>& files,
             std::set<std::string, std::less<>>& present) {
    const bool listed = files.contains(entry.name);
    const bool lenient = check_.ignore_unsigned || !check_.only_file.empty() || is_ignored(entry.name);
    if (entry.kind == Listing::Kind::other || (entry.kind == Listing::Kind::link && !out_.manifest.allow_symlinks)) {
      if (!listed && lenient) return;
      if (listed) present.insert(entry.name);
      links_.insert(entry.name);
      return add_of(entry.name, "manifest/link",
                    "this is " + entry.what + ", and the manifest lists regular files only");
    }
    if (listed) {
      present.insert(entry.name);
    } else if (!lenient && !(out_.manifest.shard_size > 0 && is_empty(entry.name))) {
      differ(What::additional, entry.name);
    }
  }
  // By the reader's own globs, which may name a folder.
  bool is_ignored(std::string_view name) const {
    return signing::is_or_is_in(name, [&](std::string_view path) {
      return std::any_of(check_.ignore.begin(), check_.ignore.end(),
                         [&](const std::string& glob) { return matches_glob(glob, path); });
    });
  }
  // Section 6.3.2: a manifest of ranges does not list empty files.
  bool is_empty(const std::string& name) const {
    const std::optional<Stamp> stamp = signing::stamp_of(root_->path(name));
    return stamp && stamp->size == 0;
  }

  void hash_all(std::map<std::string, File, std::less<>>& files, const std::set<std::string, std::less<>>& present) {
    std::optional<signing::Memory> memory;
    if (!check_.cache.empty()) memory.emplace(check_.cache, context_.limits, out_.report);
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    std::vector<Piece> pieces;
    std::vector<std::pair<File*, const ManifestEntry*>> owners;
    for (auto& [name, file] : files) {
      if (!present.contains(name) || links_.contains(name)) continue;
      file.stamp = signing::stamp_of(root_->path(name));
      if (!file.stamp) base::io_error_of(root_->path(name), "open", "the file cannot be opened");
      const std::uint64_t size = file.stamp->size;
      const ManifestNote* const note = out_.manifest.note(file.entries.front()->file);
      ++out_.files;
      out_.bytes += size;
      file.resized = out_.manifest.shard_size > 0 ? file.whole && size != file.entries.back()->end
                                                  : note != nullptr && note->size != size;
      if (file.resized && out_.manifest.shard_size == 0) continue;  // its bytes need not be read
      bool read = false;
      for (const ManifestEntry* const entry : file.entries) {
        const std::uint64_t end = out_.manifest.shard_size > 0 ? entry->end : size;
        if (end > size) {
          file.differing.push_back(entry);
          continue;
        }
        if (memory)
          if (const auto known = memory->find(name, *file.stamp, entry->begin, end)) {
            file.found[entry] = *known;
            continue;
          }
        read = true;
        pieces.push_back({.file = name, .begin = entry->begin, .end = end});
        owners.emplace_back(&file, entry);
      }
      if (!read) ++out_.remembered;
    }
    signing::hash(*root_, pieces, context_);
    for (std::size_t i = 0; i < pieces.size(); ++i) owners[i].first->found[owners[i].second] = pieces[i].sha256;
    for (auto& [name, file] : files) {
      const bool keeps = memory && !file.found.empty() && signing::stamp_of(root_->path(name)) == file.stamp;
      for (const auto& [entry, digest] : file.found) {
        if (digest != entry->sha256) file.differing.push_back(entry);
        if (keeps)
          memory->add(name, *file.stamp, entry->begin, out_.manifest.shard_size > 0 ? entry->end : file.stamp->size,
                      digest, now);
      }
      std::sort(file.differing.begin(), file.differing.end(),
                [](const ManifestEntry* a, const ManifestEntry* b) { return a->begin < b->begin; });
    }
    if (memory && !check_.only_file.empty()) memory->keep_others();
    if (memory) remember(*memory);
  }

  void remember(const signing::Memory& memory) {
    try {
      memory.write(check_.cache);
    } catch (const Error& error) {
      Finding finding = error.finding();
      finding.rule = "manifest/state";
      finding.severity = Severity::warning;
      finding.message = "the digests could not be kept for the next check: " + finding.message;
      finding.file.name = check_.cache;
      out_.report.add(std::move(finding));
    }
  }

  void differ(What what, const std::string& file) {
    FileDifference out;
    out.what = what;
    out.file = file;
    out_.differences.push_back(std::move(out));
  }

  void changed(const std::string& name, const File& file) {
    FileDifference out;
    out.file = name;
    if (!file.differing.empty()) {
      const ManifestEntry* const first = file.differing.front();
      out.expected = first->sha256.hex();
      if (const auto found = file.found.find(first); found != file.found.end()) out.found = found->second.hex();
    } else {
      out.expected = file.entries.front()->sha256.hex();
    }
    if (out_.manifest.shard_size > 0)
      for (const ManifestEntry* const entry : file.differing) out.ranges.push_back(entry_name(*entry));
    if (const ManifestNote* const note = out_.manifest.note(file.entries.front()->file);
        note != nullptr && !note->format.empty())
      compare_tensors(name, *note, out);
    if (file.resized) {
      const ManifestNote* const note = out_.manifest.note(file.entries.front()->file);
      resized_[name] = {out_.manifest.shard_size > 0 ? file.entries.back()->end : note->size, file.stamp->size};
    }
    out_.differences.push_back(std::move(out));
  }

  void compare_tensors(const std::string& name, const ManifestNote& note, FileDifference& out) {
    Report ignored;
    std::optional<Model> model;
    ContentDigests digests;
    try {
      model = open(root_->open(name), ignored, context_, {.checks = Checks::structure});
      if (!model) return;
      digests = content_digests(*model, context_);
    } catch (const Error& error) {
      if (error.kind() == Kind::io) throw;
      return;  // the SHA-256 says enough
    }
    out.compared = true;
    std::map<std::string_view, const Digest*> left;
    for (const auto& [tensor, digest] : note.tensors) left.emplace(tensor, &digest);
    for (std::uint32_t i = 0; i < model->size(); ++i) {
      const auto known = left.find(model->name(i));
      if (known == left.end() || *known->second != digests.tensors[i]) out.tensors.emplace_back(model->name(i));
      if (known != left.end()) left.erase(known);
    }
    for (const auto& [tensor, digest] : left) out.tensors.emplace_back(tensor);
    std::sort(out.tensors.begin(), out.tensors.end());
  }

  void report_differences() {
    for (const FileDifference& each : out_.differences) switch (each.what) {
        case What::missing:
          add_of(each.file == "." ? "" : each.file, "manifest/missing",
                 each.file == "."     ? "the manifest lists one file without its name: give that file, not its folder"
                 : root_->is_folder() ? "the manifest lists this file, and it is not there"
                                      : "the manifest lists " + signing::quote(each.file) +
                                            ", and only one file is checked: check the folder of the model, or "
                                            "choose the file",
                 {}, {}, root_->is_folder() ? Hint{} : base::option_hint("only"));
          break;
        case What::additional: add_of(each.file, "manifest/additional", "the manifest does not list this file"); break;
        case What::changed: report_change(each); break;
      }
  }

  void report_change(const FileDifference& each) {
    std::string message = "the file is not the one in the manifest";
    if (const auto resized = resized_.find(each.file); resized != resized_.end()) {
      const auto& [expected, found] = resized->second;
      message += ": it has " + std::to_string(found) + " bytes, not " + std::to_string(expected);
    } else if (each.ranges.empty()) {
      message += ": expected the SHA-256 " + each.expected + ", found " + each.found;
    }
    if (!each.ranges.empty()) message += "; these ranges differ: " + grouped_list(each.ranges, 5);
    if (each.compared && each.tensors.empty())
      message += "; its tensors are equal, so only its header or padding changed";
    add_of(each.file, "manifest/changed", std::move(message), each.expected, each.found);
    for (const std::string& tensor : each.tensors) {
      Finding finding =
          signing::finding_of("manifest/tensor", Severity::error, "this tensor is not the one in the manifest");
      finding.file.name = root_->path(each.file);
      finding.tensor = tensor;
      finding.has_tensor = true;
      out_.report.add(std::move(finding));
    }
  }

  const std::string& path_;
  const std::shared_ptr<const Source> bundle_;
  const ManifestCheck& check_;
  const Context& context_;
  std::optional<Root> root_;
  std::set<std::string, std::less<>> links_;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> resized_;  // files: the sizes expected and found
  ManifestVerdict out_;
};

constexpr core::Bound<ManifestCheck> kCheckBound[] = {
#define WB_CHECK_OPTION(MEMBER, ...) WB_BOUND(ManifestCheck, MEMBER)
#include "core/writing/option_rows.def"
};

}  // namespace

void ManifestCheck::set(std::string_view option, std::string_view text) {
  core::set<ManifestCheck>(*this, OptionOf::check, kCheckBound, option, text);
}

ManifestVerdict verify_manifest(const std::string& path, std::shared_ptr<const Source> bundle,
                                const ManifestCheck& check, const Context& context) {
  if (!bundle) base::misuse("null-source", "there is no manifest");
  return Checking(path, std::move(bundle), check, context).run();
}

}  // namespace weighbridge
