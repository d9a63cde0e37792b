// SPDX-License-Identifier: Apache-2.0
// NAME.khm.json, what a KHLNARY module or a single STB file keeps beside itself (readings S6 and S11): the bin file
// table, the shape table, the function table, names of tensors. Owns its data, grammar and spelling; the schema is
// docs/schemas/khm.schema.json. Leaves opening the files that it names, and running, to its callers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::stb {

inline constexpr std::string_view kSidecarExtension = ".khm.json";

// `at` is the offset of the entry in the sidecar's text; 0 in a sidecar that was not read.
struct BinFile {
  std::uint8_t id = 0;
  std::string path;  // relative to the sidecar's folder, never out of it by its text (links are the opener's to refuse)
  bool mmap_required = false;
  std::optional<std::uint64_t> size{};
  std::uint64_t at = 0;
};

struct Function {
  std::uint8_t id = 0;
  std::string name;
  std::uint64_t offset = 0;  // of its FUNC_DEF, in words from the module's start; not compared with the module here
  std::uint64_t at = 0;
};

struct TensorEntry {
  std::uint8_t file = 0, id = 0;
  std::string name;
  std::optional<std::vector<std::uint64_t>> shape{};  // at most 8 dimensions whose product fits 64 bits
  std::uint64_t at = 0;
};

struct Sidecar {
  std::optional<std::string> module{};                              // a path like BinFile::path
  std::vector<BinFile> files;                                       // ids are unique
  std::optional<std::vector<std::vector<std::uint64_t>>> shapes{};  // none: there is no shape table
  std::vector<Function> functions;                                  // ids are unique
  std::vector<TensorEntry> tensors;  // names are unique, pairs of file and id too; `file` is in `files`

  // Null where there is none. Linear: the tables are small.
  const BinFile* file(std::uint8_t id) const noexcept;
  const Function* function(std::uint8_t id) const noexcept;
  const TensorEntry* tensor(std::uint8_t file, std::uint8_t id) const noexcept;
  // The entry of the file that is called so: the one whose path is the longest ending of `name` (a path), else the only
  // one whose last component is that of `name`, else the only one there is. Null: the sidecar does not tell.
  const BinFile* file_named(std::string_view name) const noexcept;
};

// May stand in a sidecar: relative, no component "..", no backslash, NUL, drive letter or slash at its end.
bool is_sidecar_path(std::string_view path) noexcept;

// Every rule of the schema and of the contracts above. Reports to `findings`, with offsets in the text, and says so in
// each message; nullopt when there was an error. Memory in proportion to the text.
std::optional<Sidecar> parse_sidecar(std::string_view text, const Limits&, core::Findings&);
// [reads] The same of a whole source.
std::optional<Sidecar> read_sidecar(const Source&, const Limits&, core::Findings&);

// Indented JSON with a line end, the same for the same sidecar; parse_sidecar takes it. The caller keeps the contracts.
std::string write_sidecar(const Sidecar&);

// The sidecar's name beside a file: "weights.khm.json" for "folder/weights.stb".
std::string sidecar_name(std::string_view path);

}  // namespace weighbridge::stb
