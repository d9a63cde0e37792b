// SPDX-License-Identifier: Apache-2.0
// The messages and fields of onnx.proto that lead to tensors and metadata, by their names there. Source:
// onnx/onnx.proto of ONNX 1.23, IR version 14. Messages that only describe the graph are in the tables too, so an
// unknown field must be from a later version.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "weighbridge/dtype.h"

namespace weighbridge::onnx {

inline constexpr std::int64_t kNewestIr = 14;
inline constexpr std::string_view kExtension = "onnx", kTensorExtension = "pb";
// Readers built on protobuf count the bytes of a message with an int.
inline constexpr std::uint64_t kMaxSize = (std::uint64_t{1} << 31) - 1;
inline constexpr std::size_t kMaxRank = 64;  // a limit of the object model, not of the format
// Offsets in external files should be multiples of it (onnx.proto, external_data).
inline constexpr std::uint64_t kPage = 4096;

// How a field is stored. Repeated numbers may be packed or not, whatever onnx.proto says; readers accept both.
enum class Kind : std::uint8_t { varint, fixed32, fixed64, bytes, varints, fixed32s, fixed64s };

struct MessageFact;
struct FieldFact {
  std::uint32_t number;
  Kind kind;
  bool repeated = false;
  const MessageFact* inner = nullptr;  // a message without tensors, which is only checked
};

struct MessageFact {
  std::string_view name;
  std::span<const FieldFact> fields;  // by number

