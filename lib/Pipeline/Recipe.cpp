// Recipe files. Strict: a misspelt key must not silently train something else.
#include "lib/Pipeline/Recipe.h"

#include "plimsoll/Support/Units.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <cmath>
#include <filesystem>

using namespace plimsoll;

namespace {
/// Reads one table, remembering the first thing that was wrong and which keys were known.
class TableReader {
public:
  TableReader(const toml::table &source, std::string tableName) : table(source), name(std::move(tableName)) {}

  template <typename T> void read(std::string_view key, T &value) {
    known.emplace_back(key);
    const toml::node *node = table.get(key);
    if (!node || !error.empty())
      return;
    if (!convert(*node, value))
      error = place(*node) + "key '" + std::string(key) + "' in [" + name + "] has the wrong type or range; expected " +
              expectation(value);
  }

  /// The first wrong value, without a look at unknown keys.
  const std::string &firstError() const { return error; }

  /// The first error: a wrong value, or a key nobody asked for.
  std::string finish() {
    for (auto &&[key, node] : table)
      if (error.empty() && std::find(known.begin(), known.end(), key.str()) == known.end())
        error = place(node) + "unknown key '" + std::string(key.str()) + "' in [" + name + "]; known keys: " + joined();
    return error;
  }

private:
  static const char *expectation(const std::string &) { return "a string"; }
  static const char *expectation(bool) { return "true or false"; }
  static const char *expectation(int64_t) { return "an integer"; }
  static const char *expectation(double) { return "a number"; }
  static const char *expectation(const std::optional<uint64_t> &) { return "a size such as \"1.5GB\" or \"512MiB\""; }
  static const char *expectation(const std::vector<std::string> &) { return "a list of strings"; }
  static const char *expectation(const std::pair<double, double> &) { return "two numbers"; }
  static const char *expectation(const std::map<std::string, int64_t> &) { return "a table of integers"; }
  static const char *expectation(const std::map<std::string, double> &) {
    return "a table of numbers or sizes such as \"20GB/s\"";
  }

  static bool convert(const toml::node &node, std::string &value) {
    return assign(node.value_exact<std::string>(), value);
  }
  static bool convert(const toml::node &node, bool &value) { return assign(node.value_exact<bool>(), value); }
  static bool convert(const toml::node &node, int64_t &value) { return assign(node.value_exact<int64_t>(), value); }
  static bool convert(const toml::node &node, double &value) {
    return node.is_number() && assign(node.value<double>(), value);
  }
  static bool convert(const toml::node &node, std::optional<uint64_t> &value) {
    auto text = node.value<std::string>();
    value = text ? parseBytes(*text) : std::nullopt;
    return value.has_value();
  }
  static bool convert(const toml::node &node, std::vector<std::string> &value) {
    const toml::array *array = node.as_array();
    value.clear();
    for (size_t i = 0; array && i < array->size(); ++i) {
      auto text = array->get(i)->value_exact<std::string>();
      if (!text)
        return false;
      value.push_back(*text);
    }
    return array != nullptr;
  }
  static bool convert(const toml::node &node, std::pair<double, double> &value) {
    const toml::array *array = node.as_array();
    return array && array->size() == 2 && convert(*array->get(0), value.first) && convert(*array->get(1), value.second);
  }
  static bool convert(const toml::node &node, std::map<std::string, int64_t> &value) {
    const toml::table *entries = node.as_table();
    if (!entries)
      return false;
    for (auto &&[key, entry] : *entries)
      if (!convert(entry, value[std::string(key.str())]))
        return false;
    return true;
  }
  static bool convert(const toml::node &node, std::map<std::string, double> &value) {
    const toml::table *entries = node.as_table();
    if (!entries)
      return false;
    for (auto &&[key, entry] : *entries) {
      auto text = entry.value_exact<std::string>();
      std::optional<double> number = text ? parseProfileNumber(*text) : entry.value<double>();
      if (!number)
        return false;
      value[std::string(key.str())] = *number;
    }
    return true;
  }
  template <typename T> static bool assign(const std::optional<T> &found, T &value) {
    if (found)
      value = *found;
    return found.has_value();
  }

