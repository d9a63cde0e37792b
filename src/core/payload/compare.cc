// SPDX-License-Identifier: Apache-2.0
// Walks two models in parallel. Compares payload by XXH3-128 of the logical bytes, so that neither is held in memory.
#include "core/payload/compare.h"

#include <algorithm>
#include <string>

#include "codecs/checksum.h"
#include "core/model/words.h"

namespace weighbridge::core {
namespace {

std::string at(std::string_view what, std::string_view key) {
  return std::string(what) + "[\"" + std::string(key) + "\"]";
}

// Types of two namespaces can have the same display name.
std::string_view type_of(const Tensor& tensor) {
  return tensor.block_type() ? tensor.block_type()->id : tensor.type_name();
}

class Comparison {
 public:
  explicit Comparison(const Context& context) : context_(context) {}

  void models(const Model& a, const Model& b) {
    entries(LossKind::attribute, "attributes", a.attributes(), b.attributes());
    entries(LossKind::extra, "extra", a.extra(), b.extra());
    if ((a.tokenizer() == nullptr) != (b.tokenizer() == nullptr) || (a.tokenizer() && *a.tokenizer() != *b.tokenizer()))
      add(LossKind::tokenizer, "tokenizer", a.tokenizer() ? "a tokenizer" : "", b.tokenizer() ? "a tokenizer" : "");
    for (std::uint32_t i = 0; i < a.size(); ++i) {
      const Tensor mine = a[i];
      if (const auto other = b.find(mine.name())) {
        tensors(mine, *other);
      } else {
        add(LossKind::name, at("tensors", mine.name()), std::string(mine.name()), "");
      }
    }
    for (std::uint32_t i = 0; i < b.size(); ++i)
      if (!a.find(b.name(i))) add(LossKind::name, at("tensors", b.name(i)), "", std::string(b.name(i)));
  }

  std::vector<Item> items;

 private:
  void add(LossKind kind, std::string subject, std::string from, std::string to) {
    items.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  void differ(LossKind kind, const std::string& subject, std::string_view from, std::string_view to) {
    if (from != to) add(kind, subject, std::string(from), std::string(to));
  }

  // Ignores the order. A value with the same text but another type is only a difference of kind attribute_type.
  void entries(LossKind kind, const std::string& where, const Attributes& a, const Attributes& b) {
    for (const auto& [key, value] : a) {
      const Value* other = b.find(key);
      if (other && *other == value) continue;
      const std::string from = value.to_text(), to = other ? other->to_text() : "";
      const bool type_only = kind == LossKind::attribute && other && from == to;
      add(type_only ? LossKind::attribute_type : kind, at(where, key), from, to);
    }
    for (const auto& [key, value] : b)
      if (!a.find(key)) add(kind, at(where, key), "", value.to_text());
  }

  void tensors(const Tensor& a, const Tensor& b) {
    const std::string where = at("tensors", a.name());
    differ(LossKind::layout, where, a.layout_name(), b.layout_name());
    differ(LossKind::dtype, where, type_of(a), type_of(b));
    differ(LossKind::dtype, where, name(a.dtype()), name(b.dtype()));
    differ(LossKind::unsupported, where, a.unsupported() ? a.unsupported()->message : "",
           b.unsupported() ? b.unsupported()->message : "");
    differ(LossKind::shape, where, a.has_shape() ? shape_text(a.shape()) : "",
           b.has_shape() ? shape_text(b.shape()) : "");
    entries(LossKind::attribute, where + ".attributes", a.attributes(), b.attributes());
    entries(LossKind::extra, where + ".extra", a.extra(), b.extra());
    for (const Part& mine : a.parts()) {
      if (const auto other = b.part(mine.role())) {
        parts(where + "." + at("parts", mine.role()), a.layout(), mine, *other);
      } else {
        add(LossKind::layout, where + "." + at("parts", mine.role()), std::string(mine.role()), "");
      }
    }
    for (const Part& more : b.parts())
      if (!a.part(more.role()))
        add(LossKind::layout, where + "." + at("parts", more.role()), "", std::string(more.role()));
  }

  void parts(const std::string& where, Layout layout, const Part& a, const Part& b) {
    differ(LossKind::dtype, where, a.dtype_name(), b.dtype_name());
    // Only dense parts have a shape that every container keeps.
    if (layout == Layout::dense && !std::ranges::equal(a.shape(), b.shape()))
      add(LossKind::shape, where, shape_text(a.shape()), shape_text(b.shape()));
    entries(LossKind::extra, where + ".extra", a.extra(), b.extra());
    if (a.size() != b.size()) {
      add(LossKind::precision, where, std::to_string(a.size()) + " bytes", std::to_string(b.size()) + " bytes");
      return;
    }
    const codecs::Hash128 from = hash(a), to = hash(b);
    if (from != to) add(LossKind::precision, where, "xxh3 " + codecs::to_hex(from), "xxh3 " + codecs::to_hex(to));
  }

  // Hashes stored bytes if this build cannot decode logical ones.
  codecs::Hash128 hash(const Part& part) const {
    codecs::Xxh3_128 state;
    try {
      part.stream(context_, [&](std::span<const std::byte> piece) {
        state.update(piece);
        return true;
      });
    } catch (const Error& error) {
      if (error.kind() != Kind::unsupported) throw;
      state.reset();
      state.update(part.stored().span);
    }
    return state.finish();
  }

  const Context& context_;
};

}  // namespace

std::vector<Item> compare(const Model& a, const Model& b, const Context& context) {
  Comparison comparison(context);
  comparison.models(a, b);
  return std::move(comparison.items);
}

}  // namespace weighbridge::core
