// SPDX-License-Identifier: Apache-2.0
// Reads the calls that rebuild tensors.
#include "formats/pytorch/rebuild.h"

#include <utility>

#include "base/checked.h"
#include "core/archive/pickle_arrays.h"
#include "core/model/words.h"
#include "formats/pytorch/format.h"

namespace weighbridge::pytorch {
namespace {

using wire::Pickle, wire::PickleKind;
using Ref = Pickle::Ref;

// Wrappers around a tensor (parameters, classes) nest at most this deep: they are read by recursion, and real ones
// have a few.
constexpr unsigned kDeepest = 16;

using core::pickled_count, core::pickled_text;

// The module and name of a class or function, or empty texts.
struct Called {
  std::string_view module{}, name{};
};
Called called(const Pickle& pickle, Ref ref) {
  if (pickle.kind(ref) != PickleKind::global) return {};
  return {pickle.module(ref), pickle.name(ref)};
}

class Reader {
 public:
  explicit Reader(const Pickle& pickle) : pickle_(pickle) {}

  std::optional<StorageId> id(Ref ref) {
    Rebuilt ignored;
    return storage(ref, ignored);
  }

  std::optional<Rebuilt> value(Ref ref, unsigned depth = 0) {
    if (pickle_.kind(ref) == PickleKind::persistent) return storage_itself(ref);
    if (pickle_.kind(ref) != PickleKind::object || pickle_.kind(pickle_.arguments(ref)) != PickleKind::tuple)
      return std::nullopt;
    if (const auto array = numpy_array(ref)) return array;
    if (pickle_.made_by_new(ref)) return std::nullopt;
    return call(pickle_.callee(ref), pickle_.tuple(pickle_.arguments(ref)), depth);
  }

 private:
  static Rebuilt fault(const Rule& rule, std::string why = {}) {
    Rebuilt out;
    out.fault = &rule;
    out.why = std::move(why);
    return out;
  }

  std::optional<Rebuilt> call(Ref callee, std::span<const Ref> arguments, unsigned depth) {
    const auto [module, name] = called(pickle_, callee);
    if (module == "torch._utils") {
      if (name == "_rebuild_tensor" || name == "_rebuild_tensor_v2" || name == "_rebuild_tensor_v3")
        return tensor(name, arguments);
      if (name == "_rebuild_parameter" || name == "_rebuild_parameter_with_state" ||
          name == "_rebuild_device_tensor_from_cpu_tensor")
        return inside(arguments, depth);
      if (name == "_rebuild_qtensor") return quantized(arguments);
      if (name == "_rebuild_sparse_tensor" || name == "_rebuild_sparse_csr_tensor") return sparse(arguments, depth);
      if (name == "_rebuild_meta_tensor_no_storage") return meta(arguments);
      if (name == "_rebuild_wrapper_subclass") return subclass(arguments);
      if (name == "_rebuild_device_tensor_from_numpy") return inside(arguments, depth);
    }
    if ((module == "torch._tensor" || module == "torch") &&
        (name == "_rebuild_from_type_v2" || name == "_rebuild_from_type")) {
      if (arguments.size() < 3 || pickle_.kind(arguments[2]) != PickleKind::tuple || depth >= kDeepest)
        return fault(rules::kTensorArguments, "_rebuild_from_type_v2");
      return call(arguments[0], pickle_.tuple(arguments[2]), depth + 1);
    }
    return std::nullopt;
  }

  // The first argument is the tensor.
  std::optional<Rebuilt> inside(std::span<const Ref> arguments, unsigned depth) {
    std::optional<Rebuilt> out;
    if (!arguments.empty() && depth < kDeepest) out = value(arguments[0], depth + 1);
    if (!out) return fault(rules::kTensorArguments, "there is no tensor inside");
    return out;
  }

