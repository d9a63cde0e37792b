// SPDX-License-Identifier: Apache-2.0
// An adapter of peft for a language model under llama.cpp's names, as its convert_lora_to_gguf.py writes it, and the
// way back. The rows of the table of architectures name the modules. A view: values are rearranged while they are read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "convert/adapter.h"
#include "convert/architectures.h"
#include "convert/naming.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "formats/huggingface/layout.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::convert {
namespace {

using core::quoted, core::subject;

constexpr std::string_view kDown = ".lora_A.weight", kUp = ".lora_B.weight", kWordsDown = ".lora_embedding_A",
                           kWordsUp = ".lora_embedding_B";

// The settings of a config.json as the reader of folders gives them.
Model model_of_config(const Source& config, const Limits& limits) {
  const std::string text = core::whole_text(config, limits, huggingface::kConfig);
  wire::JsonReader in(text);
  core::Draft draft;
  std::string scratch;
  if (!in.enter_object()) base::misuse("lora-base", "config.json of the base is not a JSON object");
  for (wire::JsonString key; in.next_key(key);) {
    std::string name = "hf." + std::string(wire::json_text(key, scratch));
    wire::JsonString word;
    std::string_view raw;
    if (in.read_string(word))
      draft.set_attribute(std::move(name), Value::text(std::string(wire::json_text(word, scratch))));
    else if (in.skip_value(raw))
      draft.set_attribute(std::move(name), Value::text(std::string(raw)));
  }
  if (!in.ok() || !in.finish())
    base::misuse("lora-base", "config.json of the base is not JSON: " + std::string(in.error().sentence));
  return draft.finish();
}

// The row of a base model, and its sizes.
struct BaseOfAdapter {
  const Architecture* row = nullptr;
  Sizes sizes{};
  bool several_parts = false;  // its language model is one of its parts
  bool bare = false;           // an encoder whose modules have no prefix
};
BaseOfAdapter base_of_adapter(const Source& config, const Limits& limits) {
  const Model model = model_of_config(config, limits);
  BaseOfAdapter out{.row = architecture_of(model)};
  if (out.row == nullptr) {
    require_known_names(model);
    base::misuse("naming", "names of llama.cpp are not known for adapters of the architecture in config.json");
  }
  out.sizes = sizes_of(model, *out.row);
  out.several_parts = model.attribute("hf.text_config") != nullptr;
  const Value* const classes = model.attribute("hf.architectures");
  out.bare = (out.row->flags & kEncoder) != 0 && classes->to_text().find("Model\"") != std::string::npos;
  return out;
}

bool is_permuted(const Architecture& row, const TensorRow& of) {
  return (row.flags & kPermutes) != 0 && (of.change == Arrange::query_heads || of.change == Arrange::key_heads);
}

// What both directions have.
class Renaming {
 protected:
  Renaming(const Lora& lora, const Context& context) : lora_(lora), context_(context), stored_(lora) {
    draft_.begin_view(lora.adapter);
    draft_.set_tokenizer(std::nullopt);
    if (stored_.pairs().empty())
      refuse("empty", "this is not an adapter: it has no pair of low-rank factors (lora_A and lora_B)");
  }

