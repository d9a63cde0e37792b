// SPDX-License-Identifier: Apache-2.0
// Chooses the family of each tensor by its name, and names what no family decodes.
#include "recipes/matcher.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "wire/json_reader.h"

namespace weighbridge::recipes {
namespace {

constexpr std::uint64_t kMaxRead = std::uint64_t{1} << 28;      // bytes of all tensors that describe others
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 56;  // of one tensor; products with widths fit
constexpr std::size_t kMaxText = 64;                            // bytes of a word of the config in a sentence

core::ElementsPtr made_f32(core::ElementsPtr from, decltype(core::Mapping::make) make) {
  return core::mapped(std::move(from), {.dtype = DType::f32, .make = std::move(make)});
}

std::string word(std::string_view text) { return "'" + std::string(text.substr(0, kMaxText)) + "'"; }

// Names that layouts without a recipe give to what completes the codes of a weight: a word for it, and the layout.
struct Refusal {
  std::string_view end, text;
};
constexpr Refusal kByCompanion[] = {
    {".pre_quant_scale",
     "it has a pre_quant_scale, by which ModelOpt's AWQ multiplies what comes in: no recipe has it"},
    {".comfy_quant", "comfy_quant marks it as ComfyUI's, whose scales may be swizzled"},
    {".weight_sf", "its scales are a weight_sf, which is swizzled"},
    {".scale_weight", "its scale is a scale_weight, as of the scaled_fp8 of ComfyUI, which is not decoded"},
};
constexpr Refusal kByScheme[] = {
    {"fp8-part", "its scale may be in another file of the model: open the index or the folder that has all files"},
    {"int4", "two rows share a byte, as in ModelOpt's W4A16_AWQ, which no library decodes on a CPU"},
    {"torchao", "the layouts of torchao are not decoded"},
    {"bitsandbytes-4bit", "there is no quant_state that says its type and its shape"},
    {"exl2", "the layout of EXL2 is not decoded"},
    {"exl3", "the layout of EXL3 is not decoded"},
    {"aqlm", "the codebooks of AQLM are not decoded"},
    {"vptq", "the codebooks of VPTQ are not decoded"},
    {"marlin", "the order of Marlin's codes is not decoded"},
    {"bitnet", "the layout of BitNet is not decoded"},
    {"higgs", "the layout of HIGGS is not decoded"},
    {"quip", "the layout of QuIP# is not decoded"},
};

// Methods whose tensors are those of one family of layouts.
constexpr std::string_view kOwnLayouts[] = {"gptq", "awq", "bitsandbytes", "hqq", "mlx", "metal", "quanto"};
// The layouts of compressed-tensors by the name of the format.
constexpr std::pair<std::string_view, std::string_view> kFormats[] = {{"pack-quantized", "compressed-tensors"},
                                                                      {"int-quantized", "int8"},
                                                                      {"float-quantized", "fp8"},
                                                                      {"nvfp4-pack-quantized", "nvfp4"},
                                                                      {"mxfp4-pack-quantized", "mxfp4"},
                                                                      {"mxfp6-pack-quantized", "mxfp6"},
                                                                      {"mxfp8-quantized", "mxfp8"}};

// The parts of layers: a name that ends so needs one of the others in its place.
struct Stray {
  std::string_view end;
  std::array<std::string_view, 3> of;
};
constexpr Stray kStrays[] = {
    {".weight_scale", {".weight", ".weight_packed", ""}},
    {".weight_scale_inv", {".weight", "", ""}},
    {".weight_scale_2", {".weight", "", ""}},
    {".weight_global_scale", {".weight_packed", "", ""}},
    {".weight_zero_point", {".weight_packed", ".weight", ""}},
    {".weight_g_idx", {".weight_packed", ".weight", ""}},
    {".weight_shape", {".weight_packed", "", ""}},
    {".qzeros", {".qweight", "", ""}},
    {".SCB", {".weight", "", ""}},
    {".weight.absmax", {".weight", "", ""}},
    {".weight.nested_absmax", {".weight", "", ""}},
    {".weight._scale", {".weight._data", ".weight._data._data", ""}},
    {".weight._shift", {".weight._data._data", ".weight._data", ""}},
    {"_proj_scales", {"_proj_blocks", "", ""}},
};

}  // namespace

bool is_real(DType d) noexcept { return d == DType::f16 || d == DType::bf16 || d == DType::f32; }
std::uint64_t count_of(const Tensor& tensor) noexcept { return base::element_count(tensor.shape()).value_or(0); }

core::ElementsPtr by_code(const Part& part, const std::array<float, 256>& values) {
  return made_f32(stored_elements(part), [values](std::uint64_t, std::span<const std::byte> in,
                                                  std::span<std::byte> out, const Context&, codecs::CastTally*) {
    for (std::size_t i = 0; i < in.size(); ++i)
      std::memcpy(out.data() + 4 * i, &values[std::to_integer<std::size_t>(in[i])], 4);
  });
}
core::ElementsPtr as_f32(const Part& part) {
  const DType from = part.dtype();
  if (from == DType::f32) return stored_elements(part);
  return made_f32(stored_elements(part),
                  [from](std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out, const Context&,
                         codecs::CastTally*) { codecs::cast(from, in, DType::f32, out, out.size() / 4); });
}
core::ElementsPtr changed(core::ElementsPtr from, std::function<float(float)> change) {
  return made_f32(std::move(from),
                  [change = std::move(change)](std::uint64_t, std::span<const std::byte> in, std::span<std::byte> out,
                                               const Context&, codecs::CastTally*) {
                    for (std::size_t i = 0; i < in.size(); i += 4) {
                      float value;
                      std::memcpy(&value, in.data() + i, 4);
                      value = change(value);
                      std::memcpy(out.data() + i, &value, 4);
                    }
                  });
}
std::array<float, 256> exponents() {
  std::array<float, 256> out{};
  for (int e = 0; e < 256; ++e) out[static_cast<std::size_t>(e)] = std::ldexp(1.0F, e - 127);
  return out;
}
core::ElementsPtr stream_of(const Part& part, std::uint64_t rows, std::uint64_t columns, std::uint64_t row_bytes,
                            std::uint32_t bits, const std::function<float(std::uint32_t)>& value) {
  auto recipe = std::make_shared<Recipe>();
  recipe->rows = rows;
  recipe->columns = columns;
  recipe->packing = Packing::stream;
  recipe->bits = bits;
  recipe->codes = stored_elements(part);
  recipe->row_bytes = row_bytes;
  for (std::uint32_t code = 0; code < 1U << bits; ++code) recipe->value[code] = value(code);
  return elements_of(std::move(recipe), false);
}

Matcher::Matcher(const Model& model, const Context& context, Look look)
    : model_(model), context_(context), look_(look), layers_(core::quantization_of(model)), left_(kMaxRead) {}

std::vector<Match> Matcher::run() {
  for (const Tensor& tensor : model_) try_one(tensor);
  for (const Tensor& tensor : model_)
    if (const core::Coded* const mark = core::coded(tensor); mark != nullptr && mark->codes) leave(tensor);
  if (look_ == Look::closely && core::incomplete(model_) == nullptr) find_strays();
  return std::move(out_);
}

// Recipes read whole bytes, of tensors that are stored as one part.
bool Matcher::is_plain(const Tensor& t) {
  return t.part_count() == 1 && t.layout() == Layout::dense && t.has_shape() && !t.unsupported() &&
         info(t.dtype()).bits % 8 == 0 && base::element_count(t.shape()).value_or(UINT64_MAX) < kMaxElements;
}
std::optional<Tensor> Matcher::find(const std::string& name) const {
  const auto found = model_.find(name);
  return found && is_plain(*found) ? std::optional<Tensor>(*found) : std::nullopt;
}
std::optional<Tensor> Matcher::take(const std::string& name) {
  auto out = find(name);
  if (out) used_.push_back(out->index());
  return out;
}

std::vector<std::byte> Matcher::whole(const Tensor& tensor) {
  const Part part = tensor.main();
  if (part.size() > left_) {
    left_ = 0;
    return {};
  }
  left_ -= part.size();
  std::vector<std::byte> out(base::to_size(part.size()));
  const auto elements = stored_elements(part);
  elements->read(0, elements->count(), out, context_);
  return out;
}
std::vector<std::uint64_t> Matcher::integers_of(const Tensor& tensor) {
  const std::size_t width = info(tensor.dtype()).bits / 8;
  if (info(tensor.dtype()).kind == DTypeKind::real || width == 0 || width > 8) return {};
  const std::vector<std::byte> bytes = whole(tensor);
  std::vector<std::uint64_t> out;
  out.reserve(bytes.size() / width);
  for (std::size_t i = 0; i + width <= bytes.size(); i += width) {
    std::uint64_t value = 0;
    for (std::size_t k = width; k-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i + k]);
    out.push_back(value);
  }
  return out;
}
std::optional<std::uint64_t> Matcher::integer_of(const std::optional<Tensor>& tensor) {
  if (!tensor || count_of(*tensor) != 1) return std::nullopt;
  const auto all = integers_of(*tensor);
  return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
}
float Matcher::number_of(const Tensor& tensor) {
  float out = std::nanf("");
  if (count_of(tensor) == 1 && is_real(tensor.dtype()))
    as_f32(tensor.main())->read(0, 1, std::as_writable_bytes(std::span(&out, 1)), context_);
  return out;
}
std::string_view Matcher::answer(std::string_view id, std::string_view key) const {
  return schemes::said(core::answers_of(model_), id, key);
}
std::uint64_t Matcher::number_answer(std::string_view id, std::string_view key) const {
  return wire::as_u64(answer(id, key)).value_or(0);
}
DType Matcher::result_of(DType otherwise) const {
  const auto stated = dtype_from_name(short_dtype_name(layers_.config().dtype));
  return stated && is_real(*stated) ? *stated : otherwise;
}