  // ('storage', class, key, location, count[, view]) Sets `problem` if it returns nullopt.
  std::optional<StorageId> storage(Ref ref, Rebuilt& problem) {
    const auto bad = [&](const Rule& rule, std::string why) {
      problem = fault(rule, std::move(why));
      return std::nullopt;
    };
    if (pickle_.kind(ref) != PickleKind::persistent) return bad(rules::kStorageId, "it is not a persistent id");
    const Ref id = pickle_.persistent_id(ref);
    if (pickle_.kind(id) != PickleKind::tuple) return bad(rules::kStorageId, "its id is not a tuple");
    const auto parts = pickle_.tuple(id);
    if (parts.size() < 5 || parts.size() > 6 || pickled_text(pickle_, parts[0]) != "storage")
      return bad(rules::kStorageId, "its id is not that of a storage");
    StorageId out;
    const auto key = pickled_text(pickle_, parts[2]);
    const auto count = pickled_count(pickle_, parts[4]);
    if (!key || !count) return bad(rules::kStorageId, "its key is not text, or its count is not a whole number");
    out.key = *key;
    out.count = out.all = *count;
    const auto [module, name] = called(pickle_, parts[1]);
    if (module.starts_with("torch")) out.type = type_of_storage(name);
    if (out.type == nullptr)
      return bad(rules::kStorageType, core::excerpt(std::string(module) + "." + std::string(name), 80));
    if (parts.size() == 6 && pickle_.kind(parts[5]) == PickleKind::tuple) {
      const auto view = pickle_.tuple(parts[5]);
      const auto first = view.size() == 3 ? pickled_count(pickle_, view[1]) : std::nullopt;
      const auto size = view.size() == 3 ? pickled_count(pickle_, view[2]) : std::nullopt;
      if (!first || !size || !base::fits(*first, *size, out.count))
        return bad(rules::kStorageId, "a view of a storage that lies outside of it");
      out.first = *first;
      out.count = *size;
    }
    return out;
  }

  Rebuilt storage_itself(Ref ref) {
    Rebuilt out;
    const auto found = storage(ref, out);
    if (!found) return out;
    out.form = Rebuilt::Form::strided;
    out.data.storage = *found;
    out.data.type = found->type;
    out.data.shape = {found->count};
    return check_type(std::move(out));
  }

  // (storage, first, shape, strides, requires_grad, hooks[, dtype][, metadata])
  Rebuilt tensor(std::string_view name, std::span<const Ref> arguments) {
    const bool typed = name.ends_with("_v3");
    const std::size_t minimum = typed ? 7 : name.ends_with("_v2") ? 6 : 4;
    if (arguments.size() < minimum) return fault(rules::kTensorArguments, std::string(name));
    Rebuilt out = strided(arguments);
    if (out.fault != nullptr) return out;
    if (typed) {
      out.data.type = dtype_in(pickle_, arguments[6]);
      if (out.data.type == nullptr) {
        const auto [module, type] = called(pickle_, arguments[6]);
        out.type_name = core::excerpt(type);
        out.form = Rebuilt::Form::nothing;
        out.shape = std::move(out.data.shape);
        return unsupported(std::move(out), rules::kUnknownDtype, core::excerpt(type));
      }
    }
    const std::size_t metadata = typed ? 7 : 6;
    if (arguments.size() > metadata && !read_turns(arguments[metadata], out))
      return unsupported(std::move(out), rules::kConjugate);
    return check_type(std::move(out));
  }

  Rebuilt strided(std::span<const Ref> arguments) {
    Rebuilt out;
    const auto found = storage(arguments[0], out);
    if (!found) {
      // Tensors that cannot be read are still listed with their shape.
      if (out.fault->severity == Severity::unsupported)
        if (auto shape = core::pickled_counts(pickle_, arguments[2])) out.shape = *std::move(shape);
      return out;
    }
    const auto first = pickled_count(pickle_, arguments[1]);
    auto shape = core::pickled_counts(pickle_, arguments[2]);
    const auto strides = core::pickled_counts(pickle_, arguments[3]);
    if (!first || !shape || !strides || shape->size() != strides->size())
      return fault(rules::kTensorArguments, "its offset, shape and strides");
    out.form = Rebuilt::Form::strided;
    out.data.storage = *found;
    out.data.type = found->type;
    out.data.first = *first;
    out.data.shape = *std::move(shape);
    out.data.strides.assign(strides->begin(), strides->end());
    return out;
  }

  // Whether the tensor is conjugated or negated. PyTorch sets these bits if the keys exist, whatever the values, and
  // reads only a dict. False: its values cannot be told.
  bool read_turns(Ref metadata, Rebuilt& out) const {
    if (pickle_.kind(metadata) == PickleKind::none) return true;
    if (pickle_.kind(metadata) != PickleKind::dict) return false;
    out.conjugated = core::pickled_member(pickle_, metadata, "conj").has_value();
    out.negated = core::pickled_member(pickle_, metadata, "neg").has_value();
    if (!out.conjugated && !out.negated) return true;
    const DTypeInfo& type = info(out.data.type->dtype);
    // The types of 8 bits with one zero have no negative zero.
    const bool has_sign = type.kind == DTypeKind::complex || type.kind == DTypeKind::signed_integer ||
                          (type.kind == DTypeKind::real && type.bits >= 16);
    return has_sign && (!out.conjugated || type.kind == DTypeKind::complex);
  }

