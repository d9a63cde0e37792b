// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a byte of a file is: the structures, fields, tensors and elements around it, from the reader of its format.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// A named range of bytes in a file.
struct Span {
  /// What it is, from the outermost to the innermost.
  enum class Kind : std::uint8_t {
    file,       ///< all of it
    structure,  ///< a header, an index, a directory, a section
    entry,      ///< one of many in a structure: an entry of a directory, a member of an archive
    field,      ///< a value with a name, or values around it
    tensor,     ///< the stored bytes of a part of a tensor
    block,      ///< elements that are stored together as codes with scales
    element,    ///< one element, or the elements that share a byte
    padding,    ///< zeros that belong to nothing
    unclaimed   ///< other bytes that belong to nothing that could be read
  };
  Kind kind = Kind::file;    ///< of this span
  std::uint64_t offset = 0;  ///< of its first byte, in the file
  std::uint64_t size = 0;    ///< in bytes, at least 1
  std::string what;          ///< name of the structure, field or tensor, or index of the element: "[3, 5]"
  std::string value;         ///< its value as text, or what is known about it; may be empty
  std::uint64_t end() const noexcept { return offset + size; }  ///< past its last byte
  bool operator==(const Span&) const = default;
};
std::string_view name(Span::Kind) noexcept;  ///< "file", "structure", ...

/// What explain() found out about a range of a file.
struct Explanation {
  std::string_view format;   ///< "" if the content matches no format
  std::uint64_t size = 0;    ///< of the file
  std::uint64_t offset = 0;  ///< of the range in question
  std::uint64_t length = 0;  ///< of that range, at least 1
  /// Every span with bytes of the range: outer ones before inner ones, otherwise in the order of the file. The first is
  /// the file. They nest, except that tensors may share bytes.
  std::vector<Span> spans;
  std::uint64_t left_out = 0;     ///< spans beyond ExplainOptions::max_spans
  std::vector<Finding> findings;  ///< what is wrong in the innermost spans, or in the range
  std::vector<std::byte> bytes;   ///< of the range and around it: at most ExplainOptions::bytes
  std::uint64_t bytes_at = 0;     ///< offset of the first of `bytes`
};

/// Bounds of an explanation.
struct ExplainOptions {
  std::string format{};            ///< as OpenOptions::format
  std::uint64_t max_spans = 1000;  ///< spans
  std::uint64_t bytes = 64;        ///< of the file to return
};

/// [reads] Explains bytes [offset, offset + length) of one file. If its reader stops early, explains the file as far as
/// the reader got. Names elements, and reads their data, in ranges of at most 64 bytes. One byte at `size`, the end,
/// has the spans of the last byte. Throws Error{io} and Error{misuse} (a range that is empty or past the end, a
/// folder).
Explanation explain(const std::string& path, std::uint64_t offset, std::uint64_t length = 1, const Context& = {},
                    const ExplainOptions& = {});
/// [reads] Likewise, of any source.
Explanation explain(std::shared_ptr<const Source>, std::uint64_t offset, std::uint64_t length = 1, const Context& = {},
                    const ExplainOptions& = {});

/// Where something is stored.
struct Location {
  std::uint32_t source = 0;  ///< index into Model::sources()
  std::uint64_t offset = 0;  ///< of the first byte
  std::uint64_t length = 0;  ///< in bytes
  bool whole = false;        ///< the range is a whole compressed part, in which an element has no place of its own
};
/// Where `name` is stored: the name of a tensor, or of one of its elements, "w[3, 5]". For a sparse or quantized
/// tensor, this is its main part; for an element of a block, the block. Throws Error{misuse} if there is no such tensor
/// or element, and Error{unsupported} if it is not stored as bytes of a file.
Location locate(const Model&, std::string_view name);

}  // namespace weighbridge