  [[noreturn]] void refuse(std::string_view what, std::string message) const {
    refuse_adapter(lora_, what, std::move(message));
  }
  // Both factors, with the inner rank. `flipped`: of an embedding in a GGUF, [rows, rank].
  std::uint64_t rank_of(const FactorPair& pair, std::size_t dimensions, bool flipped = false) const {
    if (!pair.down || !pair.up) refuse("pair", "the adapter has only one factor of the change of " + quoted(pair.stem));
    for (const Tensor& factor : {*pair.down, *pair.up})
      if (factor.unsupported() || factor.layout() != Layout::dense || factor.shape().size() != dimensions ||
          info(factor.dtype()).kind != DTypeKind::real || info(factor.dtype()).bits % 8 != 0)
        refuse("factor", fmt::format("the tensor {} is not dense floating-point numbers in {} dimensions",
                                     quoted(factor.name()), dimensions));
    const Shape down = pair.down->shape(), up = pair.up->shape();
    const std::uint64_t rank = flipped ? down[1] : down[dimensions - 2];
    if (rank == 0 || up[dimensions - 1] != rank || (dimensions == 3 && down[0] != up[0]))
      refuse("shape", fmt::format("the shapes disagree: {} is {}, and {} is {}", quoted(pair.down->name()),
                                  core::shape_text(down), quoted(pair.up->name()), core::shape_text(up)));
    return rank;
  }
  static core::ElementsPtr own(const Tensor& tensor) { return core::elements_of(tensor, tensor.dtype()); }
  void adopt(const Tensor& tensor, const std::string& to) {
    draft_.adopt(to, tensor);
    changed(tensor, to);
  }
  void transpose(const Tensor& tensor, const std::string& to) {
    const std::uint64_t rows = tensor.shape()[1], columns = tensor.shape()[0];
    add(
        tensor, to, {rows, columns}, rows, columns, [=](std::uint64_t row) { return Line{.first = row, .step = rows}; },
        ", transposed");
  }
  template <class From> void reorder(const Tensor& tensor, const std::string& to, From from, std::string_view how) {
    const std::uint64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
    add(
        tensor, to, {rows, columns}, rows, columns,
        [=](std::uint64_t row) { return Line{.first = from(row) * columns}; }, how);
  }
  void add(const Tensor& tensor, const std::string& to, std::vector<std::uint64_t> shape, std::uint64_t rows,
           std::uint64_t columns, std::function<Line(std::uint64_t)> line, std::string_view how) {
    add_dense(draft_, to, std::move(shape), arranged({own(tensor)}, rows, columns, std::move(line)), tensor);
    changed(tensor, to + std::string(how));
  }
  void changed(const Tensor& tensor, std::string to) {
    out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.name()), std::move(to)});
  }
  core::Derived finish() {
    if (!draft_.index_names().empty()) refuse("twice", "two tensors of the adapter would have the same name");
    out_.model = draft_.finish();
    return std::move(out_);
  }

  const Lora& lora_;
  const Context& context_;
  const StoredAdapter stored_;
  core::Draft draft_;
  core::Derived out_;
};

class ForLlamaCpp : Renaming {
 public:
  ForLlamaCpp(const Lora& lora, const BaseOfAdapter& base, const Context& context)
      : Renaming(lora, context), row_(*base.row), sizes_(base.sizes) {}

  core::Derived run() {
    set("general.architecture", Value::text(std::string(row_.name)));
    set("general.type", Value::text("adapter"));
    set("adapter.type", Value::text("lora"));
    if (stored_.trains_tokens())
      refuse("config", "adapter_config.json says trainable_token_indices, which llama.cpp does not do");
    for (const FactorPair& pair : stored_.pairs()) take(pair);
    for (const Tensor& tensor : stored_.whole()) take_whole(tensor);
    finish_experts();
    describe(lora_.adapter, draft_, out_, -parameters_);
    set(std::string(kLoraAlpha), Value::real(static_cast<double>(alpha_), DType::f32));
    set("general.quantization_version", Value::integer(std::uint64_t{2}, DType::u32));
    for (const auto& [name, value] : lora_.adapter.attributes())
      if (!draft_.attribute(name) && name != "format") set(name, value);
    out_.files.emplace_back(kPeftConfig);
    return finish();
  }

 private:
  void set(std::string name, Value value) { draft_.set_attribute(std::move(name), std::move(value)); }

  void take(const FactorPair& pair) {
    std::string_view module = pair.stem;
    if (!module.starts_with(kPeftPrefix) || pair.is_mlx || pair.alpha)
      refuse("kind", "the adapter is not one of peft: its module " + quoted(pair.stem) + " does not begin with " +
                         quoted(kPeftPrefix));
    module.remove_prefix(kPeftPrefix.size());
    const std::string name = plain_name(std::string(module) + ".weight");
    const auto named = find_row(row_, name);
    if (!named || named->row->to.empty())
      refuse("tensor",
             "llama.cpp has no name for the module " + quoted(module) + " in the architecture " + quoted(row_.name));
    const TensorRow& row = *named->row;
    const std::uint64_t layers = row.from.starts_with("decoder.") ? sizes_.decoder_layers : sizes_.layers;
    if (row.from.find(".N.") != row.from.npos && named->layer >= layers)
      refuse("tensor", fmt::format("the module {} is beyond the {} layers of the base", quoted(module), layers));
    require_added(row, module);
    const std::uint64_t rank = rank_of(pair, 2);
    take_scale(pair, module, rank);
    const std::string to = spelled(row.to, named->layer, 0, row.to.ends_with(".weight") ? "" : ".weight");
    parameters_ += static_cast<double>(pair.up->shape()[0]) * static_cast<double>(pair.down->shape()[1]);
    if (row.change == Arrange::experts) return collect(pair, to, named->expert);
    const bool words = to == kWordEmbeddings;
    if (words != pair.transposed)
      refuse("tensor", "the module " + quoted(module) + (words ? " is no embedding" : " is an embedding") +
                           " in the adapter, and llama.cpp computes it otherwise");
    if (words)
      transpose(*pair.down, to + ".lora_a");
    else
      adopt(*pair.down, to + ".lora_a");
    if (is_permuted(row_, row)) return reorder_heads(pair, row, to);
    adopt(*pair.up, to + ".lora_b");
  }

