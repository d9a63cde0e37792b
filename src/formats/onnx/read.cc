// SPDX-License-Identifier: Apache-2.0
// ONNX to Model: the one walker for open and verify. Goes through the messages that can hold tensors, in the order of
// the file, and skips the elements. If the name of a message comes after its content, walks that message twice, but
// never its inner ones, so the time is linear at any depth. A file is one message of Protocol Buffers, ModelProto or
// TensorProto: layout.h has their fields.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/utf8.h"
#include "core/model/words.h"
#include "core/reading/rules.h"
#include "formats/onnx/adder.h"
#include "formats/onnx/format.h"
#include "formats/onnx/walk.h"

namespace weighbridge::onnx {
namespace {

using core::bytes_text;

class Walk {
 public:
  Walk(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft, Wanted wanted)
      : reading_(source, context.limits, findings),
        findings_(findings),
        draft_(draft),
        adder_(reading_, source, findings, draft, wanted) {}

  Walked run() {
    draft_.set_format("onnx");
    const std::uint64_t size = reading_.source.size();
    if (size > kMaxSize) {
      findings_.report(rules::kTooLarge, {.offset = kMaxSize}, core::at_most(core::in_bytes(kMaxSize)),
                       core::in_bytes(size));
      return {};
    }
    Front front(reading_.source);
    if (is_tensor(front.probe()))
      bare_tensor();
    else
      model();
    if (!reading_.good()) {
      reading_.report_fault();
      draft_.clear();
      return {};
    }
    return adder_.finish();
  }

 private:
  // The beginning of the file, by which a TensorProto is recognized.
  class Front {
   public:
    explicit Front(const Source& source) : bytes_(base::to_size(std::min<std::uint64_t>(source.size(), 4096))) {
      if (!bytes_.empty()) source.read_at(0, bytes_);
      probe_.head = bytes_;
      probe_.size = source.size();
      extension_ = source.extension();
      probe_.extension = extension_;
    }
    const core::Probe& probe() const { return probe_; }

   private:
    std::vector<std::byte> bytes_;
    std::string extension_;
    core::Probe probe_;
  };

  void bare_tensor() {
    draft_.set_version("one tensor");
    const TensorMessage tensor = read_tensor(reading_, reading_.proto.root(), 0);
    std::string name = tensor.name ? reading_.text(*tensor.name) : std::string();
    if (name.empty()) name = "tensor";
    adder_.add(tensor, std::move(name));
  }

  void model() {
    Fields fields(reading_, reading_.proto.root(), model::kMessage);
    std::int64_t ir = 0;
    bool has_graph = false, has_ir = false;
    std::uint64_t functions = 0, training = 0;
    for (ProtobufField field; fields.next(field);) {
      const auto text = [&](std::string_view key) { attribute(std::string(key), range_of(field), field.at); };
      switch (field.number) {
        case model::kIrVersion:
          ir = static_cast<std::int64_t>(field.value);
          has_ir = true;
          if (ir > 0) set("onnx.ir_version", Value::text(std::to_string(ir)), field.at);
          break;
        case model::kProducerName: text("onnx.producer_name"); break;
        case model::kProducerVersion: text("onnx.producer_version"); break;
        case model::kDomain: text("onnx.domain"); break;
        case model::kModelVersion:
          set("onnx.model_version", Value::text(std::to_string(static_cast<std::int64_t>(field.value))), field.at);
          break;
        case model::kDocString: text("onnx.doc_string"); break;
        case model::kOpsetImport: opset_import(fields.inside(field), field.at); break;
        case model::kMetadataProps: {
          const EntryMessage one = read_entry(reading_, fields.inside(field), field.at);
          attribute(reading_.text(one.key), one.value, field.at);
          break;
        }
        case model::kGraph:
          has_graph = true;
          graph(fields.inside(field), {}, true);
          break;
        case model::kTrainingInfo:
          training_info(fields.inside(field), "training_info." + std::to_string(training++));
          break;
        case model::kFunctions:
          ++functions;
          function(fields.inside(field));
          break;
        default: break;
      }
    }
    if (!reading_.good()) return;
    if (!has_ir || ir <= 0)
      findings_.report(rules::kNoIrVersion, {.offset = 0}, {}, has_ir ? std::to_string(ir) : "none");
    else if (ir > kNewestIr)
      findings_.report(rules::kNewerIr, {.offset = 0}, {}, ir);
    if (!has_graph) findings_.report(rules::kNoGraph, {.offset = 0});
    draft_.set_version(std::to_string(ir));
    const auto number = [](std::uint64_t n, const char* one, const char* many) {
      return std::to_string(n) + " " + (n == 1 ? one : many);
    };
    if (has_graph)
      draft_.add_left_behind("graph", number(nodes_, "node", "nodes") +
                                          (functions > 0 ? " and " + number(functions, "function", "functions") : ""));
  }