void Matcher::finish(const Tensor& codes, std::string name, RecipePtr recipe) {
  if (const auto other = model_.find(name);
      other && other->index() != codes.index() && std::ranges::find(used_, other->index()) == used_.end())
    return malformed(core::rules::kQuantizedShape, codes, name, "there is a tensor of the name of its weight");
  compare_with_config(codes, *recipe);
  Match match{.name = std::move(name), .tensors = {codes.index()}, .recipe = std::move(recipe)};
  match.tensors.insert(match.tensors.end(), used_.begin(), used_.end());
  for (const std::uint32_t each : match.tensors) taken_.insert(each);
  match.faults = std::move(faults_);
  out_.push_back(std::move(match));
}
void Matcher::refuse(const Tensor& codes, std::string name, Refused refused, std::string text, Hint hint) {
  if (left_ == 0) {
    refused = Refused::unsupported;
    text = "the tensors that describe quantized layers have more than 256 MiB";
    hint = {};
    faults_.clear();
  }
  Match match{.name = std::move(name),
              .tensors = {codes.index()},
              .recipe = nullptr,
              .refusal = std::move(text),
              .refused = refused,
              .hint = std::move(hint)};
  match.tensors.insert(match.tensors.end(), used_.begin(), used_.end());
  for (const std::uint32_t each : match.tensors) taken_.insert(each);
  match.faults = std::move(faults_);
  out_.push_back(std::move(match));
}
void Matcher::malformed(const Rule& rule, const Tensor& codes, std::string name, std::string text) {
  note(rule, codes, {}, {}, text);
  refuse(codes, std::move(name), Refused::malformed, std::move(text));
}
void Matcher::misfit(const Tensor& codes, std::string name, std::string text) {
  malformed(core::rules::kQuantizedShape, codes, std::move(name), std::move(text));
}
void Matcher::missing(const Tensor& codes, std::string name, std::string text) {
  if (core::incomplete(model_) != nullptr)
    return refuse(codes, std::move(name), Refused::unsupported, text + ", or is in another file");
  malformed(core::rules::kQuantizedMissing, codes, std::move(name), std::move(text));
}
void Matcher::unsupported(const Tensor& codes, std::string name, std::string text) {
  refuse(codes, std::move(name), Refused::unsupported, std::move(text));
}
void Matcher::ask(const Tensor& codes, std::string name, std::string text, std::string answer) {
  text += ": a stated scheme says it, as " + answer;
  refuse(codes, std::move(name), Refused::question, std::move(text), base::option_hint("scheme", std::move(answer)));
}
void Matcher::note(const Rule& rule, const Tensor& tensor, std::string expected, std::string found,
                   std::string detail) {
  faults_.push_back({&rule, tensor.index(), std::move(expected), std::move(found), std::move(detail)});
}

