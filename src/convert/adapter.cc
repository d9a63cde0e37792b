// SPDX-License-Identifier: Apache-2.0
// Reads adapters. peft writes `base_model.model.NAME.lora_A.weight` [r, in] and `.lora_B.weight` [out, r] with a
// configuration beside the file; kohya's scripts write the names of modules with underscores for dots, `.lora_down` and
// `.lora_up`, and `.alpha`; llama.cpp writes `NAME.lora_a` and `NAME.lora_b` with the name of the base's tensor; mlx-lm
// writes `NAME.lora_a` [in, r] and `NAME.lora_b` [r, out], also with a configuration. A package of kind ALR1 has the
// hashes of the base's names.
#include "convert/adapter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "convert/architectures.h"
#include "convert/llama_cpp.h"
#include "convert/naming.h"
#include "core/model/view.h"
#include "core/model/words.h"
#include "core/writing/claims.h"
#include "formats/slm_adapter/format.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
namespace {

using core::quoted;

// Tensors that a message names: enough to recognize another model by.
constexpr std::size_t kMaxNamed = 3;

// Adapters of image models are made for the modules of diffusers. A checkpoint in one file has the same modules under
// the names of the first programs (CompVis, OpenCLIP): "#" is a number from `first` on. In `to`, "@" is a third of it
// and "$" the rest, because each block has two layers and a change of resolution, or three layers.
struct Renamed {
  std::string_view from, to;
  std::uint32_t first = 0;
};
constexpr Renamed kUnet[] = {{"input_blocks.0.0", "conv_in"},
                             {"input_blocks.#.0.op", "down_blocks.@.downsamplers.0.conv", 1},
                             {"input_blocks.#.0", "down_blocks.@.resnets.$", 1},
                             {"input_blocks.#.1", "down_blocks.@.attentions.$", 1},
                             {"middle_block.0", "mid_block.resnets.0"},
                             {"middle_block.1", "mid_block.attentions.0"},
                             {"middle_block.2", "mid_block.resnets.1"},
                             {"output_blocks.#.1.conv", "up_blocks.@.upsamplers.0.conv"},
                             {"output_blocks.#.2.conv", "up_blocks.@.upsamplers.0.conv"},
                             {"output_blocks.#.0", "up_blocks.@.resnets.$"},
                             {"output_blocks.#.1", "up_blocks.@.attentions.$"},
                             {"time_embed.0", "time_embedding.linear_1"},
                             {"time_embed.2", "time_embedding.linear_2"},
                             {"label_emb.0.0", "add_embedding.linear_1"},
                             {"label_emb.0.2", "add_embedding.linear_2"},
                             {"out.2", "conv_out"}};
constexpr Renamed kOpenClip[] = {{"transformer.resblocks.#", "text_model.encoder.layers.#"}};
constexpr Renamed kEnds[] = {{".in_layers.2", ".conv1"},
                             {".emb_layers.1", ".time_emb_proj"},
                             {".out_layers.3", ".conv2"},
                             {".skip_connection", ".conv_shortcut"},
                             {".attn.out_proj", ".self_attn.out_proj"},
                             {".mlp.c_fc", ".mlp.fc1"},
                             {".mlp.c_proj", ".mlp.fc2"}};
// OpenCLIP keeps three matrices in one.
constexpr std::string_view kJoined = ".attn.in_proj_weight", kSplit[] = {"q_proj", "k_proj", "v_proj"};
struct Component {
  std::string_view prefix, name;  // in the file, and in diffusers
  std::span<const Renamed> rows{};
};
constexpr Component kComponents[] = {{"model.diffusion_model.", "unet.", kUnet},
                                     {"cond_stage_model.transformer.", "text_encoder."},
                                     {"cond_stage_model.model.", "text_encoder.", kOpenClip},
                                     {"conditioner.embedders.0.transformer.", "text_encoder."},
                                     {"conditioner.embedders.0.model.", "text_encoder_2.", kOpenClip},
                                     {"conditioner.embedders.1.model.", "text_encoder_2.", kOpenClip}};
// How kohya's scripts begin the names of modules, and the component that they mean.
constexpr std::pair<std::string_view, std::string_view> kKohya[] = {{"lora_unet_", "unet_"},
                                                                    {"lora_te1_", "text_encoder_"},
                                                                    {"lora_te2_", "text_encoder_2_"},
                                                                    {"lora_te3_", {}},
                                                                    {"lora_te_", "text_encoder_"},
                                                                    {"lora_transformer_", {}},
                                                                    {"lora_", {}}};

std::optional<std::string> renamed(const Renamed& row, std::string_view name) {
  const std::size_t hole = row.from.find('#');
  if (!name.starts_with(row.from.substr(0, hole))) return std::nullopt;
  name.remove_prefix(std::min(hole, row.from.size()));
  std::uint32_t number = 0;
  if (hole != row.from.npos) {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0 || digits > 3 || !name.substr(digits).starts_with(row.from.substr(hole + 1))) return std::nullopt;
    for (const char c : name.substr(0, digits)) number = number * 10 + static_cast<std::uint32_t>(c - '0');
    name.remove_prefix(digits + row.from.size() - hole - 1);
  }
  if (number < row.first || !(name.empty() || name.starts_with('.'))) return std::nullopt;
  std::string out;
  for (const char c : row.to)
    if (c == '#' || c == '@' || c == '$')
      out += std::to_string(c == '#' ? number : c == '@' ? (number - row.first) / 3 : (number - row.first) % 3);
    else
      out += c;
  return out.append(name);
}

