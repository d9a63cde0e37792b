// SPDX-License-Identifier: Apache-2.0
// Plans a conversion before anything is written. Owns the options that all formats share. The target's layout function
// lists losses, and execute.cc writes.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/timestamp.h"
#include "codecs/codec.h"
#include "convert/derived.h"
#include "convert/naming.h"
#include "convert/rep.h"
#include "convert/write.h"
#include "core/model/plan_text.h"
#include "core/model/view.h"
#include "core/writing/claims.h"
#include "core/writing/layout.h"
#include "core/writing/options.h"
#include "registry/load.h"
#include "registry/registry.h"
#include "weighbridge/scheme.h"

namespace weighbridge {
namespace {

std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

const core::Format& writer_of(std::string_view name) {
  const core::Format* format = registry::find(name);
  if (!format) base::misuse("unknown-format", "there is no format " + quote(name));
  if (!format->layout)
    base::misuse("read-only-format", "the format " + std::string(name) + " can be read, not written");
  return *format;
}

// Checks options that only some targets support; their descriptors say which.
void check_own_options(const FormatInfo& to, const Options& options) {
  for (const OptionInfo* const option : core::given_options(options)) {
    if (option->formats.empty() || core::is_one_of(to.name, option->formats)) continue;
    std::string sentence = "the format " + std::string(to.name) + " has no " + std::string(option->name);
    for (const FormatInfo& other : formats())
      if (core::is_one_of(other.name, option->formats)) sentence += ", " + std::string(other.name) + " has";
    base::misuse("option", std::move(sentence));
  }
}

void check_options(const core::Format& format, const Options& options) {
  const FormatInfo& to = format.info;
  core::check_written(format, options);
  check_own_options(to, options);
  const std::string& created_at = options.metadata.created_at;
  if (!created_at.empty() && !base::is_iso8601(created_at))
    base::misuse("created-at", quote(created_at) + " is not an ISO 8601 time such as 2025-01-16T12:00:00Z");
  if (options.level != 0) {
    const codecs::Codec* const codec = codecs::find(options.encoding);
    if (!codec || codec->highest == 0) base::misuse("level", "a level needs the encoding zstd or deflate");
    if (options.level < codec->lowest || options.level > codec->highest)
      base::misuse("level", "the level " + std::to_string(options.level) + " is not within " +
                                std::to_string(codec->lowest) + " and " + std::to_string(codec->highest));
  }
  if (options.dequantize != DType::unknown) {
    core::check_word("dequantize", name(options.dequantize), Options::words("dequantize"));
    if (std::ranges::find(to.holds.dtypes, options.dequantize) == to.holds.dtypes.end())
      base::misuse("dequantize",
                   "the format " + std::string(to.name) + " has no dtype " + std::string(name(options.dequantize)));
    if (!options.quantize.empty())
      base::misuse("dequantize", "tensors cannot be quantized and dequantized in one conversion");
  }
  if (!options.gguf.naming.empty()) core::check_word("naming", options.gguf.naming, Options::words("naming"));
  if (!options.gptq.empty()) core::check_word("gptq", options.gptq, Options::words("gptq"));
  const ZtOptions& zt = options.zt;
  if (!zt.sparse.empty()) core::check_word("sparse", zt.sparse, Options::words("sparse"));
  if (zt.sparse.empty() && zt.sparse_density != 0)
    base::misuse("share", "a density without a sparse layout says nothing");
  if (!(zt.sparse_density >= 0 && zt.sparse_density <= 1))
    base::misuse("share", "the density of sparse tensors is above 0 and at most 1");
  if (!zt.sparse.empty() && options.cast != DType::unknown)
    base::misuse("cast", "sparse tensors are not cast: cast first, and make the result sparse");
}

std::uint64_t logical_bytes(const core::WriteLayout& layout) {
  std::uint64_t total = layout.prefix_length;
  for (const core::WriteLayout* const file : core::files_of(layout))
    for (const core::Payload& p : file->payloads) total += p.logical_size;
  return total;
}

// The content of an empty plan.
const convert::PlanRep& nothing() noexcept {
  static const convert::PlanRep rep;
  return rep;
}
}  // namespace

const std::vector<Item>& Plan::blockers() const& noexcept { return (rep_ ? *rep_ : nothing()).layout.blockers; }
const std::vector<Item>& Plan::losses() const& noexcept { return (rep_ ? *rep_ : nothing()).layout.losses; }
const std::vector<Item>& Plan::changes() const& noexcept { return (rep_ ? *rep_ : nothing()).layout.changes; }
const Options& Plan::options() const& noexcept { return (rep_ ? *rep_ : nothing()).options; }
std::uint64_t Plan::output_size() const noexcept { return rep_ ? rep_->output_size : 0; }
bool Plan::output_size_exact() const noexcept { return !rep_ || rep_->layout.size_exact; }
std::uint64_t Plan::payload_size() const noexcept { return rep_ ? rep_->payload_size : 0; }
std::uint32_t Plan::tensors() const noexcept { return rep_ ? rep_->tensors : 0; }
std::uint64_t Plan::files() const noexcept {
  if (!rep_) return 0;
  std::uint64_t files = 0;
  for (const core::WriteLayout* const file : core::files_of(rep_->layout)) files += file->repeats ? 0 : 1;
  return files;
}
std::string_view Plan::from() const noexcept { return rep_ ? std::string_view(rep_->from) : std::string_view{}; }
std::string_view Plan::to() const noexcept { return rep_ ? rep_->format->info.name : std::string_view{}; }

std::vector<Item> Plan::refused() const {
  const Options& asked = options();
  // Options that ask for a change consent to its losses.
  const bool dequantizes = asked.dequantize != DType::unknown;
  const bool casts = asked.cast != DType::unknown || dequantizes || !asked.quantize.empty();
  const auto allowed = [&](const Item& loss) {
    return loss.kind == LossKind::file ||
           (casts && (loss.kind == LossKind::dtype || loss.kind == LossKind::precision)) ||
           (dequantizes && loss.kind == LossKind::layout && loss.to == convert::dense_text(asked.dequantize)) ||
           (!asked.gguf.naming.empty() && loss.kind == LossKind::dtype) ||  // of vectors, to f32
           std::ranges::find(asked.allow, loss.kind) != asked.allow.end();
  };
  std::vector<Item> out;
  for (const Item& loss : losses())
    if (!allowed(loss)) out.push_back(loss);
  return out;
}

Plan convert::PlanMaker::make(std::shared_ptr<convert::PlanRep> rep, const Model& from, const Options& options) {
  rep->options = options;
  rep->from = from.format();
  rep->tensors = rep->kept_tensors;
  for (const core::WriteLayout* const file : core::files_of(rep->layout)) {
    rep->output_size += file->size;
    if (!file->repeats) rep->tensors += static_cast<std::uint32_t>(file->tensors.size());
  }
  if (rep->layout.folder)
    for (const core::OutFolder::Small& file : rep->layout.folder->small) rep->output_size += file.size();
  rep->payload_size = logical_bytes(rep->layout);
  Plan plan;
  plan.rep_ = std::move(rep);
  return plan;
}

namespace {

// Leaves out the tensors that the writer cannot store because this build cannot interpret them, and adds each to the
// losses. `model` becomes the view that is laid out.
template <class LayOut> core::WriteLayout lay_out(Model& model, LayOut layout, std::vector<Item>& losses) {
  core::WriteLayout whole = layout(model);
  if (whole.uninterpreted.empty()) return whole;
  std::vector<std::uint32_t> tensors;
  std::ranges::stable_sort(whole.uninterpreted, {}, &core::Uninterpreted::tensor);
  for (core::Uninterpreted& each : whole.uninterpreted) {
    if (!tensors.empty() && tensors.back() == each.tensor) continue;  // another part of the same tensor
    tensors.push_back(each.tensor);
    const Tensor tensor = model[each.tensor];
    losses.push_back({is_numeric(tensor) ? LossKind::unsupported : LossKind::file, core::subject(tensor),
                      std::move(each.from), "left out: " + std::move(each.why)});
  }
  model = core::view_without(model, tensors);
  return layout(model);
}

// Lists the other files of the source's folder as losses, unless the writer lists them itself.
void name_folder_files(core::WriteLayout& layout, const Model& from, const std::vector<std::string>& taken) {
  if (layout.lists_folder_files) return;
  for (const core::FolderFile& file : core::folder_files(from))
    if (!file.held && std::ranges::find(taken, file.name) == taken.end())
      layout.losses.push_back({file.weights ? LossKind::unsupported : LossKind::file, core::indexed("files", file.name),
                               core::kFolderFile, "left out"});
}

// Lists what the source has besides tensors, metadata and tokenizer as losses.
void name_left_behind(core::WriteLayout& layout, const Model& from) {
  for (const core::LeftBehind& each : core::left_behind(from))
    layout.losses.push_back({LossKind::file, each.what, each.description, "left behind"});
}

// The attributes of an archive of arrays are its arrays of texts: what becomes of them needs no consent.
void release_texts(core::WriteLayout& layout, const Model& from) {
  if (from.format() != "npz") return;
  for (Item& loss : layout.losses)
    if (loss.kind == LossKind::attribute || loss.kind == LossKind::attribute_type) loss.kind = LossKind::file;
}

// Lists as a loss that the source is an incomplete model.
void name_missing(core::WriteLayout& layout, const Model& from) {
  const core::Incomplete* const part = core::incomplete(from);
  if (part != nullptr)
    layout.losses.insert(layout.losses.begin(), {LossKind::part, "model", part->why, "only this part is written"});
}

template <class T> void append(std::vector<T>& items, std::vector<T> more) {
  std::move(more.begin(), more.end(), std::back_inserter(items));
}

// Lists the losses and changes of joining models or merging adapters.
void name_making(core::WriteLayout& layout, const Model& from) {
  const auto put = [](std::vector<Item>& items, std::span<const Item> more) {
    items.insert(items.begin(), more.begin(), more.end());
  };
  put(layout.losses, core::losses_of_making(from));
  put(layout.changes, core::changes_of_making(from));
}

// Lists scale tensors that stay separate when their tensor is dequantized.
void name_factors(core::WriteLayout& layout, const Model& from) {
  std::vector<Item> changes;
  for (const core::WriteLayout* const file : core::files_of(layout))
    for (const core::OutTensor& tensor : file->tensors)
      if (!file->repeats && tensor.layout == Layout::dense)
        if (auto change = convert::factor_stays(from, tensor.from)) changes.push_back(*std::move(change));
  append(layout.changes, std::move(changes));
}

// Whether the format stores GPTQ's layers as quantized_group.
bool has_groups(const FormatInfo& format) {
  return std::ranges::find(format.holds.layouts, Layout::quantized_group) != format.holds.layouts.end();
}

}  // namespace

Model convert::as_checked(const Model& model) {
  const auto is_checked = [](const Model& one) {
    const core::Format* const format = registry::find(one.format());
    return format != nullptr && format->check_content != nullptr && format->content_can_fail;
  };
  return std::ranges::any_of(core::members_of(model), is_checked) ? core::witnessed(model) : model;
}

namespace {

using convert::as_checked;

// What is laid out in place of the model, and what that changes.
struct Input : core::Derived {
  bool computed = false;  // from the model's parts, which have the digests to check
  bool refused = false;   // the blockers say why no option that needs values applies

