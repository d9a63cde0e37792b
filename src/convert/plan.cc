// SPDX-License-Identifier: Apache-2.0
// Plans a conversion before anything is written. Owns the options that all formats share. The target's layout function
// lists losses, and execute.cc writes.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/timestamp.h"
#include "codecs/codec.h"
#include "convert/derived.h"
#include "convert/naming.h"
#include "convert/rep.h"
#include "convert/write.h"
#include "core/model/coded.h"
#include "core/model/plan_text.h"
#include "core/model/view.h"
#include "core/writing/claims.h"
#include "core/writing/layout.h"
#include "core/writing/options.h"
#include "recipes/match.h"
#include "registry/load.h"
#include "registry/registry.h"
#include "weighbridge/scheme.h"

namespace weighbridge {
namespace {

std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

const core::Format& writer_of(std::string_view name) {
  const core::Format* format = registry::find(name);
  if (!format) {
    std::string known;
    for (const core::Format* each : registry::formats())
      if (each->layout) known += (known.empty() ? "" : ", ") + std::string(each->info.name);
    base::misuse("unknown-format", "there is no format " + quote(name) + ": known are " + known);
  }
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
  if (options.dequantize) {
    const DType dense = *options.dequantize;
    if (dense != DType::unknown) core::check_word("dequantize", name(dense), Options::words("dequantize"));
    if (dense != DType::unknown && std::ranges::find(to.holds.dtypes, dense) == to.holds.dtypes.end())
      base::misuse("dequantize", "the format " + std::string(to.name) + " has no dtype " + std::string(name(dense)));
    if (!options.quantize.empty())
      base::misuse("dequantize", "tensors cannot be quantized and dequantized in one conversion");
  }
  if (options.cast_int != DType::unknown)
    core::check_word("cast-int", name(options.cast_int), Options::words("cast-int"));
  if (!options.gguf.naming.empty()) core::check_word("naming", options.gguf.naming, Options::words("naming"));
  const ZtOptions& zt = options.zt;
  if (!zt.sparse.empty()) core::check_word("sparse", zt.sparse, Options::words("sparse"));
  if (zt.sparse.empty() && zt.sparse_density != 0)
    base::misuse("share", "a density without a sparse layout says nothing");
  if (!(zt.sparse_density >= 0 && zt.sparse_density <= 1))
    base::misuse("share", "the density of sparse tensors is above 0 and at most 1");
  if (!zt.sparse.empty() && (options.cast != DType::unknown || options.cast_int != DType::unknown))
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
std::vector<OutputType> Plan::types() const {
  std::vector<OutputType> out;
  if (!rep_) return out;
  OutputType all{.name = "in all"};
  for (const core::WriteLayout* const file : core::files_of(rep_->layout)) {
    if (file->repeats) continue;
    std::vector<std::uint64_t> sizes(file->tensors.size());
    for (const core::Payload& payload : file->payloads)
      if (!payload.shared) sizes[payload.out_tensor] += payload.logical_size;
    for (std::size_t i = 0; i < file->tensors.size(); ++i) {
      const core::OutTensor& tensor = file->tensors[i];
      const std::string_view word = !tensor.type.empty()             ? tensor.type
                                    : tensor.dtype == DType::unknown ? tensor.from.type_name()
                                    : tensor.layout != Layout::dense ? name(tensor.layout)
                                                                     : name(tensor.dtype);
      auto at = std::ranges::find(out, word, &OutputType::name);
      if (at == out.end()) at = out.insert(out.end(), OutputType{.name = std::string(word)});
      const std::uint64_t elements = tensor.from.has_shape() ? base::element_count(tensor.from.shape()).value_or(0) : 0;
      for (OutputType* const one : {&*at, &all}) {
        ++one->tensors;
        one->elements += elements;
        one->size += tensor.view ? tensor.view->length : sizes[i];
      }
    }
  }
  out.push_back(std::move(all));
  return out;
}
std::string_view Plan::from() const noexcept { return rep_ ? std::string_view(rep_->from) : std::string_view{}; }
std::string_view Plan::to() const noexcept { return rep_ ? rep_->format->info.name : std::string_view{}; }

std::vector<Item> Plan::unconsented() const {
  const Options& asked = options();
  // Options that ask for a change consent to its losses.
  const bool dequantizes = asked.dequantize.has_value();
  const bool casts = asked.cast != DType::unknown || dequantizes || !asked.quantize.empty();
  const auto allowed = [&](const Item& loss) {
    return (casts && (loss.kind == LossKind::dtype || loss.kind == LossKind::precision)) ||
           (dequantizes && loss.kind == LossKind::layout && loss.to.starts_with(convert::kDense)) ||
           (!asked.gguf.naming.empty() && loss.kind == LossKind::dtype) ||  // of vectors, to f32
           (asked.gguf.no_tokenizer && loss.kind == LossKind::tokenizer) ||
           std::ranges::find(asked.allow, loss.kind) != asked.allow.end();
  };
  std::vector<Item> out;
  for (const Item& loss : losses())
    if (!allowed(loss)) out.push_back(loss);
  return out;
}

std::vector<Item> Plan::refused() const {
  std::vector<Item> out = unconsented();
  std::erase_if(out, [](const Item& loss) { return loss.kind == LossKind::file; });
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

// The attributes of an archive of arrays are its arrays of texts, and those of a pickle the values beside its tensors:
// an epoch, the settings of an optimizer. What becomes of them needs no consent, and text still has the value.
void release_values(core::WriteLayout& layout, const Model& from) {
  if (from.format() != "npz" && !core::has_values_beside(from)) return;
  std::erase_if(layout.losses, [&](Item& loss) {
    if (loss.kind == LossKind::attribute) loss.kind = LossKind::file;
    if (loss.kind != LossKind::attribute_type) return false;
    layout.changes.push_back(std::move(loss));
    return true;
  });
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
  bool decoded = false;   // its codes are numbers by now

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

// What a conversion is asked for.
struct Job {
  const FormatInfo& to;
  const Options& options;
  const Context& context;
  bool names_unasked = false;  // Options::gguf.naming is what a folder of a known architecture gets
  bool names_kept = false;     // that folder keeps its own
};

bool has_blocks(const Model& model) {
  return std::ranges::any_of(model, [](const Tensor& t) { return is_quantized(t.layout()) || t.unsupported(); });
}
bool has_layout(const Model& model, Layout layout) {
  return std::ranges::any_of(model, [=](const Tensor& t) { return t.layout() == layout; });
}
// The schemes whose layers the user wants as a quantized_group, or restored.
std::vector<convert::LayerScheme> layers_asked(const Model& model) {
  std::vector<convert::LayerScheme> out;
  for (const schemes::Answer& answer : core::answers_of(model)) {
    const std::string_view zeros = schemes::said({&answer, 1}, "gptq", "zeros");
    if (answer.id == "awq" || (!zeros.empty() && zeros != "planar")) out.push_back({answer.id, zeros});
  }
  return out;
}

core::Derived with_groups(const Model& model, const Job& job) {
  return convert::groups_of_layers(model, layers_asked(model), job.context);
}
core::Derived without_groups(const Model& model, const Job&) {
  return convert::layers_of_groups(model, layers_asked(model));
}
core::Derived with_blocks_of_gguf(const Model& model, const Job& job) {
  return convert::blocks_for_gguf(model, job.options, job.context);
}
core::Derived with_numbers(const Model& model, const Job& job) {
  core::Derived out = recipes::numbers_of(model, job.options.dequantize.value_or(job.options.cast), job.context);
  // A cast or a quantization asks for other values, not for these.
  if (!job.options.dequantize) append(out.changes, std::exchange(out.losses, {}));
  return out;
}
core::Derived with_dense_blocks(const Model& model, const Job& job) {
  return convert::dequantized(model, *job.options.dequantize);
}
core::Derived with_modules(const Model& model, const Job& job) { return convert::with_modules(model, job.context); }
core::Derived with_norm_names(const Model& model, const Job&) {
  core::Derived out = convert::with_norm_names(model);
  append(out.blockers, convert::refused_settings(model));
  return out;
}
core::Derived with_own_names(const Model& model, const Job& job) { return convert::with_own_names(model, job.to.name); }
// What does not fit the names is a blocker where nobody asked for them: the folder is what it is.
core::Derived with_names_of_llama_cpp(const Model& model, const Job& job) {
  if (convert::is_peft_adapter(model)) return convert::adapter_for_llama_cpp(model, job.options.base, job.context);
  try {
    return convert::named_for_llama_cpp(model, job.options.gguf);
  } catch (const Error& error) {
    if (!job.names_unasked || error.finding().rule != "misuse/naming") throw;
    core::Derived out{.model = model, .unseen = true};
    out.blockers.push_back({LossKind::unsupported, core::indexed("attributes", "hf.architectures"),
                            "names of llama.cpp", error.finding().message});
    return out;
  }
}
// Whether a GGUF gets the names of llama.cpp: if the user asks for them, and from a folder whose architecture is known.
bool takes_names(const Model& model, const FormatInfo& to, const Options& options) {
  if (to.name != "gguf" || options.gguf.naming == "source") return false;
  return !options.gguf.naming.empty() ||
         (model.format() == "hf" && convert::architecture_of(model) != nullptr && convert::has_words(model)) ||
         convert::is_peft_adapter(model);
}
core::Derived with_names_of_folder(const Model& model, const Job&) {
  constexpr std::string_view kArchitectures = "hf.architectures";
  core::Derived out{.model = model};
  out.changes.push_back(
      {LossKind::name, core::indexed("attributes", kArchitectures), model.attribute(kArchitectures)->to_text(),
       "tensors keep the folder's names, with which llama.cpp opens no file" +
           std::string(convert::can_be_named_for_llama_cpp(model) ? "; its own are given on request" : "")});
  return out;
}
core::Derived with_names_of_transformers(const Model& model, const Job&) {
  return convert::named_for_transformers(model);
}
// Under llama.cpp's names no program opens a folder.
core::Derived without_names_of_transformers(const Model& model, const Job&) {
  constexpr std::string_view kArchitecture = "general.architecture";
  core::Derived out{.model = model};
  out.blockers.push_back({LossKind::unsupported, core::indexed("attributes", kArchitecture),
                          model.attribute(kArchitecture)->to_text(), convert::refused_as_folder(model)});
  return out;
}
core::Derived with_names_of_peft(const Model& model, const Job& job) {
  return convert::adapter_for_peft(model, job.options.base, job.context);
}
core::Derived with_sparse(const Model& model, const Job& job) {
  const Options& options = job.options;
  const bool digests = !options.digest.empty() && options.digest != "none";
  return core::sparsified(model, options.zt.sparse == "csr" ? Layout::sparse_csr : Layout::sparse_coo,
                          options.zt.sparse_density, digests ? "a digest of the new bytes" : "no digest", job.context);
}
core::Derived canonical(const Model& model, const Job&) { return core::canonical(model); }

// The steps from a model to what is laid out, in their order. Each sees what those before it made.
struct Step {
  bool (*applies)(const Input&, const Job&);
  core::Derived (*run)(const Model&, const Job&);
  bool computes = true;  // some of its tensors are not those of the model
};
constexpr Step kSteps[] = {
    {[](const Input& in, const Job& job) {
       return !layers_asked(in.model).empty() && has_groups(job.to) && !job.options.dequantize &&
              !core::uses_of_codes(in.model).empty();
     },
     with_groups},
    {[](const Input& in, const Job& job) {
       return !layers_asked(in.model).empty() && !has_groups(job.to) && has_layout(in.model, Layout::quantized_group);
     },
     without_groups},
    {[](const Input& in, const Job& job) {
       const bool decodes = job.options.dequantize || job.options.cast != DType::unknown;
       return job.to.name == "gguf" && !decodes && !core::uses_of_codes(in.model).empty();
     },
     with_blocks_of_gguf},
    {[](const Input& in, const Job& job) {
       return convert::needs_values(job.options, job.to.name) && !core::uses_of_codes(in.model).empty();
     },
     with_numbers},
    {[](const Input& in, const Job& job) { return job.options.dequantize && (!in.decoded || has_blocks(in.model)); },
     with_dense_blocks},
    // A folder has the files of the modules.
    {[](const Input&, const Job& job) { return job.to.name != "hf"; }, with_modules, false},
    {[](const Input& in, const Job& job) {
       return job.to.name == "embd" ||
              (!job.options.gguf.naming.empty() && convert::architecture_of(in.model) == nullptr);
     },
     with_norm_names, false},
    {[](const Input& in, const Job& job) { return convert::needs_own_names(in.model, job.to.name); }, with_own_names},
    {[](const Input& in, const Job& job) {
       return !convert::needs_own_names(in.model, job.to.name) && !job.options.gguf.naming.empty();
     },
     with_names_of_llama_cpp},
    {[](const Input&, const Job& job) { return job.names_kept; }, with_names_of_folder, false},
    {[](const Input& in, const Job& job) {
       return job.to.name == "hf" && convert::architecture_of_gguf(in.model) != nullptr;
     },
     with_names_of_transformers},
    {[](const Input& in, const Job& job) {
       return job.to.name == "hf" && !convert::refused_as_folder(in.model).empty();
     },
     without_names_of_transformers, false},
    {[](const Input& in, const Job& job) { return job.to.name == "hf" && convert::is_gguf_adapter(in.model); },
     with_names_of_peft},
    {[](const Input&, const Job& job) { return !job.options.zt.sparse.empty(); }, with_sparse},
    {[](const Input&, const Job& job) { return job.options.canonical; }, canonical, false},
};
Input input_of(const Model& model, const Job& job) {
  recipes::require_asked(model);
  Input out{{.model = model}};
  for (const Step& step : kSteps) {
    if (out.refused || !step.applies(out, job)) continue;
    core::Derived made = step.run(out.model, job);
    out.computed = out.computed || step.computes || !made.files.empty();
    out.decoded = out.decoded || step.run == with_numbers;
    out.refused = (step.run == with_numbers || step.run == without_names_of_transformers) && !made.blockers.empty();
    out.take(std::move(made));
  }
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
  if (options.base && !convert::is_peft_adapter(model) && !convert::is_gguf_adapter(model))
    base::misuse("base", "a base is for an adapter, and this is none: not a folder of peft, nor a GGUF of llama.cpp");
  const Model checked = as_checked(model);
  Input input = input_of(checked, {to.info, options, context, rep->names_unasked, rep->names_kept});
  const Options asked = input.refused ? convert::without_values(options) : options;
  rep->layout = lay_out_true(model, input, to.info, asked, [&](const Model& from) { return layout(to, from, asked); });
  add_items(rep->layout, input);
  if (!input.refused) {
    convert::check_codes(rep->layout, input.model, model.format(), to.info.name);
    name_folder_files(rep->layout, model, input.files);
    release_values(rep->layout, model);
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

Plan plan(const Model& model, std::string_view format, const Options& given, const Context& context) {
  auto rep = std::make_shared<convert::PlanRep>();
  rep->format = &writer_of(format);
  Options options = given;
  const bool takes = takes_names(model, rep->format->info, given);
  rep->names_unasked = given.gguf.naming.empty() && takes;
  rep->names_kept = given.gguf.naming.empty() && !takes && format == "gguf" && model.format() == "hf" &&
                    convert::has_known_names(model);
  if (takes)
    options.gguf.naming = "llama";
  else if (given.gguf.naming == "source")
    options.gguf.naming.clear();
  try {
    return plan_with(std::move(rep), model, options, context,
                     [&context](const core::Format& to, const Model& from, const Options& asked) {
                       return registry::lay_out(to, from, asked, context);
                     });
  } catch (const Error& error) {
    // A mix goes by llama.cpp's names; one type for all is the other way.
    Finding found = error.finding();
    if (found.hint.name != "pure" || !convert::can_be_named_for_llama_cpp(model)) throw;
    found.hint = base::option_hint("naming", "llama");
    throw Error(std::move(found));
  }
}

Plan plan_append(const Model& target, const Model& more, const Options& options, const Context& context) {
  auto rep = std::make_shared<convert::PlanRep>();
  rep->format = &writer_of(target.format());
  if (!rep->format->append)
    base::misuse("append", "a file of the format " + std::string(target.format()) +
                               " cannot grow: append needs a .zt as its target");
  if (core::is_view(target))
    base::misuse("append", "a view of a file cannot grow: append to the file, and select from what is added");
  if (!core::answers_of(more).empty())
    base::misuse("append", "append takes tensors as they are, those of a scheme too: convert them first");
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
  std::string extensions;
  for (const FormatInfo& format : formats())
    for (const std::string_view each : format.writes ? format.extensions : std::span<const std::string_view>())
      extensions += " ." + std::string(each) + ",";
  base::misuse_of(path, "unknown-extension",
                  "the name does not show the output format: end it in" + extensions + " or / (a Hugging Face folder)",
                  base::option_hint("to", ambiguous ? "pytorch" : ""));
}

Written save(const Model& model, const std::string& path, const Options& options, const Context& context) {
  return plan(model, format_of_output(path), options, context).execute(path, context);
}

}  // namespace weighbridge
