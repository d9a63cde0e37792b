// SPDX-License-Identifier: Apache-2.0
// Pickles values and tensors like PyTorch's own pickler: protocol 2, with only the calls that its weights_only
// unpickler accepts.
#include "formats/pytorch/write_pickle.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "core/model/plan_text.h"
#include "core/model/values.h"
#include "formats/pytorch/layout.h"
#include "wire/json_reader.h"

namespace weighbridge::pytorch {
namespace {

using core::indexed;

// Items between two marks, as Python's pickler divides them.
constexpr std::size_t kBatch = 1000;

// Whether the elements of an array can become Python numbers.
bool has_numbers(DType type) noexcept {
  const DTypeKind kind = info(type).kind;
  return kind == DTypeKind::boolean || kind == DTypeKind::unsigned_integer || kind == DTypeKind::signed_integer ||
         type == DType::f32 || type == DType::f64;
}

// Visits the items of a list or an array as values.
template <class Visit> void for_each_item(const Value& value, Visit visit) {
  if (value.kind() == Value::Kind::texts) {
    for (std::size_t i = 0; i < value.texts()->size(); ++i) visit(Value::text(std::string((*value.texts())[i])));
  } else if (value.kind() == Value::Kind::numbers) {
    const std::size_t width = info(value.type()).bits / 8;
    for (std::size_t at = 0; at + width <= value.bytes().size(); at += width)
      visit(*core::number_at(value.type(), value.bytes().data() + at));
  } else {
    for (const Value& each : value.list()) visit(each);
  }
}

// Writes a number of fewer bits by its shortest decimal: 1e-05 stays 1e-05, and gives the same number when read with
// fewer bits.
double wide(const Value& value) {
  const auto decimal = value.type() == DType::f64 ? std::nullopt : wire::as_double(value.to_text());
  return decimal.value_or(*value.as_f64());
}

// How a value changes when it is written and read again.
enum class Kept : std::uint8_t {
  all,
  respelled,  // a list becomes an array, or the reverse; an unsigned number a signed one
  width,      // of numbers
  none,       // it cannot be written
};

bool is_key(std::string_view text) { return base::is_utf8(text) && text.size() <= kLongestKey; }

class Judge {
 public:
  Kept value(const Value& value, unsigned depth = 0) {
    if (depth >= kValueDepth) return no("it nests more than " + std::to_string(kValueDepth) + " deep");
    switch (value.kind()) {
      case Value::Kind::foreign: return no("it has no counterpart in Python");
      case Value::Kind::text:
        return base::is_utf8(*value.as_text()) && value.as_text()->size() <= UINT32_MAX ? Kept::all
                                                                                        : no("it is not UTF-8");
      case Value::Kind::integer: return integer(value.type(), value.as_i64().has_value());
      case Value::Kind::real: return value.type() == DType::f64 ? Kept::all : Kept::width;
      case Value::Kind::bytes: return value.bytes().size() <= UINT32_MAX / 2 ? Kept::all : no("it is too long");
      case Value::Kind::map: return map(value, depth);
      case Value::Kind::list: return list(value, depth);
      case Value::Kind::numbers:
        if (!has_numbers(value.type()))
          return no("Python has no numbers of the type " + std::string(name(value.type())));
        if (value.bytes().empty()) return Kept::respelled;
        if (value.type() == DType::i64) return Kept::all;
        return value.type() == DType::u64 || value.type() == DType::f64 ? Kept::respelled : Kept::width;
      case Value::Kind::texts: return texts(*value.texts());
      default: return Kept::all;
    }
  }
  std::string why{};

 private:
  Kept no(std::string reason) {
    why = std::move(reason);
    return Kept::none;
  }
  static Kept integer(DType type, bool is_signed) {
    if (type == DType::i64) return Kept::all;
    if (type == DType::u64) return is_signed ? Kept::respelled : Kept::all;
    return Kept::width;
  }
  Kept map(const Value& value, unsigned depth) {
    Kept worst = Kept::all;
    for (const auto& [key, each] : value.map()) {
      if (!is_key(key)) return no("a key in it is not UTF-8, or has more than 65,536 bytes");
      worst = std::max(worst, this->value(each, depth + 1));
    }
    return worst;
  }
  Kept list(const Value& value, unsigned depth) {
    const auto items = value.list();
    Kept worst = Kept::all;
    for (const Value& each : items) worst = std::max(worst, this->value(each, depth + 1));
    // Reading turns them into an array.
    const auto packs = [&](Value::Kind kind) {
      return !items.empty() && std::ranges::all_of(items, [&](const Value& each) { return each.kind() == kind; });
    };
    if (packs(Value::Kind::text) || packs(Value::Kind::integer)) worst = std::max(worst, Kept::respelled);
    return worst;
  }
  Kept texts(const Texts& all) {
    if (all.size() == 0) return Kept::respelled;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!base::is_utf8(all[i])) return no("a text in it is not UTF-8");
    return Kept::all;
  }
};

class Writer {
 public:
  std::string run(std::span<const OutPickled> tensors, std::span<const Value::Entry> attributes) {
    empty_ordered();
    batches(
        tensors.size(),
        [&](std::size_t i) {
          out_.text(tensors[i].name);
          tensor(tensors[i]);
        },
        [&] { out_.set(); });
    if (!attributes.empty()) state(attributes);
    return out_.take();
  }

 private:
  template <class Item, class End> void batches(std::size_t count, Item item, End end) {
    for (std::size_t first = 0; first < count; first += kBatch) {
      out_.begin();
      for (std::size_t i = first; i < std::min(count, first + kBatch); ++i) item(i);
      end();
    }
  }

