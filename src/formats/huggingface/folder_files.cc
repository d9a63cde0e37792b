// SPDX-License-Identifier: Apache-2.0
// Lists the files beside the weights, and decides which are copied.
#include "formats/huggingface/folder_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "core/model/coded.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "formats/huggingface/quiet.h"
#include "io/temporary.h"
#include "weighbridge/error.h"

namespace weighbridge::huggingface {
namespace {

constexpr std::string_view kModuleWeights[] = {kWeights, kPickle};

std::string_view extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
}

bool ends_in_one_of(std::string_view name, std::span<const std::string_view> extensions) {
  std::string lower(extension_of(name));
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::find(extensions, lower) != extensions.end();
}

// Weights of a module, which belong to the model without being among its tensors.
bool is_module_weights(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash != name.npos && std::ranges::find(kModuleWeights, name.substr(slash + 1)) != std::end(kModuleWeights);
}

bool is_folder(std::string_view name) noexcept { return name.ends_with('/'); }

// Why a file is not copied, whatever its content; empty if it may be copied.
std::string_view reason_against(std::string_view name) {
  static constexpr std::array<std::string_view, 17> kOtherWeights = {
      "bin", "pt",      "pth", "ckpt", "pkl", "pickle", "safetensors", "gguf", "onnx",
      "h5",  "msgpack", "ot",  "npz",  "npy", "keras",  "tflite",      "pb"};
  if (is_folder(name)) return "left out: a folder that is not a module of the model";
  if (name.starts_with('.')) return "left out: a hidden file";
  if (is_program(name)) return "left out: a program, which others may run when they load the model";
  if (name.ends_with("/" + std::string(kWeights))) return {};
  if (ends_in_one_of(name, kOtherWeights) || name.ends_with(".index.json"))
    return "left out: other weights than the model's";
  return {};
}

}  // namespace

bool is_program(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kPrograms = {"py", "pyc", "pyd", "so",   "dll",
                                                                "sh", "bat", "exe", "dylib"};
  return ends_in_one_of(name, kPrograms);
}
bool ends_like_a_pickle(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kPickles = {"pt", "pth", "pkl", "pickle", "ckpt", "joblib"};
  return ends_in_one_of(name, kPickles);
}
bool is_tokenizer_file(std::string_view name) noexcept {
  return std::ranges::find(kTokenizerFiles, name) != std::end(kTokenizerFiles);
}
bool is_settings_file(std::string_view name) noexcept {
  return std::ranges::find(kSettingsFiles, name) != std::end(kSettingsFiles);
}

std::vector<core::FolderFile> list_folder_files(const Place& place, const Limits& limits,
                                                const std::vector<std::string>& weights,
                                                const std::vector<std::string_view>& held) {
  std::vector<core::FolderFile> out;
  const auto add = [&](std::string name) {
    const bool has = std::ranges::find(held, name) != held.end(), part_of_model = is_module_weights(name);
    out.push_back({.name = std::move(name), .held = has, .weights = part_of_model});
  };
  const auto add_if_there = [&](std::string name) {
    try {
      if (place.open(name) == nullptr) return;
    } catch (const Error&) {
      // It exists; take_over() reports what is wrong with it.
    }
    add(std::move(name));
  };
  std::vector<std::string> read = weights;
  for (const std::string_view name : {kConfig, kWeights, kIndex}) read.emplace_back(name);
  std::ranges::sort(read);
  Quiet quiet(std::shared_ptr<const Place>(std::shared_ptr<const Place>{}, &place), limits);
  std::vector<std::string> modules;
  try {
    const TextFile listed = read_text(quiet.reading, kModules);
    if (listed.text) modules = module_folders(quiet.reading, listed);
  } catch (const Error&) {
    // read_settings() reports it.
  }
  const auto of_module = [&](std::string_view folder) {
    return folder == kPooling.substr(0, kPooling.find('/')) || std::ranges::binary_search(modules, folder);
  };
  for (std::string& name : place.list()) {
    const std::string_view entry = std::string_view(name).substr(0, name.size() - (is_folder(name) ? 1 : 0));
    const bool known = is_folder(name) ? of_module(entry) : std::ranges::binary_search(read, name);
    if (!known && !io::is_temporary(entry)) add(std::move(name));
  }
  add_if_there(std::string(kPooling));
  for (const std::string& folder : modules)
    for (const std::string_view name : {kConfig, kWeights, kPickle})
      if (const std::string path = folder + "/" + std::string(name);
          path != kPooling && !std::ranges::binary_search(read, path))
        add_if_there(path);
  return out;
}

