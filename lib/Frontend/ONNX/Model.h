// A model file as plain structs: what the importer reads instead of protobuf classes. ReadModel.cpp alone knows
// protobuf.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plimsoll::onnx {

/// Element types that the importer understands; the numbers are ONNX's TensorProto.DataType.
enum class DType : int {
  Undefined = 0,
  F32 = 1,
  U8 = 2,
  I8 = 3,
  I16 = 5,
  I32 = 6,
  I64 = 7,
  String = 8,
  Bool = 9,
  F16 = 10,
  F64 = 11,
  BF16 = 16
};
/// Bytes of one element; 0 for types without a fixed size or that are not supported.
uint64_t elementBytes(DType dtype);
bool isFloat(DType dtype);
/// "f32", "i64", "bool"...; "type 23" for others.
std::string dtypeName(DType dtype);
/// Product of `dims`; empty when a dim is negative or the product (or its byte size) passes 2^46.
std::optional<uint64_t> elementCount(std::span<const int64_t> dims);

/// A tensor stored in the model: little-endian row-major bytes that `owner` keeps alive.
struct TensorData {
  std::string name;
  DType dtype = DType::Undefined;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// One node attribute. Which member counts is given by `kind`.
struct Attribute {
  enum class Kind { Int, Float, String, Tensor, Ints, Floats, Strings, Graph, Other };
  std::string name;
  Kind kind = Kind::Other;
  int64_t intValue = 0;
  float floatValue = 0;
  std::string text;
  TensorData tensor;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> texts;
};

/// One operation. `name` is the file's node name, or "<op>#<index>" where the file has none.
struct Node {
  std::string name, opType, domain;
  std::vector<std::string> inputs, outputs; ///< "" = an optional one that is absent
  std::vector<Attribute> attributes;
};

/// A dimension: a size (>= 0), or a symbol ("" when the file says nothing) with size -1.
struct Dim {
  int64_t size = -1;
  std::string symbol;
};
struct ValueInfo {
  std::string name;
  DType dtype = DType::Undefined;
  bool hasShape = false;
  std::vector<Dim> dims;
};

/// A whole model: nodes in topological order (checked), every initializer's bytes checked against its dims.
struct Model {
  std::string path, producer, graphName;
  int64_t irVersion = 0, opset = 0;
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs, outputs; ///< inputs exclude those that are initializers
  std::vector<TensorData> initializers;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string>
      exportedKinds; ///< initializer -> "PARAMETER", "BUFFER", ... where torch.export says so
  std::vector<std::string> unsupportedFeatures; ///< e.g. sparse initializers: reported as unsupported by the importer
};

/// Reads and checks a model file with its external data. Fails with BadInput on anything damaged: not protobuf, no
/// graph, opset out of range, duplicate or missing names, cycles, tensors whose bytes do not match their dims.
Result<Model> readModel(const std::string &path);
/// The same over bytes in memory; external data is looked up in `folder`.
Result<Model> readModelBytes(std::span<const std::byte> bytes, const std::string &folder);

} // namespace plimsoll::onnx
