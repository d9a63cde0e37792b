// SPDX-License-Identifier: Apache-2.0
// weighbridge/khlnary.h: KHLNARY v0.2 modules, which load tensors from STB files. Owns the 32-bit word (KNU), the
// module with its sidecar NAME.khm.json, checking one, running one, its text form, and packing a model into one. Leaves
// STB itself to the format of that name. Specification: stb-format.md v0.1 section 6; what it leaves open is told in
// src/runtime/khlnary/README.md.
//
// A module is a file of little-endian words. It can be run, never trusted: every word is decoded before the first one
// runs, a run has a budget of steps, a limit of its stack and of its calls, and reaches no file but those that the
// sidecar lists, beneath the sidecar's folder, links followed.
//
// ERRORS  What is wrong with a module, its sidecar or its files is Error{malformed} with a rule "khlnary/..." and the
//         byte offset of the word (module_rules() lists them), or one of "stb/sidecar-..." with an offset in the
//         sidecar. The machine's failures stay Error{io}, the caller's Error{misuse}.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"
#include "weighbridge/value.h"

namespace weighbridge::khlnary {

// ---- words ----

inline constexpr std::uint8_t kVersion = 2;
inline constexpr std::uint8_t kImm = 1, kBinRef = 2, kShapeDesc = 4;  // flags
inline constexpr std::uint8_t kMaxAuthority = 7;

// One kind of instruction. A word of it has an arity within the two bounds, all of `flags`, and none but those and
// `optional_flags`.
struct Glyph {
  enum class Id : std::uint8_t {
    nop = 0x00,
    const_i8 = 0x01,
    add_i32 = 0x02,
    ret = 0x03,
    ifz_jump8 = 0x10,
    jump8 = 0x11,
    while_head = 0x12,
    while_tail = 0x13,
    func_def = 0x20,
    func_end = 0x21,
    call = 0x22,
    load_bin_tensor = 0x30,
    mmap_bin_region = 0x31,
    prefetch_bin = 0x32,
  };
  // What the payload says. tensor: file in the high nibble, tensor in the low one.
  enum class Payload : std::uint8_t { nothing, constant, offset, function, tensor, file };

  Id id;
  std::string_view name;
  std::uint8_t least_arity, most_arity;
  std::uint8_t flags, optional_flags;
  Payload payload;
};

std::span<const Glyph> glyphs() noexcept;
// Null where there is none.
const Glyph* find_glyph(std::uint8_t id) noexcept;
const Glyph* find_glyph(std::string_view name) noexcept;

// The fields of a word: version 4 bits, glyph 8, arity 4, flags 4, payload 8, authority 3, and the parity of all these
// in bit 0.
struct Word {
  std::uint8_t version = kVersion, glyph = 0, arity = 0, flags = 0, payload = 0, authority = 1;
  bool operator==(const Word&) const = default;
};
// Of any fields, with its parity. Misuse: one that does not fit its bits.
std::uint32_t encode(const Word&);
// Of any word; parity is not looked at.
Word fields(std::uint32_t word) noexcept;
// What is wrong with a word that stands at this byte offset, for a context of this authority; the first of version,
// parity, glyph, BIN_REF, arity, flags, authority.
std::optional<Finding> check(std::uint32_t word, unsigned authority = kMaxAuthority, std::uint64_t offset = 0);
// The fields of a word that check() finds nothing wrong with, else Error.
Word decode(std::uint32_t word, unsigned authority = kMaxAuthority);

// ---- the module's text ----

// One line a word, "NAME", "CONST_I8 -5", "LOAD_BIN_TENSOR file=0 tensor=3 shape_desc", with " authority=3" when it is
// not 1 and " payload=7" where the glyph has no use for one; ".word 0x01234567 ; reason" for what is no valid word.
// assemble() gives exactly these words back.
std::string disassemble(std::span<const std::uint32_t> words);
std::string disassemble(std::uint32_t word);  // one line, without its end
// Throws Error "khlnary/syntax", with the line, and the offset in the text.
std::vector<std::uint32_t> assemble(std::string_view text);
// The words of a file, sound or not. Throws Error "khlnary/truncated". [reads]
std::vector<std::uint32_t> words_of(const Source&, const Context& = {});
// The module as it is stored.
std::string stored(std::span<const std::uint32_t> words);

// ---- a module ----

class Module {
 public:
  // Reads the words and the sidecar. A null sidecar: NAME.khm.json beside the module if there is one, else the module
  // has no files and no functions. Checks that the file is whole words and the sidecar keeps its schema; the words
  // themselves are run()'s and verify()'s. Throws Error.
  static Module open(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar = {},
                     const Context& = {});

  std::span<const std::uint32_t> words() const& noexcept;
  const Source& source() const& noexcept;
  const Source* sidecar() const& noexcept;  // null: there is none

