// SPDX-License-Identifier: Apache-2.0
// Views for the library's own use: of a model as it was first read, and of models that a writer takes.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"
#include "weighbridge/view.h"

namespace weighbridge::core {

// A model that a conversion makes of its input before it is laid out, and what plans say about it.
struct Derived {
  Model model;  // a view
  std::vector<Item> losses{}, changes{}, blockers{};
  std::vector<std::string> files{};  // of the source's folder whose tensors the model has now
  bool unseen = false;               // the model is the one given, because of the blockers
};

// The model without the tensors with these indices, which are ascending.
Model view_without(const Model&, std::span<const std::uint32_t> tensors);

// The keys that are meant: those themselves, and those that the globs among them match.
std::vector<std::string_view> keys_meant(const Attributes&, std::span<const std::string> keys);

// The model with the elements of matching tensors as another dtype of their size: OpenOptions::read_as. Adds the names
// of these tensors.
Model read_as(const Model&, std::span<const std::string> options, std::vector<std::string>& names);

// The models that content rules check for this one: the models that it was made of, with only those tensors that this
// one still has. The model itself if it is the model of a file.
std::vector<Model> members_of(const Model&);
// The losses and changes of making the model, for plans; a view has those of its model.
std::span<const Item> losses_of_making(const Model&) noexcept;
std::span<const Item> changes_of_making(const Model&) noexcept;
// The view `of` the model `from`, recorded as made from `others` too, so that their content rules apply to all of their
// tensors. `tensors`: for each tensor, the one of `from`; empty: the same tensors in the same order.
Model made_with(const Model& of, const Model& from, std::span<const Model> others, std::vector<Item> losses,
                std::vector<Item> changes, std::span<const std::uint32_t> tensors = {});
// What messages call a model: its file or folder, else "input " and the number.
std::string called(const Model&, std::size_t number);

// A model whose bytes stay those that were read first. For jobs that check the payload and then read it again: what
// passed the check is what they use, although the file may change meanwhile without a new size or time.

// A source over `of` that remembers a hash of each block at its first read. Reading a block again whose bytes have
// changed throws Error io/changed. Does not map.
std::shared_ptr<const Source> witnessed(std::shared_ptr<const Source> of);
// The same model over such sources.
Model witnessed(const Model&);

// Canonical conversions (Options::canonical): a view of a model that depends on its content alone. The writers do the
// rest: they do not copy stored bytes verbatim and do not share them.

// Tensors, parts, attributes and maps in them are in the order of the bytes of their names. Leaves out what is not
// content: unknown keys, which are losses, and the attributes that say when or by what the input was made, which are
// changes.
Derived canonical(const Model&);
// The same vocabulary with its tokens by id, its merges by rank and its special tokens by name.
Tokenizer canonical(Tokenizer);

// Dense tensors as sparse ones, and sparse ones in the other layout, for a writer that holds both.

// [reads] The model with its tensors in `layout`, sparse_csr or sparse_coo, as far as they fit it. An element is left
// out only if all of its bits are zero. Reads each dense tensor once, to count the others. The parts are made from the
// tensor when they are read, in bounded memory, except that an unsorted sparse_coo tensor is held to be sorted.
//
// A dense tensor becomes sparse if at most this share of its elements is not zero; density 0: if it then takes fewer
// bytes. `no_digest` is what becomes of a part's digest. Stays as it is: a tensor that shares bytes with another, one
// with unknown keys in a part, one of elements under 8 bits or without a zero, one whose rank does not fit.
Derived sparsified(const Model&, Layout layout, double density, std::string_view no_digest, const Context&);

}  // namespace weighbridge::core