  void reorder_heads(const FactorPair& pair, const TensorRow& row, const std::string& to) {
    const std::uint64_t heads = row.change == Arrange::query_heads ? sizes_.heads : sizes_.kv_heads;
    const std::uint64_t head = sizes_.head, rows = pair.up->shape()[0];
    if (head % 2 != 0 || rows / head != heads || rows % head != 0)
      refuse("shape", fmt::format("the tensor {} has {} rows, and the base has {} heads of {}", quoted(pair.up->name()),
                                  rows, heads, head));
    reorder(
        *pair.up, to + ".lora_b", [head](std::uint64_t at) { return paired_row(at, head); },
        ", with the rows of each head in the order of llama.cpp");
  }

  // llama.cpp opens an adapter of tensors that its graphs multiply without looking for one, and computes without it.
  void require_added(const TensorRow& row, std::string_view module) const {
    const std::string_view to = row.to;
    const bool latent = (row_.flags & kDeepSeek) != 0 && to.find("attn_output") == to.npos &&
                        (to.find(".attn_") != to.npos || to == "output");
    const bool plain = row.change == Arrange::none || row.change == Arrange::query_heads ||
                       row.change == Arrange::key_heads || row.change == Arrange::transpose ||
                       row.change == Arrange::experts;
    if (latent || !plain || to == "position_embd" || to == "token_types" || to.ends_with("attn_rel_b"))
      refuse("tensor", "llama.cpp does not add an adapter to the module " + quoted(module) + " of this architecture");
    if (sizes_.untied) return;
    if (to == "output")
      refuse("tensor", "config.json does not say tie_word_embeddings false, and llama.cpp opens no adapter of " +
                           quoted(module) + " then: the output is the word embeddings");
    if (to == "token_embd")
      refuse("tensor", "config.json does not say tie_word_embeddings false, and llama.cpp would add the change of " +
                           quoted(module) + " to the output too, which peft does not");
  }

  // A GGUF has one alpha, which is divided by the rank of each change.
  void take_scale(const FactorPair& pair, std::string_view module, std::uint64_t rank) {
    const StoredAdapter::Scaling scaling = stored_.scaling_of(pair, module, rank, context_);
    const double exact = scaling.alpha * (static_cast<double>(rank) / scaling.divisor);
    const auto alpha = static_cast<float>(exact);
    if (scaling.factor || !std::isfinite(alpha) || alpha == 0)
      refuse("alpha", "the change of " + quoted(module) + " is scaled by " + number_text(exact) +
                          ", for which a GGUF has no alpha");
    if (alpha_ != 0 && alpha != alpha_)
      refuse("alpha", fmt::format("a GGUF has one alpha, which is divided by the rank of each change: {} has {}, and "
                                  "others have {} (alpha_pattern, or use_rslora with several ranks)",
                                  quoted(module), number_text(exact), number_text(static_cast<double>(alpha_))));
    if (alpha_ == 0 && exact != scaling.alpha)
      out_.changes.push_back({LossKind::attribute, core::indexed("attributes", kLoraAlpha),
                              "lora_alpha " + number_text(scaling.alpha) + " with use_rslora",
                              number_text(static_cast<double>(alpha)) + ", times the root of the rank"});
    alpha_ = alpha;
  }

  // Matrices that stand where the base had others.
  void take_whole(const Tensor& tensor) {
    if (!tensor.name().ends_with(".base_layer.weight"))
      refuse("tensor", "the adapter replaces the tensor " + quoted(tensor.name()) +
                           " as a whole (modules_to_save or bias), which llama.cpp does not do");
    out_.losses.push_back({LossKind::unsupported, subject(tensor), std::string(tensor.type_name()),
                           "left out: llama.cpp takes the base's own, which may be another"});
  }

