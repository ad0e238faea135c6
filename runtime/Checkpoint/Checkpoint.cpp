// Saving and loading a session's variables. Tensors are written from and read into the arena directly; pages of the
// file are dropped as soon as they are copied, so that loading does not count twice against process memory.
#include "runtime/Checkpoint/Checkpoint.h"

#include "runtime/Artifact/Types.h"
#include "runtime/Core/SafeTensors.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <set>

namespace plimsoll::runtime {
namespace {

constexpr const char *notesKey = "plimsoll.checkpoint";

using artifact::VariableKind;
using artifact::VariableT;
using Chooser = std::function<bool(const VariableT &)>;

bool isWeight(const VariableT &variable) {
  return variable.kind == VariableKind::Parameter || variable.kind == VariableKind::ModelState;
}

bool isSaved(const VariableT &variable) { return variable.checkpoint; }

std::string tensorText(artifact::DType dtype, const std::vector<int64_t> &shape) {
  return fmt::format("{} [{}]", artifact::dtypeName(dtype), fmt::join(shape, ", "));
}

/// The bytes of variable `index`, exactly as many as its shape needs. (The reader has checked the shapes.)
std::span<std::byte> bytesOf(Session &session, size_t index) {
  const VariableT &variable = *session.artifact().variables[index];
  return session.variable(index).first(artifact::byteCount(variable.dtype, variable.shape).value_or(0));
}

std::vector<NamedTensor> tensorsOf(Session &session, const Chooser &chosen) {
  std::vector<NamedTensor> tensors;
  const auto &variables = session.artifact().variables;
  for (size_t i = 0; i < variables.size(); ++i)
    if (chosen(*variables[i]))
      tensors.push_back({variables[i]->name, variables[i]->dtype, variables[i]->shape, bytesOf(session, i)});
  return tensors;
}

/// The tensor of a variable: by its name, else by an alias.
const NamedTensor *findTensor(const SafeTensors &file, const VariableT &variable) {
  if (const NamedTensor *tensor = file.find(variable.name))
    return tensor;
  for (const std::string &alias : variable.aliases)
    if (const NamedTensor *tensor = file.find(alias))
      return tensor;
  return nullptr;
}

/// What lacks or differs between the file and the chosen variables, one line each.
std::vector<std::string> differences(const SafeTensors &file, Session &session, const Chooser &chosen) {
  std::vector<std::string> lines;
  for (const auto &variable : session.artifact().variables) {
    if (!chosen(*variable))
      continue;
    const NamedTensor *tensor = findTensor(file, *variable);
    std::string expected = tensorText(variable->dtype, variable->shape);
    if (!tensor)
      lines.push_back(fmt::format("{} is missing, expected {}", inQuotes(variable->name), expected));
    else if (tensor->dtype != variable->dtype || tensor->shape != variable->shape)
      lines.push_back(fmt::format("{} is {}, expected {}", inQuotes(variable->name),
                                  tensorText(tensor->dtype, tensor->shape), expected));
  }
  return lines;
}

void addUnknown(const SafeTensors &file, Session &session, std::vector<std::string> &lines) {
  std::set<std::string_view> known;
  for (const auto &variable : session.artifact().variables)
    if (variable->checkpoint) {
      known.insert(variable->name);
      known.insert(variable->aliases.begin(), variable->aliases.end());
    }
  for (const NamedTensor &tensor : file.tensors())
    if (!known.count(tensor.name))
      lines.push_back(fmt::format("{} is not a variable of the artifact", inQuotes(tensor.name)));
}

void copyVariables(const SafeTensors &file, Session &session, const Chooser &chosen) {
  const auto &variables = session.artifact().variables;
  for (size_t i = 0; i < variables.size(); ++i)
    if (chosen(*variables[i]))
      copyFromMapping(findTensor(file, *variables[i])->bytes, bytesOf(session, i));
}

/// Variables that no checkpoint holds get their initial values; only values from a file need the whole initialize().
Status initializeUnsaved(Session &session) {
  const auto &variables = session.artifact().variables;
  bool any =
      std::any_of(variables.begin(), variables.end(), [](const auto &variable) { return !variable->checkpoint; });
  return any ? session.initialize() : Status::ok();
}

std::string provenance(const Session &session, std::string artifact::ProvenanceT::*field) {
  const auto &record = session.artifact().provenance;
  return record ? (*record).*field : std::string();
}

} // namespace

Status saveCheckpoint(const std::string &path, Session &session, CheckpointInfo info) {
  info.modelHash = provenance(session, &artifact::ProvenanceT::model_hash);
  info.recipeHash = provenance(session, &artifact::ProvenanceT::recipe_hash);
  return writeSafeTensors(path, tensorsOf(session, isSaved), {{notesKey, checkpointNotes(info)}});
}

Result<CheckpointInfo> loadCheckpoint(const std::string &path, Session &session) {
  Result<SafeTensors> file = SafeTensors::open(path);
  if (!file)
    return file.status();
  auto notes = file->metadata().find(notesKey);
  if (notes == file->metadata().end())
    return badInput(
        fmt::format("{} is a safetensors file but no checkpoint (no metadata \"{}\"); use --weights to start "
                    "from its weights",
                    path, notesKey));
  Result<CheckpointInfo> info = parseCheckpointNotes(notes->second, path);
  if (!info)
    return info.status();
  std::vector<std::string> lines = differences(*file, session, isSaved);
  addUnknown(*file, session, lines);
  std::string hash = provenance(session, &artifact::ProvenanceT::model_hash);
  bool otherModel = info->modelHash != hash;
  if (otherModel)
    lines.insert(lines.begin(),
                 fmt::format("its model hash is {}, the artifact's is {}", inQuotes(info->modelHash), hash));
  if (!lines.empty())
    return Status(otherModel ? ExitCode::VersionMismatch : ExitCode::BadInput,
                  fmt::format("{} does not belong to this artifact: {}; resume with the artifact it was made with",
                              path, fmt::join(lines, "; ")));
  if (Status status = initializeUnsaved(session); !status)
    return status;
  copyVariables(*file, session, isSaved);
  return info;
}

Status loadWeights(const std::string &path, Session &session) {
  Result<SafeTensors> file = SafeTensors::open(path);
  if (!file)
    return file.status();
  std::vector<std::string> lines = differences(*file, session, isWeight);
  if (!lines.empty())
    return badInput(fmt::format("{} does not hold this model's weights: {}; use weights exported from the same model",
                                path, fmt::join(lines, "; ")));
  copyVariables(*file, session, isWeight);
  return Status::ok();
}

Status exportWeights(const std::string &path, Session &session) {
  return writeSafeTensors(path, tensorsOf(session, isWeight));
}

} // namespace plimsoll::runtime
