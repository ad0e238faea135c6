// plimsoll-compile: a model and a recipe become a training binary, or a complete list of what stands in the way.
#include "lib/Pipeline/Pipeline.h"
#include "plimsoll/Support/Units.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <filesystem>
#include <iostream>

using namespace plimsoll;

namespace {
/// The command line before it is merged with the recipe.
struct CommandLine {
  std::string model, recipePath, output = "step.plim", phase = "artifact", budget, cpu = "native", staging, problems;
  std::vector<std::string> bindings, machine;
  bool lint = false, json = false, quiet = false;
  unsigned threads = 0;
};
} // namespace

static int fail(const Status &status, const CommandLine &line) {
  if (line.json)
    std::cout << "{\"exit_code\": " << static_cast<int>(status.code()) << "}\n";
  std::cerr << "plimsoll-compile: " << status.message() << "\n";
  return static_cast<int>(status.code());
}

static void addFlags(CLI::App &app, CommandLine &line, Recipe &recipe) {
  OptimizerRecipe &optimizer = recipe.optimizer;
  app.add_option("model", line.model, "ONNX model (a faithful training export: dynamo=True, optimize=False)");
  app.add_option("--recipe", line.recipePath, "recipe file (TOML); flags override it");
  app.add_option("-o,--output", line.output, "artifact to write; the weights go beside it");
  app.add_option("--bind", line.bindings, "bind a symbolic dimension, name=size (repeatable)");
  app.add_option("--loss", recipe.loss, "add a loss: cross_entropy or mse; default: the model's own scalar output");
  app.add_option("--loss-output", recipe.lossOutput, "model output the added loss applies to");
  app.add_option("--loss-name", recipe.lossName, "which scalar output is the loss");
  app.add_option("--freeze", recipe.freeze, "glob pattern of parameters not to train (repeatable)");
  app.add_option("--buffers", recipe.buffers,
                 "glob pattern of float initializers that are not parameters (repeatable)");
  app.add_flag("!--eval-batch-norm", recipe.trainBatchNorm,
               "normalise with running statistics, as frozen BatchNorm does");
  app.add_option("--optimizer", optimizer.kind, "sgd, adam or adamw");
  app.add_option("--momentum", optimizer.momentum, "sgd momentum");
  app.add_flag("--nesterov", optimizer.nesterov, "sgd with Nesterov momentum");
  app.add_option("--beta1", optimizer.beta1, "adam first-moment decay");
  app.add_option("--beta2", optimizer.beta2, "adam second-moment decay");
  app.add_option("--eps", optimizer.epsilon, "adam epsilon");
  app.add_option("--weight-decay", optimizer.weightDecay, "weight decay");
  app.add_option("--no-decay", optimizer.noDecay, "glob pattern of parameters without weight decay (repeatable)");
  app.add_option("--clip-norm", optimizer.clipNorm, "clip gradients by global norm; inf measures only");
  app.add_option("--accumulation", optimizer.accumulation, "micro-batches per update");
  app.add_flag("--gradients-entry", optimizer.gradientsEntry, "add an entry whose outputs are the gradients");
  app.add_option("--precision", recipe.precision, "fp32");
  app.add_option("--budget", line.budget, "arena budget, e.g. 1.5GB");
  app.add_option(
      "--chunks", recipe.chunks,
      "pieces of the tokens in which a loss over a vocabulary is computed, so that its logits never exist in "
      "full; part of the arithmetic: sums over tokens are rounded in another order");
  app.add_option("--cpu", line.cpu, "native, x86-64-v3 or x86-64-v4");
  app.add_option("--threads", line.threads, "threads the artifact runs with (0: one per processor here)");
  app.add_option("--staging", line.staging, "bytes of the data files the runner may keep resident, e.g. 4MiB");
  app.add_option("--compile-to", line.phase,
                 "stop after imported, bound, precise, differentiated, fused, planned or plan and print the IR");
  app.add_option("--machine", line.machine,
                 "a number of the cost model, e.g. disk_read_bandwidth=1GB/s or dot_flops=19.5e12 (repeatable)");
  app.add_option("--emit-problem", line.problems,
                 "write what the planner is asked, one FOLDER/<entry>.problem an entry, and stop");
  app.add_flag("--lint", line.lint, "report everything that hinders training, and stop");
  app.add_flag("--json", line.json, "machine-readable output");
  app.add_flag("-q,--quiet", line.quiet, "no summary");
  app.set_version_flag("--version", "plimsoll-compile 0.1.0");
}

// name=size pairs on top of the recipe's.
static Status mergeBindings(const CommandLine &line, Recipe &recipe) {
  for (const std::string &binding : line.bindings) {
    size_t equals = binding.rfind('=');
    char *end = nullptr;
    long long value = equals == std::string::npos ? 0 : std::strtoll(binding.c_str() + equals + 1, &end, 10);
    if (equals == std::string::npos || equals == 0 || *end != '\0' || end == binding.c_str() + equals + 1)
      return {ExitCode::Usage, "--bind '" + binding + "' is not name=size"};
    recipe.bindings[binding.substr(0, equals)] = value;
  }
  return Status::ok();
}