// A tensor of the base, or one of the matrices that it consists of.
struct Place {
  std::uint32_t tensor = 0;
  std::uint32_t part = 0, parts = 1;
};

// Finds tensors of the base model by the ends of their names, and those of a checkpoint in one file by the names of
// diffusers.
class Targets {
 public:
  explicit Targets(const Model& base) : base_(base) {
    for (std::uint32_t i = 0; i < base_.size(); ++i)
      for (const Component& component : kComponents)
        if (base_.name(i).starts_with(component.prefix)) add_modules(i, component);
  }

  // Finds a name with dots: exactly, as the end of exactly one name, or without a wrapper's prefix.
  std::optional<Place> dotted(std::string_view name) {
    constexpr std::string_view kWrappers[] = {"model",           "unet",          "transformer",    "text_encoder",
                                              "base_model",      "bert",          "text_encoder_2", "roberta",
                                              "diffusion_model", "language_model"};
    ambiguous_.clear();
    if (!modules_.empty() && name.ends_with(kWeight)) {
      std::string module(name.substr(0, name.size() - kWeight.size()));
      std::ranges::replace(module, '.', '_');
      for (const auto& [kohya, component] : kKohya)
        if (!component.empty() && module.starts_with(component)) return module_at(module);
    }
    for (std::string_view rest = name;;) {
      if (const auto found = base_.find(rest)) return Place{found->index()};
      if (const auto found = at_the_end(dots_, rest, '.', false)) return Place{*found};
      const std::size_t dot = rest.find('.');
      if (dot == rest.npos || std::ranges::find(kWrappers, rest.substr(0, dot)) == std::end(kWrappers))
        return std::nullopt;
      rest.remove_prefix(dot + 1);
    }
  }

