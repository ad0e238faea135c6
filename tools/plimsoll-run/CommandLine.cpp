// Declares the options of every sub-command with CLI11 and checks what CLI11 cannot.
#include "tools/plimsoll-run/CommandLine.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

/// Texts as typed, before they are parsed into a CommandLine.
struct RawOptions {
  std::vector<std::string> data;
  std::vector<std::string> evalData;
  std::string promptTokens;
  uint64_t seed = 0;
  bool noShuffle = false;
  CLI::Option *seedOption = nullptr;
  CLI::Option *resumeOption = nullptr;
};

constexpr const char *dataHelp = "source of an input port: PORT=KIND(PATH,OPTION=VALUE...); kinds: tokens(F,u16|u32,"
                                 "shift=N,stride=N,vocab=N), npy(F,scale=X,offset=X), idx(F,scale=X), "
                                 "safetensors(F,key=NAME), constant(X). Give one for every port";

void addCommon(CLI::App *app, CommandLine &line) {
  app->add_option("artifact", line.artifact, "the compiled step (step.plim)")->required();
  app->add_option("--threads", line.session.threads, "worker threads; 0 = as the artifact was compiled for");
  app->add_option("--init", line.session.weightsPath, "the artifact's initial weights, when not beside it");
  app->add_flag("--reference", line.session.referenceKernels,
                "run library calls by the naive reference kernels (slow)");
  app->add_flag("--json", line.json, "print the result as JSON on stdout");
}

void addData(CLI::App *app, RawOptions &raw) { app->add_option("--data", raw.data, dataHelp)->expected(1)->take_all(); }

void addWeights(CLI::App *app, std::string &weights) {
  app->add_option("--weights", weights, "checkpoint or exported weights laid over the initial ones");
}

void addSchedule(CLI::App *app, Schedule &schedule) {
  static const std::map<std::string, ScheduleKind> kinds = {
      {"constant", ScheduleKind::Constant}, {"linear", ScheduleKind::Linear}, {"cosine", ScheduleKind::Cosine}};
  app->add_option("--lr", schedule.peak, "learning rate (the highest one)")->capture_default_str();
  app->add_option("--schedule", schedule.kind, "constant, linear or cosine")->transform(CLI::CheckedTransformer(kinds));
  app->add_option("--warmup", schedule.warmupSteps, "steps of linear warm-up");
  app->add_option("--min-lr", schedule.minimum, "rate at the end of the decay");
  app->add_option("--decay-steps", schedule.decaySteps, "step at which --min-lr is reached; default: --steps");
}

void addTrain(CLI::App &root, CommandLine &line, RawOptions &raw) {
  static const std::map<std::string, NanPolicy> policies = {{"stop", NanPolicy::Stop},
                                                            {"skip-report", NanPolicy::SkipReport}};
  CLI::App *app = root.add_subcommand("train", "train for a number of steps");
  TrainOptions &train = line.train;
  addCommon(app, line);
  addData(app, raw);
  addWeights(app, train.weights);
  app->add_option("--steps", train.steps, "optimizer steps of the whole run, resumed ones included")->required();
  addSchedule(app, train.schedule);
  raw.seedOption = app->add_option("--seed", raw.seed, "seed of shuffling and dropout; default 0");
  app->add_flag("--no-shuffle", raw.noShuffle, "take the samples in file order");
  app->add_option("--out", train.out, "run folder for metrics.jsonl and checkpoints");
  app->add_flag("--overwrite", train.overwrite, "replace an earlier run in --out");
  app->add_option("--metrics", train.metricsPath,
                  "metrics file; default: OUT/metrics.jsonl, or STEP.metrics.jsonl here");
  app->add_option("--checkpoint-every", train.checkpointEvery, "steps between checkpoints; 0 = only at the end");
  app->add_option("--keep", train.keep, "checkpoints to keep; 0 = all")->capture_default_str();
  raw.resumeOption =
      app->add_option("--resume", train.resume, "continue: latest (of --out), or a checkpoint")->expected(0, 1);
  app->add_option("--log-every", train.logEvery, "steps between metrics lines")->capture_default_str();
  app->add_option("--eval-data", raw.evalData, "like --data, for evaluation")->expected(1)->take_all();
  app->add_option("--eval-every", train.evalEvery, "steps between evaluations; 0 = only at the end");
  app->add_option("--eval-batches", train.evalBatches, "batches of an evaluation; 0 = all");
  app->add_option("--on-nan", train.onNan,
                  "a NaN or infinite loss: stop (default), or skip-report; exit code 7 either way")
      ->transform(CLI::CheckedTransformer(policies));
  app->add_option("--export-weights", train.exportWeights, "write parameters and buffers (safetensors) at the end");
  app->add_flag("--verify", line.verify, "first compare two steps with the reference kernels");
}