  void empty_ordered() {
    out_.global("collections", "OrderedDict");
    out_.empty_tuple();
    out_.call();
  }

  void state(std::span<const Value::Entry> attributes) {
    std::vector<const Value::Entry*> own;
    const Value* metadata = nullptr;
    for (const Value::Entry& each : attributes) {
      if (each.first == kMetadata && each.second.kind() == Value::Kind::map)
        metadata = &each.second;
      else
        own.push_back(&each);
    }
    out_.empty_dict();
    out_.begin();
    if (metadata != nullptr) {
      out_.text(kMetadata);
      value(*metadata);
    }
    if (!own.empty()) {
      out_.text(kAttributes);
      out_.empty_dict();
      batches(
          own.size(),
          [&](std::size_t i) {
            out_.text(own[i]->first);
            value(own[i]->second);
          },
          [&] { out_.set(); });
    }
    out_.set();
    out_.build();
  }

  void value(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::boolean: return out_.boolean(*value.as_bool());
      case Value::Kind::integer:
        if (const auto small = value.as_i64()) return out_.integer(*small);
        return out_.integer(*value.as_u64());
      case Value::Kind::real: return out_.real(wide(value));
      case Value::Kind::text: return out_.text(*value.as_text());
      case Value::Kind::bytes:
        return out_.bytes({reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size()});
      case Value::Kind::map:
        out_.empty_dict();
        return batches(
            value.map().size(),
            [&](std::size_t i) {
              out_.text(value.map()[i].first);
              this->value(value.map()[i].second);
            },
            [&] { out_.set(); });
      case Value::Kind::list:
      case Value::Kind::numbers:
      case Value::Kind::texts: return list(value);
      default: return out_.none();
    }
  }

  void list(const Value& value) {
    out_.empty_list();
    std::size_t in_batch = 0;
    for_each_item(value, [&](const Value& each) {
      if (in_batch == 0) out_.begin();
      this->value(each);
      if (++in_batch < kBatch) return;
      out_.append();
      in_batch = 0;
    });
    if (in_batch > 0) out_.append();
  }

  void numbers(std::span<const std::uint64_t> all) {
    out_.begin();
    for (const std::uint64_t each : all) out_.integer(each);
    out_.tuple();
  }

  void tensor(const OutPickled& tensor) {
    if (tensor.layout == Layout::dense) return strided(tensor.parts[0]);
    out_.global("torch._utils", "_rebuild_sparse_tensor");
    out_.begin();
    out_.global("torch.serialization", "_get_layout");
    out_.begin();
    out_.common_text(tensor.layout == Layout::sparse_coo ? "torch.sparse_coo" : "torch.sparse_csr");
    out_.tuple();
    out_.call();
    out_.begin();
    for (const OutStrided& each : tensor.parts) strided(each);
    out_.global("torch", "Size");
    out_.begin();
    numbers(tensor.shape);
    out_.tuple();
    out_.call();
    // Whether the coordinates are sorted and unique, which only reading them would show.
    if (tensor.layout == Layout::sparse_coo) out_.boolean(false);
    out_.tuple();
    out_.tuple();
    out_.call();
  }

  void strided(const OutStrided& part) {
    const bool typed = !part.type->storage.empty();
    out_.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_.begin();
    storage(part);
    out_.integer(part.first);
    numbers(part.shape);
    numbers(part.strides);
    out_.boolean(false);
    empty_ordered();
    if (!typed) out_.global("torch", part.type->name);
    out_.tuple();
    out_.call();
  }

  void storage(const OutStrided& part) {
    const bool typed = !part.type->storage.empty();
    out_.begin();
    out_.common_text("storage");
    out_.global(typed ? "torch" : "torch.storage", typed ? part.type->storage : kUntyped.storage);
    out_.text(std::to_string(part.key));
    out_.common_text("cpu");
    out_.integer(typed ? part.storage_bytes / part.type->bytes : part.storage_bytes);
    out_.tuple();
    out_.persistent();
  }

  wire::PickleWriter out_;
};

}  // namespace

std::vector<std::uint64_t> row_major_strides(std::span<const std::uint64_t> shape) {
  std::vector<std::uint64_t> out(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) out[i - 1] = out[i] * std::max<std::uint64_t>(shape[i], 1);
  return out;
}

std::vector<Value::Entry> check_attributes(const Attributes& attributes, core::PlanItems plan_items) {
  std::vector<Value::Entry> out;
  out.reserve(attributes.size());
  for (const auto& [key, value] : attributes) {
    const std::string where = indexed("attributes", key);
    Judge judge;
    Kept kept = judge.value(value);
    if (kept != Kept::none && !is_key(key)) {
      kept = Kept::none;
      judge.why = "its key is not UTF-8, or has more than 65,536 bytes";
    }
    if (kept == Kept::none) {
      plan_items.lose(LossKind::attribute, where, value.to_text(), "dropped: " + judge.why);
      continue;
    }
    const std::string type = core::type_text(value);
    if (kept == Kept::width)
      plan_items.lose(LossKind::attribute_type, where, type, "numbers of Python, which have no width");
    if (kept == Kept::respelled) plan_items.change(LossKind::attribute_type, where, type, "the same in Python");
    out.emplace_back(key, value);
  }
  return out;
}

std::string write_pickle(std::span<const OutPickled> tensors, std::span<const Value::Entry> attributes) {
  return Writer().run(tensors, attributes);
}

}  // namespace weighbridge::pytorch
