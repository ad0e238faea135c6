// plimsoll-inspect: explains where an artifact's memory goes, from the artifact file alone.
#include "runtime/Artifact/Reader.h"
#include "tools/plimsoll-inspect/Reports.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>

using namespace plimsoll;
using namespace plimsoll::inspect;

namespace {

struct CommandLine {
  std::string artifact;
  std::string entry;
  size_t plan = 0;
  size_t top = 12;
  bool json = false;
  MapSize map;
};

void addOptions(CLI::App *app, CommandLine &line) {
  app->add_option("artifact", line.artifact, "the compiled step (step.plim)")->required();
  app->add_option("--entry", line.entry, "only this entry; default: all");
  app->add_option("--plan", line.plan, "number of the sealed plan")->capture_default_str();
}

/// The entries asked for. Fails with Usage naming those there are.
Status choose(const artifact::ArtifactT &artifact, const CommandLine &line, ReportOptions &options) {
  if (line.plan >= artifact.plans.size())
    return {ExitCode::Usage, fmt::format("--plan {}, but the artifact has {}", line.plan, artifact.plans.size())};
  std::string known;
  for (const auto &entry : artifact.plans[line.plan]->entries) {
    known += (known.empty() ? "" : ", ") + entry->name;
    if (line.entry.empty() || entry->name == line.entry)
      options.entries.push_back(entry.get());
  }
  if (options.entries.empty() && !line.entry.empty())
    return {ExitCode::Usage, fmt::format("no entry {}, the artifact has: {}", line.entry, known)};
  return Status::ok();
}

Status verify(const artifact::ArtifactT &artifact, const ReportOptions &options) {
  const artifact::SealedPlanT &plan = *artifact.plans[options.plan];
  for (const artifact::EntryT *entry : options.entries)
    if (Status status = checkStatedPeak(plan, *entry); !status)
      return {status.code(), options.path + ": " + status.message()};
  printf("%s: valid, format version %u, %zu entries\n", options.path.c_str(), artifact.format_version,
         options.entries.size());
  return Status::ok();
}

Status run(const std::string &command, const CommandLine &line) {
  Result<artifact::ArtifactT> artifact = readArtifact(line.artifact);
  if (!artifact)
    return artifact.status();
  ReportOptions options;
  options.path = line.artifact;
  options.plan = line.plan;
  options.top = line.top;
  if (Status status = choose(*artifact, line, options); !status)
    return status;
  if (command == "verify")
    return verify(*artifact, options);
  std::string text;
  if (command == "commands")
    text = commandListing(*artifact, options);
  else if (command == "arena")
    for (const artifact::EntryT *entry : options.entries)
      text += arenaMap(*artifact->plans[options.plan], *entry, line.map);
  else
    text = line.json ? jsonSummary(*artifact, options) : textSummary(*artifact, options);
  fwrite(text.data(), 1, text.size(), stdout);
  return Status::ok();
}

/// True when the first argument is a sub-command; otherwise the summary is meant.
bool namesCommand(int argc, char **argv) {
  std::string_view first = argc > 1 ? argv[1] : "";
  return first == "summary" || first == "verify" || first == "commands" || first == "arena" || first == "--help" ||
         first == "-h" || first == "--version";
}

} // namespace

int main(int argc, char **argv) {
  CommandLine line;
  CLI::App app("plimsoll-inspect: explains where a compiled step's memory goes");
  app.set_version_flag("--version", std::string("plimsoll-inspect ") + PLIMSOLL_VERSION);
  app.require_subcommand(1);
  app.footer("plimsoll-inspect step.plim is short for plimsoll-inspect summary step.plim\n"
             "exit codes: 0 ok, 2 usage, 3 damaged or hostile artifact, 8 version mismatch");
  CLI::App *summary = app.add_subcommand("summary", "target, promised memory, breakdown and largest buffers");
  addOptions(summary, line);
  summary->add_option("--top", line.top, "largest live buffers to list")->capture_default_str();
  summary->add_flag("--json", line.json, "as JSON (schema in docs/Runner.md)");
  addOptions(app.add_subcommand("verify", "check every rule of the format, and the stated peaks"), line);
  addOptions(app.add_subcommand("commands", "list the commands with live bytes and operands"), line);
  CLI::App *arena = app.add_subcommand("arena", "draw the arena: addresses downwards, commands to the right");
  addOptions(arena, line);
  arena->add_option("--rows", line.map.rows, "lines")->capture_default_str()->check(CLI::Range(1, 4096));
  arena->add_option("--columns", line.map.columns, "columns")->capture_default_str()->check(CLI::Range(1, 4096));
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (argc > 1 && !namesCommand(argc, argv))
    arguments.insert(arguments.begin(), "summary");
  std::reverse(arguments.begin(), arguments.end()); // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::Usage);
  }
  Status status = run(app.get_subcommands().at(0)->get_name(), line);
  if (!status)
    fprintf(stderr, "plimsoll-inspect: %s\n", status.message().c_str());
  return static_cast<int>(status.code());
}