  // Finds the name of a module in which underscores replace dots.
  std::optional<Place> underscored(std::string_view name) {
    ambiguous_.clear();
    for (const auto& [prefix, component] : kKohya) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      if (!modules_.empty() && !component.empty()) return module_at(std::string(component).append(name));
      break;
    }
    const auto found = at_the_end(scores_, name, '_', true);
    return found ? std::optional(Place{*found}) : std::nullopt;
  }

  // Two tensors that the name last looked up could mean.
  const std::string& ambiguous() const noexcept { return ambiguous_; }

 private:
  using Ends = std::vector<std::pair<std::string, std::uint32_t>>;  // names from their ends, sorted

  std::optional<Place> module_at(const std::string& module) const {
    const auto at = modules_.find(module);
    return at == modules_.end() ? std::nullopt : std::optional(at->second);
  }

  // The names that a tensor's module has, with underscores: its own and that in diffusers.
  void add_modules(std::uint32_t tensor, const Component& component) {
    const auto add = [&](std::string_view module, Place place) {
      std::string name = std::string(component.name).append(module);
      std::ranges::replace(name, '.', '_');
      modules_.emplace(std::move(name), place);
    };
    std::string_view name = base_.name(tensor).substr(component.prefix.size());
    const bool joined = name.ends_with(kJoined);
    if (!joined && !name.ends_with(kWeight)) return;
    name.remove_suffix(joined ? kJoined.size() : kWeight.size());
    std::string module(name);
    for (const Renamed& row : component.rows)
      if (const auto anew = renamed(row, name)) {
        module = *anew;
        break;
      }
    if (joined) {
      for (std::uint32_t i = 0; i < std::size(kSplit); ++i)
        add(module + ".self_attn." + std::string(kSplit[i]), {tensor, i, std::size(kSplit)});
      return;
    }
    add(name, {tensor});
    for (const Renamed& end : kEnds)
      if (!component.rows.empty() && module.ends_with(end.from))
        module.replace(module.size() - end.from.size(), end.from.size(), end.to);
    add(module, {tensor});
  }

  std::optional<std::uint32_t> at_the_end(Ends& ends, std::string_view name, char divider, bool modules) {
    if (ends.empty()) collect(ends, modules);
    std::string from_end(name.rbegin(), name.rend());
    const auto first_of = [&](const std::string& key) {
      return std::lower_bound(ends.begin(), ends.end(), key,
                              [](const auto& entry, const std::string& wanted) { return entry.first < wanted; });
    };
    std::vector<std::uint32_t> found;
    for (auto at = first_of(from_end); at != ends.end() && at->first == from_end && found.size() < 2; ++at)
      found.push_back(at->second);
    from_end += divider;
    if (found.empty())
      for (auto at = first_of(from_end); at != ends.end() && at->first.starts_with(from_end) && found.size() < 2; ++at)
        found.push_back(at->second);
    if (found.size() > 1) ambiguous_ = quoted(base_.name(found[0])) + " or " + quoted(base_.name(found[1]));
    return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
  }

  void collect(Ends& ends, bool modules) const {
    for (std::uint32_t i = 0; i < base_.size(); ++i) {
      std::string name(base_.name(i));
      if (modules) {
        if (!name.ends_with(kWeight)) continue;
        name.resize(name.size() - kWeight.size());
        std::replace(name.begin(), name.end(), '.', '_');
      }
      ends.emplace_back(std::string(name.rbegin(), name.rend()), i);
    }
    std::ranges::sort(ends);
  }

  const Model& base_;
  std::unordered_map<std::string, Place> modules_;  // of a checkpoint in one file
  Ends dots_, scores_;
  std::string ambiguous_;
};

// What peft writes besides `NAME.weight` and `NAME.bias`, which replace a tensor: the matrix to which a change is made,
// the bias of a module with factors, rows of tokens that were trained, and second copies of modules_to_save.
constexpr std::string_view kBaseLayers[] = {".token_adapter.base_layer.weight", ".base_layer.weight"},
                           kTrainedBias = ".base_layer.bias", kTokenRows = ".token_adapter.trainable_tokens_delta",
                           kSecondCopy = ".modules_to_save.weight", kUntrainedCopy = ".original_module.weight";

bool is_number(const Tensor& tensor) {
  return !tensor.unsupported() && tensor.has_shape() && tensor.layout() != Layout::structural &&
         info(tensor.dtype()).kind == DTypeKind::real;
}

std::uint64_t behind_first(Shape shape) { return base::element_count(shape.subspan(1)).value_or(0); }

