// SPDX-License-Identifier: Apache-2.0
/// \file
/// Streams the elements of a tensor or writes them to a file, as `weighbridge extract` does.
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

#include "weighbridge/context.h"
#include "weighbridge/dtype.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// [reads] Rows [first, first + count) of the slowest dimension, dense, as an array of their own. Reads no more than
/// the encoding requires, and checks the limits before it allocates.
/// @throws Error misuse: rank 0, rows past the end, a dtype of less than a byte; Error limit.
Array read_rows(const Tensor& tensor, std::uint64_t first, std::uint64_t count, DType, const Context& = {});

/// Describes the extracted elements of one tensor.
struct Extracted {
  std::string tensor{};                ///< The tensor's name.
  std::string part{};                  ///< The role of the part; empty for the dense form.
  DType dtype = DType::unknown;        ///< Of the elements as written.
  std::vector<std::uint64_t> shape{};  ///< In elements, slowest dimension first.
  std::uint64_t bytes = 0;             ///< Logical bytes, without a .npy header.
  std::string scheme{};                ///< The scheme of which the elements are codes (scheme.h); empty for values.
  std::string output{};                ///< The path of the file; empty until there is one.
};

/// Options of Elements::write().
struct ElementsFile {
  bool npy = true;       ///< Write NumPy's header first; false: the bytes alone.
  bool replace = false;  ///< Replace an output that exists.
  /// Files that are being read. The output must not be one of them, through any link, and is published only if they
  /// have not changed since they were opened.
  std::span<const std::shared_ptr<const Source>> inputs{};
};

/// A selection of a tensor's elements: little-endian, row-major, decompressed. The Model must outlive it.
class Elements {
 public:
  /// The elements of one part, in its own dtype.
  /// @param role "data", "values", "scales", ...; empty: the main part.
  /// @throws Error misuse: the tensor has no such part, or `role` is empty and it is an unsupported tensor of several
  ///   parts; the message names those that it has.
  /// @throws Error unsupported: `role` is empty, and the tensor has no parts; the finding is Tensor::unsupported().
  static Elements part(const Tensor& tensor, std::string_view role = {});
  /// The dense form of the whole tensor.
  /// @param as the dtype to cast to; DType::unknown: the tensor's own.
  /// @throws Error unsupported: the tensor's elements cannot be read; the finding is Tensor::unsupported().
  static Elements dense(const Tensor& tensor, DType as = DType::unknown);

  /// Name, part, dtype and shape; bytes and output are not set yet.
  const Extracted& facts() const noexcept { return facts_; }
  /// In bytes, without a .npy header; nullopt if it overflows, as a hostile shape can make it.
  std::optional<std::uint64_t> size() const;
  /// The header of a .npy file of these elements.
  /// @throws Error misuse: NumPy has no type of that size (elements smaller than a byte).
  std::string npy_header() const;
  /// [reads] Delivers the elements in order, in pieces of at most 4 MiB; stops early when `sink` returns false.
  /// @throws Error limit: as check_output().
  void stream(const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;
  /// [reads] Writes the elements to a file that appears complete or not at all. Progress counts logical bytes.
  /// @throws Error misuse as npy_header() and OutputFile do; Error io; Error limit as check_output().
  Extracted write(const std::string& path, const ElementsFile&, const Context& = {}) const;

 private:
  friend void check_output(std::span<const Elements>, const Limits&);
  Elements(const Tensor&, std::optional<Part>, DType, Shape);

  Tensor tensor_;
  std::optional<Part> part_;  // none: dense
  Extracted facts_;
};

/// Checks that these elements together are in proportion to the data that is there: tensors may share bytes, strides
/// may repeat elements, and a sparse tensor does not store its zeros. Reads nothing.
/// @throws Error limit: "limit/output", with Limits::output as its hint.
void check_output(std::span<const Elements> elements, const Limits& limits);

}  // namespace weighbridge
