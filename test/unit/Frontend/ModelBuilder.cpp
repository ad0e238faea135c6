// See ModelBuilder.h.
#include "test/unit/Frontend/ModelBuilder.h"

#include <fstream>
#include <sstream>
#include <stdlib.h>

namespace plimsoll::test {

ModelBuilder::ModelBuilder(int64_t opset, const std::string &producer) {
  proto.set_ir_version(8);
  proto.set_producer_name(producer);
  proto.add_opset_import()->set_version(opset);
  proto.mutable_graph()->set_name("test");
}

ModelBuilder &ModelBuilder::input(const std::string &name, std::vector<int64_t> dims, int type) {
  auto *value = proto.mutable_graph()->add_input();
  value->set_name(name);
  auto *tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (size_t d = 0; d < dims.size(); ++d) {
    auto *dim = tensor->mutable_shape()->add_dim();
    if (dims[d] < 0)
      dim->set_dim_param("d" + std::to_string(d));
    else
      dim->set_dim_value(dims[d]);
  }
  return *this;
}

ModelBuilder &ModelBuilder::output(const std::string &name, int type) {
  auto *value = proto.mutable_graph()->add_output();
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return *this;
}

::onnx::TensorProto &ModelBuilder::floats(const std::string &name, std::vector<int64_t> dims, float value) {
  auto *tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(::onnx::TensorProto::FLOAT);
  int64_t count = 1;
  for (int64_t dim : dims) {
    tensor->add_dims(dim);
    count *= dim;
  }
  std::vector<float> data;
  for (int64_t i = 0; i < count; ++i)
    data.push_back(value + 0.01f * static_cast<float>(i % 7));
  tensor->set_raw_data(data.data(), data.size() * sizeof(float));
  return *tensor;
}

::onnx::TensorProto &ModelBuilder::ints(const std::string &name, std::vector<int64_t> values, bool scalar) {
  auto *tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(::onnx::TensorProto::INT64);
  if (!scalar)
    tensor->add_dims(static_cast<int64_t>(values.size()));
  for (int64_t value : values)
    tensor->add_int64_data(value);
  return *tensor;
}

::onnx::NodeProto &ModelBuilder::node(const std::string &op, std::vector<std::string> inputs,
                                      std::vector<std::string> outputs, const std::string &name) {
  auto *node = proto.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(name.empty() ? "node_" + outputs.front() : name);
  for (const std::string &input : inputs)
    node->add_input(input);
  for (const std::string &output : outputs)
    node->add_output(output);
  return *node;
}

ModelBuilder &ModelBuilder::crossEntropy(const std::string &logits, int64_t rows) {
  input("labels", {rows}, ::onnx::TensorProto::INT64);
  node("SoftmaxCrossEntropyLoss", {logits, "labels"}, {"loss"});
  return output("loss");
}

std::string ModelBuilder::save(const std::string &folder, const std::string &name) const {
  std::ofstream(folder + "/" + name, std::ios::binary) << bytes();
  return folder + "/" + name;
}

static ::onnx::AttributeProto &added(::onnx::NodeProto &node, const std::string &name,
                                     ::onnx::AttributeProto::AttributeType type) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return *attribute;
}
void attribute(::onnx::NodeProto &node, const std::string &name, int64_t value) {
  added(node, name, ::onnx::AttributeProto::INT).set_i(value);
}
void attribute(::onnx::NodeProto &node, const std::string &name, const std::string &value) {
  added(node, name, ::onnx::AttributeProto::STRING).set_s(value);
}
void attribute(::onnx::NodeProto &node, const std::string &name, float value) {
  added(node, name, ::onnx::AttributeProto::FLOAT).set_f(value);
}
void attribute(::onnx::NodeProto &node, const std::string &name, std::vector<int64_t> values) {
  auto &list = added(node, name, ::onnx::AttributeProto::INTS);
  for (int64_t value : values)
    list.add_ints(value);
}

std::string freshFolder() {
  std::string pattern = "/tmp/plimsoll-frontend-XXXXXX";
  return mkdtemp(pattern.data()) ? pattern : "/nonexistent";
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace plimsoll::test
