// SPDX-License-Identifier: Apache-2.0
// An HDF5 file to Model: the walk from the root group, in the order of the links. A dataset becomes a tensor whose name
// is its path, its attributes those of the tensor; attributes of groups become the model's, with the path in the key.
//
//   superblock -> object header of the root group -> messages: links to other object headers,
//   dataspace, datatype, data layout
//
// superblock.cc, object_header.cc, group.cc, heap.cc, tree.cc and chunks.cc each read one structure, anywhere in the
// file; layout.h has their numbers.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/hdf5/dataset.h"
#include "formats/hdf5/file.h"
#include "formats/hdf5/format.h"
#include "formats/hdf5/object_header.h"
#include "formats/hdf5/walk.h"
#include "wire/json_reader.h"

namespace weighbridge::hdf5 {
namespace {

// The total size of elements that a file may claim without storing them: deflate expands zeros 1,032 times, so as much
// is allowed for fill values.
constexpr std::uint64_t kClaimTimes = 1032, kClaimAtLeast = std::uint64_t{256} << 20;
// Caps the caller's limit, so that the walk does not exhaust the stack.
constexpr std::uint32_t kMaxDepth = 500;
constexpr std::string_view kModelConfig = "model_config", kComment = "hdf5.comment";

// Delivers `size` bytes of repeated elements; an empty element is zeros.
void repeat(const std::string& element, std::uint64_t size,
            const std::function<bool(std::span<const std::byte>)>& sink) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  const std::uint64_t width = std::max<std::uint64_t>(element.size(), 1);
  std::string piece;
  piece.reserve(base::to_size(std::min(size, kPiece + width)));
  while (piece.size() < std::min(size, kPiece)) piece += element.empty() ? std::string(1, '\0') : element;
  for (std::uint64_t done = 0; done < size;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), size - done));
    if (!sink(std::as_bytes(std::span(piece)).first(n))) return;
    done += n;
  }
}

class Walk : core::Walker {
 public:
  Walk(const Source& source, std::uint64_t begin, std::uint64_t end, const Rules& rules, const Context& context,
       core::Findings& findings, core::Draft& draft)
      : Walker(source, context, findings, draft),
        rules_(rules),
        file_(source, context.limits, rules, begin, end),
        made_(limits_.work != 0
                  ? limits_.work
                  : std::max(kClaimAtLeast, base::checked_mul(end - begin, kClaimTimes).value_or(UINT64_MAX))) {
    file_.findings = &findings_;
    for (const auto& [key, value] : draft.attributes()) keys_.insert(key);
  }

  std::optional<std::uint8_t> run() {
    try {
      const Superblock superblock = read_superblock(file_, findings_);
      version_ = superblock.version;
      const ObjectHeader root = read_object_header(file_, superblock.root);
      groups_.insert(superblock.root);
      group(root, superblock.root, {}, 0);
    } catch (const Broken& fault) {
      report(fault, {});
      draft_.clear();
      return version_;
    }
    draft_.drop_same_names([&](std::uint32_t, std::uint32_t later) {
      findings_.report(rules_.kDuplicateName, {.offset = places_[later], .tensor = draft_.name(later)});
    });
    return version_;
  }

 private:
  void report(const Broken& fault, std::string_view name) {
    core::At at{.offset = fault.offset};
    if (!name.empty()) at.tensor = name;
    findings_.report(fault.rule, at, fault.expected, fault.found);
  }

  // The path without the slash in front.
  static std::string joined(std::string_view path, std::string_view name) {
    return path.empty() ? std::string(name) : std::string(path) + "/" + std::string(name);
  }

  // A short text, or a row of short texts, is metadata: an attribute named by its path.
  bool text_attribute(const Dataset& found, const std::string& name) {
    constexpr std::uint64_t kMaxText = std::uint64_t{64} << 10;  // bytes, as for arrays of NumPy
    if (found.storage != Dataset::Storage::stored || found.size > kMaxText || found.space.shape.size() > 1)
      return false;
    const std::string bytes = file_.read(found.at - file_.base, found.size, "texts");
    auto value = read_texts(file_, Cursor(file_, bytes, found.at, rules_.kStorage), found.type, found.space);
    if (!value || value->to_text().size() > kMaxText || !keys_.insert(name).second) return false;
    draft_.set_attribute(name, *std::move(value));
    return true;
  }

