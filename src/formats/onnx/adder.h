// SPDX-License-Identifier: Apache-2.0
// Adds the tensors that the walk over a model finds to a draft: dense ones, and sparse ones with their coordinates.
// Owns the checks of a tensor other than those of its elements, and the place of each tensor in the file.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/walk.h"

namespace weighbridge::onnx {

class Adder {
 public:
  Adder(Reading& reading, const Source& source, core::Findings& findings, core::Draft& draft, Wanted wanted)
      : reading_(reading),
        findings_(findings),
        draft_(draft),
        files_(source, draft),
        wanted_(wanted),
        held_(draft.sources()[0]) {}

  // Enters the message that contains the tensors added next, until leave().
  void enter(const Frame& message) { around_.push_back(message); }
  void leave() { around_.pop_back(); }

  void add(const TensorMessage& tensor, std::string name);
  // Adds a tensor that is not a TensorProto.
  void add(const Elements& elements, const std::string& name, Place at);
  void add_sparse(TensorMessage& shape, const TensorMessage& values, const TensorMessage& indices,
                  const std::string& name, std::uint64_t at);
  // Reports a name that is not UTF-8.
  bool check_name(const std::string& name, std::uint64_t at);
  // Reports tensors of one name, and drops all but the first. Call it once, after all others.
  Walked finish();

 private:
  void add_coordinates(const Elements& indices, const std::vector<std::uint64_t>& shape, Coordinates coordinates);
  void add_part(std::string_view role, const Elements& elements, Shape shape);
  void describe(std::uint32_t tensor, const TensorMessage& message);
  void collect(const Elements& elements, const std::string& name, std::uint64_t at);
  Place place(Place at);
  bool counted();

  Reading& reading_;
  core::Findings& findings_;
  core::Draft& draft_;
  ExternalFiles files_;
  const Wanted wanted_;
  const std::shared_ptr<const Source> held_;
  Walked out_;
  std::set<std::string, std::less<>> stated_;  // files of external data with a checksum
  std::vector<Frame> around_;
  bool too_many_ = false;
};

}  // namespace weighbridge::onnx
