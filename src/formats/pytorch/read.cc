// SPDX-License-Identifier: Apache-2.0
// A checkpoint to Model: the archive of PyTorch 1.6 and later, the pickles in a row of the versions before, and a
// pickle alone.
//
//   1.6 and later: a zip archive (core/archive/zip.h), FOLDER/data.pkl and a member FOLDER/data/KEY for each storage
//   before: five pickles (magic number, protocol, system, object, keys) | for each storage u64 elements, bytes
//   a pickle: a sequence of opcodes (wire/pickle_opcodes.h)
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "core/archive/pickle_scan.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/pytorch/adder.h"
#include "formats/pytorch/archive.h"
#include "formats/pytorch/format.h"
#include "io/read.h"

namespace weighbridge::pytorch {
namespace {

using core::bytes_text, wire::Pickle, wire::PickleKind;
using Ref = Pickle::Ref;

// What a value of a pickle is.
std::string shown(const Pickle& pickle, Ref r) {
  switch (pickle.kind(r)) {
    case PickleKind::boolean: return pickle.boolean(r) ? "True" : "False";
    case PickleKind::integer: return std::to_string(pickle.integer(r));
    case PickleKind::text: {
      const auto text = pickle.text(r);
      return "text " + (text && base::is_utf8(*text) ? core::quoted(core::excerpt(*text)) : std::string());
    }
    case PickleKind::global: return "global " + std::string(pickle.module(r)) + "." + std::string(pickle.name(r));
    case PickleKind::bytes: return bytes_text(pickle.length(r));
    case PickleKind::tuple: return "tuple";
    case PickleKind::list: return "list";
    case PickleKind::set: return "set";
    case PickleKind::dict: return "dict";
    case PickleKind::object: return "a call";
    case PickleKind::persistent: return "a persistent id, which names a storage";
    default: return {};
  }
}

// Reports spans: the pickle, and its opcodes from one that makes a value to the next. Offsets count from `base`, where
// the pickle, or the first of several, begins in the file.
void report_span(const Pickle& pickle, std::uint64_t base, const core::Findings& findings) {
  if (!findings.wanted(base + pickle.begin(), base + pickle.end())) return;
  findings.span(Span::Kind::structure, base + pickle.begin(), base + pickle.end(), "pickle");
  std::vector<std::pair<std::uint64_t, Ref>> places;
  for (Ref r = 0; r < pickle.count(); ++r) places.emplace_back(pickle.at(r), r);
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [at, r] = places[i];
    const std::uint64_t end = i + 1 < places.size() ? places[i + 1].first : pickle.end();
    if (pickle.kind(r) != PickleKind::none)
      findings.span(Span::Kind::field, base + at, base + end, "opcodes",
                    [&, value = r] { return shown(pickle, value); });
  }
}

// Reports errors of a pickle that begins at `base` in the file, or without `base` somewhere in the bytes stored at
// `at`.
bool is_whole(const Pickle& pickle, std::optional<std::uint64_t> base, std::uint64_t at, const Limits& limits,
              core::Findings& findings) {
  if (base) report_span(pickle, *base, findings);
  if (pickle.ok()) return true;
  const wire::PickleError& error = pickle.error();
  const core::At here{.offset = base ? *base + error.offset : at};
  if (error.fault == wire::PickleFault::memory)
    return findings.fail(core::rules::kLimitMemory, here, core::at_most(core::in_bytes(limits.memory)));
  return findings.fail(rules::kPickle, here, {}, {}, error.sentence);
}

class Archive final : Storages, core::Walker {
 public:
  using Walker::Walker;

  void run() {
    auto zip = core::read_zip(source_, context_.limits, kZipRules, findings_, draft_);
    if (!zip) return draft_.clear();
    zip_ = *std::move(zip);
    draft_.add_checksum("payload", "CRC-32 of each member");
    if (!check_members(zip_, findings_)) return;
    sort_members();
    const core::ZipMember* const data = top_.empty() ? nullptr : member(kDataPickle);
    if (data == nullptr || !readable(*data))
      return findings_.report(rules::kNoPickle,
                              {.offset = data == nullptr ? std::optional<std::uint64_t>() : data->entry_at}, {}, {},
                              data == nullptr ? "" : "it cannot be read");
    if (auto version = small(kVersion)) draft_.set_version(digits(*version));
    if (!read_order()) return;
    warn_of_code();
    name_other_members();
    folder_ = kStorages;
    read_pickle(*data, {}, kTensor);
    folder_ = kConstantStorages;
    if (const core::ZipMember* const constants = member(kConstantsPickle); constants != nullptr && readable(*constants))
      read_pickle(*constants, "constants.", "constants");
    adder_.finish();
  }