  static Rebuilt unsupported(Rebuilt out, const Rule& rule, std::string why = {}) {
    out.fault = &rule;
    out.why = std::move(why);
    if (out.type_name.empty() && out.data.type != nullptr) out.type_name = out.data.type->name;
    return out;
  }
  static Rebuilt check_type(Rebuilt out) {
    if (out.data.type->dtype != DType::unknown) return out;
    const bool quantized = out.data.type->quantized;
    std::string name(out.data.type->name);
    return unsupported(std::move(out), quantized ? rules::kQuantized : rules::kUnknownDtype, std::move(name));
  }

  // (storage, first, shape, strides, (scheme, ...), requires_grad, hooks)
  Rebuilt quantized(std::span<const Ref> arguments) {
    if (arguments.size() < 6) return fault(rules::kTensorArguments, "_rebuild_qtensor");
    Rebuilt out = strided(arguments);
    if (out.fault != nullptr) return out;
    const auto how =
        pickle_.kind(arguments[4]) == PickleKind::tuple ? pickle_.tuple(arguments[4]) : std::span<const Ref>();
    const std::string_view scheme = how.empty() ? std::string_view() : called(pickle_, how[0]).name;
    Quantizer quantizer;
    if (out.data.type->codes == DType::unknown || !read_quantizer(scheme, how, out.data.shape, quantizer))
      return unsupported(std::move(out), rules::kQuantized, core::excerpt(scheme));
    out.type_name = out.data.type->name;
    out.quantizer = std::move(quantizer);
    return out;
  }

  // (torch.per_tensor_affine, scale, zero), or (torch.per_channel_affine, scales, zeros, axis).
  bool read_quantizer(std::string_view scheme, std::span<const Ref> how, Shape shape, Quantizer& out) {
    const auto number = [&](Ref ref) { return pickle_.kind(ref) == PickleKind::integer; };
    if (scheme == "per_tensor_affine" && how.size() >= 3 && number(how[2]) &&
        (pickle_.kind(how[1]) == PickleKind::real || number(how[1]))) {
      out.scale = number(how[1]) ? static_cast<double>(pickle_.integer(how[1])) : pickle_.real(how[1]);
      out.zero = pickle_.integer(how[2]);
      return true;
    }
    if (scheme != "per_channel_affine" || how.size() < 4) return false;
    const auto axis = pickled_count(pickle_, how[3]);
    const auto scales = value(how[1], kDeepest), zeros = value(how[2], kDeepest);
    if (!axis || *axis >= shape.size()) return false;
    const auto fits = [&](const std::optional<Rebuilt>& part, DTypeKind kind) {
      constexpr std::uint64_t kMaxChannels = std::uint64_t{1} << 24;  // channels; real tensors have some thousand
      return part && part->form == Rebuilt::Form::strided && part->fault == nullptr && !part->conjugated &&
             !part->negated && !part->quantizer && info(part->data.type->dtype).kind == kind &&
             part->data.shape.size() == 1 && part->data.shape[0] == shape[base::to_size(*axis)] &&
             part->data.shape[0] <= kMaxChannels;
    };
    if (!fits(scales, DTypeKind::real) || !fits(zeros, DTypeKind::signed_integer)) return false;
    out.scales = scales->data;
    out.zeros = zeros->data;
    out.axis = base::to_size(*axis);
    return true;
  }

  // (dtype, shape, strides, requires_grad)
  Rebuilt meta(std::span<const Ref> arguments) {
    auto shape = arguments.size() < 3 ? std::nullopt : core::pickled_counts(pickle_, arguments[1]);
    if (!shape) return fault(rules::kTensorArguments, "_rebuild_meta_tensor_no_storage");
    Rebuilt out;
    out.shape = *std::move(shape);
    set_type(out, arguments[0]);
    return unsupported(std::move(out), rules::kMeta);
  }

  void set_type(Rebuilt& out, Ref dtype) const {
    out.data.type = dtype_in(pickle_, dtype);
    if (out.data.type == nullptr) out.type_name = core::excerpt(called(pickle_, dtype).name);
  }

  // (class, dtype, shape, strides, first, layout, device, requires_grad)
  Rebuilt subclass(std::span<const Ref> arguments) {
    auto shape = arguments.size() < 3 ? std::nullopt : core::pickled_counts(pickle_, arguments[2]);
    if (!shape) return fault(rules::kTensorArguments, "_rebuild_wrapper_subclass");
    Rebuilt out;
    out.shape = *std::move(shape);
    set_type(out, arguments[1]);
    const auto [module, name] = called(pickle_, arguments[0]);
    return unsupported(std::move(out), rules::kSubclass,
                       core::excerpt(std::string(module) + "." + std::string(name), 80));
  }