// What the config says of the layer, where its tensors say it too.
void Matcher::compare_with_config(const Tensor& codes, const Recipe& r) {
  const schemes::Config& config = layers_.config();
  if (!config.stated || !said_.known) return;
  const auto differs = [&](std::string says, std::string has) {
    note(core::rules::kQuantizedConfig, codes, std::move(says), std::move(has));
  };
  if (said_.excluded) differs("a layer that the config leaves as it is", "codes of " + std::string(r.id));
  const schemes::Scheme& scheme = schemes::scheme(r.id);
  const auto is_of = [&](const schemes::Scheme& row) {
    return row.methods.find(" " + config.method + " ") != row.methods.npos || r.id == config.method;
  };
  const bool own = std::ranges::any_of(kOwnLayouts, [&](std::string_view each) { return r.id.starts_with(each); });
  const bool known = std::ranges::any_of(kOwnLayouts, [&](std::string_view each) { return config.method == each; });
  const bool mlx = config.method == "mlx" && (r.id == "mxfp4" || r.id == "mxfp8" || r.id == "nvfp4");
  if (!config.method.empty() && config.method != "auto-round" && (own || known) && !mlx && !is_of(scheme))
    differs("quant_method " + word(config.method), "tensors of " + std::string(scheme.name));
  const schemes::Settings& s = settings();
  if (s.bits > 0 && s.bits != r.bits) differs(std::to_string(s.bits) + " bits", std::to_string(r.bits) + " bits");
  const bool grouped = r.id == "gptq" || r.id == "awq" || r.id == "compressed-tensors" || r.id == "mlx" ||
                       r.id == "metal" || r.id == "nvfp4";
  if (grouped && r.groups.empty() && s.group > 0 && s.group < r.columns && r.scale.columns != s.group)
    differs("groups of " + std::to_string(s.group), "groups of " + std::to_string(r.scale.columns));
  if (config.method != "compressed-tensors") return;
  for (const auto& [format, id] : kFormats)
    if (s.format == format && id != r.id)
      differs("the format " + std::string(format), "tensors of " + std::string(scheme.name));
}

