// The one place that knows ONNX's protobuf classes: parses a file and copies everything but tensor bytes into Model.h
// structs. Tensor bytes stay inside the parsed message (or the mapped external file), which each TensorData keeps
// alive.
#include "lib/Frontend/ONNX/CheckModel.h"
#include "lib/Frontend/ONNX/ExternalData.h"
#include "lib/Frontend/ONNX/Model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <climits>
#include <cstring>

namespace plimsoll::onnx {

namespace {
using Message = std::shared_ptr<::onnx::ModelProto>;

/// Bytes that had to be rebuilt from a typed field; owned by the TensorData that uses them.
template <typename Out, typename Field> void adoptTyped(TensorData &tensor, const Field &field) {
  auto buffer = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(field.size()) * sizeof(Out));
  for (int i = 0; i < field.size(); ++i) {
    Out value = static_cast<Out>(field.Get(i));
    std::memcpy(buffer->data() + static_cast<size_t>(i) * sizeof(Out), &value, sizeof(Out));
  }
  tensor.bytes = {buffer->data(), buffer->size()};
  tensor.owner = std::move(buffer);
}

void readTyped(const ::onnx::TensorProto &proto, TensorData &tensor) {
  switch (tensor.dtype) {
  case DType::F32:
    return adoptTyped<float>(tensor, proto.float_data());
  case DType::F64:
    return adoptTyped<double>(tensor, proto.double_data());
  case DType::I64:
    return adoptTyped<int64_t>(tensor, proto.int64_data());
  case DType::I32:
    return adoptTyped<int32_t>(tensor, proto.int32_data());
  case DType::I16:
  case DType::F16:
  case DType::BF16:
    return adoptTyped<uint16_t>(tensor, proto.int32_data());
  case DType::I8:
  case DType::U8:
  case DType::Bool:
    return adoptTyped<uint8_t>(tensor, proto.int32_data());
  default:
    return;
  }
}

Status readTensor(const ::onnx::TensorProto &proto, const Message &message, ExternalData &external,
                  TensorData &tensor) {
  tensor.name = proto.name();
  tensor.dtype = static_cast<DType>(proto.data_type());
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  if (tensor.dtype == DType::String)
    return Status::ok();
  std::optional<uint64_t> count = elementCount(tensor.dims);
  if (!count)
    return badInput("tensor '" + tensor.name + "' has a negative or impossibly large dimension");
  if (elementBytes(tensor.dtype) == 0)
    return badInput("tensor '" + tensor.name + "' has element type " + dtypeName(tensor.dtype) +
                    ", expected f16, bf16, f32, f64, bool, u8 or i8 to i64");
  uint64_t expected = *count * elementBytes(tensor.dtype);
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const auto &entry : proto.external_data())
      entries.emplace_back(entry.key(), entry.value());
    Result<ExternalData::Range> range = external.read(tensor.name, entries, expected);
    if (!range)
      return range.status();
    tensor.bytes = range->bytes;
    tensor.owner = range->owner;
    return Status::ok();
  }
  if (proto.has_segment())
    return badInput("tensor '" + tensor.name + "' is stored in segments, expected whole data");
  if (proto.has_raw_data()) {
    tensor.bytes = {reinterpret_cast<const std::byte *>(proto.raw_data().data()), proto.raw_data().size()};
    tensor.owner = message;
  } else {
    readTyped(proto, tensor);
  }
  if (tensor.bytes.size() != expected)
    return badInput("tensor '" + tensor.name + "' holds " + std::to_string(tensor.bytes.size()) +
                    " bytes but its type and dims need " + std::to_string(expected));
  return Status::ok();
}

Status readAttribute(const ::onnx::AttributeProto &proto, const Message &message, ExternalData &external,
                     Attribute &attribute) {
  using Type = ::onnx::AttributeProto;
  attribute.name = proto.name();
  switch (proto.type()) {
  case Type::INT:
    attribute.kind = Attribute::Kind::Int;
    attribute.intValue = proto.i();
    break;
  case Type::FLOAT:
    attribute.kind = Attribute::Kind::Float;
    attribute.floatValue = proto.f();
    break;
  case Type::STRING:
    attribute.kind = Attribute::Kind::String;
    attribute.text = proto.s();
    break;
  case Type::TENSOR:
    attribute.kind = Attribute::Kind::Tensor;
    return readTensor(proto.t(), message, external, attribute.tensor);
  case Type::INTS:
    attribute.kind = Attribute::Kind::Ints;
    attribute.ints.assign(proto.ints().begin(), proto.ints().end());
    break;
  case Type::FLOATS:
    attribute.kind = Attribute::Kind::Floats;
    attribute.floats.assign(proto.floats().begin(), proto.floats().end());
    break;
  case Type::STRINGS:
    attribute.kind = Attribute::Kind::Strings;
    attribute.texts.assign(proto.strings().begin(), proto.strings().end());
    break;
  case Type::GRAPH:
  case Type::GRAPHS:
    attribute.kind = Attribute::Kind::Graph;
    break;
  default:
    attribute.kind = Attribute::Kind::Other;
  }
  return Status::ok();
}

