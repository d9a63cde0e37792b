// SPDX-License-Identifier: Apache-2.0
/// \file
/// Joins several models into one. Owns OnDuplicate and join(). The result is a Model like any other: select from it
/// (view.h), convert it or hash it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge {

/// What join() does with a tensor, a key of metadata or a tokenizer that several models have.
enum class OnDuplicate : std::uint8_t {
  error,  ///< throws, unless it is metadata or a tokenizer with the same value in all
  first,  ///< takes the first one
  last    ///< takes the last one
};
std::string_view name(OnDuplicate) noexcept;                                   ///< "error", "first", "last"
std::optional<OnDuplicate> on_duplicate_from_name(std::string_view) noexcept;  ///< as name() spells it

/// Joins models: their tensors, in the order given, without reading their payload; their metadata, each key once; their
/// tokenizer. The formats may differ. plan() (convert.h) lists what `on_duplicate` left out. Files beside the weights
/// come from one folder: the last with OnDuplicate::last, otherwise the first. Error{misuse} "misuse/duplicate-tensor",
/// "misuse/duplicate-attribute", "misuse/duplicate-tokenizer", which name both files; Error{limit}: more tensors than
/// limits.tensors, or more bytes of headers than limits.header, in all of them together. Models of the same several
/// files are one: each part of a split model opens all of it.
Model join(std::span<const Model>, OnDuplicate = OnDuplicate::error, const Limits& = {});

}  // namespace weighbridge
