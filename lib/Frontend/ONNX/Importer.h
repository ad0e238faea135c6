// The importer's working state and the vocabulary that the lowering files (Lower*.cpp) are written in.
#pragma once

#include "lib/Frontend/ONNX/Attributes.h"
#include "lib/Frontend/ONNX/Import.h"

#include "dialects/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <set>

namespace plimsoll::onnx {

using Dims = llvm::SmallVector<int64_t>;

/// One ONNX value: a graph value, a constant on the host, a variable that is read on first use, or a sequence.
/// Poisoned: its producer has been reported already, so its users stay silent.
struct Imported {
  mlir::Value tensor;
  std::shared_ptr<const HostTensor> host;
  std::string variable;
  std::shared_ptr<const std::vector<Imported>> sequence;
  bool poisoned = false;
};

class Importer;

/// One node being lowered: access to its operands and ways to finish.
class Lowering {
public:
  Lowering(Importer &owner, const Node &lowered, mlir::ImplicitLocOpBuilder &builder)
      : importer(owner), node(lowered), b(builder) {}
  Importer &importer;
  const Node &node;
  mlir::ImplicitLocOpBuilder &b;

  size_t inputs() const { return node.inputs.size(); }
  bool has(size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
  bool wants(size_t i) const; ///< whether output i has a name
  const Imported &value(size_t i) const;
  const HostTensor *host(size_t i) const; ///< null when absent or not known
  std::vector<const HostTensor *> hosts() const;
  mlir::Value tensor(size_t i); ///< materialised; null for sequences and absent inputs
  Dims dims(size_t i) const;
  DType dtype(size_t i) const;
  bool isFloatInput(size_t i) const { return isFloat(dtype(i)); }
  /// Input i broadcast (numpy rules) to `shape`; host splats become splat constants of that shape.
  mlir::Value broadcast(size_t i, llvm::ArrayRef<int64_t> shape);

  /// Reports (and fails on) inputs that the operator cannot do without.
  mlir::LogicalResult checkOperands();
  mlir::LogicalResult done(mlir::Value value) { return done(0, value); }
  mlir::LogicalResult done(size_t output, mlir::Value value);
  mlir::LogicalResult doneHost(size_t output, HostTensor value);
  mlir::LogicalResult bad(const std::string &message);
  mlir::LogicalResult unsupported(const std::string &message, const std::string &advice = "");
};

using LowerFunction = mlir::LogicalResult (*)(Lowering &);
using LowerTable = std::map<std::string, LowerFunction>;
void addElementwise(LowerTable &table);
void addActivations(LowerTable &table);
void addShapeOps(LowerTable &table);
void addSequences(LowerTable &table);
void addIndexing(LowerTable &table);
void addReductions(LowerTable &table);
void addLinear(LowerTable &table);
void addConvolutions(LowerTable &table);
void addPooling(LowerTable &table);
void addNormalization(LowerTable &table);
void addLosses(LowerTable &table);
void addAttention(LowerTable &table);
void addResize(LowerTable &table);

/// Builds one module from one model.
class Importer {
public:
  Importer(mlir::MLIRContext &context, const Model &model, const ImportOptions &options, ImportResult &result);
  Status run();

  const Model &model;
  const ImportOptions &options;
  ImportResult &result;
  mlir::ImplicitLocOpBuilder b;
  std::map<std::string, Imported> values;
  /// Count that the mean behind a scalar value divides by, for values that are (scaled) mean losses.
  std::map<std::string, mlir::Value> lossWeights;

  const Imported *find(const std::string &name) const;
  mlir::Value materialize(const Imported &value);
  mlir::Value constant(const HostTensor &tensor);
  mlir::Value constantBroadcast(const HostTensor &tensor, llvm::ArrayRef<int64_t> shape);
  std::vector<int64_t> dimsOf(const Imported &value) const;
  DType dtypeOf(const Imported &value) const;
  /// The random seed variable, made on first use, and the next random op's number.
  mlir::Value seed();
  int64_t nextRandomId() { return ++randomOps; }
  /// Turns initializer `name` into a running statistic (model_state) and names its symbol; empty when it is not an
  /// initializer.
  std::string modelState(const std::string &name);
  /// Whether a gradient could flow from `value` to a trainable parameter.
  bool dependsOnParameter(mlir::Value value) const;
  void report(Severity severity, const std::string &code, const std::string &subject, const std::string &op,
              const std::string &message, const std::string &advice, ExitCode exit = ExitCode::Ok);

private:
  void classifyInitializers();
  void readAliases();
  bool isParameter(const TensorData &tensor) const;
  void declareVariable(const TensorData &tensor, graph::VariableKind kind, bool trainable);
  bool bindInputs();
  int64_t bindDim(const ValueInfo &input, size_t d, std::set<std::string> &used);
  void importNode(const Node &node);
  bool tryFold(const Node &node);
  void finishUses(const Node &node);
  void refuseMissingOutputs(Lowering &lowering);
  void buildResults();
  std::string pickLoss();
  mlir::Value addedLoss(mlir::Value &weight);
  void appendResult(const std::string &name, mlir::Value value, const char *role);
  void settleParameters();
  bool verifyModule();

  mlir::func::FuncOp function;
  LowerTable table;
  std::map<std::string, const TensorData *> initializers;
  std::map<std::string, size_t> remainingUses;
  std::map<std::string, mlir::Value> reads;
  std::map<std::string, graph::VariableOp> variables;
  std::vector<std::pair<std::string, std::string>> aliases; ///< parameter, other name
  std::set<std::string> bufferNames, settingNames, batchNormStats;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::DictionaryAttr> resultAttributes;
  mlir::Block *body = nullptr;
  int64_t randomOps = 0, namedConstants = 0;
};

/// Shorthand for lowerings.
mlir::Value constantLike(mlir::ImplicitLocOpBuilder &b, mlir::Value like, double value);
mlir::Value numpyBroadcast(mlir::ImplicitLocOpBuilder &b, mlir::Value value, llvm::ArrayRef<int64_t> shape);
llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);
mlir::Value sliceOf(mlir::ImplicitLocOpBuilder &b, mlir::Value value, llvm::ArrayRef<int64_t> starts,
                    llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);
mlir::Value selectOf(mlir::ImplicitLocOpBuilder &b, mlir::Value predicate, mlir::Value onTrue, mlir::Value onFalse);
mlir::Value dotOf(mlir::ImplicitLocOpBuilder &b, mlir::Value lhs, mlir::Value rhs, bool transLhs = false,
                  bool transRhs = false);
/// Sum over `dims` divided by their element count.
mlir::Value meanOf(mlir::ImplicitLocOpBuilder &b, mlir::Value value, llvm::ArrayRef<int64_t> dims);
/// value * factor + shift, with (C)-shaped operands spread along dimension `axis`.
mlir::Value alongAxis(mlir::ImplicitLocOpBuilder &b, mlir::Value vector, int64_t axis, llvm::ArrayRef<int64_t> shape);
int64_t productOf(llvm::ArrayRef<int64_t> dims);
/// Whether the exporter's optimizer made the initializer's name up: a folded, transposed or merged tensor.
bool isInventedName(const Model &model, const std::string &name);

} // namespace plimsoll::onnx
