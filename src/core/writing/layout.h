// SPDX-License-Identifier: Apache-2.0
// WriteLayout, the output that a plan promises, a conversion writes and read-back compares; and NewHeader, that of an
// edit.
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

#include "core/payload/part_digest.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::core {

// One stored run of payload of the output, in file order.
struct Payload {
  enum class Form : std::uint8_t {
    stored,     // the part's stored bytes verbatim: encoding and digest stay what they are
    logical,    // Part::stream(), then `encoding`
    dense,      // Tensor::stream_dense(dtype), then `encoding`: casts, densified, dequantized
    generated,  // the output of `make` or `make_range`, then `encoding`: codes and scales, rows in another order
  };
  Form form = Form::logical;
  Encoding encoding = Encoding::raw;  // of the output
  PartDigest digest = PartDigest::none;
  DType dtype = DType::unknown;     // logical dtype of the output
  std::uint32_t part = 0;           // index within the tensor, for stored and logical
  Tensor tensor;                    // of the input
  std::uint32_t out_tensor = 0;     // index in WriteLayout::tensors
  std::string_view role;            // in the output; static text or text of the input model
  std::uint64_t logical_size = 0;   // bytes after decoding
  std::uint64_t stored_size = 0;    // bytes in the file; an upper bound if it is to be encoded
  std::uint32_t alignment = 1;      // padded with zero bytes before it to a multiple of this
  std::uint64_t preamble_size = 0;  // bytes between that padding and the payload, written by WriteLayout::make_preamble
  std::string stream_prefix{};      // bytes encoded before the payload's own, in the same stream
  // It holds the parts of all tensors whose OutTensor::view names it, so its place and size are not those of one part.
  // Then `form` is stored or made, the encoding raw, and `out_tensor` the first of these tensors.
  bool shared = false;
  // [reads] Passes logical_size bytes to the sink in order; the same bytes on each call.
  std::function<void(const Context&, const std::function<void(std::span<const std::byte>)>& sink)> make{};
  // [reads] Instead of `make`, callable from several threads at once: fills `out` with the bytes from `offset` on.
  std::function<void(const Context&, std::uint64_t offset, std::span<std::byte> out)> make_range{};
};

// Where the bytes of a tensor are in a payload that it shares.
struct OutView {
  std::size_t payload = 0;               // index in WriteLayout::payloads
  std::uint64_t offset = 0, length = 0;  // of its extent, in the payload
  std::vector<std::int64_t> strides{};   // of its one part; empty: row-major
};

// What a tensor of the output must look like when the output is reopened.
struct OutTensor {
  std::string_view name;  // text of the input model, or of WriteLayout::texts
  Tensor from;
  Layout layout = Layout::dense;
  DType dtype = DType::unknown;
  std::string_view type{};         // of its blocks; empty: the dtype says it
  bool same_shape = true;          // as `from`
  bool opaque = false;             // the output does not state the dtype, so reopening gives an unknown one
  std::uint32_t shared_parts = 0;  // parts that share bytes with another
  std::optional<OutView> view{};   // its one part, which counts as shared
};

struct Stored {
  std::uint64_t offset = 0, length = 0;
  std::string digest;  // "sha256:..." as the format writes it, or empty

  std::uint64_t end() const noexcept { return offset + length; }
};

// The output after head, payloads and tail are written.
struct WrittenFile {
  std::function<void(std::uint64_t offset, std::span<std::byte>)> read;
  std::function<void(std::uint64_t offset, std::span<const std::byte>)> write;  // within head or tail
  std::uint64_t size = 0;
};

// A small file beside the output that belongs to it and is published just before it.
struct Companion {
  std::string extension;  // replaces the output's own: ".khm.json"
  // Returns the companion's bytes; they may mention `name`, the output's file name. Throws Error{misuse} if it cannot
  // be written for that name. Null: an existing companion is removed, because it would not match the new file.
  std::function<std::string(std::string_view name)> text{};
};

// Tensors for another format to lay out.
struct Inner {
  Model model;
  std::string_view format;          // its name
  std::string_view stem = "model";  // of the names of its files
};

