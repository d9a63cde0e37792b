// SPDX-License-Identifier: Apache-2.0
// The ledger: its links, and what may be appended.
#include "chain/promotion.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "chain/admission.h"
#include "chain/outcome.h"
#include "core/model/progress.h"
#include "io/fd.h"
#include "io/folder_lock.h"
#include "io/temporary.h"
#include "weighbridge/open.h"
#include "weighbridge/slm.h"

namespace weighbridge::chain {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr Key kLedgerKeys[] = {
    choice_key("ledger_version", "1", "of this grammar"),
    {.name = "entries", .type = Type::number, .about = "how many there are"},
    {.name = "head", .type = Type::digest, .about = "digest of the last entry; zeros where there is none"},
    {.name = "entry.N.previous", .type = Type::digest, .about = "digest of the entry before; zeros for the first"},
    choice_key("entry.N.kind", "model|adapter", "what was promoted"),
    {.name = "entry.N.path", .about = "relative to the ledger's folder, in which it stays"},
    {.name = "entry.N.bytes", .type = Type::number, .about = "size of the file"},
    {.name = "entry.N.sha256", .type = Type::digest, .about = "of the file"},
    optional(choice_key("entry.N.quantization", "f32|q8_0|q4_0|mixed", "of a model")),
    {.name = "entry.N.admission_sha256", .type = Type::digest, .required = false, .about = "of a model's admission"},
    optional(choice_key("entry.N.adapter_kind", "adp1|asp1|alr1", "of an adapter")),
    {.name = "entry.N.base_sha256", .type = Type::digest, .required = false, .about = "of the model an adapter is for"},
    {.name = "entry.N.promoted_at", .type = Type::time, .required = false, .about = "as given, or SOURCE_DATE_EPOCH"},
    {.name = "entry.N.digest", .type = Type::digest, .about = "SHA-256 of the entry's lines above, as they stand"},
};
constexpr Schema kLedgerSchema{.name = "promotion.ledger", .keys = kLedgerKeys};

const std::string kNoDigest(64, '0');

// The lines of each entry that its digest covers, in order, each with LF.
std::vector<std::string> entry_lines(const Record& ledger) {
  std::vector<std::string> out(base::to_size(ledger.rows("entry")));
  for (const auto& [key, value] : ledger.lines())
    if (key.starts_with("entry.") && !key.ends_with(".digest"))
      out[base::to_size(std::stoull(key.substr(6)))] += key + "=" + value + "\n";
  return out;
}

[[noreturn]] void broken(std::uint64_t entry, const char* key, std::string message, std::string expected,
                         std::string_view found) {
  refuse("ledger", entry_row(entry) + key, std::move(message), {}, std::move(expected), std::string(found));
}

// Requires the keys of the entry's kind and no keys of the other kind.
void check_kind(const Record& ledger, std::uint64_t entry) {
  const std::string row = entry_row(entry);
  const bool model = ledger.get(row + "kind") == "model";
  for (const char* const key : {"quantization", "admission_sha256"})
    if (ledger.has(row + key) != model) broken(entry, key, model ? "is missing" : "is not a key of an adapter", {}, {});
  for (const char* const key : {"adapter_kind", "base_sha256"})
    if (ledger.has(row + key) == model) broken(entry, key, model ? "is not a key of a model" : "is missing", {}, {});
}

// A path must not lead out of the folder, even with forged digests.
void check_path(const Record& ledger, std::uint64_t entry) {
  const std::string path(ledger.get(entry_row(entry) + "path"));
  bool good = !path.empty() && path.find('\\') == std::string::npos && !fs::path(path).is_absolute();
  for (const fs::path& part : fs::path(path)) good = good && part != ".." && part != "." && !part.empty();
  if (!good) broken(entry, "path", "leaves the ledger's folder", "a relative path without ..", path);
}

std::string link_of(const Record& ledger, std::uint64_t entry) {
  return entry == 0 ? kNoDigest : std::string(ledger.get(entry_row(entry - 1) + "digest"));
}

void check_links(const Record& ledger) {
  const std::uint64_t entries = ledger.rows("entry");
  const std::vector<std::string> lines = entry_lines(ledger);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::string_view previous = ledger.get(entry_row(i) + "previous");
    if (const std::string before = link_of(ledger, i); previous != before)
      broken(i, "previous", "does not continue the entry before: an entry was removed, put in or moved here", before,
             previous);
    const std::string_view digest = ledger.get(entry_row(i) + "digest");
    if (const std::string made = sha256_hex(lines[base::to_size(i)]); digest != made)
      broken(i, "digest", "does not fit the entry's lines: the entry was edited", made, digest);
    check_kind(ledger, i);
    check_path(ledger, i);
  }
  if (ledger.number("entries") != entries)
    refuse("ledger", "entries", "is not how many there are: an entry was removed or added", {},
           std::string(ledger.get("entries")), std::to_string(entries));
  if (const std::string last = link_of(ledger, entries); ledger.get("head") != last)
    refuse("ledger", "head", "is not the last entry's digest: an entry was removed or added", {},
           std::string(ledger.get("head")), last);
}

// The absolute path with links resolved.
fs::path real_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path out = error ? fs::path() : fs::weakly_canonical(absolute, error);
  if (error) base::io_error_of(path, "open", "cannot be found", error.value());
  return out;
}