  struct Rep;
  const Rep& rep() const noexcept { return *rep_; }

 private:
  std::shared_ptr<const Rep> rep_;
};

// Everything that can be known without running: each word, jump target, function and file of the sidecar, tensor that
// is loaded, and each path through a function to its FUNC_END. Findings in the order of the module's words, then of the
// sidecar's tables. Stricter than run(), which minds only what it comes to. `authority` as in RunOptions. Throws
// Error{io}, Error{misuse}.
Report verify(const std::shared_ptr<const Source>& module, std::shared_ptr<const Source> sidecar = {},
              unsigned authority = kMaxAuthority, const Context& = {});

// ---- running ----

// What stands on the stack. A handle can be passed and returned, not computed with.
struct Cell {
  enum class Kind : std::uint8_t { integer, tensor, region };
  Kind kind = Kind::integer;
  std::int32_t integer = 0;
  std::uint8_t file = 0, tensor = 0;  // ids; a region has no tensor
  bool operator==(const Cell&) const = default;
};
std::string_view name(Cell::Kind) noexcept;
// "-5", "tensor 0/3" (file, id), "region 2".
std::string to_text(const Cell&);

struct Step {
  std::uint64_t index;  // of the word, from the module's start
  std::uint32_t word;
  std::span<const Cell> stack;  // as the word finds it, its top last
};

struct RunOptions {
  unsigned authority = kMaxAuthority;  // 1 to 7: words of a higher class are refused
  std::uint64_t max_steps = 1'000'000;
  std::uint64_t max_stack = 1024;  // cells
  std::uint64_t max_calls = 1024;  // calls within calls
  std::function<void(const Step&)> trace{};
};

// A tensor that the run loaded. Model and Tensor live as long as this does, whatever becomes of the module.
struct Loaded {
  std::uint8_t file = 0, id = 0;
  std::string path;         // of the file, as the sidecar has it
  std::uint64_t times = 1;  // how often the run loaded it
  Model model;              // the whole file
  Tensor tensor;            // may be one whose elements or shape cannot be had: unsupported() says so
};

// A file that the run mapped. `bytes` is empty where the source cannot map; the Model's source has them then.
struct Region {
  std::uint8_t file = 0;
  std::string path;
  Bytes bytes;
};

struct Result {
  std::optional<Cell> value;   // the top of the stack
  std::vector<Cell> stack;     // all of it as the run left it, its top last
  std::vector<Loaded> loaded;  // each tensor once, in the order of their first loading
  std::vector<Region> regions;
  std::uint64_t steps = 0;  // words that ran
};

// Reads the STB files that the run comes to, each once, and no payload. Tells `progress` the steps now and then.
Result run(const Module&, const RunOptions& = {}, const Context& = {});

// The first elements in row-major order, at most `most`; none where the elements cannot be had. [reads]
std::vector<Value> first_values(const Tensor&, std::size_t most, const Context& = {});

// ---- packing ----

// A LOAD names its file and its tensor in four bits each.
inline constexpr std::uint32_t kTensorsPerFile = 16, kMaxPackedFiles = 16;

struct PackOptions {
  DType cast = DType::unknown;                      // as Options::cast
  std::vector<LossKind> allow{};                    // losses of tensors, as Options::allow
  bool replace = false;                             // files of an earlier packing
  std::function<bool(std::string_view)> without{};  // tensors to leave out, by name
};

struct Packed {
  std::string module, sidecar;  // paths
  std::vector<std::string> files;
  std::uint32_t tensors = 0;
  std::uint64_t bytes = 0;            // of the STB files
  std::vector<std::string> left_out;  // what of the model is not in the module: attributes, tokenizer, tensors
};

// Writes NAME.knu, NAME.khm.json and as many NAME-K.stb of at most 16 tensors as it takes into a folder, which is made
// where it is absent. The module loads each tensor, in the model's order, and returns the last handle. Every STB file
// is written, read back and published as a conversion is; sidecar and module come last. Error{misuse}: a file is there
// already. Error{malformed} "khlnary/pack-...": too many tensors, or one that STB cannot hold. [reads]
Packed pack(const Model&, const std::string& folder, const std::string& name, const PackOptions& = {},
            const Context& = {});

// ---- for people and programs ----

std::span<const Rule> module_rules() noexcept;

// The results as JSON, by docs/schemas/khlnary.json; `trace` is a JSON array or empty.
std::string to_json(std::string_view path, const Module&, const Result&, std::size_t first_values,
                    std::string_view trace = {}, const Context& = {});
std::string to_json(const Step&);
std::string to_json(std::string_view path, const Packed&);
// assemble and disassemble; an empty output: `text` is in the object itself.
std::string to_json(std::string_view path, std::string_view action, std::uint64_t words, std::string_view output,
                    std::string_view text = {});

}  // namespace weighbridge::khlnary
