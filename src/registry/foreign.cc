// SPDX-License-Identifier: Apache-2.0
// Signatures of files that are not tensor files.
#include "registry/detect.h"

#include <algorithm>
#include <string>

#include "base/endian.h"
#include "base/utf8.h"
#include "core/reading/findings.h"
#include "core/reading/rules.h"

namespace weighbridge::registry {
namespace {

namespace rules = core::rules;
using namespace std::string_view_literals;

struct Signature {
  std::size_t at;
  std::string_view bytes;
  const Rule* rule;
  std::string_view what;  // for messages
};

constexpr Signature kSignatures[] = {
    {0, "PK\x03\x04"sv, &rules::kFileZip, "it is not a .pt, .npz or .keras; to read a model in it, unpack it first"},
    {0, "PK\x05\x06"sv, &rules::kFileZip, "an empty one"},
    {0, "\x1f\x8b\x08"sv, &rules::kFileCompressed, "gzip"},
    {0, "\x28\xb5\x2f\xfd"sv, &rules::kFileCompressed, "zstd"},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     &rules::kFileCompressed, "xz"},
    {0, "BZh"sv, &rules::kFileCompressed, "bzip2"},
    {0, "\x04\x22\x4d\x18"sv, &rules::kFileCompressed, "lz4"},
    {0, "7z\xbc\xaf\x27\x1c"sv, &rules::kFileCompressed, "7-Zip"},
    {257, "ustar"sv, &rules::kFileTar, ""},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A format of models, or of numbers, that is not read. A row with bytes and an extension counts before the formats that
// are read, one with bytes before their extensions, one with an extension alone last.
struct Other {
  std::string_view extension;  // or the whole name; empty: any
  std::size_t at;
  std::string_view bytes;  // empty: the extension shows it
  std::string_view what, next;
  bool versioned = false;                      // a u32 after the bytes is its version
  bool (*also)(const core::Probe&) = nullptr;  // must be true, too
};

constexpr std::string_view kOldLlama =
    "llama.cpp's convert_llama_ggml_to_gguf.py makes a GGUF of f32, f16 and of version 3; else get the model as GGUF";
constexpr std::string_view kByTensorFlow = "load it with TensorFlow, and save the variables as .npz or .h5";
constexpr std::string_view kByTorch =
    "join it: python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pt";
constexpr std::string_view kByPaddle = "load it with PaddlePaddle, and save the state as .safetensors";

// CTranslate2: a version, the length of a text, the text, which names the class of the specification.
bool is_ctranslate2(const core::Probe& probe) {
  const std::string_view head = as_text(probe.head);
  if (head.size() < 8) return false;
  const auto version = base::load_le<std::uint32_t>(head.data());
  const auto length = base::load_le<std::uint16_t>(head.data() + 4);
  return version >= 1 && version <= 64 && length >= 5 && length <= 256 && head.substr(6, length).ends_with("Spec\0"sv);
}
bool is_tfjs_shard(const core::Probe& probe) {
  return probe.name.find("-shard") != probe.name.npos || probe.name.find("_shard") != probe.name.npos;
}
bool is_tfjs_model(const core::Probe& probe) {
  const std::string_view head = as_text(probe.head);
  return head.find("\"modelTopology\"") != head.npos || head.find("\"weightsManifest\"") != head.npos;
}
bool is_tf_index(const core::Probe& probe) {  // a table of LevelDB
  return as_text(probe.tail).ends_with("\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv);
}
// zlib's first two bytes, as joblib compresses by default.
bool is_zlib(const core::Probe& probe) {
  return probe.head.size() > 2 &&
         (static_cast<unsigned>(probe.head[0]) * 256 + static_cast<unsigned>(probe.head[1])) % 31 == 0;
}

// A .pth of Python's site-packages. No pickle begins so: what reads it would find an empty stack, or an unknown code.
bool is_python_path(const core::Probe& probe) {
  constexpr std::string_view kBegins[] = {"import ", "import\t", "/", "./", "../", "#"};
  const std::string_view head = as_text(probe.head);
  return probe.extension == "pth" && head.find('\0') == head.npos &&
         std::ranges::any_of(kBegins, [&](std::string_view begin) { return head.starts_with(begin); });
}

constexpr Other kOthers[] = {
    {"", 0, "lmgg"sv, "GGML, before GGUF", kOldLlama},
    {"", 0, "fmgg"sv, "GGMF, before GGUF", kOldLlama, true},
    {"", 0, "tjgg"sv, "GGJT, before GGUF", kOldLlama, true},
    {"", 0, "algg"sv, "GGLA, an adapter before GGUF",
     "convert the adapter again with llama.cpp's convert_lora_to_gguf.py", true},
    {"distcp", 0, "PK\x03\x04"sv, "a file of a distributed checkpoint of PyTorch",
     "join its folder: python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pt"},
    {".metadata", 11, "\x8c\x25torch.distributed.checkpoint.metadata\x94\x8c\x08Metadata"sv,
     "the .metadata of a distributed checkpoint of PyTorch, without its tensors", kByTorch},
    {"", 0, "\xba\x16\x4f\x2f"sv, "fastText", "load it with fasttext, and save get_input_matrix() as .npy", true},
    {"", 0, ""sv, "CTranslate2", "get the model that it was converted from", false, is_ctranslate2},
    {"json", 0, "{"sv, "TensorFlow.js, its model.json", "convert it with tensorflowjs_converter to keras", false,
     is_tfjs_model},
    {"bin", 0, ""sv, "TensorFlow.js, a file of its weights", "open its model.json with tensorflowjs_converter", false,
     is_tfjs_shard},
    {"", 0, "7767517\n"sv, "ncnn, its graph", "get the model that it was converted from"},
    {"", 0, "\x1d\x86\x76\x00"sv, "ncnn, its graph", "get the model that it was converted from"},
    {"bin", 0, "\x47\x6b\x30\x01"sv, "ncnn, its weights", "get the model that it was converted from"},
    {"", 4, "TFL3"sv, "TensorFlow Lite", "get the model that it was converted from"},
    {"", 0, "MATLAB 5.0 MAT-file"sv, "MAT 5", "load it with scipy.io.loadmat, and save the arrays as .npz"},
    {"", 0, "CDF\x01"sv, "netCDF-3", "nccopy -k nc4 IN OUT.h5 makes HDF5 of it"},
    {"", 0, "CDF\x02"sv, "netCDF-3", "nccopy -k nc4 IN OUT.h5 makes HDF5 of it"},
    {"", 0, "CDF\x05"sv, "netCDF-3", "nccopy -k nc4 IN OUT.h5 makes HDF5 of it"},
    {"", 0, "\x0e\x03\x13\x01"sv, "HDF4", "h4toh5 IN OUT.h5 makes HDF5 of it"},
    {"", 0, "ftrt"sv, "a plan of TensorRT", "get the model that it was built from: it is for one kind of GPU"},
    {"", 0, "ptrt"sv, "a plan of TensorRT", "get the model that it was built from: it is for one kind of GPU"},
    {"engine", 0, ""sv, "a plan of TensorRT", "get the model that it was built from: it is for one kind of GPU"},
    {"trt", 0, ""sv, "a plan of TensorRT", "get the model that it was built from: it is for one kind of GPU"},
    {"", 0, "\x78"sv, "data compressed by zlib, as joblib writes them",
     "load it with joblib if you trust it (it can run code), and save the arrays as .npz", false, is_zlib},
    {"pdparams", 0, "\x80"sv, "parameters of Paddle, a pickle", kByPaddle},
    {"pdopt", 0, "\x80"sv, "an optimizer of Paddle, a pickle", kByPaddle},
    {"pdiparams", 0, ""sv, "parameters of Paddle", kByPaddle},
    {"pdmodel", 0, ""sv, "a program of Paddle", kByPaddle},
    {"msgpack", 0, ""sv, "Flax", "load it with flax.serialization.msgpack_restore, and save it as .safetensors"},
    {"mnn", 0, ""sv, "MNN", "get the model that it was converted from"},
    {"mlmodel", 0, ""sv, "Core ML", "get the model that it was converted from"},
    {"pb", 0, ""sv, "a graph of TensorFlow", kByTensorFlow},
    {"index", 0, ""sv, "the index of a checkpoint of TensorFlow", kByTensorFlow, false, is_tf_index},
    {"data-00000-of-00001", 0, ""sv, "a checkpoint of TensorFlow", kByTensorFlow},
};

std::optional<Finding> find_other(const core::Probe& probe, bool by_bytes, bool by_extension) {
  for (const Other& each : kOthers) {
    const bool bytes = !each.bytes.empty() || each.also != nullptr;
    if (bytes != by_bytes || (!each.extension.empty()) != by_extension) continue;
    if (by_extension && each.extension != probe.extension && each.extension != probe.name) continue;
    const std::string_view text = as_text(probe.head);
    if (text.size() < each.at || !text.substr(each.at).starts_with(each.bytes)) continue;
    if (each.also != nullptr && !each.also(probe)) continue;
    std::string what(each.what);
    if (const std::size_t end = each.at + each.bytes.size(); each.versioned && text.size() >= end + 4)
      what += ", version " + std::to_string(base::load_le<std::uint32_t>(text.data() + end));
    return core::Findings::make(rules::kFileOtherFormat, {.offset = bytes ? each.at : 0}, {}, {},
                                what + ": " + std::string(each.next));
  }
  return std::nullopt;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

bool is_html(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  head.remove_prefix(std::min(head.size(), head.find_first_not_of(" \t\r\n")));
  return starts_with_ignoring_case(head, "<!doctype html") || starts_with_ignoring_case(head, "<html") ||
         starts_with_ignoring_case(head, "<head");
}

// Whether the text is an error message that a server sent instead of the file.
bool is_error_text(std::string_view head, std::uint64_t size) {
  constexpr std::uint64_t kLongest = 1024;  // such texts are a line
  constexpr std::string_view kBeginnings[] = {"entry not found",
                                              "repository not found",
                                              "revision not found",
                                              "not found",
                                              "404: not found",
                                              "404 not found",
                                              "invalid username or password",
                                              "invalid credentials",
                                              "access denied",
                                              "access to model",
                                              "forbidden",
                                              "unauthorized",
                                              "bad gateway",
                                              "internal server error",
                                              "service unavailable",
                                              "too many requests",
                                              "<?xml",
                                              "<error>",
                                              "{\"error\":",
                                              "{\"detail\":"};
  if (size > kLongest) return false;
  head.remove_prefix(std::min(head.size(), head.find_first_not_of(" \t\r\n\"")));
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view beginning) { return starts_with_ignoring_case(head, beginning); });
}

std::optional<Finding> git_lfs_pointer(std::string_view head) {
  if (!head.starts_with("version https://git-lfs.github.com/spec/")) return std::nullopt;
  const std::string_view oid = line_of(head, "oid "), size = line_of(head, "size ");
  std::string what = oid.empty() ? "it names no object" : "it stands for the object " + std::string(oid.substr(0, 80));
  if (!size.empty()) what += " of " + std::string(size.substr(0, 20)) + " bytes";
  return core::Findings::make(rules::kFileGitLfsPointer, {.offset = 0}, {}, {}, base::is_utf8(what) ? what : "");
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Folders of formats that are not read: a name that is in them; "*" before it: what a name ends with.
struct Known {
  std::string_view sign, also, what, next;
  bool holds = false;  // models, in the folders beneath it
};
constexpr Known kOtherFolders[] = {
    {"model_index.json", "", "a pipeline of diffusers",
     "name one of its components, such as its folder unet or transformer", true},
    {".metadata", "*.distcp", "a distributed checkpoint of PyTorch", kByTorch},
    {"*.distcp", "", "a distributed checkpoint of PyTorch without its .metadata",
     "it was not saved to its end, or that file is still to be fetched"},
    {"saved_model.pb", "", "a SavedModel of TensorFlow", kByTensorFlow},
    {"manifest.ocdbt", "", "a checkpoint of Orbax", "restore it with orbax.checkpoint, and save it as .safetensors"},
    {"_METADATA", "", "a checkpoint of Orbax", "restore it with orbax.checkpoint, and save it as .safetensors"},
    {"_CHECKPOINT_METADATA", "", "a checkpoint of Orbax",
     "restore it with orbax.checkpoint, and save it as .safetensors"},
    {"Manifest.json", "Data/", "a package of Core ML", "get the model that it was converted from"},
    {"flax_model.msgpack", "", "a folder of Flax",
     "load it with transformers (from_flax=True), and save it with save_pretrained"},
    {"model.bin", "*vocabulary.json", "a folder of CTranslate2", "get the model that it was converted from"},
    {"model.bin", "*vocabulary.txt", "a folder of CTranslate2", "get the model that it was converted from"},
    {"*.pdmodel", "", "a folder of Paddle", kByPaddle},
    {"*.pdiparams", "", "a folder of Paddle", kByPaddle},
};

bool lists(std::span<const std::string> listing, std::string_view sign) {
  if (sign.empty()) return true;
  return std::ranges::any_of(listing, [&](const std::string& name) {
    return sign.starts_with('*') ? name.ends_with(sign.substr(1)) : name == sign;
  });
}

}  // namespace

std::optional<OtherFolder> other_folder(std::span<const std::string> listing) {
  for (const Known& each : kOtherFolders)
    if (lists(listing, each.sign) && lists(listing, each.also))
      return OtherFolder{
          std::string(each.what) + ", which is not one model that can be read: " + std::string(each.next), each.holds};
  return std::nullopt;
}

std::string_view line_of(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(key)) return line.substr(key.size());
    at = end + 1;
  }
  return {};
}