ValueInfo readValueInfo(const ::onnx::ValueInfoProto &proto) {
  ValueInfo info;
  info.name = proto.name();
  if (!proto.has_type() || !proto.type().has_tensor_type())
    return info;
  const auto &tensor = proto.type().tensor_type();
  info.dtype = static_cast<DType>(tensor.elem_type());
  info.hasShape = tensor.has_shape();
  for (const auto &dim : tensor.shape().dim())
    info.dims.push_back(dim.has_dim_value() ? Dim{dim.dim_value(), ""} : Dim{-1, dim.dim_param()});
  return info;
}

Status readNode(const ::onnx::NodeProto &proto, size_t index, const Message &message, ExternalData &external,
                Node &node) {
  node.opType = proto.op_type();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  node.name = proto.name().empty() ? node.opType + "#" + std::to_string(index) : proto.name();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto &attributeProto : proto.attribute()) {
    Attribute &attribute = node.attributes.emplace_back();
    if (Status status = readAttribute(attributeProto, message, external, attribute); !status)
      return {status.code(), "node '" + node.name + "': " + status.message()};
  }
  return Status::ok();
}

/// What torch.export says of an initializer ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"), from the metadata of its value
/// info: field 4 of ValueInfoProto, which is newer than the protobuf classes used here and so arrives as an unknown
/// field.
std::string exportedKind(const ::onnx::ValueInfoProto &proto) {
  constexpr int metadataField = 4;
  const google::protobuf::UnknownFieldSet &unknown = proto.GetReflection()->GetUnknownFields(proto);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const google::protobuf::UnknownField &field = unknown.field(i);
    ::onnx::StringStringEntryProto entry;
    if (field.number() == metadataField && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        entry.ParseFromString(field.length_delimited()) &&
        entry.key() == "pkg.torch.export.graph_signature.InputSpec.kind")
      return entry.value();
  }
  return "";
}

Status readGraph(const Message &message, ExternalData &external, Model &model) {
  const ::onnx::GraphProto &graph = message->graph();
  model.graphName = graph.name();
  for (const auto &proto : graph.initializer())
    if (Status status = readTensor(proto, message, external, model.initializers.emplace_back()); !status)
      return status;
  for (const auto &proto : graph.sparse_initializer())
    model.unsupportedFeatures.push_back("sparse initializer '" + proto.values().name() + "'");
  for (const auto &function : message->functions())
    model.unsupportedFeatures.push_back("model-local function '" + function.domain() + "." + function.name() + "'");
  for (const auto &proto : graph.input())
    model.inputs.push_back(readValueInfo(proto));
  for (const auto &proto : graph.output())
    model.outputs.push_back(readValueInfo(proto));
  for (const auto &proto : graph.value_info())
    if (std::string kind = exportedKind(proto); !kind.empty())
      model.exportedKinds[proto.name()] = kind;
  for (const auto &proto : graph.node())
    if (Status status = readNode(proto, model.nodes.size(), message, external, model.nodes.emplace_back()); !status)
      return status;
  return Status::ok();
}

/// Parses without the two-gigabyte and nesting surprises of a hostile message; null when it is not a model.
Message parse(std::span<const std::byte> bytes) {
  google::protobuf::LogSilencer quiet;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT_MAX);
  coded.SetRecursionLimit(64);
  auto message = std::make_shared<::onnx::ModelProto>();
  return message->ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage() ? message : nullptr;
}
} // namespace

Result<Model> readModelBytes(std::span<const std::byte> bytes, const std::string &folder) {
  if (bytes.size() > INT_MAX)
    return badInput("the model file holds " + std::to_string(bytes.size()) +
                    " bytes but protobuf allows 2,147,483,647; export with external data");
  Message message = parse(bytes);
  if (!message || !message->has_graph())
    return badInput(
        "not an ONNX model: expected a protobuf ModelProto with a graph (the file may be truncated or damaged)");
  Model model;
  model.irVersion = message->ir_version();
  model.producer = message->producer_name();
  for (const auto &opset : message->opset_import())
    if (opset.domain().empty() || opset.domain() == "ai.onnx")
      model.opset = std::max<int64_t>(model.opset, opset.version());
  for (const auto &entry : message->metadata_props())
    model.metadata[entry.key()] = entry.value();
  if (Status status = checkVersions(model); !status)
    return status;
  ExternalData external(folder);
  if (Status status = readGraph(message, external, model); !status)
    return status;
  if (Status status = checkNames(model); !status)
    return status;
  return model;
}

Result<Model> readModel(const std::string &path) {
  Result<std::shared_ptr<MappedFile>> file = mapUserFile(path);
  if (!file)
    return file.status();
  size_t slash = path.rfind('/');
  Result<Model> model = readModelBytes((*file)->bytes, slash == std::string::npos ? "." : path.substr(0, slash + 1));
  if (!model)
    return Status(model.status().code(), path + ": " + model.status().message());
  model->path = path;
  return model;
}

} // namespace plimsoll::onnx