  // ---- experts ----

  void collect(const FactorPair& pair, const std::string& to, std::uint64_t expert) {
    if (expert >= sizes_.experts)
      refuse("tensor", fmt::format("the module {} is of an expert beyond the {}", quoted(pair.stem), sizes_.experts));
    stacks_[to].emplace(expert, &pair);
  }
  void finish_experts() {
    for (const auto& [to, all] : stacks_) {
      std::uint64_t next = 0;
      for (const auto& [expert, pair] : all) next += expert == next ? 1 : 0;
      if (next != sizes_.experts)
        refuse("tensor", fmt::format("the adapter has no change of expert {} of {}, and llama.cpp needs one of each",
                                     next, quoted(to)));
      for (const bool down : {true, false}) {
        std::vector<core::ElementsPtr> inputs;
        std::vector<std::uint64_t> shape;
        for (const auto& [e, pair] : all) {
          const Tensor& tensor = down ? *pair->down : *pair->up;
          if (shape.empty()) shape.assign(tensor.shape().begin(), tensor.shape().end());
          if (!std::ranges::equal(tensor.shape(), shape) ||
              tensor.dtype() != (down ? all.at(0)->down : all.at(0)->up)->dtype())
            refuse("shape", "the tensor " + quoted(tensor.name()) + " has another shape or type than expert 0's");
          inputs.push_back(own(tensor));
          changed(tensor, fmt::format("matrix {} of {}.lora_{}", e, to, down ? 'a' : 'b'));
        }
        const std::uint64_t rows = shape[0], columns = shape[1];
        add_dense(draft_, to + (down ? ".lora_a" : ".lora_b"), {all.size(), rows, columns},
                  arranged(std::move(inputs), all.size() * rows, columns,
                           [=](std::uint64_t row) {
                             return Line{.input = static_cast<std::size_t>(row / rows), .first = row % rows * columns};
                           }),
                  down ? *all.at(0)->down : *all.at(0)->up);
      }
    }
  }

  const Architecture& row_;
  const Sizes sizes_;
  float alpha_ = 0;
  double parameters_ = 0;                                                     // of the matrices that it changes
  std::map<std::string, std::map<std::uint64_t, const FactorPair*>> stacks_;  // by expert
};

class ForPeft : Renaming {
 public:
  // `base`: null if nothing is known of it.
  ForPeft(const Lora& lora, const BaseOfAdapter* base, const Context& context) : Renaming(lora, context), base_(base) {
    const Value* const name = lora.adapter.attribute("general.architecture");
    if (name == nullptr) refuse("base", "the adapter has no \"general.architecture\"");
    architecture_ = name->to_text();
    if (base != nullptr && base->row->name != architecture_)
      refuse("base", fmt::format("the adapter is for the architecture {}, and the base is {}",
                                 quoted(core::excerpt(architecture_)), quoted(base->row->name)));
    if (base != nullptr && base->several_parts)
      refuse("base", "the base has parts other than a language model, whose names in peft depend on its version");
    row_ = base != nullptr ? base->row : only_row();
  }

  core::Derived run() {
    for (const Tensor& tensor : stored_.whole())
      refuse("tensor", "the tensor " + quoted(tensor.name()) + " is no factor: llama.cpp does not apply it");
    for (const FactorPair& pair : stored_.pairs()) take(pair);
    set_config();
    keep_others();
    return finish();
  }

 private:
  // The rows of the architecture say the same of names; or the base must say which one is meant.
  const Architecture* only_row() const {
    const Architecture* out = nullptr;
    for (const Architecture& row : architectures()) {
      if (row.name != architecture_) continue;
      const bool same = out == nullptr || (out->names.data() == row.names.data() && out->prefixes == row.prefixes);
      const bool prefixed = (row.flags & kEncoder) != 0 && !row.prefixes.empty();
      if ((row.flags & kPermutes) != 0 || prefixed || !same) need_base();
      if (out == nullptr) out = &row;
    }
    if (out == nullptr)
      refuse("base", "no names are known for the architecture " + quoted(core::excerpt(architecture_)));
    return out;
  }
  [[noreturn]] static void need_base() {
    base::misuse("lora-base",
                 "the names and the order of rows depend on the base model, of which the adapter says too little: name "
                 "its folder or its config.json",
                 base::option_hint("base"));
  }