  // Of an object that is not a tensor: the model's, with the object's path in the key.
  void group_attributes(const ObjectHeader& header, const std::string& path) {
    attributes(header, path, [&](std::string_view key, Value value, std::uint64_t at) {
      std::string whole = path.empty() ? std::string(key) : path + "@" + std::string(key);
      if (!keys_.insert(whole).second) return again(whole, at, {});
      if (path.empty() && key == kModelConfig)
        if (const auto text = value.as_text(); text && has_lambda(*text, limits_.depth))
          findings_.report(rules_.kLambda, {.offset = at});
      draft_.set_attribute(std::move(whole), std::move(value));
    });
  }

  void group(const ObjectHeader& header, std::uint64_t address, const std::string& path, std::uint32_t depth) {
    group_attributes(header, path);
    std::vector<Link> links;
    try {
      links = read_links(file_, header);
    } catch (const Broken& fault) {
      if (fault.whole) throw;
      return report(fault, path);
    }
    if (const std::uint32_t maximum = std::min(limits_.depth, kMaxDepth); depth >= maximum && !links.empty())
      throw Broken{core::rules::kLimitDepth, file_.base + address, core::at_most(maximum), {}, true};
    escape_names(links, path);
    for (const Link& link : links) follow(link, path, depth);
  }

  // Two names may become equal, and only the first one is kept.
  void escape_names(std::vector<Link>& links, const std::string& path) {
    bool any = false;
    for (Link& link : links)
      if (escape_bytes(link.name)) {
        any = true;
        findings_.report(rules_.kNameBytes, {.offset = link.at, .tensor = joined(path, link.name)});
      }
    if (!any) return;
    std::set<std::string, std::less<>> names;
    std::erase_if(links, [&](const Link& link) {
      if (names.insert(link.name).second) return false;
      findings_.report(rules_.kDuplicateName, {.offset = link.at, .tensor = joined(path, link.name)});
      return true;
    });
  }

