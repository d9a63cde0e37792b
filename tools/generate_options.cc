// SPDX-License-Identifier: Apache-2.0
// Writes the options of conversions as types of the Python package, from the table of options: _options.py in FOLDER.
#include <cstdio>
#include <fstream>
#include <string>

#include "weighbridge/options.h"

namespace {

namespace wb = weighbridge;

std::string python_name(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '-' ? '_' : c;
  return out;
}

std::string type_of(const wb::OptionInfo& option) {
  if (option.value == "FROM=TO") return "Mapping[str, str] | Callable[[str], str] | str | Iterable[str]";
  if (option.value == "KEY=VALUE") return "Mapping[str, str]";
  if (option.value == "ADAPTER[=SCALE]")
    return "str | PathLike[str] | Iterable[str | PathLike[str]] | Mapping[str, float]";
  if (option.repeats) return "str | Iterable[str]";
  switch (option.type) {
    case wb::OptionType::toggle: return "bool";
    case wb::OptionType::number: return "int | None";
    case wb::OptionType::fraction: return "float | None";
    case wb::OptionType::size: return "int | str | None";
    case wb::OptionType::dtype: return "Any";
    case wb::OptionType::file: return "str | PathLike[str] | None";
    case wb::OptionType::word:
    case wb::OptionType::text: break;
  }
  return "str | None";
}

// Without what only the command says.
std::string help_of(const wb::OptionInfo& option) {
  const std::string_view help = option.help;
  const std::string standard = option.standard.empty() ? "" : " (default: " + std::string(option.standard) + ")";
  return std::string(help.substr(0, help.find("; may be repeated"))) + standard;
}

std::string page() {
  std::string attributes, members;
  for (const wb::OptionOf kind : {wb::OptionOf::convert, wb::OptionOf::view, wb::OptionOf::inputs})
    for (const wb::OptionInfo& option : wb::options_of(kind)) {
      const std::string name = python_name(option.name), type = type_of(option);
      attributes +=
          "    " + name + " : " + (type == "Any" ? "str or dtype" : type) + "\n        " + help_of(option) + "\n";
      members += "    " + name + ": " + type + "\n";
    }
  return "# SPDX-License-Identifier: Apache-2.0\n"
         "\"\"\"The options of conversions. Made from the library's table of options by `make docs`.\"\"\"\n\n"
         "from collections.abc import Callable, Iterable, Mapping\n"
         "from os import PathLike\n"
         "from typing import Any, TypedDict\n\n\n"
         "class ConvertOptions(TypedDict, total=False):\n"
         "    \"\"\"What :func:`plan`, :func:`convert` and :func:`save` take by name, as the flags of ``weighbridge "
         "convert``.\n\n"
         "    Attributes\n    ----------\n" +
         attributes + "    \"\"\"\n\n" + members;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: generate_options FOLDER\n", stderr);
    return 2;
  }
  std::ofstream out(std::string(argv[1]) + "/_options.py", std::ios::binary);
  out << page();
  return out.flush() ? 0 : 4;
}
