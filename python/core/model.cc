// SPDX-License-Identifier: Apache-2.0
// Models and tensors, and their elements as arrays.
#include <atomic>
#include <cstring>
#include <new>

#include "core.h"

namespace weighbridge::python {
namespace {

using AnyArray = nb::ndarray<nb::array_api, nb::ro>;  // with __dlpack__ and the buffer protocol
using NumpyView = nb::ndarray<nb::numpy, nb::ro>;
using NumpyArray = nb::ndarray<nb::numpy>;

nb::tuple to_tuple(Shape shape) {
  nb::list out;
  for (const std::uint64_t size : shape) out.append(size);
  return nb::tuple(out);
}

// The dtype in DLPack, if `exact`; else of the unsigned integers that hold the bits, where NumPy has no such type.
std::optional<nb::dlpack::dtype> array_dtype(DType dtype, bool exact) {
  const DTypeInfo& row = info(dtype);
  const auto bits = static_cast<std::uint8_t>(row.bits);
  const auto code = [&](nb::dlpack::dtype_code value) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(value), bits, 1};
  };
  using Code = nb::dlpack::dtype_code;
  switch (dtype) {
    case DType::boolean: return code(Code::Bool);
    case DType::bf16: return code(exact ? Code::Bfloat : Code::UInt);
    case DType::f8_e4m3: return code(exact ? Code::Float8_E4M3FN : Code::UInt);
    case DType::f8_e5m2: return code(exact ? Code::Float8_E5M2 : Code::UInt);
    case DType::f8_e8m0: return code(exact ? Code::Float8_E8M0FNU : Code::UInt);
    case DType::f8_e4m3fnuz: return code(exact ? Code::Float8_E4M3FNUZ : Code::UInt);
    case DType::f8_e5m2fnuz: return code(exact ? Code::Float8_E5M2FNUZ : Code::UInt);
    default: break;
  }
  if (bits % 8 != 0 || bits == 0) return std::nullopt;
  switch (row.kind) {
    case DTypeKind::unsigned_integer: return code(Code::UInt);
    case DTypeKind::signed_integer: return code(Code::Int);
    case DTypeKind::real: return code(Code::Float);
    case DTypeKind::complex: return code(Code::Complex);
    default: return std::nullopt;
  }
}

// Makes an array over memory that `keep` holds. A dtype without whole bytes becomes one row of bytes.
template <class Result>
nb::object make_array(const void* data, std::uint64_t bytes, Shape shape, DType dtype, std::shared_ptr<const void> keep,
                      bool exact) {
  auto type = array_dtype(dtype, exact);
  std::vector<std::size_t> sizes(shape.begin(), shape.end());
  if (!type) {
    type = nb::dlpack::dtype{static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt), 8, 1};
    sizes = {bytes};
  }
  const nb::capsule owner(new std::shared_ptr<const void>(std::move(keep)),
                          [](void* held) noexcept { delete static_cast<std::shared_ptr<const void>*>(held); });
  static std::byte nothing[64];
  void* const at = data == nullptr ? nothing : const_cast<void*>(data);
  return nb::cast(Result(at, sizes.size(), sizes.data(), owner, nullptr, *type, nb::device::cpu::value, 0));
}

std::uint64_t dense_bytes(const Tensor& tensor) {
  if (!tensor.has_shape()) return tensor.part_count() == 1 ? tensor.main().size() : 0;
  std::uint64_t count = 1;
  for (const std::uint64_t size : tensor.shape()) count *= size;
  return packed_size(tensor.dtype(), count).value_or(0);
}

bool is_viewable(const Tensor& tensor) {
  return tensor.part_count() == 1 && tensor.layout() == Layout::dense && tensor.unsupported() == nullptr &&
         tensor.main().why_no_view() == NoView::none;
}

// The tensor's stored bytes, mapped; null if they are not its elements as they are.
nb::object view_of(const Tensor& tensor, bool numpy) {
  if (!is_viewable(tensor)) return nb::none();
  Bytes bytes = tensor.main().view();
  // The memory outlives the model's handles: `bytes.keep` holds the mapping.
  auto keep = std::make_shared<std::pair<Tensor, Bytes>>(tensor, bytes);
  if (numpy)
    return make_array<NumpyView>(bytes.span.data(), bytes.span.size(), tensor.shape(), tensor.dtype(), keep, false);
  return make_array<AnyArray>(bytes.span.data(), bytes.span.size(), tensor.shape(), tensor.dtype(), keep, true);
}