class Reader {
 public:
  Reader(const Model& base, const Lora& lora, const Context& context)
      : base_(base), lora_(lora), context_(context), row_(architecture_of(base)), targets_(base) {}

  std::vector<Change> run() {
    if (!std::isfinite(lora_.scale)) refuse_adapter(lora_, "scale", "the scale of an adapter must be a finite number");
    if (lora_.adapter.format() == slm_adapter::kFormat.info.name) {
      read_package();
    } else {
      stored_.emplace(lora_);
      if (stored_->pairs().empty() && !stored_->has_config()) no_adapter();
      require_architecture();
      take_bases();
      for (const FactorPair& pair : stored_->pairs()) add(pair);
      for (const Tensor& tensor : whole_) add_whole(tensor);
      for (const auto& [target, tensor] : bases_)
        if (std::ranges::find(out_, target, &Change::target) == out_.end())
          out_.push_back({.target = target, .left = {tensor, {}, false}});
    }
    report_missing();
    if (out_.empty()) no_adapter();
    std::vector<std::pair<std::uint32_t, std::uint64_t>> targets;
    for (const Change& change : out_) targets.emplace_back(change.target, change.first_row);
    std::ranges::sort(targets);
    if (const auto twice = std::ranges::adjacent_find(targets); twice != targets.end())
      refuse_adapter(lora_, "twice", "the adapter changes the tensor " + quoted(base_.name(twice->first)) + " twice");
    return std::move(out_);
  }

 private:
  [[noreturn]] void no_adapter() const {
    refuse_adapter(lora_, "empty",
                   "this is not an adapter: it has no pair of low-rank factors (lora_A and lora_B, or similar)");
  }

  void require_architecture() const {
    constexpr std::string_view kArchitecture = "general.architecture";
    const Value* const own = lora_.adapter.attribute(kArchitecture);
    const Value* const base = base_.attribute(kArchitecture);
    const bool is_gguf = std::ranges::any_of(stored_->pairs(), &FactorPair::is_gguf);
    if (is_gguf && base != nullptr && (own == nullptr || own->to_text() != base->to_text()))
      refuse_adapter(lora_, "base",
                     "the adapter is for the architecture " +
                         quoted(core::excerpt(own != nullptr ? own->to_text() : std::string())) +
                         ", and the model is " + quoted(core::excerpt(base->to_text())));
  }

  void missing(std::string_view wanted) {
    if (missing_.size() < kMaxNamed) {
      std::string text = quoted(wanted);
      if (!targets_.ambiguous().empty())
        text += " (which could be " + targets_.ambiguous() + ")";
      else if (const auto near = base_.nearest(wanted, 1); !near.empty())
        text += " (the nearest is " + quoted(near[0]) + ")";
      missing_.push_back(std::move(text));
    }
    ++missing_count_;
  }
  void report_missing() const {
    if (missing_count_ == 0) return;
    std::string text;
    for (const std::string& each : missing_) text += (text.empty() ? "" : ", ") + each;
    if (missing_count_ > missing_.size()) text += ", and " + std::to_string(missing_count_ - missing_.size()) + " more";
    refuse_adapter(lora_, "tensor",
                   std::string("the model has no tensor for ") + (missing_count_ == 1 ? "a change" : "changes") +
                       " of the adapter: " + text);
  }