 private:
  static bool readable(const core::ZipMember& member) { return !member.broken && member.unreadable == nullptr; }

  void sort_members() {
    for (std::uint32_t i = 0; i < zip_.members.size(); ++i) by_name_.push_back(i);
    std::ranges::sort(by_name_, {}, [&](std::uint32_t i) { return zip_.members[i].name; });
    top_ = top_folder(zip_);
    storages_.resize(zip_.members.size());
  }
  std::optional<std::uint32_t> find_member(std::string_view folder, std::string_view name) const {
    const std::string whole = std::string(top_).append(folder).append(name);
    const auto found = std::ranges::lower_bound(by_name_, std::string_view(whole), {},
                                                [&](std::uint32_t i) { return zip_.members[i].name; });
    if (found == by_name_.end() || zip_.members[*found].name != whole) return std::nullopt;
    return *found;
  }
  const core::ZipMember* member(std::string_view name) const {
    const auto found = find_member({}, name);
    return found ? &zip_.members[*found] : nullptr;
  }

  static std::string digits(const std::string& text) {
    return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  }
  // The whole of a short member.
  std::optional<std::string> small(std::string_view name) const {
    constexpr std::size_t kLongest = 64;  // bytes: version, byteorder and the like have a few
    const core::ZipMember* const found = member(name);
    if (found == nullptr || !readable(*found) || found->size > kLongest) return std::nullopt;
    std::string fault;
    std::string out = core::zip_front(source_, *found, kLongest, context_, fault);
    return fault.empty() ? std::optional(std::move(out)) : std::nullopt;
  }

  bool read_order() {
    const core::ZipMember* const found = member(kByteOrder);
    if (found == nullptr) return true;
    const std::string order = small(kByteOrder).value_or("");
    if (order == "big") order_ = Order::big;
    if (order == "big" || order == "little") return true;
    return findings_.fail(rules::kByteOrderRule, {.offset = found->offset}, "little or big",
                          base::is_utf8(order) ? core::quoted(core::excerpt(order)) : std::string());
  }

  // Reports code of TorchScript.
  void warn_of_code() {
    const std::string folder = std::string(top_).append(kCode);
    const auto first = std::ranges::lower_bound(by_name_, std::string_view(folder), {},
                                                [&](std::uint32_t i) { return zip_.members[i].name; });
    auto last = first;
    while (last != by_name_.end() && zip_.members[*last].name.starts_with(folder)) ++last;
    if (first == last) return;
    const std::string files = last - first == 1 ? "one file" : std::to_string(last - first) + " files";
    findings_.report(rules::kCodeRule, {.offset = zip_.members[*first].entry_at}, {}, files);
    draft_.add_left_behind("code", files + " of TorchScript");
  }

  // Members that are neither tensors nor known metadata, such as the extra files of torch.jit.save.
  void name_other_members() {
    for (const core::ZipMember& each : zip_.members) {
      if (each.is_folder()) continue;
      const std::string_view name =
          each.name.starts_with(top_) ? std::string_view(each.name).substr(top_.size()) : each.name;
      const auto in = [&](std::string_view folder) { return name.starts_with(folder); };
      if (name == kDataPickle || name == kConstantsPickle || name == kVersion || name == kByteOrder ||
          name.starts_with('.') || in(kStorages) || in(kConstantStorages) || in(kCode))
        continue;
      draft_.add_left_behind(core::indexed("files", each.name), "a member besides tensors and values");
    }
  }