  static std::string place(const toml::node &node) { return "line " + std::to_string(node.source().begin.line) + ": "; }
  std::string joined() const {
    std::string text;
    for (const std::string &key : known)
      text += (text.empty() ? "" : ", ") + key;
    return text;
  }

  const toml::table &table;
  std::string name, error;
  std::vector<std::string> known;
};

/// Walks the recipe's tables in order, stopping at the first error.
class RecipeReader {
public:
  explicit RecipeReader(Recipe &target) : recipe(target) {}

  std::string read(const toml::table &root) {
    static const char *const tables[] = {"bind", "loss", "train", "optimizer", "precision", "memory", "machine"};
    for (auto &&[key, node] : root)
      if (key.str() != "model" && std::find(std::begin(tables), std::end(tables), key.str()) == std::end(tables))
        return "line " + std::to_string(node.source().begin.line) + ": unknown key '" + std::string(key.str()) +
               "'; known: model, [bind], [loss], [train], [optimizer], [precision], [memory], [machine]";
    TableReader top(root, "recipe");
    top.read("model", recipe.model);
    top.read("bind", recipe.bindings);
    top.read("machine", recipe.machine);
    std::string error = top.firstError();
    section(root, "loss", error, [&](TableReader &table) {
      table.read("kind", recipe.loss);
      table.read("output", recipe.lossOutput);
      table.read("name", recipe.lossName);
      table.read("ignore_index", recipe.ignoreIndex);
    });
    section(root, "train", error, [&](TableReader &table) {
      table.read("freeze", recipe.freeze);
      table.read("buffers", recipe.buffers);
      table.read("batch_norm", recipe.trainBatchNorm);
      table.read("clip_norm", recipe.optimizer.clipNorm);
      table.read("accumulation", recipe.optimizer.accumulation);
    });
    section(root, "optimizer", error, [&](TableReader &table) { readOptimizer(table); });
    section(root, "precision", error, [&](TableReader &table) { table.read("policy", recipe.precision); });
    section(root, "memory", error, [&](TableReader &table) {
      table.read("budget", recipe.budgetBytes);
      table.read("chunks", recipe.chunks);
    });
    return error;
  }

private:
  template <typename Body>
  static void section(const toml::table &root, const char *name, std::string &error, Body body) {
    const toml::node *node = root.get(name);
    if (!node || !error.empty())
      return;
    if (!node->is_table()) {
      error = "line " + std::to_string(node->source().begin.line) + ": '" + name +
              "' has the wrong type; expected a table [" + name + "]";
      return;
    }
    TableReader table(*node->as_table(), name);
    body(table);
    error = table.finish();
  }

  void readOptimizer(TableReader &table) {
    OptimizerRecipe &optimizer = recipe.optimizer;
    std::pair<double, double> betas{optimizer.beta1, optimizer.beta2};
    table.read("kind", optimizer.kind);
    table.read("momentum", optimizer.momentum);
    table.read("nesterov", optimizer.nesterov);
    table.read("betas", betas);
    table.read("eps", optimizer.epsilon);
    table.read("weight_decay", optimizer.weightDecay);
    table.read("no_decay", optimizer.noDecay);
    optimizer.beta1 = betas.first;
    optimizer.beta2 = betas.second;
  }

  Recipe &recipe;
};
} // namespace

Result<Recipe> plimsoll::readRecipe(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return badInput("recipe '" + path + "': " + buffer.getError().message());
  toml::parse_result parsed =
      toml::parse(std::string_view((*buffer)->getBufferStart(), (*buffer)->getBufferSize()), path);
  if (!parsed)
    return badInput("recipe '" + path + "': line " + std::to_string(parsed.error().source().begin.line) + ": " +
                    std::string(parsed.error().description()));
  Recipe recipe;
  if (std::string error = RecipeReader(recipe).read(parsed.table()); !error.empty())
    return badInput("recipe '" + path + "': " + error);
  if (!recipe.model.empty() && !std::filesystem::path(recipe.model).is_absolute())
    recipe.model = (std::filesystem::path(path).parent_path() / recipe.model).string();
  return recipe;
}