  void add(const FactorPair& pair) {
    if (!pair.down || !pair.up)
      refuse_adapter(lora_, "pair",
                     "the adapter has only one factor of the change of " + quoted(pair.stem) + ": " +
                         (pair.down ? quoted(pair.down->name())
                          : pair.up ? quoted(pair.up->name())
                                    : quoted(pair.alpha->name())));
    std::string_view module = pair.stem;
    if (module.starts_with(kPeftPrefix)) module.remove_prefix(kPeftPrefix.size());
    std::optional<Place> target;
    std::string wanted(module);
    if (pair.is_gguf) {
      if (const auto found = base_.find(module)) target = Place{found->index()};
    } else if (module.find('.') == module.npos && module.starts_with("lora_")) {
      target = targets_.underscored(module);
    } else {
      wanted += kWeight;
      target = targets_.dotted(wanted);
    }
    if (!target) return missing(wanted);
    const Tensor base = base_[target->tensor];
    for (const Tensor& factor : {*pair.down, *pair.up})
      if (!is_number(factor) || factor.shape().size() < 2 || (pair.is_mlx && factor.shape().size() > 2))
        refuse_adapter(lora_, "factor",
                       "the tensor " + quoted(factor.name()) + " is not a matrix of floating-point numbers");
    if (!base.has_shape() || base.shape().size() < 2) refuse_shapes(pair, base);
    const auto own = bases_.find(target->tensor);
    const Shape shape = own == bases_.end() ? base.shape() : own->second.shape();
    Change change{.target = target->tensor, .rows = shape[0] / target->parts, .columns = behind_first(shape)};
    if (own != bases_.end()) change.base = own->second;
    change.first_row = target->part * change.rows;
    const Shape down = pair.down->shape(), up = pair.up->shape();
    const std::uint64_t down_rest = behind_first(down), up_rest = behind_first(up);
    // Adds the product of up [rows, rank] and down [rank, columns], or of their transposes.
    const bool straight = up[0] == change.rows && down_rest == change.columns && up_rest == down[0];
    const bool turned = down_rest == change.rows && up[0] == change.columns && up_rest == down[0];
    const bool by_column = pair.transposed || is_stored_by_columns(pair, base, straight, turned);
    const bool tokens = pair.is_gguf && module == kWordEmbeddings && down[0] == change.rows &&
                        up[0] == change.columns && down_rest == up_rest;
    const bool is_input =
        core::embeddings_of(base_).input && core::embeddings_of(base_).input->index() == target->tensor;
    const bool by_columns = down[0] == change.columns && up_rest == change.rows && down_rest == up[0];
    const bool by_rows = down[0] == change.rows && up_rest == change.columns && down_rest == up[0];
    if (pair.is_mlx) {
      if (by_rows && (is_input || !by_columns)) {
        change.left = {*pair.down, {}, false};
        change.right = {*pair.up, {}, true};
        change.rank = down_rest;
      } else if (by_columns) {
        change.left = {*pair.up, {}, true};
        change.right = {*pair.down, {}, false};
        change.rank = down_rest;
      }
    } else if (tokens) {
      change.left = {*pair.down, {}, false};
      change.right = {*pair.up, {}, false};
      change.rank = down_rest;
    } else if (turned && by_column) {
      change.left = {*pair.down, {}, true};
      change.right = {*pair.up, {}, false};
      change.rank = down[0];
    } else if (straight && !by_column) {
      change.left = {*pair.up, {}, false};
      change.right = {*pair.down, {}, true};
      change.rank = down[0];
    }
    if (change.rank == 0) {
      for (const std::uint64_t rows : {up[0], down_rest, down[0]})
        if (is_embedding(target->tensor) && rows > change.rows && rows > change.columns)
          refuse_adapter(
              lora_, "vocabulary",
              "the adapter changes " + std::to_string(rows) + " rows of " + quoted(base.name()) +
                  ", and the model has " + std::to_string(change.rows) +
                  ": neither has the other rows, so give the model to which they were added before the training");
      refuse_shapes(pair, base);
    }
    check_rank(change, pair.stem);
    const StoredAdapter::Scaling scaling = stored_->scaling_of(pair, module, change.rank, context_);
    change.scale = lora_.scale * scaling.factor.value_or(scaling.alpha / scaling.divisor);
    if (!std::isfinite(change.scale))
      refuse_adapter(lora_, "scale", "the scale of " + quoted(pair.stem) + " is not finite");
    out_.push_back(std::move(change));
  }

