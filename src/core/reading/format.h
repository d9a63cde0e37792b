// SPDX-License-Identifier: Apache-2.0
// The interface of a format: Format, a constexpr struct of facts and functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "core/reading/rules.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/hash.h"
#include "weighbridge/model.h"
#include "weighbridge/place.h"
#include "weighbridge/share.h"

namespace weighbridge::core {

struct NewHeader;
struct Inner;  // these in core/writing/layout.h
struct WriteLayout;
struct CorpusCase;  // what cases() of a format returns: defined for tests and fuzzers only

// What detection may look at, read once for all formats. For a folder, head and tail are empty.
struct Probe {
  std::span<const std::byte> head{};  // the first min(size, 4096) bytes
  std::span<const std::byte> tail{};  // the last min(size, 64) bytes; empty until no format has matched the head
  std::uint64_t size = 0;
  std::string_view extension{};            // lower case
  std::string_view name{};                 // of the file, without its folder; empty if it is one of several
  std::span<const std::string> listing{};  // of a folder: Place::list()
  std::span<const std::string> members{};  // of a zip archive: the first names in its directory
  bool folder = false;

  bool lists(std::string_view file) const;
};

// One file of a model in several files, read as a model of its own.
struct Member {
  std::string_view format;  // its name; empty if it has none, which has been reported
  Model model;              // what could be read
};

// The input of a format's walker.
struct ReadJob {
  const Place& place;
  const Context& context;
  Findings& findings;
  // Reads one file of the place in the format that its content has. If that is not `format`, sets only Member::format.
  // Throws Stop (from findings), Error{io}.
  using Load =
      std::function<Member(const std::shared_ptr<const Source>&, std::string_view format, const Context&, Findings&)>;
  Load load{};
};

// What a writer takes of Options besides what Holds says. A sentence about any other value has {} in its place.
struct Written {
  std::span<const std::string_view> versions{};
  std::string_view other_version{};
  bool (*quantizes)(std::string_view type) = nullptr;  // null: it quantizes nothing
  std::string_view other_quantization{};               // empty: it has no quantized layouts
};

struct Format {
  FormatInfo info;
  Written written{};
  // Whether the content shows this format: by magic numbers or a unique structure; for a folder, by its listing.
  bool (*matches)(const Probe&);
  // Of a format whose extension others use too: whether a file with it that does not match may be a damaged one. Null:
  // the extension is enough.
  bool (*plausible)(const Probe&) = nullptr;
  // Reads the structure of the file into the draft, whose first source is the file, and reports findings. Leaves
  // invalid tensors out. Throws Error{io}, Stop.
  void (*read)(const Source&, const Context&, Findings&, Draft&) = nullptr;
  // Replaces `read` for a model in several files: a folder, or a file for which `spans_files` is true. Null: the format
  // has none. The draft's first source is the opened file, if any.
  void (*read_files)(const ReadJob&, Draft&) = nullptr;
  // Whether this file lists other files that hold the tensors. Null: no file does.
  bool (*spans_files)(const Probe&) = nullptr;
  // Reports warnings about a file that was opened by itself, and marks a part of a model. Null: none.
  void (*warn_alone)(const Place&, const Context&, Findings&, Draft&) = nullptr;
  // File names by which a folder of this format is recognized, for messages; empty: the format has no folders.
  std::span<const std::string_view> marker_files{};
  // Checks the rules that read payload; findings are sorted by offset and rule. Null: there are none.
  void (*check_content)(const Model&, const Context&, Findings&) = nullptr;
  // The same for one of several processes that divide the parts. Null: the first one checks everything.
  void (*check_share)(const Model&, const Share&, const Context&, Findings&) = nullptr;
  // Whether one of these rules is an error: a conversion then checks them before it writes.
  bool content_can_fail = false;
  // The layout of the output. Null: read-only format. Reads no payload. The options have passed check_written(). Throws
  // Error{misuse} for those that exclude each other. Where it reads another file, the context's limits and hook count.
  WriteLayout (*layout)(const Model&, const Options&, const Context&) = nullptr;
  // Like `layout`, but as files of a folder (WriteLayout::folder), divided by ShardOptions::max_size, for a format that
  // has them inside. Null: none has.
  WriteLayout (*layout_files)(const Inner&, const Options&, const Context&) = nullptr;
  // The layout of `target` with the tensors of `more` after its own. Null: the container cannot append.
  WriteLayout (*append)(const Model& target, const Model& more, const Options&) = nullptr;
  // The header of the one file that `original` was opened from, for `edited`, a view of it under names and metadata of
  // its own: edited[i] is original[kept[i]], and `kept` ascends. The bytes of tensors that are left out stay in the
  // file. nullopt: that takes more than a new header. Null: the format has no such header, and an edit is a conversion.
  std::optional<NewHeader> (*new_header)(const Model& original, const Model& edited,
                                         std::span<const std::uint32_t> kept) = nullptr;
  // Keys of metadata that describe the structure of a file, so that no edit sets them; "split." means all that begin
  // so.
  std::span<const std::string_view> structural_keys{};
  // The content digest that the format's specification defines. Null: it defines none.
  Digest (*identity)(const Model&) = nullptr;
};

// Throws Error{misuse} for an encoding, digest, dtype, quantization or version that the format's writer lacks.
void check_written(const Format&, const Options&);

}  // namespace weighbridge::core
