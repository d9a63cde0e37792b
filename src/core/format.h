// SPDX-License-Identifier: Apache-2.0
// What a format is to the rest of the program: a constexpr struct of facts and functions. Owns Format, and the write
// side's WriteLayout, the one object that a plan promises, a conversion writes and read-back compares.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/draft.h"
#include "core/findings.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/model.h"
#include "weighbridge/place.h"

namespace weighbridge::core {

// What detection may look at, read once for all formats. Of a folder head and tail are empty.
struct Glance {
  std::span<const std::byte> head{};  // the first min(size, 4096) bytes
  std::span<const std::byte> tail{};  // the last min(size, 64) bytes
  std::uint64_t size = 0;
  std::string_view extension{};            // lower case
  std::string_view name{};                 // of the file, without its folder; empty where it is one of several
  std::span<const std::string> listing{};  // of a folder: Place::list()
  bool folder = false;

  bool lists(std::string_view file) const { return std::ranges::binary_search(listing, file); }
};

// One file of several, read as a model of its own.
struct Member {
  std::string_view format;  // its name; empty: of none, which has been reported
  Model model;              // what could be read
};

// What a format's walker is given.
struct Opening {
  const Place& place;
  const Context& context;
  Findings& findings;
  // Reads one file of the place by whichever format its content shows. One of another format than `format` is named and
  // not read. Throws Stop as the findings say, Error{io}.
  using Load =
      std::function<Member(const std::shared_ptr<const Source>&, std::string_view format, const Context&, Findings&)>;
  Load load{};
};

enum class PartDigest : std::uint8_t { none, sha256, crc32c };

// One stored run of payload of the output, in file order.
struct Payload {
  enum class Form : std::uint8_t {
    stored,   // the part's stored bytes verbatim: encoding and digest stay what they are
    logical,  // Part::stream(), then `encoding`
    dense,    // Tensor::stream_dense(dtype), then `encoding`: casts, densified, dequantized
    made,     // `make`, as it stands: codes and scales, rows in another order. As long in the file as logically
  };
  Form form = Form::logical;
  Encoding encoding = Encoding::raw;  // of the output
  PartDigest digest = PartDigest::none;
  DType dtype = DType::unknown;    // logical dtype of the output
  std::uint32_t part = 0;          // index within the tensor, for stored and logical
  Tensor tensor;                   // of the input
  std::uint32_t out_tensor = 0;    // index in WriteLayout::tensors
  std::string_view role;           // in the output; static text or text of the input model
  std::uint64_t logical_size = 0;  // bytes once decoded
  std::uint64_t stored_size = 0;   // bytes in the file; with an encoding to be done, an upper bound
  std::uint32_t alignment = 1;     // zero bytes go before it up to a multiple of this
  // [reads] Gives logical_size bytes to the sink, in order; the same each time it is called.
  std::function<void(const Context&, const std::function<void(std::span<const std::byte>)>& sink)> make{};
};

// What one tensor of the output must look like when it is opened again.
struct OutTensor {
  std::string_view name;  // text of the input model, or of WriteLayout::texts
  Tensor from;
  Layout layout = Layout::dense;
  DType dtype = DType::unknown;
  bool same_shape = true;          // as `from`
  std::uint32_t shared_parts = 0;  // whose bytes are those of another
};

struct Stored {
  std::uint64_t offset = 0, length = 0;
  std::string digest;  // "sha256:..." as the format spells it, or empty
};

// The output once head, payloads and tail stand in it.
struct WrittenFile {
  std::function<void(std::uint64_t offset, std::span<std::byte>)> read;
  std::function<void(std::uint64_t offset, std::span<const std::byte>)> write;  // within head or tail
  std::uint64_t size = 0;
};

// A small file that belongs to the output and lies beside it, published just before it.
struct Companion {
  std::string extension;  // takes the place of the output's own: ".khm.json"
  // Its bytes, for an output of this file name, which they may name. Throws Error{misuse} where they cannot.
  // Null: there must be no companion, since an old one would speak of the new file.
  std::function<std::string(std::string_view name)> text{};
};

// Tensors that another format is to lay out.
struct Inner {
  Model model;
  std::string_view format;  // its name
};

// A tensor that a writer cannot carry because nobody here can interpret its elements.
struct Uninterpreted {
  std::uint32_t tensor = 0;  // of the model
  std::string from, why;     // what it is; the reason
};

struct OutFolder;
struct WriteLayout {
  std::vector<Item> blockers, losses, changes;
  // Each has its blocker. plan() lays out the model without them, where leaving them out is a loss.
  std::vector<Uninterpreted> uninterpreted{};
  std::shared_ptr<const Source> prefix_source{};  // append: the first prefix_length bytes are this file's
  std::uint64_t prefix_length = 0;
  std::string head;  // bytes at the start (after the prefix)
  std::vector<OutTensor> tensors;
  std::vector<Payload> payloads;
  // The bytes that follow the payloads, made once all are stored; stored[i] belongs to payloads[i]. May be empty.
  std::function<std::string(std::span<const Stored>)> tail{};
  // Puts in what depends on all other bytes: checksums of the whole file. May be empty.
  std::function<void(const WrittenFile&)> seal{};
  std::optional<Companion> companion{};
  std::shared_ptr<OutFolder> folder{};  // null: one file
  std::uint64_t size = 0;               // of the whole file: exact, or an upper bound when size_exact is false
  bool size_exact = true;
  std::shared_ptr<const void> keep{};  // whatever the views above point into
};

struct OutFile {
  std::string name{};    // relative to the folder
  WriteLayout layout{};  // of this file alone; what it costs stands in that of the whole
};

// An output that is a folder: files of payload, and small ones that are whole here.
struct OutFolder {
  struct Small {
    std::string name;                  // relative to the folder; at most one folder deep
    std::optional<std::string> bytes;  // none: the file must go, since an old one would speak of the new folder
  };
  std::optional<Inner> inner{};     // in place of `payloads`, until registry::lay_out() has made them of it
  std::vector<OutFile> payloads{};  // at least one, in the order of publishing
  std::string_view format{};        // of each, as OpenOptions::format takes it
  std::vector<Small> small{};       // published behind the payloads, in order
  std::string last{};               // the one of all these that is published last: without it there is no model
  // Other files of the folder that must go, since they are of an older output of this kind. Null: there are none.
  bool (*stale)(std::string_view name) = nullptr;
  // What the folder opens as before it has its name. Throws Error when that is not what was to be written.
  std::function<void(const Model&)> check{};
};

// Of an output that is one file that file's layout, else those of the folder's files of payload.
inline std::vector<const WriteLayout*> files_of(const WriteLayout& layout) {
  if (!layout.folder) return {&layout};
  std::vector<const WriteLayout*> out;
  for (const OutFile& file : layout.folder->payloads) out.push_back(&file.layout);
  return out;
}

struct Format {
  FormatInfo info;
  // The content says that it is this format: magic numbers, or a shape that nothing else has; of a folder its listing.
  bool (*matches)(const Glance&);
  // Walks the structure of the file into the draft, with the file already added as the first source, and reports.
  // Leaves broken tensors out of the draft. Throws Error{io}, Stop.
  void (*read)(const Source&, const Context&, Findings&, Draft&);
  // Instead of `read`, for what lies in several files: a folder, or a file that `spreads` says of. Null: there is no
  // such thing. The draft's first source is the file that was opened, if it was one.
  void (*read_files)(const Opening&, Draft&) = nullptr;
  // This file lists others that hold the tensors. Null: no file does.
  bool (*spreads)(const Glance&) = nullptr;
  // Reports what is worth saying of a file that was opened by itself. Null: nothing.
  void (*remark)(const Place&, Findings&) = nullptr;
  // Names of files by which a folder is known to be of this format, for people; empty: no folder is.
  std::span<const std::string_view> signs{};
  // Content rules, which read payload: reported sorted by offset and rule. Null: there are none.
  void (*check_content)(const Model&, const Context&, Findings&);
  // One of them is an error: a conversion checks them before it writes.
  bool content_can_fail = false;
  // What the file would be. Null: read only. Reads no payload. Throws Error{misuse} for options the format lacks.
  WriteLayout (*layout)(const Model&, const Options&);
  // As layout, but as files of a folder (WriteLayout::folder), which ShardOptions::max_size divides. Null: the format
  // is not written in several files.
  WriteLayout (*layout_files)(const Model&, const Options&) = nullptr;
  // What `target` with the tensors of `more` behind its own would be. Null: the container cannot append.
  WriteLayout (*append)(const Model& target, const Model& more, const Options&);
};

}  // namespace weighbridge::core