  // Whether the matrix belongs to a Conv1D of transformers. peft sets fan_in_fan_out by the class of each module that
  // it wraps, and saves the value of the last one, so the flag counts only where the base does not show the class.
  bool is_stored_by_columns(const FactorPair& pair, const Tensor& base, bool straight, bool turned) const {
    constexpr std::string_view kOfConv1d = "c_attn q_attn c_proj c_fc";
    if (pair.is_gguf || pair.is_mlx || !stored_->has_config()) return false;
    if (row_ != nullptr)
      if (const auto named = find_row(*row_, plain_name(base.name()))) return named->row->change == Arrange::transpose;
    std::string_view module = base.name();
    if (module.ends_with(kWeight)) module.remove_suffix(kWeight.size());
    const std::string_view parent = module.substr(0, module.rfind('.') + 1);
    const bool is_named = core::has_word(kOfConv1d, module.substr(parent.size()));
    if (is_named) {
      // The matrix of queries, keys and values beside it has more outputs than inputs.
      const auto joined = base_.find(std::string(parent) + "c_attn" + std::string(kWeight));
      if (joined && joined->has_shape() && joined->shape().size() == 2 && joined->shape()[0] != joined->shape()[1])
        return joined->shape()[0] < joined->shape()[1];
    }
    const bool flag = stored_->stores_transposed();
    if (straight && turned && flag != is_named)
      refuse_adapter(lora_, "transposed",
                     "the tensor " + quoted(base.name()) + " is square, adapter_config.json says fan_in_fan_out " +
                         (flag ? "true" : "false") +
                         ", which peft saves for the last module only, and nothing else says whether this one is a "
                         "Conv1D: give the model as a folder with its config.json");
    return turned && (flag || is_named);
  }

  [[noreturn]] void refuse_shapes(const FactorPair& pair, const Tensor& base) const {
    refuse_adapter(lora_, "shape",
                   "the shapes disagree: " + quoted(pair.down->name()) + " is " + core::shape_text(pair.down->shape()) +
                       ", " + quoted(pair.up->name()) + " is " + core::shape_text(pair.up->shape()) +
                       ", and the model's tensor " + quoted(base.name()) + " is " +
                       (base.has_shape() ? core::shape_text(base.shape()) : "of no known shape"));
  }

  // A rank above the matrix's smaller dimension adds nothing, and could cost unlimited work.
  void check_rank(const Change& change, std::string_view stem) const {
    const auto maximum = base::checked_add(change.rows, change.columns);
    const auto numbers = maximum ? base::checked_mul(*maximum, change.rank) : std::nullopt;
    const auto bytes = numbers ? base::checked_mul(*numbers, std::uint64_t{sizeof(double)}) : std::nullopt;
    if (!bytes || change.rank > *maximum)
      refuse_adapter(lora_, "rank",
                     "the inner rank " + std::to_string(change.rank) + " of " + quoted(stem) + " is more than the " +
                         std::to_string(maximum.value_or(UINT64_MAX)) + " rows and columns of its tensor");
    if (*bytes > context_.limits.decoded)
      base::over_limit("decoded",
                       "the factors of the change of " + quoted(stem) + " take " + std::to_string(*bytes) +
                           " bytes, more than the limit of " + std::to_string(context_.limits.decoded),
                       *bytes);
  }

  bool is_embedding(std::uint32_t target) const {
    const core::Embeddings found = core::embeddings_of(base_);
    return (found.input && found.input->index() == target) || (found.output && found.output->index() == target);
  }

