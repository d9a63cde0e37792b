// SPDX-License-Identifier: Apache-2.0
// Codes in 32-bit words: GPTQ, AWQ, MLX.
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "core/reading/rules.h"
#include "recipes/matcher.h"

namespace weighbridge::recipes {
namespace {

constexpr std::uint64_t kFirstZeros = std::uint64_t{1} << 14;  // of a layer, that are looked at to tell v1 from v2

std::string quoted_word(const std::string& text) { return "'" + text.substr(0, 64) + "'"; }
std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

}  // namespace

// What the stored zeros of a layer are: with symmetric quantization, v1 has 2^(b-1) - 1 everywhere, and v2 2^(b-1).
struct Matcher::Zeros {
  std::uint64_t all_ones = 0, first = 0;  // how many have all bits set, and where
  bool v1 = true, v2 = true;
};

Matcher::Zeros Matcher::look_at_zeros(const core::Elements& stored, std::uint32_t bits) const {
  const auto ones = static_cast<float>((1U << bits) - 1), half = static_cast<float>(1U << (bits - 1));
  const std::uint64_t count = look_ < Look::zeros ? std::min(stored.count(), kFirstZeros) : stored.count();
  Zeros out;
  std::uint64_t at = 0;
  for_each_number(stored, count, context_, [&](float zero) {
    if (zero == ones && out.all_ones++ == 0) out.first = at;
    out.v1 = out.v1 && zero == half - 1;
    out.v2 = out.v2 && zero == half;
    ++at;
  });
  return out;
}

void Matcher::words(const Tensor& t, const std::string& name) {
  const auto zeros = take(name + ".qzeros"), scales = take(name + ".scales"), groups = take(name + ".g_idx");
  const std::string weight = name + ".weight";
  if (!scales) return missing(t, weight, "there are no scales for its codes");
  if (!zeros) return missing(t, weight, "there are no qzeros for its codes");
  if (t.dtype() == DType::i16) return unsupported(t, weight, "the layout of AWQ's gemv_fast is not decoded");
  if (t.dtype() != DType::i32 || zeros->dtype() != DType::i32 || !is_real(scales->dtype()))
    return unsupported(t, weight, "its words are not i32, which no recipe has");
  if (t.shape().size() != 2 || scales->shape().size() != 2 || zeros->shape().size() != 2)
    return misfit(t, weight, "its codes, scales and zeros are not matrices");
  if (count_of(*scales) == 0 || count_of(*zeros) == 0) return misfit(t, weight, "it has no scales or no zeros");
  const Shape q = t.shape(), s = scales->shape();
  const bool awq = method() == "awq";
  const std::string version = awq ? lower(settings().version) : "";
  if (!version.empty() && version != "gemm" && version != "gemv")
    return unsupported(t, weight, "AWQ's version " + quoted_word(version) + " is not decoded");
  const std::string_view said = answer("awq", "version");
  const std::string_view wanted = said.empty() ? std::string_view(version) : said;
  const bool gemv = wanted == "gemv" && q[0] == s[0];
  const std::string_view has = q[1] == s[1] && !gemv ? "GPTQ" : gemv || q[1] * 8 != s[1] ? "gemv" : "gemm";
  if (!said.empty() && has != said)
    return unsupported(t, weight,
                       "its shapes are those of " + std::string(has) + ", and not of AWQ's " + std::string(said));
  if (!wanted.empty() && has != wanted && has != "GPTQ")
    note(core::rules::kQuantizedConfig, t, "AWQ's version " + quoted_word(version),
         "the shapes of " + std::string(has));
  if (has == "GPTQ") {
    if (awq) return unsupported(t, weight, "its shapes are those of GPTQ, as of AWQ that was repacked for ExLlama");
    if (q[0] == s[0] && method().empty() && answer("gptq", "zeros").empty())
      return ask(t, weight, "its shapes are those of GPTQ and of AWQ's gemv", "awq:version=gemv");
    return gptq(t, weight, *zeros, *scales, groups);
  }
  if (q[1] * 8 != s[1] && q[0] != s[0])
    return misfit(t, weight, "its shapes are neither those of GPTQ nor those of AWQ");
  if (method() == "auto-round" && said.empty())
    return ask(t, weight, "AutoRound's packing_format " + quoted_word(settings().packing) + " is not known to be AWQ's",
               "awq:version=gemm");
  if (awq && settings().bits > 0 && settings().bits != 4)
    return unsupported(t, weight, "AWQ with " + std::to_string(settings().bits) + " bits has no one layout");
  return has == "gemv" ? awq_gemv(t, weight, *zeros, *scales) : awq_gemm(t, weight, *zeros, *scales);
}

void Matcher::gptq(const Tensor& t, const std::string& weight, const Tensor& zeros, const Tensor& scales,
                   const std::optional<Tensor>& groups) {
  const Shape q = t.shape(), s = scales.shape(), z = zeros.shape();
  const std::uint64_t out = q[1];
  if (z[0] != s[0]) return misfit(t, weight, "its zeros have not as many groups as its scales");
  if (groups && groups->shape().size() != 1) return misfit(t, weight, "its g_idx is not a list");
  // The words of the zeros tell the bits, and those of the codes. Of several widths, those without unused bits count.
  std::vector<std::uint64_t> widths, whole_words;
  for (std::uint64_t each = 2; each <= 8; ++each) {
    if (quotient_up(out * each, 32) != z[1] ||
        (groups ? quotient_up(groups->shape()[0] * each, 32) != q[0] : q[0] * 32 % each != 0))
      continue;
    widths.push_back(each);
    if (out * each % 32 == 0) whole_words.push_back(each);
  }
  if (widths.empty()) return misfit(t, weight, "its zeros and its codes do not have the same number of bits");
  const bool stated_fits = std::ranges::find(widths, settings().bits) != widths.end();
  if (!stated_fits && widths.size() > 1 && whole_words.size() != 1)
    return unsupported(t, weight, "several numbers of bits fit its codes, and nothing states one");
  const std::uint64_t bits = stated_fits ? settings().bits : whole_words.size() == 1 ? whole_words[0] : widths[0];
  auto r = std::make_shared<Recipe>();
  r->rows = out;
  r->columns = groups ? groups->shape()[0] : q[0] * 32 / bits;
  r->shape = {r->rows, r->columns};
  r->bits = static_cast<std::uint32_t>(bits);
  r->codes = stored_elements(t.main());
  r->value = integers(r->bits, 0);
  r->id = "gptq";
  r->result = scales.dtype();
  r->step = Step::subtract;
  const std::uint64_t stated = settings().group;
  std::uint64_t group = stated > 0 && quotient_up(r->columns, stated) == s[0] ? std::min(stated, r->columns) : 0;
  if (group == 0 && r->columns % s[0] == 0) group = r->columns / s[0];
  if (group == 0) return misfit(t, weight, "its groups do not divide its columns");
  r->scale = {.values = as_f32(scales.main()), .rows = 1, .columns = group, .row_step = 1, .column_step = out};
  if (groups && !read_groups(*r, *groups, s[0], false))
    return refuse(t, weight, Refused::malformed, "its g_idx names groups that are not there");

  // v1 stores a zero minus one; the config often says the wrong one of both.
  const std::string_view said = answer("gptq", "zeros");
  const std::string& format = settings().format;
  // A config that names no method may be AutoGPTQ's.
  const bool unnamed = (method().empty() || method() == "mlx") && (settings().bits > 0 || !format.empty());
  const bool labeled = (method() == "gptq" || unnamed) && (format.empty() || format.starts_with("gptq"));
  if ((method() == "gptq" || unnamed) && !labeled)
    return unsupported(t, weight, "GPTQ's format " + quoted_word(format) + " is not decoded");
  std::string_view form = said == "auto" ? "" : said;
  const std::string& other = layers_.config().other_format;
  if (!other.empty())
    note(core::rules::kQuantizedConfig, zeros, "the checkpoint_format " + quoted_word(format) + " of config.json",
         quoted_word(other) + " in quantize_config.json");
  else if (form.empty() && labeled)
    form = format == "gptq_p" ? "planar" : format == "gptq_v2" ? "v2" : "v1";
  const bool planar = form == "planar";
  core::ElementsPtr stored;
  if (planar) {
    auto p = std::make_shared<Recipe>();
    p->rows = s[0];
    p->columns = out;
    p->packing = Packing::planar_rows;
    p->bits = r->bits;
    p->codes = stored_elements(zeros.main());
    p->row_bytes = z[1] * 4;
    p->value = r->value;
    stored = elements_of(std::move(p), false);
    if (out % 32 != 0 || r->columns % 32 != 0) return misfit(t, weight, "its planes are not whole");
  } else {
    stored = stream_of(zeros.main(), s[0], out, z[1] * 4, r->bits,
                       [](std::uint32_t code) { return static_cast<float>(code); });
  }
  const Zeros has = look_at_zeros(*stored, r->bits);
  const bool may_choose = said.empty() || said == "auto";
  const bool symmetric = settings().symmetric.value_or(said == "auto" && !labeled);
  if (!planar && may_choose && symmetric && (labeled || said == "auto")) {
    const std::string_view shown = has.v1 ? "v1" : has.v2 ? "v2" : "";
    if (!form.empty() && shown != form)
      note(core::rules::kGptqLabel, zeros, "those of " + std::string(form),
           shown.empty() ? "others than symmetric layers have" : "those of " + std::string(shown));
    if (!shown.empty()) form = shown;
  }
  if (form.empty()) {
    const bool round = method() == "auto-round";
    return ask(
        t, weight,
        !other.empty() ? "config.json and quantize_config.json differ in how its zeros are stored"
        : round ? "AutoRound's packing_format " + quoted_word(settings().packing) + " does not say how zeros are stored"
        : said == "auto" ? std::string("its zeros do not show how they are stored")
                         : std::string("nothing states how its zeros are stored"),
        said == "auto" || !(has.v1 || has.v2) ? "gptq:zeros=v1 or gptq:zeros=v2" : "gptq:zeros=auto");
  }
  if (form == "v1" && has.all_ones > 0) {
    note(core::rules::kGptqZeroOverflow, zeros, {}, std::to_string(has.all_ones) + " of them",
         "the first of group " + std::to_string(has.first / out) + ", output " + std::to_string(has.first % out));
    if (said != "v1" && look_ != Look::copying)
      return ask(t, weight, "a zero of all ones in v1 has no single meaning; with v1 it is 0, as GPTQModel means it",
                 "gptq:zeros=v1");
  }
  r->minus_one = form == "v1";
  r->packing = planar ? Packing::planar : Packing::columns;
  if (const std::uint64_t used = r->columns * bits % 32; look_ == Look::closely && !planar && used > 0) {
    std::vector<std::uint32_t> last(base::to_size(out));
    r->codes->read((q[0] - 1) * out, out, std::as_writable_bytes(std::span(last)), context_);
    if (std::ranges::any_of(last, [&](const std::uint32_t& word) {
          return base::load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(&word)) >> used != 0;
        }))
      note(core::rules::kQuantizedUnusedBits, t, {}, {}, "the ends of its last words");
  }
  r->zero = r->scale;
  r->zero.values = std::move(stored);
  if (form == "v1") {
    // What was not looked at is refused when it is read (Y11).
    const float ones = r->value[(1U << bits) - 1];
    const bool wraps = said == "v1";
    r->zero.values = changed(std::move(r->zero.values), [ones, wraps](float code) {
      if (code == ones && !wraps)
        base::unsupported("gptq/zero-overflow", "a zero of all ones in GPTQ's v1 has no single meaning",
                          base::option_hint("scheme", "gptq:zeros=v1"));
      return code == ones ? 0 : code + 1;
    });
  }
  finish(t, weight, std::move(r));
}

