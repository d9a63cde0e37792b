// SPDX-License-Identifier: Apache-2.0
// Reads and writes sidecars, and looks up their entries.
#include "formats/stb/sidecar.h"

#include <algorithm>
#include <bitset>
#include <functional>
#include <initializer_list>
#include <utility>

#include "base/checked.h"
#include "base/order.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "formats/stb/format.h"
#include "formats/stb/layout.h"
#include "io/read.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::stb {
namespace {

std::string_view last_component(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

std::string_view without_dots(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

// Whether `path` is all of `name`, or its last components.
bool is_ending(std::string_view name, std::string_view path) {
  if (!name.ends_with(path)) return false;
  return name.size() == path.size() || name[name.size() - path.size() - 1] == '/';
}

void write_shape(wire::JsonWriter& out, const std::vector<std::uint64_t>& shape) {
  out.begin_array();
  for (const std::uint64_t dim : shape) out.u64(dim);
  out.end_array();
}

void write_file(wire::JsonWriter& out, const BinFile& file) {
  out.begin_object();
  out.key("id"), out.u64(file.id);
  out.key("path"), out.string(file.path);
  if (file.mmap_required) out.key("mmap_required"), out.boolean(true);
  if (file.size) out.key("size"), out.u64(*file.size);
  out.end_object();
}

void write_function(wire::JsonWriter& out, const Function& function) {
  out.begin_object();
  out.key("id"), out.u64(function.id);
  if (!function.name.empty()) out.key("name"), out.string(function.name);
  out.key("offset"), out.u64(function.offset);
  out.end_object();
}

void write_tensor(wire::JsonWriter& out, const TensorEntry& tensor) {
  out.begin_object();
  out.key("file"), out.u64(tensor.file);
  out.key("id"), out.u64(tensor.id);
  out.key("name"), out.string(tensor.name);
  if (tensor.shape) out.key("shape"), write_shape(out, *tensor.shape);
  out.end_object();
}

template <class Items, class Write>
void write_array(wire::JsonWriter& out, std::string_view key, const Items& items, Write write) {
  out.key(key).begin_array();
  for (const auto& item : items) write(out, item);
  out.end_array();
}

// NAME.khm.json to Sidecar: one pass over possibly hostile JSON, then the checks between entries. Checks the rules
// stb/sidecar-... that need no other file.

using core::excerpt;

constexpr std::uint64_t kSchema = 1;
constexpr std::uint64_t kMaxId = 255, kMaxIds = kMaxId + 1;  // ids of files are bytes
// The number of tensors that 256 files with 256 ids each can have. More shapes than that would be unused.
constexpr std::uint64_t kMaxTensorsOfAll = kMaxIds * kMaxTensors;

// Thrown to stop at text that is not JSON, or when the report is full.
struct Abandon {};

class Parser {
 public:
  Parser(std::string_view text, const Limits& limits, core::Findings& findings)
      : limits_(limits), findings_(findings), in_(text, limits.depth) {}

  std::optional<Sidecar> run() {
    const std::uint64_t before = findings_.errors();
    try {
      read_root();
      if (!in_.finish()) report_json();
      // Entries that could not be read have default ids, so these checks need an error-free sidecar.
      if (findings_.errors() == before) check_duplicates();
      if (findings_.errors() == before) check_files();
    } catch (const Abandon&) {}
    if (findings_.errors() != before) return std::nullopt;
    return std::move(out_);
  }

 private:
  struct Field {
    std::string_view key;
    bool required;
    std::function<void()> read;
  };

  // ---- grammar ----

  void fail(const Rule& rule, std::uint64_t at, std::string_view where, const core::Said& expected,
            const core::Said& found) {
    if (findings_.errors() >= Report::kMaxFindings) throw Abandon{};
    findings_.report(rule, {.offset = at}, expected, found, where);
  }

  void report_json() {
    const wire::JsonError& error = in_.error();
    if (error.code == wire::JsonErrorCode::too_deep)
      fail(core::rules::kLimitDepth, error.offset, {}, core::at_most(limits_.depth), {});
    else
      fail(rules::kSidecarJson, error.offset, error.sentence, {}, {});
    throw Abandon{};
  }
  void need_sound() {
    if (!in_.ok()) report_json();
  }

  void wrong_type(std::string_view where, const core::Said& expected) {
    need_sound();
    const std::uint64_t at = in_.offset();
    std::string_view raw;
    in_.skip_value(raw);
    need_sound();
    fail(rules::kSidecarType, at, where, expected, core::excerpted(raw));
  }

  void skip() {
    in_.skip_value();
    need_sound();
  }

  // Reads an object with these keys and no others.
  void read_object(std::string_view where, std::initializer_list<Field> fields) {
    const std::uint64_t at = in_.offset();
    if (!in_.enter_object()) return wrong_type(where, "an object");
    std::bitset<8> seen;
    for (wire::JsonString key; in_.next_key(key);) {
      const std::string_view name = wire::json_text(key, scratch_);
      const auto field = std::ranges::find(fields, name, &Field::key);
      const auto place = static_cast<std::size_t>(field - fields.begin());
      if (field == fields.end()) {
        const std::string found = excerpt(name);
        skip();
        fail(rules::kSidecarKey, key.offset - 1, where, {}, found);
      } else if (seen[place]) {
        skip();
        fail(rules::kSidecarDuplicateKey, key.offset - 1, where, {}, field->key);
      } else {
        seen.set(place);
        field->read();
      }
    }
    need_sound();
    for (const Field& field : fields)
      if (field.required && !seen[static_cast<std::size_t>(&field - fields.begin())])
        fail(rules::kSidecarMissingKey, at, where, field.key, {});
  }

  // Calls item(where) at each element, which must read it. Allows at most `maximum` elements.
  template <class Item> void read_array(std::string_view where, std::uint64_t maximum, Item item) {
    if (!in_.enter_array()) return wrong_type(where, "an array");
    for (std::uint64_t i = 0; in_.next_element(); ++i) {
      if (i == maximum) {
        fail(rules::kSidecarTooMany, in_.offset(), where, core::at_most(maximum), {});
        throw Abandon{};
      }
      item(std::string(where) + "[" + std::to_string(i) + "]");
    }
    need_sound();
  }

  bool read_u64(std::string_view where, std::uint64_t maximum, std::uint64_t& out) {
    const std::uint64_t at = in_.offset();
    const std::string expected = "an integer from 0 to " + std::to_string(maximum);
    std::uint64_t value = 0;
    if (!in_.read_u64(value)) {
      wrong_type(where, expected);
    } else if (value > maximum) {
      fail(rules::kSidecarType, at, where, expected, value);
    } else {
      out = value;
      return true;
    }
    return false;
  }
  void read_id(std::string_view where, std::uint8_t& out) {
    std::uint64_t value = 0;
    if (read_u64(where, kMaxId, value)) out = static_cast<std::uint8_t>(value);
  }
  void read_text(std::string_view where, std::string& out) {
    wire::JsonString text;
    if (in_.read_string(text))
      out = wire::json_text(text, scratch_);
    else
      wrong_type(where, "text");
  }
  void read_bool(std::string_view where, bool& out) {
    if (!in_.read_bool(out)) wrong_type(where, "true or false");
  }
  void read_path(std::string_view where, std::string& out) {
    const std::uint64_t at = in_.offset();
    const bool text = in_.peek() == wire::JsonKind::string;
    read_text(where, out);
    if (text && !is_sidecar_path(out)) fail(rules::kSidecarPath, at, where, {}, core::excerpted(out));
  }

  std::vector<std::uint64_t> read_shape(std::string_view where) {
    const std::uint64_t at = in_.offset();
    std::vector<std::uint64_t> shape;
    read_array(where, kMaxRank, [&](const std::string& dim) { read_u64(dim, UINT64_MAX, shape.emplace_back()); });
    if (!base::element_count(shape)) fail(rules::kSidecarShapeOverflow, at, where, {}, {});
    return shape;
  }

  // ---- the document ----

  void read_root() {
    read_object("the root", {{"schema", true, [&] { read_schema(); }},
                             {"module", false, [&] { read_path("module", out_.module.emplace()); }},
                             {"files", true, [&] { read_files(); }},
                             {"shapes", false, [&] { read_shapes(); }},
                             {"functions", false, [&] { read_functions(); }},
                             {"tensors", false, [&] { read_tensors(); }}});
  }

  void read_schema() {
    const std::uint64_t at = in_.offset();
    std::uint64_t schema = kSchema;
    if (read_u64("schema", UINT64_MAX, schema) && schema != kSchema)
      fail(rules::kSidecarSchema, at, {}, kSchema, schema);
  }

  void read_files() {
    read_array("files", kMaxIds, [&](const std::string& where) {
      BinFile& file = out_.files.emplace_back();
      file.at = in_.offset();
      read_object(where, {{"id", true, [&] { read_id(where + ".id", file.id); }},
                          {"path", true, [&] { read_path(where + ".path", file.path); }},
                          {"mmap_required", false, [&] { read_bool(where + ".mmap_required", file.mmap_required); }},
                          {"size", false, [&] { read_u64(where + ".size", UINT64_MAX, file.size.emplace()); }}});
    });
  }

  void read_shapes() {
    out_.shapes.emplace();
    read_array("shapes", kMaxTensorsOfAll,
               [&](const std::string& where) { out_.shapes->push_back(read_shape(where)); });
  }

  void read_functions() {
    read_array("functions", kMaxIds, [&](const std::string& where) {
      Function& function = out_.functions.emplace_back();
      function.at = in_.offset();
      read_object(where, {{"id", true, [&] { read_id(where + ".id", function.id); }},
                          {"name", false, [&] { read_text(where + ".name", function.name); }},
                          {"offset", true, [&] { read_u64(where + ".offset", UINT64_MAX, function.offset); }}});
    });
  }

  void read_tensors() {
    read_array("tensors", kMaxTensorsOfAll, [&](const std::string& where) {
      TensorEntry& tensor = out_.tensors.emplace_back();
      tensor.at = in_.offset();
      read_object(where, {{"file", true, [&] { read_id(where + ".file", tensor.file); }},
                          {"id", true, [&] { read_id(where + ".id", tensor.id); }},
                          {"name", true, [&] { read_text(where + ".name", tensor.name); }},
                          {"shape", false, [&] { tensor.shape = read_shape(where + ".shape"); }}});
    });
  }

  // ---- checks between entries ----

  // Reports each item with the key of an earlier one; `spell` prints the key.
  template <class Item, class Key, class Spell>
  void refuse_twins(const std::vector<Item>& items, std::string_view array, Key key, Spell spell) {
    for (const auto& [i, first] : base::repeated(items.size(), [&](std::uint32_t at) { return key(items[at]); }))
      fail(rules::kSidecarDuplicate, items[i].at, array, {}, core::excerpted(spell(items[i])));
  }

  void check_duplicates() {
    const auto id = [](const auto& item) { return item.id; };
    const auto spell_id = [](const auto& item) { return "id " + std::to_string(item.id); };
    refuse_twins(out_.files, "files", id, spell_id);
    refuse_twins(out_.functions, "functions", id, spell_id);
    refuse_twins(
        out_.tensors, "tensors", [](const TensorEntry& t) { return t.file * kMaxIds + t.id; },
        [](const TensorEntry& t) { return "file " + std::to_string(t.file) + ", id " + std::to_string(t.id); });
    refuse_twins(
        out_.tensors, "tensors", [](const TensorEntry& t) { return std::string_view(t.name); },
        [](const TensorEntry& t) { return t.name; });
  }

  void check_files() {
    std::bitset<kMaxIds> there;
    for (const BinFile& file : out_.files) there.set(file.id);
    for (const TensorEntry& tensor : out_.tensors)
      if (!there[tensor.file]) fail(rules::kSidecarFile, tensor.at, "tensors", {}, {"file ", tensor.file});
  }

  const Limits& limits_;
  core::Findings& findings_;
  wire::JsonReader in_;
  Sidecar out_;
  std::string scratch_;
};

}  // namespace

const BinFile* Sidecar::file(std::uint8_t id) const noexcept {
  const auto found = std::ranges::find(files, id, &BinFile::id);
  return found == files.end() ? nullptr : &*found;
}

const Function* Sidecar::function(std::uint8_t id) const noexcept {
  const auto found = std::ranges::find(functions, id, &Function::id);
  return found == functions.end() ? nullptr : &*found;
}

const TensorEntry* Sidecar::tensor(std::uint8_t file, std::uint8_t id) const noexcept {
  const auto found = std::ranges::find_if(tensors, [&](const TensorEntry& t) { return t.file == file && t.id == id; });
  return found == tensors.end() ? nullptr : &*found;
}

const BinFile* Sidecar::file_named(std::string_view name) const noexcept {
  const BinFile *longest = nullptr, *same = nullptr;
  std::size_t length = 0;
  bool several = false;
  for (const BinFile& file : files) {
    const std::string_view path = without_dots(file.path);
    if (last_component(path) != last_component(name)) continue;
    several = same != nullptr;
    same = &file;
    if (is_ending(name, path) && path.size() > length) longest = &file, length = path.size();
  }
  if (longest != nullptr) return longest;
  if (same != nullptr) return several ? nullptr : same;
  return files.size() == 1 ? &files.front() : nullptr;
}

const BinFile* Sidecar::file_of(const Source& source) const noexcept {
  return file_named(source.path().empty() ? source.name() : source.path());
}

bool is_sidecar_path(std::string_view path) noexcept {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  const char drive = static_cast<char>(path.front() | 0x20);
  if (path.size() > 1 && path[1] == ':' && drive >= 'a' && drive <= 'z') return false;
  if (path.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos) return false;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (path.substr(0, end) == "..") return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

std::string write_sidecar(const Sidecar& sidecar) {
  wire::JsonWriter out(wire::JsonWriter::Style::indented);
  out.begin_object();
  out.key("schema"), out.u64(1);
  if (sidecar.module) out.key("module"), out.string(*sidecar.module);
  write_array(out, "files", sidecar.files, write_file);
  if (sidecar.shapes) write_array(out, "shapes", *sidecar.shapes, write_shape);
  if (!sidecar.functions.empty()) write_array(out, "functions", sidecar.functions, write_function);
  if (!sidecar.tensors.empty()) write_array(out, "tensors", sidecar.tensors, write_tensor);
  out.end_object();
  return out.take() + "\n";
}

std::string sidecar_name(std::string_view path) {
  const std::string_view name = last_component(path);
  const std::size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot)).append(kSidecarExtension);
}

std::optional<Sidecar> parse_sidecar(std::string_view text, const Limits& limits, core::Findings& findings) {
  return Parser(text, limits, findings).run();
}

std::optional<Sidecar> read_sidecar(const Source& source, const Limits& limits, core::Findings& findings) {
  if (source.size() > limits.header) {
    findings.report(core::rules::kLimitHeader, {.offset = 0}, core::at_most(limits.header, " bytes"),
                    {source.size(), " bytes"}, "the sidecar");
    return std::nullopt;
  }
  return parse_sidecar(io::text_of(source), limits, findings);
}

}  // namespace weighbridge::stb