  const FieldFact* find(std::uint32_t number) const noexcept {
    const auto found = std::ranges::lower_bound(fields, number, {}, &FieldFact::number);
    return found != fields.end() && found->number == number ? &*found : nullptr;
  }
};

// Messages that describe values, devices and the like; defined in layout.cc.
extern const MessageFact kValueInfo, kType, kAnnotation, kSegment, kNodeConfiguration, kConfiguration;

namespace entry {  // StringStringEntryProto
inline constexpr std::uint32_t kKey = 1, kValue = 2;
inline constexpr FieldFact kFields[] = {{kKey, Kind::bytes}, {kValue, Kind::bytes}};
inline constexpr MessageFact kMessage{"StringStringEntryProto", kFields};
}  // namespace entry

namespace opset {  // OperatorSetIdProto
inline constexpr std::uint32_t kDomain = 1, kVersion = 2;
inline constexpr FieldFact kFields[] = {{kDomain, Kind::bytes}, {kVersion, Kind::varint}};
inline constexpr MessageFact kMessage{"OperatorSetIdProto", kFields};
}  // namespace opset

namespace model {
inline constexpr std::uint32_t kIrVersion = 1, kProducerName = 2, kProducerVersion = 3, kDomain = 4, kModelVersion = 5,
                               kDocString = 6, kGraph = 7, kOpsetImport = 8, kMetadataProps = 14, kTrainingInfo = 20,
                               kFunctions = 25, kConfiguration = 26;
inline constexpr FieldFact kFields[] = {{kIrVersion, Kind::varint},
                                        {kProducerName, Kind::bytes},
                                        {kProducerVersion, Kind::bytes},
                                        {kDomain, Kind::bytes},
                                        {kModelVersion, Kind::varint},
                                        {kDocString, Kind::bytes},
                                        {kGraph, Kind::bytes},
                                        {kOpsetImport, Kind::bytes, true},
                                        {kMetadataProps, Kind::bytes, true},
                                        {kTrainingInfo, Kind::bytes, true},
                                        {kFunctions, Kind::bytes, true},
                                        {kConfiguration, Kind::bytes, true, &onnx::kConfiguration}};
inline constexpr MessageFact kMessage{"ModelProto", kFields};
}  // namespace model

namespace graph {
inline constexpr std::uint32_t kNode = 1, kName = 2, kInitializer = 5, kDocString = 10, kSparseInitializer = 15;
inline constexpr FieldFact kFields[] = {{kNode, Kind::bytes, true},
                                        {kName, Kind::bytes},
                                        {kInitializer, Kind::bytes, true},
                                        {kDocString, Kind::bytes},
                                        {11, Kind::bytes, true, &kValueInfo},   // input
                                        {12, Kind::bytes, true, &kValueInfo},   // output
                                        {13, Kind::bytes, true, &kValueInfo},   // value_info
                                        {14, Kind::bytes, true, &kAnnotation},  // quantization_annotation
                                        {kSparseInitializer, Kind::bytes, true},
                                        {16, Kind::bytes, true, &entry::kMessage}};  // metadata_props
inline constexpr MessageFact kMessage{"GraphProto", kFields};
}  // namespace graph

namespace node {
inline constexpr std::uint32_t kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7;
inline constexpr FieldFact kFields[] = {{1, Kind::bytes, true},  // input
                                        {kOutput, Kind::bytes, true},    {kName, Kind::bytes}, {kOpType, Kind::bytes},
                                        {kAttribute, Kind::bytes, true}, {6, Kind::bytes},  // doc_string
                                        {kDomain, Kind::bytes},          {8, Kind::bytes},  // overload
                                        {9, Kind::bytes, true},                             // metadata_props
                                        {10, Kind::bytes, true}};                           // device_configurations
inline constexpr MessageFact kMessage{"NodeProto", kFields};
}  // namespace node

namespace attribute {
inline constexpr std::uint32_t kName = 1, kF = 2, kI = 3, kS = 4, kT = 5, kG = 6, kFloats = 7, kInts = 8, kStrings = 9,
                               kTensors = 10, kGraphs = 11, kSparseTensor = 22, kSparseTensors = 23;
inline constexpr FieldFact kFields[] = {{kName, Kind::bytes},
                                        {kF, Kind::fixed32},
                                        {kI, Kind::varint},
                                        {kS, Kind::bytes},
                                        {kT, Kind::bytes},
                                        {kG, Kind::bytes},
                                        {kFloats, Kind::fixed32s, true},
                                        {kInts, Kind::varints, true},
                                        {kStrings, Kind::bytes, true},
                                        {kTensors, Kind::bytes, true},
                                        {kGraphs, Kind::bytes, true},
                                        {13, Kind::bytes},                 // doc_string
                                        {14, Kind::bytes, false, &kType},  // tp
                                        {15, Kind::bytes, true, &kType},   // type_protos
                                        {20, Kind::varint},                // type
                                        {21, Kind::bytes},                 // ref_attr_name
                                        {kSparseTensor, Kind::bytes},
                                        {kSparseTensors, Kind::bytes, true}};
inline constexpr MessageFact kMessage{"AttributeProto", kFields};
}  // namespace attribute

namespace function {
inline constexpr std::uint32_t kName = 1, kNode = 7, kDomain = 10, kAttributeProto = 11, kOverload = 13;
inline constexpr FieldFact kFields[] = {
    {kName, Kind::bytes},       {2, Kind::varint},  // since_version, until IR version 8
    {3, Kind::varint},                              // status, likewise
    {4, Kind::bytes, true},                         // input
    {5, Kind::bytes, true},                         // output
    {6, Kind::bytes, true},                         // attribute
    {kNode, Kind::bytes, true}, {8, Kind::bytes},   // doc_string
    {9, Kind::bytes, true},                         // opset_import
    {kDomain, Kind::bytes},     {kAttributeProto, Kind::bytes, true},
    {12, Kind::bytes, true},                                                 // value_info
    {kOverload, Kind::bytes},   {14, Kind::bytes, true, &entry::kMessage}};  // metadata_props
inline constexpr MessageFact kMessage{"FunctionProto", kFields};
}  // namespace function

namespace training {
inline constexpr std::uint32_t kInitialization = 1, kAlgorithm = 2;
inline constexpr FieldFact kFields[] = {{kInitialization, Kind::bytes},
                                        {kAlgorithm, Kind::bytes},
                                        {3, Kind::bytes, true, &entry::kMessage},   // initialization_binding
                                        {4, Kind::bytes, true, &entry::kMessage}};  // update_binding
inline constexpr MessageFact kMessage{"TrainingInfoProto", kFields};
}  // namespace training

namespace tensor {
inline constexpr std::uint32_t kDims = 1, kDataType = 2, kSegment = 3, kFloatData = 4, kInt32Data = 5, kStringData = 6,
                               kInt64Data = 7, kName = 8, kRawData = 9, kDoubleData = 10, kUint64Data = 11,
                               kDocString = 12, kExternalData = 13, kDataLocation = 14, kMetadataProps = 16;
inline constexpr FieldFact kFields[] = {{kDims, Kind::varints, true},
                                        {kDataType, Kind::varint},
                                        {kSegment, Kind::bytes},
                                        {kFloatData, Kind::fixed32s, true},
                                        {kInt32Data, Kind::varints, true},
                                        {kStringData, Kind::bytes, true},
                                        {kInt64Data, Kind::varints, true},
                                        {kName, Kind::bytes},
                                        {kRawData, Kind::bytes},
                                        {kDoubleData, Kind::fixed64s, true},
                                        {kUint64Data, Kind::varints, true},
                                        {kDocString, Kind::bytes},
                                        {kExternalData, Kind::bytes, true},
                                        {kDataLocation, Kind::varint},
                                        {kMetadataProps, Kind::bytes, true}};
inline constexpr MessageFact kMessage{"TensorProto", kFields};
inline constexpr std::uint64_t kExternal = 1;  // a value of data_location
}  // namespace tensor

namespace sparse {
inline constexpr std::uint32_t kValues = 1, kIndices = 2, kDims = 3;
inline constexpr FieldFact kFields[] = {{kValues, Kind::bytes}, {kIndices, Kind::bytes}, {kDims, Kind::varints, true}};
inline constexpr MessageFact kMessage{"SparseTensorProto", kFields};
}  // namespace sparse

// A value of TensorProto.DataType: its name there, our dtype, and the field that holds the elements when raw_data does
// not.
struct ElementType {
  std::string_view name;
  DType dtype;
  std::uint32_t typed;
};
inline constexpr std::uint32_t kString = 8;
inline constexpr ElementType kElementTypes[] = {
    {"UNDEFINED", DType::unknown, 0},
    {"FLOAT", DType::f32, tensor::kFloatData},
    {"UINT8", DType::u8, tensor::kInt32Data},
    {"INT8", DType::i8, tensor::kInt32Data},
    {"UINT16", DType::u16, tensor::kInt32Data},
    {"INT16", DType::i16, tensor::kInt32Data},
    {"INT32", DType::i32, tensor::kInt32Data},
    {"INT64", DType::i64, tensor::kInt64Data},
    {"STRING", DType::unknown, tensor::kStringData},
    {"BOOL", DType::boolean, tensor::kInt32Data},
    {"FLOAT16", DType::f16, tensor::kInt32Data},
    {"DOUBLE", DType::f64, tensor::kDoubleData},
    {"UINT32", DType::u32, tensor::kUint64Data},
    {"UINT64", DType::u64, tensor::kUint64Data},
    {"COMPLEX64", DType::complex64, tensor::kFloatData},
    {"COMPLEX128", DType::complex128, tensor::kDoubleData},
    {"BFLOAT16", DType::bf16, tensor::kInt32Data},
    {"FLOAT8E4M3FN", DType::f8_e4m3, tensor::kInt32Data},
    {"FLOAT8E4M3FNUZ", DType::f8_e4m3fnuz, tensor::kInt32Data},
    {"FLOAT8E5M2", DType::f8_e5m2, tensor::kInt32Data},
    {"FLOAT8E5M2FNUZ", DType::f8_e5m2fnuz, tensor::kInt32Data},
    {"UINT4", DType::u4, tensor::kInt32Data},
    {"INT4", DType::i4, tensor::kInt32Data},
    {"FLOAT4E2M1", DType::f4, tensor::kInt32Data},
    {"FLOAT8E8M0", DType::f8_e8m0, tensor::kInt32Data},
    {"UINT2", DType::u2, tensor::kInt32Data},
    {"INT2", DType::i2, tensor::kInt32Data},
    {"FLOAT6E2M3", DType::f6_e2m3, tensor::kInt32Data},
    {"FLOAT6E3M2", DType::f6_e3m2, tensor::kInt32Data},
};
inline constexpr std::size_t kElementTypeCount = sizeof kElementTypes / sizeof kElementTypes[0];

}  // namespace weighbridge::onnx
