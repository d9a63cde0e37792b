// SPDX-License-Identifier: Apache-2.0
// npy and npz to Model. Both add arrays with one function; an npz finds them in the members of its archive.
//
//   .npy: "\x93NUMPY" | u8 major | u8 minor | u16 or u32 length of the header | header | elements
//   header: a Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, then spaces (header.h)
//   .npz: a zip archive (core/archive/zip.h) whose members NAME.npy are such arrays
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "core/archive/zip.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/payload/payload.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/numpy/format.h"
#include "formats/numpy/header.h"
#include "formats/numpy/layout.h"
#include "formats/numpy/rules.h"
#include "io/read.h"

namespace weighbridge::numpy {
namespace {

using core::bytes_text;

// Where an array lies.
struct Place {
  std::string_view name;     // of the tensor
  bool named = false;        // whether findings name it
  std::uint64_t offset = 0;  // of the stored bytes
  std::uint64_t stored = 0;  // bytes
  std::uint64_t size = 0;    // once decoded
  Encoding encoding = Encoding::raw;
  std::function<std::string(std::size_t)> front{};  // the first bytes, decoded; null: texts do not become attributes
  const Source* file = nullptr;                     // of which the array is the whole
};

// What the comment of an archive that we wrote says its void items are (layout.h).
class Mark {
 public:
  Mark() = default;
  explicit Mark(std::string_view comment) {
    if (!comment.starts_with(kMark)) return;
    std::size_t end = std::min(comment.find('\n'), comment.size());
    std::string_view words = comment.substr(kMark.size(), end - kMark.size());
    while (words.starts_with(" V") && words.size() > 4) {
      const std::size_t next = std::min(words.find(' ', 1), words.size());
      if (const auto dtype = dtype_from_name(words.substr(4, next - 4)); dtype && words[3] == '=')
        usual_[static_cast<std::uint64_t>(words[2] - '0')] = *dtype;
      words.remove_prefix(next);
    }
    while (end < comment.size()) {
      const std::string_view line = comment.substr(end + 1, comment.find('\n', end + 1) - end - 1);
      end += line.size() + 1;
      const std::size_t blank = std::min(line.find(' '), line.size());
      if (const auto dtype = dtype_from_name(line.substr(0, blank)); dtype && blank < line.size())
        named_[std::string(line.substr(blank + 1))] = *dtype;
    }
  }
  // Of an array with items of this size; unknown: it does not say.
  DType of(std::string_view name, std::uint64_t bytes) const {
    const auto named = named_.find(name);
    const auto usual = usual_.find(bytes);
    const DType out = named != named_.end() ? named->second : usual != usual_.end() ? usual->second : DType::unknown;
    return info(out).bits == 8 * bytes ? out : DType::unknown;
  }

 private:
  std::map<std::uint64_t, DType> usual_;
  std::map<std::string, DType, std::less<>> named_;
};

class Walk {
 public:
  Walk(const Context& context, const ArrayRules& rules, core::Findings& findings, core::Draft& draft, Mark mark = {})
      : context_(context), rules_(rules), findings_(findings), draft_(draft), mark_(std::move(mark)) {}

  // `bytes` are the bytes of the array before its elements.
  void add(const Place& place, std::string_view bytes) {
    Fault fault;
    core::FieldNotes notes(findings_, place.offset);
    auto header = read_header(bytes, rules_, fault, &notes);
    const core::At start = at(place, fault.at);
    if (!header) return findings_.report(*fault.rule, start, std::move(fault.expected), std::move(fault.found));
    if (place.encoding == Encoding::raw) notes.report(Span::Kind::structure, "array header", 0, header->data_at);
    const std::uint64_t there = place.size - header->data_at;
    if (header->unsupported == &rules_.kRaw) {
      header->dtype = mark_.of(place.name, header->word.bytes);
      if (!size_of(header->dtype, header->shape)) header->dtype = DType::unknown;
      if (header->dtype != DType::unknown) header->unsupported = nullptr;
    }
    if (auto text = text_of(place, *header, there))
      return draft_.set_attribute(std::string(place.name), *std::move(text));
    if (!header->unsupported && !fits(place, *header, there)) return;
    add(place, *std::move(header), there);
  }