  // A value of the metadata.
  void attribute(std::string key, Range value, std::uint64_t at) {
    if (!base::is_utf8(key)) return findings_.report(rules::kKeyUtf8, {.offset = at}, {}, core::excerpted(key));
    set(std::move(key), text_value(reading_, value), at);
  }
  void set(std::string key, Value value, std::uint64_t at) {
    if (draft_.attribute(key)) return findings_.report(rules::kDuplicateKey, {.offset = at}, {}, core::excerpted(key));
    draft_.set_attribute(std::move(key), std::move(value));
  }

  void opset_import(const ProtobufMessage& message, std::uint64_t at) {
    Fields fields(reading_, message, opset::kMessage);
    Range domain;
    std::int64_t version = 0;
    for (ProtobufField field; fields.next(field);) {
      if (field.number == opset::kDomain)
        domain = range_of(field);
      else
        version = static_cast<std::int64_t>(field.value);
    }
    std::string name = reading_.text(domain);
    if (name.empty()) name = "ai.onnx";
    if (!base::is_utf8(name)) return findings_.report(rules::kKeyUtf8, {.offset = at}, {}, core::excerpted(name));
    std::string key = "onnx.opset_import." + name;
    Value value = Value::text(std::to_string(version));
    if (const Value* const known = draft_.attribute(key); known != nullptr && *known == value && opsets_.contains(key))
      return findings_.report(rules::kOpsetAgain, {.offset = at}, {}, core::excerpt(name) + " " + value.to_text());
    opsets_.insert(key);
    set(std::move(key), std::move(value), at);
  }

  void training_info(const ProtobufMessage& message, const std::string& name) {
    Fields fields(reading_, message, training::kMessage);
    within(fields.frame(), [&] {
      for (ProtobufField field; fields.next(field);)
        if (field.number == training::kInitialization || field.number == training::kAlgorithm)
          graph(fields.inside(field),
                name + (field.number == training::kAlgorithm ? ".algorithm/" : ".initialization/"));
    });
  }

  // Calls visit() with the message on the list of enclosing messages.
  template <class Visit> void within(const Frame& message, Visit visit) {
    adder_.enter(message);
    visit();
    adder_.leave();
  }

  void graph(const ProtobufMessage& message, const std::string& prefix, bool outermost = false) {
    Fields fields(reading_, message, graph::kMessage);
    within(fields.frame(), [&] {
      for (ProtobufField field; fields.next(field);) switch (field.number) {
          case graph::kNode: node(fields.inside(field), prefix); break;
          case graph::kName:
            if (outermost && field.size() > 0) attribute("onnx.graph.name", range_of(field), field.at);
            break;
          case graph::kDocString:
            if (outermost && field.size() > 0) attribute("onnx.graph.doc_string", range_of(field), field.at);
            break;
          case graph::kInitializer: {
            const TensorMessage tensor = read_tensor(reading_, fields.inside(field), field.at);
            if (!reading_.good()) return;
            if (!tensor.name || tensor.name->size() == 0)
              findings_.report(rules::kNoName, {.offset = field.at});
            else
              adder_.add(tensor, prefix + reading_.text(*tensor.name));
            break;
          }
          case graph::kSparseInitializer: sparse(fields.inside(field), field.at, prefix, {}); break;
          default: break;
        }
    });
  }

  void function(const ProtobufMessage& message) {
    Fields fields(reading_, message, function::kMessage);
    Range domain, name, overload;
    bool holds = false;
    for (ProtobufField field; fields.next(field);) switch (field.number) {
        case function::kName: name = range_of(field); break;
        case function::kDomain: domain = range_of(field); break;
        case function::kOverload: overload = range_of(field); break;
        case function::kNode:
        case function::kAttributeProto: holds = true; break;
        default: break;
      }
    if (!holds) return;
    std::string prefix = reading_.text(domain);
    if (!prefix.empty()) prefix += '.';
    prefix += reading_.text(name);
    if (overload.size() > 0) prefix += ':' + reading_.text(overload);
    fields.rewind();
    within(fields.frame(), [&] {
      for (ProtobufField field; fields.next(field);) {
        if (field.number == function::kNode) node(fields.inside(field), prefix + "/");
        if (field.number == function::kAttributeProto) attribute(fields.inside(field), {}, prefix + ".", {});
      }
    });
  }