// The elements in a writable buffer, which the array keeps.
nb::object over(const Tensor& tensor, nb::handle buffer, std::uint64_t offset) {
  struct Held {
    Py_buffer view{};
    ~Held() {
      if (!nb::is_alive()) return;
      const WithGil acquired;
      PyBuffer_Release(&view);
    }
  };
  auto held = std::make_shared<Held>();
  if (PyObject_GetBuffer(buffer.ptr(), &held->view, PyBUF_WRITABLE) != 0) throw nb::python_error();
  const auto size = static_cast<std::uint64_t>(held->view.len);
  const std::uint64_t bytes = dense_bytes(tensor);
  if (offset > size || bytes > size - offset) throw nb::value_error("the buffer is too small for the tensor");
  auto* const at = static_cast<std::byte*>(held->view.buf) + offset;
  return make_array<nb::ndarray<nb::array_api>>(at, bytes, tensor.shape(), tensor.dtype(), held, true);
}

// Rows [first, first + count) as an array of their own; all of them without a rank.
nb::object rows_of(const Tensor& tensor, std::uint64_t first, std::uint64_t count, DType dtype, bool numpy,
                   const Settings& settings) {
  const Shape shape = tensor.shape();
  const bool all = shape.empty() || (first == 0 && count == shape[0]);
  const Array array = run(settings, [&](const Context& context) {
    return all ? tensor.to_dense(dtype, context) : read_rows(tensor, first, count, dtype, context);
  });
  if (numpy) return make_array<NumpyArray>(array.data.get(), array.size, array.shape, array.dtype, array.data, false);
  return make_array<nb::ndarray<nb::array_api>>(array.data.get(), array.size, array.shape, array.dtype, array.data,
                                                true);
}

// Raises LimitError if these tensors together are out of proportion to what is stored, before memory is allocated.
void require_copies(const nb::list& tensors, const Settings& settings) {
  std::vector<Elements> all;
  for (const nb::handle item : tensors) {
    const auto& tensor = nb::cast<const Tensor&>(item);
    // Codes of a scheme have no dense form, and can be copied as they are stored.
    all.push_back(tensor.layout() == Layout::dense ? Elements::part(tensor) : Elements::dense(tensor));
  }
  check_output(all, settings.limits);
}

// Large memory begins at a huge page and asks for such pages: the kernel hands out and clears 2 MiB at a time, and the
// processor finds them with fewer entries.
std::shared_ptr<std::byte[]> new_memory(std::uint64_t size) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::align_val_t alignment{size < 4 * kHuge ? 64 : kHuge};
  auto* const data = new (alignment) std::byte[static_cast<std::size_t>(size)];
  std::shared_ptr<std::byte[]> out(data, [alignment](std::byte* p) { operator delete[](p, alignment); });
  if (size >= 4 * kHuge) use_huge_pages({data, static_cast<std::size_t>(size) / kHuge * kHuge});
  return out;
}