// A tensor that a writer cannot store, because this build does not know what its elements are.
struct Uninterpreted {
  std::uint32_t tensor = 0;  // of the model
  std::string from, why;     // what it is; the reason
};

struct OutFolder;
struct WriteLayout {
  std::vector<Item> blockers, losses, changes;
  // Each has a blocker. plan() then lays out the model without them, as losses.
  std::vector<Uninterpreted> uninterpreted{};
  std::shared_ptr<const Source> prefix_source{};  // append: the first prefix_length bytes are this file's
  std::uint64_t prefix_length = 0;
  std::string head;  // bytes at the start (after the prefix)
  std::vector<OutTensor> tensors;
  std::vector<Payload> payloads;
  // The Payload::preamble_size bytes before a payload, made once all are stored. Empty if no payload has any.
  std::function<std::string(std::size_t payload, const Stored&)> make_preamble{};
  // The bytes that follow the payloads, made once all are stored; stored[i] belongs to payloads[i]. May be empty.
  std::function<std::string(std::span<const Stored>)> tail{};
  // Writes what depends on all other bytes, such as checksums of the whole file. May be empty.
  std::function<void(const WrittenFile&)> finalize{};
  std::optional<Companion> companion{};
  std::optional<Model> base{};          // the model that the output is a changed copy of
  std::shared_ptr<OutFolder> folder{};  // null: one file
  bool repeats = false;                 // the bytes of its tensors are in other files of the folder
  bool lists_folder_files = false;      // the writer's losses list core::folder_files(); otherwise plan() adds them
  std::uint64_t size = 0;               // of the whole file: exact, or an upper bound when size_exact is false
  bool size_exact = true;
  std::shared_ptr<const void> owner{};  // keeps what the views above point to
};

struct OutFile {
  std::string name{};    // relative to the folder
  WriteLayout layout{};  // of this file; the losses and changes are in the layout of the whole output
};

// An output that is a folder: payload files, and small files whose bytes are here.
struct OutFolder {
  struct Small {
    std::string name;  // relative to the folder; at most one folder deep
    // nullopt, and nothing to copy: an existing file is removed, because it would not match the new folder
    std::optional<std::string> bytes;
    std::shared_ptr<const Source> copy_of{};  // in place of `bytes`: the whole of this file

    bool written() const { return bytes.has_value() || copy_of != nullptr; }
    std::uint64_t size() const { return copy_of ? copy_of->size() : bytes ? bytes->size() : 0; }
  };
  std::optional<Inner> inner{};     // in place of `payloads`, until registry::lay_out() makes them from it
  std::vector<OutFile> payloads{};  // at least one, in the order of publishing
  std::string_view format{};        // of each, as in OpenOptions::format
  std::vector<Small> small{};       // published after the payloads, in order
  std::string last{};               // the file to publish last; without it there is no model
  // Whether another file of the folder belongs to an older output of this kind and must be removed. Empty: none does.
  std::function<bool(std::string_view name)> stale{};
  // Checks the folder, opened before it is published. Throws Error if it is not what should have been written.
  std::function<void(const Model&)> check{};
};

// The layout itself for a single file, else those of the folder's payload files.
std::vector<const WriteLayout*> files_of(const WriteLayout& layout);

// A replacement header for a file whose payload does not change. An edit writes it in place, or copies the file without
// reading the payload. Bytes after the header may move together; bytes before it stay.
struct NewHeader {
  std::uint64_t offset = 0;            // of the header in the file
  std::uint64_t room = 0;              // bytes that the header takes now, up to the payload or to the end of the file
  std::uint64_t minimum = 0;           // bytes that the new one needs
  std::uint64_t step = 1;              // with payload after it, its length is a multiple of this, unless it is `room`
  std::uint64_t maximum = UINT64_MAX;  // that the format allows
  // The header in exactly `length` bytes, at least `minimum`; empty if it cannot have this length.
  std::function<std::string(std::uint64_t length)> make{};
  // If set, why dropping tensors needs more than a new header (it completes "because ..."). All other members are then
  // unset.
  std::string_view refusal{};
};

}  // namespace weighbridge::core
