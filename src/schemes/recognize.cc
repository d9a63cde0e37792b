// SPDX-License-Identifier: Apache-2.0
// Tries the forms of the table on each tensor that can be codes. Companions are near their codes in the order of names,
// so the search starts there.
#include "schemes/recognize.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/checked.h"

namespace weighbridge::schemes {
namespace {

constexpr std::size_t kMaxCompanions = 24;          // tensors that complete one; no form in table.cc has as many
constexpr std::uint32_t kNear = 64;                 // neighbors that are checked for a scale with another name
constexpr std::uint64_t kMaxActivations = 1 << 20;  // numbers of a scale of activations
constexpr std::size_t kLongestMethod = 64;          // bytes of a name that a file gives
constexpr std::string_view kMarker = "scaled_fp8";  // ComfyUI: all FP8 weights of the file have scales
constexpr std::string_view kWeight = ".weight", kScaleWord = "scale";

std::uint64_t count_of(const Entry& entry) { return base::element_count(entry.shape).value_or(UINT64_MAX); }
std::uint64_t last_of(const Entry& entry) { return entry.shape.empty() ? 1 : entry.shape.back(); }

// n * times / by; 0 if the product does not fit 64 bits.
std::uint64_t scaled(std::uint64_t n, std::uint64_t times, std::uint64_t by) {
  const auto product = base::checked_mul(n, times);
  return product && by > 0 ? *product / by : 0;
}

bool is_printable(std::string_view text) {
  return !text.empty() && text.size() <= kLongestMethod &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

bool is_marker(std::string_view name) {
  return name.ends_with(kMarker) && (name.size() == kMarker.size() || name[name.size() - kMarker.size() - 1] == '.');
}

// A companion that was looked for.
struct Partner {
  Entry entry{};
  std::uint32_t position = Found::kNone;
};

class Recognizer {
 public:
  Recognizer(const Listing& in, const Config& config)
      : in_(in), config_(config), known_(is_known_method(config.method)) {
    mark_.assign(in.size, kFree);
  }

  Recognized run() {
    for (std::uint32_t p = 0; p < in_.size; ++p) {
      const Entry entry = in_.at(p);
      if (is_marker(entry.name)) marker_ = p;
      if (entry.plain && count_of(entry) > 0) try_forms(p, entry);
    }
    if (marker_ != Found::kNone) take_marked();
    if (config_.stated) take_stated();
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;

  // The position of the first name that is not below this one; the search starts at `near`.
  std::uint32_t lower(std::string_view name, std::uint32_t near) const {
    std::uint32_t low = near, high = near, step = 1;  // the result is within them, once the loops are done
    if (name <= in_.at(near).name) {
      while (low > 0 && name <= in_.at(low).name) {
        high = low;
        low -= std::min(low, step);
        step *= 2;
      }
    } else {
      while (high < in_.size && in_.at(high).name < name) {
        low = high;
        high += std::min(in_.size - high, step);
        step *= 2;
      }
    }
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      in_.at(middle).name < name ? low = middle + 1 : high = middle;
    }
    return low;
  }
  std::optional<std::uint32_t> find(std::string_view name, std::uint32_t near) const {
    const std::uint32_t at = lower(name, near);
    return at < in_.size && in_.at(at).name == name ? std::optional(at) : std::nullopt;
  }

  void try_forms(std::uint32_t p, const Entry& codes) {
    for (const Form& form : all_forms()) {
      if (!holds(form.codes, codes.dtype) || codes.shape.size() < form.min_rank) continue;
      if (codes.name.empty() || (!codes.name.ends_with(form.end) && !is_whole(codes.name, form.end))) continue;
      // Companions that continue the codes' name come right after it.
      if (form.end.empty() && (p + 1 >= in_.size || !in_.at(p + 1).name.starts_with(codes.name))) continue;
      if (try_form(p, codes, form)) return;
    }
    const bool weight = holds(kBytes, codes.dtype) && codes.shape.size() > 1 && codes.name.ends_with(kWeight);
    if (holds(kF8, codes.dtype) || weight) look_for_scale(p, codes);
  }

  // "weight", of a model that is one layer, for ".weight".
  static bool is_whole(std::string_view name, std::string_view end) {
    return end.starts_with('.') && name == end.substr(1);
  }

  bool try_form(std::uint32_t p, const Entry& codes, const Form& form) {
    std::array<Partner, kMaxCompanions> partners;
    std::array<const Entry*, kMaxCompanions> entries{};
    const bool whole = is_whole(codes.name, form.end);
    const std::string_view stem = whole ? "" : codes.name.substr(0, codes.name.size() - form.end.size());
    bool needs_any = false, has_any = false;
    for (std::size_t k = 0; k < form.with.size(); ++k) {
      const Companion& companion = form.with[k];
      scratch_.assign(stem);
      scratch_.append(stem.empty() && companion.end[0] == '.' ? companion.end.substr(1) : companion.end);
      const auto at = find(scratch_, p);
      Entry entry = at ? in_.at(*at) : Entry{};
      // A scale for each code would not save anything; words hold up to 32 codes.
      const bool is = at && *at != p && entry.plain && holds(companion.types, entry.dtype) &&
                      (companion.need == Need::also || is_fewer(entry, codes));
      if (is) {
        partners[k] = {entry, *at};
        entries[k] = &partners[k].entry;
      } else if (companion.need == Need::all) {
        return false;
      }
      if (companion.need == Need::any) {
        needs_any = true;
        has_any = has_any || is;
      }
    }
    const std::span<const Entry* const> with = std::span(entries).first(form.with.size());
    if ((needs_any && !has_any) || (form.fits != nullptr && !form.fits(codes, with))) return false;
    const std::uint32_t scheme = named(scheme_of(form, codes.dtype));
    Found found{.position = p, .scheme = scheme, .codes = true, .parameters = numbers(form, codes, with)};
    for (std::size_t k = 0; k < form.with.size(); ++k) {
      if (partners[k].position == Found::kNone) continue;
      const std::string_view end = form.with[k].end;
      if (end.ends_with("_shape") || end == ".shape" || end.find(".quant_state.") != end.npos)
        found.says_shape = partners[k].position;
      put({.position = partners[k].position, .scheme = scheme, .codes = false});
    }
    put(found);
    take_activations(p, codes.name, stem, scheme);
    return true;
  }

  // Scales of a quantized layer's inputs and outputs belong to its scheme.
  void take_activations(std::uint32_t p, std::string_view name, std::string_view stem, std::uint32_t scheme) {
    const bool own = !stem.ends_with(kWeight);
    const std::string_view module =
        own ? (name.ends_with(kWeight) ? stem : name) : stem.substr(0, stem.size() - kWeight.size());
    for (const std::string_view begin : {".input", ".output", ".act", ".scale_input", ".comfy_quant", "_input"}) {
      if (begin[0] == '_' && !own) continue;
      scratch_.assign(module).append(begin);
      for (std::uint32_t at = lower(scratch_, p), left = kNear; at < in_.size && left > 0; ++at, --left) {
        const Entry entry = in_.at(at);
        if (!entry.name.starts_with(scratch_)) break;
        const std::string_view rest = entry.name.substr(module.size() + 1);
        const bool is =
            rest.find(kScaleWord) != rest.npos || rest.find("zero_point") != rest.npos || rest == "comfy_quant";
        if (is && entry.plain && rest.find('.') == rest.npos && count_of(entry) <= kMaxActivations)
          put({.position = at, .scheme = scheme, .codes = false});
      }
    }
  }

  static bool is_fewer(const Entry& companion, const Entry& codes) {
    const std::uint64_t maximum = base::checked_mul(count_of(codes), 32).value_or(UINT64_MAX);
    return count_of(companion) <= std::max<std::uint64_t>(maximum, 256);
  }

  // GPTQ's and AWQ's tensors have the same names, and BitNet's look like bytes; only a config distinguishes them.
  std::string_view scheme_of(const Form& form, DType dtype) const {
    const bool group = form.scheme == "gptq" || form.scheme == "awq";
    const bool bytes = form.scheme == "int8" && dtype == DType::u8;
    const bool said = group ? config_.method == "gptq" || config_.method == "awq" : bytes && config_.method == "bitnet";
    return said ? std::string_view(config_.method) : form.scheme;
  }

  std::uint32_t named(std::string_view id) {
    const Scheme& row = scheme(id);
    for (std::uint32_t i = 0; i < out_.schemes.size(); ++i)
      if (out_.schemes[i].id == row.id) return i;
    std::string name(row.name);
    if (is_printable(config_.method)) {
      const std::string word = " " + config_.method + " ";
      if (row.id == "other")
        name = "quant_method " + config_.method;
      else if (row.methods.find(word) == row.methods.npos)
        name += " (" + config_.method + ")";
    }
    out_.schemes.push_back({row.id, std::move(name)});
    return static_cast<std::uint32_t>(out_.schemes.size() - 1);
  }

  // A tensor that can be codes is not a companion: codes of one layer are never scales of another.
  void put(const Found& found) {
    if (mark_[found.position] == kFree) {
      mark_[found.position] = static_cast<std::uint32_t>(out_.tensors.size());
      out_.tensors.push_back(found);
    } else if (found.codes && !out_.tensors[mark_[found.position]].codes) {
      out_.tensors[mark_[found.position]] = found;
    }
  }

  std::uint64_t numbers(const Form& form, const Entry& codes, std::span<const Entry* const> with) const {
    const std::uint64_t elements = count_of(codes), bits = info(codes.dtype).bits;
    switch (form.count) {
      case Count::elements: return scheme_of(form, codes.dtype) == "bitnet" ? scaled(elements, bits, 2) : elements;
      case Count::nibbles:
      case Count::flat_states: return scaled(elements, bits, 4);
      case Count::sixths: return scaled(elements, bits, 6);
      case Count::scale_rows: {
        const Entry& scale = *with[0];
        return scaled(count_of(scale), last_of(codes), 1);
      }
      case Count::codebooks: {
        const Entry& books = *with[0];  // [codebooks, entries, rows, columns]
        if (books.shape.size() != 4) return elements;
        return scaled(scaled(scaled(elements, 1, books.shape[0]), books.shape[2], 1), books.shape[3], 1);
      }
      case Count::tiles:
        return codes.shape.size() == 3 ? scaled(scaled(codes.shape[0], codes.shape[1], 1), 256, 1) : elements;
      case Count::permuted:
        return with[3] != nullptr ? scaled(count_of(*with[3]), last_of(codes), 1) : scaled(elements, bits, 4);
      case Count::words: return scaled(elements, bits, width_of_words(codes, *with[0]));
      case Count::shape: {
        const std::uint64_t width = config_.all.bits > 0 && config_.all.bits <= 8 ? config_.all.bits : 4;
        const Entry* const scale = with[0];
        if (form.end == "_packed" && config_.all.group > 0 && scale != nullptr && last_of(*scale) > 1)
          return scaled(count_of(*scale), config_.all.group, 1);
        return scaled(elements, bits, width);
      }
      case Count::rows_of_words: {
        const Entry *const scales = with[0], *const zeros = with[1], *const order = with[2];
        if (form.scheme == "gptq" && order != nullptr) return scaled(count_of(*order), last_of(codes), 1);
        std::uint64_t width = config_.all.bits;
        if (form.scheme == "gptq" && width == 0 && scales != nullptr && zeros != nullptr)
          width = scaled(last_of(*zeros), bits, std::max<std::uint64_t>(last_of(*scales), 1));
        return scaled(elements, bits, width > 0 && width <= bits ? width : 4);
      }
    }
    return elements;
  }

  // Of MLX's codes: a group of them has as many bits as the words for one scale.
  std::uint64_t width_of_words(const Entry& codes, const Entry& scales) const {
    const std::uint64_t together = scaled(last_of(codes), 32, std::max<std::uint64_t>(last_of(scales), 1));
    const auto is_width = [&](std::uint64_t group) {
      constexpr std::array<std::uint64_t, 7> kWidths{1, 2, 3, 4, 5, 6, 8};
      return group > 0 && together % group == 0 && std::ranges::find(kWidths, together / group) != kWidths.end();
    };
    // Its floating-point modes: mxfp8 has groups of 32, mxfp4 of 32, nvfp4 of 16.
    if (!holds(kReal, scales.dtype) && (together == 256 || together == 128 || together == 64))
      return together == 256 ? 8 : 4;
    if (is_width(config_.all.group)) return together / config_.all.group;
    if (config_.all.bits > 0 && config_.all.bits <= 8) return config_.all.bits;
    for (const std::uint64_t group : {64U, 32U, 128U, 16U})  // MLX's default first
      if (is_width(group)) return together / group;
    return 4;
  }

  // Finds a scale of FP8 or int8 weights whose name is not in the table.
  void look_for_scale(std::uint32_t p, const Entry& codes) {
    const auto is_scale = [&](const Entry& entry, std::string_view rest) {
      if (!entry.plain || !holds(kReal | type(DType::f8_e8m0), entry.dtype) || count_of(entry) > count_of(codes))
        return false;
      std::string lower(rest);
      std::ranges::transform(lower, lower.begin(),
                             [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      return lower.find('.') == lower.npos && lower.find(kScaleWord) != lower.npos && !is_other_scale(lower);
    };
    std::vector<std::uint32_t> scales;
    const auto look = [&](std::uint32_t at, std::string_view prefix, bool own) {
      const Entry entry = in_.at(at);
      if (!entry.name.starts_with(prefix)) return false;
      std::string_view rest = entry.name.substr(prefix.size());
      if (own) {
        if (rest.empty() || (rest[0] != '_' && rest[0] != '.')) return true;
        rest.remove_prefix(1);
      }
      if (is_scale(entry, rest)) scales.push_back(at);
      return true;
    };
    for (std::uint32_t at = p + 1; at < in_.size && at - p <= kNear && look(at, codes.name, true); ++at) {}
    if (codes.name.ends_with(kWeight) && codes.name.size() > kWeight.size()) {
      const std::string_view module = codes.name.substr(0, codes.name.size() - kWeight.size() + 1);
      for (std::uint32_t at = p; at-- > 0 && p - at <= kNear && look(at, module, false);) {}
      for (std::uint32_t at = p + 1; at < in_.size && at - p <= kNear && look(at, module, false); ++at) {}
    }
    if (scales.empty()) return;
    const std::uint32_t scheme = named(holds(kF8, codes.dtype) ? "fp8" : "int8");
    for (const std::uint32_t at : scales) put({.position = at, .scheme = scheme, .codes = false});
    put({.position = p, .scheme = scheme, .codes = true, .parameters = count_of(codes)});
  }

  void take_marked() {
    std::optional<std::uint32_t> scheme;
    for (std::uint32_t p = 0; p < in_.size; ++p) {
      const Entry entry = in_.at(p);
      if (is_marker(entry.name) || !entry.plain || !holds(kF8, entry.dtype)) continue;
      if (!scheme) scheme = named("fp8");
      put({.position = p, .scheme = *scheme, .codes = true, .parameters = count_of(entry)});
    }
    if (scheme) put({.position = marker_, .scheme = *scheme, .codes = false});
  }

  // Whether some form uses this name for codes.
  static bool is_named_as_codes(std::string_view name) {
    return std::ranges::any_of(all_forms(),
                               [&](const Form& form) { return !form.end.empty() && name.ends_with(form.end); });
  }

  // Marks tensors that the config quantizes but no form explains. For a method in the table, these are tensors that are
  // named like its codes or are FP8. For any other method, all tensors that can be codes, and those beside them; if
  // there are none, every matrix.
  void take_stated() {
    std::vector<std::uint32_t> taken;
    const auto take = [&](auto may) {
      for (std::uint32_t p = 0; p < in_.size; ++p)
        if (const Entry entry = in_.at(p); mark_[p] == kFree && entry.plain && count_of(entry) > 0 && may(entry))
          taken.push_back(p);
    };
    if (known_) {
      take([](const Entry& entry) {
        return holds(kF8 | kNarrow, entry.dtype) ||
               (holds(kCodes, entry.dtype) && entry.shape.size() > 1 && is_named_as_codes(entry.name));
      });
    } else {
      take([](const Entry& entry) { return holds(kCodes, entry.dtype) && !entry.shape.empty(); });
      if (taken.empty() && out_.tensors.empty())
        take([](const Entry& entry) { return holds(kReal, entry.dtype) && entry.shape.size() > 1; });
    }
    if (taken.empty()) return;
    const std::uint32_t scheme = named(known_ ? scheme_of_method() : "other");
    for (const std::uint32_t p : taken) {
      const Entry entry = in_.at(p);
      const std::uint64_t bits = info(entry.dtype).bits;
      const bool packed = config_.all.bits > 0 && config_.all.bits < bits && !holds(kReal | kF8, entry.dtype);
      put({.position = p,
           .scheme = scheme,
           .codes = true,
           .parameters = packed ? scaled(count_of(entry), bits, config_.all.bits) : count_of(entry)});
    }
    if (known_) return;
    for (const std::uint32_t p : taken) take_beside(p, scheme);
  }

  std::string_view scheme_of_method() const {
    const std::string word = " " + config_.method + " ";
    for (const Scheme& row : all_schemes())
      if (row.methods.find(word) != row.methods.npos) return row.id;
    return "other";
  }

  // The other tensors in the module of the codes, which may complete them; a bias does not.
  void take_beside(std::uint32_t p, std::uint32_t scheme) {
    const std::string_view name = in_.at(p).name;
    const std::size_t dot = name.find_last_of('.');
    if (dot == name.npos) return;
    const std::string_view module = name.substr(0, dot + 1);
    const auto look = [&](std::uint32_t at) {
      const Entry entry = in_.at(at);
      if (!entry.name.starts_with(module)) return false;
      const std::string_view rest = entry.name.substr(module.size());
      if (entry.plain && rest.find('.') == rest.npos && rest != "bias")
        put({.position = at, .scheme = scheme, .codes = false});
      return true;
    };
    for (std::uint32_t at = p; at-- > 0 && p - at <= kNear && look(at);) {}
    for (std::uint32_t at = p + 1; at < in_.size && at - p <= kNear && look(at); ++at) {}
  }

  const Listing& in_;
  const Config& config_;
  const bool known_;
  Recognized out_;
  std::vector<std::uint32_t> mark_;  // in Recognized::tensors, by position
  std::uint32_t marker_ = Found::kNone;
  std::string scratch_;
};

}  // namespace

Recognized recognize(const Listing& in, const Config& config) { return Recognizer(in, config).run(); }

}  // namespace weighbridge::schemes