  // Refuses a tensor that cannot take the place of the base's. An embedding may have another number of rows, if that is
  // asked for.
  void require_replacement(const Tensor& tensor, const Place& target) const {
    const Tensor base = base_[target.tensor];
    const bool numbers = target.parts == 1 && is_number(tensor) && base.has_shape() &&
                         tensor.shape().size() == base.shape().size() && !tensor.shape().empty();
    if (numbers && std::ranges::equal(tensor.shape(), base.shape())) return;
    if (!numbers || !is_embedding(target.tensor) ||
        !std::ranges::equal(tensor.shape().subspan(1), base.shape().subspan(1)))
      refuse_adapter(lora_, "shape",
                     "the tensor " + quoted(tensor.name()) + " of the adapter replaces " + quoted(base.name()) +
                         ", but has another shape, or is not of floating-point numbers");
    if (!lora_.resize_vocab)
      base::misuse_of(core::called(lora_.adapter, 0), "lora-vocabulary",
                      "the vocabulary was resized before the training: the adapter's " + quoted(tensor.name()) +
                          " has " + std::to_string(tensor.shape()[0]) + " rows, and the model's " +
                          quoted(base.name()) + " has " + std::to_string(base.shape()[0]),
                      base::option_hint("resize-vocab"));
  }

  // Takes the matrices that peft saved because an embedding is a target of the adapter, or has trained tokens.
  void take_bases() {
    for (const Tensor& tensor : stored_->whole()) {
      const std::string_view name = tensor.name();
      const auto* const ending = std::ranges::find_if(
          kBaseLayers, [&](std::string_view each) { return name.starts_with(kPeftPrefix) && name.ends_with(each); });
      if (ending == std::end(kBaseLayers)) {
        whole_.push_back(tensor);
        continue;
      }
      const std::string_view module =
          name.substr(kPeftPrefix.size(), name.size() - kPeftPrefix.size() - ending->size());
      const std::string wanted = std::string(module) + std::string(kWeight);
      const auto target = targets_.dotted(wanted);
      if (!target) {
        missing(wanted);
        continue;
      }
      require_replacement(tensor, *target);
      bases_.emplace(target->tensor, tensor);
    }
  }

  // The rows of tokens that peft trained.
  void add_tokens(const Tensor& tensor, std::string_view module) {
    const std::string wanted = std::string(module) + std::string(kWeight);
    const auto target = targets_.dotted(wanted);
    if (!target) return missing(wanted);
    const Tensor base = base_[target->tensor];
    const auto own = bases_.find(target->tensor);
    const Shape shape = own == bases_.end() ? base.shape() : own->second.shape();
    const std::vector<std::uint64_t>& tokens = stored_->tokens_of(module);
    if (!is_number(tensor) || tensor.shape().size() != 2 || shape.size() != 2 || tensor.shape()[1] != shape[1] ||
        tensor.shape()[0] != tokens.size())
      refuse_adapter(lora_, "shape",
                     "the tensor " + quoted(tensor.name()) + " of the adapter does not have " +
                         std::to_string(tokens.size()) + " rows as wide as those of " + quoted(base.name()));
    for (const std::uint64_t token : tokens)
      if (token >= shape[0])
        refuse_adapter(lora_, "vocabulary",
                       "the adapter was trained with the token " + std::to_string(token) + ", and " +
                           quoted(base.name()) + " has " + std::to_string(shape[0]) +
                           " rows: give the model to which it was added before the training");
    if (const std::uint64_t bytes = tokens.size() * shape[1] * sizeof(double); bytes > context_.limits.decoded)
      base::over_limit("decoded",
                       "the rows of " + quoted(tensor.name()) + " take " + std::to_string(bytes) +
                           " bytes, more than the limit of " + std::to_string(context_.limits.decoded),
                       bytes);
    if (lora_.scale != 1)
      refuse_adapter(lora_, "scale",
                     "the adapter replaces rows of the tensor " + quoted(base.name()) + ", which cannot be scaled");
    Change change{
        .target = target->tensor, .left = {tensor, {}, false}, .rows = shape[0], .columns = shape[1], .tokens = tokens};
    if (own != bases_.end()) change.base = own->second;
    out_.push_back(std::move(change));
  }

