// plimsoll-run: opens an artifact, runs the command, prints the result and turns its Status into the exit code.
#include "runtime/Tracking/MemoryUse.h"
#include "tools/plimsoll-run/CommandLine.h"
#include "tools/plimsoll-run/RunState.h"
#include "tools/plimsoll-run/StopSignal.h"
#include "tools/plimsoll-run/Verify.h"
#include "tools/plimsoll-run/Vocabulary.h"

#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

using namespace plimsoll;
using namespace plimsoll::runtime;

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json memoryJson(const MemoryAccount &memory) {
  Json json;
  json["promised_training_bytes"] = memory.promisedTraining;
  json["measured_training_bytes"] = memory.measuredTraining();
  json["arena_bytes"] = memory.arenaBytes;
  json["touched_arena_bytes"] = memory.touchedBytes;
  json["runtime_bytes"] = memory.runtimeBytes;
  json["staging_bytes"] = memory.stagingBytes;
  json["promised_process_bytes"] = memory.promisedProcess;
  json["measured_process_bytes"] = memory.measuredProcess;
  return json;
}

Json trainJson(const TrainReport &report) {
  Json json;
  json["steps"] = report.steps;
  json["loss"] = number(report.loss);
  if (report.firstLoss)
    json["first_loss"] = number(*report.firstLoss);
  if (report.evalLoss)
    json["eval_loss"] = number(*report.evalLoss);
  json["skipped_steps"] = report.skippedSteps;
  json["nonfinite_steps"] = report.nonFiniteSteps;
  json["interrupted"] = report.interrupted;
  json["checkpoint"] = report.checkpoint;
  json["seconds"] = report.seconds;
  json["memory"] = memoryJson(report.memory);
  return json;
}

void printTrain(const TrainReport &report) {
  printf("%s at step %lu after %s: loss %.6g\n", report.interrupted ? "stopped" : "finished",
         static_cast<unsigned long>(report.steps), durationText(report.seconds).c_str(), report.loss);
  if (report.evalLoss)
    printf("eval loss %.6g\n", *report.evalLoss);
  if (report.skippedSteps)
    printf("%lu steps made no update\n", static_cast<unsigned long>(report.skippedSteps));
  if (!report.checkpoint.empty())
    printf("checkpoint %s\n", report.checkpoint.c_str());
  if (report.memory.promisedTraining)
    printf("%s", memoryText(report.memory).c_str());
}

/// Runs the comparison in a child process, so that its memory does not count in this one.
Status verifyInChild(const CommandLine &line) {
  fflush(nullptr);
  pid_t child = fork();
  if (child < 0)
    return internalError("cannot start the verification process");
  if (child == 0) {
    std::string text;
    auto open = [&](bool reference) {
      SessionOptions options = line.session;
      options.referenceKernels = reference;
      return Session::open(line.artifact, options);
    };
    Status status = verifyAgainstReference(open, line.train, 2, text);
    fprintf(stderr, "%s", text.c_str());
    if (!status)
      fprintf(stderr, "plimsoll-run: verify: %s\n", status.message().c_str());
    fflush(nullptr);
    _exit(static_cast<int>(status.code()));
  }
  int result = 0;
  while (waitpid(child, &result, 0) < 0 && errno == EINTR) {
  }
  int code = WIFEXITED(result) ? WEXITSTATUS(result) : static_cast<int>(ExitCode::Internal);
  return code == 0 ? Status::ok() : Status(static_cast<ExitCode>(code), "the verification failed, nothing was trained");
}

Status runTrain(Session &session, const CommandLine &line, Json &json) {
  TrainReport report;
  Status status = train(session, line.train, report);
  json = trainJson(report);
  if (!line.json && report.steps > 0)
    printTrain(report);
  return status;
}