// 16 outputs of one input in two words, interleaved.
void Matcher::awq_gemm(const Tensor& t, const std::string& weight, const Tensor& zeros, const Tensor& scales) {
  const Shape q = t.shape(), s = scales.shape(), z = zeros.shape();
  if (z[0] != s[0] || z[1] != q[1] || q[0] % s[0] != 0) return misfit(t, weight, "its shapes are not those of AWQ");
  auto r = std::make_shared<Recipe>(), p = std::make_shared<Recipe>();
  r->id = "awq";
  r->rows = s[1];
  r->columns = q[0];
  r->shape = {r->rows, r->columns};
  r->bits = p->bits = 4;
  r->packing = p->packing = Packing::awq;
  r->value = p->value = integers(4, 0);
  r->codes = stored_elements(t.main());
  r->result = scales.dtype();
  r->step = Step::subtract;
  r->scale = {.values = as_f32(scales.main()), .rows = 1, .columns = q[0] / s[0], .row_step = 1, .column_step = s[1]};
  r->zero = r->scale;
  p->rows = s[1];
  p->columns = s[0];
  p->codes = stored_elements(zeros.main());
  p->transposed = true;
  r->zero.values = elements_of(std::move(p), false);
  finish(t, weight, std::move(r));
}

// A plain stream; scales and zeros have pads on the right.
void Matcher::awq_gemv(const Tensor& t, const std::string& weight, const Tensor& zeros, const Tensor& scales) {
  const Shape q = t.shape(), s = scales.shape(), z = zeros.shape();
  const std::uint64_t said = number_answer("awq", "group"), group = said > 0 ? said : settings().group;
  const std::uint64_t columns = q[1] * 8;
  if (group == 0) return ask(t, weight, "nothing states the size of its groups", "awq:group=N");
  if (z[0] != q[0] || columns % group != 0 || s[1] < columns / group || z[1] * 8 < columns / group)
    return misfit(t, weight, "its scales and zeros do not fit groups of " + std::to_string(group));
  auto r = std::make_shared<Recipe>();
  r->id = "awq";
  r->rows = q[0];
  r->columns = columns;
  r->shape = {r->rows, r->columns};
  r->bits = 4;
  r->packing = Packing::stream;
  r->row_bytes = q[1] * 4;
  r->value = integers(4, 0);
  r->codes = stored_elements(t.main());
  r->result = scales.dtype();
  r->step = Step::subtract;
  r->scale = {.values = as_f32(scales.main()), .rows = 1, .columns = group, .row_step = s[1], .column_step = 1};
  r->zero = {.values = stream_of(zeros.main(), q[0], z[1] * 8, z[1] * 4, 4,
                                 [](std::uint32_t code) { return static_cast<float>(code); }),
             .rows = 1,
             .columns = group,
             .row_step = z[1] * 8,
             .column_step = 1};
  finish(t, weight, std::move(r));
}