void Matcher::set_shape(Recipe& r, Shape codes, std::uint64_t rows, std::uint64_t columns) {
  r.shape.assign(codes.begin(), codes.end() - 2);
  r.lead = 1;
  for (const std::uint64_t each : r.shape) r.lead *= each;
  r.shape.push_back(rows);
  r.shape.push_back(columns);
  r.rows = rows;
  r.columns = columns;
}

std::optional<Grid> Matcher::grid_of(const Recipe& r, Shape given, std::uint64_t block_rows,
                                     std::uint64_t block_columns) {
  const std::uint64_t count = base::element_count(given).value_or(0);
  if (count == 1) return Grid{.rows = r.rows, .columns = r.columns};
  const std::uint64_t down = quotient_up(r.rows, block_rows), across = quotient_up(r.columns, block_columns);
  const auto all = base::element_count(std::array{r.lead, down, across});
  // Dimensions of one element apart: [experts, rows, columns], [rows], ModelOpt's [rows, 1, columns, 1].
  std::vector<std::uint64_t> wanted(r.shape.begin(), r.shape.end() - 2), has;
  wanted.insert(wanted.end(), {down, across});
  std::erase(wanted, 1U);
  std::copy_if(given.begin(), given.end(), std::back_inserter(has), [](std::uint64_t each) { return each != 1; });
  if (!all || count != *all || has != wanted) return std::nullopt;
  return Grid{
      .rows = block_rows, .columns = block_columns, .row_step = across, .column_step = 1, .lead_step = down * across};
}