// key=number pairs on top of the recipe's.
static Status mergeMachine(const CommandLine &line, Recipe &recipe) {
  for (const std::string &setting : line.machine) {
    size_t equals = setting.find('=');
    std::optional<double> value =
        equals == std::string::npos ? std::nullopt : parseProfileNumber(llvm::StringRef(setting).substr(equals + 1));
    if (!value)
      return {ExitCode::Usage, "--machine '" + setting + "' is not key=number, such as disk_read_bandwidth=1GB/s"};
    recipe.machine[setting.substr(0, equals)] = *value;
  }
  return Status::ok();
}

static Status parseSizes(const CommandLine &line, CompileOptions &options) {
  if (!line.budget.empty()) {
    options.recipe.budgetBytes = parseBytes(line.budget);
    if (!options.recipe.budgetBytes)
      return {ExitCode::Usage, "--budget '" + line.budget + "' is not a size such as 1.5GB or 512MiB"};
  }
  if (!line.staging.empty()) {
    std::optional<uint64_t> staging = parseBytes(line.staging);
    if (!staging)
      return {ExitCode::Usage, "--staging '" + line.staging + "' is not a size such as 4MiB"};
    options.stagingBytes = *staging;
  }
  return Status::ok();
}

static int lint(const CompileOptions &options, const CommandLine &line) {
  mlir::MLIRContext context;
  onnx::ImportReport report;
  Status status = onnx::lintModel(context, importOptions(options.recipe), report);
  std::cout << (line.json ? report.toJson() : report.toText()) << std::flush;
  if (!line.json && report.findings.empty())
    std::cout << "no findings: the model is ready to train\n";
  return static_cast<int>(status.code());
}

static int run(const CompileOptions &options, const CommandLine &line) {
  CompileReport report;
  Status status = compile(options, report, llvm::outs(), llvm::errs());
  llvm::outs().flush();
  if (!line.quiet)
    std::cerr << report.import.toText();
  if (!status)
    return fail(status, line);
  if (options.stopAfter == Phase::Artifact && options.problemFolder.empty() && !line.quiet)
    std::cout << report.summary << "wrote " << options.outputPath << "\n";
  return 0;
}

/// The path given by --recipe PATH or --recipe=PATH, or nothing.
static std::string recipeArgument(int argc, char **argv) {
  static const std::string option = "--recipe";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == option && i + 1 < argc)
      return argv[i + 1];
    if (word.compare(0, option.size() + 1, option + "=") == 0)
      return word.substr(option.size() + 1);
  }
  return "";
}

/// The command line for the provenance, without what does not shape the artifact (where it goes, how much is printed)
/// and without the folders of its inputs: the same input gives the same bytes wherever it lies.
static std::string provenanceFlags(int argc, char **argv, const CommandLine &line) {
  auto startsWith = [](const std::string &word, const char *start) { return word.rfind(start, 0) == 0; };
  std::string text;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "-o" || word == "--output") {
      ++i;
      continue;
    }
    if (startsWith(word, "-o") || startsWith(word, "--output=") || word == "-q" || word == "--quiet" ||
        word == "--json")
      continue;
    if (startsWith(word, "--recipe="))
      word = "--recipe=" + std::filesystem::path(line.recipePath).filename().string();
    if (word == line.model || word == line.recipePath)
      word = std::filesystem::path(word).filename().string();
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

int main(int argc, char **argv) {
  CLI::App app{"Compiles a model's training step ahead of time. Exit codes: 0 ok, 1 internal, 2 usage, 3 bad input, 4 "
               "unsupported, 5 does not fit."};
  CommandLine line;
  CompileOptions options;
  std::signal(SIGXFSZ, SIG_IGN); // a file-size limit is an error of the write, like a full disk
  // The recipe is read first so that flags override it: flags are parsed into the recipe it fills.
  if (std::string path = recipeArgument(argc, argv); !path.empty()) {
    Result<Recipe> recipe = readRecipe(path);
    if (!recipe)
      return fail(recipe.status(), line);
    options.recipe = *recipe;
  }
  addFlags(app, line, options.recipe);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(ExitCode::Usage);
  }
  if (!line.model.empty())
    options.recipe.model = line.model;
  if (options.recipe.model.empty())
    return fail({ExitCode::Usage, "no model given; pass MODEL.onnx or a recipe with a model key"}, line);
  if (Status status = mergeBindings(line, options.recipe); !status)
    return fail(status, line);
  if (Status status = mergeMachine(line, options.recipe); !status)
    return fail(status, line);
  if (Status status = parseSizes(line, options); !status)
    return fail(status, line);
  std::optional<Phase> phase = parsePhase(line.phase);
  if (!phase)
    return fail({ExitCode::Usage, "unknown phase '" + line.phase + "' for --compile-to"}, line);
  options.stopAfter = *phase;
  options.outputPath = line.output;
  options.problemFolder = line.problems;
  options.cpu = line.cpu;
  options.threads = line.threads;
  options.flags = provenanceFlags(argc, argv, line);
  return line.lint ? lint(options, line) : run(options, line);
}