  void read_pickle(const core::ZipMember& found, std::string_view prefix, std::string_view top) {
    std::string decoded;
    std::optional<std::uint64_t> base;
    if (found.encoding == Encoding::raw) {
      base = found.offset;
    } else if (found.size > context_.limits.header) {
      return findings_.report(core::rules::kLimitHeader, {.offset = found.offset},
                              core::at_most(core::in_bytes(context_.limits.header)), core::in_bytes(found.size));
    } else {
      const std::string fault = core::read_zip_member(source_, found, context_, [&](std::span<const std::byte> piece) {
        decoded.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return true;
      });
      if (!fault.empty()) return findings_.report(rules::kDeflate, {.offset = found.offset}, {}, {}, fault);
    }
    const wire::PickleInput input = base ? core::input_of(source_, found.offset, found.size) : core::input_of(decoded);
    const Pickle pickle = Pickle::read(input, 0, context_.limits.memory);
    if (!is_whole(pickle, base, found.offset, context_.limits, findings_)) return;
    adder_.add({.pickle = pickle,
                .input = input,
                .base = base,
                .at = found.offset,
                .order = order_,
                .prefix = prefix,
                .top = top},
               *this);
  }

  Stored* find(const StorageId& id) override {
    const auto found = find_member(folder_, id.key);
    if (!found || zip_.members[*found].broken) return nullptr;
    const core::ZipMember& from = zip_.members[*found];
    Stored& out = storages_[*found];
    out = {from.offset, from.stored, from.size, from.encoding, from.unreadable, from.found};
    return &out;
  }

  Adder adder_{context_, findings_, draft_};
  core::Zip zip_;
  std::vector<std::uint32_t> by_name_;
  std::vector<Stored> storages_;  // of members, once a tensor refers to them
  std::string_view top_, folder_;
  Order order_ = Order::little;
};

// The form before 1.6: five pickles, then the bytes of each storage after their number of elements.
class Legacy final : Storages, core::Walker {
 public:
  using Walker::Walker;

  void run() {
    report_span(next(), 0, findings_);  // the magic number
    const Pickle protocol = next();
    if (!is_whole(protocol, 0, 0, context_.limits, findings_)) return;
    if (protocol.kind(protocol.root()) != PickleKind::integer || protocol.integer(protocol.root()) != kLegacyProtocol)
      return findings_.report(rules::kLegacyProtocolRule, {.offset = protocol.begin()}, kLegacyProtocol,
                              protocol.kind(protocol.root()) == PickleKind::integer
                                  ? std::to_string(protocol.integer(protocol.root()))
                                  : std::string());
    draft_.set_version(std::to_string(kLegacyProtocol));
    const Pickle system = next();
    if (!is_whole(system, 0, 0, context_.limits, findings_)) return;
    const Pickle content = next();
    if (!is_whole(content, 0, 0, context_.limits, findings_)) return;
    const Pickle keys = next();
    if (!is_whole(keys, 0, 0, context_.limits, findings_) || !find_storages(content, keys)) return;
    adder_.add({.pickle = content, .input = input_, .base = 0, .prefix = {}, .top = kTensor}, *this);
    adder_.finish();
  }

 private:
  struct Named {
    std::string key;
    const ElementType* type = nullptr;
    std::uint64_t count = 0;  // of elements, as the pickle states it
    Stored stored{};
    bool there = false;
  };

  Pickle next() {
    Pickle out = Pickle::read(input_, at_, context_.limits.memory);
    at_ = out.end();
    return out;
  }

  // The size of a storage's elements is stated where the content refers to it.
  bool find_storages(const Pickle& content, const Pickle& keys) {
    for (Ref r = 0; r < content.count(); ++r)
      if (const auto id = storage_id(content, r)) named_.push_back({id->key, id->type, id->all, {}, false});
    std::ranges::stable_sort(named_, {}, &Named::key);
    named_.erase(std::unique(named_.begin(), named_.end(), [](auto& a, auto& b) { return a.key == b.key; }),
                 named_.end());
    if (keys.kind(keys.root()) != PickleKind::list)
      return bad({.offset = keys.begin()}, "the keys of the storages are not a list");
    size_cut(keys);
    std::uint64_t at = at_;
    bool good = true;
    keys.for_each(keys.root(), [&](Ref r) {
      good = keys.kind(r) == PickleKind::text && keys.text(r) && place(*keys.text(r), keys.at(r), at);
      if (!good && findings_.errors() == 0) bad({.offset = keys.at(r)}, "a key is not text");
      return good;
    });
    if (good && at < source_.size())
      findings_.report(rules::kTrailing, {.offset = at}, {}, core::in_bytes(source_.size() - at));
    return good;
  }

