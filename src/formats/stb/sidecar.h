// SPDX-License-Identifier: Apache-2.0
// NAME.khm.json, the sidecar of a KHLNARY module or of a single STB file (readings S6 and S11): the bin file table, the
// shape table, the function table, names of tensors. Parses and writes it; the schema is docs/schemas/khm.schema.json.
// Callers open the files that it names, and run modules.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::stb {

inline constexpr std::string_view kSidecarExtension = ".khm.json";

// `at` is the offset of the entry in the sidecar's text; 0 in a sidecar that was not read.
struct BinFile {
  std::uint8_t id = 0;
  std::string path;  // relative to the sidecar's folder and textually inside it; code that opens it must refuse links
  bool mmap_required = false;
  std::optional<std::uint64_t> size{};
  std::uint64_t at = 0;
};

struct Function {
  std::uint8_t id = 0;
  std::string name;
  std::uint64_t offset = 0;  // of its FUNC_DEF, in words from the module's start; not checked against the module
  std::uint64_t at = 0;
};

struct TensorEntry {
  std::uint8_t file = 0, id = 0;
  std::string name;
  std::optional<std::vector<std::uint64_t>> shape{};  // at most 8 dimensions, whose product fits 64 bits
  std::uint64_t at = 0;
};

struct Sidecar {
  std::optional<std::string> module{};                              // a path like BinFile::path
  std::vector<BinFile> files;                                       // ids are unique
  std::optional<std::vector<std::vector<std::uint64_t>>> shapes{};  // nullopt: no shape table
  std::vector<Function> functions;                                  // ids are unique
  std::vector<TensorEntry> tensors;  // names and (file, id) pairs are unique; `file` is in `files`

  // Null if there is none. Linear search: the tables are small.
  const BinFile* file(std::uint8_t id) const noexcept;
  const Function* function(std::uint8_t id) const noexcept;
  const TensorEntry* tensor(std::uint8_t file, std::uint8_t id) const noexcept;
  // The entry for the file with the path `name`: the entry whose path is the longest suffix of `name`, else the only
  // one with the same last component, else the only entry. Null if none of these applies.
  const BinFile* file_named(std::string_view name) const noexcept;
  // The same by its path, or by its name if it has no path.
  const BinFile* file_of(const Source&) const noexcept;
};

// Whether a path is allowed in a sidecar: relative, without a component "..", a backslash, NUL, a drive letter or a
// slash at its end.
bool is_sidecar_path(std::string_view path) noexcept;

// Checks every rule of the schema and the contracts above. Reports to `findings` with offsets in the text; nullopt if
// there was an error. Memory is proportional to the text.
std::optional<Sidecar> parse_sidecar(std::string_view text, const Limits&, core::Findings&);
// [reads] The same for a whole source.
std::optional<Sidecar> read_sidecar(const Source&, const Limits&, core::Findings&);

// Indented JSON with a final line end, the same for equal sidecars. parse_sidecar() accepts it if the caller keeps the
// contracts above.
std::string write_sidecar(const Sidecar&);

// The sidecar's name beside a file: "weights.khm.json" for "folder/weights.stb".
std::string sidecar_name(std::string_view path);

}  // namespace weighbridge::stb
