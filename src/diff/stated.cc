// SPDX-License-Identifier: Apache-2.0
// What a statement says about a conversion: makes it, and gives the options back.
#include <algorithm>

#include "base/fail.h"
#include "core/model/words.h"
#include "weighbridge/derivation.h"
#include "weighbridge/hash.h"
#include "weighbridge/lora.h"
#include "weighbridge/open.h"
#include "weighbridge/options.h"
#include "weighbridge/version.h"
#include "weighbridge/view.h"

namespace weighbridge {

DerivationOptions stated_options(const Statement& statement, const Source& file, Model& source,
                                 std::shared_ptr<const Source> imatrix, const Context& context) {
  const auto require = [](bool holds, const char* rule, std::string_view what) {
    if (!holds) base::malformed(rule, "the statement is about another " + std::string(what));
  };
  require(content_digest(source, context) == statement.source, "statement/source", "source");
  require(file_sha256(file, context) == statement.sha256, "statement/subject",
          "file, " + core::quoted(core::excerpt(statement.name)));
  DerivationOptions out{.imatrix = std::move(imatrix), .options = Options()};
  ViewOptions taken;
  for (const auto& [name, value] : statement.options) {
    const OptionInfo* const option = find_option(OptionOf::convert, name);
    if (name == "imatrix") {
      out.with_matrix = true;
      if (out.imatrix == nullptr) continue;  // derive_again() says that it is missing
      const auto stated = std::ranges::find(statement.files, name, &std::pair<std::string, Digest>::first);
      require(stated != statement.files.end() && file_sha256(*out.imatrix, context) == stated->second,
              "statement/imatrix", "importance matrix");
      out.options->gguf.imatrix = out.imatrix;
    } else if (find_option(OptionOf::open, name) != nullptr) {
      continue;  // the source is open
    } else if (option != nullptr && option->type != OptionType::file) {
      out.options->set(name, value);
    } else if (find_option(OptionOf::view, name) != nullptr) {
      taken.add(name, value);
    } else {
      base::unsupported("statement/option", "the statement has the option " + core::quoted(core::excerpt(name)) +
                                                ", which verify does not repeat");
    }
  }
  source = view(source, taken);
  return out;
}

Statement state(const std::string& file, const Model& source, std::vector<std::pair<std::string, std::string>> options,
                const Context& context) {
  const std::shared_ptr<const Source> output = open_file(file);
  const Model made = open(output, context);
  Statement out{.name = std::string(output->file_name()),
                .sha256 = file_sha256(*output, context),
                .content = content_digest(made, context),
                .to = std::string(made.format()),
                .source = content_digest(source, context),
                .program = std::string(version()),
                .options = std::move(options)};
  for (const auto& [name, value] : out.options) {
    const auto add = [&, &option = name](const Source& named) {
      out.files.emplace_back(option, file_sha256(named, context));
    };
    const bool is_file = std::ranges::any_of(all_options(), [&, &option = name](const OptionInfo& each) {
      return each.name == option && each.type == OptionType::file;
    });
    if (name == "merge-lora") {
      const Lora lora = lora_from_text(value, context);
      for (const auto& each : lora.adapter.sources()) add(*each);
      if (!lora.config.empty()) add(*memory_source({std::as_bytes(std::span(lora.config)), nullptr}, "<config>"));
    } else if (name == "base") {
      Options one;
      one.set(name, value);
      add(*one.base);
    } else if (is_file || name == "rename-file") {
      add(*open_file(value));
    }
  }
  return out;
}

}  // namespace weighbridge