Status Recipe::check() const {
  auto usage = [](std::string text) { return Status(ExitCode::Usage, std::move(text)); };
  if (optimizer.kind != "sgd" && optimizer.kind != "adam" && optimizer.kind != "adamw")
    return usage("unknown optimizer '" + optimizer.kind + "'; expected sgd, adam or adamw");
  if (!loss.empty() && loss != "cross_entropy" && loss != "mse")
    return usage("unknown loss '" + loss + "'; expected cross_entropy or mse, or none to use the model's own");
  if (optimizer.accumulation < 1 || optimizer.accumulation > 1'000'000)
    return usage("accumulation is " + std::to_string(optimizer.accumulation) + ", expected 1 to 1,000,000");
  if (chunks < 1 || chunks > 65'536)
    return usage("chunks is " + std::to_string(chunks) + ", expected 1 to 65,536");
  if (!(optimizer.clipNorm >= 0))
    return usage("clip_norm must be positive, 0 for no clipping, or inf to measure only");
  if (optimizer.nesterov && !(optimizer.momentum > 0))
    return usage("nesterov needs a momentum above 0");
  auto inUnit = [](double beta) { return beta >= 0 && beta < 1; };
  if (!inUnit(optimizer.beta1) || !inUnit(optimizer.beta2) || !inUnit(optimizer.momentum))
    return usage("betas and momentum must lie in [0, 1)");
  if (!(optimizer.epsilon >= 0) || !std::isfinite(optimizer.weightDecay) || optimizer.weightDecay < 0)
    return usage("eps and weight_decay must not be negative");
  if (precision != "fp32")
    return Status(ExitCode::Unsupported,
                  "precision '" + precision + "' is not supported by this version; expected fp32");
  TargetProfile numbers;
  for (const auto &[key, value] : machine)
    if (Status status = setProfileNumber(numbers, key, value); !status)
      return status;
  for (const auto &[name, value] : bindings)
    if (value < 1)
      return usage("dimension '" + name + "' is bound to " + std::to_string(value) + ", expected at least 1");
  return Status::ok();
}

TargetProfile Recipe::profile() const {
  TargetProfile numbers = cpuProfile();
  for (const auto &[key, value] : machine)
    (void)setProfileNumber(numbers, key, value); // check() has refused what this would
  return numbers;
}

std::string Recipe::toJson() const {
  llvm::json::Object json{{"accumulation", optimizer.accumulation},
                          {"chunks", chunks},
                          {"precision", precision},
                          {"loss", loss.empty() ? "model" : loss}};
  llvm::json::Object update{{"kind", optimizer.kind}, {"weight_decay", optimizer.weightDecay}};
  if (optimizer.kind == "sgd") {
    update["momentum"] = optimizer.momentum;
    update["nesterov"] = optimizer.nesterov;
  } else {
    update["betas"] = llvm::json::Array{optimizer.beta1, optimizer.beta2};
    update["eps"] = optimizer.epsilon;
  }
  update["no_decay"] = llvm::json::Array(optimizer.noDecay);
  json["optimizer"] = std::move(update);
  json["freeze"] = llvm::json::Array(freeze);
  if (optimizer.clipNorm > 0 && std::isfinite(optimizer.clipNorm))
    json["clip_norm"] = optimizer.clipNorm;
  llvm::json::Object dims;
  for (const auto &[name, value] : bindings)
    dims[name] = value;
  json["bind"] = std::move(dims);
  if (!machine.empty()) {
    llvm::json::Object numbers;
    for (const auto &[key, value] : machine)
      numbers[key] = value;
    json["machine"] = std::move(numbers);
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(json));
  return text;
}