  // A node's name in its tensors' names: its first output, which is unique in the graph, while names of nodes may
  // repeat.
  struct Node {
    Range output{}, name{}, type{};
    bool constant = false;
  };

  void node(const ProtobufMessage& message, const std::string& prefix) {
    ++nodes_;
    Fields fields(reading_, message, node::kMessage);
    Node me;
    Range domain;
    bool holds = false;
    for (ProtobufField field; fields.next(field);) switch (field.number) {
        case node::kOutput:
          if (me.output.size() == 0) me.output = range_of(field);
          break;
        case node::kName: me.name = range_of(field); break;
        case node::kOpType: me.type = range_of(field); break;
        case node::kDomain: domain = range_of(field); break;
        case node::kAttribute: holds = true; break;
        default: break;
      }
    if (!holds) return;
    me.constant = is(me.type, "Constant") && (domain.size() == 0 || is(domain, "ai.onnx"));
    fields.rewind();
    within(fields.frame(), [&] {
      for (ProtobufField field; fields.next(field);)
        if (field.number == node::kAttribute) attribute(fields.inside(field), me, prefix, ".");
    });
  }

  bool is(Range range, std::string_view text) {
    if (range.size() != text.size()) return false;
    const auto bytes = reading_.window.from(range.begin, text.size());
    return std::ranges::equal(bytes.first(text.size()), std::as_bytes(std::span(text)));
  }
  std::string name_of(const Node& node) {
    return reading_.text(node.output.size() > 0 ? node.output : node.name.size() > 0 ? node.name : node.type);
  }

  // The name of a tensor in an attribute: PREFIX, the node's name, the separator, the attribute's name.
  void attribute(const ProtobufMessage& message, const Node& node, const std::string& prefix,
                 std::string_view separator) {
    Fields fields(reading_, message, attribute::kMessage);
    Range name, value;
    Numbers floats, ints;
    std::uint64_t tensors = 0, graphs = 0, strings = 0;
    std::optional<ProtobufField> number;  // value_float, value_int
    for (ProtobufField field; fields.next(field);) switch (field.number) {
        case attribute::kName: name = range_of(field); break;
        case attribute::kF:
        case attribute::kI: number = field; break;
        case attribute::kT:
        case attribute::kSparseTensor:
        case attribute::kTensors:
        case attribute::kSparseTensors: ++tensors; break;
        case attribute::kG:
        case attribute::kGraphs: ++graphs; break;
        case attribute::kS:
        case attribute::kStrings:
          if (strings++ == 0) value.begin = field.at;
          value.end = field.end;
          break;
        case attribute::kFloats:
        case attribute::kInts: {
          if (!node.constant) break;
          const unsigned width = field.number == attribute::kFloats ? 4 : 0;
          if (const auto bad = (width != 0 ? floats : ints).add(field, width, reading_.window))
            findings_.report(width == 0 ? rules::kVarint : rules::kPackedSize, {.offset = *bad});
          break;
        }
        default: break;
      }
    if (!reading_.good()) return;
    if (node.constant && tensors == 0 && graphs == 0) {
      constant(fields.range(), node, prefix, name, number, floats, ints, strings, value);
      return;
    }
    if (tensors + graphs == 0) return;
    std::string base = prefix + name_of(node);
    const bool is_value =
        node.constant && graphs == 0 && tensors == 1 && (is(name, "value") || is(name, "sparse_value"));
    if (!is_value) base += std::string(separator) + reading_.text(name);
    fields.rewind();
    std::uint64_t tensor = 0, inner = 0;
    within(fields.frame(), [&] {
      for (ProtobufField field; fields.next(field);) {
        const auto numbered = [&](std::uint64_t& next) { return base + "." + std::to_string(next++); };
        switch (field.number) {
          case attribute::kT: adder_.add(read_tensor(reading_, fields.inside(field), field.at), base); break;
          case attribute::kTensors:
            adder_.add(read_tensor(reading_, fields.inside(field), field.at), numbered(tensor));
            break;
          case attribute::kSparseTensor: sparse(fields.inside(field), field.at, {}, base); break;
          case attribute::kSparseTensors: sparse(fields.inside(field), field.at, {}, numbered(tensor)); break;
          case attribute::kG: graph(fields.inside(field), base + "/"); break;
          case attribute::kGraphs: graph(fields.inside(field), numbered(inner) + "/"); break;
          default: break;
        }
      }
    });
  }

