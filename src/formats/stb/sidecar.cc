// SPDX-License-Identifier: Apache-2.0
// Looks up entries of a sidecar, and writes one. sidecar_read.cc reads sidecars.
#include "formats/stb/sidecar.h"

#include <algorithm>

#include "wire/json_writer.h"

namespace weighbridge::stb {
namespace {

std::string_view last_component(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

std::string_view without_dots(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

// Whether `path` is all of `name`, or its last components.
bool is_ending(std::string_view name, std::string_view path) {
  if (!name.ends_with(path)) return false;
  return name.size() == path.size() || name[name.size() - path.size() - 1] == '/';
}

void write_shape(wire::JsonWriter& out, const std::vector<std::uint64_t>& shape) {
  out.begin_array();
  for (const std::uint64_t dim : shape) out.u64(dim);
  out.end_array();
}

void write_file(wire::JsonWriter& out, const BinFile& file) {
  out.begin_object();
  out.key("id"), out.u64(file.id);
  out.key("path"), out.string(file.path);
  if (file.mmap_required) out.key("mmap_required"), out.boolean(true);
  if (file.size) out.key("size"), out.u64(*file.size);
  out.end_object();
}

void write_function(wire::JsonWriter& out, const Function& function) {
  out.begin_object();
  out.key("id"), out.u64(function.id);
  if (!function.name.empty()) out.key("name"), out.string(function.name);
  out.key("offset"), out.u64(function.offset);
  out.end_object();
}

void write_tensor(wire::JsonWriter& out, const TensorEntry& tensor) {
  out.begin_object();
  out.key("file"), out.u64(tensor.file);
  out.key("id"), out.u64(tensor.id);
  out.key("name"), out.string(tensor.name);
  if (tensor.shape) out.key("shape"), write_shape(out, *tensor.shape);
  out.end_object();
}

template <class Items, class Write>
void write_array(wire::JsonWriter& out, std::string_view key, const Items& items, Write write) {
  out.key(key).begin_array();
  for (const auto& item : items) write(out, item);
  out.end_array();
}

}  // namespace

const BinFile* Sidecar::file(std::uint8_t id) const noexcept {
  const auto found = std::ranges::find(files, id, &BinFile::id);
  return found == files.end() ? nullptr : &*found;
}

const Function* Sidecar::function(std::uint8_t id) const noexcept {
  const auto found = std::ranges::find(functions, id, &Function::id);
  return found == functions.end() ? nullptr : &*found;
}

const TensorEntry* Sidecar::tensor(std::uint8_t file, std::uint8_t id) const noexcept {
  const auto found = std::ranges::find_if(tensors, [&](const TensorEntry& t) { return t.file == file && t.id == id; });
  return found == tensors.end() ? nullptr : &*found;
}

const BinFile* Sidecar::file_named(std::string_view name) const noexcept {
  const BinFile *longest = nullptr, *same = nullptr;
  std::size_t length = 0;
  bool several = false;
  for (const BinFile& file : files) {
    const std::string_view path = without_dots(file.path);
    if (last_component(path) != last_component(name)) continue;
    several = same != nullptr;
    same = &file;
    if (is_ending(name, path) && path.size() > length) longest = &file, length = path.size();
  }
  if (longest != nullptr) return longest;
  if (same != nullptr) return several ? nullptr : same;
  return files.size() == 1 ? &files.front() : nullptr;
}

const BinFile* Sidecar::file_of(const Source& source) const noexcept {
  return file_named(source.path().empty() ? source.name() : source.path());
}

bool is_sidecar_path(std::string_view path) noexcept {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  const char drive = static_cast<char>(path.front() | 0x20);
  if (path.size() > 1 && path[1] == ':' && drive >= 'a' && drive <= 'z') return false;
  if (path.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos) return false;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (path.substr(0, end) == "..") return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

std::string write_sidecar(const Sidecar& sidecar) {
  wire::JsonWriter out(wire::JsonWriter::Style::indented);
  out.begin_object();
  out.key("schema"), out.u64(1);
  if (sidecar.module) out.key("module"), out.string(*sidecar.module);
  write_array(out, "files", sidecar.files, write_file);
  if (sidecar.shapes) write_array(out, "shapes", *sidecar.shapes, write_shape);
  if (!sidecar.functions.empty()) write_array(out, "functions", sidecar.functions, write_function);
  if (!sidecar.tensors.empty()) write_array(out, "tensors", sidecar.tensors, write_tensor);
  out.end_object();
  return out.take() + "\n";
}

std::string sidecar_name(std::string_view path) {
  const std::string_view name = last_component(path);
  const std::size_t dot = name.rfind('.');
  return std::string(dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot)).append(kSidecarExtension);
}

}  // namespace weighbridge::stb
