// SPDX-License-Identifier: Apache-2.0
// Conversions, digests, and models made of arrays.
#include <algorithm>

#include "core.h"

namespace weighbridge::python {
namespace {

nb::list items(const std::vector<Item>& list) {
  nb::list out;
  for (const Item& item : list)
    out.append(nb::make_tuple(text(name(item.kind)), text(item.subject), text(item.from), text(item.to)));
  return out;
}

nb::list casts(const Written& written) {
  nb::list out;
  for (const Cast& cast : written.casts) {
    nb::dict one;
    one["from"] = text(name(cast.from));
    one["to"] = text(name(cast.to));
    one["tensors"] = cast.tensors;
    one["values"] = cast.values;
    one["overflowed"] = cast.overflowed;
    one["flushed"] = cast.flushed;
    one["largest_error"] = cast.largest_error;
    out.append(one);
  }
  return out;
}

// A contiguous array, kept alive by Python's reference.
Bytes to_bytes(const nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>& array) {
  struct Held {
    nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array;
    ~Held() {
      const WithGil acquired;
      array = {};
    }
  };
  if (array.data() == nullptr && array.nbytes() > 0)
    throw nb::value_error("an array without memory cannot be saved: its address is null, as that of a fake tensor");
  auto held = std::make_shared<Held>(array);
  return {{static_cast<const std::byte*>(array.data()), array.nbytes()}, held};
}

}  // namespace

void define_jobs(nb::module_& m) {
  nb::class_<Plan>(m, "Plan")
      .def_prop_ro("blockers", [](const Plan& p) { return items(p.blockers()); })
      .def_prop_ro("losses", [](const Plan& p) { return items(p.losses()); })
      .def_prop_ro("changes", [](const Plan& p) { return items(p.changes()); })
      .def_prop_ro("refused", [](const Plan& p) { return items(p.refused()); })
      .def_prop_ro("possible", &Plan::possible)
      .def_prop_ro("output_size", &Plan::output_size)
      .def_prop_ro("output_size_exact", &Plan::output_size_exact)
      .def_prop_ro("source_format", [](const Plan& p) { return text(p.from()); })
      .def_prop_ro("target_format", [](const Plan& p) { return text(p.to()); })
      .def("execute", [](const Plan& p, nb::handle path, const Settings& settings) {
        const Input output = to_input(path);
        return casts(run(settings, [&](const Context& context) { return p.execute(output.path, context); }));
      });
  m.def("plan", [](const Model& model, const std::string& format, nb::handle options) {
    const auto asked = made<Options>(OptionOf::convert, options);
    const WithoutGil released;
    return plan(model, format, asked);
  });
  m.def("save", [](const Model& model, nb::handle path, nb::handle options, const Settings& settings) {
    const Input output = to_input(path);
    const auto asked = made<Options>(OptionOf::convert, options);
    return casts(run(settings, [&](const Context& context) { return save(model, output.path, asked, context); }));
  });
  m.def("view", [](const Model& model, nb::handle given) {
    const auto options = made<ViewOptions>(OptionOf::view, given);
    const WithoutGil released;
    return view(model, options);
  });
  m.def("join", [](const std::vector<Model>& models, const std::string& on_duplicate, const Settings& settings) {
    const auto known = on_duplicate_from_name(on_duplicate);
    if (!known) wrong_value("on_duplicate is \"error\", \"first\" or \"last\", not \"" + on_duplicate + "\"");
    return run(settings, [&](const Context& context) { return join(models, *known, context.limits); });
  });
  m.def("merge_lora", [](const Model& model, const std::vector<std::pair<std::string, double>>& adapters,
                         const std::string& dequantize, const Settings& settings) {
    const DType dense =
        dequantize.empty() ? DType::unknown : dtype_from_name(short_dtype_name(dequantize)).value_or(DType::unknown);
    return run(settings, [&](const Context& context) {
      std::vector<Lora> opened;
      for (const auto& [path, scale] : adapters) opened.push_back(open_lora(path, scale, context));
      return merge_lora(model, opened, dense, context);
    });
  });
  // What was done, as JSON (docs/schemas/edit.json). `values` is a JSON object of metadata to set.
  m.def("edit", [](const std::string& path, const std::string& values, nb::handle given, bool dry_run,
                   const Settings& settings) {
    auto options = made<EditOptions>(OptionOf::edit, given);
    options.add_json(*memory_source({std::as_bytes(std::span(values)), nullptr}, "<set>"));
    const Edited edited = run(settings, [&](const Context& context) {
      return dry_run ? plan_edit(path, options, context) : edit(path, options, context);
    });
    return text(to_json(path, options.output, edited, !dry_run && edited.way != Edited::Way::nothing));
  });
  m.def("undo_edit", [](const std::string& path, bool trust_journal, const Settings& settings) {
    const Edited made = run(settings, [&](const Context& context) { return undo_edit(path, context, trust_journal); });
    return text(to_json(path, {}, made, true));
  });
  m.def("settle_edit", [](const std::string& path, bool trust_journal, const Settings& settings) {
    const Edited made =
        run(settings, [&](const Context& context) { return settle_edit(path, context, trust_journal); });
    return text(to_json(path, {}, made, made.left == Edited::Left::undone));
  });
  // What killed runs left in a folder, as JSON (docs/schemas/doctor.json).
  m.def("left_journals", [](const std::string& folder) {
    const auto found = [&] {
      const WithoutGil released;
      return left_journals(folder);
    }();
    return text(to_json(folder, found));
  });
  m.def("recover_folder", [](const std::string& folder, bool trust_journal) {
    const auto undone = [&] {
      const WithoutGil released;
      return recover_folder(folder, trust_journal);
    }();
    return text(to_json(folder, undone));
  });
  m.def("hash", [](const Model& model, bool names, std::uint32_t version, const Settings& settings) {
    return run(settings, [&](const Context& context) { return content_digest(model, context, names, version); }).text();
  });
  m.def("zt_hash", [](const Model& model) { return "sha256:" + zt_content_digest(model).text(); });
  // What differs, as JSON (docs/schemas/diff.json).
  m.def("diff", [](const Model& a, const Model& b, nb::handle given, const Settings& settings) {
    const auto options = made<DiffOptions>(OptionOf::diff, given);
    return run(settings, [&](const Context& context) {
      const Diff found = diff(a, b, options, context);
      return to_json(Comparison{{}, {}, a, b, found});
    });
  });
  m.def("file_sha256", [](nb::handle file, const Settings& settings) {
    const Input input = to_input(file);
    return run(settings,
               [&](const Context& context) {
                 return file_sha256(input.source ? *input.source : *open_file(input.path), context);
               })
        .hex();
  });
  // [(name, dtype, shape, array)], metadata -> Model over the arrays' memory.
  m.def(
      "build",
      [](nb::handle tensors, nb::handle metadata) {
        Builder builder;
        if (!metadata.is_none())
          for (auto [key, value] : nb::cast<nb::dict>(metadata))
            builder.attribute(argument<std::string>("a key of metadata", key), to_value(value));
        for (const nb::handle item : tensors) {
          const auto fields = nb::cast<nb::tuple>(item);
          const auto name = argument<std::string>("the name of a tensor", fields[0]);
          const auto dtype = nb::cast<std::string>(fields[1]);
          const auto shape = nb::cast<std::vector<std::uint64_t>>(fields[2]);
          const auto array = nb::cast<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(fields[3]);
          const auto known = dtype_from_name(dtype);
          if (!known) wrong_value("no dtype '" + dtype + "'");
          builder.tensor(name, *known, shape, to_bytes(array));
        }
        return builder.build();
      },
      nb::arg("tensors"), nb::arg("metadata").none());
  // The table of options: [(of, name, type, python, words)].
  m.def("options", [] {
    nb::list out;
    for (const OptionInfo& option : all_options()) {
      nb::list known;
      for (const std::string_view word : words(option)) known.append(text(word));
      out.append(
          nb::make_tuple(text(name(option.of)), text(option.name), text(name(option.type)), option.python, known));
    }
    return out;
  });
  m.def("formats", [] {
    nb::list out;
    for (const FormatInfo& format : formats()) {
      nb::dict one;
      one["name"] = text(format.name);
      one["title"] = text(format.title);
      nb::list extensions;
      for (const std::string_view extension : format.extensions) extensions.append(text(extension));
      one["extensions"] = extensions;
      one["readable"] = format.reads;
      one["writable"] = format.writes;
      out.append(one);
    }
    return out;
  });
}

}  // namespace weighbridge::python
