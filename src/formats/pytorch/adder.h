// SPDX-License-Identifier: Apache-2.0
// Adds the tensors and attributes that the walk over a pickle finds to a draft. The container finds storages; this code
// finds where elements lie in them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/payload/elements.h"
#include "core/payload/payload.h"
#include "core/reading/findings.h"
#include "formats/pytorch/rebuild.h"
#include "formats/pytorch/values.h"
#include "weighbridge/context.h"
#include "weighbridge/value.h"
#include "wire/pickle.h"

namespace weighbridge::pytorch {

// The names of what a pickle holds: dictionaries, lists and the states of objects become names with dots; tensors are
// rebuilt, and plain values become Values. Owns which objects are looked into. A budget bounds the walk, since
// containers may repeat and contain one another.

// What the walk finds, in the order of the pickle. Names may be any bytes.
class Found {
 public:
  virtual ~Found() = default;
  virtual void tensor(std::string_view name, const Rebuilt&, wire::Pickle::Ref) = 0;
  virtual void value(std::string_view name, Value, wire::Pickle::Ref) = 0;
  // Attributes of a model follow that do not stand among the tensors.
  virtual void attributes() {}
  // An object of an unknown class, or a container within itself.
  virtual void opaque(std::string_view name, wire::Pickle::Ref, std::string_view why) = 0;
};

// `top` is the name of a value that has none.
WalkEnd walk(const wire::Pickle&, const wire::PickleInput&, const Limits&, std::string_view top, Found&);

// The class or function of an object, "module.name"; or what else the value is.
std::string spell_class(const wire::Pickle&, wire::Pickle::Ref);

// Where the bytes of a storage are.
struct Stored {
  std::uint64_t offset = 0, stored = 0, size = 0;
  Encoding encoding = Encoding::raw;
  const Rule* unreadable = nullptr;
  std::string found{};
};

// The storages of a container.
class Storages {
 public:
  virtual ~Storages() = default;
  // Null: no storage has this key, or it is broken, which has been reported.
  virtual Stored* find(const StorageId&) = 0;
};

// A pickle to be added.
struct Content {
  const wire::Pickle& pickle;
  const wire::PickleInput& input;
  // Where the input begins in the file; nullopt: it had to be decoded, and findings have the offset `at`.
  std::optional<std::uint64_t> base{};
  std::uint64_t at = 0;
  Order order = Order::little;  // of the storages
  std::string_view prefix{};    // put before all names
  std::string_view top{};       // the name of a value that has none
};

class Adder final : public Found {
 public:
  Adder(const Context& context, core::Findings& findings, core::Draft& draft)
      : context_(context), findings_(findings), draft_(draft) {}

  void add(const Content&, Storages&);
  // Reports tensors with the same name and drops all but the first. Call it once, after all pickles.
  void finish();

  void tensor(std::string_view name, const Rebuilt&, wire::Pickle::Ref) override;
  void value(std::string_view name, Value, wire::Pickle::Ref) override;
  void attributes() override { own_attributes_ = true; }
  void opaque(std::string_view name, wire::Pickle::Ref, std::string_view why) override;

 private:
  // A part as the draft takes it.
  struct Placed {
    Extent extent{};
    Encoding encoding = Encoding::raw;
    std::vector<std::uint64_t> shape{};
    std::vector<std::int64_t> strides{};
    DType dtype = DType::unknown;
    std::uint64_t size = 0;
    std::optional<core::Cut> cut{};
    const Rule* unreadable = nullptr;
    std::string why{};
  };

  std::string full_name(std::string_view name) const;
  std::uint64_t offset_of(wire::Pickle::Ref) const;
  void mark(std::uint32_t tensor, const Rule&, const core::At&, const core::Said& found, std::string_view why);
  void add_unsupported(std::string_view name, const Rebuilt&, const core::At&);
  std::optional<Placed> place(const Strided&, const core::At&);
  std::optional<Placed> in_storage(const Strided&, const core::At&, const Stored&, Placed, std::uint64_t begin,
                                   std::uint64_t length);
  void add_part(core::Draft&, std::string_view role, const Placed&) const;
  core::ElementsPtr elements_of(const Placed&) const;
  bool repeats(const Placed&, std::uint64_t size, const core::At&);
  void add_made(std::string_view name, const Placed&, DType, core::ElementsPtr);
  void add_turned(std::string_view name, const Rebuilt&, const core::At&);
  void add_quantized(std::string_view name, const Rebuilt&, const core::At&);
  void add_dense(std::string_view name, const Strided&, const core::At&);
  void add_sparse(std::string_view name, const Rebuilt&, const core::At&);
  void add_array(std::string_view name, const PickledArray&, const core::At&);
  void add_decoded_array(std::string_view name, const PickledArray&, std::uint64_t size, const core::At&);

  const Context& context_;
  core::Findings& findings_;
  core::Draft& draft_;
  const Content* content_ = nullptr;
  Storages* storages_ = nullptr;
  std::vector<std::uint64_t> at_;  // where each tensor is rebuilt
  std::uint64_t decoded_ = 0;      // bytes of arrays that are kept in memory
  bool own_attributes_ = false;
  std::uint64_t lacking_ = 0;  // parts of tensors whose storage is not in the file
  std::string first_lacking_;  // the storage of the first
};

}  // namespace weighbridge::pytorch
