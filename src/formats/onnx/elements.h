// SPDX-License-Identifier: Apache-2.0
// Where the elements of a TensorProto are: in raw_data, in a field of numbers, in an external file.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/message.h"

namespace weighbridge::onnx {

// The files of external data, each opened once.
class ExternalFiles {
 public:
  ExternalFiles(const Source& model, core::Draft& draft) : place_(model.place()), draft_(draft) {}

  struct File {
    std::shared_ptr<const Source> source{};  // null: it cannot be opened; the reason is below
    std::uint32_t index = 0;                 // in the draft's sources
    const Rule* fault = nullptr;
    std::string why{};
    std::shared_ptr<const Finding> missing{};  // if the caller lists incomplete models
    bool remarked_alignment = false, remarked_names = false;
  };
  // [reads] The file at this path, relative to the model's folder. Throws Error{io} if the system fails.
  File& open(const std::string& location);

 private:
  const std::shared_ptr<const Place> place_;
  core::Draft& draft_;
  std::map<std::string, File, std::less<>> files_;
};

// A checksum that a file of external data should have.
struct StatedChecksum {
  std::shared_ptr<const Source> file;
  std::string location, digits, tensor;
  std::uint64_t at = 0;
};

struct Elements {
  DType dtype = DType::unknown;
  std::vector<std::uint64_t> shape{};
  std::uint64_t count = 0, size = 0;             // elements; their bytes
  Extent extent{};                               // of the stored bytes, unless `numbers` is set
  std::optional<NumberField> numbers{};          // from which the elements are computed
  std::shared_ptr<const Finding> unsupported{};  // why the elements cannot be read; errors have been reported
  bool absent = false;                           // unsupported, because they are not there; dtype and shape are known
  std::string type_name{};                       // if unsupported
  std::optional<StatedChecksum> stated{};
};
// nullopt: the tensor is broken, which has been reported.
std::optional<Elements> find_elements(Reading&, ExternalFiles&, const TensorMessage&, std::string_view name);

}  // namespace weighbridge::onnx