Status runEval(Session &session, const CommandLine &line, Json &json) {
  Result<EntryPorts> entry = EntryPorts::bind(session, "eval_step");
  if (!entry)
    return entry.status();
  auto feed = openFeed(session, line.data, entry->dataPorts(), 0, false);
  if (!feed)
    return feed.status();
  if (Status status = initializeState(session, line.weights); !status)
    return status;
  Result<Evaluation> result = evaluate(session, *entry, *feed, line.evalBatches);
  if (!result)
    return result.status();
  MemoryAccount memory = accountMemory(session, feed->stagingBytes(), processPeakBytes());
  json["loss"] = number(result->loss);
  json["batches"] = result->batches;
  json["samples"] = result->samples;
  json["samples_in_data"] = feed->samples();
  json["memory"] = memoryJson(memory);
  if (!line.json)
    printf("eval loss %.9g over %lu batches (%lu of %lu samples)\n%s", result->loss,
           static_cast<unsigned long>(result->batches), static_cast<unsigned long>(result->samples),
           static_cast<unsigned long>(feed->samples()), memoryText(memory).c_str());
  if (!std::isfinite(result->loss))
    return {ExitCode::NumericStop, "the evaluation loss is NaN or infinite; the weights or the data are not usable"};
  return checkMemory(memory);
}

Status runForward(Session &session, const CommandLine &line, Json &json) {
  if (Status status = initializeState(session, line.weights); !status)
    return status;
  std::vector<std::string> names;
  if (Status status = forward(session, line.forward, names); !status)
    return status;
  json["output"] = line.forward.output;
  json["tensors"] = names;
  if (!line.json)
    printf("wrote %s: %s\n", line.forward.output.c_str(), fmt::format("{}", fmt::join(names, ", ")).c_str());
  return Status::ok();
}

Status runGenerate(Session &session, const CommandLine &line, Json &json) {
  GenerateOptions options = line.generate;
  std::optional<Vocabulary> vocabulary;
  if (!line.vocabularyPath.empty()) {
    Result<Vocabulary> read = Vocabulary::read(line.vocabularyPath);
    if (!read)
      return read.status();
    vocabulary.emplace(std::move(*read));
  }
  if (!line.promptText.empty()) {
    Result<std::vector<int64_t>> prompt = vocabulary->encode(line.promptText);
    if (!prompt)
      return prompt.status();
    options.prompt = std::move(*prompt);
  }
  if (Status status = initializeState(session, line.weights); !status)
    return status;
  std::string text = line.promptText;
  std::vector<int64_t> tokens;
  if (!line.json)
    printf("%s", text.c_str());
  Status status = generate(session, options, [&](int64_t token) {
    std::string piece = vocabulary ? vocabulary->decode(token) : fmt::format("{}{}", tokens.empty() ? "" : ",", token);
    tokens.push_back(token);
    text += piece;
    if (!line.json) {
      fwrite(piece.data(), 1, piece.size(), stdout);
      fflush(stdout);
    }
  });
  if (!line.json)
    printf("\n");
  json["tokens"] = tokens;
  if (vocabulary)
    json["text"] = text;
  return status;
}

Status runCommand(const CommandLine &line, Json &json) {
  if (line.verify)
    if (Status status = verifyInChild(line); !status)
      return status;
  Result<std::unique_ptr<Session>> session = Session::open(line.artifact, line.session);
  if (!session)
    return session.status();
  switch (line.command) {
  case Command::Train:
    return runTrain(**session, line, json);
  case Command::Eval:
    return runEval(**session, line, json);
  case Command::Forward:
    return runForward(**session, line, json);
  case Command::Generate:
    return runGenerate(**session, line, json);
  }
  return internalError("unknown command");
}

} // namespace

int main(int argc, char **argv) {
  int exitCode = 0;
  std::optional<CommandLine> line = parseCommandLine(argc, argv, exitCode);
  if (!line)
    return exitCode;
  installStopSignals();
  Json json = Json::object();
  Status status = runCommand(*line, json);
  if (!status)
    fprintf(stderr, "plimsoll-run: %s\n", status.message().c_str());
  if (line->json) {
    json["exit_code"] = static_cast<int>(status.code());
    if (!status)
      json["error"] = status.message();
    printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return static_cast<int>(status.code());
}