  // If the file is shorter than the pickles imply, sets the hint with the size that it should have.
  void size_cut(const Pickle& keys) {
    std::optional<std::uint64_t> end = at_;
    keys.for_each(keys.root(), [&](Ref r) {
      const auto key = keys.kind(r) == PickleKind::text ? keys.text(r) : std::nullopt;
      const auto found = key ? std::ranges::lower_bound(named_, *key, {}, &Named::key) : named_.end();
      if (found == named_.end() || found->key != *key) return true;
      const auto bytes = base::checked_mul(found->count, found->type->bytes);
      const auto after = bytes ? base::checked_add(*bytes, sizeof(std::uint64_t)) : std::nullopt;
      end = after ? base::checked_add(*end, *after) : std::nullopt;
      return end.has_value();
    });
    if (end && *end > size_) cut_ = base::size_hint(*end);
  }

  bool bad(core::At at, std::string_view why) { return findings_.fail(rules::kStorageList, at, {}, {}, why); }

  // Reads the storage that begins at `at`, and moves `at` to its end.
  bool place(std::string_view key, std::uint64_t key_at, std::uint64_t& at) {
    const auto found = std::ranges::lower_bound(named_, key, {}, &Named::key);
    if (found == named_.end() || found->key != key)
      return bad({.offset = key_at}, "no tensor has a storage of this key");
    if (found->there) return bad({.offset = key_at}, "a key occurs twice");
    if (!base::fits(at, 8, source_.size())) return bad({.offset = at, .hint = cut_}, "the file ends before a storage");
    char bytes[8];
    source_.read_at(at, std::as_writable_bytes(std::span(bytes)));
    at += 8;
    const auto count = base::load_le<std::uint64_t>(bytes);
    findings_.span(Span::Kind::field, at - 8, at, "elements of the storage",
                   [&] { return std::to_string(count) + ", key " + std::string(key); });
    const auto size = base::checked_mul(count, found->type->bytes);
    if (!size || !base::fits(at, *size, source_.size()))
      return findings_.fail(rules::kStorageList, {.offset = at - 8, .hint = cut_}, core::in_bytes(source_.size() - at),
                            {count, " elements of ", core::in_bytes(found->type->bytes)},
                            "the file ends inside a storage");
    found->stored = {at, *size, *size, Encoding::raw, nullptr, {}};
    found->there = true;
    findings_.span(Span::Kind::entry, at, at + *size, "storage", key);
    at += *size;
    return true;
  }

  Stored* find(const StorageId& id) override {
    const auto found = std::ranges::lower_bound(named_, id.key, {}, &Named::key);
    return found == named_.end() || found->key != id.key || !found->there ? nullptr : &found->stored;
  }

  Adder adder_{context_, findings_, draft_};
  wire::PickleInput input_ = core::input_of(source_, 0, size_);
  std::uint64_t at_ = 0;
  std::vector<Named> named_;  // by key
  Hint cut_{};
};

class NoStorages final : public Storages {
 public:
  Stored* find(const StorageId&) override { return nullptr; }
};

// A pickle that is not PyTorch's: values, and arrays of NumPy.
void read_alone(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  const wire::PickleInput input = core::input_of(source, 0, source.size());
  const Pickle pickle = Pickle::read(input, 0, context.limits.memory);
  draft.set_version("pickle " + std::to_string(pickle.protocol()));
  if (!is_whole(pickle, 0, 0, context.limits, findings)) return;
  Adder adder(context, findings, draft);
  NoStorages storages;
  adder.add({.pickle = pickle, .input = input, .base = 0, .prefix = {}, .top = kValue}, storages);
  adder.finish();
  if (pickle.end() < source.size())
    findings.report(rules::kTrailing, {.offset = pickle.end()}, {}, core::in_bytes(source.size() - pickle.end()));
}

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  draft.set_format("pytorch");
  const std::string head = io::head_of(source, kHead);
  switch (form_of(head)) {
    case Form::archive: return Archive(source, context, findings, draft).run();
    case Form::legacy: return Legacy(source, context, findings, draft).run();
    case Form::tar: return findings.report(rules::kTar, {.offset = 0});
    case Form::pickle: return read_alone(source, context, findings, draft);
  }
}

}  // namespace weighbridge::pytorch