  void follow(const Link& link, const std::string& path, std::uint32_t depth) {
    const std::string name = joined(path, link.name);
    file_.keep(name.size());
    if (link.name.empty() || link.name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      return findings_.report(rules_.kName, {.offset = link.at}, {}, core::quoted(core::excerpt(link.name)));
    if (link.kind != Link::Kind::hard) {
      const char* const kind = link.kind == Link::Kind::soft       ? "a soft link"
                               : link.kind == Link::Kind::external ? "an external link"
                                                                   : "a user-defined link";
      std::string found = kind;
      if (link.kind != Link::Kind::other && base::is_utf8(link.target))
        found += " to " + core::quoted(core::excerpt(link.target));
      draft_.add_left_behind(core::indexed("links", name), found);
      return findings_.report(rules_.kLink, {.offset = link.at, .tensor = name}, {}, found);
    }
    try {
      const ObjectHeader header = read_object_header(file_, link.address);
      const std::uint64_t at = file_.base + link.address;
      if (is_dataset(header)) return dataset(header, link, at, name);
      if (!is_group(header)) {
        draft_.add_left_behind(core::indexed("objects", name), "neither a dataset nor a group");
        return findings_.report(rules_.kOtherObject, {.offset = at, .tensor = name});
      }
      if (!groups_.insert(link.address).second) {
        draft_.add_left_behind(core::indexed("links", name), "another name of a group");
        return findings_.report(rules_.kGroupAgain, {.offset = at, .tensor = name});
      }
      group(header, link.address, name, depth + 1);
    } catch (const Broken& fault) {
      if (fault.whole) throw;
      if (fault.rule.severity == Severity::unsupported) return add_unreadable(fault, link, name);
      report(fault, name);
    }
  }

  // An object whose header has messages that this program does not know.
  void add_unreadable(const Broken& fault, const Link& link, std::string_view name) {
    count_tensor(link);
    const std::uint32_t tensor = draft_.add_tensor_without_shape(name, Layout::dense, DType::unknown);
    refuse(tensor, fault.rule, fault.offset, fault.found);
  }

  void refuse(std::uint32_t tensor, const Rule& rule, std::uint64_t at, const core::Said& found) {
    const std::string name(draft_.name(tensor));
    Finding why = core::Findings::make(rule, {.offset = at, .tensor = name}, {}, found);
    findings_.report(why);
    draft_.tensor(tensor).unsupported(std::move(why));
  }

  void count_tensor(const Link& link) {
    if (draft_.size() >= limits_.tensors)
      throw Broken{core::rules::kLimitTensors, link.at, core::at_most(limits_.tensors), {}, true};
    places_.push_back(link.at);
  }

  void dataset(const ObjectHeader& header, const Link& link, std::uint64_t at, const std::string& name) {
    auto known = datasets_.find(link.address);
    if (known == datasets_.end()) known = datasets_.emplace(link.address, read_dataset(file_, header, at)).first;
    const Dataset& found = known->second;
    if (found.unsupported == &rules_.kText && text_attribute(found, name)) return group_attributes(header, name);
    if (found.chunks != nullptr && found.size > limits_.decoded)
      return findings_.report(core::rules::kLimitDecoded, {.offset = at, .tensor = name},
                              core::at_most(core::in_bytes(limits_.decoded)), core::in_bytes(found.size));
    count_tensor(link);
    const std::uint32_t tensor = add(found, name);
    std::set<std::string, std::less<>> keys;
    attributes(header, name, [&](std::string_view key, Value value, std::uint64_t place) {
      if (!keys.emplace(key).second) return again(key, place, name);
      draft_.tensor(tensor).attribute(key, std::move(value));
    });
  }

  // What reading elements that are not stored as they are costs. The datasets that come first may make what the file is
  // worth; the others are listed, and need a higher limit to be read.
  struct Claim {
    std::uint64_t size = 0, work = 0;
    std::string_view what = "a dataset in chunks";
    bool beyond = false;

    void require(const Limits& limits) const {
      const auto message = [&] {
        return std::string(what) + " has " + core::bytes_text(size) + " that are not stored as they are";
      };
      if (size > limits.decoded) base::over_limit("decoded", message(), size);
      if (beyond && work > limits.work) base::over_limit("work", message(), work);
    }
  };

  Claim claim(const Dataset& found) {
    Claim out{.size = found.size, .work = found.chunks ? found.chunks->work(limits_.memory) : found.size};
    if (found.chunks == nullptr) out.what = kNeverWritten;
    out.beyond = !made_.take(out.work);
    return out;
  }

  std::uint32_t add(const Dataset& found, std::string_view name) {
    if (found.space.null) {
      const std::uint32_t tensor = draft_.add_tensor_without_shape(name, Layout::dense, found.type.dtype);
      if (found.type.dtype == DType::unknown) draft_.tensor(tensor).type_name(found.type.name);
      refuse(tensor, *found.unsupported, found.unsupported_at, found.unsupported_found);
      return tensor;
    }
    const std::uint32_t tensor = draft_.add_tensor(name, Layout::dense, found.type.dtype, found.space.shape);
    const bool stored = found.storage == Dataset::Storage::stored;
    const bool computed = !stored && found.unsupported == nullptr;
    const Encoding encoding = stored ? Encoding::raw : computed ? Encoding::computed : Encoding::unknown;
    const Extent extent{0, stored ? found.at : file_.base, stored ? found.size : 0};
    const std::uint32_t part = draft_.add_part("data", found.type.dtype, found.space.shape, encoding,
                                               computed ? Extent{} : extent, found.size);
    core::PartDraft made = draft_.part(part);
    made.order(found.type.order);
    if (found.type.dtype == DType::unknown) {
      made.dtype_name(found.type.name);
      draft_.tensor(tensor).type_name(found.type.name);
    }
    if (encoding == Encoding::unknown)
      made.encoding_name(found.storage == Dataset::Storage::elsewhere ? "in other files" : "chunks");
    if (computed) compute(made, found);
    if (found.chunks != nullptr) report_chunks(*found.chunks, name);
    if (found.unsupported != nullptr) refuse(tensor, *found.unsupported, found.unsupported_at, found.unsupported_found);
    return tensor;
  }

  void report_chunks(const Chunked& of, std::string_view name) const {
    for (const Chunk& chunk : of.chunks)
      findings_.span(Span::Kind::tensor, chunk.at, chunk.at + chunk.stored, name, [&] {
        std::vector<std::uint64_t> first(of.grid.size());
        std::uint64_t rest = chunk.index;
        for (std::size_t i = first.size(); i-- > 0; rest /= of.grid[i]) first[i] = rest % of.grid[i] * of.chunk[i];
        return "the chunk of " + core::shape_text(of.chunk) + " from " + core::shape_text(first) + " on" +
               (of.filters.empty() ? "" : ", filtered");
      });
  }

  void compute(core::PartDraft& part, const Dataset& found) {
    const Claim cost = claim(found);
    if (found.storage == Dataset::Storage::filled) {
      part.make([fill = found.fill, cost](const Context& context, const auto& sink) {
        cost.require(context.limits);
        repeat(fill, cost.size, sink);
      });
      return;
    }
    part.make(
        [source = draft_.sources().front(), chunks = found.chunks, cost](const Context& context, const auto& sink) {
          cost.require(context.limits);
          stream_chunks(*source, *chunks, context, sink);
        });
  }

  // take(key, value, offset) for each attribute, and for the object's comment.
  template <class Take> void attributes(const ObjectHeader& header, const std::string& name, Take take) {
    try {
      read_attributes(
          file_, header,
          [&](Attribute found) {
            if (found.escaped)
              findings_.report(rules_.kNameBytes, {.offset = found.at, .tensor = named(name)}, {},
                               core::quoted(core::excerpt(found.name)));
            if (!found.unknown_type.empty())
              findings_.report(rules_.kAttributeType, {.offset = found.at, .tensor = named(name)}, {},
                               {found.name, ": ", found.unknown_type});
            take(found.name, std::move(found.value), found.at);
          },
          [&](const Broken& fault) { report(fault, name); });
    } catch (const Broken& fault) {
      if (fault.whole) throw;
      report(fault, name);
    }
    if (const HeaderMessage* const comment = header.find(Message::comment)) {
      const std::string_view text = comment->bytes.substr(0, comment->bytes.find('\0'));
      if (base::is_utf8(text)) take(kComment, Value::text(std::string(text)), comment->at);
    }
  }
  static std::optional<std::string_view> named(const std::string& name) {
    return name.empty() ? std::nullopt : std::optional<std::string_view>(name);
  }
  void again(std::string_view key, std::uint64_t at, std::string_view name) {
    core::At where{.offset = at};
    if (!name.empty()) where.tensor = name;
    findings_.report(rules_.kAttributeKey, where, {}, core::in_quotes(key));
  }

  const Rules& rules_;
  File file_;
  std::set<std::uint64_t> groups_;             // those that were entered
  std::map<std::uint64_t, Dataset> datasets_;  // by address: a dataset may have several names
  std::set<std::string, std::less<>> keys_;    // of the model's attributes
  std::vector<std::uint64_t> places_;          // of each tensor's link
  std::optional<std::uint8_t> version_;
  core::Budget made_;  // of bytes that are made, not stored
};

// Whether a value of the text, at any depth, is an object of the class Lambda, or holds marshaled code.
bool lambda_in(wire::JsonReader& in, std::string& scratch) {
  switch (in.peek()) {
    case wire::JsonKind::object: {
      bool found = false;
      in.enter_object();
      for (wire::JsonString key; in.next_key(key);) {
        const bool names_class = wire::json_text(key, scratch) == "class_name";
        wire::JsonString value;
        if (names_class && in.peek() == wire::JsonKind::string && in.read_string(value)) {
          const std::string_view text = wire::json_text(value, scratch);
          found = found || text == "Lambda" || text == "__lambda__";
        } else {
          found = lambda_in(in, scratch) || found;
        }
      }
      return found;
    }
    case wire::JsonKind::array: {
      bool found = false;
      in.enter_array();
      while (in.next_element()) found = lambda_in(in, scratch) || found;
      return found;
    }
    default: in.skip_value(); return false;
  }
}

}  // namespace

std::optional<std::uint8_t> walk(const Source& source, std::uint64_t begin, std::uint64_t end, const Rules& rules,
                                 const Context& context, core::Findings& findings, core::Draft& draft) {
  return Walk(source, begin, end, rules, context, findings, draft).run();
}

bool has_lambda(std::string_view json, std::uint32_t depth) {
  wire::JsonReader in(json, std::min(depth, kMaxDepth));
  std::string scratch;
  return lambda_in(in, scratch);
}

void read_h5(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  draft.set_format("hdf5");
  if (const auto version = walk(source, 0, source.size(), kH5Rules, context, findings, draft))
    draft.set_version("superblock " + std::to_string(*version));
}

}  // namespace weighbridge::hdf5