  // (layout, (indices, values, shape[, is_coalesced])) or (layout, (row bounds, columns, values, shape))
  Rebuilt sparse(std::span<const Ref> arguments, unsigned depth) {
    const auto bad = [] { return fault(rules::kTensorArguments, "_rebuild_sparse_tensor"); };
    if (arguments.size() < 2 || pickle_.kind(arguments[1]) != PickleKind::tuple || depth >= kDeepest ||
        std::exchange(sparse_, true))
      return bad();
    const std::string_view layout = layout_name(arguments[0]);
    const auto data = pickle_.tuple(arguments[1]);
    const bool coo = layout == "torch.sparse_coo";
    if (data.size() < (coo ? 3U : 4U)) return bad();
    auto shape = core::pickled_counts(pickle_, data[coo ? 2 : 3]);
    if (!shape) return bad();
    Rebuilt out;
    const auto no = [&](std::string why) {
      Rebuilt other;
      other.shape = *shape;
      other.data.type = out.data.type;
      return unsupported(std::move(other), rules::kSparse, std::move(why));
    };
    if (!coo && layout != "torch.sparse_csr") return no(core::excerpt(layout.empty() ? "unknown" : layout));
    // Values, then indices.
    std::vector<Strided> parts;
    for (const Ref each : coo ? std::vector<Ref>{data[1], data[0]} : std::vector<Ref>{data[2], data[0], data[1]}) {
      auto part = value(each, depth + 1);
      if (!part || part->form != Rebuilt::Form::strided) return part && part->fault ? *std::move(part) : bad();
      if (part->fault != nullptr) return *std::move(part);
      if (part->conjugated || part->negated || part->quantizer) return no("its values are computed from others");
      parts.push_back(std::move(part->data));
    }
    out.data = parts[0];
    if (parts[0].shape.size() != 1) return no("its values are tensors themselves");
    out.indices.assign(parts.begin() + 1, parts.end());
    for (const Strided& each : out.indices) {
      if (info(each.type->dtype).kind != DTypeKind::signed_integer &&
          info(each.type->dtype).kind != DTypeKind::unsigned_integer)
        return bad();
    }
    const std::uint64_t count = parts[0].shape[0];
    if (coo) {
      if (parts[1].shape.size() != 2 || parts[1].shape[0] != shape->size() || parts[1].shape[1] != count) return bad();
      if (shape->empty()) return no("it has no dimensions");
    } else {
      if (shape->size() != 2) return no("it is a batch of matrices");
      if (parts[1].shape.size() != 1 || parts[2].shape.size() != 1 || parts[2].shape[0] != count ||
          (*shape)[0] == UINT64_MAX || parts[1].shape[0] != (*shape)[0] + 1)
        return bad();
    }
    out.form = coo ? Rebuilt::Form::coo : Rebuilt::Form::csr;
    out.shape = *std::move(shape);
    return out;
  }

  // torch.sparse_coo, as a global or as torch.serialization._get_layout("torch.sparse_coo") would return it.
  std::string_view layout_name(Ref ref) const {
    if (is_global(pickle_, ref, "torch", "sparse_coo")) return "torch.sparse_coo";
    if (is_global(pickle_, ref, "torch", "sparse_csr")) return "torch.sparse_csr";
    if (pickle_.kind(ref) != PickleKind::object ||
        !is_global(pickle_, pickle_.callee(ref), "torch.serialization", "_get_layout"))
      return {};
    const Ref arguments = pickle_.arguments(ref);
    if (pickle_.kind(arguments) != PickleKind::tuple || pickle_.tuple(arguments).size() != 1) return {};
    return pickled_text(pickle_, pickle_.tuple(arguments)[0]).value_or("");
  }