 private:
  core::At at(const Place& place, std::uint64_t in_array) const {
    core::At out{.offset = place.offset + (place.encoding == Encoding::raw ? in_array : 0)};
    if (place.named) out.tensor = place.name;
    return out;
  }

  // Whether the file has all elements.
  bool fits(const Place& place, const Header& header, std::uint64_t there) {
    const std::uint64_t needed = *size_of(header.dtype, header.shape);
    // If the array is the whole file, it determines the file's length.
    const auto placed = [&](std::uint64_t in_array) {
      core::At out = at(place, in_array);
      if (!place.named) out.hint = base::size_hint(header.data_at + needed);
      return out;
    };
    if (needed > there)
      return findings_.fail(rules_.kTruncated, placed(place.size), core::in_bytes(needed), core::in_bytes(there),
                            core::missing_text(needed - there));
    if (needed < there)
      findings_.report(rules_.kTrailing, placed(header.data_at + needed), {}, core::in_bytes(there - needed));
    if (needed < there && place.file) core::report_second_beginning(findings_, *place.file, there - needed);
    if (place.encoding != Encoding::raw && place.size > context_.limits.decoded)
      return findings_.fail(core::rules::kLimitDecoded, at(place, 0),
                            core::at_most(core::in_bytes(context_.limits.decoded)), core::in_bytes(place.size));
    return true;
  }

  void add(const Place& place, Header header, std::uint64_t there) {
    const std::uint32_t tensor = draft_.add_tensor(place.name, Layout::dense, header.dtype, header.shape);
    const bool raw = place.encoding == Encoding::raw, known = header.dtype != DType::unknown;
    const std::uint64_t size = known ? *size_of(header.dtype, header.shape) : there;
    const Extent extent = raw ? Extent{0, place.offset + header.data_at, size} : Extent{0, place.offset, place.stored};
    const std::uint32_t part = draft_.add_part("data", header.dtype, header.shape, place.encoding, extent, size);
    if (!raw) {
      const std::uint64_t width = known ? info(header.dtype).bits / 8 : 1;
      draft_.part(part).cut({.whole = place.size, .first = header.data_at, .step = width});
    }
    if (known && header.word.order == Order::big) draft_.part(part).order(Order::big);
    // Those of raw items count once they are read as a dtype.
    if (header.fortran && (known || header.unsupported == &rules_.kRaw))
      if (auto strides = fortran_strides(header.shape); !strides.empty()) draft_.part(part).strides(std::move(strides));
    if (known) return;
    draft_.part(part).dtype_name(header.type);
    draft_.tensor(tensor).type_name(header.type);
    core::At where = at(place, 0);
    where.tensor = place.name;
    if (const std::uint64_t bytes = header.word.bytes; header.unsupported == &rules_.kRaw && (bytes == 1 || bytes == 2))
      where.hint = base::option_hint("as", std::string(place.name) + (bytes == 2 ? "=bf16" : "=f8_e4m3"));
    Finding why = core::Findings::make(*header.unsupported, where, {}, std::string(core::excerpt(header.type)));
    findings_.report(why);
    draft_.tensor(tensor).unsupported(std::move(why));
  }

  // A text, or a row of texts, that is short enough for an attribute.
  std::optional<Value> text_of(const Place& place, const Header& header, std::uint64_t there) const {
    constexpr std::uint64_t kLongest = std::uint64_t{64} << 10;  // bytes; labels and notes are shorter
    if (header.unsupported != &rules_.kText || !place.front || header.shape.size() > 1) return std::nullopt;
    const std::uint64_t count = header.shape.empty() ? 1 : header.shape[0], width = header.word.bytes;
    const auto size = base::checked_mul(count, width);
    if (size != there || there > kLongest || count > kLongest || (width == 0 && count > 1)) return std::nullopt;
    const std::string bytes = place.front(base::to_size(place.size));
    if (bytes.size() != place.size) return std::nullopt;
    Texts texts;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto text = core::numpy_text(
          std::string_view(bytes).substr(base::to_size(header.data_at + i * width), base::to_size(width)), header.word);
      if (!text) return std::nullopt;
      if (header.shape.empty()) return Value::text(*text);
      texts.push_back(*text);
    }
    return Value::texts(std::move(texts));
  }

