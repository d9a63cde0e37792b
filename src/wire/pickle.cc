// SPDX-License-Identifier: Apache-2.0
// What values of a pickle are, once the machine (pickle_machine.cc) has made them.
#include "wire/pickle.h"

#include <bit>

namespace weighbridge::wire {

double Pickle::real(Ref r) const noexcept { return std::bit_cast<double>(nodes_[r].value); }

std::optional<std::string_view> Pickle::text(Ref r) const noexcept {
  const Text& text = texts_[nodes_[r].a()];
  if (text.kept == kNothing) return std::nullopt;
  return std::string_view(kept_).substr(text.kept, static_cast<std::size_t>(text.length));
}

std::uint64_t Pickle::length(Ref r) const noexcept { return texts_[nodes_[r].a()].length; }

std::optional<Pickle::Span> Pickle::span(Ref r) const noexcept {
  const Text& text = texts_[nodes_[r].a()];
  if (!text.there) return std::nullopt;
  return Span{text.offset, text.length};
}

std::span<const Pickle::Ref> Pickle::tuple(Ref r) const noexcept {
  return std::span(children_).subspan(nodes_[r].a(), nodes_[r].b());
}

std::uint32_t Pickle::first_batch(Ref r) const noexcept {
  return kind(r) == PickleKind::object ? objects_[nodes_[r].a()].first_batch : nodes_[r].a();
}

void Pickle::for_each(Ref r, const std::function<bool(Ref)>& visit) const {
  if (kind(r) == PickleKind::tuple) {
    for (const Ref item : tuple(r))
      if (!visit(item)) return;
    return;
  }
  for (std::uint32_t b = first_batch(r); b != kNothing; b = batches_[b].next)
    for (const Ref item : std::span(children_).subspan(batches_[b].first, batches_[b].count))
      if (!visit(item)) return;
}

std::vector<Pickle::Ref> Pickle::items(Ref r) const {
  std::vector<Ref> out;
  out.reserve(size(r));
  for_each(r, [&](Ref item) {
    out.push_back(item);
    return true;
  });
  return out;
}

std::size_t Pickle::size(Ref r) const noexcept {
  if (kind(r) == PickleKind::tuple) return nodes_[r].b();
  std::size_t out = 0;
  for (std::uint32_t b = first_batch(r); b != kNothing; b = batches_[b].next) out += batches_[b].count;
  return out;
}

bool Pickle::computed(Ref r) const noexcept {
  const Names& names = names_[nodes_[r].a()];
  return kind(names.module) != PickleKind::text || kind(names.name) != PickleKind::text || !text(names.module) ||
         !text(names.name);
}

std::string_view Pickle::module(Ref r) const noexcept {
  const Ref text_ref = names_[nodes_[r].a()].module;
  return kind(text_ref) == PickleKind::text ? text(text_ref).value_or("") : "";
}

std::string_view Pickle::name(Ref r) const noexcept {
  const Ref text_ref = names_[nodes_[r].a()].name;
  return kind(text_ref) == PickleKind::text ? text(text_ref).value_or("") : "";
}

std::optional<Pickle::Ref> Pickle::keywords(Ref r) const noexcept {
  const Ref out = objects_[nodes_[r].a()].keywords;
  return out == kNothing ? std::nullopt : std::optional(out);
}

std::optional<Pickle::Ref> Pickle::state(Ref r) const noexcept {
  const Ref out = objects_[nodes_[r].a()].state;
  return out == kNothing ? std::nullopt : std::optional(out);
}

}  // namespace weighbridge::wire