  // value_float, value_floats, value_int, value_ints, value_string or value_strings of a node Constant.
  void constant(Range message, const Node& node, const std::string& prefix, Range name,
                const std::optional<ProtobufField>& number, const Numbers& floats, const Numbers& ints,
                std::uint64_t strings, Range texts) {
    Elements elements;
    const bool one = (is(name, "value_float") || is(name, "value_int")) && number;
    if (one) {
      elements.dtype = number->number == attribute::kF ? DType::f32 : DType::i64;
      elements.count = 1;
      if (number->number == attribute::kF)
        elements.extent = {.source = 0, .offset = number->begin, .length = number->size()};
      else
        elements.numbers = NumberField{message, attribute::kI, 0, DType::i64, 1};
    } else if (is(name, "value_floats") || is(name, "value_ints")) {
      const bool real = is(name, "value_floats");
      const Numbers& all = real ? floats : ints;
      elements.dtype = real ? DType::f32 : DType::i64;
      elements.count = all.count;
      elements.shape = {all.count};
      if (real && (all.contiguous() || all.count == 0))
        elements.extent = {.source = 0, .offset = all.first.begin, .length = all.first.size()};
      else
        elements.numbers = NumberField{message, real ? attribute::kFloats : attribute::kInts, real ? 4U : 0U,
                                       elements.dtype, all.count};
    } else if (is(name, "value_string") || is(name, "value_strings")) {
      if (is(name, "value_strings")) elements.shape = {strings};
      elements.extent = {.source = 0, .offset = texts.begin, .length = texts.size()};
      elements.size = texts.size();
      elements.type_name = "STRING";
    } else {
      return;
    }
    const std::string full = prefix + name_of(node);
    if (elements.dtype != DType::unknown)
      elements.size = elements.count * (info(elements.dtype).bits / 8);  // at most ten times the file
    else
      elements.unsupported = std::make_shared<const Finding>(
          core::Findings::make(rules::kStrings, {.offset = texts.begin, .tensor = full}, {}, elements.type_name));
    adder_.add(elements, full, {.message = message, .at = message.begin});
  }

  // Its own name if none is given.
  void sparse(const ProtobufMessage& message, std::uint64_t at, const std::string& prefix, std::string name) {
    Fields fields(reading_, message, sparse::kMessage);
    TensorMessage shape{.at = at};
    shape.message = fields.range();
    std::optional<TensorMessage> values, indices;
    for (ProtobufField field; fields.next(field);) switch (field.number) {
        case sparse::kDims:
          if (shape.rank == 0) shape.dims_at = field.at;
          read_dims(reading_, field, shape.dims, shape.rank);
          break;
        case sparse::kValues: values = read_tensor(reading_, fields.inside(field), field.at); break;
        case sparse::kIndices: indices = read_tensor(reading_, fields.inside(field), field.at); break;
        default: break;
      }
    if (!reading_.good()) return;
    const bool own = name.empty();
    if (own && values && values->name) name = prefix + reading_.text(*values->name);
    if (own && (!values || !values->name || values->name->size() == 0))
      return findings_.report(values ? rules::kNoName : rules::kSparseMessage, {.offset = at});
    if (!values || !indices) return findings_.report(rules::kSparseMessage, {.offset = at, .tensor = name});
    if (!adder_.check_name(name, at)) return;
    adder_.add_sparse(shape, *values, *indices, name, at);
  }

  Reading reading_;
  core::Findings& findings_;
  core::Draft& draft_;
  Adder adder_;
  std::uint64_t nodes_ = 0;
  std::set<std::string> opsets_;  // keys of the metadata
};

}  // namespace

Walked walk(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft, Wanted wanted) {
  return Walk(source, context, findings, draft, wanted).run();
}

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  walk(source, context, findings, draft);
}

}  // namespace weighbridge::onnx