std::optional<Finding> recognize(const core::Probe& probe) {
  const std::string_view head = as_text(probe.head);
  if (probe.size == 0) return core::Findings::make(rules::kFileEmpty, {});
  if (auto pointer = git_lfs_pointer(head)) return pointer;
  if (is_error_text(head, probe.size)) {
    const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    return core::Findings::make(rules::kFileErrorText, {.offset = 0}, {}, {},
                                base::is_utf8(line) ? '"' + std::string(line.substr(0, 80)) + '"' : "");
  }
  if (is_html(head)) return core::Findings::make(rules::kFileHtml, {.offset = 0});
  if (auto other = find_other(probe, true, false)) return other;
  for (const Signature& s : kSignatures)
    if (head.size() >= s.at && head.substr(s.at).starts_with(s.bytes))
      return core::Findings::make(*s.rule, {.offset = s.at}, {}, {}, s.what);
  constexpr std::size_t kEnoughZeros = 512;
  if (head.size() >= kEnoughZeros && all_zero(probe.head))
    return core::Findings::make(rules::kFileZeros, {.offset = 0});
  return std::nullopt;
}

std::optional<Finding> recognize_named(const core::Probe& probe) {
  if (is_python_path(probe)) return core::Findings::make(rules::kFilePythonPath, {.offset = 0});
  return find_other(probe, true, true);
}

Finding unknown(const core::Probe& probe) {
  if (auto other = recognize_named(probe)) return *std::move(other);  // now with the end of the file
  if (auto other = find_other(probe, false, true)) return *std::move(other);
  const std::string_view head = as_text(probe.head);
  const auto printable = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  };
  // Ignore a last character that the end of the excerpt cuts in two.
  const std::size_t bad = base::find_invalid_utf8(head);
  const bool text = (bad == std::string_view::npos || bad + 4 > head.size()) && std::ranges::all_of(head, printable);
  return core::Findings::make(text ? rules::kFileText : rules::kFileUnknown, {.offset = 0});
}

}  // namespace weighbridge::registry
