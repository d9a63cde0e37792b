// SPDX-License-Identifier: Apache-2.0
#include "runtime/khlnary/bin_files.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/model/words.h"
#include "formats/stb/format.h"
#include "formats/stb/layout.h"
#include "io/read.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"

namespace weighbridge::khlnary::internal {
namespace {

using core::bytes_text;

std::string called(const stb::BinFile& entry) { return "file " + std::to_string(entry.id) + ", '" + entry.path + "'"; }

// The shape table, reduced to the shapes that this file's descriptors refer to; all others are left empty. The table
// may be long, and each file reads it again. Errors in the file are left to its reader.
std::vector<std::vector<std::uint64_t>> shapes_for(const Source& file,
                                                   const std::vector<std::vector<std::uint64_t>>& all) {
  std::vector<std::vector<std::uint64_t>> out;
  const std::uint64_t maximum = std::min(stb::kMaxTensors, file.size() / stb::kDescriptorSize);
  for (std::uint64_t i = 0; i + 1 < maximum; ++i) {
    const auto descriptor = io::record_of<stb::Descriptor>(file, stb::kHeaderSize + i * stb::kDescriptorSize);
    const std::uint32_t place = descriptor.dims[0];
    if (descriptor.rank <= stb::kMaxDirectRank) continue;
    out.resize(std::max<std::size_t>(out.size(), std::min<std::size_t>(all.size(), place + std::size_t{1})));
    if (place < all.size()) out[place] = all[place];
  }
  return out;
}

// Adds what the file's own sidecar says and the module's does not, so that a tensor has the same name and shape in a
// module as in the file by itself.
void add_own(stb::Sidecar& one, const stb::Sidecar& own, const Source& file) {
  const stb::BinFile* const here = own.file_of(file);
  if (!here) return;
  if (!one.shapes && own.shapes) one.shapes = shapes_for(file, *own.shapes);
  const std::size_t from_module = one.tensors.size();
  for (const stb::TensorEntry& tensor : own.tensors) {
    if (tensor.file != here->id) continue;
    const auto modules = std::span(one.tensors).first(from_module);
    const auto listed = std::ranges::find(modules, tensor.id, &stb::TensorEntry::id);
    if (listed == modules.end()) {
      if (std::ranges::find(modules, tensor.name, &stb::TensorEntry::name) != modules.end()) continue;
      one.tensors.push_back(tensor);
      one.tensors.back().file = one.files.front().id;
    } else if (!listed->shape) {
      listed->shape = tensor.shape;
    }
  }
}

// The part of the sidecar about this file, as a sidecar of its own. Two entries of the table may have the same path;
// only the id then tells which names and shapes apply.
std::shared_ptr<const Source> sidecar_of(const stb::Sidecar& whole, const stb::BinFile& entry, const Source& file,
                                         const std::optional<stb::Sidecar>& own) {
  stb::Sidecar one;
  one.files.push_back({.id = entry.id, .path = entry.path});
  if (whole.shapes) one.shapes = shapes_for(file, *whole.shapes);
  for (const stb::TensorEntry& tensor : whole.tensors)
    if (tensor.file == entry.id) one.tensors.push_back(tensor);
  if (own) add_own(one, *own, file);
  const auto text = std::make_shared<const std::string>(stb::write_sidecar(one));
  return memory_source({std::as_bytes(std::span(*text)), text}, "<the module's sidecar>");
}

// The rule of this module that a broken rule of its STB file amounts to.
const Rule& rule_for(std::string_view rule) {
  if (rule == stb::rules::kSidecarTensor.id) return rules::kTensorId;
  for (const Rule* shape : {&stb::rules::kShapeIndex, &stb::rules::kShapeRank, &stb::rules::kShapeDiffers})
    if (rule == shape->id) return rules::kShapeMismatch;
  return rules::kFile;
}

}  // namespace

const OpenFile& BinFiles::open(std::uint8_t id, std::optional<std::uint64_t> at) {
  if (!open_[id]) {
    const stb::BinFile* const entry = module_.sidecar.file(id);
    if (!entry) refuse(rules::kFileId, {.offset = at}, {}, id);
    open_[id] = load(*entry, {.offset = at});
  }
  return *open_[id];
}

void BinFiles::prefetch(std::uint8_t id) {
  // More at once would only displace what other programs need.
  constexpr std::uint64_t kMaxPrefetched = std::uint64_t{1} << 30;
  const stb::BinFile* const entry = module_.sidecar.file(id);
  if (!entry || prefetched_[id]) return;
  prefetched_.set(id);
  try {
    const std::shared_ptr<const Source> source = open_[id] ? open_[id]->source : find(*entry, {});
    source->will_need(0, std::min(source->size(), kMaxPrefetched));
  } catch (const Error&) {  // the word that uses the file reports it
  }
}

std::shared_ptr<const Source> BinFiles::find(const stb::BinFile& entry, core::At at) const {
  try {
    const auto place = module_.sidecar_source->place();
    if (auto found = place ? place->open(entry.path) : nullptr) return found;
  } catch (const Error& error) {
    if (error.finding().rule == "io/outside")
      refuse(rules::kPath, at, {}, {}, {called(entry), ": ", error.finding().message});
    // The path is a folder or a device. The table named it, not the caller, so this is no usage error.
    if (error.kind() == Kind::misuse) refuse(rules::kFile, at, {}, {}, {called(entry), ": ", error.finding().message});
    throw;
  }
  refuse(rules::kFileMissing, at, {}, {}, called(entry));
}

// The sidecar beside the file, unless it is the module's. Reports its errors.
std::optional<stb::Sidecar> BinFiles::own_sidecar(const Source& file, Report& report) const {
  const std::shared_ptr<const Source> source = find_sidecar(file);
  if (!source || core::is_same(*source, *module_.sidecar_source)) return std::nullopt;
  core::Findings findings(report, core::Findings::Mode::all);
  return stb::read_sidecar(*source, context_.limits, findings);
}

std::unique_ptr<OpenFile> BinFiles::load(const stb::BinFile& entry, core::At at) const {
  auto out = std::make_unique<OpenFile>();
  out->path = entry.path;
  out->source = find(entry, at);
  const std::uint64_t size = out->source->size();
  if (entry.size && *entry.size != size)
    refuse(rules::kFileSize, at, core::in_bytes(*entry.size), core::in_bytes(size), called(entry));
  if (entry.mmap_required && out->source->map(0, size).keep == nullptr)
    refuse(rules::kMmapRequired, at, {}, {}, called(entry));
  Context context = context_;
  context.progress = {};
  Report report;
  const auto own = own_sidecar(*out->source, report);
  std::optional<Model> model;
  if (report.valid())
    model = weighbridge::open(out->source, report, context,
                              {.format = "stb", .sidecar = sidecar_of(module_.sidecar, entry, *out->source, own)});
  if (!model) {
    const Finding& why = *report.first_error();
    std::string detail = called(entry) + ": " + why.message + " (" + why.rule;
    if (why.offset) detail += " at byte " + std::to_string(*why.offset);
    refuse(rule_for(why.rule), at, {}, {}, {detail, ")"});
  }
  for (const Finding& finding : report.findings())
    if (finding.severity == Severity::unsupported)
      out->unsupported.push_back(core::Findings::make(rules::kTensor, {.tensor = finding.tensor}, {}, {},
                                                      {called(entry), ": ", finding.message}));
  out->model = *std::move(model);
  for (std::uint32_t i = 0; i < out->model.size(); ++i)
    out->place[static_cast<std::uint8_t>(*out->model[i].id())] = static_cast<std::uint16_t>(i + 1);
  return out;
}

}  // namespace weighbridge::khlnary::internal
