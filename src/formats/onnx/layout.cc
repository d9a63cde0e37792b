// SPDX-License-Identifier: Apache-2.0
// The messages of onnx.proto without tensors. They are checked because readers built on Protocol Buffers refuse the
// whole file if one of them is malformed.
#include "formats/onnx/layout.h"

namespace weighbridge::onnx {
namespace {

extern const MessageFact kTensorType, kSequence, kMap, kShape, kDimension, kOpaque, kSharding, kIndexMap, kShardedDim,
    kSimpleShardedDim;

constexpr FieldFact kValueInfoFields[] = {{1, Kind::bytes},                           // name
                                          {2, Kind::bytes, false, &kType},            // type
                                          {3, Kind::bytes},                           // doc_string
                                          {4, Kind::bytes, true, &entry::kMessage}};  // metadata_props
constexpr FieldFact kTypeFields[] = {{1, Kind::bytes, false, &kTensorType},           // tensor_type
                                     {4, Kind::bytes, false, &kSequence},             // sequence_type
                                     {5, Kind::bytes, false, &kMap},                  // map_type
                                     {6, Kind::bytes},                                // denotation
                                     {7, Kind::bytes, false, &kOpaque},               // opaque_type
                                     {8, Kind::bytes, false, &kTensorType},           // sparse_tensor_type
                                     {9, Kind::bytes, false, &kSequence}};            // optional_type
constexpr FieldFact kTensorTypeFields[] = {{1, Kind::varint}, {2, Kind::bytes, false, &kShape}};
constexpr FieldFact kSequenceFields[] = {{1, Kind::bytes, false, &kType}};
constexpr FieldFact kMapFields[] = {{1, Kind::varint}, {2, Kind::bytes, false, &kType}};
constexpr FieldFact kShapeFields[] = {{1, Kind::bytes, true, &kDimension}};
constexpr FieldFact kDimensionFields[] = {{1, Kind::varint}, {2, Kind::bytes}, {3, Kind::bytes}};
constexpr FieldFact kOpaqueFields[] = {{1, Kind::bytes}, {2, Kind::bytes}};
constexpr FieldFact kAnnotationFields[] = {{1, Kind::bytes}, {2, Kind::bytes, true, &entry::kMessage}};
constexpr FieldFact kSegmentFields[] = {{1, Kind::varint}, {2, Kind::varint}};
constexpr FieldFact kNodeConfigurationFields[] = {
    {1, Kind::bytes}, {2, Kind::bytes, true, &kSharding}, {3, Kind::varint}};
constexpr FieldFact kShardingFields[] = {{1, Kind::bytes},
                                         {2, Kind::varints, true},
                                         {3, Kind::bytes, true, &kIndexMap},
                                         {4, Kind::bytes, true, &kShardedDim}};
constexpr FieldFact kIndexMapFields[] = {{1, Kind::varint}, {2, Kind::varints, true}};
constexpr FieldFact kShardedDimFields[] = {{1, Kind::varint}, {2, Kind::bytes, true, &kSimpleShardedDim}};
constexpr FieldFact kSimpleShardedDimFields[] = {{1, Kind::varint}, {2, Kind::bytes}, {3, Kind::varint}};
constexpr FieldFact kConfigurationFields[] = {{1, Kind::bytes}, {2, Kind::varint}, {3, Kind::bytes, true}};

constexpr MessageFact kTensorType{"TypeProto.Tensor", kTensorTypeFields};
constexpr MessageFact kSequence{"TypeProto.Sequence", kSequenceFields};
constexpr MessageFact kMap{"TypeProto.Map", kMapFields};
constexpr MessageFact kShape{"TensorShapeProto", kShapeFields};
constexpr MessageFact kDimension{"TensorShapeProto.Dimension", kDimensionFields};
constexpr MessageFact kOpaque{"TypeProto.Opaque", kOpaqueFields};
constexpr MessageFact kSharding{"ShardingSpecProto", kShardingFields};
constexpr MessageFact kIndexMap{"IntIntListEntryProto", kIndexMapFields};
constexpr MessageFact kShardedDim{"ShardedDimProto", kShardedDimFields};
constexpr MessageFact kSimpleShardedDim{"SimpleShardedDimProto", kSimpleShardedDimFields};

}  // namespace

constexpr MessageFact kValueInfo{"ValueInfoProto", kValueInfoFields};
constexpr MessageFact kType{"TypeProto", kTypeFields};
constexpr MessageFact kAnnotation{"TensorAnnotation", kAnnotationFields};
constexpr MessageFact kSegment{"TensorProto.Segment", kSegmentFields};
constexpr MessageFact kNodeConfiguration{"NodeDeviceConfigurationProto", kNodeConfigurationFields};
constexpr MessageFact kConfiguration{"DeviceConfigurationProto", kConfigurationFields};

}  // namespace weighbridge::onnx