  void take(core::Derived made) {
    model = std::move(made.model);
    append(losses, std::move(made.losses));
    append(changes, std::move(made.changes));
    append(blockers, std::move(made.blockers));
    append(files, std::move(made.files));
    unseen = unseen || made.unseen;
  }
};
// Puts items that the writer does not know about before the writer's own.
void add_items(core::WriteLayout& layout, Input& input) {
  const auto put = [](std::vector<Item>& items, std::vector<Item>& first) {
    items.insert(items.begin(), std::move_iterator(first.begin()), std::move_iterator(first.end()));
  };
  if (input.refused) layout.losses.clear(), layout.changes.clear();  // nothing is written
  if (input.unseen || input.refused) layout.blockers.clear();
  put(layout.blockers, input.blockers);
  put(layout.losses, input.losses);
  put(layout.changes, input.changes);
}
Input input_of(const Model& model, const FormatInfo& to, const Options& options, const Context& context) {
  Input out{{.model = model}};
  if (!options.gptq.empty()) {
    out.take(has_groups(to) ? convert::group_gptq(out.model, options.gptq)
                            : convert::split_gptq(out.model, options.gptq));
    out.computed = true;
  }
  if (convert::needs_values(options, to.name)) {
    out.blockers = convert::refuse_codes(out.model);
    out.refused = !out.blockers.empty();
    if (out.refused) return out;
  }
  if (options.dequantize != DType::unknown) {
    out.take(convert::dequantized(out.model, options.dequantize));
    out.computed = true;
  }
  if (to.name != "hf") {  // a folder has the files of the modules
    out.take(convert::with_modules(out.model, context));
    out.computed = out.computed || !out.files.empty();
  }
  if (to.name == "embd" || !options.gguf.naming.empty()) {
    out.take(convert::with_norm_names(out.model));
    append(out.blockers, convert::refused_settings(out.model));
  }
  const bool own = convert::needs_own_names(out.model, to.name);
  if (own || !options.gguf.naming.empty()) {
    out.take(own ? convert::with_own_names(out.model, to.name) : convert::named_for_llama_cpp(out.model));
    out.computed = true;
  }
  if (!options.zt.sparse.empty()) {
    const bool csr = options.zt.sparse == "csr";
    const bool digests = !options.digest.empty() && options.digest != "none";
    out.take(core::sparsified(out.model, csr ? Layout::sparse_csr : Layout::sparse_coo, options.zt.sparse_density,
                              digests ? "a digest of the new bytes" : "no digest", context));
    out.computed = true;
  }
  if (options.canonical) out.take(core::canonical(out.model));
  return out;
}

// The versions of its modules, which PyTorch puts beside a state dict (reading P5), are for PyTorch alone. If a target
// keeps only the width of their numbers from them, that is a change. Returns the keys of those that it cannot keep.
std::vector<std::string> versions_lost(const Model& model, core::WriteLayout& layout) {
  constexpr std::string_view kVersions = "_metadata";
  std::vector<std::string> out;
  for (const auto& [key, value] : model.attributes()) {
    if (value.kind() != Value::Kind::map || (key != kVersions && !key.ends_with("." + std::string(kVersions))))
      continue;
    const std::string subject = core::indexed("attributes", key);
    const auto loss = std::ranges::find_if(layout.losses, [&](const Item& each) {
      return each.subject == subject && (each.kind == LossKind::attribute || each.kind == LossKind::attribute_type);
    });
    if (loss == layout.losses.end()) continue;
    if (loss->kind == LossKind::attribute || loss->to == "text") {
      out.push_back(key);
    } else {
      layout.changes.push_back(std::move(*loss));
      layout.losses.erase(loss);
    }
  }
  return out;
}

// Lays the input out. If claims in the metadata would be untrue in this output, updates them and lays it out again.
template <class LayOut>
core::WriteLayout lay_out_true(const Model& asked, Input& input, const FormatInfo& to, const Options& options,
                               LayOut layout) {
  std::vector<Item> left_out;
  core::WriteLayout out = lay_out(input.model, layout, left_out);
  if (std::vector<std::string> lost = versions_lost(input.model, out); !lost.empty()) {
    for (const std::string& key : lost)
      input.changes.push_back({LossKind::attribute, core::indexed("attributes", key), "versions of modules",
                               "left out: only PyTorch uses them"});
    input.model = view(input.model, {.unset = std::move(lost)});
    out = lay_out(input.model, layout, left_out);
  }
  if (const auto claims = core::restated(asked, input.model, out, to, options); !claims.empty()) {
    input.model = core::restate(input.model, claims, input.changes);
    out = lay_out(input.model, layout, left_out);
  }
  versions_lost(input.model, out);
  append(input.losses, std::move(left_out));
  return out;
}

// The plan for a model in the format of `rep`, whose models are those that are in the output already.
template <class LayOut>
Plan plan_with(std::shared_ptr<convert::PlanRep> rep, const Model& model, const Options& options,
               const Context& context, LayOut layout) {
  const core::Format& to = *rep->format;
  check_options(to, options);
  const Model checked = as_checked(model);
  Input input = input_of(checked, to.info, options, context);
  const Options asked = input.refused ? convert::without_values(options) : options;
  rep->layout = lay_out_true(model, input, to.info, asked, [&](const Model& from) { return layout(to, from, asked); });
  add_items(rep->layout, input);
  if (!input.refused) {
    convert::check_codes(rep->layout, input.model, model.format(), to.info.name);
    name_folder_files(rep->layout, model, input.files);
    release_texts(rep->layout, model);
    name_left_behind(rep->layout, model);
    name_missing(rep->layout, model);
    name_making(rep->layout, model);
    if (rep->models.empty()) name_factors(rep->layout, input.model);
  }
  // The digests to check belong to the original's parts.
  append(rep->models, core::members_of(input.computed ? checked : input.model));
  if (rep->layout.base) rep->models.push_back(*rep->layout.base);
  return convert::PlanMaker::make(std::move(rep), model, options);
}

}  // namespace

Plan plan(const Model& model, std::string_view format, const Options& options, const Context& context) {
  auto rep = std::make_shared<convert::PlanRep>();
  rep->format = &writer_of(format);
  return plan_with(std::move(rep), model, options, context,
                   [&context](const core::Format& to, const Model& from, const Options& asked) {
                     return registry::lay_out(to, from, asked, context);
                   });
}

Plan plan_append(const Model& target, const Model& more, const Options& options, const Context& context) {
  auto rep = std::make_shared<convert::PlanRep>();
  rep->format = &writer_of(target.format());
  if (!rep->format->append)
    base::misuse("append", "a file of the format " + std::string(target.format()) +
                               " cannot grow: append needs a .zt as its target");
  if (core::is_view(target))
    base::misuse("append", "a view of a file cannot grow: append to the file, and select from what is added");
  if (!options.gptq.empty()) base::misuse("append", "append takes tensors as they are, GPTQ's too: convert them first");
  if (options.canonical)
    base::misuse("append", "append keeps the bytes that the file has, so that it cannot write a canonical file");
  rep->models.push_back(target);
  rep->kept_tensors = target.size();
  return plan_with(std::move(rep), more, options, context,
                   [&target](const core::Format& to, const Model& from, const Options& asked) {
                     return to.append(target, from, asked);
                   });
}

std::string_view format_of_output(const std::string& path) {
  const std::size_t name = path.find_last_of('/') + 1, dot = path.rfind('.');
  std::string extension = dot == std::string::npos || dot < name ? std::string() : path.substr(dot + 1);
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (const FormatInfo* const format = path.ends_with('/') ? find_format("hf") : format_for_extension(extension))
    return format->name;
  // ONNX, or one that is only read, which this throws. Not .bin, which PyTorch writes too.
  const bool ambiguous = extension == "bin";
  if (const core::Format* const named = registry::find_by_extension(extension); named && !ambiguous)
    return writer_of(named->info.name).info.name;
  std::string extensions, names;
  for (const FormatInfo& format : formats()) {
    if (!format.writes) continue;
    for (const std::string_view each : format.extensions) extensions += " ." + std::string(each) + ",";
    names += " " + std::string(format.name);
  }
  base::misuse_of(path, "unknown-extension",
                  "the name does not show the output format: end it in" + extensions +
                      " or / (a Hugging Face folder), or name one of these formats:" + names,
                  base::option_hint("to", ambiguous ? "pytorch" : ""));
}

Written save(const Model& model, const std::string& path, const Options& options, const Context& context) {
  return plan(model, format_of_output(path), options, context).execute(path, context);
}

}  // namespace weighbridge