void addEval(CLI::App &root, CommandLine &line, RawOptions &raw) {
  CLI::App *app = root.add_subcommand("eval", "mean loss over data, without training");
  addCommon(app, line);
  addData(app, raw);
  addWeights(app, line.weights);
  app->add_option("--batches", line.evalBatches, "batches to take; 0 = all whole ones");
}

void addForward(CLI::App &root, CommandLine &line, RawOptions &raw) {
  CLI::App *app = root.add_subcommand("forward", "run the model and write its outputs");
  addCommon(app, line);
  addData(app, raw);
  addWeights(app, line.weights);
  app->add_option("--output", line.forward.output, "file to write: .npy (one output) or safetensors")->required();
  app->add_option("--port", line.forward.port, "write only this output");
  app->add_option("--entry", line.forward.entry, "entry to run")->capture_default_str();
  app->add_option("--batches", line.forward.batches, "batches to run")->capture_default_str();
}

void addGenerate(CLI::App &root, CommandLine &line, RawOptions &raw) {
  CLI::App *app = root.add_subcommand("generate", "generate text with a language model");
  GenerateOptions &generate = line.generate;
  addCommon(app, line);
  addData(app, raw);
  addWeights(app, line.weights);
  app->add_option("--vocab", line.vocabularyPath,
                  "JSON: {\"a\": 0, ...} or [\"a\", ...]; without it tokens are printed");
  app->add_option("--prompt", line.promptText, "text to go on from (needs --vocab)");
  app->add_option("--prompt-tokens", raw.promptTokens, "tokens to go on from, separated by commas");
  app->add_option("--tokens", generate.tokens, "tokens to make")->capture_default_str();
  app->add_option("--temperature", generate.temperature, "0 = always the most likely")->capture_default_str();
  app->add_option("--top-k", generate.topK, "sample among the k most likely; 0 = all");
  app->add_option("--seed", generate.seed, "seed of the sampling")->capture_default_str();
  app->add_option("--entry", generate.entry, "entry to run")->capture_default_str();
  app->add_option("--ids-port", generate.idsPort, "input that takes the tokens");
  app->add_option("--logits-port", generate.logitsPort, "output that holds the logits");
}

Status usage(std::string text) { return {ExitCode::Usage, std::move(text)}; }

