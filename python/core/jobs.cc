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

nb::list casts(const std::vector<Cast>& list) {
  nb::list out;
  for (const Cast& cast : list)
    out.append(nb::make_tuple(text(name(cast.from)), text(name(cast.to)), cast.tensors, cast.values, cast.overflowed,
                              cast.flushed, cast.largest_error));
  return out;
}

// The fields of weighbridge.Written, and the losses that nobody consented to.
nb::tuple written(const Plan& plan, const std::string& path, const Settings& settings) {
  const Written written = run(settings, [&](const Context& context) { return plan.execute(path, context); });
  return nb::make_tuple(text(plan.to()), written.size, items(plan.losses()), items(plan.changes()),
                        casts(written.casts), items(written.losses));
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

// Writes the patch, and returns what it changes as JSON.
std::string written_patch(const Model& patch, const std::string& path, bool overwrite, const Context& context) {
  plan(patch, "zt", {.encoding = "zstd", .replace = overwrite}).execute(path, context);
  return to_json({}, path, patch_info(patch, context));
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
        return written(p, to_input(path).path, settings);
      });
  m.def("plan", [](const Model& model, const std::string& format, nb::handle options) {
    const auto asked = made<Options>(OptionOf::convert, options);
    const WithoutGil released;
    return plan(model, format, asked);
  });
  m.def("save", [](const Model& model, nb::handle path, nb::handle options, const Settings& settings) {
    const Input output = to_input(path);
    const auto asked = made<Options>(OptionOf::convert, options);
    const Plan planned = run(
        settings, [&](const Context& context) { return plan(model, format_of_output(output.path), asked, context); });
    return written(planned, output.path, settings);
  });
  // What the file is, as JSON (docs/schemas/doctor.json), and what was written: format, size, losses, casts.
  m.def("salvage", [](nb::handle file, nb::handle path, nb::handle given, bool overwrite, const Settings& settings) {
    const Input input = to_input(file), output = to_input(path);
    const auto options = made<OpenOptions>(OptionOf::open, given);
    Diagnosis found;
    const Written written = run(settings, [&](const Context& context) {
      if (!output.path.ends_with('/')) OutputFile::check(output.path, overwrite);  // before the file is read
      found =
          input.source ? diagnose(place_of(input.source), context, options) : diagnose(input.path, context, options);
      Options how;
      how.replace = overwrite;
      return salvage(found, output.path, how, context);
    });
    return nb::make_tuple(text(to_json(input.path, found)), text(format_of_output(output.path)), written.size,
                          items(written.losses), casts(written.casts));
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
                         const std::string& dequantize, bool resize_vocab, const Settings& settings) {
    Options options;
    if (!dequantize.empty()) options.set("dequantize", dequantize);
    return run(settings, [&](const Context& context) {
      std::vector<Lora> opened;
      for (const auto& [path, scale] : adapters) opened.push_back(open_lora(path, scale, context));
      for (Lora& each : opened) each.resize_vocab = resize_vocab;
      return merge_lora(model, opened, options.dequantize, context);
    });
  });
  // What was done, as JSON (docs/schemas/edit.json). `values` is a JSON object of metadata to set.
  m.def("edit",
        [](nb::handle file, const std::string& values, nb::handle given, bool dry_run, const Settings& settings) {
          const std::string path = to_path(file);
          auto options = made<EditOptions>(OptionOf::edit, given);
          options.add_json(*memory_source({std::as_bytes(std::span(values)), nullptr}, "<set>"));
          const Edited edited = run(settings, [&](const Context& context) {
            return dry_run ? plan_edit(path, options, context) : edit(path, options, context);
          });
          return text(to_json(path, options.output, edited, !dry_run && edited.way != Edited::Way::nothing));
        });
  m.def("undo_edit", [](nb::handle file, bool trust_journal, const Settings& settings) {
    const std::string path = to_path(file);
    const Edited made = run(settings, [&](const Context& context) { return undo_edit(path, context, trust_journal); });
    return text(to_json(path, {}, made, true));
  });
  m.def("settle_edit", [](nb::handle file, bool trust_journal, const Settings& settings) {
    const std::string path = to_path(file);
    const Edited made =
        run(settings, [&](const Context& context) { return settle_edit(path, context, trust_journal); });
    return text(to_json(path, {}, made, made.left == Edited::Left::undone));
  });
  // What killed runs left in a folder, as JSON (docs/schemas/doctor.json).
  m.def("left_journals", [](nb::handle given) {
    const std::string folder = to_path(given);
    const auto found = [&] {
      const WithoutGil released;
      return left_journals(folder);
    }();
    return text(to_json(folder, found));
  });
  m.def("recover_folder", [](nb::handle given, bool trust_journal) {
    const std::string folder = to_path(given);
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
  // Whether a file was made from the source, as JSON (docs/schemas/verify_derivation.json). `statement` is its text.
  m.def(
      "derive_again",
      [](nb::handle file, Model source, const std::string& statement, nb::handle imatrix, bool values,
         const Settings& settings) {
        const Input input = to_input(file), matrix = imatrix.is_none() ? Input{} : to_input(imatrix);
        const Derivation found = run(settings, [&](const Context& context) {
          const auto opened = [](const Input& each) {
            return each.source || each.path.empty() ? each.source : open_file(each.path);
          };
          const std::shared_ptr<const Source> bytes = opened(input);
          DerivationOptions asked{.imatrix = opened(matrix)};
          if (!statement.empty())
            asked = stated_options(read_statement(statement, context.limits), *bytes, source, asked.imatrix, context);
          asked.values = values;
          return derive_again(open(bytes, context), source, asked, context);
        });
        return text(to_json(input.path, {}, found));
      },
      nb::arg("file"), nb::arg("source"), nb::arg("statement"), nb::arg("imatrix").none(), nb::arg("values"),
      nb::arg("settings"));
  m.def("check_output", [](nb::handle path, bool replace) { OutputFile::check(to_path(path), replace); });
  // Writes the statement about a file that was made from the source. The options are dicts, the adapters as for
  // merge_lora.
  m.def("state",
        [](nb::handle output, nb::handle made_file, const Model& source, nb::handle view, nb::handle convert,
           const std::vector<std::pair<std::string, double>>& adapters, bool replace, const Settings& settings) {
          const std::string path = to_path(output), file = to_path(made_file);
          std::vector<std::pair<std::string, std::string>> options;
          for (const auto& [kind, given] : {std::pair(OptionOf::view, view), {OptionOf::convert, convert}})
            for (auto [key, value] : nb::cast<nb::dict>(given)) {
              auto name = argument<std::string>("options", key);
              std::replace(name.begin(), name.end(), '_', '-');
              if (name == "overwrite") continue;
              if (nb::isinstance<nb::dict>(value))
                for (auto [from, to] : nb::cast<nb::dict>(value))
                  options.emplace_back(name, argument<std::string>(name, from) + "=" + argument<std::string>(name, to));
              else
                for (std::string& each : option_texts(kind, name, value)) options.emplace_back(name, std::move(each));
            }
          for (const auto& [adapter, scale] : adapters)
            options.emplace_back("merge-lora", adapter + "=" + nb::cast<std::string>(nb::str(nb::float_(scale))));
          const std::string made = run(settings, [&](const Context& context) {
            return write_statement(state(file, source, std::move(options), context));
          });
          OutputFile out(path, replace);
          out.write(std::as_bytes(std::span(made)));
          out.publish();
        });
  // Patches that are written: what they change, as JSON (docs/schemas/patch.json).
  m.def("make_patch", [](const Model& base, const Model& result, nb::handle output, bool metadata, bool overwrite,
                         const Settings& settings) {
    const std::string path = to_path(output);
    return run(settings, [&](const Context& context) {
      return written_patch(make_patch(base, result, {.scratch = path, .metadata = metadata}, context), path, overwrite,
                           context);
    });
  });
  m.def("fold_patches",
        [](const std::vector<Model>& patches, nb::handle output, bool overwrite, const Settings& settings) {
          const std::string path = to_path(output);
          return run(settings, [&](const Context& context) {
            return written_patch(fold_patches(patches, {.scratch = path}, context), path, overwrite, context);
          });
        });
  m.def("patched", [](const Model& base, const std::vector<Model>& patches, const Settings& settings) {
    return run(settings, [&](const Context& context) { return patched(base, patches, context); });
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
          builder.tensor(name, dtype_of_name(dtype), shape, to_bytes(array));
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
      out.append(nb::make_tuple(text(name(option.of)), text(option.name), text(name(option.type)), option.python, known,
                                option.repeats));
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