  void take(const FactorPair& pair) {
    std::optional<Named> named;
    for (const std::span<const TensorRow> rows : {row_->names, row_->family})
      for (const TensorRow& row : rows)
        if (!named && !row.to.empty())
          if ((named = match(row.to.ends_with(".weight") ? row.to.substr(0, row.to.size() - 7) : row.to, pair.stem)))
            named->row = &row;
    if (!named || named->tail != ".weight")
      refuse("tensor",
             "transformers has no name for " + quoted(pair.stem) + " in the architecture " + quoted(row_->name));
    const TensorRow& row = *named->row;
    const std::vector<std::string_view> prefixes = split(row_->prefixes, ' ');
    const bool bare = row.to == "output" || prefixes.empty() || (base_ != nullptr && base_->bare);
    const std::string prefix(bare ? std::string_view() : prefixes[0]);
    const auto module_of = [&](std::uint64_t expert) { return prefix + spelled(row.from, named->layer, expert, ""); };
    turned_ |= row.change == Arrange::transpose;
    switch (row.change) {
      case Arrange::experts: return divide(pair, module_of);
      case Arrange::none:
      case Arrange::transpose:
      case Arrange::query_heads:
      case Arrange::key_heads: break;
      default: refuse("tensor", "peft has no form for a change of " + quoted(pair.stem) + " in this architecture");
    }
    const bool words = pair.stem == kWordEmbeddings;
    const std::string module = module_of(0), to = std::string(kPeftPrefix) + module;
    add_module(pair, module, rank_of(pair, 2, words));
    if (words) {
      transpose(*pair.down, to + std::string(kWordsDown));
      return adopt(*pair.up, to + std::string(kWordsUp));
    }
    adopt(*pair.down, to + std::string(kDown));
    if (!is_permuted(*row_, row)) return adopt(*pair.up, to + std::string(kUp));
    const std::uint64_t head = base_->sizes.head, rows = pair.up->shape()[0];
    if (head % 2 != 0 || rows % head != 0)
      refuse("shape",
             fmt::format("the tensor {} has {} rows, and a head of the base {}", quoted(pair.up->name()), rows, head));
    reorder(
        *pair.up, to + std::string(kUp), [head](std::uint64_t at) { return unpaired_row(at, head); },
        ", with the rows of each head as transformers has them");
  }

  template <class ModuleOf> void divide(const FactorPair& pair, ModuleOf module_of) {
    // Each becomes two tensors: a small file could have very many.
    constexpr std::uint64_t kMostExperts = 4096, kLeastElements = 64;
    const std::uint64_t rank = rank_of(pair, 3), experts = pair.down->shape()[0];
    const std::uint64_t elements = base::element_count(pair.down->shape()).value_or(0);
    if (experts > kMostExperts || elements / std::max<std::uint64_t>(experts, 1) < kLeastElements)
      refuse("shape", fmt::format("the tensor {} is {}: at most {} experts with at least {} elements each are taken",
                                  quoted(pair.down->name()), core::shape_text(pair.down->shape()), kMostExperts,
                                  kLeastElements));
    for (std::uint64_t e = 0; e < experts; ++e) {
      const std::string module = module_of(e);
      add_module(pair, module, rank);
      for (const auto& [factor, ending] : {std::pair(&*pair.down, kDown), std::pair(&*pair.up, kUp)}) {
        const std::uint64_t rows = factor->shape()[1], columns = factor->shape()[2];
        add(
            *factor, std::string(kPeftPrefix) + module + std::string(ending), {rows, columns}, rows, columns,
            [=](std::uint64_t row) { return Line{.first = (e * rows + row) * columns}; }, ", of one expert");
      }
    }
  }

  void add_module(const FactorPair& pair, const std::string& module, std::uint64_t rank) {
    const double alpha = stored_.scaling_of(pair, module, rank, context_).alpha;
    modules_.push_back({module, rank, alpha});
  }

