// evaluate-onnx: imports a model, optionally recognises patterns and differentiates, evaluates @forward on the
// reference evaluator and writes every result (and updated state, as "state.<name>") to a safetensors file. Test
// scripts compare it with PyTorch and ONNX.
#include "lib/Passes/Passes.h"
#include "test/unit/Frontend/EvaluateModel.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;
using namespace plimsoll;
namespace cl = llvm::cl;

static cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("model.onnx"));
static cl::opt<std::string> inputFile(cl::Positional, cl::Required, cl::desc("inputs.safetensors"));
static cl::opt<std::string> outputFile(cl::Positional, cl::Required, cl::desc("outputs.safetensors"));
static cl::opt<std::string> passes("passes", cl::desc("pipeline to run before evaluation"));
static cl::opt<std::string> loss("loss");
static cl::list<std::string> binds("bind");
static cl::opt<bool> noLoss("no-loss"), evalBatchNorm("eval-batchnorm"), printIR("print"), exactDouble("exact-double");

static artifact::DType artifactType(Type element) {
  if (isa<FloatType>(element))
    return element.isF64()    ? artifact::DType::F64
           : element.isF16()  ? artifact::DType::F16
           : element.isBF16() ? artifact::DType::BF16
                              : artifact::DType::F32;
  switch (element.getIntOrFloatBitWidth()) {
  case 1:
    return artifact::DType::Bool;
  case 8:
    return element.isUnsignedInteger() ? artifact::DType::U8 : artifact::DType::I8;
  case 16:
    return artifact::DType::I16;
  case 32:
    return artifact::DType::I32;
  default:
    return artifact::DType::I64;
  }
}

static Status run() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  onnx::ImportOptions options;
  options.modelPath = model;
  options.loss = loss;
  options.requireLoss = !noLoss;
  options.trainBatchNorm = !evalBatchNorm;
  for (const std::string &bind : binds)
    options.bindings[bind.substr(0, bind.find('='))] = std::atoll(bind.c_str() + bind.find('=') + 1);
  onnx::ImportResult imported;
  Status status = onnx::importModel(context, options, imported);
  llvm::errs() << imported.report.toText();
  if (!status)
    return status;
  if (!passes.empty()) {
    PassManager manager(&context);
    if (failed(parsePassPipeline(passes, manager)) || failed(manager.run(*imported.module)))
      return internalError("a pass failed");
  }
  if (printIR)
    imported.module->print(llvm::errs(), OpPrintingFlags().elideLargeElementsAttrs(16));
  Result<runtime::SafeTensors> inputs = runtime::SafeTensors::open(inputFile);
  if (!inputs)
    return inputs.status();
  func::FuncOp forward = test::forwardOf(imported);
  Result<std::vector<reference::HostTensor>> arguments = test::argumentsOf(forward, *inputs, "");
  if (!arguments)
    return arguments.status();
  reference::VariableState state = test::stateOf(imported);
  reference::EvaluateOptions how;
  how.exactDouble = exactDouble;
  FailureOr<std::vector<reference::HostTensor>> results = reference::evaluate(forward, *arguments, state, how);
  if (failed(results))
    return internalError("evaluation failed");
  std::vector<std::vector<char>> bytes;
  std::vector<std::pair<std::string, reference::HostTensor *>> named;
  for (auto [i, result] : llvm::enumerate(*results))
    named.emplace_back(test::resultName(forward, static_cast<unsigned>(i)), &result);
  for (auto variable : imported.module->getOps<graph::VariableOp>())
    if (variable.getKind() == graph::VariableKind::ModelState)
      named.emplace_back("state." + variable.getSymName().str(), &state[variable.getSymName().str()]);
  std::vector<runtime::NamedTensor> tensors;
  for (auto &[name, tensor] : named)
    bytes.push_back(reference::toBytes(*tensor));
  for (size_t i = 0; i < named.size(); ++i)
    tensors.push_back({named[i].first, artifactType(named[i].second->type.getElementType()),
                       named[i].second->shape().vec(), std::as_bytes(std::span(bytes[i].data(), bytes[i].size()))});
  return runtime::writeSafeTensors(outputFile, tensors);
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  registerPlimsollPasses();
  registerTransformsPasses();
  Status status = run();
  if (!status)
    llvm::errs() << status.message() << "\n";
  return static_cast<int>(status.code());
}