  // numpy.core.multiarray._reconstruct(...) with the state (version, shape, dtype, fortran_order, bytes), or
  // numpy.core.numeric._frombuffer(bytes, dtype, shape, order).
  std::optional<Rebuilt> numpy_array(Ref ref) {
    const auto [module, name] = called(pickle_, pickle_.callee(ref));
    if (auto array = core::joblib_array(pickle_, ref))
      return array_of(array->type, std::move(array->shape), array->fortran, ref);
    if (!module.starts_with("numpy.")) return std::nullopt;
    std::optional<Ref> bytes, dtype, shape;
    bool fortran = false;
    if (name == "_reconstruct" && pickle_.state(ref) && pickle_.kind(*pickle_.state(ref)) == PickleKind::tuple) {
      const auto state = pickle_.tuple(*pickle_.state(ref));
      if (state.size() != 5) return std::nullopt;
      shape = state[1];
      dtype = state[2];
      const PickleKind kind = pickle_.kind(state[3]);
      fortran = (kind == PickleKind::boolean || kind == PickleKind::integer) && pickle_.integer(state[3]) != 0;
      bytes = state[4];
    } else if (name == "_frombuffer") {
      const auto arguments = pickle_.tuple(pickle_.arguments(ref));
      if (arguments.size() != 4) return std::nullopt;
      bytes = arguments[0];
      dtype = arguments[1];
      shape = arguments[2];
      fortran = pickled_text(pickle_, arguments[3]) == "F";
    } else {
      return std::nullopt;
    }
    const auto type = core::pickled_type(pickle_, *dtype);
    auto dims = core::pickled_counts(pickle_, *shape);
    if (!dims) return fault(rules::kTensorArguments, "an array of NumPy");
    return array_of(type.value_or(core::PickledType{"object", {.holds = core::NumpyWord::Holds::objects}}),
                    *std::move(dims), fortran, bytes_in(pickle_, *bytes));
  }

  static Rebuilt array_of(const core::PickledType& type, std::vector<std::uint64_t> shape, bool fortran,
                          std::optional<Ref> bytes) {
    using Kind = core::NumpyWord::Holds;
    Rebuilt out;
    out.shape = std::move(shape);
    out.type_name = type.name;
    if (type.word.holds != Kind::numbers)
      return unsupported(std::move(out),
                         type.word.holds == Kind::texts     ? rules::kText
                         : type.word.holds == Kind::objects ? rules::kObject
                                                            : rules::kUnknownDtype,
                         "an array of NumPy of the type " + type.name);
    if (!bytes) return fault(rules::kTensorArguments, "the bytes of an array of NumPy");
    out.form = Rebuilt::Form::array;
    out.array = {*bytes, type.word.dtype, type.big(), fortran && out.shape.size() > 1, out.shape};
    return out;
  }

  const Pickle& pickle_;
  bool sparse_ = false;  // inside a sparse tensor, whose parts must be dense
};

}  // namespace

std::optional<Rebuilt> rebuild(const Pickle& pickle, Ref ref) { return Reader(pickle).value(ref); }

std::optional<StorageId> storage_id(const Pickle& pickle, Ref ref) {
  if (pickle.kind(ref) != PickleKind::persistent) return std::nullopt;
  return Reader(pickle).id(ref);
}

bool is_global(const Pickle& pickle, Ref ref, std::string_view module, std::string_view name) {
  return pickle.kind(ref) == PickleKind::global && pickle.module(ref) == module && pickle.name(ref) == name;
}

const ElementType* dtype_in(const Pickle& pickle, Ref ref) {
  const auto [module, name] = called(pickle, ref);
  return module == "torch" ? type_of(name) : nullptr;
}

std::optional<Ref> bytes_in(const Pickle& pickle, Ref ref) {
  if (pickle.kind(ref) == PickleKind::bytes || pickle.kind(ref) == PickleKind::text) return ref;
  if (pickle.kind(ref) != PickleKind::object || pickle.kind(pickle.arguments(ref)) != PickleKind::tuple)
    return std::nullopt;
  const auto [module, name] = called(pickle, pickle.callee(ref));
  const auto arguments = pickle.tuple(pickle.arguments(ref));
  if (module == "_codecs" && name == "encode" && arguments.size() == 2 &&
      pickle.kind(arguments[0]) == PickleKind::text) {
    const auto code = pickled_text(pickle, arguments[1]);
    if (code == "latin1" || code == "latin-1") return arguments[0];
  }
  if ((module == "builtins" || module == "__builtin__") && name == "bytearray" && !arguments.empty()) {
    if (pickle.kind(arguments[0]) == PickleKind::bytes || pickle.kind(arguments[0]) == PickleKind::text)
      return arguments[0];
    // Of bytes that are themselves encoded.
    const Ref inner = arguments[0];
    if (pickle.kind(inner) == PickleKind::object && is_global(pickle, pickle.callee(inner), "_codecs", "encode"))
      return bytes_in(pickle, inner);
  }
  return std::nullopt;
}

}  // namespace weighbridge::pytorch