  // adapter_config.json. Whole names are patterns that fit one module.
  void set_config() {
    wire::JsonWriter out(wire::JsonWriter::Style::indented);
    const auto pattern = [&](std::string_view key, auto&& value_of, const std::string& usual) {
      out.key(key).begin_object();
      for (const Module& each : modules_)
        if (const std::string own = value_of(each); own != usual) out.key(each.name).raw(own);
      out.end_object();
    };
    const auto rank_of_module = [](const Module& each) { return std::to_string(each.rank); };
    // The shortest text of what was an f32.
    const auto alpha_of_module = [](const Module& each) {
      const auto alpha = static_cast<float>(each.alpha);
      return static_cast<double>(alpha) == each.alpha ? fmt::format("{}", alpha) : number_text(each.alpha);
    };
    out.begin_object();
    pattern("alpha_pattern", alpha_of_module, alpha_of_module(modules_[0]));
    out.key("base_model_name_or_path");
    if (const std::string id = base_id(); id.empty())
      out.null();
    else
      out.string(id);
    out.key("bias").string("none");
    out.key("fan_in_fan_out").boolean(turned_);
    out.key("inference_mode").boolean(true);
    out.key("lora_alpha").raw(alpha_of_module(modules_[0]));
    out.key("peft_type").string("LORA");
    out.key("r").raw(rank_of_module(modules_[0]));
    pattern("rank_pattern", rank_of_module, rank_of_module(modules_[0]));
    out.key("target_modules").begin_array();
    for (const Module& each : modules_) out.string(each.name);
    out.end_array();
    out.end_object();
    draft_.set_attribute(std::string(huggingface::kFileText) + std::string(kPeftConfig),
                         Value::text(out.take() + "\n"));
  }
  std::string base_id() const {
    constexpr std::string_view kHub = "https://huggingface.co/";
    const Value* const url = lora_.adapter.attribute("general.base_model.0.repo_url");
    const std::string text = url ? url->to_text() : std::string();
    return text.starts_with(kHub) ? text.substr(kHub.size()) : std::string();
  }

  // peft reads none of them; texts stay in the metadata of the weights.
  void keep_others() {
    constexpr std::string_view kSaid =
        "general.architecture general.type adapter.type adapter.lora.alpha "
        "general.quantization_version general.file_type general.alignment";
    for (const auto& [key, value] : lora_.adapter.attributes()) {
      if (core::has_word(kSaid, key)) continue;
      if (value.kind() == Value::Kind::text)
        draft_.set_attribute(key, value);
      else
        out_.losses.push_back({LossKind::file, core::indexed("attributes", key), core::excerpt(value.to_text()),
                               "left out: an adapter of peft has no place for it"});
    }
  }

  struct Module {
    std::string name;
    std::uint64_t rank = 0;
    double alpha = 0;
  };
  const BaseOfAdapter* const base_;
  const Architecture* row_ = nullptr;
  std::string architecture_;
  std::vector<Module> modules_;
  bool turned_ = false;
};

}  // namespace

bool is_peft_adapter(const Model& model) {
  const auto files = core::folder_files(model);
  return std::ranges::find(files, kPeftConfig, &core::FolderFile::name) != files.end() &&
         std::ranges::any_of(model, [](const Tensor& tensor) {
           return tensor.name().find(".lora_A.") != std::string_view::npos ||
                  tensor.name().find(kWordsDown) != std::string_view::npos;
         });
}
bool is_gguf_adapter(const Model& model) {
  const Value* const type = model.attribute("general.type");
  return model.format() == "gguf" && type != nullptr && type->to_text() == "adapter";
}

core::Derived adapter_for_llama_cpp(const Model& adapter, const std::shared_ptr<const Source>& base,
                                    const Context& context) {
  if (!base)
    base::misuse(
        "lora-base",
        "an adapter of peft gets the names of llama.cpp by the architecture of its base model: name its folder "
        "or its config.json",
        base::option_hint("base"));
  const std::shared_ptr<const Source> config = core::open_folder_file(adapter, kPeftConfig);
  Lora lora{.adapter = adapter};
  if (config) lora.config = core::whole_text(*config, context.limits, kPeftConfig);
  return ForLlamaCpp(lora, base_of_adapter(*base, context.limits), context).run();
}

core::Derived adapter_for_peft(const Model& adapter, const std::shared_ptr<const Source>& base,
                               const Context& context) {
  const Lora lora{.adapter = adapter};
  if (!base) return ForPeft(lora, nullptr, context).run();
  const BaseOfAdapter known = base_of_adapter(*base, context.limits);
  return ForPeft(lora, &known, context).run();
}

}  // namespace weighbridge::convert