  const Context& context_;
  const ArrayRules& rules_;
  core::Findings& findings_;
  core::Draft& draft_;
  const Mark mark_;
};

// The members of an npz that are arrays become tensors.
class Archive : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    auto zip = core::read_zip(source_, context_.limits, kZipRules, findings_, draft_);
    if (!zip) return draft_.clear();
    check_front(zip->members.empty());
    draft_.add_checksum("payload", "CRC-32 of each member");
    draft_.reserve(zip->members.size(), zip->members.size(), 2 * zip->members.size());
    std::vector<std::string_view> names;
    names.reserve(zip->members.size());
    for (const core::ZipMember& member : zip->members) names.push_back(member.name);
    std::ranges::sort(names);
    Walk walk(context_, kNpzRules, findings_, draft_, Mark(zip->comment));
    for (core::ZipMember& member : zip->members) {
      if (member.broken || member.is_folder()) continue;
      // numpy.load accepts both names for a member, and could find the wrong one.
      const std::string_view name = array_name(member.name);
      if (name.size() < member.name.size() && std::ranges::binary_search(names, name))
        findings_.report(npz::kAmbiguousName, {.offset = member.entry_at, .tensor = name}, {},
                         core::in_quotes(member.name), {"it is beside ", core::in_quotes(name)});
      else if (!member.utf8_flag &&
               !std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
        findings_.report(npz::kNameFlag, {.offset = member.entry_at, .tensor = name});
      else
        add(member, walk);
    }
    draft_.index_names();
  }

 private:
  void check_front(bool empty) {
    if (!empty && io::head_of(source_, core::kZipMember.size()) != core::kZipMember)
      findings_.report(npz::kFront, {.offset = 0});
  }

  void add(const core::ZipMember& member, Walk& walk) {
    const std::string_view name = array_name(member.name);
    const bool named = name.size() < member.name.size();
    if (member.unreadable != nullptr) return add_unreadable(member, name);
    std::string fault;
    const auto front = [&](std::size_t n) { return core::zip_front(source_, member, n, context_, fault); };
    const std::string bytes = up_to_elements(front);
    // A member is an array by its name or its content, as in numpy.load.
    if (!named && !bytes.starts_with(kMagic)) {
      findings_.report(npz::kOtherMember, {.offset = member.header_at}, {}, core::in_quotes(member.name));
      draft_.add_left_behind(core::indexed("files", member.name), "a member that is not an array");
      return;
    }
    if (!fault.empty())
      return findings_.report(npz::kDeflate, {.offset = member.offset, .tensor = name}, {}, {}, fault);
    walk.add({name, true, member.offset, member.stored, member.size, member.encoding, front}, bytes);
  }

  void add_unreadable(const core::ZipMember& member, std::string_view name) {
    const std::uint32_t tensor = draft_.add_tensor_without_shape(name, Layout::dense, DType::unknown);
    const std::uint64_t count[] = {member.stored};
    const std::uint32_t part = draft_.add_part("data", DType::unknown, count, Encoding::unknown,
                                               {0, member.offset, member.stored}, member.size);
    draft_.part(part).encoding_name(member.found.empty() ? "encrypted" : member.found);
    Finding why =
        core::Findings::make(*member.unreadable, {.offset = member.entry_at, .tensor = name}, {}, member.found);
    findings_.report(why);
    draft_.tensor(tensor).unsupported(std::move(why));
  }
};

}  // namespace

std::string_view array_name(std::string_view member) noexcept {
  return member.ends_with(kSuffix) ? member.substr(0, member.size() - kSuffix.size()) : member;
}

void read_npy(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  draft.set_format("npy");
  const std::string bytes = up_to_elements([&](std::size_t n) { return io::head_of(source, n); });
  if (bytes.size() > kVersionAt + 1 && bytes.starts_with(kMagic))
    draft.set_version(std::to_string(static_cast<unsigned char>(bytes[kVersionAt])) + "." +
                      std::to_string(static_cast<unsigned char>(bytes[kVersionAt + 1])));
  Walk(context, kNpyRules, findings, draft)
      .add({kArray, false, 0, source.size(), source.size(), Encoding::raw, {}, &source}, bytes);
}

void read_npz(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  draft.set_format("npz");
  Archive(source, context, findings, draft).run();
}

}  // namespace weighbridge::numpy
