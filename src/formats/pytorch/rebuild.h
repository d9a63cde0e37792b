// SPDX-License-Identifier: Apache-2.0
// Finds the tensors that a pickle would rebuild. Knows the functions of torch._utils and torch._tensor, their
// arguments, and the ids of storages, but not where the bytes of a storage are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pytorch/layout.h"
#include "weighbridge/formats.h"
#include "wire/pickle.h"

namespace weighbridge::pytorch {

// A storage, as its id in a pickle describes it.
struct StorageId {
  std::string key{};
  const ElementType* type = nullptr;
  std::uint64_t count = 0;  // of elements of that type
  // Set for a view of another storage, which exist in the form before 1.6: it begins at this element and has `count`
  // elements.
  std::uint64_t first = 0;
  std::uint64_t all = 0;  // elements of the storage that is not a view
};

// Elements of a storage, or bytes that are in the pickle itself.
struct Strided {
  StorageId storage{};
  std::uint64_t first = 0;  // element, of `type`
  const ElementType* type = nullptr;
  std::vector<std::uint64_t> shape{};
  std::vector<std::int64_t> strides{};  // in elements; empty: row-major
};

// An array of NumPy in the pickle.
struct PickledArray {
  wire::Pickle::Ref bytes = 0;  // bytes, text of Latin-1 in UTF-8, or an object whose data they are
  DType dtype = DType::unknown;
  bool big = false, fortran = false;
  std::vector<std::uint64_t> shape{};
};

// How the codes of a quantized tensor become values: (code - zero) * scale, with one of each for the whole tensor, or
// for each index of an axis.
struct Quantizer {
  double scale = 0;
  std::int64_t zero = 0;
  std::optional<Strided> scales{}, zeros{};
  std::size_t axis = 0;
};

struct Rebuilt {
  enum class Form : std::uint8_t { strided, coo, csr, array, nothing };
  Form form = Form::nothing;
  Strided data{};                  // the values of a sparse one
  std::vector<Strided> indices{};  // coordinates; or row bounds and columns
  PickledArray array{};
  bool conjugated = false, negated = false;  // views, of which `data` has the elements before that
  std::optional<Quantizer> quantizer{};      // `data` has codes
  std::vector<std::uint64_t> shape{};        // of the tensor, if `data` does not say it
  std::string type_name{};                   // of a type that this library does not have
  // Why the tensor is invalid (an error), or why it cannot be read (unsupported).
  const Rule* fault = nullptr;
  std::string why{};
};

// nullopt: the value is not a tensor.
std::optional<Rebuilt> rebuild(const wire::Pickle&, wire::Pickle::Ref);
// nullopt: it is not the id of a storage.
std::optional<StorageId> storage_id(const wire::Pickle&, wire::Pickle::Ref);
// The type that a value such as torch.float32 names; null if it names none.
const ElementType* dtype_in(const wire::Pickle&, wire::Pickle::Ref);
// Whether a value is this global.
bool is_global(const wire::Pickle&, wire::Pickle::Ref, std::string_view module, std::string_view name);
// The bytes that a value stands for: bytes themselves, a text that _codecs.encode would encode as Latin-1, or an empty
// bytes(). The node of the bytes or the text.
std::optional<wire::Pickle::Ref> bytes_in(const wire::Pickle&, wire::Pickle::Ref);

}  // namespace weighbridge::pytorch
