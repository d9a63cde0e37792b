// SPDX-License-Identifier: Apache-2.0
// The file that remembers digests between checks: JSON, one object for each file.
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "codecs/checksum.h"
#include "core/model/words.h"
#include "core/reading/json_file.h"
#include "io/atomic_file.h"
#include "io/fd.h"
#include "io/state_key.h"
#include "manifest/files.h"
#include "manifest/text.h"
#include "weighbridge/json_writer.h"
#include "wire/json_reader.h"

namespace weighbridge {

// Models are told apart by a hash of their paths: what is remembered names device and inode, so a collision costs a
// second reading.
std::string manifest_cache(const std::string& path) {
  std::error_code error;
  const std::string folder = io::user_folder("XDG_CACHE_HOME", ".cache"),
                    whole = std::filesystem::canonical(path, error).native();
  if (folder.empty() || error) return {};
  return io::join_path(folder, codecs::to_hex(codecs::xxh3_64(std::as_bytes(std::span(whole)))) + ".json");
}

namespace signing {
namespace {

constexpr std::string_view kSchema = "weighbridge digests 1";
// Times of some filesystems are exact to two seconds.
constexpr std::int64_t kSettled = 2;

}  // namespace

Memory::Memory(const std::string& path, const Limits& limits, Report& report) {
  if (!stamp_of(path)) return;
  bool good = false, ours = false;  // ours: a cache, though perhaps a damaged one
  try {
    const std::shared_ptr<const Source> source = open_file(path);
    const std::string text = core::whole_text(*source, limits, "it");
    ours = text.empty();
    wire::JsonReader in(text, 8);
    std::string scratch;
    wire::JsonString key, word;
    bool known_form = false;
    const auto range = [&](Known& known) {
      std::uint64_t begin = 0, end = 0;
      Digest digest;
      if (!in.enter_array() || !in.next_element() || !in.read_u64(begin) || !in.next_element() || !in.read_u64(end) ||
          !in.next_element() || !in.read_string(word) || !codecs::from_hex(word.raw, digest.bytes) || in.next_element())
        return false;
      known.ranges[{begin, end}] = digest;
      return true;
    };
    const auto file = [&](Known& known) {
      std::uint64_t numbers[7] = {};
      if (!in.enter_array()) return false;
      for (std::uint64_t& each : numbers)
        if (!in.next_element() || !in.read_u64(each)) return false;
      const auto time = [](std::uint64_t bits) { return static_cast<std::int64_t>(bits); };
      known.stamp = {numbers[0],       numbers[1],       numbers[2],      time(numbers[3]),
                     time(numbers[4]), time(numbers[5]), time(numbers[6])};
      while (in.next_element())
        if (!range(known)) return false;
      return in.ok();
    };
    const auto files = [&] {
      if (!in.enter_object()) return false;
      while (in.next_key(key)) {
        const std::string name(wire::json_text(key, scratch));
        if (!file(known_[name])) return false;
      }
      return in.ok();
    };
    good = in.enter_object();
    while (good && in.next_key(key)) {
      const std::string_view name = wire::json_text(key, scratch);
      if (name == "schema")
        good = in.read_string(word) && (ours = word.raw.starts_with(kSchema.substr(0, kSchema.size() - 1))) &&
               word.raw == kSchema && (known_form = true);
      else
        good = name == "files" && known_form && files();
    }
    good = good && in.finish();
  } catch (const Error&) {
    good = false;
  }
  if (good) return;
  if (!ours)
    base::misuse("cache",
                 core::quoted(path) + " exists and is no cache of digests, so it is not replaced: name another");
  known_.clear();
  Finding finding = finding_of("manifest/state", Severity::warning,
                               "this file does not hold the digests of an earlier check, so every file is read");
  finding.file.name = path;
  report.add(std::move(finding));
}

std::optional<Digest> Memory::find(const std::string& file, const Stamp& stamp, std::uint64_t begin,
                                   std::uint64_t end) const {
  const auto at = known_.find(file);
  if (at == known_.end() || at->second.stamp != stamp) return std::nullopt;
  const auto range = at->second.ranges.find({begin, end});
  if (range == at->second.ranges.end()) return std::nullopt;
  return range->second;
}

void Memory::add(const std::string& file, const Stamp& stamp, std::uint64_t begin, std::uint64_t end,
                 const Digest& digest, std::int64_t since) {
  if (stamp.changed + kSettled > since || stamp.modified + kSettled > since) return;
  Known& known = next_[file];
  if (known.stamp != stamp) known = {stamp, {}};
  known.ranges[{begin, end}] = digest;
}

void Memory::write(const std::string& path) const {
  JsonWriter out(JsonWriter::Style::compact);
  const auto number = [&](std::int64_t value) { out.u64(static_cast<std::uint64_t>(value)); };
  out.begin_object();
  out.member("schema", kSchema);
  out.key("files").begin_object();
  for (const auto& [file, known] : next_) {
    out.key(file).begin_array();
    for (const std::uint64_t value : {known.stamp.device, known.stamp.inode, known.stamp.size}) out.u64(value);
    for (const std::int64_t value :
         {known.stamp.modified, known.stamp.modified_ns, known.stamp.changed, known.stamp.changed_ns})
      number(value);
    for (const auto& [range, digest] : known.ranges) {
      out.begin_array();
      out.u64(range.first);
      out.u64(range.second);
      out.string(digest.hex());
      out.end_array();
    }
    out.end_array();
  }
  out.end_object();
  out.end_object();
  const std::string text = out.take() + "\n";
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);  // AtomicFile says what is wrong with it
  io::AtomicFile file(path, {.replace = true});
  file.write_whole(std::as_bytes(std::span(text)));
  file.publish();
}

}  // namespace signing
}  // namespace weighbridge
