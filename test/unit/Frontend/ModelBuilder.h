// Builds small ONNX models in memory, well-formed or not, for tests of the importer.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace plimsoll::test {

class ModelBuilder {
public:
  explicit ModelBuilder(int64_t opset = 20, const std::string &producer = "pytorch");
  ::onnx::ModelProto proto;

  /// A graph input; negative sizes are symbols named "d<position>".
  ModelBuilder &input(const std::string &name, std::vector<int64_t> dims, int type = ::onnx::TensorProto::FLOAT);
  ModelBuilder &output(const std::string &name, int type = ::onnx::TensorProto::FLOAT);
  ::onnx::TensorProto &floats(const std::string &name, std::vector<int64_t> dims, float value = 0.5f);
  ::onnx::TensorProto &ints(const std::string &name, std::vector<int64_t> values, bool scalar = false);
  ::onnx::NodeProto &node(const std::string &op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                          const std::string &name = "");
  /// Mean cross-entropy of `logits` (N, C) against a new input "labels" (N), as output "loss".
  ModelBuilder &crossEntropy(const std::string &logits, int64_t rows);
  std::string bytes() const { return proto.SerializeAsString(); }
  /// Writes the model and returns its path.
  std::string save(const std::string &folder, const std::string &name = "model.onnx") const;
};

void attribute(::onnx::NodeProto &node, const std::string &name, int64_t value);
void attribute(::onnx::NodeProto &node, const std::string &name, const std::string &value);
void attribute(::onnx::NodeProto &node, const std::string &name, std::vector<int64_t> values);
void attribute(::onnx::NodeProto &node, const std::string &name, float value);
/// A fresh folder below the system's temporary one.
std::string freshFolder();
/// The whole file.
std::string readFile(const std::string &path);

} // namespace plimsoll::test