bool Matcher::read_groups(Recipe& r, const Tensor& tensor, std::uint64_t count, bool may_be_none) {
  const auto all = integers_of(tensor);
  if (all.size() != r.columns) {
    note(core::rules::kQuantizedShape, tensor, std::to_string(r.columns) + " numbers", std::to_string(all.size()));
    return false;
  }
  std::vector<std::uint64_t> sizes(base::to_size(std::min<std::uint64_t>(count, r.columns)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (may_be_none && all[i] == UINT32_MAX) {
      r.groups.clear();
      return true;
    }
    if (all[i] >= count) {
      note(core::rules::kQuantizedGroups, tensor, "less than " + std::to_string(count),
           all[i] >= UINT32_MAX / 2 ? "a negative number" : std::to_string(all[i]), "at " + std::to_string(i));
      return false;
    }
    if (all[i] < sizes.size()) ++sizes[base::to_size(all[i])];
    r.groups.push_back(static_cast<std::uint32_t>(all[i]));
  }
  const auto [first, last] = std::minmax_element(sizes.begin(), sizes.end());
  const std::uint64_t least = *first, most = *last;
  if (r.columns % count == 0 ? least != most : most > quotient_up(r.columns, count))
    note(core::rules::kQuantizedUnevenGroups, tensor, std::to_string(quotient_up(r.columns, count)) + " of each",
         std::to_string(least) + " to " + std::to_string(most));
  bool in_order = true;
  for (std::size_t c = 0; c < r.groups.size() && in_order; ++c) in_order = r.groups[c] == c / r.scale.columns;
  if (in_order) r.groups.clear();
  return true;
}

bool Matcher::refuse_by_name(const Tensor& t, const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::string module = dot == name.npos ? name : name.substr(0, dot);
  for (const auto& [end, text] : kByCompanion)
    if (find(module + std::string(end))) {
      take(module + std::string(end));
      unsupported(t, name, std::string(text));
      return true;
    }
  const schemes::Settings& s = settings();
  const std::string& sparse =
      s.sparsity.empty() && (s.format.starts_with("sparse-") || s.format == "marlin-24") ? s.format : s.sparsity;
  if (sparse.empty()) return false;
  unsupported(t, name, "compressed-tensors' format " + word(sparse) + " is not decoded");
  return true;
}

bool Matcher::refuse_method(const Tensor& t, const std::string& name) {
  if (method().empty() || schemes::is_decoded_method(method())) return false;
  unsupported(t, name, "layers of the quant_method " + core::quoted(method()) + " are not decoded");
  return true;
}

void Matcher::try_one(const Tensor& t) {
  if (taken_.contains(t.index()) || !is_plain(t) || base::element_count(t.shape()) == 0) return;
  used_.clear();
  faults_.clear();
  const std::string name(t.name());
  const auto stem = [&](std::string_view end) { return name.substr(0, name.size() - end.size()); };
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  const core::Coded* const mark = core::coded(t);
  const bool codes = mark != nullptr && mark->codes;
  const std::optional<Tensor> nf4 = find(name + ".quant_state.bitsandbytes__nf4"),
                              fp4 = nf4 ? std::nullopt : find(name + ".quant_state.bitsandbytes__fp4");
  const bool by_name = ends(".weight_packed") || (ends("_blocks") && t.shape().size() == 4) || ends(".qweight");
  if (!codes && !by_name) return;
  const std::size_t dot = name.rfind('.');
  said_ = layers_.of(ends("._data") ? name.substr(0, name.find("._data")) : name.substr(0, dot));
  if (!settings().odd.empty()) note(core::rules::kQuantizedConfig, t, "a positive " + settings().odd);
  if (codes && (refuse_by_name(t, name) || refuse_method(t, name))) return;
  if (ends(".weight_packed")) return packed(t, stem("_packed"));
  if (ends("_blocks") && t.shape().size() == 4) return gpt_oss(t, stem("_blocks"));
  if (ends(".qweight")) return words(t, stem(".qweight"));
  if (ends(".W_q")) return hqq(t, stem(".W_q"));
  if (ends("._data")) return quanto(t, stem("._data"));
  if (nf4 || fp4) return nibbles(t, nf4 ? *nf4 : *fp4, nf4 ? "nf4" : "fp4");
  if (ends(".weight") && t.dtype() == DType::i8 && find(stem("weight") + "SCB")) return int8(t, stem("weight"));
  if (ends(".weight") && t.dtype() == DType::u32 && find(stem("weight") + "scales")) return mlx(t, stem("weight"));
  scaled(t, name);
}

void Matcher::leave(const Tensor& t) {
  if (taken_.contains(t.index())) return;
  used_.clear();
  faults_.clear();
  const std::string name(t.name());
  const core::Coded& mark = *core::coded(t);
  const auto* const row = std::ranges::find(kByScheme, mark.id, &Refusal::end);
  if (row != std::end(kByScheme)) return unsupported(t, name, std::string(row->text));
  if (mark.id == "other") return unsupported(t, name, "its layout is not decoded");
  if (is_fp8(t.dtype()) && mark.id == "fp8" && layers_.config().stated && !find(name + "_scale")) {
    said_ = layers_.of(name.substr(0, name.rfind('.')));
    if (!said_.excluded) return missing(t, name, "there is no scale for its codes");
  }
  const bool codes = is_fp8(t.dtype()) || t.dtype() == DType::i8 || t.dtype() == DType::u8;
  unsupported(t, name,
              !is_plain(t)                 ? "it is not stored as one part of whole bytes"
              : t.shape().size() < 2       ? "its codes are not a matrix"
              : mark.id == "fp8" && !codes ? "its codes have the type " + std::string(weighbridge::name(t.dtype()))
                                           : "its scales have names or a layout that no scheme is known for");
}

void Matcher::find_strays() {
  for (const Tensor& tensor : model_) {
    if (taken_.contains(tensor.index())) continue;
    const std::string_view name = tensor.name();
    const auto* const row = std::ranges::find_if(kStrays, [&](const Stray& each) { return name.ends_with(each.end); });
    if (row == std::end(kStrays)) continue;
    const std::string stem(name.substr(0, name.size() - row->end.size()));
    const auto there = [&](std::string_view end) { return !end.empty() && model_.find(stem + std::string(end)); };
    if (std::ranges::any_of(row->of, there)) continue;
    Match match{.name = std::string(name), .tensors = {tensor.index()}, .recipe = nullptr};
    match.faults.push_back({&core::rules::kQuantizedStray, tensor.index(), stem + std::string(row->of[0]), {}, {}});
    out_.push_back(std::move(match));
  }
}

}  // namespace weighbridge::recipes
