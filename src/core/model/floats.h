// SPDX-License-Identifier: Apache-2.0
// A tensor's elements as f32, for computation.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// In place if possible (as long as the Model lives), else a copy. Throws the same errors as Tensor::to_dense().
class Floats {
 public:
  explicit Floats(const Tensor& tensor) {
    if (tensor.why_no_view(DType::f32) == NoView::none) {
      values_ = tensor.as<float>();
    } else {
      copy_ = tensor.to_dense(DType::f32);
      values_ = {reinterpret_cast<const float*>(copy_.data.get()), base::to_size(copy_.size / sizeof(float))};
    }
  }
  explicit Floats(std::vector<float> values) : own_(std::move(values)), values_(own_) {}
  Floats(Floats&&) noexcept = default;
  Floats& operator=(Floats&&) noexcept = default;
  const float* data() const noexcept { return values_.data(); }
  std::size_t size() const noexcept { return values_.size(); }

 private:
  Array copy_;
  std::vector<float> own_;
  std::span<const float> values_;
};

}  // namespace weighbridge::core