  // A tensor that replaces the base's: modules_to_save and biases of peft; or rows of it.
  void add_whole(const Tensor& tensor) {
    std::string_view name = tensor.name();
    const bool is_peft = name.starts_with(kPeftPrefix);
    if (is_peft) name.remove_prefix(kPeftPrefix.size());
    if (is_peft && name.ends_with(kTokenRows))
      return add_tokens(tensor, name.substr(0, name.size() - kTokenRows.size()));
    for (const std::string_view copy : {kSecondCopy, kUntrainedCopy}) {
      if (!is_peft || !name.ends_with(copy)) continue;
      const std::string of =
          std::string(tensor.name().substr(0, tensor.name().size() - copy.size())) + std::string(kWeight);
      const auto saved = lora_.adapter.find(of);
      if (!saved) break;
      // peft uses the copy that has the name of the model's tensor.
      if (copy == kSecondCopy && !core::have_same_values(*saved, tensor, context_))
        refuse_adapter(lora_, "twice",
                       "the tensors " + quoted(of) + " and " + quoted(tensor.name()) + " of the adapter differ");
      return;
    }
    std::string wanted(name);
    if (is_peft && name.ends_with(kTrainedBias))
      wanted.replace(name.size() - kTrainedBias.size(), kTrainedBias.size(), kBias);
    const auto target = is_peft || stored_->has_config() ? targets_.dotted(wanted) : std::nullopt;
    if (!target) return missing(wanted);
    const Tensor base = base_[target->tensor];
    require_replacement(tensor, *target);
    if (lora_.scale != 1)
      refuse_adapter(lora_, "scale",
                     "the adapter replaces the tensor " + quoted(base.name()) + " as a whole, which cannot be scaled");
    out_.push_back({.target = target->tensor, .left = {tensor, {}, false}});
  }

  void read_package() {
    if (lora_.adapter.version() != "ALR1")
      refuse_adapter(lora_, "kind",
                     "the adapter is a package of kind " + std::string(lora_.adapter.version()) +
                         ", which is not low-rank: slm::adapt() applies it");
    if (lora_.scale != 1) refuse_adapter(lora_, "scale", "the scale of an ALR1 package must be 1");
    require_identity(identity_of(base_), lora_.adapter);
    std::map<std::uint64_t, std::uint32_t> by_hash;
    for (std::uint32_t i = 0; i < base_.size(); ++i)
      if (const auto id = base_[i].id()) by_hash.emplace(*id, i);
    for (const Tensor& delta : lora_.adapter) {
      const auto found = by_hash.find(delta.id().value_or(0));
      if (found == by_hash.end()) {
        missing(delta.name());
        continue;
      }
      const Tensor base = base_[found->second];
      const Part a = delta.part(slm_adapter::kA).value(), b = delta.part(slm_adapter::kB).value();
      if (!std::ranges::equal(base.shape(), delta.shape()))
        refuse_adapter(lora_, "shape", "the package has the tensor " + quoted(base.name()) + " in another shape");
      Change change{.target = found->second,
                    .left = {delta, std::string(slm_adapter::kA), false},
                    .right = {delta, std::string(slm_adapter::kB), true},
                    .rows = a.shape()[0],
                    .columns = b.shape()[1],
                    .rank = a.shape()[1],
                    .rounds = true};
      check_rank(change, base.name());
      out_.push_back(std::move(change));
    }
  }

  const Model& base_;
  const Lora& lora_;
  const Context& context_;
  const Architecture* const row_;  // null: the base does not say its architecture, or it is not known
  Targets targets_;
  std::optional<StoredAdapter> stored_;
  std::vector<Tensor> whole_;              // those of the adapter that are no such forms
  std::map<std::uint32_t, Tensor> bases_;  // the adapter's own forms of the model's tensors
  std::vector<std::string> missing_;
  std::size_t missing_count_ = 0;
  std::vector<Change> out_;
};

}  // namespace

std::vector<Change> changes_of(const Model& base, const Lora& lora, const Context& context) {
  return Reader(base, lora, context).run();
}

}  // namespace weighbridge::convert