// The tensors as arrays of their own, read by all threads. Small ones share memory, so one keeps some of the others.
nb::list copies_of(nb::list tensors, const Settings& settings) {
  constexpr std::uint64_t kShared = std::uint64_t{32} << 20, kPiece = std::uint64_t{4} << 20;
  struct Copy {
    Tensor tensor;
    std::uint64_t size = 0, offset = 0;  // of its place in `memory`
    std::shared_ptr<std::byte[]> memory{};
    std::uint64_t width = 0;  // bytes of an element, if any range can be read by itself; else 0
  };
  require_copies(tensors, settings);
  std::vector<Copy> all;
  for (const nb::handle item : tensors) {
    Copy& one = all.emplace_back(Copy{.tensor = nb::cast<const Tensor&>(item)});
    one.size = dense_bytes(one.tensor);
    const std::uint32_t bits = info(one.tensor.dtype()).bits;
    if (is_viewable(one.tensor) && bits % 8 == 0) one.width = bits / 8;
  }
  const auto work = [&](const Context& context) {
    struct Piece {
      std::size_t copy;
      std::uint64_t begin, end;
    };
    std::vector<Piece> pieces;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < all.size();) {
      // Tensors that are not computed share an arena until it is full.
      std::size_t end = i;
      std::uint64_t size = 0;
      do {
        all[end].offset = size;
        size += (all[end].size + 63) / 64 * 64;
        ++end;
      } while (end < all.size() && size + all[end].size <= kShared);
      const std::shared_ptr<std::byte[]> memory = new_memory(size);
      for (; i < end; ++i) {
        all[i].memory = memory;
        total += all[i].size;
        if (all[i].width == 0) pieces.push_back({i, 0, all[i].size});
        for (std::uint64_t at = 0; all[i].width != 0 && at < all[i].size; at += kPiece)
          pieces.push_back({i, at, std::min(at + kPiece, all[i].size)});
      }
    }
    std::atomic<std::uint64_t> done{0};
    context.executor->for_each(pieces.size(), [&](std::uint64_t p) {
      const Piece& piece = pieces[p];
      const Copy& copy = all[piece.copy];
      const std::span<std::byte> out{copy.memory.get() + copy.offset + piece.begin, piece.end - piece.begin};
      populate(out);
      if (copy.width != 0) {
        copy.tensor.main().read_range(piece.begin / copy.width, out.size() / copy.width, out,
                                      {.limits = context.limits});
      } else if (const Shape shape = copy.tensor.shape(); !shape.empty()) {
        copy.tensor.rows_into(0, shape[0], copy.tensor.dtype(), out, {.limits = context.limits});
      } else {
        const Array one = copy.tensor.to_dense({.limits = context.limits});
        std::memcpy(out.data(), one.data.get(), out.size());
      }
      if (!context.progress(done += out.size(), total)) throw Cancelled();
    });
    return true;
  };
  std::uint64_t bytes = 0;
  for (const Copy& one : all) bytes += one.width != 0 ? one.size : kPiece;
  if (bytes < kPiece && settings.progress.is_none()) {  // is done before a thread has started
    const WithoutGil released;
    const auto executor = inline_executor();
    work({.limits = settings.limits, .executor = executor, .progress = [](std::uint64_t, std::uint64_t) {
            return true;
          }});
  } else {
    run(settings, work);
  }
  nb::list out;
  for (const Copy& one : all) {
    const std::shared_ptr<const void> keep(one.memory, one.memory.get() + one.offset);
    out.append(make_array<NumpyArray>(one.memory.get() + one.offset, one.size, one.tensor.shape(), one.tensor.dtype(),
                                      keep, false));
  }
  return out;
}

// Where the stored bytes are: (file, offset, length), or None.
nb::object place_of(const Model& model, const Part& part) {
  const auto extent = part.extent();
  if (!extent) return nb::none();
  return nb::make_tuple(text(model.sources()[extent->source]->name()), extent->offset, extent->length);
}

}  // namespace

