// SPDX-License-Identifier: Apache-2.0
/// \file
/// The elements of a tensor as a stream or as a file, which `weighbridge extract` writes. Leaves NumPy's header to
/// npy.h and the file that appears whole or not at all to output.h.
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

/// What was extracted of one tensor.
struct Extracted {
  std::string tensor{};                ///< The tensor's name.
  std::string part{};                  ///< The role of the part; empty for the dense form.
  DType dtype = DType::unknown;        ///< Of the elements as they were written.
  std::vector<std::uint64_t> shape{};  ///< In elements, slowest dimension first.
  std::uint64_t bytes = 0;             ///< Logical bytes, a .npy header not counted.
  std::string output{};                ///< The path of the file; empty as long as there is none.
};

/// How Elements::write makes its file.
struct ElementsFile {
  bool npy = true;       ///< NumPy's header in front; false: the bytes alone.
  bool replace = false;  ///< An output that exists.
  /// Files that are being read: the output is none of them, by any link, and gets its name only when they are still as
  /// they were when they were opened.
  std::span<const std::shared_ptr<const Source>> inputs{};
};

/// Which elements of a tensor are meant, and as what. Little-endian, row-major, decompressed. The Model must outlive
/// it.
class Elements {
 public:
  /// Those of one part, as they are.
  /// @param role "data", "values", "scales", ...; empty: the main part.
  /// @throws Error misuse: the tensor has no such part; the sentence names those that it has.
  static Elements part(const Tensor& tensor, std::string_view role = {});
  /// The dense form of the whole tensor.
  /// @param as the dtype to cast to; DType::unknown: the tensor's own.
  /// @throws Error unsupported: the tensor has no elements to be had, and its own finding says why.
  static Elements dense(const Tensor& tensor, DType as = DType::unknown);

  /// Name, part, dtype and shape; neither bytes nor output yet.
  const Extracted& facts() const noexcept { return facts_; }
  /// In bytes, a .npy header not counted; none where a hostile shape names more than there can be.
  std::optional<std::uint64_t> size() const;
  /// What a .npy file of them begins with.
  /// @throws Error misuse: NumPy has no type of that size (elements packed below the byte).
  std::string npy_header() const;
  /// [reads] In order, in pieces of at most 4 MiB; stops early when `sink` returns false.
  void stream(const Context&, const std::function<bool(std::span<const std::byte>)>& sink) const;
  /// [reads] Writes them into a file that appears whole or not at all. Progress counts logical bytes.
  /// @throws Error misuse as npy_header() and OutputFile say; Error io.
  Extracted write(const std::string& path, const ElementsFile&, const Context& = {}) const;

 private:
  Elements(const Tensor&, std::optional<Part>, DType, Shape);

  Tensor tensor_;
  std::optional<Part> part_;  // none: dense
  Extracted facts_;
};

}  // namespace weighbridge