// If its own file has no length, the package uses model_max_length, else the number of positions.
void complete(SettingsFiles& files, const TokenizerFiles& tokenizer, const Config& config) {
  if (!files.settings.max_seq_length && config.bert) {
    if (tokenizer.model_max_length)
      files.settings.max_seq_length =
          config.positions ? std::min(*tokenizer.model_max_length, *config.positions) : *tokenizer.model_max_length;
    else if (files.saved_by_package)
      files.settings.max_seq_length = config.positions;
  }
  if (files.lowers_first && tokenizer.lower_case != true)
    files.judged.refuse(kSentenceConfig, kLowerCase, "true", "texts are lowercased, and the tokenizer keeps case");
  files.judged.add(tokenizer.judged);
}

std::optional<Beside> read_beside(const Model& model, std::string config_json) {
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files;
  const auto config = std::make_shared<const std::string>(std::move(config_json));
  files.emplace(kConfig, memory_source({std::as_bytes(std::span(*config)), config}));
  for (const core::FolderFile& file : core::folder_files(model)) {
    const bool of_module = file.name.ends_with("/" + std::string(kConfig));
    if (!is_tokenizer_file(file.name) && !is_settings_file(file.name) && !of_module) continue;
    try {
      if (auto source = core::open_folder_file(model, file.name)) files.emplace(file.name, std::move(source));
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  Quiet quiet(folder_of(std::move(files)), Limits{});
  const auto object = read_object(quiet.reading, kConfig);
  if (!object) return std::nullopt;
  const Config declared = read_config(quiet.reading, *object);
  Beside out{.tokenizer = read_tokenizer(quiet.reading, declared), .files = {}};
  if (declared.bert) {
    out.files = read_settings(quiet.reading, object->boolean("output_hidden_states") == true);
    complete(out.files, out.tokenizer, declared);
  }
  return quiet.sound() ? std::optional(std::move(out)) : std::nullopt;
}

TakenOver take_over(const Model& model, bool tokenizer, bool settings) {
  TakenOver out;
  std::uint64_t size = 0;
  const auto leave = [&](const core::FolderFile& file, std::string why) {
    out.losses.push_back({file.weights ? LossKind::unsupported : LossKind::file, core::indexed("files", file.name),
                          core::kFolderFile, std::move(why)});
  };
  const auto copy = [&](const core::FolderFile& file) {
    std::shared_ptr<const Source> source;
    try {
      source = core::open_folder_file(model, file.name);
    } catch (const Error& error) {
      return leave(file, "left out: " + std::string(error.what()));
    }
    if (!source) return leave(file, "left out: it is gone");
    if (out.copies.size() >= kMaxCopies || source->size() > kMaxCopied - size)
      return leave(file, "left out: more files, or larger ones, than are copied");
    size += source->size();
    out.copies.push_back({.name = file.name, .bytes = std::nullopt, .copy_of = std::move(source)});
  };
  const bool coded = !core::uses_of_codes(model).empty();
  for (const core::FolderFile& file : core::folder_files(model)) {
    const bool of_module = file.name.find('/') != file.name.npos && file.name != kPooling && !is_folder(file.name);
    if (!coded && std::ranges::find(kQuantizationFiles, file.name) != std::end(kQuantizationFiles)) {
      leave(file, "left out: no tensor is quantized any more");
    } else if (is_tokenizer_file(file.name) && !tokenizer) {
      if (!file.held) leave(file, "left out: the tokenizer, or a setting of it, is no longer this one");
    } else if (is_settings_file(file.name) && !settings) {
      if (!file.held) leave(file, "left out: the settings are no longer these");
    } else if (of_module && !settings) {
      leave(file, "left out: the settings are no longer those that name it");
    } else if (const std::string_view why = reason_against(file.name); !why.empty()) {
      leave(file, std::string(why));
    } else {
      copy(file);
    }
  }
  return out;
}

}  // namespace weighbridge::huggingface
