// SPDX-License-Identifier: Apache-2.0
// Views for the library's own use.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/view.h"

namespace weighbridge::core {

// The model without the tensors with these indices, which are ascending.
Model view_without(const Model&, std::span<const std::uint32_t> tensors);

// The models that this one was made of, joined ones with those of their tensors that are in this one: what content
// rules check. The model itself if it is a file's own.
std::vector<Model> members_of(const Model&);
// What was left out or changed when the model was made, for plans; also for a view.
std::span<const Item> losses_of_making(const Model&) noexcept;
std::span<const Item> changes_of_making(const Model&) noexcept;
// The view `of` the model `from`, whose tensors correspond, as made with the help of `others`: the content rules of
// these apply to all of their tensors.
Model made_with(const Model& of, const Model& from, std::span<const Model> others, std::vector<Item> losses,
                std::vector<Item> changes);
// What messages call a model: its file or folder, else "input " and the number.
std::string called(const Model&, std::size_t number);

}  // namespace weighbridge::core
