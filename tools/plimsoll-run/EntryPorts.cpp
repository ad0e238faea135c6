// Resolving an entry's ports to addresses before the first step.
#include "tools/plimsoll-run/EntryPorts.h"

#include <fmt/format.h>

namespace plimsoll::runtime {

std::string entryList(const Session &session) {
  std::string text;
  for (const auto &entry : session.artifact().plans.at(0)->entries)
    text += (text.empty() ? "" : ", ") + entry->name;
  return text.empty() ? "none" : text;
}

PortInfo portInfo(const artifact::PortT &port) { return {port.name, port.view->dtype, port.view->shape}; }

Result<EntryPorts> EntryPorts::bind(Session &session, std::string_view name) {
  const artifact::EntryT *entry = session.entry(name);
  if (!entry)
    return badInput(
        fmt::format("the artifact has no entry {}, it has: {}; compile it with that entry", name, entryList(session)));
  EntryPorts bound;
  bound.entryName = name;
  if (Status status = bound.bindInputs(session, *entry); !status)
    return status;
  if (Status status = bound.bindOutputs(session, *entry); !status)
    return status;
  return bound;
}

Status EntryPorts::bindInputs(Session &session, const artifact::EntryT &entry) {
  for (const auto &port : entry.inputs) {
    auto bytes = session.input(entry.name, port->name);
    if (!bytes)
      return bytes.status();
    PortInfo info = portInfo(*port);
    if (info.name == "lr" && info.elements() == 1) {
      scalarInputs.push_back({info.name, info.dtype, *bytes, {}});
      continue;
    }
    ports.push_back(std::move(info));
    targets.push_back(*bytes);
  }
  return Status::ok();
}

Status EntryPorts::bindOutputs(Session &session, const artifact::EntryT &entry) {
  for (const auto &port : entry.outputs) {
    PortInfo info = portInfo(*port);
    if (info.elements() != 1)
      continue;
    auto bytes = session.output(entry.name, port->name);
    if (!bytes)
      return bytes.status();
    scalarOutputs.push_back({info.name, info.dtype, {}, *bytes});
  }
  return Status::ok();
}

bool EntryPorts::setScalar(std::string_view port, double value) const {
  for (const Scalar &scalar : scalarInputs)
    if (scalar.name == port) {
      writeScalar(scalar.dtype, value, scalar.writable.data());
      return true;
    }
  return false;
}

std::optional<double> EntryPorts::scalar(std::string_view port) const {
  for (const Scalar &scalar : scalarOutputs)
    if (scalar.name == port)
      return readScalar(scalar.dtype, scalar.readable.data());
  return std::nullopt;
}

} // namespace plimsoll::runtime