void Matcher::mlx(const Tensor& t, const std::string& stem) {
  const std::string name = stem + "weight";
  const auto scales = take(stem + "scales"), biases = take(stem + "biases"),
             qbiases = biases ? std::nullopt : take(stem + "qbiases");
  const auto& bias = biases ? biases : qbiases;
  const Shape shape = t.shape();
  if (!scales || shape.size() < 2 || scales->shape().size() != shape.size() || count_of(*scales) == 0)
    return misfit(t, name, "its scales do not fit its codes");
  const std::uint64_t rows = shape[shape.size() - 2], last = shape.back(), across = scales->shape().back();
  const std::uint64_t together = last * 32 % across == 0 ? last * 32 / across : 0;  // bits of a group
  auto r = std::make_shared<Recipe>();
  r->codes = stored_elements(t.main());
  r->packing = Packing::stream;
  r->row_bytes = last * 4;
  std::uint64_t group = number_answer("mlx", "group");
  if (group == 0) group = settings().group;
  const std::string_view said = answer("mlx", "mode");
  std::string mode(said.empty() ? std::string_view(settings().mode) : said);
  if (bias) {
    if (!mode.empty() && mode != "affine") return misfit(t, name, "it has biases, which the mode " + mode + " has not");
    if (group == 0) return ask(t, name, "nothing states the size of its groups", "mlx:group=N");
    r->bits = together % group == 0 ? static_cast<std::uint32_t>(std::min<std::uint64_t>(together / group, 9)) : 0;
    if (r->bits == 0 || r->bits == 7 || r->bits > 8)
      return misfit(t, name, "its scales do not fit groups of " + std::to_string(group));
    // Bits and groups make one another: which of them the config has wrong, nothing says.
    if (number_answer("mlx", "group") == 0 && settings().bits > 0 && settings().bits != r->bits)
      return ask(t, name,
                 "its config says " + std::to_string(settings().bits) + " bits in groups of " + std::to_string(group) +
                     ", which its codes do not have",
                 "mlx:group=N");
  } else {
    constexpr std::pair<std::string_view, std::uint64_t> kModes[] = {{"nvfp4", 64}, {"mxfp4", 128}, {"mxfp8", 256}};
    if (is_real(scales->dtype())) return missing(t, name, "there are no biases for its codes");
    const auto* const fits = std::ranges::find(kModes, together, &std::pair<std::string_view, std::uint64_t>::second);
    if (mode.empty() || mode == "affine") {
      if (fits == std::end(kModes)) return misfit(t, name, "its scales do not fit its codes");
      return ask(t, name, "nothing states MLX's mode", "mlx:mode=" + std::string(fits->first));
    }
    const auto* const row = std::ranges::find(kModes, mode, &std::pair<std::string_view, std::uint64_t>::first);
    if (row == std::end(kModes)) return unsupported(t, name, "MLX's mode " + quoted_word(mode) + " is not decoded");
    if (row != fits || scales->dtype() != DType::u8) return misfit(t, name, "its scales do not fit the mode " + mode);
    r->bits = mode == "mxfp8" ? 8 : 4;
    group = row->second / r->bits;
  }
  set_shape(*r, shape, rows, across * group);
  const auto grid = grid_of(*r, scales->shape(), 1, group);
  if (!grid || (bias && !grid_of(*r, bias->shape(), 1, group)))
    return misfit(t, name, "its scales do not fit its codes");
  r->scale = *grid;
  if (!bias) {
    if (mode == "nvfp4") r->nvfp4.bytes = stored_elements(scales->main());
    r->scale.values = by_code(scales->main(), mode == "nvfp4" ? floats(DType::f8_e4m3) : exponents());
    r->value = r->bits == 8 ? floats(DType::f8_e4m3) : e2m1(true);
    r->result = DType::bf16;
    r->id = mode == "mxfp8" ? "mxfp8" : mode == "nvfp4" ? "nvfp4" : "mxfp4";
    return finish(t, name, std::move(r));
  }
  if (!is_real(scales->dtype()) || !is_real(bias->dtype()))
    return misfit(t, name, "its scales or its biases are not numbers");
  r->value = integers(r->bits, 0);
  r->zero = *grid;
  r->scale.values = as_f32(scales->main());
  r->zero.values = as_f32(bias->main());
  r->step = Step::add;
  r->rounded = r->result = qbiases ? DType::f32 : scales->dtype();
  r->keeps_rounding = !qbiases;
  r->id = qbiases ? "metal" : "mlx";
  finish(t, name, std::move(r));
}

}  // namespace weighbridge::recipes