// `path` in the form that an entry states.
std::string path_in(const std::string& ledger, const std::string& path) {
  const std::string relative = real_path(path).lexically_relative(folder_of_record(ledger)).generic_string();
  if (relative.empty() || relative == "." || relative.starts_with(".."))
    refuse("path", {}, "'" + path + "' is not in the ledger's folder, nor in one below it");
  return relative;
}

// True if the last entry under this path is for this file.
bool stands(const Record& ledger, std::string_view path, std::string_view sha256) {
  for (std::uint64_t i = ledger.rows("entry"); i-- > 0;)
    if (ledger.get(entry_row(i) + "path") == path) return ledger.get(entry_row(i) + "sha256") == sha256;
  return false;
}

void append_entry(Record& ledger, const std::string& at,
                  std::initializer_list<std::pair<const char*, std::string_view>> lines) {
  const std::uint64_t entry = ledger.rows("entry");
  const std::string row = entry_row(entry);
  ledger.set(row + "previous", link_of(ledger, entry));
  for (const auto& [key, value] : lines) ledger.set(row + key, value);
  if (!at.empty()) ledger.set(row + "promoted_at", at);
  const std::string digest = sha256_hex(entry_lines(ledger)[base::to_size(entry)]);
  ledger.set(row + "digest", digest).set("head", digest).set("entries", entry + 1);
}

Record ledger_to_append_to(const std::string& path) {
  std::error_code unknown;
  if (fs::exists(path, unknown)) return read_ledger(path).record;
  Record out(kLedgerSchema);
  out.set("ledger_version", "1").set("entries", std::uint64_t{0}).set("head", kNoDigest);
  return out;
}

}  // namespace

const Schema& internal::ledger_schema() { return kLedgerSchema; }
fs::path internal::folder_of_record(const std::string& path) { return real_path(path).parent_path(); }
std::string internal::entry_row(std::uint64_t entry) { return "entry." + std::to_string(entry) + "."; }

ReadRecord internal::read_ledger(const std::string& path) {
  ReadRecord out = read_evidence(kLedgerSchema, path, "slm promotion-ledger append");
  about_record(path, [&] { check_links(out.record); });
  return out;
}

std::string internal::check_adapter(const Artifact& base, const std::shared_ptr<const Source>& file,
                                    const Context& context) {
  const std::string path(file->name());
  const Model package = open(file, context);
  std::string kind(package.version());  // the package's magic, for example ADP1
  std::ranges::transform(kind, kind.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (!slm::adapter_kind_from_name(kind))
    refuse("adapter", {}, "'" + path + "' is not an adapter package", 0, "adp1, asp1 or alr1", kind);
  try {
    check_runs(slm::adapt(base.model, std::span(&package, 1), context));
  } catch (const Error& error) {  // a package for another model is a fault of the file here, not a usage error
    if (error.kind() == Kind::io) throw;
    refuse("adapter", {}, "'" + path + "' does not fit '" + base.name + "': " + error.finding().message);
  }
  return kind;
}

Outcome append_to_ledger(const std::string& path, const Evidence& at, std::span<const std::string> adapters,
                         const std::string& time, const Context& context) {
  // Of two concurrent appends the second waits and then sees the first one's entries.
  const io::FolderLock lock(io::split_path(path).folder, [&] { return core::goes_on(context, 0, 0); });
  Record ledger = ledger_to_append_to(path);
  const Admitted admitted = read_admission(at, context);
  const Artifact& artifact = admitted.evidence.smoke.provenance.artifact;
  const std::string at_time = stated_time(time).value_or("");
  const std::uint64_t before = ledger.rows("entry");
  if (const std::string name = path_in(path, at.artifact); !stands(ledger, name, artifact.sha256))
    append_entry(ledger, at_time,
                 {{"kind", "model"},
                  {"path", name},
                  {"bytes", std::to_string(artifact.bytes)},
                  {"sha256", artifact.sha256},
                  {"quantization", artifact.model.dtype_label()},
                  {"admission_sha256", admitted.record.sha256}});
  for (const std::string& adapter : adapters) {
    const std::string name = path_in(path, adapter);
    const auto file = open_file(adapter);
    const std::string kind = check_adapter(artifact, file, context);
    const Stamp stamped = stamp(*file, context);
    if (stands(ledger, name, stamped.sha256)) continue;
    append_entry(ledger, at_time,
                 {{"kind", "adapter"},
                  {"path", name},
                  {"bytes", std::to_string(stamped.bytes)},
                  {"sha256", stamped.sha256},
                  {"adapter_kind", kind},
                  {"base_sha256", artifact.sha256}});
  }
  if (ledger.rows("entry") == before)
    refuse("promoted", {}, "'" + at.artifact + "' and all adapters named stand in the ledger as they are");
  Output output = output_of(at, &Evidence::artifact, true);
  output.path = path;
  output.inputs.push_back(at.artifact);
  output.inputs.insert(output.inputs.end(), adapters.begin(), adapters.end());
  return conclude("promotion-ledger", ledger, {}, output);
}

Outcome verify_ledger(const std::string& path) {
  const ReadRecord ledger = read_ledger(path);
  return report_on("promotion-ledger", ledger.record, ledger.sha256, {}, {});
}

}  // namespace weighbridge::chain