void define_models(nb::module_& m) {
  nb::class_<Part>(m, "Part")
      .def_prop_ro("role", [](const Part& p) { return text(p.role()); })
      .def_prop_ro("dtype",
                   [](const Part& p) { return text(p.dtype() == DType::unknown ? p.dtype_name() : name(p.dtype())); })
      .def_prop_ro("shape", [](const Part& p) { return to_tuple(p.shape()); })
      .def_prop_ro("nbytes", &Part::size)
      .def_prop_ro("encoding", [](const Part& p) { return text(p.encoding_name()); })
      .def_prop_ro("digest", [](const Part& p) { return text(p.digest()); })
      .def("bytes", [](const Part& p, const Settings& settings) {
        std::string out;
        run(settings, [&](const Context& context) {
          p.stream(context, [&](std::span<const std::byte> piece) {
            out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
            return true;
          });
          return true;
        });
        return nb::bytes(out.data(), out.size());
      });

  nb::class_<Tensor>(m, "Tensor")
      .def_prop_ro("name", [](const Tensor& t) { return text(t.name()); })
      .def_prop_ro("index", &Tensor::index)
      .def_prop_ro("shape",
                   [](const Tensor& t) { return t.has_shape() ? nb::object(to_tuple(t.shape())) : nb::none(); })
      .def_prop_ro("dtype", [](const Tensor& t) { return text(name(t.dtype())); })
      .def_prop_ro("type_name", [](const Tensor& t) { return text(t.type_name()); })
      .def_prop_ro("layout", [](const Tensor& t) { return text(t.layout_name()); })
      .def_prop_ro("nbytes", &dense_bytes)
      .def_prop_ro("attributes", [](const Tensor& t) { return to_dict(t.attributes()); })
      .def_prop_ro("unsupported",
                   [](const Tensor& t) -> nb::object {
                     const Finding* const why = t.unsupported();
                     return why ? nb::object(to_dict(*why)) : nb::none();
                   })
      .def_prop_ro("numeric", [](const Tensor& t) { return is_numeric(t); })
      .def_prop_ro("stored",
                   [](const Tensor& t) -> nb::object {
                     const StoredWeight* const weight = stored_weight(t);
                     if (weight == nullptr) return nb::none();
                     nb::dict out;
                     nb::list tensors;
                     for (const std::string& each : weight->tensors) tensors.append(text(each));
                     out["id"] = text(weight->id);
                     out["name"] = text(weight->text);
                     out["tensors"] = tensors;
                     out["bytes"] = weight->bytes;
                     return out;
                   })
      .def_prop_ro("scheme",
                   [](const Tensor& t) -> nb::object {
                     const auto scheme = scheme_of(t);
                     return scheme ? nb::object(nb::make_tuple(text(scheme->name), scheme->codes)) : nb::none();
                   })
      .def_prop_ro("viewable", &is_viewable)
      .def("parts",
           [](const Tensor& t) {
             nb::list out;
             for (const Part& part : t.parts()) out.append(nb::cast(Part(part)));
             return out;
           })
      .def("view", &view_of, nb::arg("numpy"), nb::sig("def view(self, numpy: bool) -> Any"))
      .def("over", &over)
      .def_static("copies", &copies_of)
      .def_static("require_copies", &require_copies)
      .def("rows",
           [](const Tensor& t, std::uint64_t first, std::uint64_t count, std::string_view dtype, bool numpy,
              const Settings& settings) { return rows_of(t, first, count, dtype_of_name(dtype), numpy, settings); })
      .def("bytes",
           [](const Tensor& t, std::string_view dtype, const Settings& settings) {
             const DType as = dtype_of_name(dtype);
             std::string out;
             run(settings, [&](const Context& context) {
               t.stream_dense(as, context, [&](std::span<const std::byte> piece) {
                 out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
                 return true;
               });
               return true;
             });
             return nb::bytes(out.data(), out.size());
           })
      .def("digest", [](const Tensor& t, const Settings& settings) {
        return run(settings, [&](const Context& context) { return content_digest(t, context); }).text();
      });

  nb::class_<Model>(m, "Model")
      .def("__len__", &Model::size)
      .def_prop_ro("format", [](const Model& self) { return text(self.format()); })
      .def_prop_ro("version", [](const Model& self) { return text(self.version()); })
      .def_prop_ro("file_size", &Model::file_size)
      .def("stats",
           [](const Model& self, std::uint32_t tensor, const Settings& settings) {
             const Stats s = run(settings, [&](const Context& context) {
               const Tensor of = self[tensor];
               if (const Finding* const why = of.unsupported()) throw Error(*why);
               return statistics(self, std::span(&tensor, 1), context, 1).at(0);
             });
             nb::dict out;
             out["elements"] = s.elements;
             out["min"] = to_python(s.min);
             out["max"] = to_python(s.max);
             out["mean"] = s.mean;
             out["std"] = s.std;
             out["zeros"] = s.zeros;
             out["nans"] = s.nans;
             out["infinities"] = s.infinities;
             return out;
           })
      .def_prop_ro("checked", &Model::checked)
      .def_prop_ro("checksum_form", [](const Model& self) { return text(self.checksum_form()); })
      .def("attributes", [](const Model& self) { return to_dict(self.attributes()); })
      .def("schemes",
           [](const Model& self) {
             nb::list out;
             for (const ModelScheme& scheme : schemes_of(self)) out.append(text(scheme.name));
             return out;
           })
      // The model with the numbers of its codes, read as `dtype`; empty: as what the library that made them decodes to.
      .def("logical",
           [](const Model& self, std::string_view dtype, const Settings& settings) {
             const DType as = dtype.empty() ? DType::unknown : dtype_of_name(dtype);
             return run(settings, [&](const Context& context) { return logical(self, context, as); });
           })
      // Of a model of numbers: the weight whose codes are the tensor of this name.
      .def("weight_of",
           [](const Model& self, std::string_view codes) -> std::optional<Tensor> {
             for (const Tensor& each : self)
               if (const StoredWeight* const weight = stored_weight(each); weight && weight->tensors.front() == codes)
                 return each;
             return std::nullopt;
           })
      .def("names",
           [](const Model& self) {
             nb::list out;
             for (std::uint32_t i = 0; i < self.size(); ++i) out.append(text(self.name(i)));
             return out;
           })
      .def("find",
           [](const Model& self, std::string_view name) -> std::optional<Tensor> {
             Maybe<Tensor> found = self.find(name);
             if (!found) return std::nullopt;
             return std::move(found).value();
           })
      .def("at", [](const Model& self, std::uint32_t i) { return self[i]; })
      .def("nearest", [](const Model& self, std::string_view name) { return self.nearest(name); })
      .def("files",
           [](const Model& self) {
             nb::list out;
             for (const auto& source : self.sources()) out.append(text(source->name()));
             return out;
           })
      .def("place",
           [](const Model& self, const Tensor& t) -> nb::object {
             return t.part_count() == 1 ? place_of(self, t.main()) : nb::none();
           })
      // Of each tensor, in order: (name, dtype, shape, file, offset); file -1: not stored as the elements are.
      .def("places",
           [](const Model& self) {
             nb::list out;
             for (const Tensor& t : self) {
               std::optional<Extent> extent;
               if (is_viewable(t)) extent = t.main().extent();
               out.append(nb::make_tuple(text(t.name()), text(name(t.dtype())), to_tuple(t.shape()),
                                         extent ? static_cast<std::int64_t>(extent->source) : -1,
                                         extent ? extent->offset : 0));
             }
             return out;
           })
      // All tensors that are viewable as NumPy arrays, by name: {name: array}, and the names of the others.
      .def("views", [](const Model& self) {
        nb::dict views;
        nb::list others;
        for (const Tensor& t : self) {
          nb::object view = view_of(t, true);
          if (view.is_none())
            others.append(text(t.name()));
          else
            views[text(t.name())] = view;
        }
        return nb::make_tuple(views, others);
      });

  nb::class_<Settings>(m, "Settings")
      .def(
          "__init__",
          [](Settings* self, nb::object limits, unsigned threads, nb::object progress) {
            new (self) Settings(to_settings(limits, threads, std::move(progress)));
          },
          nb::arg("limits").none(), nb::arg("threads"), nb::arg("progress").none());

  m.def(
      "open",
      [](nb::handle file, nb::handle given, const Settings& settings, nb::handle sidecar, nb::handle tokenizer) {
        const Input input = to_input(file);
        auto options = made<OpenOptions>(OptionOf::open, given);
        const auto source_of = [](nb::handle other) {
          const Input one = to_input(other);
          return one.source ? one.source : open_file(one.path);
        };
        if (!sidecar.is_none()) options.sidecar = source_of(sidecar);
        if (!tokenizer.is_none()) options.tokenizer = source_of(tokenizer);
        const WithoutGil released;
        const Context context{.limits = settings.limits};
        return input.source ? open(input.source, context, options) : open(input.path, context, options);
      },
      nb::arg("file"), nb::arg("options"), nb::arg("settings"), nb::arg("sidecar").none() = nb::none(),
      nb::arg("tokenizer").none() = nb::none());
  m.def("verify", [](nb::handle file, nb::handle given, bool all, const Settings& settings) {
    const Input input = to_input(file);
    const auto options = made<OpenOptions>(OptionOf::open, given);
    Verdict verdict = run(settings, [&](const Context& context) {
      Verdict found = input.source ? verify(input.source, context, options) : verify(input.path, context, options);
      if (all) read_all(found, context);
      return found;
    });
    nb::dict out;
    out["format"] = text(verdict.format);
    out["valid"] = verdict.report.valid();
    out["findings"] = to_list(verdict.report);
    out["total"] = verdict.report.total();
    out["errors"] = verdict.report.errors();
    out["warnings"] = verdict.report.warnings();
    out["checked"] = text(verdict.checked);
    nb::list names;
    for (const std::string& each : verdict.not_known_safe) names.append(text(each));
    out["not_known_safe"] = names;
    out["tensors"] = verdict.model.size();
    return out;
  });
  m.def("ready_policies", [] {
    nb::list out;
    for (const std::string_view each : ready_policies()) out.append(text(each));
    return out;
  });
  m.def("ready_policy", [](const std::string& name) { return text(ready_policy(name)); });
  m.def(
      "check",
      [](nb::handle file, const std::string& json, const std::string& name, nb::handle list, nb::handle given,
         const Settings& settings) {
        const Input input = to_input(file);
        const auto options = made<OpenOptions>(OptionOf::open, given);
        const auto manifest = list.is_none() ? std::nullopt : std::optional<Input>(to_input(list));
        const Policy policy = read_policy(json, name);
        const PolicyVerdict found = run(settings, [&](const Context& context) {
          const auto opened = [](const Input& of) { return of.source ? of.source : open_file(of.path); };
          return check(input.source ? place_of(input.source) : place_at(input.path), policy, context, options,
                       manifest ? opened(*manifest) : nullptr);
        });
        return text(to_json(input.path, policy, found));
      },
      nb::arg("file"), nb::arg("policy"), nb::arg("name"), nb::arg("manifest").none(), nb::arg("options"),
      nb::arg("settings"));
  m.def("find_models", [](nb::handle given, const Settings& settings) {
    const std::string folder = to_path(given);
    nb::list out;
    for (const std::string& each : run(settings, [&](const Context& context) { return find_models(folder, context); }))
      out.append(text(each));
    return out;
  });
  m.def("diagnose", [](nb::handle file, nb::handle given, const Settings& settings) {
    const Input input = to_input(file);
    const auto options = made<OpenOptions>(OptionOf::open, given);
    const Diagnosis found = run(settings, [&](const Context& context) {
      return input.source ? diagnose(place_of(input.source), context, options) : diagnose(input.path, context, options);
    });
    return text(to_json(input.path, found));
  });
  m.def("manifest", [](nb::handle file, const std::string& key, const std::string& certificate,
                       const std::vector<std::string>& chain, nb::handle given, const Settings& settings) {
    const std::string path = to_path(file);
    const SigningKey signer{.key = key, .certificate = certificate, .chain = chain};
    const auto options = made<ManifestOptions>(OptionOf::manifest, given);
    const Manifest found =
        run(settings, [&](const Context& context) { return save_manifest(path, options, signer, context); });
    return text(to_json(path, options.output, found, signer.method()));
  });
  m.def("verify_manifest", [](nb::handle file, nb::handle manifest, const std::string& key, const std::string& roots,
                              nb::handle given, const Settings& settings) {
    const std::string path = to_path(file);
    const Input input = to_input(manifest);
    auto check = made<ManifestCheck>(OptionOf::check, given);
    check.trust = {.key = key, .roots = roots};
    const ManifestVerdict found = run(settings, [&](const Context& context) {
      return verify_manifest(path, input.source ? input.source : open_file(input.path), check, context);
    });
    return text(to_json(path, input.path, found));
  });
  m.def("manifest_cache", [](nb::handle path) { return text(manifest_cache(to_path(path))); });
  m.def("can_sign", &can_sign);
  m.def("explain", [](nb::handle file, std::uint64_t offset, std::uint64_t length, const std::string& name,
                      const Settings& settings) {
    const Input input = to_input(file);
    std::string path = input.path;
    const Explanation found = run(settings, [&](const Context& context) {
      if (name.empty()) return explain(input.source ? input.source : open_file(input.path), offset, length, context);
      const OpenOptions structure{.checks = Checks::structure};
      const Model model = input.source ? open(input.source, context, structure) : open(input.path, context, structure);
      const Location place = locate(model, name);
      const auto source = model.sources()[place.source];
      path = source->name();
      return explain(source, place.offset, place.length, context);
    });
    return text(to_json(path, found));
  });
  m.def("check_cache", [](nb::handle given, const Settings& settings) {
    const std::string folder = to_path(given);
    return text(to_json(folder, run(settings, [&](const Context& context) { return check_cache(folder, context); })));
  });
}

}  // namespace weighbridge::python