Status finishTrain(CommandLine &line, const RawOptions &raw) {
  TrainOptions &train = line.train;
  auto specs = parseDataSpecs(raw.data), evalSpecs = parseDataSpecs(raw.evalData);
  if (!specs)
    return specs.status();
  if (!evalSpecs)
    return evalSpecs.status();
  train.data = std::move(*specs);
  train.evalData = std::move(*evalSpecs);
  train.shuffle = !raw.noShuffle;
  if (raw.seedOption->count() > 0)
    train.seed = raw.seed;
  if (raw.resumeOption->count() > 0 && train.resume.empty())
    train.resume = "latest";
  if (train.schedule.decaySteps == 0)
    train.schedule.decaySteps = train.steps;
  if (train.metricsPath.empty() && train.out.empty())
    train.metricsPath = std::filesystem::path(line.artifact).stem().string() + ".metrics.jsonl";
  if (train.steps == 0)
    return usage("--steps 0, expected at least 1");
  if (train.logEvery == 0)
    return usage("--log-every 0, expected at least 1");
  if (!(train.schedule.peak >= 0) || !std::isfinite(train.schedule.peak))
    return usage(fmt::format("--lr {}, expected a finite number >= 0", train.schedule.peak));
  if (train.checkpointEvery && train.out.empty())
    return usage("--checkpoint-every needs --out, the folder to write to");
  if (train.resume == "latest" && train.out.empty())
    return usage("--resume latest needs --out, the folder of the run to continue");
  if (train.evalEvery && train.evalData.empty())
    return usage("--eval-every needs --eval-data");
  return Status::ok();
}

Status finishGenerate(CommandLine &line, const RawOptions &raw) {
  if (!line.promptText.empty() && line.vocabularyPath.empty())
    return usage("--prompt needs --vocab; without a vocabulary give --prompt-tokens");
  if (line.promptText.empty() == raw.promptTokens.empty())
    return usage("give either --prompt or --prompt-tokens");
  if (!(line.generate.temperature >= 0) || !std::isfinite(line.generate.temperature))
    return usage(fmt::format("--temperature {}, expected a finite number >= 0", line.generate.temperature));
  for (const std::string &part : CLI::detail::split(raw.promptTokens, ',')) {
    if (raw.promptTokens.empty())
      break;
    int64_t token = 0;
    if (!CLI::detail::lexical_cast(part, token) || token < 0)
      return usage(fmt::format("--prompt-tokens: '{}' is not a token number", part));
    line.generate.prompt.push_back(token);
  }
  return Status::ok();
}

Status finish(const CLI::App &app, CommandLine &line, const RawOptions &raw) {
  const std::string name = app.get_subcommands().at(0)->get_name();
  if (name == "train") {
    line.command = Command::Train;
    return finishTrain(line, raw);
  }
  auto specs = parseDataSpecs(raw.data);
  if (!specs)
    return specs.status();
  line.data = line.forward.data = line.generate.data = std::move(*specs);
  line.command = name == "eval" ? Command::Eval : name == "forward" ? Command::Forward : Command::Generate;
  if (line.command == Command::Forward && line.forward.batches == 0)
    return usage("--batches 0, expected at least 1");
  return line.command == Command::Generate ? finishGenerate(line, raw) : Status::ok();
}

} // namespace

std::optional<CommandLine> parseCommandLine(int argc, char **argv, int &exitCode) {
  CommandLine line;
  RawOptions raw;
  CLI::App app("plimsoll-run: trains, evaluates and runs a compiled training step (step.plim)");
  app.set_version_flag("--version", std::string("plimsoll-run ") + PLIMSOLL_VERSION);
  app.require_subcommand(1);
  app.footer("exit codes: 0 ok, 1 internal, 2 usage, 3 bad input, 4 unsupported, 5 does not fit this machine,\n"
             "            6 more memory than promised, 7 NaN or infinite loss, 8 version mismatch\n"
             "example:    plimsoll-run train step.plim --data 'ids=tokens(train.bin,u16)' \\\n"
             "              --data 'labels=tokens(train.bin,u16,shift=1)' --steps 300 --lr 1e-3 --out run1");
  addTrain(app, line, raw);
  addEval(app, line, raw);
  addForward(app, line, raw);
  addGenerate(app, line, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    exitCode = app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::Usage);
    return std::nullopt;
  }
  Status status = finish(app, line, raw);
  if (status)
    return line;
  fprintf(stderr, "plimsoll-run: %s\n", status.message().c_str());
  exitCode = static_cast<int>(status.code());
  return std::nullopt;
}

} // namespace plimsoll::runtime
